/* The public face: sim.h on a TtTopology, by a view of it. */
#include "sim/network.h"

static TtLinkInfo
topology_link(gconstpointer topo, TtLink link)
{
    return tt_topology_link(topo, link);
}

static char *
topology_link_name(gconstpointer topo, TtLink link)
{
    return tt_topology_link_name(topo, link);
}

static guint
topology_route(gconstpointer topo, guint src, guint dst, TtLink *links)
{
    return tt_topology_route(topo, src, dst, links);
}

static gboolean
topology_passes_host(gconstpointer topo, guint src, guint dst)
{
    return tt_topology_route_passes_host(topo, src, dst);
}

static guint
topology_switch_route(gconstpointer topo, guint rank, guint node, gboolean towards, TtLink *links)
{
    if (node == TT_NETWORK_SWITCH)
        return towards ? tt_topology_route_to_network(topo, rank, links)
                       : tt_topology_route_from_network(topo, rank, links);
    return towards ? tt_topology_route_to_switch(topo, rank, links)
                   : tt_topology_route_from_switch(topo, rank, links);
}

static double
topology_rank_out(gconstpointer topo, guint rank)
{
    return tt_topology_rank_out_bytes_per_s(topo, rank);
}

static double
topology_rank_in(gconstpointer topo, guint rank)
{
    return tt_topology_rank_in_bytes_per_s(topo, rank);
}

static double
topology_node_out(gconstpointer topo, guint node)
{
    return tt_topology_node_out_bytes_per_s(topo, node);
}

static double
topology_node_in(gconstpointer topo, guint node)
{
    return tt_topology_node_in_bytes_per_s(topo, node);
}

static double
topology_pod_out(gconstpointer topo, guint pod)
{
    return tt_topology_pod_out_bytes_per_s(topo, pod);
}

static double
topology_pod_in(gconstpointer topo, guint pod)
{
    return tt_topology_pod_in_bytes_per_s(topo, pod);
}

TtNetwork
tt_network_of_topology(const TtTopology *topo)
{
    return (TtNetwork){
        .context = topo,
        .n_ranks = tt_topology_n_ranks(topo),
        .ranks_per_node = tt_topology_ranks_per_node(topo),
        .nodes_per_pod = tt_topology_nodes_per_pod(topo),
        .n_links = tt_topology_n_links(topo),
        .link = topology_link,
        .has_bursts = tt_topology_has_bursts(topo),
        .link_name = topology_link_name,
        .route = topology_route,
        .passes_host = topology_passes_host,
        .switch_route = topology_switch_route,
        .rank_out = topology_rank_out,
        .rank_in = topology_rank_in,
        .node_out = topology_node_out,
        .node_in = topology_node_in,
        .pod_out = topology_pod_out,
        .pod_in = topology_pod_in,
    };
}

gboolean
tt_sim_run(const TtPlan *plan, const TtTopology *topo, const TtSimOptions *options,
           TtSimResult *result, GError **error)
{
    TtNetwork net = tt_network_of_topology(topo);

    return tt_sim_run_on(plan, &net, options, result, error);
}
