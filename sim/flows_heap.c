/* The ends of sharing flows, in an indexed 4-ary heap: a change of rates moves them in place. */
#include "sim/flows_private.h"

static inline gboolean
earlier(HeapEntry a, HeapEntry b)
{
    return a.end_ps != b.end_ps ? a.end_ps < b.end_ps : a.flow < b.flow;
}

static inline void
put(TtFlows *self, guint32 pos, HeapEntry entry)
{
    self->heap[pos] = entry;
    self->flows[entry.flow].heap_pos = pos;
}

static void
move_down(TtFlows *self, guint32 pos, HeapEntry moving)
{
    for (;;) {
        guint32 best = 4 * pos + 1, end = MIN(best + 4, self->heap_n);

        if (best >= self->heap_n)
            break;
        for (guint32 child = best + 1; child < end; child++)
            if (earlier(self->heap[child], self->heap[best]))
                best = child;
        if (!earlier(self->heap[best], moving))
            break;
        put(self, pos, self->heap[best]);
        pos = best;
    }
    put(self, pos, moving);
}

static void
move_up(TtFlows *self, guint32 pos, HeapEntry moving)
{
    while (pos > 0 && earlier(moving, self->heap[(pos - 1) / 4])) {
        put(self, pos, self->heap[(pos - 1) / 4]);
        pos = (pos - 1) / 4;
    }
    put(self, pos, moving);
}

void
tt_flows_heap_pop(TtFlows *self)
{
    self->flows[self->heap[0].flow].heap_pos = TT_NOWHERE;
    self->heap_n--;
    if (self->heap_n > 0)
        move_down(self, 0, self->heap[self->heap_n]);
}

static void
rebuild(TtFlows *self, const guint32 *changed, guint32 n_changed)
{
    for (guint32 i = 0; i < n_changed; i++) {
        const Flow *f = &self->flows[changed[i]];
        guint32 pos = f->heap_pos == TT_NOWHERE ? self->heap_n++ : f->heap_pos;

        put(self, pos, (HeapEntry){ f->end_ps, changed[i] });
    }
    for (guint32 pos = self->heap_n / 4 + 1; pos-- > 0;)
        if (pos < self->heap_n)
            move_down(self, pos, self->heap[pos]);
}

/* The ends of these flows moved, or they are new. One after the other, as the heap must be in order but
 * for the one that moves; or, if they are many, the whole heap at once. */
void
tt_flows_heap_update(TtFlows *self, const guint32 *changed, guint32 n_changed)
{
    TT_RESERVE(self->heap, self->heap_room, self->heap_n + n_changed);
    if (n_changed > self->heap_n / 8) {
        rebuild(self, changed, n_changed);
        return;
    }
    for (guint32 i = 0; i < n_changed; i++) {
        const Flow *f = &self->flows[changed[i]];
        HeapEntry entry = { f->end_ps, changed[i] };

        if (f->heap_pos == TT_NOWHERE)
            move_up(self, self->heap_n++, entry);
        else if (earlier(entry, self->heap[f->heap_pos]))
            move_up(self, f->heap_pos, entry);
        else
            move_down(self, f->heap_pos, entry);
    }
}
