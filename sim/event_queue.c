#include "sim/event_queue.h"

#include <string.h>

void
tt_event_queue_init(TtEventQueue *self)
{
    memset(self, 0, sizeof *self);
}

void
tt_event_queue_clear(TtEventQueue *self)
{
    for (guint b = 0; b < G_N_ELEMENTS(self->bucket); b++)
        g_free(self->bucket[b].at);
    memset(self, 0, sizeof *self);
}

static void
append(TtEventBucket *bucket, TtSimEvent event)
{
    if (G_UNLIKELY(bucket->n == bucket->room)) {
        bucket->room = bucket->room ? 2 * bucket->room : 16;
        bucket->at = g_renew(TtSimEvent, bucket->at, bucket->room);
    }
    bucket->at[bucket->n++] = event;
}

static inline void
place(TtEventQueue *self, TtSimEvent event)
{
    guint64 differ = (guint64)(event.time_ps ^ self->now_ps);
    guint b = differ ? 64 - (guint)__builtin_clzll(differ) : 0;

    append(&self->bucket[b], event);
    self->filled |= (guint64)(b > 0) << b;
}

void
tt_event_queue_push(TtEventQueue *self, TtTime time_ps, guint32 kind, guint32 index)
{
    g_assert(time_ps >= self->now_ps);
    place(self, (TtSimEvent){ time_ps, kind, index });
}

/* Bucket 0 is used up: move now to the earliest event and spread its bucket over the lower ones,
 * which are all empty. Front to back, so equal times stay in order. */
static gboolean
advance(TtEventQueue *self)
{
    TtEventBucket *bucket;
    gsize n;

    self->bucket[0].n = self->head = 0;
    if (!self->filled)
        return FALSE;
    bucket = &self->bucket[__builtin_ctzll(self->filled)];
    self->filled &= self->filled - 1;
    n = bucket->n;
    bucket->n = 0;
    self->now_ps = bucket->at[0].time_ps;
    for (gsize i = 1; i < n; i++)
        self->now_ps = MIN(self->now_ps, bucket->at[i].time_ps);
    for (gsize i = 0; i < n; i++)
        place(self, bucket->at[i]);
    return TRUE;
}

gboolean
tt_event_queue_pop(TtEventQueue *self, TtSimEvent *event)
{
    if (!tt_event_queue_has_now(self) && !advance(self))
        return FALSE;
    *event = self->bucket[0].at[self->head++];
    return TRUE;
}
