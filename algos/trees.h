/* trees.h - the two programs every tree algorithm is made of, for one node of the tree; and which
 * node is whose in the double binary tree.
 *
 *     up     children -> me -> parent, reducing     MAX(1, n_children) steps
 *     down   parent -> me -> children, copying      MAX(1, n_children) steps
 *
 * A node receives from one child after the other and passes the sum on with the last; it passes the
 * result on to the first child as it comes in, then to the others. Which ranks these are is the
 * algorithm's business: roles are parent_role for the parent and the numbers after it for children.
 */
#pragma once
#include "algos/schedule.h"

typedef struct {
    guint n_children;
    gboolean is_root;
    guint parent_role; /* children: parent_role + 1 .. */
    guint32 chunk;
    TtBuffer partial; /* where sums rest between two children */
} TtTreeNode;

/* Node kinds as numbers, so that ranks of one kind share a program. */
static inline guint32
tt_tree_kind(guint n_children, gboolean is_root)
{
    return 2 * n_children + (is_root ? 1 : 0);
}

static inline guint32
tt_tree_n_steps(guint n_children)
{
    return MAX(1, n_children);
}

/* What a node of this kind does for a collective: where partial sums may rest. Only the root of a
 * reduce has an output; in place, an allreduce's output is its input, which nobody reads again. */
TtTreeNode tt_tree_node(const TtPlan *plan, guint32 kind, guint parent_role, guint32 chunk);

TtStep tt_tree_up(const TtTreeNode *node, guint32 i);

/* @up_sub_lane: the lane whose up program must be over before the result may overwrite the partial
 * sum (allreduce), or TT_NO_LANE (broadcast). @last_first: children are served from the last to the
 * first. */
TtStep tt_tree_down(const TtTreeNode *node, guint up_sub_lane, gboolean last_first, guint32 i);

/* A switch that adds what its members send and hands all of them the sum, which rests in scratch: step
 * i of as many as there are members, whose roles begin at @first_role. The sum is there after step
 * @dep_step of @sub_lane. */
TtStep tt_switch_up(guint first_role, guint32 chunk, guint32 i);
TtStep tt_switch_down(guint first_role, guint32 chunk, guint sub_lane, guint32 dep_step, guint32 i);

/* Two trees over members 0 .. n-1, leaves of one being inner members of the other (see
 * algo_double_tree.c). @tree: 0 or 1. TT_NO_RANK where there is no parent, no such child; a member
 * with one child has it as child 0. */
guint tt_double_tree_parent(guint n, guint tree, guint member);
guint tt_double_tree_child(guint n, guint tree, guint member, guint which);

/* On which side of its parent a member hangs: 0 if it comes before it in the tree's order, 1 if
 * after, as does the root's only child. Of the root, which has no parent: 0. */
guint tt_double_tree_side(guint n, guint tree, guint member);
