/* double-tree - two binary trees, each for half of the data, so that everyone sends both ways.
 *
 * Leaves of one tree are inner ranks of the other. P = 8:
 *
 *            0                          7
 *            |                          |
 *            4                          3            rank r at height b, its lowest set bit:
 *          /   \                      /   \            parent    (r xor b) or 2b, if there is one,
 *         2     6                    5     1                     else r xor b
 *        / \   / \                  / \   / \          children  r - b/2, and r + the largest of
 *       1   3 5   7                6   4 2   0                   b/2, b/4, ... that exists
 *         tree 0                     tree 1
 *
 * The other tree is the first mirrored (P even) or shifted by one (P odd). Four lanes per channel:
 * up and down of tree 0 carry chunk 0, those of tree 1 chunk 1.
 *
 * Steps   per tree, up: one per child and a send, fused; down: the same
 * Wire    about 2n bytes leave every rank, half of them upwards
 * Time    with many rounds about 2n * beta, at a depth of log2 P hops: near the ring's bandwidth
 * Source  Sanders, Speck & Traeff, Parallel Computing 35(12), 2009; the parents are those of NCCL
 * Limits  any P; allreduce only, the two trees have different roots
 */
#include "algos/algo.h"
#include "algos/trees.h"

enum { PARENT, CHILD0, CHILD1, N_TREE_ROLES };
enum { UP, DOWN, N_TREE_LANES };

#define N_KINDS 6 /* of nodes: up to two children, root or not */

static gboolean
double_tree_init(TtPlan *plan, const char *args, GError **error)
{
    (void)args, (void)error;
    plan->n_chunks = 2;
    plan->n_roles = 2 * N_TREE_ROLES;
    plan->lanes_per_channel = 2 * N_TREE_LANES;
    return TRUE;
}

static guint32
node_kind(guint P, guint tree, guint rank)
{
    guint n_children = 0;

    while (n_children < 2 && tt_double_tree_child(P, tree, rank, n_children) != TT_NO_RANK)
        n_children++;
    return tt_tree_kind(n_children, tt_double_tree_parent(P, tree, rank) == TT_NO_RANK);
}

static guint32
double_tree_program(const TtPlan *plan, guint rank, guint channel)
{
    guint P = plan->spec.n_ranks, v = tt_virtual_rank(plan, channel, rank);

    return node_kind(P, 0, v) * N_KINDS + node_kind(P, 1, v);
}

static TtTreeNode
node_of(const TtPlan *plan, guint32 program, guint tree)
{
    guint32 kind = tree == 0 ? program / N_KINDS : program % N_KINDS;

    return tt_tree_node(plan, kind, tree * N_TREE_ROLES + PARENT, tree);
}

static guint32
double_tree_n_steps(const TtPlan *plan, guint32 program, guint sub_lane)
{
    TtTreeNode node = node_of(plan, program, sub_lane / N_TREE_LANES);

    return tt_tree_n_steps(node.n_children);
}

static TtStep
double_tree_step(const TtPlan *plan, guint32 program, guint sub_lane, guint32 i)
{
    guint tree = sub_lane / N_TREE_LANES;
    TtTreeNode node = node_of(plan, program, tree);

    if (sub_lane % N_TREE_LANES == UP)
        return tt_tree_up(&node, i);
    return tt_tree_down(&node, tree * N_TREE_LANES + UP, FALSE, i);
}

static guint
double_tree_peer(const TtPlan *plan, guint rank, guint channel, guint role)
{
    guint P = plan->spec.n_ranks, tree = role / N_TREE_ROLES, peer;
    guint v = tt_virtual_rank(plan, channel, rank);

    role %= N_TREE_ROLES;
    peer = role == PARENT ? tt_double_tree_parent(P, tree, v)
                          : tt_double_tree_child(P, tree, v, role - CHILD0);
    return peer == TT_NO_RANK ? TT_NO_RANK : tt_real_rank(plan, channel, peer);
}

const TtAlgo tt_algo_double_tree = {
    .name = "double-tree",
    .summary = "two complementary binary trees, half the data each: few hops, full bandwidth",
    .source = "Sanders, Speck & Traeff, Parallel Computing 35(12), 2009; parents as in NCCL",
    .collectives = TT_BIT(TT_ALLREDUCE),
    .init = double_tree_init,
    .program = double_tree_program,
    .n_steps = double_tree_n_steps,
    .step = double_tree_step,
    .peer = double_tree_peer,
};
