/* Folded and leapt runs against whole ones: the same picosecond, the same messages, the same bottleneck. */
#include "algos/algo.h"
#include "tests/hand_plan.h"

#include <math.h>

typedef struct {
    TtSimResult folded, whole;
} Pair;

static void
pair_clear(Pair *pair)
{
    tt_sim_result_clear(&pair->folded);
    tt_sim_result_clear(&pair->whole);
}

static Pair
run_both(const TtPlan *plan, const TtNetwork *net, TtSimOptions options)
{
    g_autoptr(GError) error = NULL;
    Pair pair = { .folded = { .time_ps = -1 } };

    options.level = TT_LEVEL_FLOW;
    tt_sim_run_on(plan, net, &options, &pair.folded, &error);
    CHECK_NO_ERROR(error);
    options.whole = TRUE;
    tt_sim_run_on(plan, net, &options, &pair.whole, &error);
    CHECK_NO_ERROR(error);
    CU_ASSERT_EQUAL(pair.whole.folded_ranks, 0);
    CU_ASSERT_EQUAL(pair.whole.leapt_rounds, 0);
    return pair;
}

static gboolean
check_same(const Pair *pair, const char *what)
{
    const TtSimResult *a = &pair->folded, *b = &pair->whole;
    double differ = fabs((double)(a->time_ps - b->time_ps)) / (double)MAX(1, b->time_ps);

    CHECK(a->leap_error > 0 ? differ <= a->leap_error : a->time_ps == b->time_ps,
          "%s: %ld folded, %ld whole (error stated %g)", what, (long)a->time_ps, (long)b->time_ps,
          a->leap_error);
    if (a->leap_error == 0) {
        CHECK(a->n_messages == b->n_messages, "%s: %lu messages folded, %lu whole", what,
              (gulong)a->n_messages, (gulong)b->n_messages);
        CHECK(g_strcmp0(a->bottleneck, b->bottleneck) == 0, "%s: \"%s\" folded, \"%s\" whole", what,
              a->bottleneck, b->bottleneck);
    }
    return a->time_ps == b->time_ps;
}

/* A GPU library's costs, none zero. */
static TtProfile *
busy_profile(void)
{
    TtProfile *profile = tt_profile_ideal();

    hand_costs(profile, 0.7e-6, 3e-12);
    profile->start_s = 5e-6;
    profile->credit_s = 0.3e-6;
    profile->hop_latency_s[TT_HOP_LOCAL] = 0.4e-6;
    profile->hop_latency_s[TT_HOP_NVLINK] = 0.9e-6;
    profile->hop_latency_s[TT_HOP_NET] = 4e-6;
    profile->hop_bytes_per_s[TT_HOP_NVLINK] = 20e9;
    profile->hop_bytes_per_s[TT_HOP_NET] = 11e9;
    profile->hop_gap_s[TT_HOP_NET] = 1e-6;
    profile->wire_factor = 16.0 / 15;
    return profile;
}

/* --- the table: every algorithm, a few shapes --------------------------------------------------
 */

static void
every_algorithm_folds_exactly(void)
{
    static const struct {
        const char *topo;
        guint n_channels, iterations;
        guint64 slot_bytes;
    } rows[] = {
        { "dgx-h100:1", 4, 1, 0 },        { "dgx-h100:2", 1, 1, 0 },
        { "dgx-h100:2", 3, 2, 0 },        { "dgx-h100:3", 2, 1, 1 << 14 },
        { "dgx-h100:4", 4, 1, 1 << 13 },  { "dgx-h100:5", 1, 1, 1 << 14 },
        { "dgx-h100:6", 2, 2, 1 << 14 },  { "dgx-a100:4", 2, 1, 1 << 14 },
        { "dgx1-v100:2", 2, 1, 1 << 14 }, { "hosts:12", 2, 1, 1 << 14 },
    };
    guint n_folded = 0, n_leapt = 0, n_exact = 0, n_runs = 0;

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        g_autoptr(TtTopology) topo = tt_topology_open(rows[r].topo, NULL, NULL);
        TtNetwork net = tt_network_of_topology(topo);
        g_autoptr(TtProfile) busy = busy_profile();

        for (guint a = 0; tt_algos[a]; a++) {
            TtPlanSpec spec = { .n_ranks = net.n_ranks,
                                .count = (guint64)net.n_ranks * 4 * 1024,
                                .type = TT_FLOAT32,
                                .n_channels = rows[r].n_channels,
                                .n_slots = 4,
                                .slot_bytes = rows[r].slot_bytes,
                                .group_size = net.ranks_per_node };
            g_autoptr(TtPlan) plan = tt_plan_new(tt_algos[a]->name, &spec, NULL);
            g_autoptr(GError) error = NULL;
            TtSimResult probe = { 0 };
            TtSimOptions bound = { .level = TT_LEVEL_FLOW };

            if (!plan || !tt_sim_run_on(plan, &net, &bound, &probe, NULL)) /* no switch there */
                continue;
            tt_sim_result_clear(&probe);
            for (guint p = 0; p < 2; p++) {
                Pair pair = run_both(
                    plan, &net,
                    (TtSimOptions){ .profile = p ? busy : NULL, .iterations = rows[r].iterations });
                g_autofree char *what =
                    g_strdup_printf("%s on %s, %u channels%s", plan->name, rows[r].topo,
                                    rows[r].n_channels, p ? ", busy" : "");

                n_exact += check_same(&pair, what);
                n_folded += pair.folded.folded_ranks > 0;
                n_leapt += pair.folded.leapt_rounds > 0;
                n_runs++;
                pair_clear(&pair);
            }
        }
    }
    CHECK(n_runs > 150 && n_folded > n_runs / 4 && n_leapt > n_runs / 10,
          "%u runs, %u folded, %u leapt", n_runs, n_folded, n_leapt);
    CHECK(n_exact > n_runs * 9 / 10, "%u of %u to the picosecond", n_exact, n_runs);
}

/* --- how far ----------------------------------------------------------------------------------
 */

/* A ring through nodes of one kind is one node; with a channel for every rank, one rank. */
static void
rings_fold_to_one_node(void)
{
    for (guint M = 2; M <= 6; M++) {
        for (guint C = 1; C <= 4; C *= 4) {
            HandWires wires = { .shape = HAND_TWO_LEVEL,
                                .n_ranks = 4 * M,
                                .per_node = 4,
                                .rank_bytes_per_s = 100e9,
                                .node_bytes_per_s = 30e9,
                                .latency_ps = 700 * NS };
            TtNetwork net = hand_network(&wires);
            TtPlanSpec spec = { .n_ranks = 4 * M,
                                .count = 4 * M * 4 * 1600,
                                .n_channels = C,
                                .group_size = 4,
                                .type = TT_FLOAT32 };
            g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);
            Pair pair = run_both(plan, &net, (TtSimOptions){ 0 });
            g_autofree char *what = g_strdup_printf("%u nodes, %u channels", M, C);

            check_same(&pair, what);
            CHECK(pair.folded.folded_ranks == 4 * M - (C == 1 ? 4 : 1), "%s: %u folded", what,
                  pair.folded.folded_ranks);
            pair_clear(&pair);
        }
    }
}

/* What would depend on who comes first is not folded; nor what is not alike. */
static void
folding_is_refused(void)
{
    static const struct {
        const char *name;
        guint workers, cores;
        gboolean record;
        guint64 count;
    } rows[] = {
        { "workers are queued for", 1, 0, FALSE, 8 * 160 },
        { "cores are queued for", 0, 2, FALSE, 8 * 160 },
        { "every step is recorded", 0, 0, TRUE, 8 * 160 },
        { "chunks differ", 0, 0, FALSE, 8 * 160 + 3 },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        HandWires wires = { .n_ranks = 8, .rank_bytes_per_s = 10e9, .latency_ps = NS };
        TtNetwork net = hand_network(&wires);
        TtPlanSpec spec = {
            .n_ranks = 8, .count = rows[r].count, .n_channels = 2, .type = TT_FLOAT32
        };
        g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);
        g_autoptr(TtProfile) profile = tt_profile_ideal();
        Pair pair;

        hand_costs(profile, 1e-6, 0);
        profile->workers_per_rank = rows[r].workers;
        profile->cores = rows[r].cores;
        pair = run_both(plan, &net, (TtSimOptions){ .profile = profile, .record = rows[r].record });
        check_same(&pair, rows[r].name);
        CHECK_ROW(&rows[r], pair.folded.folded_ranks == 0);
        pair_clear(&pair);
    }
}

/* Chunks of 161 and 160 elements, all taken as 160.375 * 4 = 641.5 -> 642 bytes. */
static void
pieces_may_be_taken_as_even(void)
{
    HandWires wires = { .n_ranks = 8, .rank_bytes_per_s = 10e9, .latency_ps = 500 * NS };
    TtNetwork net = hand_network(&wires);
    TtPlanSpec spec = { .n_ranks = 8, .count = 8 * 160 + 3, .type = TT_FLOAT32 };
    g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);
    Pair pair = run_both(plan, &net, (TtSimOptions){ .even_pieces = TRUE });

    check_same(&pair, "even");
    CU_ASSERT_EQUAL(pair.folded.folded_ranks, 7);
    CU_ASSERT_EQUAL(pair.folded.time_ps, 14 * (1 * US + 64200));
    pair_clear(&pair);
}

/* A plan that hangs says who waits, though all ranks are alike. */
static void
a_folded_deadlock_names_ranks(void)
{
    HandWires wires = { .n_ranks = 4, .rank_bytes_per_s = 10e9, .unbounded = TRUE };
    TtNetwork net = hand_network(&wires);
    HandPlan by_hand = hand_plan(4, 1, 1, 100);
    TtSimOptions options = { .level = TT_LEVEL_FLOW };
    TtSimResult result = { 0 };
    g_autoptr(TtPlan) plan = NULL;
    g_autoptr(GError) error = NULL;

    for (guint r = 0; r < 4; r++) /* all listen, nobody speaks */
        hand_step(&by_hand, r, 0, tt_recv_copy_send((r + 3) % 4, (r + 1) % 4, TT_OUTPUT, 0));
    plan = hand_plan_done(&by_hand);
    CU_ASSERT_FALSE(tt_sim_run_on(plan, &net, &options, &result, &error));
    CHECK_ERROR(error, TT_SIM_ERROR, TT_SIM_ERROR_DEADLOCK, "a message from rank 3");
}

/* --- leaping -----------------------------------------------------------------------------------
 */

/* (P-1) hops for the first slice, then one follows the other: the closed form of a chain, of 10 to 10,000
 * slices, in about the same number of events. */
static void
a_chain_is_leapt_along(void)
{
    guint64 events[3];

    for (guint i = 0; i < 3; i++) {
        static const guint64 n_rounds[] = { 10, 100, 10000 };
        HandWires wires = { .n_ranks = 5, .rank_bytes_per_s = 10e9, .latency_ps = 1 * US };
        TtPlanSpec spec = { .collective = TT_BROADCAST,
                            .n_ranks = 5,
                            .count = n_rounds[i] * 64000,
                            .n_slots = 3,
                            .slot_bytes = 64000,
                            .type = TT_INT8 };
        g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);
        TtSimOptions options = { .level = TT_LEVEL_FLOW };
        TtSimResult result = hand_run_with(plan, wires, &options);
        TtTime slice_ps = 6400 * NS; /* 64 kB at 10 GB/s, longer than the 2 us of a route */

        CU_ASSERT_EQUAL(plan->n_rounds, n_rounds[i]);
        CU_ASSERT_EQUAL(result.time_ps,
                        4 * (2 * US + slice_ps) + (TtTime)(n_rounds[i] - 1) * slice_ps);
        CU_ASSERT_EQUAL(result.n_messages, 4 * n_rounds[i]);
        CU_ASSERT_EQUAL(result.leap_error, 0);
        CHECK(result.leapt_rounds + 40 >= n_rounds[i], "%lu of %lu rounds",
              (gulong)result.leapt_rounds, (gulong)n_rounds[i]);
        events[i] = result.n_events;
        tt_sim_result_clear(&result);
    }
    CHECK(events[2] < 3 * events[1], "%lu, then %lu events", (gulong)events[1], (gulong)events[2]);
}

/* Rounds that are one unit of 64 bytes shorter from somewhere on, iterations, channels that share nothing
 * and channels of different sizes. */
static void
leaps_end_where_sizes_change(void)
{
    static const struct {
        const char *name, *algo;
        guint64 count;
        guint n_channels, iterations;
        HandShape shape;
    } rows[] = {
        { "even", "tree", 4096 * 200, 1, 1, HAND_CROSSBAR },
        { "some rounds shorter", "tree", 4096 * 200 - 16 * 3, 1, 1, HAND_CROSSBAR },
        { "three iterations", "tree", 4096 * 200, 1, 3, HAND_CROSSBAR },
        { "two channels", "double-tree", 4096 * 200, 2, 1, HAND_CROSSBAR },
        { "channels differ", "tree", 4096 * 200 - 16, 3, 1, HAND_CROSSBAR },
        { "a bus", "tree", 4096 * 200, 1, 1, HAND_BUS },
        { "a bus, iterations", "binomial", 4096 * 100, 2, 2, HAND_BUS },
        { "nodes", "double-tree", 4096 * 150, 4, 1, HAND_TWO_LEVEL },
    };
    guint n_leapt = 0;

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        HandWires wires = { .shape = rows[r].shape,
                            .n_ranks = 12,
                            .per_node = rows[r].shape == HAND_TWO_LEVEL ? 4 : 0,
                            .rank_bytes_per_s = 37e9,
                            .node_bytes_per_s = 21e9,
                            .latency_ps = 345 * NS };
        TtNetwork net = hand_network(&wires);
        TtPlanSpec spec = { .n_ranks = 12,
                            .count = rows[r].count,
                            .n_channels = rows[r].n_channels,
                            .slot_bytes = 16384,
                            .n_slots = 4,
                            .type = TT_FLOAT32 };
        g_autoptr(TtPlan) plan = tt_plan_new(rows[r].algo, &spec, NULL);
        Pair pair = run_both(plan, &net, (TtSimOptions){ .iterations = rows[r].iterations });

        check_same(&pair, rows[r].name);
        n_leapt += pair.folded.leapt_rounds > 0;
        pair_clear(&pair);
    }
    CHECK(n_leapt >= G_N_ELEMENTS(rows) / 2, "%u leapt", n_leapt);
}

/* Asked to be content with a thousandth, a run that drifts leaps, and is right to what it says. */
static void
leaps_keep_their_word(void)
{
    guint n_near = 0;

    for (guint C = 1; C <= 8; C++) {
        g_autoptr(TtTopology) topo = tt_topology_open("dgx-h100:4", NULL, NULL);
        TtNetwork net = tt_network_of_topology(topo);
        TtPlanSpec spec = { .n_ranks = 32,
                            .count = 1 << 21,
                            .n_channels = C,
                            .n_slots = 8,
                            .slot_bytes = 1 << 13,
                            .group_size = 8,
                            .type = TT_FLOAT32 };
        g_autoptr(TtProfile) profile = busy_profile();
        g_autoptr(TtPlan) plan = tt_plan_new("tree", &spec, NULL);
        Pair pair =
            run_both(plan, &net, (TtSimOptions){ .profile = profile, .leap_tolerance = 1e-3 });

        check_same(&pair, "tree");
        CU_ASSERT(pair.folded.leap_error <= 1e-3);
        n_near += pair.folded.leapt_rounds > 0;
        pair_clear(&pair);
    }
    CHECK(n_near >= 2, "%u leapt", n_near);
}

/* Up and down parts of nvls-tree meet in scratch and go at their own pace: nothing recurs. Few rounds tell of
 * many if asked to; else all are run. */
static void
few_rounds_tell_of_many(void)
{
    g_autoptr(TtTopology) topo = tt_topology_open("dgx-h100:4", NULL, NULL);
    TtNetwork net = tt_network_of_topology(topo);
    TtPlanSpec spec = { .n_ranks = 32,
                        .count = 1 << 26,
                        .n_channels = 4,
                        .n_slots = 8,
                        .slot_bytes = 1 << 16,
                        .group_size = 8,
                        .type = TT_FLOAT32 };
    g_autoptr(TtPlan) plan = tt_plan_new("nvls-tree", &spec, NULL);
    Pair near = run_both(plan, &net, (TtSimOptions){ .leap_tolerance = 1e-3 });
    Pair exact = run_both(plan, &net, (TtSimOptions){ 0 });

    CHECK(plan->n_rounds >= 64, "%lu rounds", (gulong)plan->n_rounds);
    check_same(&near, "near");
    check_same(&exact, "exact");
    CU_ASSERT_EQUAL(near.folded.n_messages, near.whole.n_messages);
    CHECK(near.folded.leapt_rounds > plan->n_rounds / 4, "%lu of %lu rounds",
          (gulong)near.folded.leapt_rounds, (gulong)plan->n_rounds);
    CU_ASSERT(near.folded.n_events < exact.folded.n_events);
    pair_clear(&near);
    pair_clear(&exact);
}

int
main(void)
{
    CU_TestInfo tests[] = {
        { "every algorithm folds exactly", every_algorithm_folds_exactly },
        { "rings fold to one node", rings_fold_to_one_node },
        { "folding is refused", folding_is_refused },
        { "pieces may be taken as even", pieces_may_be_taken_as_even },
        { "a folded deadlock names ranks", a_folded_deadlock_names_ranks },
        { "a chain is leapt along", a_chain_is_leapt_along },
        { "leaps end where sizes change", leaps_end_where_sizes_change },
        { "leaps keep their word", leaps_keep_their_word },
        { "few rounds tell of many", few_rounds_tell_of_many },
        CU_TEST_INFO_NULL,
    };

    return check_main("fold", tests);
}
