/* How the messages of a plan go, without an executor: the same table, filled from the plan. */
#include "algos/passing.h"

#define MOST_WORK (1u << 27) /* steps held against steps */

static guint32
connection_of(const TtPlan *plan, guint from, guint to)
{
    return from * tt_plan_n_agents(plan) + to;
}

static void
fill_lane(const TtPlan *plan, guint rank, guint l, TtPassLane *lane)
{
    for (guint32 i = 0; i < lane->n_steps; i++) {
        TtPassStep s = { .step = tt_plan_step(plan, rank, l, i),
                         .recv_peer = TT_NO_RANK,
                         .send_peer = TT_NO_RANK };

        if (tt_op_receives(s.step.op))
            s.recv_peer = tt_plan_peer(plan, rank, l, s.step.recv_role);
        if (tt_op_sends(s.step.op))
            s.send_peer = tt_plan_peer(plan, rank, l, s.step.send_role);
        if (s.recv_peer >= plan->spec.n_ranks) /* a plan that is wrong names nobody there */
            s.recv_peer = TT_NO_RANK;
        if (s.send_peer >= plan->spec.n_ranks)
            s.send_peer = TT_NO_RANK;
        if (s.recv_peer != TT_NO_RANK)
            s.recv_connection = connection_of(plan, s.recv_peer, rank);
        if (s.send_peer != TT_NO_RANK)
            s.send_connection = connection_of(plan, rank, s.send_peer);
        lane->steps[i] = s;
    }
}

/* Steps of all lanes; 0 if there are too many to look at. */
static gsize
count_steps(const TtPlan *plan)
{
    guint64 n = 0, work = 0;

    for (guint rank = 0; rank < plan->spec.n_ranks; rank++)
        for (guint l = 0; l < plan->n_lanes; l++) {
            guint64 steps = tt_plan_n_steps(plan, rank, l);

            n += steps;
            work += steps * steps;
            if (work > MOST_WORK || steps > TT_PASS_MOST_STEPS)
                return 0;
        }
    return n;
}

static void
choose_all(const TtPassing *table, guint n_ranks, guint ranks_per_node, TtPassed *passed)
{
    TtPassed **of = g_new(TtPassed *, (gsize)n_ranks * table->n_lanes);
    guint buffer, peer;
    guint32 step;

    for (gsize k = 0; k < (gsize)n_ranks * table->n_lanes; k++) {
        const TtPassLane *lane = &table->lanes[k];
        guint rank = k / table->n_lanes, l = k % table->n_lanes;

        of[k] = passed;
        passed += lane->n_steps;
        for (guint32 i = 0; i < lane->n_steps; i++)
            if (lane->steps[i].send_peer != TT_NO_RANK &&
                lane->steps[i].send_peer / ranks_per_node == rank / ranks_per_node)
                of[k][i].out = tt_passing_choose(table, rank, l, i, TRUE, &buffer);
    }
    for (gsize k = 0; k < (gsize)n_ranks * table->n_lanes; k++) {
        guint rank = k / table->n_lanes, l = k % table->n_lanes;

        for (guint32 i = 0; i < table->lanes[k].n_steps; i++)
            if (table->lanes[k].steps[i].recv_peer != TT_NO_RANK &&
                tt_passing_sender(table, rank, l, i, &peer, &step))
                of[k][i].in = of[(gsize)peer * table->n_lanes + l][step].out;
    }
    g_free(of);
}

TtPassed *
tt_passing_of_plan(const TtPlan *plan, guint ranks_per_node, gboolean in_place)
{
    gsize n_lanes = (gsize)plan->spec.n_ranks * plan->n_lanes;
    gsize n_steps = plan->n_switches ? 0 : count_steps(plan), first = 0;
    g_autofree TtPassStep *steps = NULL;
    g_autofree TtPassLane *lanes = NULL;
    TtPassed *passed;
    TtPassing table;

    if (n_steps == 0)
        return NULL;
    steps = g_new(TtPassStep, n_steps);
    lanes = g_new(TtPassLane, n_lanes);
    for (gsize k = 0; k < n_lanes; k++) {
        guint rank = k / plan->n_lanes, l = k % plan->n_lanes;

        lanes[k] = (TtPassLane){ steps + first, tt_plan_n_steps(plan, rank, l) };
        first += lanes[k].n_steps;
        fill_lane(plan, rank, l, &lanes[k]);
    }
    table = (TtPassing){ .lanes = lanes,
                         .n_lanes = plan->n_lanes,
                         .lanes_per_channel = plan->lanes_per_channel,
                         .in_place = in_place };
    passed = g_new0(TtPassed, n_steps);
    choose_all(&table, plan->spec.n_ranks, MAX(1, ranks_per_node), passed);
    return passed;
}

gboolean
tt_passing_is_whole(const TtPlan *plan, guint32 n_chunks)
{
    return n_chunks == 1 || (plan->spec.n_channels == 1 && plan->n_rounds == 1);
}
