/* Lower bounds by hand, never above what any algorithm achieves, and the other levels of the
 * simulator. */
#include "algos/algo.h"
#include "tests/hand_plan.h"

/* 10 GB/s a rank, 1 us a link; S = 12 MB (1200 us at 10 GB/s), or what the row says. */
static const struct {
    const char *name;
    HandShape shape;
    TtCollective collective;
    guint n_ranks, per_node;
    double node_bytes_per_s;
    guint64 count;
    TtTime want_ps;
    const char *limit;
} rows[] = {
    /* 2(P-1)/P * S / B = 1.5 * 1200 us */
    { "allreduce, 4 ranks", HAND_CROSSBAR, TT_ALLREDUCE, 4, 4, 0, 12 * MB, 1800 * US,
      "injection of all ranks" },
    { "reduce-scatter is half of it", HAND_CROSSBAR, TT_REDUCE_SCATTER, 4, 4, 0, 12 * MB, 900 * US,
      "injection of rank 0" },
    { "allgather: the other three quarters come in", HAND_CROSSBAR, TT_ALLGATHER, 4, 4, 0, 12 * MB,
      900 * US, "ejection of rank 0" },
    { "broadcast: all of it leaves the root", HAND_CROSSBAR, TT_BROADCAST, 4, 4, 0, 12 * MB,
      1200 * US, "injection of rank 0" },
    { "reduce", HAND_CROSSBAR, TT_REDUCE, 4, 4, 0, 12 * MB, 1200 * US, "ejection of rank 0" },
    /* 3 nodes of 4 whose NICs do 5 GB/s: 2(M-1)/M * S / 5 GB/s = 4/3 * 2400 us > 2 * 11/12 * 1200
       us */
    { "slow NICs", HAND_TWO_LEVEL, TT_ALLREDUCE, 12, 4, 5e9, 12 * MB, 3200 * US,
      "NICs of all nodes, outgoing" },
    /* a node's part is S/3: 2/3 * 2400 us */
    { "slow NICs, allgather", HAND_TWO_LEVEL, TT_ALLGATHER, 12, 4, 5e9, 12 * MB, 1600 * US,
      "NICs of node 0, incoming" },
    /* 11/6 * 1200 us of a rank outweigh 4/3 * 600 us of a node */
    { "fast NICs", HAND_TWO_LEVEL, TT_ALLREDUCE, 12, 4, 20e9, 12 * MB, 2200 * US,
      "injection of all ranks" },
    /* up and down, 1 us each; 4 bytes move in no time */
    { "small: latency", HAND_CROSSBAR, TT_ALLREDUCE, 4, 4, 0, 4, 2 * US, "latency" },
    /* 5 hops from end to end, of which messages may be relayed at no cost */
    { "the ends of a line", HAND_LINE, TT_ALLREDUCE, 6, 6, 0, 6, 5 * US, "latency" },
    /* root 1: rank 5 is 4 hops away */
    { "from the root of a line", HAND_LINE, TT_BROADCAST, 6, 6, 0, 6, 4 * US, "latency" },
    /* more ranks than shortest paths are searched for: out of the node over 4 links */
    { "many nodes", HAND_TWO_LEVEL, TT_ALLREDUCE, 128, 8, 400e9, 4, 4 * US, "latency" },
    /* rank 0 has nothing to tell and 3 bytes to hear */
    { "a part is empty: not all must hear from all", HAND_CROSSBAR, TT_ALLGATHER, 4, 4, 0, 3, 300,
      "ejection of rank 0" },
    { "one rank", HAND_CROSSBAR, TT_ALLREDUCE, 1, 1, 0, 12 * MB, 0, "nothing to move" },
    { "no elements", HAND_CROSSBAR, TT_ALLREDUCE, 4, 4, 0, 0, 0, "nothing to move" },
};

static void
bounds_are_those_worked_out(void)
{
    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        HandWires wires = { .shape = rows[r].shape,
                            .n_ranks = rows[r].n_ranks,
                            .per_node = rows[r].per_node,
                            .rank_bytes_per_s = 10e9,
                            .node_bytes_per_s = rows[r].node_bytes_per_s,
                            .latency_ps = US };
        TtNetwork net = hand_network(&wires);
        TtPlanSpec spec = { .collective = rows[r].collective,
                            .n_ranks = rows[r].n_ranks,
                            .count = rows[r].count,
                            .type = TT_INT8,
                            .root = 0 };
        g_autoptr(TtPlan) plan = NULL;
        g_autofree char *limit = NULL;
        TtTime got_ps;

        if (strstr(rows[r].name, "from the root"))
            spec.root = 1;
        plan = tt_plan_new("ring", &spec, NULL);
        got_ps = tt_sim_bound_on_ps(plan, &net, &limit);
        /* rounded down: a picosecond below a whole number of microseconds is as good */
        CHECK(got_ps <= rows[r].want_ps && got_ps >= rows[r].want_ps - 1, "%s: %ld ps",
              rows[r].name, (long)got_ps);
        CHECK(strcmp(limit, rows[r].limit) == 0, "%s: %s", rows[r].name, limit);
    }
}

/* Leaves of 4 nodes with 100 Gbit/s * 97 % = 12.125 GB/s each; 16:1 leaves 4 * 12.125 / 16 =
 * 3.03125 GB/s up, so that S = 303.125 MB crosses in 100 ms. On rails of 8 * 49 GB/s, two nodes to
 * a leaf, 8:1: 8 * 2 * 49 / 8 = 98 GB/s for a pod. */
static const struct {
    const char *name, *topo, *type, *per_leaf, *over;
    TtCollective collective;
    guint n_ranks;
    guint64 count;
    TtTime want_ps;
    const char *limit;
} pods[] = {
    /* 2 * 9 * S / (10 * U) */
    { "10 pods", "hosts:40", "fat-tree", "4", "16", TT_ALLREDUCE, 40, 303125000, 180000 * US,
      "uplinks of all leaves, outgoing" },
    /* 9/10 S come in */
    { "allgather", "hosts:40", "fat-tree", "4", "16", TT_ALLGATHER, 40, 303125000, 90000 * US,
      "uplinks of pod 0, incoming" },
    { "broadcast", "hosts:40", "fat-tree", "4", "16", TT_BROADCAST, 40, 303125000, 100000 * US,
      "uplinks of pod 0, outgoing" },
    /* 10 of 40 ranks are pods of 4, 4 and 2: 2 * 2 * S / (3 * U) */
    { "a small plan", "hosts:40", "fat-tree", "4", "16", TT_ALLREDUCE, 10, 30312500 * 3, 40000 * US,
      "uplinks of all leaves, outgoing" },
    /* 8/10 of S belong to the others of the pod of 2 */
    { "a small plan, reduce-scatter", "hosts:40", "fat-tree", "4", "16", TT_REDUCE_SCATTER, 10,
      303125000, 80000 * US, "uplinks of pod 2, outgoing" },
    /* the same where the machine itself ends in a pod of 2 */
    { "a partial pod", "hosts:10", "fat-tree", "4", "16", TT_REDUCE_SCATTER, 10, 303125000,
      80000 * US, "uplinks of pod 2, outgoing" },
    /* no uplink in the way: 2 * 3/4 * S / 12.125 GB/s */
    { "within one pod", "hosts:40", "fat-tree", "4", "16", TT_ALLREDUCE, 4, 303125000, 37500 * US,
      "NICs of all nodes, outgoing" },
    /* U is 4 NICs: 2 * 39/40 * 25 ms of the NICs outweigh 2 * 9/10 * 6.25 ms */
    { "1:1", "hosts:40", "fat-tree", "4", "1", TT_ALLREDUCE, 40, 303125000, 48750 * US,
      "NICs of all nodes, outgoing" },
    /* 2 * 2 * 294 MB / (3 * 98 GB/s) */
    { "rails", "dgx-h100:6", "rail", "2", "8", TT_ALLREDUCE, 48, 294 * MB, 4000 * US,
      "uplinks of all leaves, outgoing" },
    { "rails, 40 ranks end in a pod of one node", "dgx-h100:6", "rail", "2", "8", TT_REDUCE_SCATTER,
      40, 98 * MB, 800 * US, "uplinks of pod 2, outgoing" },
};

static TtTopology *
open_pods(const char *text, const char *type, const char *per_leaf, const char *over)
{
    g_autofree char *t = g_strdup_printf("fabric.type=%s", type);
    g_autofree char *n = g_strdup_printf("fabric.nodes-per-leaf=%s", per_leaf);
    g_autofree char *o = g_strdup_printf("fabric.oversubscription=%s", over);
    const char *settings[] = { t, n, o, NULL };
    g_autoptr(GError) error = NULL;
    TtTopology *topo = tt_topology_open(text, settings, &error);

    CHECK_NO_ERROR(error);
    return topo;
}

static void
uplinks_bound(void)
{
    for (guint r = 0; r < G_N_ELEMENTS(pods); r++) {
        g_autoptr(TtTopology) topo =
            open_pods(pods[r].topo, pods[r].type, pods[r].per_leaf, pods[r].over);
        TtNetwork net = tt_network_of_topology(topo), bare = tt_network_without_memory(&net);
        TtPlanSpec spec = { .collective = pods[r].collective,
                            .n_ranks = pods[r].n_ranks,
                            .count = pods[r].count,
                            .type = TT_INT8 };
        g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);

        for (guint i = 0; i < 2; i++) { /* free memory changes nothing between nodes */
            g_autofree char *limit = NULL;
            TtTime got_ps = tt_sim_bound_on_ps(plan, i ? &bare : &net, &limit);

            CHECK(ABS(got_ps - pods[r].want_ps) <= 1, "%s: %ld ps", pods[r].name, (long)got_ps);
            CHECK(strcmp(limit, pods[r].limit) == 0, "%s: %s", pods[r].name, limit);
        }
    }
}

/* Every algorithm, collective and machine: no simulated time is under its bound, and the ring on a
 * crossbar without latency reaches it. */
static void
nothing_is_faster(void)
{
    guint n_runs = 0;

    for (guint a = 0; tt_algos[a]; a++) {
        for (guint c = 0; c < TT_N_COLLECTIVES; c++) {
            for (guint s = HAND_CROSSBAR; s <= HAND_BACKPLANE; s++) {
                for (guint P = 1; P <= 16; P += 3) {
                    HandWires wires = { .shape = s,
                                        .n_ranks = P,
                                        .per_node = P % 4 ? P : 4,
                                        .rank_bytes_per_s = 10e9,
                                        .node_bytes_per_s = 30e9,
                                        .latency_ps = P % 2 ? 0 : 1 * US };
                    TtPlanSpec spec = { .collective = c,
                                        .n_ranks = P,
                                        .count = 1000 * P + P / 2,
                                        .type = TT_FLOAT32,
                                        .slot_bytes = 1000,
                                        .group_size = wires.per_node };
                    g_autoptr(TtPlan) plan = tt_plan_new(tt_algos[a]->name, &spec, NULL);

                    if (!plan)
                        continue;
                    for (guint i = 1; i <= 3; i++) {
                        TtSimOptions options = { .level = TT_LEVEL_FLOW, .iterations = i };
                        TtSimResult result =
                            hand_run_with(plan, wires, &options); /* checks the bound */

                        CHECK(i > 1 || result.time_ps + 4 * P + 100 >= result.bound_ps, "%s",
                              plan->name);
                        tt_sim_result_clear(&result);
                        n_runs++;
                    }
                }
            }
        }
    }
    CU_ASSERT(n_runs > 300);
}

/* The same on the machines that come with the program, through the public face. */
static void
nothing_is_faster_on_presets(void)
{
    g_autoptr(TtProfile) tutti = tt_profile_open("tutti", NULL);
    guint n_runs = 0;

    for (guint p = 0; tt_presets[p].name; p++) {
        for (guint n = 1; n <= 2; n++) {
            g_autofree char *name = g_strdup_printf("%s:%u", tt_presets[p].name, n);
            g_autoptr(GError) error = NULL;
            g_autoptr(TtTopology) topo = tt_topology_open(name, NULL, &error);

            if (!topo) /* some presets are single nodes */
                continue;
            for (guint a = 0; tt_algos[a]; a++) {
                TtPlanSpec spec = { .n_ranks = tt_topology_n_ranks(topo),
                                    .count = 1 << 20,
                                    .group_size = tt_topology_ranks_per_node(topo),
                                    .n_channels = 2,
                                    .slot_bytes = 1 << 18,
                                    .type = TT_FLOAT32 };
                g_autoptr(TtPlan) plan = tt_plan_new(tt_algos[a]->name, &spec, NULL);

                for (guint i = 0; plan && i < 2; i++) {
                    TtSimOptions options = { .level = TT_LEVEL_FLOW, .profile = i ? tutti : NULL };
                    TtSimResult result = { 0 };

                    if (!tt_sim_run(plan, topo, &options, &result, &error) &&
                        plan->n_switches > 0) { /* few nodes have a switch that reduces */
                        CHECK_ERROR(error, TT_SIM_ERROR, TT_SIM_ERROR_USAGE, "reduces");
                        continue;
                    }
                    CHECK(!error, "%s on %s: %s", plan->name, name, error ? error->message : "");
                    CHECK(result.limit && (result.bottleneck || spec.n_ranks == 1), "%s on %s",
                          plan->name, name);
                    tt_sim_result_clear(&result);
                    g_clear_error(&error);
                    n_runs++;
                }
            }
        }
    }
    CU_ASSERT(n_runs > 0);
}

/* The same where the leaves are too thin; the last pod of 7 nodes is a partial one. tt_sim_run
 * itself fails under the bound. */
static void
nothing_is_faster_through_thin_leaves(void)
{
    static const char *const machines[][4] = { { "hosts:7", "fat-tree", "2", "16" },
                                               { "hosts:6", "fat-tree", "1", "3" },
                                               { "hosts:7", "rail", "3", "16" },
                                               { "dgx-h100:4", "fat-tree", "2", "16" },
                                               { "dgx-h100:3", "rail", "2", "16" } };
    guint n_runs = 0, n_uplinks = 0;

    for (guint m = 0; m < G_N_ELEMENTS(machines); m++) {
        const char *const *with = machines[m];
        g_autoptr(TtTopology) topo = open_pods(with[0], with[1], with[2], with[3]);

        for (guint a = 0; tt_algos[a]; a++) {
            for (guint c = 0; c < TT_N_COLLECTIVES; c++) {
                TtPlanSpec spec = { .collective = c,
                                    .n_ranks = tt_topology_n_ranks(topo),
                                    .count = 1 << 20,
                                    .group_size = tt_topology_ranks_per_node(topo),
                                    .slot_bytes = 1 << 18,
                                    .type = TT_FLOAT32 };
                TtSimOptions options = { .level = TT_LEVEL_FLOW };
                TtSimResult result = { 0 };
                g_autoptr(TtPlan) plan = tt_plan_new(tt_algos[a]->name, &spec, NULL);
                g_autoptr(GError) error = NULL;

                if (!plan)
                    continue;
                if (!tt_sim_run(plan, topo, &options, &result, &error) &&
                    plan->n_switches > 0) { /* hosts have no switch that reduces */
                    CHECK_ERROR(error, TT_SIM_ERROR, TT_SIM_ERROR_USAGE, "reduces");
                    continue;
                }
                CHECK(!error, "%s on %s %s: %s", plan->name, with[1], with[0],
                      error ? error->message : "");
                n_uplinks += result.limit && g_str_has_prefix(result.limit, "uplinks");
                tt_sim_result_clear(&result);
                n_runs++;
            }
        }
    }
    CHECK(n_runs > 50 && n_uplinks > n_runs / 2, "%u of %u runs", n_uplinks, n_runs);
}

static void
ring_reaches_the_bound(void)
{
    HandWires wires = { .n_ranks = 8, .rank_bytes_per_s = 10e9 };
    TtPlanSpec spec = { .n_ranks = 8, .count = 8 * MB, .type = TT_INT8 };
    g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);
    TtSimOptions options = { .level = TT_LEVEL_FLOW };
    TtSimResult result = hand_run_with(plan, wires, &options);

    CU_ASSERT_EQUAL(result.time_ps, 1400 * US);
    CU_ASSERT(result.time_ps - result.bound_ps <= 1);
    tt_sim_result_clear(&result);
}

/* A plan that does not do what it says is found out: one message instead of an allreduce. */
static void
under_the_bound_is_an_error(void)
{
    HandPlan hand = hand_plan(4, 1, 1, MB);
    HandWires wires = { .n_ranks = 4, .rank_bytes_per_s = 10e9, .latency_ps = US };
    TtNetwork net = hand_network(&wires);
    TtSimOptions options = { .level = TT_LEVEL_FLOW };
    TtSimResult result = { .time_ps = -1 };
    g_autoptr(GError) error = NULL;
    g_autoptr(TtPlan) plan = NULL;

    hand.spec.collective = TT_ALLREDUCE;
    hand_message(&hand, 0, 1, 0, 1);
    plan = hand_plan_done(&hand);
    CU_ASSERT_FALSE(tt_sim_run_on(plan, &net, &options, &result, &error));
    CHECK_ERROR(error, TT_SIM_ERROR, TT_SIM_ERROR_UNDER_BOUND,
                "simulated 102.000000 us, but nothing can be faster than");
    CU_ASSERT_EQUAL(result.time_ps, -1);
}

/* --- levels ------------------------------------------------------------------------------------
 */

static void
levels_agree_where_they_should(void)
{
    HandWires wires = { .shape = HAND_TWO_LEVEL,
                        .n_ranks = 8,
                        .per_node = 4,
                        .rank_bytes_per_s = 10e9,
                        .node_bytes_per_s = 5e9,
                        .latency_ps = US };
    TtPlanSpec spec = { .n_ranks = 8, .count = 8 * MB, .type = TT_INT8 };
    g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);
    g_autoptr(TtProfile) profile = tt_profile_ideal();
    /* hockney: the slowest route decides: 4 links, 5 GB/s, 14 * (4 us + 200 us). flow: that link is
     * never idle, as ranks inside a node are ahead of it: 14 * 200 us and one latency */
    static const TtTime want_ps[TT_N_LEVELS] = { [TT_LEVEL_BOUND] =
                                                     1600 * US, /* 2(M-1)/M S / 5 GB/s */
                                                 [TT_LEVEL_HOCKNEY] = 14 * 204 * US,
                                                 [TT_LEVEL_FLOW] = 2804 * US };

    for (guint level = 0; level < TT_N_LEVELS; level++) {
        TtSimOptions options = { .level = level };
        TtSimResult result;
        TtLevel parsed;

        if (level == TT_LEVEL_LOGGP) /* a library's */
            continue;
        result = hand_run_with(plan, wires, &options);
        CHECK(ABS(result.time_ps - want_ps[level]) <= 14, "%s: %ld", tt_level_name(level),
              (long)result.time_ps);
        CU_ASSERT(tt_level_parse(tt_level_name(level), &parsed, NULL) && parsed == level);
        tt_sim_result_clear(&result);
    }
}

static void
bad_requests_are_named(void)
{
    HandWires wires = { .n_ranks = 4, .rank_bytes_per_s = 10e9, .latency_ps = US };
    TtNetwork net = hand_network(&wires);
    TtPlanSpec small = { .n_ranks = 4, .count = 4 }, large = { .n_ranks = 5, .count = 4 };
    TtSimOptions hockney = { .level = TT_LEVEL_HOCKNEY }, flow = { .level = TT_LEVEL_FLOW };
    TtAlgo formless = *tt_algo_find("ring");
    g_autoptr(TtPlan) five = tt_plan_new("ring", &large, NULL);
    g_autoptr(TtPlan) plan = NULL;
    g_autoptr(GError) error = NULL;
    TtSimResult result;
    TtLevel level;

    formless.time_s = NULL;
    plan = tt_plan_new_for(&formless, NULL, "formless", &small, NULL);
    CU_ASSERT_FALSE(tt_sim_run_on(plan, &net, &hockney, &result, &error));
    CHECK_ERROR(error, TT_SIM_ERROR, TT_SIM_ERROR_USAGE, "no closed form; use --level flow");
    CU_ASSERT_FALSE(tt_sim_run_on(five, &net, &flow, &result, &error));
    CHECK_ERROR(error, TT_SIM_ERROR, TT_SIM_ERROR_USAGE, "5 ranks, the topology only 4");
    CU_ASSERT_FALSE(tt_level_parse("packet", &level, &error));
    CHECK_ERROR(error, TT_SIM_ERROR, TT_SIM_ERROR_USAGE, "bound, hockney, loggp, flow");
}

/* 2^61 bytes at 1 byte a second outlast 2^63 ps: said, not wrapped around. */
static void
the_end_of_time_is_an_error(void)
{
    HandWires wires = { .n_ranks = 2, .rank_bytes_per_s = 1, .latency_ps = US };
    TtNetwork net = hand_network(&wires);
    TtPlanSpec spec = { .n_ranks = 2, .count = G_GUINT64_CONSTANT(1) << 61, .type = TT_INT8 };
    g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);
    TtSimOptions flow = { .level = TT_LEVEL_FLOW };
    TtSimResult result;
    g_autoptr(GError) error = NULL;

    CU_ASSERT_FALSE(tt_sim_run_on(plan, &net, &flow, &result, &error));
    CHECK_ERROR(error, TT_SIM_ERROR, TT_SIM_ERROR_USAGE, "106 days");
}

int
main(void)
{
    CU_TestInfo tests[] = { { "bounds are those worked out", bounds_are_those_worked_out },
                            { "uplinks bound", uplinks_bound },
                            { "nothing is faster", nothing_is_faster },
                            { "nothing is faster on presets", nothing_is_faster_on_presets },
                            { "nothing is faster through thin leaves",
                              nothing_is_faster_through_thin_leaves },
                            { "ring reaches the bound", ring_reaches_the_bound },
                            { "under the bound is an error", under_the_bound_is_an_error },
                            { "levels agree where they should", levels_agree_where_they_should },
                            { "bad requests are named", bad_requests_are_named },
                            { "the end of time is an error", the_end_of_time_is_an_error },
                            CU_TEST_INFO_NULL };

    return check_main("bound", tests);
}
