#include "topologies/nccl_xml.h"
#include "topologies/topology_private.h"

#include <math.h>

GQuark
tt_topology_error_quark(void)
{
    return g_quark_from_static_string("tt-topology-error");
}

void
tt_topology_free(TtTopology *topo)
{
    if (!topo)
        return;
    g_free(topo->name);
    g_free(topo->description);
    tt_keys_free(topo->keys);
    tt_template_free(topo->node);
    tt_network_clear(&topo->network);
    g_strfreev(topo->warnings);
    tt_nccl_xml_free(topo->nccl_xml);
    tt_topology_free_cuts(topo);
    g_free(topo);
}

const TtNcclXml *
tt_topology_nccl_xml(const TtTopology *topo)
{
    return topo->nccl_xml;
}

/* --- routes ------------------------------------------------------------------------------------
 */

static inline guint
append(TtLink *links, guint n, const TtWay *way, guint32 base)
{
    for (guint i = 0; i < way->n; i++)
        links[n + i] = base + way->wire[i];
    return n + way->n;
}

/* Which NICs data from place @src of one node to place @dst of another uses. Ranks with several of
 * their own divide the other nodes among them. */
static inline void
choose_nics(const TtTopology *topo, TtPort *from, guint src, TtPort *to, guint dst)
{
    const TtTemplate *t = topo->node;
    guint n_own = t->n_own;

    to->nic = t->own[dst * n_own + (n_own > 1 ? from->node % n_own : 0)];
    from->nic = topo->network.fabric->keeps_rail && t->on_rail[src * t->n_nics + to->nic]
                    ? to->nic
                    : t->own[src * n_own + (n_own > 1 ? to->node % n_own : 0)];
}

/* From place @src of one node to place @dst of another. */
static guint
route_between(const TtTopology *topo, TtPort from, guint src, TtPort to, guint dst, TtLink *links)
{
    const TtTemplate *t = topo->node;
    guint32 middle[TT_MAX_FABRIC_LINKS];
    guint n, n_middle;

    n = append(links, 0, &t->out[src * t->n_nics + from.nic], from.node * topo->links_per_node);
    n_middle = topo->network.fabric->route(&topo->network, from, to, middle);
    for (guint i = 0; i < n_middle; i++)
        links[n++] = topo->n_nodes * topo->links_per_node + middle[i];
    return append(links, n, &t->in[to.nic * t->n_ranks + dst], to.node * topo->links_per_node);
}

guint
tt_topology_route(const TtTopology *topo, guint src, guint dst, TtLink *links)
{
    const TtTemplate *t = topo->node;
    guint R = t->n_ranks;
    TtPort from = { .node = src / R }, to = { .node = dst / R };
    guint place_src = src - from.node * R, place_dst = dst - to.node * R;

    g_assert(MAX(from.node, to.node) < topo->n_nodes);
    if (from.node == to.node)
        return append(links, 0, &t->local[place_src * R + place_dst],
                      from.node * topo->links_per_node);

    choose_nics(topo, &from, place_src, &to, place_dst);
    return route_between(topo, from, place_src, to, place_dst, links);
}

guint
tt_topology_route_by_nics(const TtTopology *topo, guint src, guint nic_out, guint dst, guint nic_in,
                          TtLink *links)
{
    const TtTemplate *t = topo->node;
    guint R = t->n_ranks, n_nics = t->n_nics;
    TtPort from = { .node = src / R, .nic = nic_out }, to = { .node = dst / R, .nic = nic_in };

    g_assert(MAX(from.node, to.node) < topo->n_nodes && from.node != to.node);
    g_assert(MAX(nic_out, nic_in) < n_nics);
    if (t->out[src % R * n_nics + nic_out].n > TT_MAX_WAY ||
        t->in[nic_in * R + dst % R].n > TT_MAX_WAY)
        return 0;
    return route_between(topo, from, src % R, to, dst % R, links);
}

gboolean
tt_topology_route_passes_host(const TtTopology *topo, guint src, guint dst)
{
    const TtTemplate *t = topo->node;
    guint R = t->n_ranks;
    const TtWay *way = &t->local[src % R * R + dst % R];

    if (src / R != dst / R)
        return FALSE;
    for (guint i = 0; i + 1 < way->n; i++) {
        TtDeviceKind kind =
            tt_template_kind_of(t, g_array_index(t->wires, TtWire, way->wire[i]).to);

        if (kind == TT_DEVICE_CPU || kind == TT_DEVICE_MEMORY)
            return TRUE;
    }
    return FALSE;
}

/* --- to switches that reduce -------------------------------------------------------------------
 */

/* Wires come in pairs, so the way back is the wire's partner. */
static guint
switch_link(const TtTopology *topo, guint rank, gboolean towards, TtLink *links)
{
    const TtTemplate *t = topo->node;
    guint place = rank % t->n_ranks;

    g_assert(rank / t->n_ranks < topo->n_nodes);
    for (guint w = 0; w < t->wires->len; w++) {
        const TtWire *wire = &g_array_index(t->wires, TtWire, w);
        guint near = towards ? wire->from : wire->to, far = towards ? wire->to : wire->from;

        if (near == place && far < t->n_devices &&
            tt_template_kind_of(t, far) == TT_DEVICE_NVSWITCH) {
            links[0] = rank / t->n_ranks * topo->links_per_node + w;
            return 1;
        }
    }
    return TT_NO_SWITCH;
}

guint
tt_topology_route_to_switch(const TtTopology *topo, guint rank, TtLink *links)
{
    return switch_link(topo, rank, TRUE, links);
}

guint
tt_topology_route_from_switch(const TtTopology *topo, guint rank, TtLink *links)
{
    return switch_link(topo, rank, FALSE, links);
}

/* Through the rank's first own NIC. */
static const TtWay *
network_way(const TtTopology *topo, guint rank, gboolean towards)
{
    const TtTemplate *t = topo->node;
    guint place = rank % t->n_ranks, nic;

    g_assert(rank / t->n_ranks < topo->n_nodes);
    if (!t->own || t->n_own == 0)
        return NULL;
    nic = t->own[place * t->n_own];
    return towards ? &t->out[place * t->n_nics + nic] : &t->in[nic * t->n_ranks + place];
}

guint
tt_topology_route_to_network(const TtTopology *topo, guint rank, TtLink *links)
{
    const TtWay *way = network_way(topo, rank, TRUE);

    return way ? append(links, 0, way, rank / topo->node->n_ranks * topo->links_per_node)
               : TT_NO_SWITCH;
}

guint
tt_topology_route_from_network(const TtTopology *topo, guint rank, TtLink *links)
{
    const TtWay *way = network_way(topo, rank, FALSE);

    return way ? append(links, 0, way, rank / topo->node->n_ranks * topo->links_per_node)
               : TT_NO_SWITCH;
}

TtTime
tt_topology_route_latency_ps(const TtTopology *topo, guint src, guint dst)
{
    TtLink links[TT_MAX_ROUTE];
    guint n = tt_topology_route(topo, src, dst, links);
    TtTime sum = 0;

    for (guint i = 0; i < n; i++)
        sum += tt_topology_link(topo, links[i]).latency_ps;
    return sum;
}

double
tt_topology_route_bytes_per_s(const TtTopology *topo, guint src, guint dst)
{
    TtLink links[TT_MAX_ROUTE];
    guint n = tt_topology_route(topo, src, dst, links);
    double smallest = INFINITY;

    for (guint i = 0; i < n; i++)
        smallest = MIN(smallest, tt_topology_link(topo, links[i]).capacity_bytes_per_s);
    return smallest;
}

/* --- links -------------------------------------------------------------------------------------
 */

static const TtWire *
wire_of(const TtTopology *topo, TtLink link)
{
    return &g_array_index(topo->node->wires, TtWire, link % topo->links_per_node);
}

/* A link between switches, or a template's? */
static gboolean
is_between_switches(const TtTopology *topo, TtLink link)
{
    g_assert(link < topo->n_links);
    return link >= topo->n_nodes * topo->links_per_node;
}

TtLinkInfo
tt_topology_link(const TtTopology *topo, TtLink link)
{
    const TtWire *wire;
    const TtBundle *bundle;
    TtTime hop_ps = topo->network.hop_ps;

    if (is_between_switches(topo, link)) {
        guint32 inner = link - topo->n_nodes * topo->links_per_node;

        return (TtLinkInfo){ topo->network.fabric->capacity_bytes_per_s(&topo->network, inner),
                             hop_ps, topo->network.kind, topo->network.burst_bytes };
    }
    wire = wire_of(topo, link);
    bundle = &g_array_index(topo->node->bundles, TtBundle, wire->bundle);
    /* The cable into a node starts at a switch. */
    return (TtLinkInfo){ wire->capacity_bytes_per_s,
                         wire->latency_ps + (wire->from == topo->node->n_devices ? hop_ps : 0),
                         bundle->kind, bundle->burst_bytes };
}

gboolean
tt_topology_has_bursts(const TtTopology *topo)
{
    for (guint b = 0; b < topo->node->bundles->len; b++)
        if (g_array_index(topo->node->bundles, TtBundle, b).burst_bytes > 0)
            return TRUE;
    return topo->network.burst_bytes > 0;
}

static char *
end_name(const TtTopology *topo, guint node, const TtWire *wire, guint device)
{
    const TtTemplate *t = topo->node;

    if (device == t->n_devices && topo->network.fabric) {
        guint nic = (wire->from == device ? wire->to : wire->from) - t->first[TT_DEVICE_NIC];

        return topo->network.fabric->switch_name(&topo->network, (TtPort){ node, nic });
    }
    return tt_template_device_name(t, device);
}

char *
tt_topology_link_name(const TtTopology *topo, TtLink link)
{
    if (is_between_switches(topo, link))
        return topo->network.fabric->link_name(&topo->network,
                                               link - topo->n_nodes * topo->links_per_node);

    guint node = link / topo->links_per_node;
    const TtWire *wire = wire_of(topo, link);
    g_autofree char *from = end_name(topo, node, wire, wire->from);
    g_autofree char *to = end_name(topo, node, wire, wire->to);

    return g_strdup_printf("node %u: %s -> %s", node, from, to);
}

/* --- plain queries -----------------------------------------------------------------------------
 */

const char *
tt_topology_name(const TtTopology *topo)
{
    return topo->name;
}

guint
tt_topology_n_ranks(const TtTopology *topo)
{
    return topo->n_nodes * topo->node->n_ranks;
}

guint
tt_topology_n_nodes(const TtTopology *topo)
{
    return topo->n_nodes;
}

guint
tt_topology_ranks_per_node(const TtTopology *topo)
{
    return topo->node->n_ranks;
}

guint
tt_topology_nics_per_node(const TtTopology *topo)
{
    return topo->node->n_nics;
}

guint
tt_topology_cores_per_node(const TtTopology *topo)
{
    return topo->node->cores;
}

guint32
tt_topology_n_links(const TtTopology *topo)
{
    return topo->n_links;
}

const char *const *
tt_topology_warnings(const TtTopology *topo)
{
    return (const char *const *)topo->warnings;
}

guint
tt_topology_nodes_per_pod(const TtTopology *topo)
{
    const TtNetwork *network = &topo->network;

    if (network->n_links == 0 || !network->fabric->pod_bytes_per_s)
        return 0;
    return MIN(network->nodes_per_leaf, topo->n_nodes);
}

/* Links come in pairs of one rate, so both directions are alike, and so are all pods. */
static double
pod_bytes_per_s(const TtTopology *topo, guint pod)
{
    g_assert(tt_topology_nodes_per_pod(topo) > 0);
    g_assert((guint64)pod * tt_topology_nodes_per_pod(topo) < topo->n_nodes);
    return topo->network.fabric->pod_bytes_per_s(&topo->network);
}

double
tt_topology_pod_out_bytes_per_s(const TtTopology *topo, guint pod)
{
    return pod_bytes_per_s(topo, pod);
}

double
tt_topology_pod_in_bytes_per_s(const TtTopology *topo, guint pod)
{
    return pod_bytes_per_s(topo, pod);
}
