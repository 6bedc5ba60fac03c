/* The ends of sharing flows, in an indexed 4-ary heap: a change of rates moves them in place. */
#include "sim/flows_private.h"

static inline gboolean
earlier(const TtFlows *self, guint32 a, guint32 b)
{
    TtTime x = self->flows[a].end_ps, y = self->flows[b].end_ps;

    return x != y ? x < y : a < b;
}

static inline void
put(TtFlows *self, guint32 pos, guint32 flow)
{
    self->heap[pos] = flow;
    self->flows[flow].heap_pos = pos;
}

static void
move_down(TtFlows *self, guint32 pos)
{
    guint32 moving = self->heap[pos];

    for (;;) {
        guint32 best = 4 * pos + 1, end = MIN(best + 4, self->heap_n);

        if (best >= self->heap_n)
            break;
        for (guint32 child = best + 1; child < end; child++)
            if (earlier(self, self->heap[child], self->heap[best]))
                best = child;
        if (!earlier(self, self->heap[best], moving))
            break;
        put(self, pos, self->heap[best]);
        pos = best;
    }
    put(self, pos, moving);
}

static void
move_up(TtFlows *self, guint32 pos)
{
    guint32 moving = self->heap[pos];

    while (pos > 0 && earlier(self, moving, self->heap[(pos - 1) / 4])) {
        put(self, pos, self->heap[(pos - 1) / 4]);
        pos = (pos - 1) / 4;
    }
    put(self, pos, moving);
}

void
tt_flows_heap_pop(TtFlows *self)
{
    self->flows[self->heap[0]].heap_pos = TT_NOWHERE;
    self->heap_n--;
    if (self->heap_n > 0) {
        put(self, 0, self->heap[self->heap_n]);
        move_down(self, 0);
    }
}

/* The ends of these flows moved, or they are new: order again, the whole heap if they are many. */
void
tt_flows_heap_update(TtFlows *self, const guint32 *changed, guint32 n_changed)
{
    guint32 old_n = self->heap_n;

    TT_RESERVE(self->heap, self->heap_room, self->heap_n + n_changed);
    for (guint32 i = 0; i < n_changed; i++)
        if (self->flows[changed[i]].heap_pos == TT_NOWHERE)
            put(self, self->heap_n++, changed[i]);
    if (n_changed > self->heap_n / 8) {
        for (guint32 pos = self->heap_n / 4 + 1; pos-- > 0;)
            if (pos < self->heap_n)
                move_down(self, pos);
        return;
    }
    for (guint32 pos = old_n; pos < self->heap_n; pos++)
        move_up(self, pos);
    for (guint32 i = 0; i < n_changed; i++) {
        move_up(self, self->flows[changed[i]].heap_pos);
        move_down(self, self->flows[changed[i]].heap_pos);
    }
}
