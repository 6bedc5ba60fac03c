/* Plans over RDMA cards: every algorithm is right, and what breaks is said. Between the software RoCE cards of
 * tests/labs/verbs-guest; elsewhere it counts as skipped (77). Few and small runs: the guest is emulated. */
#include "algos/algo.h"
#include "algos/verify.h"
#include "exec/exec.h"
#include "exec/gpu.h"
#include "exec/verbs.h"
#include "tests/check.h"

#include <string.h>

#define SKIPPED    77
#define MOST_BYTES (1 << 18)

static TtTeamOptions
options_for(const char *transport, guint n_ranks)
{
    return (TtTeamOptions){ .n_ranks = n_ranks,
                            .transport = transport,
                            .max_bytes = MOST_BYTES,
                            .timeout_s = 60,
                            .device = "rxe1,rxe2",
                            .gid_index = -1 };
}

static void
run_on(TtTeam *team, const TtPlan *plan, const char *what)
{
    TtRunOptions options = { .iterations = 2, .check = TRUE };
    TtRunResult result = { .wrong = -1 };
    g_autoptr(GError) error = NULL;

    tt_team_run(team, plan, &options, &result, &error);
    CHECK(error == NULL && result.wrong == 0, "%s: %ld wrong, %s", what, (long)result.wrong,
          error ? error->message : "no error");
    tt_run_result_clear(&result);
}

static void
run_spec(const TtTeamOptions *options, const char *algorithm, const TtPlanSpec *spec)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(TtPlan) plan = tt_plan_new(algorithm, spec, &error);
    g_autoptr(TtTeam) team = plan ? tt_team_start(options, &error) : NULL;

    CHECK_NO_ERROR(error);
    if (team)
        run_on(team, plan, algorithm);
}

/* Algorithms that reduce in switches need more agents than ranks: a team of their own. */
static void
run_all(guint n_ranks, guint64 count)
{
    TtTeamOptions options = options_for("verbs", n_ranks);
    g_autoptr(GError) error = NULL;
    g_autoptr(TtTeam) team = tt_team_start(&options, &error);
    guint n_run = 0;

    CHECK_NO_ERROR(error);
    for (guint a = 0; team && tt_algos[a]; a++) {
        TtPlanSpec spec = { .n_ranks = n_ranks,
                            .count = count,
                            .type = TT_FLOAT32,
                            .n_slots = 2 + a % 3,
                            .n_channels = 1 + a % 2,
                            .slot_bytes = 4096 };
        g_autoptr(TtPlan) plan = NULL;
        g_autofree char *what =
            g_strdup_printf("%s, %u ranks, %lu elements", tt_algos[a]->name, n_ranks, count);

        if (!(tt_algos[a]->collectives & TT_BIT(TT_ALLREDUCE)))
            continue;
        plan = tt_plan_new(tt_algos[a]->name, &spec, NULL);
        if (!plan || !tt_verify(plan, FALSE, NULL, NULL) || tt_plan_n_agents(plan) != n_ranks)
            continue;
        run_on(team, plan, what);
        n_run++;
    }
    CHECK(n_run >= 5, "%u algorithms on %u ranks", n_run, n_ranks);
}

static void
every_algorithm_is_right(void)
{
    run_all(2, 7001);
    run_all(4, 7001);
    run_all(8, 101);
}

/* Sequence numbers lap the slots and their queues many times; one slot needs every acknowledgement. */
static void
slots_lap(void)
{
    static const struct {
        const char *algorithm;
        guint n_slots, streams;
        guint64 slot_bytes;
    } rows[] = {
        { "naive", 1, 1, 1024 },
        { "ring", 8, 1, 64 },
        { "ring", 4, 3, 1024 },
        { "direct", 2, 2, 1 << 17 },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        TtTeamOptions options = options_for("verbs", 2);
        TtPlanSpec spec = { .n_ranks = 2,
                            .count = rows[i].slot_bytes < 100 ? 4000 : MOST_BYTES / 4,
                            .type = TT_FLOAT32,
                            .n_slots = rows[i].n_slots,
                            .slot_bytes = rows[i].slot_bytes };

        options.streams = rows[i].streams;
        options.checksum = TRUE;
        run_spec(&options, rows[i].algorithm, &spec);
    }
}

/* Two machines of two ranks: shared memory inside, the card across. */
static void
mixed_with_memory(void)
{
    TtTeamOptions options = options_for("shm,verbs", 4);
    TtPlanSpec spec = { .n_ranks = 4, .count = 5000, .type = TT_INT32, .slot_bytes = 4096 };

    options.ranks_per_host = 2;
    run_spec(&options, "ring", &spec);
    run_spec(&options, "tree", &spec);
}

/* Ranks of two and of four machines, on GPUs: messages shorter and longer than what a head holds, by GPUDirect (which in
 * there is memory of the CPU, registered by its address) and by the host's memory. */
static void
gpus(void)
{
    static const struct {
        guint ranks_per_host;
        TtGpuPlacement placement;
        guint64 count, slot_bytes;
        const char *algorithm, *words;
    } rows[] = {
        { 1, TT_GPU_PLACE_AUTO, 9001, 4096, "ring", "as with nvidia-peermem (memory of the CPU)" },
        { 1, TT_GPU_PLACE_AUTO, 7, 0, "tree", "as with nvidia-peermem (memory of the CPU)" },
        { 2, TT_GPU_PLACE_AUTO, 1 << 16, 0, "ring", "as with nvidia-peermem (memory of the CPU)" },
        { 2, TT_GPU_PLACE_HOST, 9001, 4096, "ring", "no (host memory: --placement host)" },
    };

    for (guint i = 0; tt_gpu_driver_find("host", NULL) && i < G_N_ELEMENTS(rows); i++) {
        TtTeamOptions options = options_for("cuda,verbs", 4);
        TtPlanSpec spec = { .n_ranks = 4,
                            .count = rows[i].count,
                            .type = TT_FLOAT32,
                            .n_slots = 2,
                            .slot_bytes = rows[i].slot_bytes };
        g_autoptr(GError) error = NULL;
        g_autoptr(TtPlan) plan = tt_plan_new(rows[i].algorithm, &spec, &error);
        g_autoptr(TtTeam) team = NULL;
        g_autofree char *text = NULL;

        options.gpus = "host";
        options.ranks_per_host = rows[i].ranks_per_host;
        options.gpu_placement = rows[i].placement;
        team = plan ? tt_team_start(&options, &error) : NULL;
        CHECK_NO_ERROR(error);
        if (!team)
            continue;
        text = tt_team_gpu_direct_text(team);
        CHECK(g_strcmp0(text, rows[i].words) == 0, "row %u: %s", i, text);
        run_on(team, plan, rows[i].algorithm);
        g_free(text);
        text = tt_team_gpu_direct_text(team);
        CHECK(g_strcmp0(text, rows[i].words) == 0, "row %u: %s", i, text);
    }
}

static void
refused(void)
{
    static const struct {
        const char *device;
        TtExecError code;
        const char *words;
    } rows[] = {
        { "mlx5_7", TT_EXEC_ERROR_USAGE, "no RDMA device \"mlx5_7\": this machine has rxe1" },
        { "rxe1:9", TT_EXEC_ERROR_USAGE, "rxe1: no port 9: ports are 1 to 1" },
        { "rxe1:x", TT_EXEC_ERROR_USAGE, "the port is a number from 1 to 255" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        TtTeamOptions options = options_for("verbs", 2);
        g_autoptr(GError) error = NULL;
        g_autoptr(TtPlan) plan = tt_plan_new(
            "ring", &(TtPlanSpec){ .n_ranks = 2, .count = 10, .type = TT_FLOAT32 }, NULL);
        g_autoptr(TtTeam) team = NULL;
        TtRunResult result = { 0 };

        options.device = rows[i].device;
        team = tt_team_start(&options, &error);
        if (team)
            tt_team_run(team, plan, &(TtRunOptions){ .iterations = 1 }, &result, &error);
        CHECK_ERROR(error, TT_EXEC_ERROR, rows[i].code, rows[i].words);
    }
}

/* Harm done to connections is found, or does none; the run ends well before the time-out and some. */
static void
harmed(void)
{
    static const struct {
        const char *fault;
        TtExecError code; /* TT_EXEC_ERROR_USAGE: none */
    } rows[] = {
        { "cut", TT_EXEC_ERROR_NETWORK },
        { "half-open", TT_EXEC_ERROR_NETWORK },
        { "kill", TT_EXEC_ERROR_DEAD },
        { "stranger", TT_EXEC_ERROR_USAGE },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        TtTeamOptions options = options_for("verbs", 3);
        TtRunOptions run = { .iterations = 8, .check = TRUE };
        TtRunResult result = { 0 };
        g_autoptr(GError) error = NULL;
        g_autoptr(TtPlan) plan = tt_plan_new(
            "ring", &(TtPlanSpec){ .n_ranks = 3, .count = 1000, .type = TT_FLOAT32 }, NULL);
        g_autoptr(TtTeam) team = NULL;

        options.timeout_s = 15;
        CHECK(tt_fault_parse(rows[i].fault, 3, &options.fault, &error), "%s", rows[i].fault);
        team = tt_team_start(&options, &error);
        CHECK_NO_ERROR(error);
        if (!team)
            continue;
        tt_team_run(team, plan, &run, &result, &error);
        if (rows[i].code == TT_EXEC_ERROR_USAGE)
            CHECK(!error && result.wrong == 0, "%s: %s", rows[i].fault,
                  error ? error->message : "wrong results");
        else /* of a deaf end, what is seen depends on which step it stopped in */
            CHECK(g_error_matches(error, TT_EXEC_ERROR, (gint)rows[i].code) ||
                      (strcmp(rows[i].fault, "half-open") == 0 &&
                       g_error_matches(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HANG)),
                  "%s: %s", rows[i].fault, error ? error->message : "no error");
        tt_run_result_clear(&result);
    }
}

static CU_TestInfo tests[] = { { "every algorithm on 2, 4 and 8 ranks", every_algorithm_is_right },
                               { "slots are used again and again", slots_lap },
                               { "mixed with shared memory", mixed_with_memory },
                               { "on GPUs", gpus },
                               { "what is not there is refused", refused },
                               { "connections are harmed", harmed },
                               CU_TEST_INFO_NULL };

int
main(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(TtVerbs) card =
        tt_verbs_open(&(TtVerbsOptions){ .device = "rxe2", .gid_index = -1 }, &error);

    if (!card) {
        printf("skipped: needs rxe1 and rxe2, as tests/labs/verbs-guest has them: %s\n",
               error->message);
        return SKIPPED;
    }
    g_clear_pointer(&card, tt_verbs_close);
    return check_main("verbs transport", tests);
}
