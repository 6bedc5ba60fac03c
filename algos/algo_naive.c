/* naive - everyone sends everything to the root, which adds it up and sends the result to everyone.
 *
 *       1   2   3          1   2   3
 *        \  |  /    then    \  |  /        the root takes its leaves one after the other
 *           0                  0
 *
 * Steps   root: 2(P-1), the last receive fused with the first send; leaf: 2
 * Wire    (P-1) * n bytes enter the root, as many leave it
 * Time    one round: 2 * (alpha + (P-1) * n * beta); half of it for broadcast and reduce
 * Source  what one writes first; the yardstick for all others
 * Limits  any P; the root's wires are the bottleneck
 */
#include "algos/algo.h"

#include <math.h>

enum { ALONE, ROOT, LEAF };

#define TO_ROOT 0 /* a leaf's only role; the root's roles are its leaves, by distance - 1 */

static gboolean
naive_init(TtPlan *plan, const char *args, GError **error)
{
    (void)args, (void)error;
    plan->n_roles = MAX(1, plan->spec.n_ranks - 1);
    return TRUE;
}

static guint32
naive_program(const TtPlan *plan, guint rank, guint channel)
{
    return plan->spec.n_ranks == 1                     ? ALONE
           : tt_virtual_rank(plan, channel, rank) == 0 ? ROOT
                                                       : LEAF;
}

static guint32
naive_n_steps(const TtPlan *plan, guint32 program, guint sub_lane)
{
    guint n_leaves = plan->spec.n_ranks - 1;
    gboolean allreduce = plan->spec.collective == TT_ALLREDUCE;

    (void)sub_lane;
    if (program == ROOT)
        return allreduce ? 2 * n_leaves - 1 : n_leaves;
    return program == LEAF && allreduce ? 2 : 1;
}

static TtStep
root_step(const TtPlan *plan, guint32 i)
{
    guint n_leaves = plan->spec.n_ranks - 1;
    TtBuffer local = i == 0 ? TT_INPUT : TT_OUTPUT;

    if (plan->spec.collective == TT_BROADCAST)
        return i == 0 ? tt_copy_send(0, TT_INPUT, TT_OUTPUT, 0) : tt_send(i, TT_OUTPUT, 0);
    if (plan->spec.collective == TT_REDUCE || i + 1 < n_leaves)
        return tt_recv_reduce(i, local, TT_OUTPUT, 0);
    if (i + 1 == n_leaves)
        return tt_recv_reduce_copy_send(i, 0, local, TT_OUTPUT, 0);
    return tt_send(i + 1 - n_leaves, TT_OUTPUT, 0);
}

static TtStep
naive_step(const TtPlan *plan, guint32 program, guint sub_lane, guint32 i)
{
    (void)sub_lane;
    if (program == ALONE)
        return tt_copy(TT_INPUT, TT_OUTPUT, 0);
    if (program == ROOT)
        return root_step(plan, i);
    if (i == 0 && plan->spec.collective != TT_BROADCAST)
        return tt_send(TO_ROOT, TT_INPUT, 0);
    return tt_recv(TO_ROOT, TT_OUTPUT, 0);
}

static guint
naive_peer(const TtPlan *plan, guint rank, guint channel, guint role)
{
    guint root = tt_real_rank(plan, channel, 0);

    if (plan->spec.n_ranks == 1)
        return TT_NO_RANK;
    if (rank == root)
        return tt_real_rank(plan, channel, role + 1);
    return role == TO_ROOT ? root : TT_NO_RANK;
}

static double
naive_time_s(const TtPlan *plan, double alpha_s, double beta_s_per_byte)
{
    double message_s = (double)plan->spec.count * tt_type_bytes(plan->spec.type) * beta_s_per_byte;
    guint P = plan->spec.n_ranks;

    if (P == 1)
        return 0;
    if (plan->n_rounds > 1 || (tt_channels_differ(plan) && plan->spec.collective == TT_ALLREDUCE))
        return NAN;
    return (plan->spec.collective == TT_ALLREDUCE ? 2 : 1) * (alpha_s + (P - 1) * message_s);
}

const TtAlgo tt_algo_naive = {
    .name = "naive",
    .summary = "gather at a root, broadcast from it: simple, and the root is the bottleneck",
    .source = "folklore",
    .collectives = TT_BIT(TT_ALLREDUCE) | TT_BIT(TT_BROADCAST) | TT_BIT(TT_REDUCE),
    .init = naive_init,
    .program = naive_program,
    .n_steps = naive_n_steps,
    .step = naive_step,
    .peer = naive_peer,
    .time_s = naive_time_s,
};
