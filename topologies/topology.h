/* topology.h - who is wired to whom: a node drawn once, repeated, joined by a fabric.
 *
 * Devices are GPUs (or plain hosts: whatever holds a rank), CPUs, PCIe switches, NICs, NVSwitches and
 * network switches; links are directed, with a capacity and a latency. Everything of a node is stored
 * once (the template), the fabric is computed from node numbers, so memory does not grow with the
 * number of nodes. Routes are static.
 *
 * Ids: rank r sits in node r / ranks_per_node at place r % ranks_per_node. Link ids are dense:
 * node * links_per_node + link of the template, then the fabric's links.
 *
 * Knows nothing of plans, collectives or time beyond a link's latency.
 */
#pragma once
#include "models/units.h"

#define TT_TOPOLOGY_ERROR (tt_topology_error_quark())
GQuark tt_topology_error_quark(void);
typedef enum {
    TT_TOPOLOGY_ERROR_USAGE, /* a bad --topo or --set: unknown preset, key or node count */
    TT_TOPOLOGY_ERROR_FILE   /* a bad file: names file, line or key, and what is allowed */
} TtTopologyError;

typedef guint32 TtLink;
#define TT_NO_LINK   G_MAXUINT32
#define TT_MAX_ROUTE 24 /* links a route may have */

typedef struct {
    double capacity_bytes_per_s; /* > 0, may be INFINITY */
    TtTime latency_ps;           /* >= 0 */
    const char *kind;            /* "nvlink", "pcie", "ib", "ethernet", "memory"; borrowed */
    double burst_bytes; /* a token bucket's: so much passes at once after a pause; 0: nothing */
} TtLinkInfo;

typedef struct TtTopology TtTopology;
typedef struct TtNcclXml TtNcclXml; /* topologies/nccl_xml.h */

/* What a user writes after --topo: "dgx-h100:16", "mycluster.ini", "mycluster.ini:4", "node.xml:4"
 * (a node as NCCL dumped it), "this".
 * @settings: NULL-terminated "section.key=value" overrides (--set), or NULL. */
TtTopology *tt_topology_open(const char *text, const char *const *settings, GError **error);
void tt_topology_free(TtTopology *topo);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtTopology, tt_topology_free)

const char *tt_topology_name(const TtTopology *topo); /* "dgx-h100:16" */
guint tt_topology_n_ranks(const TtTopology *topo);
guint tt_topology_n_nodes(const TtTopology *topo);
guint tt_topology_ranks_per_node(const TtTopology *topo);
guint tt_topology_nics_per_node(const TtTopology *topo); /* 0 if there is no network */
guint
tt_topology_cores_per_node(const TtTopology *topo); /* CPU cores the ranks of a node share; 0: a
                                                             rank's lanes need no core (GPUs) */

/* Links of the whole machine, and one of them. The name ("node 3: gpu 0 -> nvswitch 0") is for people;
 * the caller frees it. */
guint32 tt_topology_n_links(const TtTopology *topo);
gboolean tt_topology_has_bursts(const TtTopology *topo); /* some link is shaped by a token bucket */
TtLinkInfo tt_topology_link(const TtTopology *topo, TtLink link);
char *tt_topology_link_name(const TtTopology *topo, TtLink link);

/* Writes the links from @src's device to @dst's, in order, and returns how many (<= TT_MAX_ROUTE).
 * 0 for src == dst. O(hops), no allocation, thread-safe. */
guint tt_topology_route(const TtTopology *topo, guint src, guint dst, TtLink *links);

/* The same between nodes, leaving through NIC @nic_out of the one and reaching the other through @nic_in,
 * whatever their own are. 0 if there is no such way. */
guint tt_topology_route_by_nics(const TtTopology *topo, guint src, guint nic_out, guint dst,
                                guint nic_in, TtLink *links);

/* TRUE if the route stays in its node and passes a CPU or its memory. */
gboolean tt_topology_route_passes_host(const TtTopology *topo, guint src, guint dst);

/* Links between a rank and its node's NVSwitch, or between a rank and the first switch of the
 * network behind the NIC of its own (for switches that reduce); TT_NO_SWITCH if there is none that
 * is one link away, or no network. */
#define TT_NO_SWITCH G_MAXUINT
guint tt_topology_route_to_switch(const TtTopology *topo, guint rank, TtLink *links);
guint tt_topology_route_from_switch(const TtTopology *topo, guint rank, TtLink *links);
guint tt_topology_route_to_network(const TtTopology *topo, guint rank, TtLink *links);
guint tt_topology_route_from_network(const TtTopology *topo, guint rank, TtLink *links);

/* Sum of latencies and smallest capacity along the route. */
TtTime tt_topology_route_latency_ps(const TtTopology *topo, guint src, guint dst);
double tt_topology_route_bytes_per_s(const TtTopology *topo, guint src, guint dst);

/* For lower bounds: what the ranks of a set can inject into, or take from, the rest at most. */
double tt_topology_rank_out_bytes_per_s(const TtTopology *topo,
                                        guint rank); /* one rank's own links */
double tt_topology_rank_in_bytes_per_s(const TtTopology *topo, guint rank);
double tt_topology_node_out_bytes_per_s(const TtTopology *topo,
                                        guint node); /* a node's NICs together */
double tt_topology_node_in_bytes_per_s(const TtTopology *topo, guint node);

/* The same where routes may also be tt_topology_route_by_nics(): NICs that are nobody's own count too. */
double tt_topology_any_nic_rank_out_bytes_per_s(const TtTopology *topo, guint rank);
double tt_topology_any_nic_rank_in_bytes_per_s(const TtTopology *topo, guint rank);
double tt_topology_any_nic_node_out_bytes_per_s(const TtTopology *topo, guint node);
double tt_topology_any_nic_node_in_bytes_per_s(const TtTopology *topo, guint node);

/* A pod: nodes that follow each other and reach the others through the same leaves (the last pod
 * may have fewer). Node n is in pod n / nodes_per_pod; 0: no spine is between any two nodes. The
 * rates are those of all links from its leaves to the spines, and back. */
guint tt_topology_nodes_per_pod(const TtTopology *topo);
double tt_topology_pod_out_bytes_per_s(const TtTopology *topo, guint pod);
double tt_topology_pod_in_bytes_per_s(const TtTopology *topo, guint pod);

/* A full description: devices, links with capacity, latency, source and kind of every constant, the
 * fabric, warnings about settings nothing used. Text for people; the JSON form for programs. */
char *tt_topology_describe(const TtTopology *topo);
char *tt_topology_to_json(const TtTopology *topo);
char *tt_topology_to_ini(const TtTopology *topo); /* the file that would make it, --set included */
const char *const *tt_topology_warnings(const TtTopology *topo); /* NULL-terminated, maybe empty */

/* The NCCL topology file it came from; NULL if it came from none, or a --set changed the node, so that
 * the file no longer describes it (tt_nccl_xml_of_topology() always does). */
const TtNcclXml *tt_topology_nccl_xml(const TtTopology *topo);

/* The presets compiled in: name and one-line summary, sorted, name NULL at the end. */
typedef struct {
    const char *name, *summary, *text; /* text: the .ini itself */
} TtPreset;
extern const TtPreset tt_presets[];
