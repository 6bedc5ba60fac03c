/* The flow level against arithmetic: closed forms where no link is shared, fair shares where one
 * is. */
#include "algos/algo.h"
#include "tests/hand_plan.h"

/* --- no link shared ----------------------------------------------------------------------------
 */

/* 2(P-1) messages one after the other, each one latency and one transfer, to the picosecond. */
static void
ring_equals_its_closed_form(void)
{
    static const guint ranks[] = { 1, 2, 3, 4, 5, 7, 8, 16, 33, 64 };
    static const struct {
        const char *name;
        TtCollective collective;
        guint laps;
    } rows[] = {
        { "allreduce", TT_ALLREDUCE, 2 },
        { "reduce-scatter", TT_REDUCE_SCATTER, 1 },
        { "allgather", TT_ALLGATHER, 1 },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        for (guint i = 0; i < G_N_ELEMENTS(ranks); i++) {
            guint P = ranks[i];
            guint64 chunk = 12345; /* 37e9 does not divide it: rounding counts */
            HandWires wires = { .n_ranks = P, .rank_bytes_per_s = 37e9, .latency_ps = 345678 };
            TtPlanSpec spec = { .collective = rows[r].collective,
                                .n_ranks = P,
                                .count = P * chunk,
                                .type = TT_FLOAT32 };
            g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);
            TtTime message_ps = 2 * 345678 + tt_transfer_ps(4 * chunk, 37e9);
            TtTime want_ps = (TtTime)(rows[r].laps * (P - 1)) * message_ps;
            TtTime got_ps = hand_run(plan, wires, NULL);

            CHECK(got_ps == want_ps, "%s, %u ranks: %ld, not %ld", rows[r].name, P, (long)got_ps,
                  (long)want_ps);
        }
    }
}

/* A chain: the first slice makes P-1 hops, the others follow one message time apart. With one slot
 * that is latency + transfer (the next slice waits until this one is read), with two only the
 * transfer, as long as that is the longer part. */
static void
chain_is_pipelined_by_slots(void)
{
    for (guint P = 2; P <= 9; P++) {
        for (guint slots = 1; slots <= 3; slots++) {
            HandWires wires = { .n_ranks = P, .rank_bytes_per_s = 10e9, .latency_ps = 1 * US };
            TtPlanSpec spec = { .collective = TT_BROADCAST,
                                .n_ranks = P,
                                .count = 5 * MB,
                                .n_slots = slots,
                                .slot_bytes = MB,
                                .type = TT_INT8,
                                .root = P / 2 };
            g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);
            TtTime hop_ps = 2 * US + 100 * US; /* 1 MB at 10 GB/s */
            TtTime follow_ps = slots == 1 ? hop_ps : 100 * US;

            CU_ASSERT_EQUAL(plan->n_rounds, 5);
            CHECK(hand_run(plan, wires, NULL) == (P - 1) * hop_ps + 4 * follow_ps,
                  "%u ranks, %u slots", P, slots);
        }
    }
}

/* Whatever the registry holds: a new algorithm is tested unasked. Rounding may move every step by a
 * picosecond. 12252240 = 2^4 * 3^2 * 5 * 7 * 11 * 13 * 17: any number of ranks divides it. */
static void
closed_forms_hold_for_every_algorithm(void)
{
    guint n_compared = 0;

    for (guint a = 0; tt_algos[a]; a++) {
        for (guint c = 0; c < TT_N_COLLECTIVES; c++) {
            for (guint P = 1; P <= 17; P++) {
                HandWires wires = { .n_ranks = P, .rank_bytes_per_s = 25e9, .latency_ps = 3 * US };
                TtPlanSpec spec = {
                    .collective = c, .n_ranks = P, .count = 12252240, .type = TT_FLOAT32
                };
                g_autoptr(TtPlan) plan = tt_plan_new(tt_algos[a]->name, &spec, NULL);
                double form_s = NAN;
                TtTime got_ps, want_ps;

                if (plan && tt_algos[a]->time_s)
                    form_s = tt_algos[a]->time_s(plan, 6e-6, 1 / 25e9);
                if (isnan(form_s)) /* none known for this shape */
                    continue;
                want_ps = tt_seconds_to_ps(form_s);
                got_ps = hand_run(plan, wires, NULL);
                CHECK(ABS(got_ps - want_ps) <= 4 * P, "%s %s, %u ranks: %ld ps, closed form %ld ps",
                      plan->name, tt_collective_name(c), P, (long)got_ps, (long)want_ps);
                n_compared++;
            }
        }
    }
    CU_ASSERT(n_compared >= 5 * 17);
}

static void
nothing_takes_no_time(void)
{
    static const struct {
        const char *name;
        guint n_ranks;
        guint64 count;
        TtTime hops;
    } rows[] = {
        { "no elements", 8, 0, 0 },
        { "one rank", 1, 1000, 0 },
        /* chunk 7 holds the one element; in an empty step nobody waits. It goes round twice but for
         * one hop: 7 hops reducing, 7 gathering */
        { "one element, most chunks empty", 8, 1, 14 },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        HandWires wires = { .n_ranks = rows[r].n_ranks,
                            .rank_bytes_per_s = 1e9,
                            .latency_ps = 500 };
        TtPlanSpec spec = { .n_ranks = rows[r].n_ranks, .count = rows[r].count, .type = TT_INT8 };
        g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);

        /* 2 x 500 ps of latency, 1 byte at 1 GB/s = 1000 ps */
        CHECK_ROW(&rows[r], hand_run(plan, wires, NULL) == rows[r].hops * (1000 + 1000));
    }
}

/* --- shared links ------------------------------------------------------------------------------
 */

static const TtEvent *
find_event(const TtSimResult *result, guint rank, guint lane, guint step)
{
    for (guint i = 0; i < result->timeline->events->len; i++) {
        const TtEvent *e = &g_array_index(result->timeline->events, TtEvent, i);

        if (e->rank == rank && e->lane == lane && e->step == step)
            return e;
    }
    CU_FAIL_FATAL("no such event");
    return NULL;
}

/* A bus of 10 GB/s: 1 MB and 3 MB at 5 GB/s each, until 200 us; then 2 MB at 10 GB/s: 400 us. */
static void
one_of_two_flows_leaves(void)
{
    HandPlan hand = hand_plan(4, 1, 3, MB);
    HandWires wires = { .shape = HAND_BUS,
                        .n_ranks = 4,
                        .rank_bytes_per_s = 10e9,
                        .latency_ps = 7 * US,
                        .unbounded = TRUE };
    TtSimOptions options = { .level = TT_LEVEL_FLOW, .record = TRUE };
    g_autoptr(TtPlan) plan = NULL;
    TtSimResult result;

    hand_message(&hand, 0, 1, 0, 1);
    hand_message(&hand, 2, 3, 0, 3);
    plan = hand_plan_done(&hand);
    result = hand_run_with(plan, wires, &options);
    CU_ASSERT_EQUAL(find_event(&result, 1, 0, 0)->end_ps, 207 * US);
    CU_ASSERT_EQUAL(find_event(&result, 3, 0, 0)->end_ps, 407 * US);
    CU_ASSERT_EQUAL(result.time_ps, 407 * US);
    CU_ASSERT_EQUAL(result.n_messages, 2);
    tt_sim_result_clear(&result);
}

/* The same bus. 0 -> 1: 4 MB; 2 -> 3: 1 MB and an answer of 1 MB.
 *
 *       0 .. 200 us   both at 5 GB/s; 3 MB left of the long one
 *     200 .. 210 us   latency: the long one alone, 100 KB; 2.9 MB left
 *     210 .. 410 us   with the answer, 5 GB/s: 1.9 MB left
 *     410 .. 600 us   alone */
static void
a_flow_joins_midway(void)
{
    HandPlan hand = hand_plan(4, 1, 4, MB);
    HandWires wires = { .shape = HAND_BUS,
                        .n_ranks = 4,
                        .rank_bytes_per_s = 10e9,
                        .latency_ps = 10 * US,
                        .unbounded = TRUE };
    TtSimOptions options = { .level = TT_LEVEL_FLOW, .record = TRUE };
    g_autoptr(TtPlan) plan = NULL;
    TtSimResult result;

    hand_message(&hand, 0, 1, 0, 4);
    hand_message(&hand, 2, 3, 0, 1);
    hand_message(&hand, 3, 2, 0, 1);
    plan = hand_plan_done(&hand);
    result = hand_run_with(plan, wires, &options);
    CU_ASSERT_EQUAL(find_event(&result, 2, 0, 1)->end_ps, 420 * US);
    CU_ASSERT_EQUAL(find_event(&result, 1, 0, 0)->end_ps, 610 * US);
    tt_sim_result_clear(&result);
}

/* Line 0 - 1 - 2 of 10 GB/s; 0 -> 2 crosses both links, 0 -> 1 and 1 -> 2 one each. 5, 5 and 5
 * GB/s: the first and third carry 1 MB until 200 us. 0 -> 1 carries 3 MB: 1 MB by then, the rest
 * alone, 400 us. */
static void
a_long_flow_meets_two_short_ones(void)
{
    HandPlan hand = hand_plan(3, 2, 3, MB);
    HandWires wires = { .shape = HAND_LINE,
                        .n_ranks = 3,
                        .rank_bytes_per_s = 10e9,
                        .latency_ps = US,
                        .unbounded = TRUE };
    TtSimOptions options = { .level = TT_LEVEL_FLOW, .record = TRUE };
    g_autoptr(TtPlan) plan = NULL;
    TtSimResult result;

    hand_message(&hand, 0, 2, 0, 1);
    hand_message(&hand, 0, 1, 1, 3);
    hand_message(&hand, 1, 2, 1, 1);
    plan = hand_plan_done(&hand);
    result = hand_run_with(plan, wires, &options);
    CU_ASSERT_EQUAL(find_event(&result, 2, 0, 0)->end_ps, 202 * US); /* two hops */
    CU_ASSERT_EQUAL(find_event(&result, 1, 1, 0)->end_ps, 401 * US);
    tt_sim_result_clear(&result);
}

/* P messages at once on one bus: each gets a P-th, 2(P-1) times. */
static void
ring_folded_onto_a_bus(void)
{
    for (guint P = 2; P <= 8; P++) {
        HandWires wires = {
            .shape = HAND_BUS, .n_ranks = P, .rank_bytes_per_s = 10e9, .latency_ps = US
        };
        TtPlanSpec spec = { .n_ranks = P, .count = P * MB, .type = TT_INT8 };
        g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);

        CHECK(ABS(hand_run(plan, wires, NULL) - 2 * (P - 1) * (US + P * 100 * US)) <= 2 * P,
              "%u ranks", P);
    }
}

/* Nodes of 4 ranks whose NIC is twice a rank's link, ring over all: only one flow leaves a node, so
 * nothing is shared, though routes are longer: the step takes the longest route's latency. */
static void
one_flow_a_node_shares_nothing(void)
{
    HandWires wires = { .shape = HAND_TWO_LEVEL,
                        .n_ranks = 12,
                        .per_node = 4,
                        .rank_bytes_per_s = 10e9,
                        .node_bytes_per_s = 20e9,
                        .latency_ps = 0 };
    TtPlanSpec spec = { .n_ranks = 12, .count = 12 * MB, .type = TT_INT8 };
    g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);

    CU_ASSERT_EQUAL(hand_run(plan, wires, NULL), 22 * 100 * US);
}

/* Flows alone take a short cut past the solver. A backplane too wide to matter forces all of them
 * through it: the same times, but for a picosecond of rounding a step. */
static void
solver_agrees_with_the_short_cut(void)
{
    for (guint a = 0; tt_algos[a]; a++) {
        for (guint P = 2; P <= 12; P += 5) {
            HandWires apart = { .n_ranks = P, .rank_bytes_per_s = 25e9, .latency_ps = 1 * US };
            HandWires joined = { .shape = HAND_BACKPLANE,
                                 .n_ranks = P,
                                 .rank_bytes_per_s = 25e9,
                                 .node_bytes_per_s = 1e18,
                                 .latency_ps = 1 * US };
            TtPlanSpec spec = {
                .n_ranks = P, .count = 1000003, .type = TT_FLOAT32, .slot_bytes = 100000
            };
            g_autoptr(TtPlan) plan = tt_plan_new(tt_algos[a]->name, &spec, NULL);
            TtTime apart_ps, joined_ps;

            if (!plan || plan->n_switches > 0) /* the way to a switch does not grow */
                continue;
            joined_ps = hand_run(plan, joined, NULL);
            apart.latency_ps = 1500 * NS; /* two links as slow as three */
            apart_ps = hand_run(plan, apart, NULL);
            CHECK(ABS(joined_ps - apart_ps) <= 1000,
                  "%s, %u ranks: %ld alone, %ld through the solver", plan->name, P, (long)apart_ps,
                  (long)joined_ps);
        }
    }
}

int
main(void)
{
    CU_TestInfo tests[] = {
        { "ring equals its closed form", ring_equals_its_closed_form },
        { "chain is pipelined by slots", chain_is_pipelined_by_slots },
        { "closed forms hold for every algorithm", closed_forms_hold_for_every_algorithm },
        { "nothing takes no time", nothing_takes_no_time },
        { "one of two flows leaves", one_of_two_flows_leaves },
        { "a flow joins midway", a_flow_joins_midway },
        { "a long flow meets two short ones", a_long_flow_meets_two_short_ones },
        { "ring folded onto a bus", ring_folded_onto_a_bus },
        { "one flow a node shares nothing", one_flow_a_node_shares_nothing },
        { "solver agrees with the short cut", solver_agrees_with_the_short_cut },
        CU_TEST_INFO_NULL
    };

    return check_main("sim", tests);
}
