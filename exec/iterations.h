/* iterations.h - what the stamps of a job say: how long single iterations took, and who came late to them.
 */
#pragma once
#include "exec/shared.h"

/* The stamps of all ranks in seconds, on one clock as far as there is one: ranks of one machine share theirs;
 * those of another are set such that the first rank of each machine leaves the barrier at 0. */
typedef struct {
    guint n_ranks, n_loops, per_loop; /* ranks: members of a part, not switches */
    guint *rank;                      /* [n_ranks]: which of the team */
    double *loop_s;                   /* [rank * n_loops + loop]: when it began */
    double *begin_s, *end_s;          /* [(rank * n_loops + loop) * per_loop + i] */
    double *message_s,
        *slot_s; /* [rank * n_ranks + peer]: waited for it in all; NULL: not counted */
} TtIterations;

/* region->job, of which @part is one, has been run with stamps. Caller frees. */
TtIterations *tt_iterations_read(const TtRegion *region, const TtJobPart *part);
TtIterations *tt_iterations_new(guint n_ranks, guint n_loops,
                                guint per_loop); /* zeroed; of ranks 0, 1, ... */
void tt_iterations_free(TtIterations *self);

void tt_iterations_times(const TtIterations *self, TtIterationTimes *times);

/* TtArrival of every rank. Caller frees with g_array_unref(). */
GArray *tt_iterations_arrivals(const TtIterations *self);
