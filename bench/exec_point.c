/* One point of the executor: what `auto` makes of an fp32 sum, for bench/mpi/peers.sh.
 *
 *     bench_exec_point RANKS BYTES ITERATIONS REPEATS    prints: median_us flag_us algorithm
 */
#include "exec/defaults.h"
#include "exec/exec.h"

#include <stdio.h>
#include <stdlib.h>

int
main(int argc, char **argv)
{
    guint n_ranks = argc > 1 ? (guint)atoi(argv[1]) : 2;
    guint64 bytes = argc > 2 ? g_ascii_strtoull(argv[2], NULL, 10) : 8;
    guint n = argc > 3 ? (guint)atoi(argv[3]) : 100, repeats = argc > 4 ? (guint)atoi(argv[4]) : 5;
    TtTeamOptions team_options = { .n_ranks = n_ranks,
                                   .max_bytes = bytes,
                                   .pin = n_ranks <= g_get_num_processors() };
    TtPlanSpec spec = { .n_ranks = n_ranks, .count = bytes / 4, .type = TT_FLOAT32 };
    TtRunOptions options = {
        .warmup = n / 10 + 2, .iterations = n, .repeats = repeats, .check = TRUE
    };
    const char *algorithm = tt_exec_choose(&spec);
    g_autoptr(GError) error = NULL;
    g_autoptr(TtTeam) team = tt_team_start(&team_options, &error);
    g_autoptr(TtPlan) plan = NULL;
    TtRunResult result;

    tt_exec_defaults(&spec, algorithm);
    if (team)
        plan = tt_plan_new(algorithm, &spec, &error);
    if (!plan || !tt_team_run(team, plan, &options, &result, &error)) {
        fprintf(stderr, "%s\n", error->message);
        return 1;
    }
    printf("%.4f %.4f %s\n", result.time_s * 1e6, result.flag_s * 1e6, algorithm);
    if (result.wrong != 0)
        fprintf(stderr, "%" G_GINT64_FORMAT " wrong elements\n", result.wrong);
    return result.wrong != 0;
}
