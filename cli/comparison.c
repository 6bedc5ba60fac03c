#include "cli/comparison.h"

#include <math.h>
#include <stdlib.h>

/* A single iteration is a latency; a measurement is a rhythm. So is the prediction it is held against. */
#define SIM_ITERATIONS 4
#define RECORD_TRIES   5

/* --- where they part ----------------------------------------------------------------------------- */

typedef struct {
    guint32 rank, step;
    guint16 lane;
    guint8 op, side; /* 0 predicted, 1 measured */
    double work_s;
} Work;

static int
compare_work(const void *a, const void *b)
{
    const Work *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    return x->step < y->step ? -1 : x->step > y->step;
}

static void
append_work(GArray *all, const TtTimeline *timeline, guint8 side)
{
    for (guint i = 0; i < timeline->events->len; i++) {
        const TtEvent *e = &g_array_index(timeline->events, TtEvent, i);
        Work work = { .rank = e->rank,
                      .step = e->step,
                      .lane = e->lane,
                      .op = e->op,
                      .side = side,
                      .work_s = tt_ps_to_seconds(e->end_ps - e->begin_ps - e->wait_ps) };

        g_array_append_val(all, work);
    }
}

TtDivergence
tt_find_divergence(const TtTimeline *predicted, const TtTimeline *measured)
{
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(Work));
    TtDivergence worst = { .rank = TT_NO_RANK };
    double worst_gap = 0;

    append_work(all, predicted, 0);
    append_work(all, measured, 1);
    g_array_sort(all, compare_work);
    for (guint i = 0; i < all->len;) {
        const Work *first = &g_array_index(all, Work, i);
        double sum[2] = { 0, 0 };

        for (; i < all->len && compare_work(first, &g_array_index(all, Work, i)) == 0; i++)
            sum[g_array_index(all, Work, i).side] += g_array_index(all, Work, i).work_s;
        if (worst.rank == TT_NO_RANK || fabs(sum[0] - sum[1]) > worst_gap) {
            worst_gap = fabs(sum[0] - sum[1]);
            worst = (TtDivergence){ .rank = first->rank,
                                    .step = first->step,
                                    .lane = first->lane,
                                    .op = first->op,
                                    .predicted_s = sum[0],
                                    .measured_s = sum[1] };
        }
    }
    return worst;
}

char *
tt_divergence_text(const TtDivergence *d)
{
    g_autofree char *predicted = tt_format_seconds(d->predicted_s);
    g_autofree char *measured = tt_format_seconds(d->measured_s);

    if (d->rank == TT_NO_RANK)
        return g_strdup("-");
    return g_strdup_printf("rank %u step %u %s: %s predicted, %s measured", d->rank, d->step,
                           tt_op_name(d->op), predicted, measured);
}

/* --- one cell ------------------------------------------------------------------------------------ */

/* For the state of the machine the samples were taken in. */
static gboolean
predict(const TtPlan *plan, const TtCompareOptions *options, TtComparison *c, GError **error)
{
    TtSimOptions sim = { .level = TT_LEVEL_FLOW,
                         .profile = c->measured.state ? c->measured.state : options->profile,
                         .iterations = SIM_ITERATIONS,
                         .in_place = options->in_place,
                         .record = TRUE };
    TtSimResult result = { 0 };

    if (!tt_sim_run(plan, options->topo, &sim, &result, error))
        return FALSE;
    c->predicted_s = tt_ps_to_seconds(result.time_ps);
    c->bound_s = tt_ps_to_seconds(result.bound_ps);
    c->predicted = g_steal_pointer(&result.timeline);
    tt_sim_result_clear(&result);
    return TRUE;
}

/* The recorded iteration that is closest to the measured time: one that was not disturbed. */
static gboolean
record(TtTeam *team, const TtPlan *plan, const TtCompareOptions *options, TtComparison *c,
       GError **error)
{
    TtRunOptions run = {
        .warmup = 1, .iterations = 1, .repeats = 1, .in_place = options->in_place, .record = TRUE
    };
    double best_gap = INFINITY;
    guint tries = c->measured.time_s > TT_MEASURE_SLOW_S ? 1 : RECORD_TRIES;

    for (guint i = 0; i < tries; i++) {
        TtRunResult result = { 0 };
        gint64 end_ps = 0;
        double gap;

        if (!tt_team_run(team, plan, &run, &result, error))
            return FALSE;
        for (guint k = 0; k < result.timeline->events->len; k++)
            end_ps = MAX(end_ps, g_array_index(result.timeline->events, TtEvent, k).end_ps);
        gap = fabs(tt_ps_to_seconds(end_ps) - c->measured.time_s);
        if (gap < best_gap) {
            best_gap = gap;
            tt_timeline_free(c->recorded);
            c->recorded = g_steal_pointer(&result.timeline);
        }
        tt_run_result_clear(&result);
    }
    return TRUE;
}

gboolean
tt_compare(TtTeam *team, const TtPlan *plan, const TtCompareOptions *options,
           TtComparison *comparison, GError **error)
{
    TtMeasureOptions measure = { .in_place = options->in_place,
                                 .check = options->check,
                                 .samples = options->samples,
                                 .states = options->any_state ? NULL : options->profile };
    TtComparison c = { 0 };

    if (!tt_measure(team, plan, &measure, &c.measured, error) ||
        !predict(plan, options, &c, error) || !record(team, plan, options, &c, error)) {
        tt_comparison_clear(&c);
        return FALSE;
    }
    c.error = c.measured.time_s > 0 ? (c.predicted_s - c.measured.time_s) / c.measured.time_s : 0;
    c.worst = tt_find_divergence(c.predicted, c.recorded);
    *comparison = c;
    return TRUE;
}

void
tt_comparison_clear(TtComparison *comparison)
{
    g_clear_pointer(&comparison->predicted, tt_timeline_free);
    g_clear_pointer(&comparison->recorded, tt_timeline_free);
}
