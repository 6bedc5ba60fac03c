#include "algos/trees.h"

TtTreeNode
tt_tree_node(const TtPlan *plan, guint32 kind, guint parent_role, guint32 chunk)
{
    gboolean is_root = kind % 2 == 1;

    return (TtTreeNode){ .n_children = kind / 2,
                         .is_root = is_root,
                         .parent_role = parent_role,
                         .chunk = chunk,
                         .partial = plan->spec.collective == TT_REDUCE && !is_root ? TT_SCRATCH
                                                                                   : TT_OUTPUT };
}

TtStep
tt_tree_up(const TtTreeNode *node, guint32 i)
{
    TtBuffer local = i == 0 ? TT_INPUT : node->partial;
    guint child = node->parent_role + 1 + i;

    if (node->n_children == 0)
        return node->is_root ? tt_copy(TT_INPUT, TT_OUTPUT, node->chunk)
                             : tt_send(node->parent_role, TT_INPUT, node->chunk);
    if (i + 1 < node->n_children || node->is_root)
        return tt_recv_reduce(child, local, node->partial, node->chunk);
    return tt_recv_reduce_send(child, node->parent_role, local, node->chunk);
}

static TtStep
first_down(const TtTreeNode *node, gboolean broadcast, guint child)
{
    if (node->n_children == 0)
        return !node->is_root ? tt_recv(node->parent_role, TT_OUTPUT, node->chunk)
               : broadcast    ? tt_copy(TT_INPUT, TT_OUTPUT, node->chunk)
                              : tt_nop();
    if (!node->is_root)
        return tt_recv_copy_send(node->parent_role, child, TT_OUTPUT, node->chunk);
    return broadcast ? tt_copy_send(child, TT_INPUT, TT_OUTPUT, node->chunk)
                     : tt_send(child, TT_OUTPUT, node->chunk);
}

TtStep
tt_tree_down(const TtTreeNode *node, guint up_sub_lane, gboolean last_first, guint32 i)
{
    guint child = node->parent_role + (last_first ? node->n_children - i : 1 + i);
    TtStep step;

    if (i > 0)
        return tt_send(child, TT_OUTPUT, node->chunk);
    step = first_down(node, up_sub_lane == TT_NO_LANE, child);
    if (up_sub_lane != TT_NO_LANE)
        step = tt_after(step, up_sub_lane, tt_tree_n_steps(node->n_children) - 1);
    return step;
}

/* --- what switches do --------------------------------------------------------------------------
 */

TtStep
tt_switch_up(guint first_role, guint32 chunk, guint32 i)
{
    return i == 0 ? tt_recv(first_role, TT_SCRATCH, chunk)
                  : tt_recv_reduce(first_role + i, TT_SCRATCH, TT_SCRATCH, chunk);
}

TtStep
tt_switch_down(guint first_role, guint32 chunk, guint sub_lane, guint32 dep_step, guint32 i)
{
    TtStep step = tt_send(first_role + i, TT_SCRATCH, chunk);

    return i == 0 ? tt_after(step, sub_lane, dep_step) : step;
}

/* --- the double binary tree --------------------------------------------------------------------
 */

/* Where a member stands in tree 0's numbering, and back. */
static guint
place_of(guint n, guint tree, guint member)
{
    if (tree == 0)
        return member;
    return n % 2 == 0 ? n - 1 - member : (member + n - 1) % n;
}

static guint
member_at(guint n, guint tree, guint place)
{
    if (place == TT_NO_RANK || tree == 0)
        return place;
    return n % 2 == 0 ? n - 1 - place : (place + 1) % n;
}

static guint
parent_place(guint n, guint r)
{
    guint b = r & -r, up = (r ^ b) | b << 1;

    return r == 0 ? TT_NO_RANK : up < n ? up : r ^ b;
}

static guint
child_place(guint n, guint r, guint which)
{
    guint b = r & -r, root_child = 1;

    if (r == 0) { /* the root's only child is half the power of two that holds all members */
        while (root_child * 2 < n)
            root_child *= 2;
        return which == 0 && n > 1 ? root_child : TT_NO_RANK;
    }
    if (which == 0)
        return b > 1 ? r - b / 2 : TT_NO_RANK;
    for (guint h = b / 2; h > 0; h /= 2)
        if (r + h < n)
            return r + h;
    return TT_NO_RANK;
}

guint
tt_double_tree_parent(guint n, guint tree, guint member)
{
    return member_at(n, tree, parent_place(n, place_of(n, tree, member)));
}

guint
tt_double_tree_child(guint n, guint tree, guint member, guint which)
{
    return member_at(n, tree, child_place(n, place_of(n, tree, member), which));
}

guint
tt_double_tree_side(guint n, guint tree, guint member)
{
    guint r = place_of(n, tree, member);

    return r < parent_place(n, r) ? 0 : 1;
}
