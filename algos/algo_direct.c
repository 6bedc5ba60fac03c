/* direct - one shot: everyone sends everything to everyone and adds up what comes.
 *
 *     rank 0 --> 1, 2, 3      P = 4: all at once; each begins with its right neighbour, so that
 *     rank 1 --> 2, 3, 0      no two begin with the same
 *     rank 2 --> 3, 0, 1
 *     rank 3 --> 0, 1, 2
 *
 * Role d-1 is the rank d places further on. Allgather is the same with parts: a rank calls chunks
 * by distance, its own is 0.
 *
 * Steps   P-1 sends, P-1 receives
 * Wire    (P-1) * n bytes leave every rank ((P-1)/P * n for allgather)
 * Time    rounds * alpha + (P-1) * n * beta; allgather: rounds * alpha + (P-1)/P * n * beta
 * Source  the one-shot of NVIDIA's custom allreduce kernels and MSCCL's all-pairs
 * Limits  any P; each rank adds in an order of its own: floats may differ in the last bit
 *         between ranks
 */
#include "algos/algo.h"

static gboolean
is_gather(const TtPlan *plan)
{
    return plan->spec.collective == TT_ALLGATHER;
}

static gboolean
direct_init(TtPlan *plan, const char *args, GError **error)
{
    (void)args, (void)error;
    plan->n_roles = MAX(1, plan->spec.n_ranks - 1);
    plan->n_chunks = is_gather(plan) ? plan->spec.n_ranks : 1;
    return TRUE;
}

static guint32
direct_program(const TtPlan *plan, guint rank, guint channel)
{
    (void)plan, (void)rank, (void)channel;
    return 0;
}

static guint32
direct_n_steps(const TtPlan *plan, guint32 program, guint sub_lane)
{
    (void)program, (void)sub_lane;
    return MAX(1, 2 * (plan->spec.n_ranks - 1));
}

static TtStep
direct_step(const TtPlan *plan, guint32 program, guint sub_lane, guint32 i)
{
    guint P = plan->spec.n_ranks, from;

    (void)program, (void)sub_lane;
    if (P == 1)
        return tt_copy(TT_INPUT, TT_OUTPUT, 0);
    if (i == 0 && is_gather(plan))
        return tt_copy_send(0, TT_INPUT, TT_OUTPUT, 0);
    if (i < P - 1)
        return tt_send(i, is_gather(plan) ? TT_OUTPUT : TT_INPUT, 0);
    from = 2 * (P - 1) - 1 - i; /* the left neighbour sent first */
    if (is_gather(plan))
        return tt_recv(from, TT_OUTPUT, from + 1);
    return tt_recv_reduce(from, i == P - 1 ? TT_INPUT : TT_OUTPUT, TT_OUTPUT, 0);
}

static guint32
direct_chunk(const TtPlan *plan, guint rank, guint channel, guint32 distance)
{
    (void)channel;
    return is_gather(plan) ? (rank + distance) % plan->spec.n_ranks : 0;
}

static guint
direct_peer(const TtPlan *plan, guint rank, guint channel, guint role)
{
    (void)channel;
    return plan->spec.n_ranks == 1 ? TT_NO_RANK : (rank + role + 1) % plan->spec.n_ranks;
}

static double
direct_time_s(const TtPlan *plan, double alpha_s, double beta_s_per_byte)
{
    double P = plan->spec.n_ranks;
    double message = (double)plan->spec.count * tt_type_bytes(plan->spec.type) / plan->n_chunks;

    if (P == 1)
        return 0;
    return (double)plan->n_rounds * alpha_s + (P - 1) * message * beta_s_per_byte;
}

const TtAlgo tt_algo_direct = {
    .name = "direct",
    .summary = "one shot: everyone sends everything to everyone; one hop, most bytes",
    .source = "all-pairs, as in MSCCL and custom allreduce kernels",
    .collectives = TT_BIT(TT_ALLREDUCE) | TT_BIT(TT_ALLGATHER),
    .init = direct_init,
    .program = direct_program,
    .n_steps = direct_n_steps,
    .step = direct_step,
    .chunk = direct_chunk,
    .peer = direct_peer,
    .time_s = direct_time_s,
};
