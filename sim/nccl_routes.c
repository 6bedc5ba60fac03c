/* nccl_routes - channels leave and enter nodes by the NICs NCCL's search gave them.
 *
 * A GPU that talks to another node on a channel uses the NET where the channel enters the node if it is the
 * first of the channel, else the one where the channel leaves. Heads of in-switch reduction use their own
 * channel's, on all channels. With PXN the way to it leads over another GPU.
 *
 * Source: NCCL src/graph/search.cc (ncclTopoGetNetDev)
 */
#include "sim/nccl_flow_private.h"

#include "topologies/nccl_xml.h"

/* The topology's number of NCCL's NET @dev: NICs are in the order of these. */
static guint16
nic_of(const TtNcclPlace *place, int dev)
{
    guint16 nic = 0;

    if (dev < 0 || !place->node || place->node->net->len != tt_topology_nics_per_node(place->topo))
        return TT_NO_NIC;
    for (guint i = 0; i < place->node->net->len; i++)
        nic += g_array_index(place->node->net, TtXmlNet, i).dev < (guint)dev;
    return nic < place->node->net->len ? nic : TT_NO_NIC;
}

/* Row @c of the graph, and for heads, whoever begins a row. */
static guint16
nic_at(const TtNcclPlace *place, const TtNcclGraph *graph, guint c, guint rank)
{
    if (graph->id != TT_GRAPH_NVLS && graph->id != TT_GRAPH_COLLNET_DIRECT)
        return nic_of(place, graph->net[c][graph->gpu[c][0] == rank ? 0 : 1]);
    for (guint row = 0; row < graph->n_channels; row++)
        if (graph->gpu[row][0] == rank)
            return nic_of(place, graph->net[row][0]);
    return TT_NO_NIC;
}

static guint
channel_route(gconstpointer context, guint src, guint dst, guint channel, TtLink *links)
{
    const TtNcclRoutes *self = context;
    guint G = self->per_node, c = channel % self->n_channels, n = 0;
    guint16 out = self->nic[c][src % G], in = self->nic[c][dst % G];

    if (src / G != dst / G && out != TT_NO_NIC && in != TT_NO_NIC)
        n = tt_topology_route_by_nics(self->topo, src, out, dst, in, links);
    return n > 0 ? n : tt_topology_route(self->topo, src, dst, links);
}

/* --- what bounds hold against: channels may use NICs that are nobody's own ----------------------- */

static double
any_nic_rank_out(gconstpointer topo, guint rank)
{
    return tt_topology_any_nic_rank_out_bytes_per_s(topo, rank);
}

static double
any_nic_rank_in(gconstpointer topo, guint rank)
{
    return tt_topology_any_nic_rank_in_bytes_per_s(topo, rank);
}

static double
any_nic_node_out(gconstpointer topo, guint node)
{
    return tt_topology_any_nic_node_out_bytes_per_s(topo, node);
}

static double
any_nic_node_in(gconstpointer topo, guint node)
{
    return tt_topology_any_nic_node_in_bytes_per_s(topo, node);
}

/* ------------------------------------------------------------------------------------------------- */

void
tt_nccl_routes_init(TtNcclRoutes *self, const TtNcclPlace *place, guint algo)
{
    const TtNcclGraph *graph = tt_nccl_graph_of(place->comm, algo);
    guint per_node = place->comm->ranks_per_node;

    *self = (TtNcclRoutes){ .topo = place->topo, .per_node = per_node };
    self->net = tt_network_of_topology(place->topo);
    if (place->comm->n_nodes < 2 || graph->n_gpus != per_node || graph->n_channels == 0)
        return;
    self->n_channels = graph->n_channels;
    if (algo == TT_NCCL_RING || algo == TT_NCCL_TREE) /* as many orders as both have */
        self->n_channels = MAX(1, MIN(place->comm->graph[TT_GRAPH_RING].n_channels,
                                      place->comm->graph[TT_GRAPH_TREE].n_channels));
    for (guint c = 0; c < self->n_channels; c++)
        for (guint rank = 0; rank < per_node; rank++)
            self->nic[c][rank] = nic_at(place, graph, c, rank);
    self->net.rank_out = any_nic_rank_out;
    self->net.rank_in = any_nic_rank_in;
    self->net.node_out = any_nic_node_out;
    self->net.node_in = any_nic_node_in;
    self->net.channel_route = channel_route;
    self->net.channel_context = self;
}
