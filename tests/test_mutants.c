/* Mutants of every registered algorithm, each refuted by name: a verifier that catches what it claims to. */
#include "algos/algo.h"
#include "algos/table.h"
#include "algos/verify.h"
#include "tests/check.h"

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

    for (guint rank = 0; rank < tt_plan_n_agents(plan); rank++)
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

    for (guint agent = plan->spec.n_ranks; agent < tt_plan_n_agents(plan); agent++)
        tt_table_add_switch(finer, tt_plan_switch(plan, agent));
    for (guint rank = 0; rank < tt_plan_n_agents(plan); rank++)
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
    guint P = tt_plan_n_agents(plan), other;
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

    if (!draw(table, plan, keeps_a_sum, rand, &spot) || spot.rank >= plan->spec.n_ranks)
        return FALSE; /* a switch has no input to add */
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

/* In place every dependency of our algorithms guards memory that two lanes use; in the scratch of
 * switches, what was never stored may be met first. */
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
            const char *words = plan->n_switches > 0 && mutation->mutate == drop_dependency &&
                                        strstr(text, "scratch chunk")
                                    ? "nothing was stored yet"
                                    : mutation->words;

            CHECK(!good && strstr(text, "rank ") && strstr(text, "lane ") && strstr(text, "step ") &&
                      strstr(text, "chunk") && (!words || strstr(text, words)),
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
                g_autoptr(TtPlan) finer = NULL;

                if (!plan) { /* nvls: only an allreduce goes beyond one group */
                    spec.group_size = 0;
                    plan = tt_plan_new(tt_algos[a]->name, &spec, NULL);
                }
                finer = cut_finer(plan);
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

int
main(void)
{
    CU_TestInfo tests[] = { { "every mutant is refuted", every_mutant_is_refuted },
                            CU_TEST_INFO_NULL };

    return check_main("mutants", tests);
}
