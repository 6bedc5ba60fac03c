#include "exec/rank.h"

#include <sched.h>
#include <time.h>

/* After spinning, this many calls to the scheduler before sleeping: with more ranks than cores, the
 * rank waited for usually runs within the first few. */
#define N_YIELDS 4000

#define SLEEP_FIRST_NS 1000
#define SLEEP_MOST_NS  50000

static void
say(TtRankBlock *block, TtRankState state, guint peer, guint lane)
{
    atomic_store_explicit(&block->wait_peer, peer, memory_order_relaxed);
    atomic_store_explicit(&block->wait_lane, lane, memory_order_relaxed);
    atomic_store_explicit(&block->state, state, memory_order_relaxed);
}

gboolean
tt_wait_slow(TtRank *self, TtWait *wait, TtRankState state, guint peer, guint lane)
{
    guint32 tries = wait->tries - self->spin_limit;

    if (atomic_load_explicit(&self->region->aborted, memory_order_relaxed))
        return FALSE;
    wait->tries++;
    if (tries == 0)
        say(&self->region->ranks[self->rank], state, peer, lane);
    if (tries < N_YIELDS) {
        sched_yield();
    } else {
        guint doublings = MIN((tries - N_YIELDS) / 8, 6);
        struct timespec nap = { 0, MIN(SLEEP_FIRST_NS << doublings, SLEEP_MOST_NS) };

        nanosleep(&nap, NULL);
        if (wait->tries == G_MAXUINT32)
            wait->tries--;
    }
    return TRUE;
}

void
tt_wait_over(TtRank *self)
{
    say(&self->region->ranks[self->rank], TT_RANK_BUSY, TT_NO_RANK, TT_NO_LANE);
}

gboolean
tt_wait_barrier(TtRank *self)
{
    TtRegion *region = self->region;
    guint32 epoch = atomic_load_explicit(&region->epoch, memory_order_relaxed);
    TtWait wait = { 0 };

    if (atomic_fetch_add(&region->arrived, 1) + 1 == region->n_ranks) {
        atomic_store_explicit(&region->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&region->epoch, epoch + 1, memory_order_release);
        return TRUE;
    }
    while (atomic_load_explicit(&region->epoch, memory_order_acquire) == epoch) {
        if (wait.tries < self->spin_limit) {
            wait.tries++;
            tt_relax();
        } else if (!tt_wait_slow(self, &wait, TT_RANK_WAITS_BARRIER, TT_NO_RANK, TT_NO_LANE)) {
            return FALSE;
        }
    }
    if (wait.tries > self->spin_limit)
        tt_wait_over(self);
    return TRUE;
}
