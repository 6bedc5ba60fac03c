#include "exec/barrier.h"
#include "exec/ports.h"
#include "exec/wires.h"

/* The tree is that of a heap: rank r's parent is (r - 1) / 2. */
static guint
connection(const TtRank *self, guint child, gboolean down)
{
    return self->region->job.barrier_first + 2 * (child - 1) + down;
}

void
tt_barrier_open(TtRank *self)
{
    guint n = self->region->n_ranks, r = self->rank;

    if (!tt_region_is_part(self->region))
        return;
    if (r > 0) {
        tt_port_open(self, connection(self, r, FALSE), (r - 1) / 2, TRUE);
        tt_port_open(self, connection(self, r, TRUE), (r - 1) / 2, FALSE);
    }
    for (guint child = 2 * r + 1; child <= 2 * r + 2 && child < n; child++) {
        tt_port_open(self, connection(self, child, FALSE), child, FALSE);
        tt_port_open(self, connection(self, child, TRUE), child, TRUE);
    }
}

static gboolean
wait_for(TtRank *self, const TtPort *in, TtWait *wait)
{
    while (!tt_port_has_message(in))
        if (!tt_wires_pump(self, NULL) ||
            !tt_wait(self, wait, TT_RANK_WAITS_BARRIER, in->peer, TT_NO_LANE))
            return FALSE;
    return TRUE;
}

static gboolean
say(TtRank *self, TtPort *out)
{
    tt_port_hand_over(out, TT_SLOT_SMALL_START);
    return tt_wires_pump(self, NULL);
}

static gboolean
wait_by_messages(TtRank *self, TtWait *wait)
{
    guint n = self->region->n_ranks, r = self->rank;

    for (guint child = 2 * r + 1; child <= 2 * r + 2 && child < n; child++) {
        TtPort *in = &self->in_ports[connection(self, child, FALSE)];

        if (!wait_for(self, in, wait))
            return FALSE;
        tt_port_acknowledge(in);
    }
    if (r > 0) {
        TtPort *in = &self->in_ports[connection(self, r, TRUE)];

        if (!say(self, &self->out_ports[connection(self, r, FALSE)]) || !wait_for(self, in, wait))
            return FALSE;
        tt_port_acknowledge(in);
    }
    for (guint child = 2 * r + 1; child <= 2 * r + 2 && child < n; child++)
        if (!say(self, &self->out_ports[connection(self, child, TRUE)]))
            return FALSE;
    return tt_wires_flush(self);
}

static gboolean
wait_in_memory(TtRank *self, TtWait *wait)
{
    TtRegion *region = self->region;
    guint32 epoch = atomic_load_explicit(&region->epoch, memory_order_relaxed);

    if (atomic_fetch_add(&region->arrived, 1) + 1 == region->n_ranks) {
        atomic_store_explicit(&region->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&region->epoch, epoch + 1, memory_order_release);
        return TRUE;
    }
    while (atomic_load_explicit(&region->epoch, memory_order_acquire) == epoch)
        if (!tt_wait(self, wait, TT_RANK_WAITS_BARRIER, TT_NO_RANK, TT_NO_LANE))
            return FALSE;
    return TRUE;
}

gboolean
tt_barrier_wait(TtRank *self)
{
    TtWait wait = { 0 };
    gboolean good =
        tt_wires_flush(self) && (tt_region_is_part(self->region) ? wait_by_messages(self, &wait)
                                                                 : wait_in_memory(self, &wait));

    if (good)
        tt_wait_over(self, &wait);
    return good;
}
