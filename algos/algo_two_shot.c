/* two-shot - everyone sends every rank its part, adds up its own, and sends the sum to everyone.
 *
 * Role d-1 is the rank d places further on; a rank calls chunks by distance, its own is 0:
 *
 *     shot 1    chunk d --> rank + d, for d = 1 .. P-1     reduce-scatter
 *               chunk 0 <-- rank - 1, rank - 2, ...        add up
 *     shot 2    chunk 0 --> rank + d, for d = 1 .. P-1     allgather
 *               chunk -d <- rank - d                       keep
 *
 * Steps   4(P-1), one less where the last sum is fused with the first send of it
 * Wire    2(P-1)/P * n bytes leave every rank, the least possible, in messages of n/P
 * Time    2 * (rounds * alpha + (P-1)/P * n * beta); half of it for the halves
 * Source  the two-shot of MSCCL's all-pairs; also Bruck et al., IEEE TPDS 8(11), 1997
 * Limits  any P; wants a connection between every two ranks
 */
#include "algos/algo.h"

static gboolean
two_shot_init(TtPlan *plan, const char *args, GError **error)
{
    (void)args, (void)error;
    plan->n_roles = MAX(1, plan->spec.n_ranks - 1);
    plan->n_chunks = plan->spec.n_ranks;
    return TRUE;
}

static guint32
two_shot_program(const TtPlan *plan, guint rank, guint channel)
{
    (void)plan, (void)rank, (void)channel;
    return 0;
}

static gboolean
is_fused(const TtPlan *plan)
{
    /* With two ranks and a single slot, each would wait with the other's message still in its slot.
     */
    return plan->spec.collective == TT_ALLREDUCE &&
           (plan->spec.n_ranks > 2 || plan->spec.n_slots > 1);
}

static guint32
two_shot_n_steps(const TtPlan *plan, guint32 program, guint sub_lane)
{
    guint shots = plan->spec.collective == TT_ALLREDUCE ? 2 : 1;

    (void)program, (void)sub_lane;
    if (plan->spec.n_ranks == 1)
        return 1;
    return shots * 2 * (plan->spec.n_ranks - 1) - (is_fused(plan) ? 1 : 0);
}

/* Step i of the first shot; from the last on, the sum is complete. */
static TtStep
scatter_step(const TtPlan *plan, guint32 i)
{
    guint n_peers = plan->spec.n_ranks - 1;
    TtBuffer local = i == n_peers ? TT_INPUT : TT_OUTPUT;
    guint from = 2 * n_peers - 1 - i; /* the left neighbour sent first */

    if (i < n_peers)
        return tt_send(i, TT_INPUT, i + 1);
    if (i + 1 == 2 * n_peers && is_fused(plan))
        return tt_recv_reduce_copy_send(from, 0, local, TT_OUTPUT, 0);
    return tt_recv_reduce(from, local, TT_OUTPUT, 0);
}

static TtStep
gather_step(const TtPlan *plan, guint32 i)
{
    guint n_peers = plan->spec.n_ranks - 1;
    guint from = 2 * n_peers - 1 - i;

    if (i == 0 && plan->spec.collective == TT_ALLGATHER)
        return tt_copy_send(0, TT_INPUT, TT_OUTPUT, 0);
    return i < n_peers ? tt_send(i, TT_OUTPUT, 0) : tt_recv(from, TT_OUTPUT, from + 1);
}

static TtStep
two_shot_step(const TtPlan *plan, guint32 program, guint sub_lane, guint32 i)
{
    guint n_scatter = 2 * (plan->spec.n_ranks - 1);

    (void)program, (void)sub_lane;
    if (plan->spec.n_ranks == 1)
        return tt_copy(TT_INPUT, TT_OUTPUT, 0);
    if (plan->spec.collective == TT_ALLGATHER)
        return gather_step(plan, i);
    if (i < n_scatter)
        return scatter_step(plan, i);
    return gather_step(plan, i - n_scatter + (is_fused(plan) ? 1 : 0));
}

static guint32
two_shot_chunk(const TtPlan *plan, guint rank, guint channel, guint32 distance)
{
    (void)channel;
    return (rank + distance) % plan->spec.n_ranks;
}

static guint
two_shot_peer(const TtPlan *plan, guint rank, guint channel, guint role)
{
    (void)channel;
    return plan->spec.n_ranks == 1 ? TT_NO_RANK : (rank + role + 1) % plan->spec.n_ranks;
}

static double
two_shot_time_s(const TtPlan *plan, double alpha_s, double beta_s_per_byte)
{
    double P = plan->spec.n_ranks, n = (double)plan->spec.count * tt_type_bytes(plan->spec.type);
    double shots = plan->spec.collective == TT_ALLREDUCE ? 2 : 1;

    if (P == 1)
        return 0;
    return shots * ((double)plan->n_rounds * alpha_s + (P - 1) / P * n * beta_s_per_byte);
}

const TtAlgo tt_algo_two_shot = {
    .name = "two-shot",
    .summary =
        "reduce-scatter and allgather in one hop each: two hops, least bytes, all pairs talk",
    .source = "all-pairs, as in MSCCL and custom allreduce kernels",
    .collectives = TT_BIT(TT_ALLREDUCE) | TT_BIT(TT_REDUCE_SCATTER) | TT_BIT(TT_ALLGATHER),
    .init = two_shot_init,
    .program = two_shot_program,
    .n_steps = two_shot_n_steps,
    .step = two_shot_step,
    .chunk = two_shot_chunk,
    .peer = two_shot_peer,
    .time_s = two_shot_time_s,
};
