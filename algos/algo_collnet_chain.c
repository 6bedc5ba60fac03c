/* collnet-chain - a chain inside each node to its first rank, and a switch in the network that adds up.
 *
 *     node 0    g2 --> g1 --> g0 \                      up
 *     node 1    g2 --> g1 --> g0 --> switch (SHARP)
 *     node 2    g2 --> g1 --> g0 /
 *               g2 <-- g1 <-- g0 <-- switch             down
 *
 * The order of the chain is that of the channel, so that channels reach the network by different
 * ranks. Two lanes per channel, up and down, pipelined by rounds.
 *
 * Steps   one or two up and down per rank; the switch one per node each way
 * Wire    n bytes leave a node each way, however many nodes there are
 * Time    many rounds: n * beta, at 2G hops of groups of G
 * Source  NCCL src/transport/coll_net.cc, src/graph/connect.cc; Graham et al., COM-HPC 2016 (SHARP)
 * Limits  any shape, one node is a chain; needs a network that reduces
 */
#include "algos/algo.h"
#include "algos/trees.h"

enum { PARENT, CHILD, N_ROLES };
enum { UP, DOWN, N_LANES };

#define NETWORK G_MAXUINT32 /* the switch's program; ranks have kinds of tree nodes */

static gboolean
collnet_chain_init(TtPlan *plan, const char *args, GError **error)
{
    guint n_nodes = tt_n_nodes(plan);

    (void)args, (void)error;
    plan->n_switches = n_nodes > 1 ? 1 : 0;
    plan->n_roles = MAX(N_ROLES, n_nodes);
    plan->lanes_per_channel = N_LANES;
    return TRUE;
}

static TtSwitchPlace
collnet_chain_switch_place(const TtPlan *plan, guint index)
{
    (void)plan, (void)index;
    return (TtSwitchPlace){ .is_network = TRUE };
}

static guint32
collnet_chain_program(const TtPlan *plan, guint rank, guint channel)
{
    guint position;

    if (rank >= plan->spec.n_ranks)
        return NETWORK;
    position = tt_chain_position(plan, channel, rank);
    return tt_tree_kind(position + 1 < plan->spec.group_size ? 1 : 0,
                        position == 0 && plan->n_switches == 0);
}

static guint32
collnet_chain_n_steps(const TtPlan *plan, guint32 program, guint sub_lane)
{
    (void)sub_lane;
    return program == NETWORK ? tt_n_nodes(plan) : 1; /* at most one child */
}

static TtStep
collnet_chain_step(const TtPlan *plan, guint32 program, guint sub_lane, guint32 i)
{
    TtTreeNode node;

    if (program == NETWORK)
        return sub_lane == UP ? tt_switch_up(0, 0, i)
                              : tt_switch_down(0, 0, UP, tt_n_nodes(plan) - 1, i);
    node = tt_tree_node(plan, program, PARENT, 0);
    return sub_lane == UP ? tt_tree_up(&node, i) : tt_tree_down(&node, UP, FALSE, i);
}

static guint
collnet_chain_peer(const TtPlan *plan, guint rank, guint channel, guint role)
{
    guint P = plan->spec.n_ranks, G = plan->spec.group_size, node = rank / G, position;

    if (rank >= P)
        return role < tt_n_nodes(plan) ? tt_chain_rank(plan, channel, role, 0) : TT_NO_RANK;
    position = tt_chain_position(plan, channel, rank);
    if (role == CHILD)
        return position + 1 < G ? tt_chain_rank(plan, channel, node, position + 1) : TT_NO_RANK;
    if (role != PARENT)
        return TT_NO_RANK;
    if (position > 0)
        return tt_chain_rank(plan, channel, node, position - 1);
    return plan->n_switches > 0 ? P : TT_NO_RANK;
}

const TtAlgo tt_algo_collnet_chain = {
    .name = "collnet-chain",
    .summary = "chains inside nodes, a switch of the network adds up their ends (SHARP)",
    .source = "NCCL src/transport/coll_net.cc; Graham et al., COM-HPC 2016",
    .collectives = TT_BIT(TT_ALLREDUCE),
    .init = collnet_chain_init,
    .program = collnet_chain_program,
    .n_steps = collnet_chain_n_steps,
    .step = collnet_chain_step,
    .peer = collnet_chain_peer,
    .switch_place = collnet_chain_switch_place,
};
