/* nccl_profile - the closed form's constants as costs of connections, for one operation.
 *
 * A message of b bytes of data on a connection takes, in the simulator,
 *
 *     latency of the route + hop_latency + b / min(hop_bytes_per_s, its share of the links)
 *
 * and starts no sooner than hop_gap after the one before. The closed form's hop becomes latency, less
 * what the topology's links have; its rate becomes the limit of a connection where a channel has one message
 * under way (rings), the gap where a pipeline is paced by it (trees, in-switch reduction). Links carry
 * hop_wire_factor bytes for one of data: so much that their data rates are the closed form's shares.
 */
#include "sim/nccl_flow_private.h"

#include <math.h>

double
tt_nccl_message_bytes(const TtPlan *plan)
{
    double pieces = (double)plan->n_chunks * plan->spec.n_channels * (double)plan->n_rounds;
    double bytes = (double)plan->spec.count * tt_type_bytes(plan->spec.type);

    return MAX(1, ceil(bytes / pieces));
}

/* --- the topology's part ----------------------------------------------------------------------- */

/* What the topology's links give: between neighbours of a node, to its switch, to the next node. */
typedef struct {
    double inner_gbps, net_gbps;        /* INFINITY: no links */
    double inner_us, switch_us, net_us; /* latency of the routes */
} Wires;

/* A GPU's links to its node together: the first of every route. */
static double
inner_gbps(const TtTopology *topo, guint per_node)
{
    TtLink links[TT_MAX_ROUTE], seen[TT_NCCL_MAX_GPUS];
    double sum = 0;
    guint n_seen = 0;

    for (guint dst = 1; dst < MIN(per_node, TT_NCCL_MAX_GPUS); dst++) {
        guint n = tt_topology_route(topo, 0, dst, links), i = 0;

        if (n == 0)
            continue;
        while (i < n_seen && seen[i] != links[0])
            i++;
        if (i < n_seen)
            continue;
        seen[n_seen++] = links[0];
        if (strcmp(tt_topology_link(topo, links[0]).kind, "nvlink") == 0)
            sum += tt_topology_link(topo, links[0]).capacity_bytes_per_s / 1e9;
    }
    if (sum > 0)
        return sum;
    return per_node > 1 ? tt_topology_route_bytes_per_s(topo, 0, 1) / 1e9 : INFINITY;
}

static double
switch_us(const TtTopology *topo)
{
    TtLink links[TT_MAX_ROUTE];
    guint n = tt_topology_route_to_switch(topo, 0, links);
    double us = 0;

    for (guint i = 0; n != TT_NO_SWITCH && i < n; i++)
        us += tt_topology_link(topo, links[i]).latency_ps / 1e6;
    return us;
}

static Wires
look_at_wires(const TtNcclPlace *place)
{
    const TtNcclComm *comm = place->comm;
    const TtNcclGraph *ring = &comm->graph[TT_GRAPH_RING];
    guint per_node = comm->ranks_per_node;
    Wires wires = { .inner_gbps = INFINITY, .net_gbps = INFINITY };

    if (per_node > 1) {
        guint src = ring->n_gpus == per_node ? ring->gpu[0][0] : 0;
        guint dst = ring->n_gpus == per_node ? ring->gpu[0][1] : 1;

        wires.inner_gbps = inner_gbps(place->topo, per_node);
        wires.inner_us = tt_topology_route_latency_ps(place->topo, src, dst) / 1e6;
        wires.switch_us = switch_us(place->topo);
    }
    if (comm->n_nodes > 1) {
        double nics = comm->nic_gbits > 0 ? place->machine->nics_gbps / (comm->nic_gbits / 8) : 1;

        wires.net_gbps = tt_topology_route_bytes_per_s(place->topo, 0, per_node) / 1e9 * nics;
        wires.net_us = tt_topology_route_latency_ps(place->topo, 0, per_node) / 1e6;
    }
    return wires;
}

/* --- setting costs ----------------------------------------------------------------------------- */

typedef struct {
    const TtNcclPlace *place;
    const TtNcclCall *call;
    const TtPlan *plan;
    TtProfile *profile;
    Wires wires;
    TtNcclStepCost step; /* of one message */
    double message_bytes, n_channels;
} Making;

static void
set_hop(Making *m, TtHop hop, double us, double route_us, double gbps, double gap_us)
{
    m->profile->hop_latency_s[hop] = MAX(0, us - route_us) / 1e6;
    m->profile->hop_bytes_per_s[hop] = isfinite(gbps) ? gbps * 1e9 : 0;
    m->profile->hop_gap_s[hop] = gap_us / 1e6;
}

/* All ways between GPUs of a node: a machine has one. */
static void
set_inner(Making *m, double us, double gbps, double gap_us)
{
    set_hop(m, TT_HOP_NVLINK, us, m->wires.inner_us, gbps, gap_us);
    set_hop(m, TT_HOP_PCIE, us, m->wires.inner_us, gbps, gap_us);
    set_hop(m, TT_HOP_HOST, us, m->wires.inner_us, gbps, gap_us);
}

static void
set_net(Making *m, double us, double gbps, double gap_us)
{
    set_hop(m, TT_HOP_NET, us, m->wires.net_us, gbps, gap_us);
}

/* Links that together give @wires_gbps carry @data_gbps of data. */
static double
factor(double wires_gbps, double data_gbps)
{
    return isfinite(wires_gbps) && isfinite(data_gbps) ? MAX(1, wires_gbps / data_gbps) : 1;
}

static void
set_wire_factors(Making *m)
{
    double *of = m->profile->hop_wire_factor, inner;

    inner = m->place->machine->way == TT_WAY_HOST /* memory sets the rate, not a link */
                ? 1
                : factor(m->wires.inner_gbps, m->step.nvlink_gbps);
    of[TT_HOP_NVLINK] = of[TT_HOP_PCIE] = of[TT_HOP_HOST] = of[TT_HOP_LOCAL] = inner;
    of[TT_HOP_NET] = factor(m->wires.net_gbps, m->step.nics_gbps);
}

/* --- rings and chains -------------------------------------------------------------------------- */

static void
set_ring(Making *m)
{
    TtNcclRingCost ring =
        tt_nccl_ring_cost(m->place->costs, m->place->effects, m->place->machine, &m->call->choice,
                          MAX(8, m->message_bytes), m->n_channels);

    set_inner(m, ring.inner_us, ring.gbps, 0);
    set_net(m, ring.outer_us, ring.gbps, 0);
}

/* --- trees ------------------------------------------------------------------------------------- */

/* A message arrives after @us, and starts no sooner than @pace_us after the one before. Of its time as much
 * as there can be goes into its transfer: what is sent slowly fills no links. */
static void
set_paced(Making *m, TtHop hop, double us, double route_us, double pace_us)
{
    double transfer_us = MIN(pace_us, MAX(us - route_us, 1e-3));

    set_hop(m, hop, us - transfer_us, route_us, m->message_bytes / transfer_us / 1e3, pace_us);
}

static void
set_tree(Making *m)
{
    TtNcclTreeCost tree =
        tt_nccl_tree_cost(m->place->costs, m->place->effects, m->place->machine, &m->call->choice,
                          MAX(8, m->message_bytes), m->n_channels);

    set_paced(m, TT_HOP_NVLINK, tree.inner_us, m->wires.inner_us, tree.pace_us);
    set_paced(m, TT_HOP_PCIE, tree.inner_us, m->wires.inner_us, tree.pace_us);
    set_paced(m, TT_HOP_HOST, tree.inner_us, m->wires.inner_us, tree.pace_us);
    if (m->place->machine->n_nodes > 1)
        set_paced(m, TT_HOP_NET, tree.outer_us, m->wires.net_us, tree.pace_us);
}

/* --- in-switch reduction ------------------------------------------------------------------------ */

#define FEW_ROUNDS 8
#define JUST_FULL  0.9999 /* links that cannot fill cost the simulator nothing */

/* What of the closed form's time each connection has to spend. */
typedef struct {
    double fixed_us, body_us; /* to the first chunk's end, all the others */
    double net_hop_us;
    guint levels;
} Nvls;

static Nvls
nvls_times(const Making *m)
{
    TtNcclNvlsCost cost = tt_nccl_nvls_cost(m->place->costs, m->place->effects, m->place->machine,
                                            &m->call->op, &m->call->choice);

    return (Nvls){
        .fixed_us = cost.start_us + tt_nccl_move_us(cost.fill_bytes, cost.gbps),
        .body_us = cost.rounds_us + tt_nccl_move_us((double)m->call->op.bytes, cost.gbps),
        /* with NVLS the network adds up: a hop there, a hop back, whatever the levels */
        .net_hop_us = cost.hop_us * (m->call->choice.algo == TT_NCCL_NVLS ? cost.levels : 1),
        .levels = cost.levels,
    };
}

/* Between nodes: at the rate at which the busiest NIC, of a node with two children, is just full; faster where
 * there are few rounds, since then not all its messages come at once. A message that is under way for
 * longer than a hop takes the rest from what the first chunk needs anyway. */
static void
set_nvls_net(Making *m, Nvls *t)
{
    double M = m->place->machine->n_nodes, heads = MAX(1, m->place->machine->heads);
    double rounds = (double)m->plan->n_rounds, few = rounds < FEW_ROUNDS ? 1 / rounds : 0;
    double load = (M < 3 ? 1 : 2 - few) * m->n_channels * heads;
    double nics = MIN(m->step.nics_gbps, m->wires.net_gbps) * JUST_FULL;
    double transfer_us = tt_nccl_move_us(m->message_bytes * load, nics);

    set_net(m, t->net_hop_us - transfer_us, nics / load, 0);
    t->fixed_us -= 2.0 * t->levels * MAX(0, transfer_us - t->net_hop_us);
}

/* Once a round a head's message joins those of all channels on the way to the switch. If the way is full
 * then, the others may go faster, so that rounds take @transfer_us a chunk all the same. */
static double
make_room_us(const Making *m, double transfer_us, double link_gbps)
{
    double H = m->plan->n_chunks,
           pair_us = tt_nccl_move_us(2 * m->message_bytes * m->n_channels, link_gbps);

    if (m->call->op.func != TT_NCCL_ALLREDUCE || H < 2 || pair_us <= transfer_us)
        return transfer_us;
    return (H * transfer_us - pair_us) / (H - 1);
}

/* A rank's way to the switch takes K = rounds x chunks messages, one after the other; the last goes over h
 * hops and those between nodes. h is four (to the switch, the head, the switch, all), two for allgather and
 * reduce-scatter. In all
 *
 *     (K - 1) transfer + h (transfer + latency) = fixed + body
 */
static void
set_nvls(Making *m)
{
    double K = (double)m->plan->n_rounds * m->plan->n_chunks, transfer_us, latency_us;
    double hops = m->call->op.func == TT_NCCL_ALLREDUCE ? 4 : 2;
    Nvls t = nvls_times(m);

    if (m->place->machine->n_nodes > 1)
        set_nvls_net(m, &t);
    transfer_us = t.body_us / K;
    latency_us = (t.fixed_us - (hops - 1) * transfer_us) / hops;
    if (latency_us < 0) {
        latency_us = 0;
        transfer_us = (t.fixed_us + t.body_us) / (K + hops - 1);
    }
    m->profile->hop_wire_factor[TT_HOP_LOCAL] = 1; /* what a link's share is, its pace has in it */
    transfer_us = make_room_us(m, transfer_us, m->wires.inner_gbps);
    set_hop(m, TT_HOP_LOCAL, latency_us, m->wires.switch_us, m->message_bytes / transfer_us / 1e3,
            0);
}

/* --- all of them -------------------------------------------------------------------------------- */

TtProfile *
tt_nccl_profile(const TtNcclPlace *place, const TtNcclCall *call, const TtPlan *plan)
{
    Making m = { .place = place,
                 .call = call,
                 .plan = plan,
                 .profile = tt_profile_ideal(),
                 .wires = look_at_wires(place),
                 .message_bytes = tt_nccl_message_bytes(plan),
                 .n_channels = plan->spec.n_channels };

    g_free(m.profile->name);
    m.profile->name = g_strdup("nccl");
    m.step = tt_nccl_step_cost(place->costs, place->effects, place->machine, &call->choice,
                               MAX(8, m.message_bytes));
    set_wire_factors(&m);
    switch (call->choice.algo) {
    case TT_NCCL_RING: set_ring(&m); break;
    case TT_NCCL_TREE: set_tree(&m); break;
    case TT_NCCL_NVLS:
    case TT_NCCL_NVLS_TREE: set_nvls(&m); break;
    default: /* PAT, CollNet: a block's rate, and a hop for every message */
        set_inner(&m, m.step.hop_us, m.step.channel_gbps, 0);
        set_net(&m, m.step.hop_net_us,
                tt_nccl_narrowest(m.step.channel_gbps, m.step.nics_gbps / m.n_channels, INFINITY),
                0);
    }
    return m.profile;
}
