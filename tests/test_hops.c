/* What kinds of connections cost, and switches that reduce, against arithmetic. */
#include "tests/hand_plan.h"

/* Sends @n messages of 1 MB from rank 0 to rank 1 over links of 10 GB/s, 1 us each. */
static TtTime
run_messages(guint n, const char *kind, const TtProfile *profile)
{
    HandWires wires = { .n_ranks = 2,
                        .rank_bytes_per_s = 10e9,
                        .latency_ps = 1 * US,
                        .kind = kind,
                        .unbounded = TRUE };
    HandPlan by_hand = hand_plan(2, 1, 1, MB);
    g_autoptr(TtPlan) plan = NULL;

    by_hand.spec.n_slots = 8;
    for (guint i = 0; i < n; i++)
        hand_message(&by_hand, 0, 1, 0, 1);
    plan = hand_plan_done(&by_hand);
    return hand_run(plan, wires, profile);
}

static void
a_message_costs_what_its_hop_does(void)
{
    static const struct {
        const char *name;
        guint n;
        double latency_s, bytes_per_s, gap_s, wire_factor;
        TtTime want_ps;
    } rows[] = {
        { "nothing asked for", 1, 0, 0, 0, 0, 102 * US },
        { "latency", 1, 3e-6, 0, 0, 0, 105 * US },
        { "a limit of half the link", 1, 0, 5e9, 0, 0, 202 * US },
        { "a limit above the link", 1, 0, 50e9, 0, 0, 102 * US },
        { "two bytes on the wire for one", 1, 0, 0, 0, 2, 202 * US },
        { "16 for 15", 1, 0, 0, 0, 16.0 / 15, 2 * US + 106666700 }, /* 1066667 B */
        { "the limit is of data", 1, 0, 5e9, 0, 2, 202 * US },
        { "a gap shorter than a message", 3, 0, 0, 50e-6, 0, 302 * US },
        { "a longer gap: starts at 0, 150, 300", 3, 0, 0, 150e-6, 0, 402 * US },
        { "all together: starts at 0, 250, 500; 400 us each", 3, 3e-6, 2.5e9, 250e-6, 1,
          1205 * US },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        g_autoptr(TtProfile) profile = tt_profile_ideal();
        TtTime got_ps;

        profile->hop_latency_s[TT_HOP_NVLINK] = rows[r].latency_s;
        profile->hop_bytes_per_s[TT_HOP_NVLINK] = rows[r].bytes_per_s;
        profile->hop_gap_s[TT_HOP_NVLINK] = rows[r].gap_s;
        profile->wire_factor = rows[r].wire_factor;
        got_ps = run_messages(rows[r].n, "nvlink", profile);
        CHECK(got_ps == rows[r].want_ps, "%s: %ld", rows[r].name, (long)got_ps);
    }
}

static void
kinds_are_told_by_links(void)
{
    static const struct {
        const char *kind;
        TtHop hop;
    } rows[] = {
        { "nvlink", TT_HOP_NVLINK }, { "pcie", TT_HOP_PCIE }, { "memory", TT_HOP_HOST },
        { "cpu", TT_HOP_HOST },      { "ib", TT_HOP_NET },    { "ethernet", TT_HOP_NET },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        for (guint hop = 0; hop < TT_N_HOPS; hop++) {
            g_autoptr(TtProfile) profile = tt_profile_ideal();

            profile->hop_latency_s[hop] = 7e-6;
            CHECK(run_messages(1, rows[r].kind, profile) ==
                      (102 + (hop == rows[r].hop ? 7 : 0)) * US,
                  "%s, %u", rows[r].kind, hop);
        }
    }
}

static void
kinds_of_machines(void)
{
    static const struct {
        const char *topo;
        guint src, dst;
        TtHop hop;
    } rows[] = {
        { "dgx-h100:2", 0, 7, TT_HOP_NVLINK },  { "dgx-h100:2", 0, 8, TT_HOP_NET },
        { "dgx-h100:2", 15, 7, TT_HOP_NET },    { "dgx-h100:2", 3, 3, TT_HOP_LOCAL },
        { "dgx1-v100:1", 0, 1, TT_HOP_NVLINK }, /* the cube mesh joins these */
        { "dgx1-v100:1", 0, 7, TT_HOP_HOST },   /* and not those: over both sockets */
        { "pcie-8x4090:1", 0, 7, TT_HOP_HOST },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        g_autoptr(TtTopology) topo = tt_topology_open(rows[r].topo, NULL, NULL);
        TtNetwork net = tt_network_of_topology(topo);
        TtHop hop = tt_network_hop(&net, rows[r].src, rows[r].dst);

        CHECK(hop == rows[r].hop, "%s: %u to %u is %u", rows[r].topo, rows[r].src, rows[r].dst,
              hop);
    }
}

/* Limited to 4 GB/s each, two flows leave room on a bus of 10 GB/s, three share it. */
static void
limits_and_links_both_hold(void)
{
    for (guint n = 1; n <= 3; n++) {
        HandWires wires = {
            .shape = HAND_BUS, .n_ranks = 2 * n, .rank_bytes_per_s = 10e9, .unbounded = TRUE
        };
        HandPlan by_hand = hand_plan(2 * n, 1, 1, MB);
        g_autoptr(TtProfile) profile = tt_profile_ideal();
        g_autoptr(TtPlan) plan = NULL;

        for (guint i = 0; i < n; i++)
            hand_message(&by_hand, 2 * i, 2 * i + 1, 0, 1);
        plan = hand_plan_done(&by_hand);
        profile->hop_bytes_per_s[TT_HOP_NET] = 4e9;
        CHECK(hand_run(plan, wires, profile) == (n < 3 ? 250 : 300) * US, "%u flows", n);
    }
}

/* --- switches that reduce ----------------------------------------------------------------------
 */

/* A rank's link carries the whole vector up and, again, the sum of its own share: (G + 1) / G of it. Many
 * short rounds: what filling the pipeline takes is a few rounds' worth. */
static void
a_switch_halves_what_leaves(void)
{
    for (guint G = 2; G <= 8; G++) {
        HandWires wires = { .n_ranks = G, .rank_bytes_per_s = 100e9, .kind = "nvlink" };
        TtPlanSpec spec = { .n_ranks = G,
                            .count = G * 4 * MB,
                            .type = TT_INT8,
                            .slot_bytes = 8000, /* 500 rounds */
                            .n_slots = 8 };
        g_autoptr(TtPlan) plan = tt_plan_new("nvls", &spec, NULL);
        TtTime form_ps = tt_transfer_ps((G + 1) * 4 * (guint64)MB, 100e9);
        TtTime got_ps = hand_run(plan, wires, NULL);

        CHECK(got_ps >= form_ps && (double)got_ps < 1.02 * (double)form_ps,
              "%u ranks: %ld, form %ld", G, (long)got_ps, (long)form_ps);
    }
}

static void
switches_must_be_there(void)
{
    static const struct {
        const char *topo, *algo, *words;
    } rows[] = {
        { "dgx1-v100:2", "nvls", "node 0 has no switch that reduces" },
        { "pcie-8x4090:1", "nvls", "node 0 has no switch that reduces" },
        { "dgx-h100:2", "nvls-tree", NULL },
        { "dgx-h100:2", "collnet-chain", NULL },
        { "dgx-h100:1", "nvls", NULL },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        g_autoptr(TtTopology) topo = tt_topology_open(rows[r].topo, NULL, NULL);
        TtPlanSpec spec = { .n_ranks = tt_topology_n_ranks(topo),
                            .count = MB,
                            .type = TT_FLOAT32,
                            .group_size = tt_topology_ranks_per_node(topo) };
        g_autoptr(GError) error = NULL;
        g_autoptr(TtPlan) plan = tt_plan_new(rows[r].algo, &spec, NULL);
        TtSimOptions options = { .level = TT_LEVEL_FLOW };
        TtSimResult result = { 0 };

        if (!plan)
            continue;
        tt_sim_run(plan, topo, &options, &result, &error);
        if (rows[r].words)
            CHECK_ERROR(error, TT_SIM_ERROR, TT_SIM_ERROR_USAGE, rows[r].words);
        else
            CHECK_NO_ERROR(error);
        tt_sim_result_clear(&result);
    }
}

/* To the NVSwitch and back over one link each; into the network by a NIC. */
static void
ways_to_switches(void)
{
    g_autoptr(TtTopology) topo = tt_topology_open("dgx-h100:2", NULL, NULL);
    g_autoptr(TtTopology) old = tt_topology_open("dgx1-v100:1", NULL, NULL);
    TtLink links[TT_MAX_ROUTE];
    g_autofree char *up = NULL, *down = NULL, *last = NULL;
    guint n;

    CU_ASSERT_EQUAL(tt_topology_route_to_switch(topo, 10, links), 1);
    up = tt_topology_link_name(topo, links[0]);
    CU_ASSERT_STRING_EQUAL(up, "node 1: gpu 2 -> nvswitch 0");
    CU_ASSERT_EQUAL(tt_topology_route_from_switch(topo, 10, links), 1);
    down = tt_topology_link_name(topo, links[0]);
    CU_ASSERT_STRING_EQUAL(down, "node 1: nvswitch 0 -> gpu 2");
    n = tt_topology_route_to_network(topo, 10, links);
    CU_ASSERT(n > 1 && n <= TT_MAX_ROUTE);
    last = tt_topology_link_name(topo, links[n - 1]);
    CHECK(g_str_has_prefix(last, "node 1: nic 2 -> "), "%s", last);
    CU_ASSERT_EQUAL(tt_topology_route_from_network(topo, 10, links), n);
    CU_ASSERT_EQUAL(tt_topology_route_to_switch(old, 0, links), TT_NO_SWITCH);
    CU_ASSERT_EQUAL(tt_topology_route_from_switch(old, 0, links), TT_NO_SWITCH);
    CU_ASSERT_EQUAL(tt_topology_route_to_network(old, 0, links), TT_NO_SWITCH);
    CU_ASSERT_EQUAL(tt_topology_route_from_network(old, 0, links), TT_NO_SWITCH);
}

int
main(void)
{
    CU_TestInfo tests[] = {
        { "a message costs what its hop does", a_message_costs_what_its_hop_does },
        { "kinds are told by links", kinds_are_told_by_links },
        { "kinds of machines", kinds_of_machines },
        { "limits and links both hold", limits_and_links_both_hold },
        { "a switch halves what leaves", a_switch_halves_what_leaves },
        { "switches must be there", switches_must_be_there },
        { "ways to switches", ways_to_switches },
        CU_TEST_INFO_NULL,
    };

    return check_main("hops", tests);
}
