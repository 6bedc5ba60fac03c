/* The executor on GPUs, with the kernels on the CPU: teams, jobs one after another, protocols, placements, several GPUs, several
 * collectives at once, timelines, a time-out. For thread sanitizers, too. */
#include "exec/exec.h"
#include "tests/check.h"

#include <string.h>

#define MOST_BYTES (1 << 18)

static TtTeam *
start(guint n_ranks, const char *gpus, TtGpuProtocol protocol, TtGpuPlacement placement)
{
    TtTeamOptions options = { .n_ranks = n_ranks,
                              .transport = "cuda",
                              .gpus = gpus,
                              .max_bytes = MOST_BYTES,
                              .timeout_s = 60,
                              .gid_index = -1,
                              .gpu_protocol = protocol,
                              .gpu_placement = placement };
    GError *error = NULL;
    TtTeam *team = tt_team_start(&options, &error);

    CHECK(team != NULL, "%u ranks on %s: %s", n_ranks, gpus, error ? error->message : "?");
    g_clear_error(&error);
    return team;
}

static void
run(TtTeam *team, const char *algorithm, const TtPlanSpec *spec, gboolean in_place,
    const char *name)
{
    TtRunOptions options = { .warmup = 1, .iterations = 2, .in_place = in_place, .check = TRUE };
    TtRunResult result = { 0 };
    GError *error = NULL;
    g_autoptr(TtPlan) plan = tt_plan_new(algorithm, spec, &error);
    gboolean good = plan && tt_team_run(team, plan, &options, &result, &error);

    CHECK(good && result.wrong == 0, "%s, %s of %lu: %ld wrong, %s", name, algorithm,
          (unsigned long)spec->count, (long)result.wrong, error ? error->message : "no error");
    g_clear_error(&error);
    tt_run_result_clear(&result);
}

static const char *const algorithms[] = { "ring",
                                          "tree",
                                          "double-tree",
                                          "direct",
                                          "hierarchical",
                                          "binomial",
                                          "halving-doubling",
                                          "naive",
                                          "nccl-tree",
                                          "recursive-doubling",
                                          "two-shot" };

/* One team runs jobs of all kinds, one after another: counters and memory begin anew with each. */
static void
test_protocols(void)
{
    static const struct {
        const char *name;
        TtGpuProtocol protocol;
        guint n_ranks, n_channels, n_slots;
        guint64 slot_bytes;
    } rows[] = {
        { "simple", TT_GPU_PROTOCOL_SIMPLE, 8, 1, 2, 512 },
        { "ll", TT_GPU_PROTOCOL_LL, 3, 2, 2, 1024 },
        { "ll128", TT_GPU_PROTOCOL_LL128, 6, 2, 3, 4096 },
        { "auto", TT_GPU_PROTOCOL_AUTO, 2, 3, 4, 32768 },
    };
    static const guint64 counts[] = { 0, 1, 13, 1000, 4099 };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(TtTeam) team =
            start(rows[i].n_ranks, "host", rows[i].protocol, TT_GPU_PLACE_AUTO);

        for (guint a = 0; team && a < G_N_ELEMENTS(algorithms); a++)
            for (guint c = 0; c < G_N_ELEMENTS(counts); c++) {
                TtPlanSpec spec = { .n_ranks = rows[i].n_ranks,
                                    .count = counts[c],
                                    .type = c % 2 ? TT_FLOAT32 : TT_INT64,
                                    .redop = c % 2 ? TT_AVG : TT_MAX,
                                    .n_channels = rows[i].n_channels,
                                    .n_slots = rows[i].n_slots,
                                    .slot_bytes = rows[i].slot_bytes };

                run(team, algorithms[a], &spec, c % 2, rows[i].name);
            }
    }
}

static void
test_placements(void)
{
    static const struct {
        const char *name, *gpus;
        TtGpuPlacement placement;
    } rows[] = {
        { "write, two GPUs", "host:2", TT_GPU_PLACE_WRITE },
        { "read, three GPUs", "host:3", TT_GPU_PLACE_READ },
        { "host memory", "host:2", TT_GPU_PLACE_HOST },
        { "more GPUs than ranks, blocks of two", "host:8,2", TT_GPU_PLACE_AUTO },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(TtTeam) team = start(5, rows[i].gpus, TT_GPU_PROTOCOL_AUTO, rows[i].placement);
        TtPlanSpec spec = { .n_ranks = 5, .count = 3001, .type = TT_BFLOAT16, .n_channels = 2 };

        for (guint a = 0; team && a < 3; a++)
            run(team, algorithms[a], &spec, FALSE, rows[i].name);
    }
}

static void
test_parts(void)
{
    g_autoptr(TtTeam) team = start(4, "host:2", TT_GPU_PROTOCOL_AUTO, TT_GPU_PLACE_AUTO);
    TtPlanSpec spec = { .n_ranks = 2, .count = 2000, .type = TT_FLOAT32 };
    g_autoptr(TtPlan) ring = tt_plan_new("ring", &spec, NULL);
    g_autoptr(TtPlan) tree = tt_plan_new("tree", &spec, NULL);
    static const guint members[][2] = { { 0, 1 }, { 2, 3 }, { 0, 2 }, { 3, 1 } };
    TtRunPart parts[G_N_ELEMENTS(members)];
    TtRunResult results[G_N_ELEMENTS(members)] = { { 0 } };
    TtRunOptions options = { .iterations = 2, .check = TRUE };
    GError *error = NULL;

    for (guint i = 0; i < G_N_ELEMENTS(members); i++)
        parts[i] = (TtRunPart){ .plan = i % 2 ? tree : ring, .members = members[i] };
    CHECK(team && tt_team_run_parts(team, parts, G_N_ELEMENTS(parts), &options, results, &error),
          "%s", error ? error->message : "");
    for (guint i = 0; i < G_N_ELEMENTS(members); i++) {
        CHECK(results[i].wrong == 0, "part %u: %ld wrong", i, (long)results[i].wrong);
        tt_run_result_clear(&results[i]);
    }
    g_clear_error(&error);
}

/* Every step of every lane once, in order, and none before it could be. */
static void
test_timeline(void)
{
    g_autoptr(TtTeam) team = start(3, "host", TT_GPU_PROTOCOL_SIMPLE, TT_GPU_PLACE_AUTO);
    TtPlanSpec spec = { .n_ranks = 3, .count = 3000, .type = TT_FLOAT32, .slot_bytes = 2048 };
    g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);
    TtRunOptions options = { .warmup = 1, .iterations = 3, .record = TRUE, .stamps = TRUE };
    TtRunResult result = { 0 };
    gint64 last_ps[3] = { 0 };
    gsize want = 0;

    CU_ASSERT_TRUE_FATAL(team && tt_team_run(team, plan, &options, &result, NULL));
    for (guint r = 0; r < 3; r++)
        want += tt_plan_n_steps(plan, r, 0) * plan->n_rounds;
    CHECK(result.timeline->events->len == want, "%u events", result.timeline->events->len);
    for (guint i = 0; i < result.timeline->events->len; i++) {
        const TtEvent *e = &g_array_index(result.timeline->events, TtEvent, i);

        CHECK(e->end_ps >= e->begin_ps && e->wait_ps <= e->end_ps - e->begin_ps && e->bytes > 0 &&
                  e->end_ps >= last_ps[e->rank],
              "rank %u round %u step %u", e->rank, e->round, e->step);
        last_ps[e->rank] = e->end_ps;
    }
    CU_ASSERT_EQUAL(result.iterations.n, 3);
    CU_ASSERT_TRUE(result.iterations.min_s > 0 &&
                   result.iterations.min_s <= result.iterations.mean_s);
    tt_run_result_clear(&result);
}

static void
test_refusals(void)
{
    static const struct {
        const char *gpus, *words;
    } rows[] = { { "host:0", "host:N" }, { "host:x", "host:N" }, { "host:1,2,3", "host:N" } };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        TtTeamOptions options = { .n_ranks = 2, .transport = "cuda", .gpus = rows[i].gpus };
        GError *error = NULL;

        CU_ASSERT_PTR_NULL(tt_team_start(&options, &error));
        CHECK(error && strstr(error->message, rows[i].words), "%s: %s", rows[i].gpus,
              error ? error->message : "no error");
        g_clear_error(&error);
    }
}

int
main(void)
{
    CU_TestInfo tests[] = { { "protocols and algorithms", test_protocols },
                            { "placements", test_placements },
                            { "several collectives", test_parts },
                            { "timeline", test_timeline },
                            { "refusals", test_refusals },
                            CU_TEST_INFO_NULL };

    return check_main("the executor on GPUs", tests);
}
