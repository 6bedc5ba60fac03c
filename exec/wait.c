#include "exec/wires.h"

#include <sched.h>
#include <time.h>

/* After spinning, this many calls to the scheduler before sleeping: with more ranks than cores, the
 * rank waited for usually runs within the first few. */
#define N_YIELDS 4000

/* An abort is noticed within this. */
#define WIRE_SLEEP_MS 5

#define SLEEP_FIRST_NS 1000
#define SLEEP_MOST_NS  50000

/* Tries before the first call to the scheduler. With a core for each rank, about a time slice (3 ms): if
 * another process has pushed a rank off its core, it comes back within that; giving up the own core
 * earlier makes the two miss each other again and again. With fewer cores than ranks, the one waited
 * for may need this very core. */
#define SPINS_OWN_CORE    100000
#define SPINS_SHARED_CORE 4

/* More ranks than cores: who sends may be waiting for this very core, and to give it up costs less than to sleep and be
 * woken. An allreduce of 8 bytes by 4 ranks on 2 cores: 120 us without, 80 with 5 to 20, 90 with 60. */
#define YIELDS_WIRE 8

/* A look at a wire is a system call or two, not a load: some 50 us. */
#define SPINS_WIRE 200

guint32
tt_wait_spin_limit(const TtRank *self)
{
    const TtRegion *region = self->region;
    gboolean own_core = region->n_on_host <= region->n_cores;

    if (self->has_wires)
        return own_core ? SPINS_WIRE : 0;
    return own_core ? SPINS_OWN_CORE : SPINS_SHARED_CORE;
}

static void
say(TtRankBlock *block, TtRankState state, guint peer, guint lane)
{
    atomic_store_explicit(&block->wait_peer, peer, memory_order_relaxed);
    atomic_store_explicit(&block->wait_lane, lane, memory_order_relaxed);
    atomic_store_explicit(&block->state, state, memory_order_relaxed);
}

/* What is waited for comes over a wire, whatever it is: the kernel wakes this rank. */
static gboolean
can_sleep_on_wires(const TtRank *self, TtRankState state)
{
    return self->has_wires && !self->has_memory_ends &&
           (state == TT_RANK_WAITS_MESSAGE || state == TT_RANK_WAITS_SLOT ||
            (state == TT_RANK_WAITS_BARRIER && tt_region_is_part(self->region)));
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
    if (can_sleep_on_wires(self, state) && tries >= YIELDS_WIRE) {
        tt_wires_sleep(self, WIRE_SLEEP_MS);
        wait->tries = MIN(wait->tries, self->spin_limit + N_YIELDS);
    } else if (tries < N_YIELDS) {
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
tt_wait_say_busy(TtRank *self)
{
    say(&self->region->ranks[self->rank], TT_RANK_BUSY, TT_NO_RANK, TT_NO_LANE);
}
