/* nccl-tree - chains inside nodes, a double binary tree across them: the tree NCCL builds.
 *
 * Nodes of a group's ranks are chains g0, g1, ... in the order of the channel; up is towards g0,
 * which faces the network. The first half of the channels crosses nodes by tree 0, the second by
 * tree 1 (see double-tree). Who takes a child node's message is the wiring's pattern. A parent node
 * with a child on either side:
 *
 *     balanced   child 1 --> g0 --> parent       split   g0 --> parent      first   child 0, 1
 *                            |                           |                             |
 *                child 0 --> g1               child 0 -> g1 <- child 1                 g0 --> parent
 *                            |                           |                             |
 *                            g2                          g2                            g1
 *
 * Two lanes per channel, up and down, pipelined by rounds; a rank has at most three children.
 *
 * Steps   up: one per child and a send, fused; down: the same
 * Wire    over both trees up to 3n bytes each way at the busiest rank, 2n between a node and others
 * Time    with many rounds n times the busiest way, at 2 (G - 1 + log2 M) hops of M groups of G
 * Source  NCCL src/graph/connect.cc and trees.cc; Sanders, Speck & Traeff, Parallel Computing 35(12)
 * Limits  any shape; with one group just a chain, with groups of one just the tree
 */
#include "algos/algo.h"
#include "algos/trees.h"

enum { PARENT, CHILD, MOST_CHILDREN = 3, N_ROLES = CHILD + MOST_CHILDREN };
enum { UP, DOWN, N_LANES };

static gboolean
nccl_tree_init(TtPlan *plan, const char *args, GError **error)
{
    (void)args, (void)error;
    plan->n_roles = N_ROLES;
    plan->lanes_per_channel = N_LANES;
    return TRUE;
}

/* NCCL finds channels, then uses each twice, once per tree. */
static guint
tree_of(const TtPlan *plan, guint channel)
{
    const TtWiring *wiring = plan->spec.wiring;
    guint half = wiring ? wiring->n_channels : (plan->spec.n_channels + 1) / 2;

    return channel / half % 2;
}

/* Where on the chain a child node's message goes in, by its side of the parent. */
static guint
attach_position(const TtPlan *plan, guint side)
{
    guint pattern = plan->spec.wiring ? plan->spec.wiring->tree_pattern : 0;

    if (plan->spec.group_size == 1 || pattern == TT_TREE_FIRST)
        return 0;
    return pattern == TT_TREE_SPLIT || side == 0 ? 1 : 0;
}

static guint
parent_of(const TtPlan *plan, guint rank, guint channel)
{
    guint n_nodes = tt_n_nodes(plan), tree = tree_of(plan, channel);
    guint node = rank / plan->spec.group_size, parent;
    guint position = tt_chain_position(plan, channel, rank);

    if (position > 0)
        return tt_chain_rank(plan, channel, node, position - 1);
    parent = tt_double_tree_parent(n_nodes, tree, node);
    if (parent == TT_NO_RANK)
        return TT_NO_RANK;
    return tt_chain_rank(plan, channel, parent,
                         attach_position(plan, tt_double_tree_side(n_nodes, tree, node)));
}

/* The next of the chain, then the child nodes that go in here. */
static guint
children_of(const TtPlan *plan, guint rank, guint channel, guint *children)
{
    guint n_nodes = tt_n_nodes(plan), tree = tree_of(plan, channel), n = 0;
    guint node = rank / plan->spec.group_size;
    guint position = tt_chain_position(plan, channel, rank);

    if (position + 1 < plan->spec.group_size)
        children[n++] = tt_chain_rank(plan, channel, node, position + 1);
    for (guint which = 0; which < 2; which++) {
        guint child = tt_double_tree_child(n_nodes, tree, node, which);

        if (child != TT_NO_RANK &&
            attach_position(plan, tt_double_tree_side(n_nodes, tree, child)) == position)
            children[n++] = tt_chain_rank(plan, channel, child, 0);
    }
    return n;
}

static guint32
nccl_tree_program(const TtPlan *plan, guint rank, guint channel)
{
    guint children[MOST_CHILDREN];

    return tt_tree_kind(children_of(plan, rank, channel, children),
                        parent_of(plan, rank, channel) == TT_NO_RANK);
}

static guint32
nccl_tree_n_steps(const TtPlan *plan, guint32 program, guint sub_lane)
{
    (void)sub_lane;
    return tt_tree_n_steps(tt_tree_node(plan, program, PARENT, 0).n_children);
}

static TtStep
nccl_tree_step(const TtPlan *plan, guint32 program, guint sub_lane, guint32 i)
{
    TtTreeNode node = tt_tree_node(plan, program, PARENT, 0);

    return sub_lane == UP ? tt_tree_up(&node, i) : tt_tree_down(&node, UP, FALSE, i);
}

static guint
nccl_tree_peer(const TtPlan *plan, guint rank, guint channel, guint role)
{
    guint children[MOST_CHILDREN];

    if (role == PARENT)
        return parent_of(plan, rank, channel);
    return role - CHILD < children_of(plan, rank, channel, children) ? children[role - CHILD]
                                                                     : TT_NO_RANK;
}

const TtAlgo tt_algo_nccl_tree = {
    .name = "nccl-tree",
    .summary = "chains inside groups, double binary tree across, as NCCL builds it",
    .source = "NCCL src/graph/connect.cc; Sanders, Speck & Traeff, Parallel Computing 35(12), 2009",
    .collectives = TT_BIT(TT_ALLREDUCE),
    .init = nccl_tree_init,
    .program = nccl_tree_program,
    .n_steps = nccl_tree_n_steps,
    .step = nccl_tree_step,
    .peer = nccl_tree_peer,
};
