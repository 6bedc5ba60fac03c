/* comparison.h - one plan predicted and run, and where the two part.
 *
 * The error of a prediction is (predicted - measured) / measured.
 */
#pragma once
#include "cli/measure.h"
#include "sim/sim.h"

typedef struct {
    guint32 rank, step;
    guint16 lane;
    guint8 op;
    double predicted_s, measured_s; /* work of that step, waiting left out, over all rounds */
} TtDivergence;

typedef struct {
    double predicted_s, bound_s;
    double error;
    TtMeasurement measured;
    TtDivergence worst; /* the step whose work differs most; rank TT_NO_RANK if none */
    TtTimeline *predicted, *recorded; /* one iteration each; owned */
} TtComparison;

typedef struct {
    const TtTopology *topo;
    const TtProfile *profile;
    gboolean in_place, check;
    gboolean
        any_state; /* the profile's states are of another transport's latency: do not look for them */
    guint samples; /* 0: as tt_measure() */
} TtCompareOptions;

gboolean tt_compare(TtTeam *team, const TtPlan *plan, const TtCompareOptions *options,
                    TtComparison *comparison, GError **error);
void tt_comparison_clear(TtComparison *comparison);

/* Of two timelines of one plan, the (rank, lane, step) whose work, summed over rounds, differs most. */
TtDivergence tt_find_divergence(const TtTimeline *predicted, const TtTimeline *measured);

/* "rank 1 step 2 recv-reduce: 12.1 us predicted, 18 us measured"; caller frees. */
char *tt_divergence_text(const TtDivergence *divergence);
