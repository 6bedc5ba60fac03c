/* collnet-direct - every rank of a node sends each head its share; switches in the network add up heads.
 *
 * One chunk per head; every rank is a head unless the wiring says otherwise. Two nodes of 3 ranks:
 *
 *     chunk 0    1 --> 0 <-- 2     0 --> switch 0 <-- 3     4 --> 3 <-- 5     up
 *     chunk 1    0 --> 1 <-- 2     1 --> switch 1 <-- 4     3 --> 4 <-- 5
 *     chunk 2    0 --> 2 <-- 1     2 --> switch 2 <-- 5     3 --> 5 <-- 4
 *                                                           and the same ways down
 *
 * Each chunk has lanes of its own, up and down.
 *
 * Steps   of H heads and groups of G: a head G-1 up and down for its chunk, one for each other
 * Wire    (H-1)/H n + (G-1)/H n bytes leave a head inside its node, n/H to the network each way
 * Time    many rounds: the larger of the two times beta, at four hops
 * Source  NCCL src/transport/coll_net.cc, src/device/all_reduce.h; Graham et al., COM-HPC 2016 (SHARP)
 * Limits  any shape, one node does without switches; needs a network that reduces
 */
#include "algos/algo.h"
#include "algos/trees.h"

/* PARENT .. PARENT + G-1: of a head, the network and the other ranks of its node from the next on.
 * G + h: head h, to the others. Of switches: nodes. */
enum { PARENT };

/* Programs: MEMBER, then heads, then switches, each by its number. */
enum { MEMBER, HEAD };

static gboolean
collnet_direct_init(TtPlan *plan, const char *args, GError **error)
{
    guint n_nodes = tt_n_nodes(plan), n_heads = tt_n_heads(plan);

    (void)args;
    if (n_heads > 1024) {
        g_set_error(error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE, "at most 1024 heads a node, not %u",
                    n_heads);
        return FALSE;
    }
    plan->n_chunks = n_heads;
    plan->n_switches = n_nodes > 1 ? n_heads : 0;
    plan->n_roles = MAX(plan->spec.group_size + n_heads, n_nodes);
    plan->lanes_per_channel = 2 * n_heads; /* up of every chunk, then down */
    return TRUE;
}

static TtSwitchPlace
collnet_direct_switch_place(const TtPlan *plan, guint index)
{
    (void)plan, (void)index;
    return (TtSwitchPlace){ .is_network = TRUE };
}

static guint32
collnet_direct_program(const TtPlan *plan, guint rank, guint channel)
{
    guint P = plan->spec.n_ranks, head;

    (void)channel;
    if (rank >= P)
        return HEAD + plan->n_chunks + rank - P;
    head = tt_head_of(plan, rank);
    return head == TT_NO_HEAD ? MEMBER : HEAD + head;
}

/* In the tree of one chunk: its head takes in all others of the node. */
static TtTreeNode
node_of(const TtPlan *plan, guint32 program, guint32 chunk)
{
    if (program != HEAD + chunk)
        return tt_tree_node(plan, tt_tree_kind(0, FALSE), plan->spec.group_size + chunk, chunk);
    return tt_tree_node(plan, tt_tree_kind(plan->spec.group_size - 1, plan->n_switches == 0),
                        PARENT, chunk);
}

static guint32
collnet_direct_n_steps(const TtPlan *plan, guint32 program, guint sub_lane)
{
    guint n_heads = plan->n_chunks;
    guint32 chunk = sub_lane % n_heads;

    if (program >= HEAD + n_heads)
        return program == HEAD + n_heads + chunk ? tt_n_nodes(plan) : 0;
    return tt_tree_n_steps(node_of(plan, program, chunk).n_children);
}

static TtStep
collnet_direct_step(const TtPlan *plan, guint32 program, guint sub_lane, guint32 i)
{
    guint n_heads = plan->n_chunks;
    guint32 chunk = sub_lane % n_heads;
    gboolean is_up = sub_lane < n_heads;
    TtTreeNode node;

    if (program >= HEAD + n_heads)
        return is_up ? tt_switch_up(0, chunk, i)
                     : tt_switch_down(0, chunk, chunk, tt_n_nodes(plan) - 1, i);
    node = node_of(plan, program, chunk);
    return is_up ? tt_tree_up(&node, i) : tt_tree_down(&node, chunk, FALSE, i);
}

static guint
collnet_direct_peer(const TtPlan *plan, guint rank, guint channel, guint role)
{
    guint P = plan->spec.n_ranks, G = plan->spec.group_size, node = rank / G, head;

    (void)channel;
    if (rank >= P)
        return role < tt_n_nodes(plan) ? tt_head_rank(plan, role, rank - P) : TT_NO_RANK;
    if (role >= G)
        return role - G < plan->n_chunks ? tt_head_rank(plan, node, role - G) : TT_NO_RANK;
    head = tt_head_of(plan, rank);
    if (head == TT_NO_HEAD)
        return TT_NO_RANK;
    if (role == PARENT)
        return plan->n_switches > 0 ? P + head : TT_NO_RANK;
    return node * G + (rank + role - PARENT) % G;
}

const TtAlgo tt_algo_collnet_direct = {
    .name = "collnet-direct",
    .summary = "heads take in their node's shares directly, switches of the network add up heads",
    .source = "NCCL src/transport/coll_net.cc; Graham et al., COM-HPC 2016",
    .collectives = TT_BIT(TT_ALLREDUCE),
    .init = collnet_direct_init,
    .program = collnet_direct_program,
    .n_steps = collnet_direct_n_steps,
    .step = collnet_direct_step,
    .peer = collnet_direct_peer,
    .switch_place = collnet_direct_switch_place,
};
