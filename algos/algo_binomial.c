/* binomial - reduce up a binomial tree, broadcast down the same one.
 *
 * Virtual rank v (the root is 0) gives its sum to v minus its lowest set bit. Before that it takes
 * in v+1, v+2, v+4, ... up to that bit:
 *
 *          0              up      nearest child first: it has the smallest subtree, ready first
 *        / | \            down    farthest child first: it has the longest way to go
 *       4  2  1
 *      /|  |
 *     6 5  3              Up and down run on two lanes, so rounds overlap.
 *     |
 *     7
 *
 * Steps   up: one per child and a send, fused; down: the same
 * Wire    up to n*log2 P bytes leave (and enter) the root
 * Time    one round, P = 2^d: up d * (alpha + n * beta); down d * alpha + d(d+1)/2 * n * beta,
 *         since a rank serves its children at once
 * Source  Thakur, Rabenseifner & Gropp, Int. J. High Perf. Comp. Appl. 19(1), 2005
 * Limits  any P; the root's wires carry log2 P times the vector
 */
#include "algos/algo.h"
#include "algos/trees.h"

#include <math.h>

enum { PARENT, CHILD0 };
enum { UP, DOWN };

static guint
ceil_log2(guint n)
{
    return n <= 1 ? 0 : 32 - __builtin_clz(n - 1);
}

static gboolean
binomial_init(TtPlan *plan, const char *args, GError **error)
{
    (void)args, (void)error;
    plan->n_roles = CHILD0 + ceil_log2(plan->spec.n_ranks);
    /* the first inner rank with two children is 4, and 6 the second of them */
    plan->uses_scratch = plan->spec.collective == TT_REDUCE && plan->spec.n_ranks > 6;
    plan->lanes_per_channel = plan->spec.collective == TT_ALLREDUCE ? 2 : 1;
    return TRUE;
}

/* Child j is v + 2^j, for all 2^j below v's lowest set bit, as far as there are ranks. */
static guint
count_children(const TtPlan *plan, guint v)
{
    guint by_bit = v == 0 ? 32 : (guint)__builtin_ctz(v);

    return MIN(by_bit, ceil_log2(plan->spec.n_ranks - v));
}

static guint32
binomial_program(const TtPlan *plan, guint rank, guint channel)
{
    guint v = tt_virtual_rank(plan, channel, rank);

    return tt_tree_kind(count_children(plan, v), v == 0);
}

static guint32
binomial_n_steps(const TtPlan *plan, guint32 program, guint sub_lane)
{
    TtTreeNode node = tt_tree_node(plan, program, PARENT, 0);

    (void)sub_lane;
    return tt_tree_n_steps(node.n_children);
}

static TtStep
binomial_step(const TtPlan *plan, guint32 program, guint sub_lane, guint32 i)
{
    TtTreeNode node = tt_tree_node(plan, program, PARENT, 0);
    gboolean allreduce = plan->spec.collective == TT_ALLREDUCE;

    if (plan->spec.collective == TT_REDUCE || (allreduce && sub_lane == UP))
        return tt_tree_up(&node, i);
    return tt_tree_down(&node, allreduce ? UP : TT_NO_LANE, TRUE, i);
}

static guint
binomial_peer(const TtPlan *plan, guint rank, guint channel, guint role)
{
    guint v = tt_virtual_rank(plan, channel, rank);

    if (role == PARENT)
        return v == 0 ? TT_NO_RANK : tt_real_rank(plan, channel, v & (v - 1));
    return role - CHILD0 < count_children(plan, v)
               ? tt_real_rank(plan, channel, v + (1u << (role - CHILD0)))
               : TT_NO_RANK;
}

static double
binomial_time_s(const TtPlan *plan, double alpha_s, double beta_s_per_byte)
{
    double message_s = (double)plan->spec.count * tt_type_bytes(plan->spec.type) * beta_s_per_byte;
    double d = ceil_log2(plan->spec.n_ranks);
    double up_s = d * (alpha_s + message_s), down_s = d * alpha_s + d * (d + 1) / 2 * message_s;

    if (plan->n_rounds > 1 || (tt_channels_differ(plan) && plan->spec.collective == TT_ALLREDUCE) ||
        1u << (guint)d != plan->spec.n_ranks)
        return NAN;
    return (plan->spec.collective == TT_BROADCAST ? 0 : up_s) +
           (plan->spec.collective == TT_REDUCE ? 0 : down_s);
}

const TtAlgo tt_algo_binomial = {
    .name = "binomial",
    .summary = "binomial tree: fewest hops, the root's wires carry log2 P times the data",
    .source = "Thakur, Rabenseifner & Gropp, Int. J. High Perf. Comp. Appl. 19(1), 2005",
    .collectives = TT_BIT(TT_ALLREDUCE) | TT_BIT(TT_BROADCAST) | TT_BIT(TT_REDUCE),
    .init = binomial_init,
    .program = binomial_program,
    .n_steps = binomial_n_steps,
    .step = binomial_step,
    .peer = binomial_peer,
    .time_s = binomial_time_s,
};
