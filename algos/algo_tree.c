/* tree - one binary tree, pipelined: reduce up and broadcast down at the same time, on two lanes.
 *
 * Virtual rank v (the root is 0) has parent (v-1)/2 and children 2v+1, 2v+2:
 *
 *              0            up lane     children -> me -> parent, reducing
 *            /   \          down lane   parent -> me -> children, copying
 *           1     2
 *          / \   / \        The root turns a slice round as soon as it is complete, so with many
 *         3   4 5   6       rounds both directions stay busy.
 *
 * Steps   up: one per child and a send, fused; down: the same
 * Wire    2n bytes leave an inner rank downwards, n upwards
 * Time    one round: alpha + 2n * beta per level and direction, less where a rank has one child;
 *         many rounds: about (2 * depth + rounds - 1) message times of 2n/rounds bytes
 * Source  Sanders, Speck & Traeff, Parallel Computing 35(12), 2009 (introduction)
 * Limits  any P; half the ranks are leaves whose sending side is half idle (see double-tree)
 */
#include "algos/algo.h"
#include "algos/trees.h"

#include <math.h>

enum { PARENT, N_ROLES = PARENT + 3 };
enum { UP, DOWN };

static gboolean
tree_init(TtPlan *plan, const char *args, GError **error)
{
    (void)args, (void)error;
    plan->n_roles = N_ROLES;
    plan->uses_scratch = plan->spec.collective == TT_REDUCE && plan->spec.n_ranks > 4;
    plan->lanes_per_channel = plan->spec.collective == TT_ALLREDUCE ? 2 : 1;
    return TRUE;
}

static guint32
tree_program(const TtPlan *plan, guint rank, guint channel)
{
    guint v = tt_virtual_rank(plan, channel, rank), P = plan->spec.n_ranks;

    return tt_tree_kind(2 * v + 2 < P ? 2 : 2 * v + 1 < P ? 1 : 0, v == 0);
}

static guint32
tree_n_steps(const TtPlan *plan, guint32 program, guint sub_lane)
{
    TtTreeNode node = tt_tree_node(plan, program, PARENT, 0);

    (void)sub_lane;
    return tt_tree_n_steps(node.n_children);
}

static TtStep
tree_step(const TtPlan *plan, guint32 program, guint sub_lane, guint32 i)
{
    TtTreeNode node = tt_tree_node(plan, program, PARENT, 0);
    gboolean allreduce = plan->spec.collective == TT_ALLREDUCE;

    if (plan->spec.collective == TT_REDUCE || (allreduce && sub_lane == UP))
        return tt_tree_up(&node, i);
    return tt_tree_down(&node, allreduce ? UP : TT_NO_LANE, FALSE, i);
}

static guint
tree_peer(const TtPlan *plan, guint rank, guint channel, guint role)
{
    guint v = tt_virtual_rank(plan, channel, rank), P = plan->spec.n_ranks;

    if (role == PARENT)
        return v == 0 ? TT_NO_RANK : tt_real_rank(plan, channel, (v - 1) / 2);
    return 2 * v + role < P ? tt_real_rank(plan, channel, 2 * v + role) : TT_NO_RANK;
}

/* When the sum is complete at the root of a tree of @P ranks. A child's message takes @b alone; two
 * that overlap share the parent's way in, and the second is in b after it started or 2b after the
 * first did, whichever is later. */
static double
up_s(guint P, double a, double b)
{
    guint last_level = 1, left, right;
    double early, late;

    if (((P + 1) & P) == 0) /* all levels full: children are always ready together */
        return (31 - __builtin_clz(P + 1) - 1) * (a + 2 * b);
    if (P == 2)
        return a + b;
    while (last_level * 2 <= P) /* room in the last level, where the tree may be ragged */
        last_level *= 2;
    left = (last_level - 2) / 2 + MIN(P - last_level + 1, last_level / 2);
    right = P - 1 - left;
    early = up_s(left, a, b);
    late = up_s(right, a, b);
    if (early > late) {
        double swap = early;

        early = late;
        late = swap;
    }
    return MAX(late + b, early + 2 * b) + a;
}

/* When the result is everywhere: down the left edge, which is the longest way; both children are
 * served at once. If the last level is a single rank, its parent serves it alone. */
static double
down_s(guint P, double a, double b)
{
    guint depth = 31 - __builtin_clz(P);

    return depth == 0 ? 0 : depth * (a + 2 * b) - (P == 1u << depth ? b : 0);
}

static double
tree_time_s(const TtPlan *plan, double alpha_s, double beta_s_per_byte)
{
    double message_s = (double)plan->spec.count * tt_type_bytes(plan->spec.type) * beta_s_per_byte;
    guint P = plan->spec.n_ranks;

    if (plan->n_rounds > 1 || (tt_channels_differ(plan) && plan->spec.collective == TT_ALLREDUCE))
        return NAN;
    return (plan->spec.collective == TT_BROADCAST ? 0 : up_s(P, alpha_s, message_s)) +
           (plan->spec.collective == TT_REDUCE ? 0 : down_s(P, alpha_s, message_s));
}

const TtAlgo tt_algo_tree = {
    .name = "tree",
    .summary = "pipelined binary tree: reduce up, broadcast down, both at once",
    .source = "Sanders, Speck & Traeff, Parallel Computing 35(12), 2009",
    .collectives = TT_BIT(TT_ALLREDUCE) | TT_BIT(TT_BROADCAST) | TT_BIT(TT_REDUCE),
    .init = tree_init,
    .program = tree_program,
    .n_steps = tree_n_steps,
    .step = tree_step,
    .peer = tree_peer,
    .time_s = tree_time_s,
};
