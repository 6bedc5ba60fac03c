#include "algos/nvls.h"
#include "algos/trees.h"

enum { SCATTER, UP, DOWN, GATHER, N_LANES };

/* Of allgather and reduce-scatter: to the switch, and from it. */
enum { IN, OUT, N_HALF_LANES };

/* Of ranks. Roles of a node's switch are places in the node, of the network's switches nodes. */
enum { SWITCH, PARENT, CHILD, N_ROLES = CHILD + 2 };

/* HEAD + kind of tree node: heads differ by their neighbours in other nodes. */
enum { ALONE, MEMBER, NODE_SWITCH, NETWORK_SWITCH, HEAD };

#define OWN_CHUNK G_MAXUINT32 /* called so by heads, and by ranks that gather or scatter */

static gboolean
is_joined_by_network(const TtPlan *plan)
{
    return plan->n_switches > tt_n_nodes(plan);
}

gboolean
tt_nvls_init(TtPlan *plan, TtNvlsJoin join, GError **error)
{
    guint n_nodes = tt_n_nodes(plan);

    plan->n_roles = MAX(N_ROLES, plan->spec.group_size);
    if (plan->spec.n_ranks == 1)
        return TRUE;
    if (plan->spec.collective != TT_ALLREDUCE) {
        if (n_nodes > 1) {
            g_set_error(error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE,
                        "can only allreduce across groups (%u groups of %u ranks)", n_nodes,
                        plan->spec.group_size);
            return FALSE;
        }
        plan->n_chunks = plan->spec.n_ranks;
        plan->lanes_per_channel = N_HALF_LANES;
        plan->n_switches = 1;
        return TRUE;
    }
    plan->n_chunks = tt_n_heads(plan);
    plan->lanes_per_channel = N_LANES;
    plan->uses_scratch = TRUE;
    plan->n_switches = n_nodes;
    if (join == TT_NVLS_NETWORK && n_nodes > 1) {
        plan->n_switches += tt_n_heads(plan);
        plan->n_roles = MAX(plan->n_roles, n_nodes);
    }
    return TRUE;
}

TtSwitchPlace
tt_nvls_switch_place(const TtPlan *plan, guint index)
{
    return (TtSwitchPlace){ .is_network = index >= tt_n_nodes(plan), .node = index };
}

/* --- who is who --------------------------------------------------------------------------------
 */

/* The same head of another node, as trees join them: by NCCL, even channels use tree 0. */
static guint
parent_of(const TtPlan *plan, guint node, guint head, guint channel)
{
    guint parent;

    if (is_joined_by_network(plan))
        return plan->spec.n_ranks + tt_n_nodes(plan) + head;
    parent = tt_double_tree_parent(tt_n_nodes(plan), channel % 2, node);
    return parent == TT_NO_RANK ? TT_NO_RANK : tt_head_rank(plan, parent, head);
}

static guint
child_of(const TtPlan *plan, guint node, guint head, guint channel, guint which)
{
    guint child;

    if (is_joined_by_network(plan))
        return TT_NO_RANK;
    child = tt_double_tree_child(tt_n_nodes(plan), channel % 2, node, which);
    return child == TT_NO_RANK ? TT_NO_RANK : tt_head_rank(plan, child, head);
}

guint32
tt_nvls_program(const TtPlan *plan, guint rank, guint channel)
{
    guint P = plan->spec.n_ranks, n_nodes = tt_n_nodes(plan), node, head, n_children = 0;

    if (P == 1)
        return ALONE;
    if (rank >= P)
        return rank < P + n_nodes ? NODE_SWITCH : NETWORK_SWITCH;
    head = tt_head_of(plan, rank);
    if (plan->spec.collective != TT_ALLREDUCE || head == TT_NO_HEAD)
        return MEMBER;
    node = rank / plan->spec.group_size;
    while (n_children < 2 && child_of(plan, node, head, channel, n_children) != TT_NO_RANK)
        n_children++;
    return HEAD + tt_tree_kind(n_children, parent_of(plan, node, head, channel) == TT_NO_RANK);
}

guint
tt_nvls_peer(const TtPlan *plan, guint rank, guint channel, guint role)
{
    guint P = plan->spec.n_ranks, G = plan->spec.group_size, n_nodes = tt_n_nodes(plan);
    guint node = rank / G, head;

    if (rank >= P + n_nodes)
        return role < n_nodes ? tt_head_rank(plan, role, rank - P - n_nodes) : TT_NO_RANK;
    if (rank >= P)
        return role < G ? (rank - P) * G + role : TT_NO_RANK;
    if (role == SWITCH)
        return plan->n_switches > 0 ? P + node : TT_NO_RANK;
    head = plan->spec.collective == TT_ALLREDUCE ? tt_head_of(plan, rank) : TT_NO_HEAD;
    if (head == TT_NO_HEAD || role >= N_ROLES)
        return TT_NO_RANK;
    return role == PARENT ? parent_of(plan, node, head, channel)
                          : child_of(plan, node, head, channel, role - CHILD);
}

guint32
tt_nvls_chunk(const TtPlan *plan, guint rank, guint channel, guint32 relative)
{
    (void)channel;
    if (relative != OWN_CHUNK)
        return relative;
    if (plan->spec.collective != TT_ALLREDUCE)
        return rank;
    return rank < plan->spec.n_ranks ? tt_head_of(plan, rank)
                                     : rank - plan->spec.n_ranks - tt_n_nodes(plan);
}

/* --- allreduce ---------------------------------------------------------------------------------
 */

static guint32
n_steps_of_head(guint32 kind, guint sub_lane)
{
    return sub_lane == UP || sub_lane == DOWN ? 1 + kind / 2 : 0;
}

static guint32
n_steps_of_node_switch(const TtPlan *plan, guint sub_lane)
{
    return sub_lane == UP || sub_lane == DOWN ? plan->n_chunks
                                              : plan->n_chunks * plan->spec.group_size;
}

/* The node's sum, then those of the nodes below. */
static TtStep
head_up(guint32 n_children, gboolean is_root, guint32 i)
{
    gboolean sends = i == n_children && !is_root;
    guint child = CHILD + i - 1;

    if (i == 0)
        return sends ? tt_recv_copy_send(SWITCH, PARENT, TT_SCRATCH, OWN_CHUNK)
                     : tt_recv(SWITCH, TT_SCRATCH, OWN_CHUNK);
    return sends ? tt_recv_reduce_send(child, PARENT, TT_SCRATCH, OWN_CHUNK)
                 : tt_recv_reduce(child, TT_SCRATCH, TT_SCRATCH, OWN_CHUNK);
}

/* To the nodes below, which have the longer way, then to the node's own switch. */
static TtStep
head_down(guint32 n_children, gboolean is_root, guint32 i)
{
    guint to = i < n_children ? CHILD + i : SWITCH;
    TtStep step;

    if (i > 0)
        return tt_send(to, TT_SCRATCH, OWN_CHUNK);
    step = is_root ? tt_send(to, TT_SCRATCH, OWN_CHUNK)
                   : tt_recv_copy_send(PARENT, to, TT_SCRATCH, OWN_CHUNK);
    return tt_after(step, UP, n_children);
}

static TtStep
node_switch_step(const TtPlan *plan, guint sub_lane, guint32 i)
{
    guint G = plan->spec.group_size, place;

    switch (sub_lane) {
    case SCATTER: return tt_switch_up(0, i / G, i % G);
    case UP:
        place = tt_head_rank(plan, 0, i);
        return tt_after(tt_send(place, TT_SCRATCH, i), SCATTER, (i + 1) * G - 1);
    case DOWN:
        place = tt_head_rank(plan, 0, i);
        return tt_after(tt_recv(place, TT_SCRATCH, i), UP, i);
    default: return tt_switch_down(0, i / G, DOWN, i / G, i % G);
    }
}

static TtStep
network_switch_step(const TtPlan *plan, guint sub_lane, guint32 i)
{
    return sub_lane == UP ? tt_switch_up(0, OWN_CHUNK, i)
                          : tt_switch_down(0, OWN_CHUNK, UP, tt_n_nodes(plan) - 1, i);
}

/* --- halves ------------------------------------------------------------------------------------
 */

static guint32
n_half_steps(const TtPlan *plan, guint32 program, guint sub_lane)
{
    guint P = plan->spec.n_ranks;
    gboolean scatters = plan->spec.collective == TT_REDUCE_SCATTER;
    guint32 n_in = scatters ? P : 1; /* of a rank */

    if (program == MEMBER)
        return sub_lane == IN ? n_in : P + 1 - n_in;
    return sub_lane == IN ? P * n_in : P * (P + 1 - n_in);
}

/* In place the output is the input, or part of it, so it may not come in before the input has left. */
static TtStep
half_step(const TtPlan *plan, guint32 program, guint sub_lane, guint32 i)
{
    guint P = plan->spec.n_ranks;
    gboolean scatters = plan->spec.collective == TT_REDUCE_SCATTER;
    TtStep step;

    if (program == MEMBER && sub_lane == IN)
        return tt_send(SWITCH, TT_INPUT, scatters ? i : OWN_CHUNK);
    if (program == MEMBER) {
        step = tt_recv(SWITCH, TT_OUTPUT, scatters ? OWN_CHUNK : i);
        return i == 0 ? tt_after(step, IN, scatters ? P - 1 : 0) : step;
    }
    if (scatters)
        return sub_lane == IN ? tt_switch_up(0, i / P, i % P)
                              : tt_after(tt_send(i, TT_SCRATCH, i), IN, (i + 1) * P - 1);
    if (sub_lane == IN)
        return tt_recv(i, TT_SCRATCH, i);
    return tt_switch_down(0, i / P, IN, i / P, i % P);
}

/* --- all ---------------------------------------------------------------------------------------
 */

guint32
tt_nvls_n_steps(const TtPlan *plan, guint32 program, guint sub_lane)
{
    if (program == ALONE)
        return 1;
    if (plan->spec.collective != TT_ALLREDUCE)
        return n_half_steps(plan, program, sub_lane);
    if (program == NODE_SWITCH)
        return n_steps_of_node_switch(plan, sub_lane);
    if (program == NETWORK_SWITCH)
        return sub_lane == UP || sub_lane == DOWN ? tt_n_nodes(plan) : 0;
    if (sub_lane == SCATTER || sub_lane == GATHER)
        return plan->n_chunks;
    return program == MEMBER ? 0 : n_steps_of_head(program - HEAD, sub_lane);
}

TtStep
tt_nvls_step(const TtPlan *plan, guint32 program, guint sub_lane, guint32 i)
{
    guint32 n_children;
    gboolean is_root;

    if (program == ALONE)
        return tt_copy(TT_INPUT, TT_OUTPUT, 0);
    if (plan->spec.collective != TT_ALLREDUCE)
        return half_step(plan, program, sub_lane, i);
    if (program == NODE_SWITCH)
        return node_switch_step(plan, sub_lane, i);
    if (program == NETWORK_SWITCH)
        return network_switch_step(plan, sub_lane, i);
    if (sub_lane == SCATTER)
        return tt_send(SWITCH, TT_INPUT, i);
    if (sub_lane == GATHER) /* in place the chunk must have left */
        return tt_after(tt_recv(SWITCH, TT_OUTPUT, i), SCATTER, i);
    n_children = (program - HEAD) / 2;
    is_root = (program - HEAD) % 2;
    return sub_lane == UP ? head_up(n_children, is_root, i) : head_down(n_children, is_root, i);
}
