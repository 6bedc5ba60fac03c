#include "algos/verify_run.h"

static gboolean
check_span(const TtProof *run, const TtPlace *place, GError **error)
{
    const TtStep *step = &place->what;
    const TtPlan *plan = run->plan;

    if (step->op == TT_OP_NOP)
        return TRUE;
    if (step->n_chunks < 1 || step->n_chunks > plan->max_span)
        return tt_place_error(place, TT_WHOLE_SPAN, error, "moves %u chunks, must be 1 .. %u",
                              step->n_chunks, plan->max_span);
    if (step->chunk >= plan->n_chunks || step->n_chunks > plan->n_chunks - step->chunk)
        return tt_place_error(place, TT_WHOLE_SPAN, error, "the plan has chunks 0 .. %u only",
                              plan->n_chunks - 1);
    return TRUE;
}

static gboolean
check_buffer(const TtProof *run, const TtPlace *place, guint buffer, gboolean stores,
             GError **error)
{
    const TtStep *step = &place->what;
    TtRange held;

    if (buffer >= TT_N_BUFFERS)
        return tt_place_error(place, TT_WHOLE_SPAN, error, "there is no buffer %u", buffer);
    if (stores && buffer == TT_INPUT && !run->cells->in_place)
        return tt_place_error(place, TT_WHOLE_SPAN, error,
                              "writes to the input, which out of place must stay as it is");
    held = tt_cells_held(run->cells, place->rank, buffer);
    if (held.count == 0)
        return tt_place_error(place, TT_WHOLE_SPAN, error, "this rank has no %s buffer",
                              tt_buffer_name(buffer));
    if (step->chunk < held.first || step->chunk + step->n_chunks > held.first + held.count)
        return tt_place_error(place, TT_WHOLE_SPAN, error,
                              "the %s of this rank holds chunks %" G_GUINT64_FORMAT
                              " .. %" G_GUINT64_FORMAT " only",
                              tt_buffer_name(buffer), held.first, held.first + held.count - 1);
    return TRUE;
}

/* A node's switch has wires to the ranks of its node, the network's to every rank. */
static gboolean
is_wired(const TtPlan *plan, guint agent, guint other)
{
    TtSwitchPlace place;

    if (agent < plan->spec.n_ranks)
        return TRUE;
    place = tt_plan_switch(plan, agent);
    return other < plan->spec.n_ranks &&
           (place.is_network || other / plan->spec.group_size == place.node);
}

static gboolean
check_peer(const TtProof *run, const TtPlace *place, guint role, const char *what, guint *peer,
           GError **error)
{
    guint rank;

    if (role >= run->plan->n_roles)
        return tt_place_error(place, TT_WHOLE_SPAN, error, "%s role %u, must be 0 .. %u", what,
                              role, run->plan->n_roles - 1);
    rank = tt_plan_peer(run->plan, place->rank, place->lane, role);
    if (rank >= tt_plan_n_agents(run->plan))
        return tt_place_error(place, TT_WHOLE_SPAN, error,
                              "%s role %u, but this rank has no such peer", what, role);
    if (rank == place->rank)
        return tt_place_error(place, TT_WHOLE_SPAN, error, "%s itself", what);
    if (!is_wired(run->plan, place->rank, rank) || !is_wired(run->plan, rank, place->rank))
        return tt_place_error(place, TT_WHOLE_SPAN, error,
                              "%s %u, but the switch of a node only reaches its ranks", what, rank);
    *peer = rank;
    return TRUE;
}

static gboolean
check_dependency(const TtProof *run, const TtPlace *place, GError **error)
{
    guint first = run->channel * run->n_sub_lanes;
    guint lane = place->what.dep_lane;
    guint32 n_steps;

    if (lane == TT_NO_LANE)
        return TRUE;
    if (lane < first || lane >= first + run->n_sub_lanes)
        return tt_place_error(place, TT_WHOLE_SPAN, error,
                              "depends on lane %u, which is not one of this channel's (%u .. %u)",
                              lane, first, first + run->n_sub_lanes - 1);
    n_steps = run->lanes[place->rank * run->n_sub_lanes + lane - first].n_steps;
    if (place->what.dep_step >= n_steps)
        return tt_place_error(place, TT_WHOLE_SPAN, error,
                              "depends on step %u of lane %u, which has %u steps",
                              place->what.dep_step, lane, n_steps);
    return TRUE;
}

/* Reads the step the lane stands before, checks it and finds its connections. */
gboolean
tt_proof_fetch(TtProof *run, TtProofLane *lane, GError **error)
{
    guint from = TT_NO_RANK, to = TT_NO_RANK;
    TtPlace place;
    guint op;

    lane->step = tt_plan_step(run->plan, lane->rank,
                              run->channel * run->n_sub_lanes + lane->sub_lane, lane->at);
    place = tt_proof_place(run, lane);
    op = lane->step.op;
    if (op >= TT_N_OPS)
        return tt_place_error(&place, TT_WHOLE_SPAN, error, "there is no operation %u", op);
    if (!check_span(run, &place, error) || !check_dependency(run, &place, error))
        return FALSE;
    if (tt_op_loads(op) && !check_buffer(run, &place, lane->step.src, FALSE, error))
        return FALSE;
    if (tt_op_stores(op) && !check_buffer(run, &place, lane->step.dst, TRUE, error))
        return FALSE;
    if (tt_op_receives(op) &&
        !check_peer(run, &place, lane->step.recv_role, "receives from", &from, error))
        return FALSE;
    if (tt_op_sends(op) && !check_peer(run, &place, lane->step.send_role, "sends to", &to, error))
        return FALSE;
    lane->in = from == TT_NO_RANK ? TT_NO_WIRE
                                  : tt_wires_find(&run->wires, from, lane->rank, lane->sub_lane);
    lane->out =
        to == TT_NO_RANK ? TT_NO_WIRE : tt_wires_find(&run->wires, lane->rank, to, lane->sub_lane);
    return TRUE;
}
