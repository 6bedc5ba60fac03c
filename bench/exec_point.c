/* Points of the executor: what `auto` makes of an fp32 sum, for bench/peers.
 *
 *     bench_exec_point RANKS SIZES BUDGET_MS [TRANSPORT]     output as bench/point.h says
 */
#include "exec/defaults.h"
#include "exec/exec.h"
#include "bench/point.h"

#include <stdio.h>

static gboolean
run(TtTeam *team, const TtPlan *plan, guint n, guint repeats, gboolean check, TtRunResult *result,
    GError **error)
{
    TtRunOptions options = { .iterations = n, .repeats = repeats, .check = check };

    return tt_team_run(team, plan, &options, result, error);
}

static gboolean
measure(TtTeam *team, const TtTeamOptions *options, guint64 bytes, double budget_us, GError **error)
{
    TtPlanSpec spec = { .n_ranks = options->n_ranks, .count = bytes / 4, .type = TT_FLOAT32 };
    const char *algorithm = tt_exec_choose(&spec, options->transport);
    g_autoptr(TtPlan) plan = NULL;
    TtRunResult result = { 0 };
    PointLoop loop;
    long next = 1;

    tt_exec_defaults_over(&spec, algorithm, options->transport);
    plan = tt_plan_new(algorithm, &spec, error);
    if (!plan)
        return FALSE;
    while (next) {
        long tried = next;

        if (!run(team, plan, (guint)tried, 1, FALSE, &result, error))
            return FALSE;
        next = point_next(tried, result.time_s * 1e6 * (double)tried, budget_us, &loop);
    }
    if (!run(team, plan, (guint)loop.n, (guint)loop.repeats, TRUE, &result, error))
        return FALSE;
    if (result.wrong != 0)
        fprintf(stderr, "%" G_GINT64_FORMAT " wrong elements\n", result.wrong);
    printf("%" G_GUINT64_FORMAT " %.4f %.4f %s\n", bytes, result.time_s * 1e6, result.flag_s * 1e6,
           algorithm);
    return TRUE;
}

int
main(int argc, char **argv)
{
    guint n_ranks = argc > 1 ? (guint)atoi(argv[1]) : 2;
    g_auto(GStrv) sizes = g_strsplit(argc > 2 ? argv[2] : "8", ",", 0);
    double budget_us = argc > 3 ? atof(argv[3]) * 1e3 : 30e3;
    TtTeamOptions options = { .n_ranks = n_ranks,
                              .transport = argc > 4 ? argv[4] : NULL,
                              .pin = TRUE }; /* as `tutti run` does */
    g_autoptr(GError) error = NULL;
    g_autoptr(TtTeam) team = NULL;

    for (guint i = 0; sizes[i]; i++)
        options.max_bytes = MAX(options.max_bytes, g_ascii_strtoull(sizes[i], NULL, 10));
    team = tt_team_start(&options, &error);
    for (guint i = 0; team && sizes[i]; i++)
        if (!measure(team, &options, g_ascii_strtoull(sizes[i], NULL, 10), budget_us, &error))
            break;
    if (error)
        fprintf(stderr, "%s\n", error->message);
    return error != NULL;
}
