/* Plans over TCP on this machine: the same data as over shared memory, whatever the shape; sockets are kept from job
 * to job; strangers and cut connections. */
#include "algos/algo.h"
#include "algos/verify.h"
#include "exec/exec.h"
#include "tests/check.h"

#include <string.h>

#define MOST_BYTES (65537 * 8)

static TtTeam *
start(TtTeamOptions options, guint n_ranks)
{
    g_autoptr(GError) error = NULL;
    TtTeam *team;

    options.n_ranks = n_ranks;
    options.max_bytes = MOST_BYTES;
    options.timeout_s = options.timeout_s > 0 ? options.timeout_s : 20;
    team = tt_team_start(&options, &error);
    CHECK_NO_ERROR(error);
    return team;
}

/* FALSE if the algorithm refuses, needs switches, or does not verify so. */
static gboolean
run_one(TtTeam *team, const char *algorithm, const TtPlanSpec *spec, gboolean in_place)
{
    TtRunOptions options = { .warmup = 1, .iterations = 2, .in_place = in_place, .check = TRUE };
    TtRunResult result = { .wrong = -1 };
    g_autoptr(GError) error = NULL;
    g_autoptr(TtPlan) plan = tt_plan_new(algorithm, spec, NULL);

    if (!plan || plan->n_switches > 0 || !tt_verify(plan, in_place, NULL, NULL))
        return FALSE;
    CHECK(tt_team_run(team, plan, &options, &result, &error) && result.wrong == 0,
          "%s %s, %u ranks, %lu elements, %s, %u channels, %u slots of %lu: %ld wrong, %s",
          algorithm, tt_collective_name(spec->collective), spec->n_ranks, spec->count,
          in_place ? "in place" : "out of place", spec->n_channels, spec->n_slots, spec->slot_bytes,
          (long)result.wrong, error ? error->message : "no error");
    tt_run_result_clear(&result);
    return TRUE;
}

/* One team runs all of them in turn, on the same sockets. */
static void
run_all(TtTeamOptions options, guint n_ranks, const guint64 *counts, guint n_counts)
{
    static const guint64 slot_bytes[] = { 0, 1024, 4096, 16384 };
    g_autoptr(TtTeam) team = start(options, n_ranks);
    guint turn = 0, ran = 0;

    for (guint a = 0; tt_algos[a]; a++)
        for (guint collective = 0; collective < TT_N_COLLECTIVES; collective++)
            for (guint c = 0; c < n_counts && (tt_algos[a]->collectives & TT_BIT(collective));
                 c++) {
                guint64 slot = slot_bytes[turn % G_N_ELEMENTS(slot_bytes)];
                TtPlanSpec spec = { .collective = collective,
                                    .n_ranks = n_ranks,
                                    .count = counts[c],
                                    .type = turn % TT_N_TYPES,
                                    .redop = turn / 2 % TT_N_REDOPS,
                                    .n_channels = 1 + turn % 3,
                                    .n_slots = 1 + turn / 3 % 4,
                                    .slot_bytes = counts[c] > 10000 ? 4 * slot : slot };

                ran += run_one(team, tt_algos[a]->name, &spec, turn++ % 2);
            }
    CHECK(ran > 40, "only %u plans ran", ran);
}

static void
every_algorithm_is_right(void)
{
    static const guint64 counts[] = { 0, 17, 3000 };
    static const guint ranks[] = { 2, 3, 5, 8 };

    for (guint i = 0; i < G_N_ELEMENTS(ranks); i++)
        run_all((TtTeamOptions){ .transport = i % 2 ? "threads,tcp" : "tcp" }, ranks[i], counts,
                G_N_ELEMENTS(counts));
}

static void
shapes_of_the_network_do_not_matter(void)
{
    static const guint64 counts[] = { 1, 65537 };
    static const TtTeamOptions shapes[] = {
        { .transport = "threads,tcp", .streams = 3 },
        { .transport = "tcp", .checksum = TRUE },
        { .transport = "threads,shm,tcp", .ranks_per_host = 2 },
        { .transport = "tcp", .interface = "127.0.0.1", .streams = 2 },
    };

    for (guint i = 0; i < G_N_ELEMENTS(shapes); i++)
        run_all(shapes[i], 4, counts, G_N_ELEMENTS(counts));
}

/* What goes wrong between two ranks is told by class, and names one of them. */
static void
broken_connections_are_told(void)
{
    static const struct {
        const char *fault;
        gint code; /* 0: nothing happens */
    } rows[] = {
        { "cut:rank=1,peer=2", TT_EXEC_ERROR_NETWORK },
        { "half-open:rank=1,peer=2", TT_EXEC_ERROR_NETWORK },
        { "stranger:rank=1,peer=0", 0 },
        { "kill:rank=2", TT_EXEC_ERROR_DEAD },
        { "mismatch:rank=2", TT_EXEC_ERROR_MISMATCH },
        { "corrupt:rank=1,peer=2", TT_EXEC_ERROR_CORRUPT },
    };
    TtPlanSpec spec = { .n_ranks = 3, .count = 3000, .type = TT_FLOAT32 };
    g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        TtTeamOptions options = { .transport = "tcp", .timeout_s = 1, .checksum = TRUE };
        TtRunOptions run = { .iterations = 50 };
        TtRunResult result = { 0 };
        g_autoptr(GError) error = NULL;
        g_autoptr(TtTeam) team = NULL;
        gboolean good;

        CU_ASSERT_TRUE(tt_fault_parse(rows[i].fault, 3, &options.fault, NULL));
        team = start(options, 3);
        good = tt_team_run(team, plan, &run, &result, &error) &&
               tt_team_run(team, plan, &run, &result, &error); /* a stranger meets the second job */
        CHECK(good == (rows[i].code == 0) && (good || error->code == rows[i].code), "%s: %s",
              rows[i].fault, error ? error->message : "no error");
        CHECK(good || strstr(error->message, "rank 1") || strstr(error->message, "rank 2"),
              "%s: %s", rows[i].fault, error->message);
    }
}

static void
bad_interfaces_are_named(void)
{
    TtTeamOptions options = {
        .n_ranks = 2, .transport = "tcp", .interface = "nosuch0", .max_bytes = 8
    };
    g_autoptr(GError) error = NULL;
    g_autoptr(TtTeam) team = tt_team_start(&options, &error);

    CHECK(!team && strstr(error->message, "nosuch0") && strstr(error->message, "interfaces up: "),
          "%s", error ? error->message : "no error");
}

int
main(void)
{
    CU_TestInfo tests[] = {
        { "every algorithm is right", every_algorithm_is_right },
        { "shapes of the network do not matter", shapes_of_the_network_do_not_matter },
        { "broken connections are told", broken_connections_are_told },
        { "bad interfaces are named", bad_interfaces_are_named },
        CU_TEST_INFO_NULL,
    };

    return check_main("tcp", tests);
}
