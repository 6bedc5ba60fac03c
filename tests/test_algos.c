/* Every registered algorithm proved in every shape that matters, and mutants of each refuted. */
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
                !(tt_algos[o]->collectives & TT_BIT(TT_ALLREDUCE)) ||
                strcmp(tt_algos[o]->name, "hierarchical") == 0)
                continue;
            n_proved++;
            for (guint s = 0; s < G_N_ELEMENTS(shapes); s++)
                check_shapes(name, TT_ALLREDUCE, shapes[s][0], shapes[s][1]);
        }
    CHECK(n_proved >= 3 * 8, "%u", n_proved); /* ring, halving-doubling, two-shot x all but itself */
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

/* --- mutants: the seed of every one is in the message -------------------------------------------- */

typedef struct {
    guint rank, sub_lane, step;
} Spot;

static TtStep *
step_at(TtTable *table, Spot spot)
{
    return &g_array_index(tt_table_steps(table, spot.rank, spot.sub_lane), TtStep, spot.step);
}

typedef gboolean (*Suits)(const TtPlan *plan, const TtStep *step);

/* A step that suits, drawn evenly; FALSE if the plan has none. */
static gboolean
draw(TtTable *table, const TtPlan *plan, Suits suits, GRand *rand, Spot *spot)
{
    guint n = 0;

    for (guint rank = 0; rank < plan->spec.n_ranks; rank++)
        for (guint lane = 0; lane < plan->lanes_per_channel; lane++)
            for (guint i = 0; i < tt_table_steps(table, rank, lane)->len; i++) {
                Spot here = { rank, lane, i };

                if (suits(plan, step_at(table, here)) && g_rand_int_range(rand, 0, ++n) == 0)
                    *spot = here;
            }
    return n > 0;
}

/* Dependencies keep meaning the same steps when step @at of a lane comes or goes. */
static void
shift_dependencies(TtTable *table, const TtPlan *plan, Spot at, int by)
{
    for (guint lane = 0; lane < plan->lanes_per_channel; lane++)
        for (guint i = 0; i < tt_table_steps(table, at.rank, lane)->len; i++) {
            TtStep *step = step_at(table, (Spot){ at.rank, lane, i });

            if (step->dep_lane == at.sub_lane && step->dep_step >= at.step && step->dep_step > 0)
                step->dep_step += by;
        }
}

static gboolean
talks(const TtPlan *plan, const TtStep *step)
{
    (void)plan;
    return tt_op_sends(step->op) || tt_op_receives(step->op);
}

/* A connection then sends more than it receives, or the other way round. */
static gboolean
drop_step(TtTable *table, const TtPlan *plan, GRand *rand)
{
    Spot spot;

    if (!draw(table, plan, talks, rand, &spot))
        return FALSE;
    g_array_remove_index(tt_table_steps(table, spot.rank, spot.sub_lane), spot.step);
    shift_dependencies(table, plan, spot, -1);
    return TRUE;
}

static gboolean
talks_of_less_than_all(const TtPlan *plan, const TtStep *step)
{
    return talks(plan, step) && step->n_chunks < plan->n_chunks;
}

/* One side then means another span than the other. */
static gboolean
swap_chunk(TtTable *table, const TtPlan *plan, GRand *rand)
{
    TtStep *step;
    Spot spot;

    if (!draw(table, plan, talks_of_less_than_all, rand, &spot))
        return FALSE;
    step = step_at(table, spot);
    step->chunk = (step->chunk + g_rand_int_range(rand, 1, plan->n_chunks - step->n_chunks + 1)) %
                  (plan->n_chunks - step->n_chunks + 1);
    return TRUE;
}

static gboolean
spans_several(const TtPlan *plan, const TtStep *step)
{
    return talks(plan, step) && step->n_chunks > 1;
}

/* One side then moves half of what the other does. For plans of a single chunk, cut in two first. */
static gboolean
halve_span(TtTable *table, const TtPlan *plan, GRand *rand)
{
    TtStep *step;
    Spot spot;

    if (!draw(table, plan, spans_several, rand, &spot))
        return FALSE;
    step = step_at(table, spot);
    step->n_chunks /= 2;
    step->chunk += g_rand_boolean(rand) ? step->n_chunks : 0;
    return TRUE;
}

/* The same plan with every chunk cut in two. */
static TtPlan *
cut_finer(const TtPlan *plan)
{
    TtTable *table = tt_table_from_plan(plan);
    TtTable *finer = tt_table_new(plan->spec.n_ranks, 2 * plan->n_chunks, plan->lanes_per_channel);

    for (guint rank = 0; rank < plan->spec.n_ranks; rank++)
        for (guint lane = 0; lane < plan->lanes_per_channel; lane++)
            for (guint i = 0; i < tt_table_steps(table, rank, lane)->len; i++) {
                TtStep step = *step_at(table, (Spot){ rank, lane, i });

                step.chunk *= 2;
                step.n_chunks *= 2;
                g_array_append_val(tt_table_steps(finer, rank, lane), step);
            }
    tt_table_free(table);
    return tt_table_to_plan(finer, plan->name, &plan->spec, NULL);
}

/* Counts of two connections change by one on one side only. */
static gboolean
change_peer(TtTable *table, const TtPlan *plan, GRand *rand)
{
    guint P = plan->spec.n_ranks, other;
    guint32 *role;
    TtStep *step;
    Spot spot;

    if (P < 3 || !draw(table, plan, talks, rand, &spot))
        return FALSE;
    step = step_at(table, spot);
    role = !tt_op_receives(step->op) || (tt_op_sends(step->op) && g_rand_boolean(rand))
               ? &step->send_role
               : &step->recv_role;
    do
        other = g_rand_int_range(rand, 0, P);
    while (other == spot.rank || other == *role);
    *role = other;
    return TRUE;
}

static gboolean
keeps_a_sum(const TtPlan *plan, const TtStep *step)
{
    (void)plan;
    return tt_op_reduces(step->op) && tt_op_stores(step->op);
}

/* The sum holds this rank's contribution already. */
static gboolean
add_input_again(TtTable *table, const TtPlan *plan, GRand *rand)
{
    TtStep again;
    Spot spot;

    if (!draw(table, plan, keeps_a_sum, rand, &spot))
        return FALSE;
    again = *step_at(table, spot);
    again.op = TT_OP_REDUCE;
    again.src = TT_INPUT;
    again.dep_lane = TT_NO_LANE;
    spot.step++;
    shift_dependencies(table, plan, spot, 1);
    g_array_insert_val(tt_table_steps(table, spot.rank, spot.sub_lane), spot.step, again);
    return TRUE;
}

/* The step on the other side of the connection a step receives from: equally many come before. */
static Spot
sender_of(TtTable *table, Spot receiver)
{
    guint from = step_at(table, receiver)->recv_role;
    Spot spot = { from, receiver.sub_lane, 0 };
    guint n = 0;

    for (guint i = 0; i < receiver.step; i++) {
        const TtStep *step = step_at(table, (Spot){ receiver.rank, receiver.sub_lane, i });

        n += tt_op_receives(step->op) && step->recv_role == from;
    }
    for (;; spot.step++) {
        const TtStep *step = step_at(table, spot);

        if (tt_op_sends(step->op) && step->send_role == receiver.rank && n-- == 0)
            return spot;
    }
}

/* Sends a message that is added once more, and adds it. What a step sends must still lie somewhere,
 * and the receiver must keep its sum. */
static gboolean
add_message_again(TtTable *table, const TtPlan *plan, GRand *rand)
{
    TtStep *from, *to, send, add;
    Spot receiver, sender;

    if (!draw(table, plan, keeps_a_sum, rand, &receiver))
        return FALSE;
    to = step_at(table, receiver);
    if (to->op == TT_OP_REDUCE)
        return FALSE;
    sender = sender_of(table, receiver);
    from = step_at(table, sender);
    if (from->op == TT_OP_RECV_REDUCE_SEND)
        return FALSE;
    send = tt_span(tt_send(receiver.rank, tt_op_stores(from->op) ? from->dst : from->src, from->chunk),
                   from->n_chunks);
    add = tt_span(tt_recv_reduce(sender.rank, to->dst, to->dst, to->chunk), to->n_chunks);
    sender.step++;
    receiver.step++;
    shift_dependencies(table, plan, sender, 1);
    shift_dependencies(table, plan, receiver, 1);
    g_array_insert_val(tt_table_steps(table, sender.rank, sender.sub_lane), sender.step, send);
    g_array_insert_val(tt_table_steps(table, receiver.rank, receiver.sub_lane), receiver.step, add);
    return TRUE;
}

static gboolean
depends(const TtPlan *plan, const TtStep *step)
{
    (void)plan;
    return step->dep_lane != TT_NO_LANE;
}

/* In place every dependency of our algorithms guards memory that two lanes use. */
static gboolean
drop_dependency(TtTable *table, const TtPlan *plan, GRand *rand)
{
    Spot spot;

    if (!draw(table, plan, depends, rand, &spot))
        return FALSE;
    step_at(table, spot)->dep_lane = TT_NO_LANE;
    return TRUE;
}

typedef struct {
    const char *name;
    gboolean (*mutate)(TtTable *table, const TtPlan *plan, GRand *rand); /* FALSE: no place for it */
    gboolean in_place;  /* only there */
    const char *words;  /* in the error, or NULL */
    guint made;
} Mutation;

static void
check_mutant(Mutation *mutation, const TtPlan *plan, guint32 seed)
{
    GRand *rand = g_rand_new_with_seed(seed);
    TtTable *table = tt_table_from_plan(plan);
    g_autoptr(TtPlan) mutant = NULL;

    if (mutation->mutate(table, plan, rand)) {
        mutation->made++;
        mutant = tt_table_to_plan(table, plan->name, &plan->spec, NULL);
        for (guint in_place = mutation->in_place; in_place <= 1; in_place++) {
            g_autoptr(GError) error = NULL;
            gboolean good = tt_verify(mutant, in_place, NULL, &error);
            const char *text = error ? error->message : "accepted";

            CHECK(!good && strstr(text, "rank ") && strstr(text, "lane ") && strstr(text, "step ") &&
                      strstr(text, "chunk") && (!mutation->words || strstr(text, mutation->words)),
                  "%s, %s %s, %u ranks, seed %u: %s", mutation->name, plan->name,
                  tt_collective_name(plan->spec.collective), plan->spec.n_ranks, seed, text);
        }
    } else {
        tt_table_free(table);
    }
    g_rand_free(rand);
}

#define N_SEEDS 12

static void
every_mutant_is_refuted(void)
{
    Mutation mutations[] = {
        { "dropped step", drop_step, FALSE, NULL, 0 },
        { "swapped chunk", swap_chunk, FALSE, NULL, 0 },
        { "half a span", halve_span, FALSE, NULL, 0 },
        { "wrong peer", change_peer, FALSE, NULL, 0 },
        { "input added twice", add_input_again, FALSE, "counted twice", 0 },
        { "message added twice", add_message_again, FALSE, NULL, 0 },
        { "missing dependency", drop_dependency, TRUE, "hazard", 0 },
    };

    for (guint a = 0; tt_algos[a]; a++)
        for (guint collective = 0; collective < TT_N_COLLECTIVES; collective++)
            for (guint P = 4; P <= 9 && tt_algos[a]->collectives & TT_BIT(collective); P++) {
                TtPlanSpec spec = { .collective = collective, .n_ranks = P, .count = 1000, .root = P / 3,
                                    .group_size = P % 2 == 0 ? 2 : P == 9 ? 3 : 0 };
                g_autoptr(TtPlan) plan = tt_plan_new(tt_algos[a]->name, &spec, NULL);
                g_autoptr(TtPlan) finer = cut_finer(plan);

                check_plan(finer);
                for (guint m = 0; m < G_N_ELEMENTS(mutations); m++) {
                    gboolean reduces = tt_collective_reduces(collective);

                    if ((mutations[m].mutate == add_input_again ||
                         mutations[m].mutate == add_message_again) && !reduces)
                        continue;
                    for (guint32 seed = 0; seed < N_SEEDS; seed++)
                        check_mutant(&mutations[m], mutations[m].mutate == halve_span ? finer : plan,
                                     seed + 1000 * P);
                }
            }
    for (guint m = 0; m < G_N_ELEMENTS(mutations); m++)
        CHECK(mutations[m].made > 200, "%s: only %u", mutations[m].name, mutations[m].made);
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
                            { "every mutant is refuted", every_mutant_is_refuted },
                            { "one slot is too few for fused rings", one_slot_is_too_few_for_fused_rings },
                            { "closed forms are as computed by hand", closed_forms_are_as_computed_by_hand },
                            { "chains burst by slots", chains_burst_by_slots },
                            { "a proof takes less than a second", a_proof_takes_less_than_a_second },
                            CU_TEST_INFO_NULL };

    return check_main("algos", tests);
}
