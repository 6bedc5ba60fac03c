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
