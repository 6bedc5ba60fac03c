/* Every algorithm on real ranks against the reference, and what a run reports. */
#include "algos/algo.h"
#include "algos/verify.h"
#include "exec/exec.h"
#include "exec/pattern.h"
#include "tests/check.h"

#include <string.h>

#define MOST_BYTES (65537 * 8)

static TtTeam *
start(const char *transport, guint n_ranks)
{
    TtTeamOptions options = {
        .n_ranks = n_ranks, .transport = transport, .max_bytes = MOST_BYTES, .timeout_s = 20
    };
    g_autoptr(GError) error = NULL;
    TtTeam *team = tt_team_start(&options, &error);

    CHECK_NO_ERROR(error);
    return team;
}

/* Teams by number of agents, started as needed. */
typedef struct {
    const char *transport;
    TtTeam *of[24];
} Teams;

static TtTeam *
team_of(Teams *teams, guint n_agents)
{
    g_assert(n_agents < G_N_ELEMENTS(teams->of));
    if (!teams->of[n_agents])
        teams->of[n_agents] = start(teams->transport, n_agents);
    return teams->of[n_agents];
}

static void
stop_all(Teams *teams)
{
    for (guint n = 0; n < G_N_ELEMENTS(teams->of); n++)
        g_clear_pointer(&teams->of[n], tt_team_stop);
}

/* FALSE if the plan cannot be: the algorithm refuses, or it does not verify this way. */
static gboolean
run_one(Teams *teams, const char *algorithm, const TtPlanSpec *spec, gboolean in_place)
{
    TtRunOptions options = { .warmup = 1, .iterations = 2, .in_place = in_place, .check = TRUE };
    TtRunResult result = { .wrong = -1 };
    g_autoptr(GError) error = NULL;
    g_autoptr(TtPlan) plan = tt_plan_new(algorithm, spec, NULL);

    if (!plan || !tt_verify(plan, in_place, NULL, NULL))
        return FALSE;
    tt_team_run(team_of(teams, tt_plan_n_agents(plan)), plan, &options, &result, &error);
    CHECK(error == NULL && result.wrong == 0,
          "%s %s, %u ranks, %lu x %s %s, %s, %u channels, %u slots of %lu: %ld wrong, %s",
          algorithm, tt_collective_name(spec->collective), spec->n_ranks, spec->count,
          tt_type_name(spec->type), tt_redop_name(spec->redop),
          in_place ? "in place" : "out of place", spec->n_channels, spec->n_slots, spec->slot_bytes,
          (long)result.wrong, error ? error->message : "no error");
    tt_run_result_clear(&result);
    return TRUE;
}

/* What varies besides algorithm, collective, ranks and count takes turns, each at its own pace. */
static TtPlanSpec
vary(guint n_ranks, guint collective, guint64 count, guint turn)
{
    static const guint64 slot_bytes[] = { 0, 256, 4096, 64, 0, 16384, 1000 };

    return (TtPlanSpec){
        .collective = collective,
        .n_ranks = n_ranks,
        .count = count,
        .type = turn % TT_N_TYPES,
        .redop = turn / 2 % TT_N_REDOPS,
        .root = turn % n_ranks,
        .n_channels = 1 + turn % 3,
        .n_slots = 1 + turn / 3 % 4,
        /* many rounds of little only where it is quick */
        .slot_bytes = count > 10000 ? MAX(4096, slot_bytes[turn % 7]) : slot_bytes[turn % 7],
        .group_size = n_ranks % 2 == 0 && turn / 5 % 2 ? n_ranks / 2 : 0,
    };
}

static void
run_all_algorithms(const char *transport, const guint *ranks, guint n, const guint64 *counts,
                   guint n_counts)
{
    guint turn = 0;

    for (guint p = 0; p < n; p++) {
        Teams teams = { transport, { NULL } };

        for (guint a = 0; tt_algos[a]; a++)
            for (guint collective = 0; collective < TT_N_COLLECTIVES; collective++) {
                guint ran = 0;

                if (!(tt_algos[a]->collectives & TT_BIT(collective)))
                    continue;
                for (guint c = p % check_every(4); c < n_counts; c += check_every(4))
                    for (guint in_place = 0; in_place < 2; in_place++) {
                        TtPlanSpec spec = vary(ranks[p], collective, counts[c], turn++);

                        ran += run_one(&teams, tt_algos[a]->name, &spec, in_place);
                    }
                CHECK(ran > 0 || check_every(4) > 1 ||
                          !g_strcmp0(tt_algos[a]->name, "hierarchical") || ranks[p] != 4,
                      "%s %s never ran", tt_algos[a]->name, tt_collective_name(collective));
            }
        stop_all(&teams);
    }
}

static void
every_algorithm_is_right(void)
{
    static const guint ranks[] = { 1, 2, 3, 4, 5, 8 };
    static const guint64 counts[] = { 0, 1, 2, 3, 17, 1000, 65537 };

    run_all_algorithms("shm", ranks, G_N_ELEMENTS(ranks), counts, G_N_ELEMENTS(counts));
}

/* The same code with threads for ranks, where a thread sanitizer sees both ends of a connection. */
static void
threads_are_ranks_too(void)
{
    static const guint ranks[] = { 2, 3, 4 };
    static const guint64 counts[] = { 1, 17, 3000 };

    run_all_algorithms("threads", ranks, G_N_ELEMENTS(ranks), counts, G_N_ELEMENTS(counts));
}

static void
every_type_and_reduction_is_right(void)
{
    static const guint ranks[] = { 2, 3 };

    for (guint p = 0; p < G_N_ELEMENTS(ranks); p++) {
        Teams teams = { "shm", { NULL } };

        for (guint type = 0; type < TT_N_TYPES; type++)
            for (guint redop = 0; redop < TT_N_REDOPS; redop++)
                for (guint in_place = 0; in_place < 2; in_place++) {
                    TtPlanSpec spec = { .n_ranks = ranks[p],
                                        .count = 5003,
                                        .type = type,
                                        .redop = redop,
                                        .slot_bytes = 2048 };

                    CHECK(run_one(&teams, "ring", &spec, in_place), "the ring verifies");
                }
        stop_all(&teams);
    }
}

/* Long messages between ranks that see each other's buffers are read, or written, where they belong
 * (algos/passing.h). One rank is late in every iteration: whoever overwrites what it has yet to read, or
 * averages it, shows. */
static void
late_readers_find_what_was_meant_for_them(void)
{
    static const char *const transports[] = { "shm", "threads" };
    static const guint64 slot_bytes[] = { 0, 16384, 40000 };
    TtTeamOptions options = { .max_bytes = MOST_BYTES, .timeout_s = 20 };
    guint turn = 0;

    options.fault = (TtFault){ .kind = TT_FAULT_DELAY, .time_s = 0.002 };
    for (guint t = 0; t < G_N_ELEMENTS(transports); t++)
        for (guint n = 2; n <= 4; n++) {
            Teams teams = { transports[t], { NULL } };
            g_autoptr(GError) error = NULL;

            options.transport = transports[t];
            options.fault.rank = n - 1;
            options.n_ranks = n;
            teams.of[n] = tt_team_start(&options, &error);
            CHECK_NO_ERROR(error);
            for (guint a = 0; tt_algos[a]; a++)
                for (guint collective = 0; collective < TT_N_COLLECTIVES; collective++)
                    for (guint in_place = 0; in_place < 2; in_place++, turn++) {
                        TtPlanSpec spec = { .collective = collective,
                                            .n_ranks = n,
                                            .count = 120003,
                                            .type = TT_FLOAT32,
                                            .redop = turn % 2 ? TT_AVG : TT_SUM,
                                            .root = turn / 2 % n,
                                            .n_channels = 1 + turn / 3 % 2,
                                            .n_slots = 1 + turn / 4 % 3,
                                            .slot_bytes = slot_bytes[turn % 3] };

                        if (tt_algos[a]->collectives & TT_BIT(collective))
                            run_one(&teams, tt_algos[a]->name, &spec, in_place);
                    }
            stop_all(&teams);
        }
}

/* Wrong data must be counted: the check is worth nothing if it cannot fail. A ring whose last hop is
 * left out delivers P - 1 of P chunks. */
static void
wrong_data_is_counted(void)
{
    TtPlanSpec spec = { .n_ranks = 2, .count = 1000, .type = TT_INT32, .collective = TT_ALLGATHER };
    g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);
    gint32 data[1000];
    TtRange all = { 0, 1000 };

    for (guint rank = 0; rank < 2; rank++) {
        TtRange part = tt_plan_buffer_range(plan, rank, TT_INPUT);

        tt_pattern_fill(plan, 0, rank, part, data + part.first);
    }
    CU_ASSERT_EQUAL(tt_pattern_count_wrong(plan, 0, all, data), 0);
    data[3] ^= 1;
    data[999] ^= 1;
    CU_ASSERT_EQUAL(tt_pattern_count_wrong(plan, 0, all, data), 2);
    tt_pattern_fill(plan, 0, 1, (TtRange){ 0, 500 },
                    data); /* the wrong rank's: about 1 in 256 agree */
    CU_ASSERT(tt_pattern_count_wrong(plan, 0, all, data) > 450);
    tt_pattern_fill(plan, 0, 0, (TtRange){ 0, 500 }, data);
    CU_ASSERT(tt_pattern_count_wrong(plan, 1, all, data) > 950); /* another collective's */
}

static void
a_run_is_recorded(void)
{
    TtPlanSpec spec = { .n_ranks = 3, .count = 30000, .type = TT_FLOAT32, .slot_bytes = 8192 };
    TtRunOptions options = { .iterations = 3, .repeats = 3, .record = TRUE };
    g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);
    g_autoptr(TtTeam) team = start("shm", 3);
    g_autoptr(GError) error = NULL;
    TtRunResult result = { 0 };
    guint64 sent = 0;
    gint64 first = G_MAXINT64;

    CU_ASSERT(tt_team_run(team, plan, &options, &result, &error));
    CHECK_NO_ERROR(error);
    CU_ASSERT_EQUAL(result.wrong, -1);
    CHECK(result.time_s > 0 && result.min_s <= result.time_s && result.time_s <= result.max_s,
          "times");
    CHECK(result.flag_s > 1e-9 && result.flag_s < 0.1, "flag latency %g s", result.flag_s);
    /* 5 steps per rank and round; 40000 bytes per chunk in rounds of at most 8192: 5 rounds */
    CU_ASSERT_EQUAL(plan->n_rounds, 5);
    CU_ASSERT_EQUAL(result.timeline->events->len, 3 * 5 * 5);
    for (guint i = 0; i < result.timeline->events->len; i++) {
        const TtEvent *e = &g_array_index(result.timeline->events, TtEvent, i);

        first = MIN(first, e->begin_ps);
        sent += tt_op_sends(e->op) ? e->bytes : 0;
        CHECK(e->begin_ps <= e->end_ps && e->wait_ps <= e->end_ps - e->begin_ps, "event %u", i);
        CHECK((e->wait_ps > 0) == (e->wait_for != TT_NO_RANK), "event %u waits for %u", i,
              e->wait_for);
        CHECK(e->send_peer == (tt_op_sends(e->op) ? (e->rank + 1) % 3 : TT_NO_RANK), "event %u", i);
    }
    CU_ASSERT_EQUAL(first, 0);
    CU_ASSERT_EQUAL(sent, 3 * 4 * 40000); /* 2(P-1) chunks leave each rank */
    tt_run_result_clear(&result);
}

static void
iterations_are_told_apart(void)
{
    static const char *const transports[] = { "shm", "threads", "tcp" };
    TtPlanSpec spec = { .n_ranks = 3, .count = 3000, .type = TT_FLOAT32 };
    TtRunOptions options = {
        .iterations = 7, .repeats = 3, .stamps = TRUE, .arrivals = TRUE, .check = TRUE
    };
    g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);

    for (guint i = 0; i < G_N_ELEMENTS(transports); i++) {
        g_autoptr(TtTeam) team = start(transports[i], 3);
        g_autoptr(GError) error = NULL;
        TtRunResult result = { 0 };
        const TtIterationTimes *t = &result.iterations;

        tt_team_run(team, plan, &options, &result, &error);
        CHECK_NO_ERROR(error);
        CHECK(t->n == 21 && result.wrong == 0, "%s: %lu", transports[i], t->n);
        CHECK(
            t->min_s > 0 && t->min_s <= t->p50_s && t->p50_s <= t->p95_s && t->p95_s <= t->p99_s &&
                t->p99_s <= t->max_s && t->min_s <= t->mean_s && t->mean_s <= t->max_s,
            "%s: %g %g %g %g %g", transports[i], t->min_s, t->p50_s, t->p95_s, t->p99_s, t->max_s);
        CHECK(result.arrivals && result.arrivals->len == 3, "%s: arrivals", transports[i]);
        for (guint r = 0; result.arrivals && r < 3; r++) {
            const TtArrival *a = &g_array_index(result.arrivals, TtArrival, r);

            CHECK(a->rank == r && a->after_s >= 0 && a->after_s <= a->most_after_s &&
                      a->n_late <= 21,
                  "%s: rank %u", transports[i], r);
        }
        tt_run_result_clear(&result);
    }
}

static void
bad_requests_are_named(void)
{
    static const struct {
        const char *name;
        TtTeamOptions options;
        const char *words;
    } rows[] = {
        { "no ranks", { .n_ranks = 0, .max_bytes = 8 }, "number of ranks" },
        { "unknown transport", { .n_ranks = 2, .transport = "pigeon", .max_bytes = 8 }, "pigeon" },
    };
    TtTeamOptions huge = { .n_ranks = 4, .max_bytes = G_GUINT64_CONSTANT(1) << 60 };
    TtPlanSpec large = { .n_ranks = 2, .count = MOST_BYTES, .type = TT_FLOAT64 },
               other = { .n_ranks = 3, .count = 1 };
    TtRunOptions once = { .iterations = 1 }, never = { 0 };
    g_autoptr(TtPlan) too_large = tt_plan_new("ring", &large, NULL);
    g_autoptr(TtPlan) too_many = tt_plan_new("ring", &other, NULL);
    g_autoptr(TtTeam) team = start("shm", 2);
    g_autoptr(GError) error = NULL;
    TtRunResult result;

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        CHECK_ROW(&rows[r], tt_team_start(&rows[r].options, &error) == NULL);
        CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE, rows[r].words);
    }
    CU_ASSERT_PTR_NULL(tt_team_start(&huge, &error));
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM, "memory");
    CU_ASSERT_FALSE(tt_team_run(team, too_large, &once, &result, &error));
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE, "started for");
    CU_ASSERT_FALSE(tt_team_run(team, too_many, &once, &result, &error));
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE, "team of 2");
    too_many->spec.n_ranks = 2; /* only the iterations are wrong now */
    CU_ASSERT_FALSE(tt_team_run(team, too_many, &never, &result, &error));
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE, "iterations");
}

int
main(void)
{
    CU_TestInfo tests[] = {
        { "threads are ranks too", threads_are_ranks_too },
        { "every algorithm is right", every_algorithm_is_right },
        { "every type and reduction is right", every_type_and_reduction_is_right },
        { "late readers find what was meant for them", late_readers_find_what_was_meant_for_them },
        { "wrong data is counted", wrong_data_is_counted },
        { "a run is recorded", a_run_is_recorded },
        { "iterations are told apart", iterations_are_told_apart },
        { "bad requests are named", bad_requests_are_named },
        CU_TEST_INFO_NULL
    };

    return check_main("exec", tests);
}
