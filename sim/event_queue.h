/* event_queue.h - what happens next: events in order of time, those of one instant first in, first
 * out.
 *
 * A radix heap (Ahuja, Mehlhorn, Orlin & Tarjan, J. ACM 37(2), 1990): since nothing is ever
 * scheduled in the past, events need sorting only by the highest bit in which their time differs
 * from now. Buckets are arrays read front to back, so equal times keep the order in which they were
 * pushed without a sequence number, and the many events of one instant of a symmetric collective
 * cost O(1) each.
 *
 * Knows nothing of lanes, flows or links: `kind` and `index` are the caller's.
 */
#pragma once
#include "models/units.h"

typedef struct {
    TtTime time_ps;
    guint32 kind, index;
} TtSimEvent;

typedef struct {
    TtSimEvent *at;
    gsize n, room;
} TtEventBucket;

/* Embedded; fields are read through the functions below. */
typedef struct {
    TtTime now_ps;            /* of the event popped last */
    gsize head;               /* first unread event of bucket 0 */
    guint64 filled;           /* bit b: bucket b >= 1 holds events */
    TtEventBucket bucket[64]; /* 0: time == now; b: highest bit that differs from now is b - 1 */
} TtEventQueue;

void tt_event_queue_init(TtEventQueue *self); /* at time 0 */
void tt_event_queue_clear(TtEventQueue *self);

/* Schedules an event at @time_ps >= now (asserted). */
void tt_event_queue_push(TtEventQueue *self, TtTime time_ps, guint32 kind, guint32 index);

/* Takes the next event and moves now to its time; FALSE if there is none. Amortised O(bits in which
 * pending times differ), in practice a handful of moves of 16 bytes. */
gboolean tt_event_queue_pop(TtEventQueue *self, TtSimEvent *event);

/* TRUE if another event is due at this very instant. */
static inline gboolean
tt_event_queue_has_now(const TtEventQueue *self)
{
    return self->head < self->bucket[0].n;
}
