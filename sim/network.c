#include "sim/network.h"

#include <math.h>
#include <string.h>

TtTime
tt_network_latency_ps(const TtNetwork *net, guint src, guint dst)
{
    TtLink links[TT_MAX_ROUTE];
    guint n = net->route(net->context, src, dst, links);
    TtTime sum_ps = 0;

    for (guint i = 0; i < n; i++)
        sum_ps += net->link(net->context, links[i]).latency_ps;
    return sum_ps;
}

double
tt_network_bytes_per_s(const TtNetwork *net, guint src, guint dst)
{
    TtLink links[TT_MAX_ROUTE];
    guint n = net->route(net->context, src, dst, links);
    double least = INFINITY;

    for (guint i = 0; i < n; i++)
        least = MIN(least, net->link(net->context, links[i]).capacity_bytes_per_s);
    return least;
}

TtHop
tt_network_hop(const TtNetwork *net, guint src, guint dst)
{
    TtLink links[TT_MAX_ROUTE];
    guint n;
    TtHop hop = TT_HOP_NVLINK;

    if (src == dst)
        return TT_HOP_LOCAL;
    if (src / net->ranks_per_node != dst / net->ranks_per_node)
        return TT_HOP_NET;
    if (net->passes_host && net->passes_host(net->context, src, dst))
        return TT_HOP_HOST;
    n = net->route(net->context, src, dst, links);
    for (guint i = 0; i < n; i++) {
        const char *kind = net->link(net->context, links[i]).kind;

        if (strcmp(kind, "ib") == 0 || strcmp(kind, "ethernet") == 0)
            return TT_HOP_NET;
        if (strcmp(kind, "cpu") == 0 || strcmp(kind, "memory") == 0)
            return TT_HOP_HOST;
        if (strcmp(kind, "pcie") == 0)
            hop = TT_HOP_PCIE;
    }
    return hop;
}

/* --- without memory links ----------------------------------------------------------------------
 */

static TtLinkInfo
bare_link(gconstpointer context, TtLink link)
{
    const TtNetwork *inner = context;
    TtLinkInfo info = inner->link(inner->context, link);

    if (strcmp(info.kind, "memory") == 0) {
        info.capacity_bytes_per_s = INFINITY;
        info.latency_ps = 0;
    }
    return info;
}

static char *
bare_link_name(gconstpointer context, TtLink link)
{
    const TtNetwork *inner = context;

    return inner->link_name(inner->context, link);
}

static guint
bare_route(gconstpointer context, guint src, guint dst, TtLink *links)
{
    const TtNetwork *inner = context;

    return inner->route(inner->context, src, dst, links);
}

static gboolean
bare_passes_host(gconstpointer context, guint src, guint dst)
{
    const TtNetwork *inner = context;

    return inner->passes_host(inner->context, src, dst);
}

static guint
bare_switch_route(gconstpointer context, guint rank, guint node, gboolean towards, TtLink *links)
{
    const TtNetwork *inner = context;

    return inner->switch_route(inner->context, rank, node, towards, links);
}

static double
unlimited(gconstpointer context, guint rank)
{
    (void)context, (void)rank;
    return INFINITY;
}

static double
bare_node_out(gconstpointer context, guint node)
{
    const TtNetwork *inner = context;

    return inner->node_out(inner->context, node);
}

static double
bare_node_in(gconstpointer context, guint node)
{
    const TtNetwork *inner = context;

    return inner->node_in(inner->context, node);
}

static double
bare_pod_out(gconstpointer context, guint pod)
{
    const TtNetwork *inner = context;

    return inner->pod_out(inner->context, pod);
}

static double
bare_pod_in(gconstpointer context, guint pod)
{
    const TtNetwork *inner = context;

    return inner->pod_in(inner->context, pod);
}

TtNetwork
tt_network_without_memory(const TtNetwork *inner)
{
    TtNetwork net = *inner;

    net.context = inner;
    net.link = bare_link;
    net.link_name = bare_link_name;
    net.route = bare_route;
    net.passes_host = inner->passes_host ? bare_passes_host : NULL;
    net.switch_route = inner->switch_route ? bare_switch_route : NULL;
    net.rank_out = net.rank_in = unlimited;
    net.node_out = bare_node_out;
    net.node_in = bare_node_in;
    net.pod_out = bare_pod_out;
    net.pod_in = bare_pod_in;
    return net;
}
