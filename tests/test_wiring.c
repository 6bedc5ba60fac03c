/* Wirings, and what the algorithms that take them make of them: the schedules NCCL runs. */
#include "algos/algo.h"
#include "algos/table.h"
#include "algos/verify.h"
#include "tests/check.h"

#include <string.h>

/* --- wirings ------------------------------------------------------------------------------------ */

typedef struct {
    TtWiring wiring;
    guint16 ring[8 * 16], tree[8 * 16], head[16];
} Drawn;

static void
shuffle(GRand *rand, guint16 *places, guint n)
{
    for (guint i = 0; i < n; i++)
        places[i] = i;
    for (guint i = n; i > 1; i--) {
        guint k = g_rand_int_range(rand, 0, i);
        guint16 swap = places[i - 1];

        places[i - 1] = places[k];
        places[k] = swap;
    }
}

static void
draw_wiring(GRand *rand, guint ranks_per_node, Drawn *drawn)
{
    guint n_channels = g_rand_int_range(rand, 1, 5), n = ranks_per_node;

    drawn->wiring = (TtWiring){ .ranks_per_node = n,
                                .n_channels = n_channels,
                                .ring = drawn->ring,
                                .ring_alternates = g_rand_boolean(rand),
                                .tree = g_rand_boolean(rand) ? drawn->tree : NULL,
                                .tree_pattern = g_rand_int_range(rand, 0, 4),
                                .n_heads = g_rand_int_range(rand, 0, n + 1),
                                .head = drawn->head };
    for (guint c = 0; c < n_channels; c++) {
        shuffle(rand, drawn->ring + c * n, n);
        shuffle(rand, drawn->tree + c * n, n);
    }
    shuffle(rand, drawn->head, n);
}

static void
bad_wirings_are_named(void)
{
    static const guint16 good[] = { 0, 2, 1, 1, 0, 2 }, twice[] = { 0, 1, 1 }, beyond[] = { 0, 1, 3 };
    static const struct { const char *name, *words; TtWiring wiring; } rows[] = {
        { "another node", "as large as the groups", { 2, 1, good, .tree = NULL } },
        { "no channel", "must have a channel", { 3, 0, good } },
        { "no ring", "must have a channel", { 3, 1, NULL } },
        { "a rank twice", "each rank of a node once", { 3, 1, twice } },
        { "a rank beyond", "each rank of a node once", { 3, 1, beyond } },
        { "a chain with a rank twice", "each rank of a node once", { 3, 1, good, .tree = twice } },
        { "pattern 4", "pattern must be 0 .. 3", { 3, 1, good, .tree_pattern = 4 } },
        { "a head twice", "heads must be different", { 3, 1, good, .n_heads = 3, .head = twice } },
        { "too many heads", "heads must be different", { 3, 2, good, .n_heads = 4, .head = good } },
        { "heads unnamed", "heads must be different", { 3, 2, good, .n_heads = 1 } },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        TtPlanSpec spec = { .n_ranks = 6, .group_size = 3, .wiring = &rows[r].wiring };
        g_autoptr(GError) error = NULL;

        CHECK_ROW(&rows[r], tt_plan_new("ring", &spec, &error) == NULL);
        CHECK_ERROR(error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE, rows[r].words);
    }
}

/* The caller's arrays may go as soon as the plan is made. */
static void
a_plan_keeps_its_own_wiring(void)
{
    guint16 order[] = { 2, 0, 1 };
    TtWiring wiring = { .ranks_per_node = 3, .n_channels = 1, .ring = order };
    TtPlanSpec spec = { .n_ranks = 6, .group_size = 3, .wiring = &wiring };
    g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);

    memset(order, 0xff, sizeof order);
    memset(&wiring, 0xff, sizeof wiring);
    CU_ASSERT_EQUAL(tt_ring_rank(plan, 0, 0), 2);
    CU_ASSERT_EQUAL(tt_ring_rank(plan, 0, 5), 4);
}

static guint
next_of(const TtPlan *plan, guint channel, guint rank)
{
    return tt_plan_peer(plan, rank, channel * plan->lanes_per_channel, 1);
}

/* Two channels, nodes of 3: channel 0 goes 0 2 1, channel 1 goes 1 0 2; alternating, odd nodes swap. */
static void
rings_follow_the_wiring(void)
{
    static const guint16 order[] = { 0, 2, 1, 1, 0, 2 };
    static const struct { const char *name; guint channel; gboolean swap; guint ring[6]; } rows[] = {
        { "channel 0", 0, FALSE, { 0, 2, 1, 3, 5, 4 } },
        { "channel 1", 1, FALSE, { 1, 0, 2, 4, 3, 5 } },
        { "channel 2 is channel 0 again", 2, FALSE, { 0, 2, 1, 3, 5, 4 } },
        { "channel 0, the odd node as channel 1", 0, TRUE, { 0, 2, 1, 4, 3, 5 } },
        { "channel 3, the odd node as channel 0", 3, TRUE, { 1, 0, 2, 3, 5, 4 } },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        TtWiring wiring = { 3, 2, order, rows[r].swap, .tree_pattern = 0 };
        TtPlanSpec spec = { .n_ranks = 6, .group_size = 3, .n_channels = 4, .wiring = &wiring };
        g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);

        for (guint i = 0; i < 6; i++) {
            CHECK_ROW(&rows[r], tt_ring_rank(plan, rows[r].channel, i) == rows[r].ring[i]);
            CHECK_ROW(&rows[r], tt_ring_position(plan, rows[r].channel, rows[r].ring[i]) == i);
            CHECK_ROW(&rows[r], next_of(plan, rows[r].channel, rows[r].ring[i]) ==
                                    rows[r].ring[(i + 1) % 6]);
        }
    }
}

/* --- trees -------------------------------------------------------------------------------------- */

/* Five nodes of 3, tree 0: parents -1 2 4 2 0; tree 1: 1 -1 3 0 3. The chain is 2 0 1. */
static void
chains_attach_as_the_pattern_says(void)
{
    static const guint16 order[] = { 0, 1, 2 }, chain[] = { 2, 0, 1 };
    static const struct {
        const char *name;
        TtTreePattern pattern;
        guint channel, rank;
        int parent;
    } rows[] = {
        { "down the chain", TT_TREE_BALANCED, 0, 3 * 2 + 1, 3 * 2 + 0 },
        { "its second hangs on its first", TT_TREE_BALANCED, 0, 3 * 2 + 0, 3 * 2 + 2 },
        { "the first of the root has no parent", TT_TREE_BALANCED, 0, 2, -1 },
        { "node 1 before node 2: its second", TT_TREE_BALANCED, 0, 3 * 1 + 2, 3 * 2 + 0 },
        { "node 3 after node 2: its first", TT_TREE_BALANCED, 0, 3 * 3 + 2, 3 * 2 + 2 },
        { "the root's only child: its first", TT_TREE_BALANCED, 0, 3 * 4 + 2, 3 * 0 + 2 },
        { "split, before", TT_TREE_SPLIT, 0, 3 * 1 + 2, 3 * 2 + 0 },
        { "split, after", TT_TREE_SPLIT, 0, 3 * 3 + 2, 3 * 2 + 0 },
        { "first, before", TT_TREE_FIRST, 0, 3 * 1 + 2, 3 * 2 + 2 },
        { "first, after", TT_TREE_FIRST, 0, 3 * 3 + 2, 3 * 2 + 2 },
        { "channel 1 is the second half: tree 1", TT_TREE_FIRST, 1, 3 * 0 + 2, 3 * 1 + 2 },
        { "channel 2 begins again", TT_TREE_FIRST, 2, 3 * 1 + 2, 3 * 2 + 2 },
        /* tree 1 is tree 0 shifted by one: node 2 hangs on node 3 as 1 does on 2 */
        { "tree 1, before", TT_TREE_BALANCED, 3, 3 * 2 + 2, 3 * 3 + 0 },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        TtWiring wiring = { 3, 1, order, FALSE, chain, rows[r].pattern, 0, NULL };
        TtPlanSpec spec = { .n_ranks = 15, .group_size = 3, .n_channels = 4, .wiring = &wiring };
        g_autoptr(TtPlan) plan = tt_plan_new("nccl-tree", &spec, NULL);

        CHECK(plan && (int)tt_plan_peer(plan, rows[r].rank, 2 * rows[r].channel, 0) == rows[r].parent,
              "%s: %d", rows[r].name, (int)tt_plan_peer(plan, rows[r].rank, 2 * rows[r].channel, 0));
    }
}

/* By default the first half of the channels takes tree 0: roots 0 and, of an even number, the last. */
static void
halves_of_the_channels_take_a_tree_each(void)
{
    TtPlanSpec spec = { .n_ranks = 8, .group_size = 1, .n_channels = 4 };
    g_autoptr(TtPlan) plan = tt_plan_new("nccl-tree", &spec, NULL);

    for (guint c = 0; c < 4; c++)
        CU_ASSERT_EQUAL(tt_plan_peer(plan, c < 2 ? 0 : 7, 2 * c, 0), TT_NO_RANK);
}

/* --- what passes a rank ------------------------------------------------------------------------- */

typedef struct {
    guint64 in, out; /* chunks */
} Traffic;

/* Through one rank: all, or only what comes from or goes to other nodes. */
static Traffic
traffic_of(const TtPlan *plan, guint rank, gboolean outside_only)
{
    guint G = plan->spec.group_size, P = plan->spec.n_ranks;
    Traffic sum = { 0, 0 };

    for (guint lane = 0; lane < plan->n_lanes; lane++)
        for (guint32 i = 0; i < tt_plan_n_steps(plan, rank, lane); i++) {
            TtStep step = tt_plan_step(plan, rank, lane, i);

            for (guint way = 0; way < 2; way++) {
                guint role = way == 0 ? step.recv_role : step.send_role, peer;
                gboolean inside;

                if (!(way == 0 ? tt_op_receives(step.op) : tt_op_sends(step.op)))
                    continue;
                peer = tt_plan_peer(plan, rank, lane, role);
                inside = peer < P ? peer / G == rank / G : !tt_plan_switch(plan, peer).is_network;
                if (inside && outside_only)
                    continue;
                *(way == 0 ? &sum.in : &sum.out) += step.n_chunks;
            }
        }
    return sum;
}

static void
as_much_passes_as_is_claimed(void)
{
    static const struct {
        const char *name, *algo;
        TtPlanSpec spec;
        guint rank;
        gboolean outside;
        guint in, out, of; /* in chunks of 1/of of the vector */
    } rows[] = {
        { "nvls: (G+1)/G each way", "nvls", { .n_ranks = 8 }, 3, FALSE, 9, 9, 8 },
        { "nvls gathers: a part up, all down", "nvls", { .n_ranks = 8, .collective = TT_ALLGATHER }, 3,
          FALSE, 8, 1, 8 },
        { "nvls scatters: all up, a part down", "nvls",
          { .n_ranks = 8, .collective = TT_REDUCE_SCATTER }, 3, FALSE, 1, 8, 8 },
        { "a network switch takes n/H per head", "nvls", { .n_ranks = 8, .group_size = 4 }, 3, TRUE, 1, 1,
          4 },
        { "nvls-tree inside, one node", "nvls-tree", { .n_ranks = 4 }, 0, FALSE, 5, 5, 4 },
        { "nvls-tree across, an inner node: two children and a parent", "nvls-tree",
          { .n_ranks = 16, .group_size = 2 }, 4 * 2, TRUE, 3, 3, 2 },
        { "nvls-tree across, a leaf", "nvls-tree", { .n_ranks = 16, .group_size = 2 }, 1 * 2, TRUE, 1, 1,
          2 },
        { "collnet-chain: n out of the node", "collnet-chain", { .n_ranks = 12, .group_size = 4 }, 4, TRUE,
          1, 1, 1 },
        { "collnet-chain, the middle of the chain", "collnet-chain", { .n_ranks = 12, .group_size = 4 }, 6,
          FALSE, 2, 2, 1 },
        { "collnet-direct: (H-1) + (G-1) inside, 1 outside", "collnet-direct",
          { .n_ranks = 12, .group_size = 4 }, 6, FALSE, 7, 7, 4 },
        { "collnet-direct outside", "collnet-direct", { .n_ranks = 12, .group_size = 4 }, 6, TRUE, 1, 1, 4 },
        { "pat: the least possible", "pat", { .n_ranks = 11, .collective = TT_ALLGATHER }, 7, FALSE, 10,
          10, 11 },
        { "and back", "pat", { .n_ranks = 11, .collective = TT_REDUCE_SCATTER }, 7, FALSE, 10, 10, 11 },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        g_autoptr(TtPlan) plan = tt_plan_new(rows[r].algo, &rows[r].spec, NULL);
        Traffic got = traffic_of(plan, rows[r].rank, rows[r].outside);

        CHECK(plan->n_chunks == rows[r].of && got.in == rows[r].in && got.out == rows[r].out,
              "%s: %lu in, %lu out of %u", rows[r].name, got.in, got.out, plan->n_chunks);
    }
}

/* Only hops of powers of two, each way one direction; far ones first when gathering. */
static void
pat_hops_by_powers_of_two(void)
{
    for (guint P = 2; P <= 33; P++)
        for (guint gathers = 0; gathers < 2; gathers++)
            for (guint slots = 1; slots <= 8; slots *= 2) {
                TtPlanSpec spec = { .n_ranks = P,
                                    .collective = gathers ? TT_ALLGATHER : TT_REDUCE_SCATTER,
                                    .n_slots = slots };
                g_autoptr(TtPlan) plan = tt_plan_new("pat", &spec, NULL);
                guint last = gathers ? G_MAXUINT : 0, n_phases = 0;

                for (guint32 i = 0; i < tt_plan_n_steps(plan, 5 % P, 0); i++) {
                    TtStep step = tt_plan_step(plan, 5 % P, 0, i);
                    gboolean sends = tt_op_sends(step.op);
                    guint peer =
                        tt_plan_peer(plan, 5 % P, 0, sends ? step.send_role : step.recv_role);
                    guint down = (5 % P + P - peer) % P; /* how far below */
                    guint hop = sends == (gboolean)gathers ? down : P - down;

                    CHECK((hop & (hop - 1)) == 0 && (gathers ? hop <= last : hop >= last),
                          "%u ranks, step %u: %u after %u", P, i, hop, last);
                    n_phases += hop != last;
                    last = hop;
                }
                CHECK(1u << (n_phases - 1) < P && 1u << n_phases >= P, "%u ranks: %u phases", P, n_phases);
            }
}

/* --- all of them -------------------------------------------------------------------------------- */

static void
check_proof(const char *name, const TtPlanSpec *spec, guint32 seed)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(TtPlan) plan = tt_plan_new(name, spec, &error);

    if (!plan && strstr(error->message, "only allreduce across groups"))
        return;
    for (guint in_place = 0; plan && in_place <= 1; in_place++)
        if (!tt_verify(plan, in_place, NULL, &error))
            break;
    CHECK(plan && !error, "%s %s, %u ranks, groups of %u, %u channels, %u slots, %s, seed %u: %s", name,
          tt_collective_name(spec->collective), spec->n_ranks, spec->group_size, spec->n_channels,
          spec->n_slots, spec->slot_bytes ? "rounds" : "one round", seed, error ? error->message : "");
}

/* 1 .. 17 ranks in groups of any size, drawn wirings or none. */
static void
any_wiring_is_proved(void)
{
    guint32 seed = 0;

    for (guint a = 0; tt_algos[a]; a++)
        for (guint collective = 0; collective < TT_N_COLLECTIVES; collective++)
            for (guint P = 1; P <= 17 && tt_algos[a]->collectives & TT_BIT(collective); P++)
                for (guint group = 1; group <= MIN(P, 16); group++) {
                    GRand *rand = g_rand_new_with_seed(++seed);
                    guint channels = 1 + seed % 4;
                    Drawn drawn;
                    TtPlanSpec spec = { .collective = collective,
                                        .n_ranks = P,
                                        .count = 10007 * P,
                                        .root = seed % P,
                                        .n_channels = channels,
                                        .n_slots = 2 + seed % 7,
                                        .slot_bytes = seed / 4 % 2 ? 1024 : 0,
                                        .group_size = group };

                    draw_wiring(rand, group, &drawn);
                    spec.wiring = seed / 8 % 4 ? &drawn.wiring : NULL;
                    if (P % group == 0)
                        check_proof(tt_algos[a]->name, &spec, seed);
                    g_rand_free(rand);
                }
}

/* Larger shapes, as they are in use: nodes of 8 with few heads. */
static void
real_shapes_are_proved(void)
{
    static const char *const names[] = { "ring", "nccl-tree", "nvls", "nvls-tree", "collnet-chain",
                                         "collnet-direct" };

    for (guint n = 0; n < G_N_ELEMENTS(names); n++)
        for (guint n_nodes = 1; n_nodes <= 13; n_nodes += 4) {
            GRand *rand = g_rand_new_with_seed(n_nodes);
            Drawn drawn;
            TtPlanSpec spec = { .n_ranks = 8 * n_nodes, .count = 100000, .n_channels = 4,
                                .n_slots = 8, .slot_bytes = 4096, .group_size = 8,
                                .wiring = &drawn.wiring };

            draw_wiring(rand, 8, &drawn);
            check_proof(names[n], &spec, n_nodes);
            g_rand_free(rand);
        }
}

/* A node's switch has no wire to another node's rank; the network's has. */
static void
far_switches_are_refused(void)
{
    for (guint is_network = 0; is_network <= 1; is_network++) {
        TtPlanSpec spec = { .collective = TT_BROADCAST, .n_ranks = 2, .group_size = 1, .count = 100 };
        TtTable *table = tt_table_new(2, 1, 1);
        guint hub = tt_table_add_switch(table, (TtSwitchPlace){ is_network, 0 });
        const TtStep first = tt_copy_send(hub, TT_INPUT, TT_OUTPUT, 0);
        const TtStep middle = tt_recv_copy_send(0, 1, TT_SCRATCH, 0), last = tt_recv(hub, TT_OUTPUT, 0);
        g_autoptr(TtPlan) plan = NULL;
        g_autoptr(GError) error = NULL;

        g_array_append_val(tt_table_steps(table, 0, 0), first);
        g_array_append_val(tt_table_steps(table, hub, 0), middle);
        g_array_append_val(tt_table_steps(table, 1, 0), last);
        plan = tt_table_to_plan(table, "by hand", &spec, NULL);
        CU_ASSERT_FALSE(plan->uses_scratch); /* no rank does */
        if (is_network) {
            CU_ASSERT(tt_verify(plan, FALSE, NULL, &error));
            CHECK_NO_ERROR(error);
        } else {
            CU_ASSERT_FALSE(tt_verify(plan, FALSE, NULL, &error));
            CHECK_ERROR(error, TT_PLAN_ERROR, TT_PLAN_ERROR_INVALID, "only reaches its ranks");
        }
    }
}

int
main(void)
{
    CU_TestInfo tests[] = {
        { "bad wirings are named", bad_wirings_are_named },
        { "a plan keeps its own wiring", a_plan_keeps_its_own_wiring },
        { "rings follow the wiring", rings_follow_the_wiring },
        { "chains attach as the pattern says", chains_attach_as_the_pattern_says },
        { "halves of the channels take a tree each", halves_of_the_channels_take_a_tree_each },
        { "as much passes as is claimed", as_much_passes_as_is_claimed },
        { "pat hops by powers of two", pat_hops_by_powers_of_two },
        { "any wiring is proved", any_wiring_is_proved },
        { "real shapes are proved", real_shapes_are_proved },
        { "far switches are refused", far_switches_are_refused },
        CU_TEST_INFO_NULL,
    };

    return check_main("wiring", tests);
}
