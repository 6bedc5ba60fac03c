/* Every registered algorithm proved in every shape that matters; test_mutants.c breaks them. */
#include "algos/algo.h"
#include "algos/table.h"
#include "algos/verify.h"
#include "tests/check.h"

#include <math.h>
#include <string.h>

/* Verifies a plan both ways; says what it was if it fails. */
static void
check_plan(const TtPlan *plan)
{
    for (guint in_place = 0; in_place <= 1; in_place++) {
        g_autoptr(GError) error = NULL;

        CHECK(tt_verify(plan, in_place, NULL, &error),
              "%s %s, %u ranks, groups of %u, root %u, %u channels, %u slots, %lu rounds, %s: %s",
              plan->name, tt_collective_name(plan->spec.collective), plan->spec.n_ranks,
              plan->spec.group_size, plan->spec.root, plan->spec.n_channels, plan->spec.n_slots,
              plan->n_rounds, in_place ? "in place" : "out of place", error ? error->message : "");
    }
}

static gboolean
has_root(guint collective)
{
    return collective == TT_BROADCAST || collective == TT_REDUCE;
}

/* Rings of fused steps fill up with one slot each, and say so. */
static gboolean
needs_two_slots(const char *name, guint collective)
{
    return !has_root(collective) && (strstr(name, "ring") || strcmp(name, "hierarchical") == 0);
}

/* The shapes of one algorithm, collective and number of ranks. Counts are odd; slot_bytes makes
 * several rounds. Refusals are allowed only where the algorithm's init says so. */
static void
check_shapes(const char *name, guint collective, guint P, guint group)
{
    const guint roots[] = { 0, P / 2, P - 1 };

    for (guint channels = 1; channels <= 3; channels++)
        for (guint slots = 1; slots <= 2; slots++)
            for (guint r = 0; r < (has_root(collective) ? 3 : 1); r++)
                for (guint rounds = 0; rounds <= 1; rounds++) {
                    TtPlanSpec spec = { .collective = collective,
                                        .n_ranks = P,
                                        .count = rounds ? 10007 * P : 1013,
                                        .root = roots[r],
                                        .type = TT_FLOAT32,
                                        .n_channels = channels,
                                        .n_slots = slots,
                                        .slot_bytes = rounds ? 1024 : 0,
                                        .group_size = group };
                    g_autoptr(GError) error = NULL;
                    g_autoptr(TtPlan) plan = tt_plan_new(name, &spec, &error);

                    if (!plan && slots == 1 && needs_two_slots(name, collective)) {
                        CHECK_ERROR(error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE, "at least 2 slots");
                        continue;
                    }
                    CHECK(plan != NULL, "%s", error ? error->message : "");
                    if (!plan)
                        return;
                    CHECK(!rounds || plan->n_rounds > 1, "%s", name);
                    check_plan(plan);
                }
}

static void
every_algorithm_is_proved(void)
{
    for (guint a = 0; tt_algos[a]; a++)
        for (guint collective = 0; collective < TT_N_COLLECTIVES; collective++)
            for (guint P = 1; P <= 33 && tt_algos[a]->collectives & TT_BIT(collective); P++)
                check_shapes(tt_algos[a]->name, collective, P, 0);
}

/* n_chunks, n_rounds and sizes do not change what is proved: the verifier treats every span as if
 * it held data. That no size crashes or overflows is another matter. */
static void
any_count_makes_a_plan(void)
{
    static const guint64 counts[] = { 0, 1, 2, 5, 1001, (1ull << 60) - 1 };

    for (guint a = 0; tt_algos[a]; a++)
        for (guint collective = 0; collective < TT_N_COLLECTIVES; collective++)
            for (guint c = 0;
                 c < G_N_ELEMENTS(counts) && tt_algos[a]->collectives & TT_BIT(collective); c++) {
                TtPlanSpec spec = { .collective = collective,
                                    .n_ranks = 6,
                                    .count = counts[c],
                                    .n_channels = 2,
                                    .slot_bytes = c < 5 ? 64 : 0 };
                g_autoptr(TtPlan) plan = tt_plan_new(tt_algos[a]->name, &spec, NULL);

                check_plan(plan);
            }
}

/* Inner parts by outer parts; groups that are everything, nothing, and in between. */
static void
any_hierarchy_is_proved(void)
{
    static const guint shapes[][2] = { { 1, 1 }, { 5, 1 }, { 7, 7 }, { 4, 2 },
                                       { 6, 2 }, { 6, 3 }, { 8, 4 }, { 15, 5 } };
    const guint halves = TT_BIT(TT_REDUCE_SCATTER) | TT_BIT(TT_ALLGATHER);
    guint n_proved = 0;

    for (guint i = 0; tt_algos[i]; i++)
        for (guint o = 0; tt_algos[o]; o++) {
            g_autofree char *name =
                g_strdup_printf("hierarchical:%s:%s", tt_algos[i]->name, tt_algos[o]->name);

            if ((tt_algos[i]->collectives & halves) != halves ||
                !(tt_algos[o]->collectives & TT_BIT(TT_ALLREDUCE)) || tt_algos[i]->switch_place ||
                tt_algos[o]->switch_place || /* a part has no switches */
                strcmp(tt_algos[o]->name, "hierarchical") == 0)
                continue;
            n_proved++;
            for (guint s = 0; s < G_N_ELEMENTS(shapes); s++)
                check_shapes(name, TT_ALLREDUCE, shapes[s][0], shapes[s][1]);
        }
    CHECK(n_proved >= 4 * 9, "%u", n_proved); /* ring, halving-doubling, two-shot, pat x all but itself */
}

static void
bad_hierarchies_are_named(void)
{
    static const struct {
        const char *name, *algo, *words;
        TtPlanSpec spec;
    } rows[] = {
        { "one part", "hierarchical:ring", "hierarchical:INNER:OUTER", { .n_ranks = 4 } },
        { "three parts", "hierarchical:ring:ring:ring", "INNER:OUTER", { .n_ranks = 4 } },
        { "empty parts", "hierarchical::", "unknown algorithm", { .n_ranks = 4 } },
        { "unknown part", "hierarchical:ring:rong", "outer part: unknown algorithm \"rong\"",
          { .n_ranks = 4, .group_size = 2 } },
        { "inner cannot scatter", "hierarchical:tree:ring", "inner part: tree cannot do reduce-scatter",
          { .n_ranks = 4, .group_size = 2 } },
        { "a part with switches", "hierarchical:nvls:ring", "inner part: nvls needs switches",
          { .n_ranks = 4, .group_size = 2 } },
        { "an outer one", "hierarchical:ring:collnet-chain", "outer part: collnet-chain needs switches",
          { .n_ranks = 4, .group_size = 2 } },
        { "itself", "hierarchical:ring:hierarchical", "cannot be a part of itself",
          { .n_ranks = 4, .group_size = 2 } },
        { "slots of the inner part", "hierarchical:ring:tree", "inner part: ring: needs at least 2",
          { .n_ranks = 8, .group_size = 4, .n_slots = 1 } },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(TtPlan) plan = tt_plan_new(rows[r].algo, &rows[r].spec, &error);

        CHECK_ROW(&rows[r], plan == NULL);
        CHECK_ERROR(error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE, rows[r].words);
    }
}

/* --- the double tree --------------------------------------------------------------------------- */

#define TREE_ROLES 3 /* parent, two children; those of tree 1 follow */

static guint
tree_parent(const TtPlan *plan, guint tree, guint rank)
{
    return tt_plan_peer(plan, rank, 0, tree * TREE_ROLES);
}

static gboolean
is_leaf(const TtPlan *plan, guint tree, guint rank)
{
    return tt_plan_peer(plan, rank, 0, tree * TREE_ROLES + 1) == TT_NO_RANK;
}

/* The published tables of NCCL's trees. */
static void
double_trees_are_those_of_nccl(void)
{
    static const struct { const char *name; guint n; int parents[2][8]; } rows[] = {
        { "4 ranks", 4, { { -1, 2, 0, 2 }, { 1, 3, 1, -1 } } },
        { "5 ranks", 5, { { -1, 2, 4, 2, 0 }, { 1, -1, 3, 0, 3 } } },
        { "6 ranks", 6, { { -1, 2, 4, 2, 0, 4 }, { 1, 5, 3, 1, 3, -1 } } },
        { "8 ranks", 8, { { -1, 2, 4, 2, 0, 6, 4, 6 }, { 1, 3, 1, 7, 5, 3, 5, -1 } } },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        TtPlanSpec spec = { .n_ranks = rows[r].n };
        g_autoptr(TtPlan) plan = tt_plan_new("double-tree", &spec, NULL);

        for (guint tree = 0; tree < 2; tree++)
            for (guint rank = 0; rank < rows[r].n; rank++)
                CHECK((int)tree_parent(plan, tree, rank) == rows[r].parents[tree][rank],
                      "%s, tree %u, rank %u: %d", rows[r].name, tree, rank,
                      (int)tree_parent(plan, tree, rank));
    }
}

static void
double_trees_are_trees(void)
{
    for (guint P = 2; P <= 70; P++) {
        TtPlanSpec spec = { .n_ranks = P };
        g_autoptr(TtPlan) plan = tt_plan_new("double-tree", &spec, NULL);
        guint limit = 2;

        while (1u << (limit - 2) < P)
            limit++;
        for (guint tree = 0; tree < 2; tree++)
            for (guint rank = 0; rank < P; rank++) {
                guint depth = 0, n_known = 0, up = tree_parent(plan, tree, rank);

                for (guint at = rank; tree_parent(plan, tree, at) != TT_NO_RANK && depth <= P; depth++)
                    at = tree_parent(plan, tree, at);
                CHECK(depth < limit, "%u ranks, tree %u, rank %u is %u deep", P, tree, rank, depth);
                for (guint child = 1; up != TT_NO_RANK && child < TREE_ROLES; child++)
                    n_known += tt_plan_peer(plan, up, 0, tree * TREE_ROLES + child) == rank;
                CHECK(n_known == (up == TT_NO_RANK ? 0 : 1), "%u ranks, tree %u, rank %u", P, tree, rank);
                CHECK(!is_leaf(plan, tree, rank) || !is_leaf(plan, 1 - tree, rank),
                      "%u ranks: rank %u is a leaf twice", P, rank);
            }
    }
}

/* Plans that fuse a receive with a send back into a full ring or pair need the second slot. */
static void
one_slot_is_too_few_for_fused_rings(void)
{
    static const struct { const char *name; guint n_ranks; } rows[] = {
        { "ring", 2 }, { "ring", 5 }, { "halving-doubling", 4 }, { "two-shot", 2 }, { "hierarchical", 6 },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        TtPlanSpec spec = { .n_ranks = rows[r].n_ranks, .count = 1000, .n_slots = 2 };
        g_autoptr(TtPlan) plan = tt_plan_new(rows[r].name, &spec, NULL);
        TtTable *table = tt_table_from_plan(plan);
        g_autoptr(TtPlan) starved = NULL;
        g_autoptr(GError) error = NULL;

        spec.n_slots = 1;
        starved = tt_table_to_plan(table, "starved", &spec, NULL);
        CHECK_ROW(&rows[r], !tt_verify(starved, FALSE, NULL, &error));
        CHECK_ERROR(error, TT_PLAN_ERROR, TT_PLAN_ERROR_INVALID, "deadlock: waits for a free slot (of 1)");
    }
}

/* --- times and speed ---------------------------------------------------------------------------- */

/* alpha = 10, beta = 1 per byte; 240 int8 = 240 bytes, so that n * beta = 240. */
static void
closed_forms_are_as_computed_by_hand(void)
{
    static const struct { const char *name, *algo; TtPlanSpec spec; double want; } rows[] = {
        { "ring of 4: 6 hops of 60", "ring", { .n_ranks = 4 }, 6 * (10 + 60) },
        { "its allgather: 3 hops", "ring", { .n_ranks = 4, .collective = TT_ALLGATHER }, 3 * (10 + 60) },
        { "chain of 4: 3 hops of all", "ring", { .n_ranks = 4, .collective = TT_REDUCE }, 3 * 250 },
        { "naive: 3 messages share the root's way in, then out", "naive", { .n_ranks = 4 },
          2 * (10 + 3 * 240) },
        { "one rank takes no time", "naive", { .n_ranks = 1 }, 0 },
        { "tree of 7: two levels, two children each, both ways", "tree", { .n_ranks = 7 },
          2 * 2 * (10 + 2 * 240) },
        { "tree of 2", "tree", { .n_ranks = 2 }, 2 * (10 + 240) },
        /* up: rank 1 has the sum of 1 and 3 at 250, when rank 2's message is in (at 250, from 0 on);
         * rank 1's own takes until 250 + 240 + 10 = 500. down: both children at 490, then 250 more. */
        { "tree of 4", "tree", { .n_ranks = 4 }, 500 + 490 + 250 },
        { "tree of 4, up only", "tree", { .n_ranks = 4, .collective = TT_REDUCE }, 500 },
        /* rank 1 has both its children at 490; rank 2's was in long before: 490 + 250 */
        { "tree of 5, up only", "tree", { .n_ranks = 5, .collective = TT_REDUCE }, 490 + 250 },
        { "binomial of 4: 2 hops up; down the root serves 2, then 1 more", "binomial", { .n_ranks = 4 },
          2 * 250 + (10 + 2 * 240) + 250 },
        { "recursive doubling of 8", "recursive-doubling", { .n_ranks = 8 }, 3 * 250 },
        { "halving-doubling of 4: halves, quarters, quarters, halves", "halving-doubling", { .n_ranks = 4 },
          2 * (10 + 120 + 10 + 60) },
        { "direct of 5", "direct", { .n_ranks = 5 }, 10 + 4 * 240 },
        { "direct of 5, parts", "direct", { .n_ranks = 5, .collective = TT_ALLGATHER }, 10 + 4 * 48 },
        { "two-shot of 5", "two-shot", { .n_ranks = 5 }, 2 * (10 + 4 * 48) },
        { "3 groups of 2: 120 inside, a ring of 3 on 120, 120 inside", "hierarchical",
          { .n_ranks = 6, .group_size = 2 }, (10 + 120) + 4 * (10 + 40) + (10 + 120) },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        TtPlanSpec spec = rows[r].spec;
        g_autoptr(TtPlan) plan = NULL;
        double got;

        spec.count = 240;
        spec.type = TT_INT8;
        plan = tt_plan_new(rows[r].algo, &spec, NULL);
        got = plan->algo->time_s(plan, 10, 1);
        CHECK(fabs(got - rows[r].want) < 1e-9, "%s: %g, wanted %g", rows[r].name, got, rows[r].want);
    }
}

/* Chains, 3 ranks, 240 bytes in 4 slices of 64, 64, 64, 48 bytes, taken as 60 each. */
static void
chains_burst_by_slots(void)
{
    static const struct { const char *name; guint slots; double alpha, want; } rows[] = {
        { "one slot: 3 slices before, then 2 hops", 1, 10, (2 + 3) * (10 + 60) },
        { "two slots cover a hop: back to back", 2, 10, 2 * (10 + 60) + 3 * 60 },
        { "a long way: two bursts of two", 2, 200, 2 * 260 + 1 * 260 + 1 * 60 },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        TtPlanSpec spec = { .collective = TT_BROADCAST, .n_ranks = 3, .count = 240, .type = TT_INT8,
                            .n_slots = rows[r].slots, .slot_bytes = 64 };
        g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);

        CU_ASSERT_EQUAL(plan->n_rounds, 4);
        CHECK(fabs(plan->algo->time_s(plan, rows[r].alpha, 1) - rows[r].want) < 1e-9, "%s: %g",
              rows[r].name, plan->algo->time_s(plan, rows[r].alpha, 1));
    }
}

static void
a_proof_takes_less_than_a_second(void)
{
    for (guint a = 0; tt_algos[a]; a++) {
        TtPlanSpec spec = { .n_ranks = 64, .count = 1 << 20, .n_channels = 2, .group_size = 8,
                            .slot_bytes = 4096 };
        g_autoptr(TtPlan) plan = tt_plan_new(tt_algos[a]->name, &spec, NULL);
        gint64 start_us = g_get_monotonic_time(), took_us;

        if (!(tt_algos[a]->collectives & TT_BIT(TT_ALLREDUCE))) {
            spec.collective = TT_ALLGATHER;
            plan = tt_plan_new(tt_algos[a]->name, &spec, NULL);
        }
        CU_ASSERT(tt_verify(plan, FALSE, NULL, NULL));
        took_us = g_get_monotonic_time() - start_us;
        CHECK(took_us < G_USEC_PER_SEC, "%s: %ld us", plan->name, (long)took_us);
    }
}

int
main(void)
{
    CU_TestInfo tests[] = { { "every algorithm is proved", every_algorithm_is_proved },
                            { "any count makes a plan", any_count_makes_a_plan },
                            { "any hierarchy is proved", any_hierarchy_is_proved },
                            { "bad hierarchies are named", bad_hierarchies_are_named },
                            { "double trees are those of NCCL", double_trees_are_those_of_nccl },
                            { "double trees are trees", double_trees_are_trees },
                            { "one slot is too few for fused rings", one_slot_is_too_few_for_fused_rings },
                            { "closed forms are as computed by hand", closed_forms_are_as_computed_by_hand },
                            { "chains burst by slots", chains_burst_by_slots },
                            { "a proof takes less than a second", a_proof_takes_less_than_a_second },
                            CU_TEST_INFO_NULL };

    return check_main("algos", tests);
}
