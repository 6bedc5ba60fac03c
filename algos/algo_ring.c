/* ring - reduce-scatter, then allgather, around one ring.
 *
 * A rank calls chunks by distance: chunk d belongs to the rank d places further on. Chunk 1's tour
 * starts at every rank at once (it ends, one lap later, at the rank it belongs to):
 *
 *     P = 3     rank 0     rank 1     rank 2
 *     hop 0     c2 -> 1    c0 -> 2    c1 -> 0    send what belongs to my predecessor
 *     hop 1     c1 -> 1    c2 -> 2    c0 -> 0    reduce and pass on
 *     hop 2     c0 -> 1    c1 -> 2    c2 -> 0    my own is complete: keep it, pass it on
 *     hop 3     c2 -> 1    c0 -> 2    c1 -> 0    keep and pass on
 *
 * Broadcast and reduce run the same ring as a chain from or to the root, pipelined over rounds.
 *
 * Steps   2P-1 per rank and round: a receive fused with the next hop's send
 * Wire    2(P-1)/P * n bytes leave each rank, the least possible
 * Time    2(P-1) * (rounds * alpha + n/P * beta); half of it for reduce-scatter and allgather
 * Source  Patarasuk & Yuan, J. Parallel Distrib. Comput. 69(2), 2009
 * Limits  any P, 2 slots or more; chunks are summed in different rank orders, so floats
 *         are repeatable, not a left fold
 */
#include "algos/algo.h"

#include <math.h>

enum { PREV, NEXT, N_ROLES };

/* Broadcast and reduce are chains: their ranks differ by where they stand. */
enum { RING, CHAIN_ALONE, CHAIN_FIRST, CHAIN_INNER, CHAIN_LAST };

static gboolean
is_chain(const TtPlan *plan)
{
    return plan->spec.collective == TT_BROADCAST || plan->spec.collective == TT_REDUCE;
}

static gboolean
ring_init(TtPlan *plan, const char *args, GError **error)
{
    guint P = plan->spec.n_ranks;

    (void)args;
    plan->n_roles = N_ROLES;
    plan->n_chunks = is_chain(plan) ? 1 : P;
    /* A fused step keeps its incoming slot until it has an outgoing one. Once every rank has sent,
     * a ring of single slots is full all round and nobody can move. */
    if (plan->spec.n_slots == 1 && !is_chain(plan) &&
        P >= (plan->spec.collective == TT_ALLREDUCE ? 2 : 3)) {
        g_set_error(error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE,
                    "needs at least 2 slots: every rank forwards around the ring at once");
        return FALSE;
    }
    return TRUE;
}

/* Hops the data of a chain has made when it reaches this rank: broadcast starts at the root, reduce
 * ends there. */
static guint
chain_place(const TtPlan *plan, guint channel, guint rank)
{
    guint P = plan->spec.n_ranks;
    guint after_root = (tt_ring_position(plan, channel, rank) + P -
                        tt_ring_position(plan, channel, plan->spec.root)) %
                       P;

    return plan->spec.collective == TT_REDUCE ? (after_root + P - 1) % P : after_root;
}

static guint32
ring_program(const TtPlan *plan, guint rank, guint channel)
{
    guint P = plan->spec.n_ranks, place;

    if (!is_chain(plan))
        return RING;
    if (P == 1)
        return CHAIN_ALONE;
    place = chain_place(plan, channel, rank);
    return place == 0 ? CHAIN_FIRST : place == P - 1 ? CHAIN_LAST : CHAIN_INNER;
}

static guint32
ring_n_steps(const TtPlan *plan, guint32 program, guint sub_lane)
{
    guint P = plan->spec.n_ranks;

    (void)sub_lane;
    if (program != RING)
        return 1;
    return plan->spec.collective == TT_ALLREDUCE ? 2 * P - 1 : P;
}

static TtStep
chain_step(gboolean reduce, guint32 program)
{
    switch (program) {
    case CHAIN_FIRST:
        return reduce ? tt_send(NEXT, TT_INPUT, 0) : tt_copy_send(NEXT, TT_INPUT, TT_OUTPUT, 0);
    case CHAIN_INNER:
        return reduce ? tt_recv_reduce_send(PREV, NEXT, TT_INPUT, 0)
                      : tt_recv_copy_send(PREV, NEXT, TT_OUTPUT, 0);
    case CHAIN_LAST:
        return reduce ? tt_recv_reduce(PREV, TT_INPUT, TT_OUTPUT, 0) : tt_recv(PREV, TT_OUTPUT, 0);
    default: return tt_copy(TT_INPUT, TT_OUTPUT, 0);
    }
}

static TtStep
ring_step(const TtPlan *plan, guint32 program, guint sub_lane, guint32 i)
{
    guint P = plan->spec.n_ranks;

    (void)sub_lane;
    if (program != RING)
        return chain_step(plan->spec.collective == TT_REDUCE, program);
    if (P == 1)
        return tt_copy(TT_INPUT, TT_OUTPUT, 0);

    if (plan->spec.collective != TT_ALLGATHER) { /* the reducing lap */
        if (i == 0)
            return tt_send(NEXT, TT_INPUT, P - 1);
        if (i < P - 1)
            return tt_recv_reduce_send(PREV, NEXT, TT_INPUT, P - 1 - i);
        if (plan->spec.collective == TT_REDUCE_SCATTER)
            return tt_recv_reduce(PREV, TT_INPUT, TT_OUTPUT, 0);
        if (i == P - 1)
            return tt_recv_reduce_copy_send(PREV, NEXT, TT_INPUT, TT_OUTPUT, 0);
        i -= P - 1;
    }
    if (i == 0) /* the gathering lap */
        return tt_copy_send(NEXT, TT_INPUT, TT_OUTPUT, 0);
    if (i < P - 1)
        return tt_recv_copy_send(PREV, NEXT, TT_OUTPUT, P - i);
    return tt_recv(PREV, TT_OUTPUT, 1);
}

static guint32
ring_chunk(const TtPlan *plan, guint rank, guint channel, guint32 distance)
{
    guint P = plan->spec.n_ranks;
    guint position = tt_ring_position(plan, channel, rank) + distance;

    if (is_chain(plan))
        return 0;
    return tt_ring_rank(plan, channel, position >= P ? position - P : position);
}

static guint
ring_peer(const TtPlan *plan, guint rank, guint channel, guint role)
{
    guint P = plan->spec.n_ranks, position = tt_ring_position(plan, channel, rank);

    if (P == 1)
        return TT_NO_RANK;
    if (role == NEXT)
        return tt_ring_rank(plan, channel, position + 1 == P ? 0 : position + 1);
    return tt_ring_rank(plan, channel, position == 0 ? P - 1 : position - 1);
}

static double
ring_time_s(const TtPlan *plan, double alpha_s, double beta_s_per_byte)
{
    double P = plan->spec.n_ranks, n = (double)plan->spec.count * tt_type_bytes(plan->spec.type);
    double laps = plan->spec.collective == TT_ALLREDUCE ? 2 : 1;

    double R = plan->n_rounds, S = plan->spec.n_slots;
    double inject_s = n / R * beta_s_per_byte, hop_s = alpha_s + inject_s;

    if (!is_chain(plan))
        return laps * (P - 1) * (R * alpha_s + n / P * beta_s_per_byte);
    if (P == 1)
        return 0;
    if (tt_channels_differ(plan))
        return NAN; /* channels take different ways and do not all share each wire */
    /* The last slice makes all hops after the others have left: back to back if S slots cover a
     * hop, else in bursts of S slices, one burst per hop time. */
    if (S * inject_s > hop_s)
        return (P - 1) * hop_s + (R - 1) * inject_s;
    return (P - 1) * hop_s + floor((R - 1) / S) * hop_s + fmod(R - 1, S) * inject_s;
}

const TtAlgo tt_algo_ring = {
    .name = "ring",
    .summary = "reduce-scatter and allgather around a ring: least bytes, most hops",
    .source = "Patarasuk & Yuan, J. Parallel Distrib. Comput. 69(2), 2009",
    .collectives = TT_BIT(TT_ALLREDUCE) | TT_BIT(TT_REDUCE_SCATTER) | TT_BIT(TT_ALLGATHER) |
                   TT_BIT(TT_BROADCAST) | TT_BIT(TT_REDUCE),
    .init = ring_init,
    .program = ring_program,
    .n_steps = ring_n_steps,
    .step = ring_step,
    .chunk = ring_chunk,
    .peer = ring_peer,
    .time_s = ring_time_s,
};
