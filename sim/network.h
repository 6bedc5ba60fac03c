/* network.h - what the simulator needs to know of a machine: links, routes, and what a set of ranks
 * can inject at most.
 *
 * A thin view, so that the engine can be tested on wires drawn by hand; network_topology.c makes
 * one of a TtTopology. Callbacks are pure and get @context first.
 */
#pragma once
#include "sim/sim.h"

#define TT_NETWORK_SWITCH G_MAXUINT
#define TT_NO_ROUTE       G_MAXUINT

typedef struct {
    gconstpointer context;
    guint n_ranks;
    guint ranks_per_node; /* >= 1; rank r sits on node r / ranks_per_node */
    guint nodes_per_pod;  /* node n is in pod n / nodes_per_pod; 0: no pods */
    guint32 n_links;
    gboolean has_bursts; /* some links are shaped by token buckets (TtLinkInfo.burst_bytes) */

    TtLinkInfo (*link)(gconstpointer context, TtLink link);
    char *(*link_name)(gconstpointer context, TtLink link); /* caller frees */
    guint (*route)(gconstpointer context, guint src, guint dst, TtLink *links);
    /* Where channels between the same ranks take ways of their own, it gets @channel_context. NULL: route()
     * for all. */
    guint (*channel_route)(gconstpointer context, guint src, guint dst, guint channel,
                           TtLink *links);
    gconstpointer channel_context;
    /* The route goes through a CPU or its memory. NULL: links of kind "cpu" and "memory" tell. */
    gboolean (*passes_host)(gconstpointer context, guint src, guint dst);
    /* Links between a rank and a switch that reduces: the one of node @node, or the network itself
     * (TT_NETWORK_SWITCH). TT_NO_ROUTE if there is no such switch; NULL: there are none. */
    guint (*switch_route)(gconstpointer context, guint rank, guint node, gboolean towards,
                          TtLink *links);

    /* Bytes per second, for the lower bounds; INFINITY where nothing limits. */
    double (*rank_out)(gconstpointer context, guint rank);
    double (*rank_in)(gconstpointer context, guint rank);
    double (*node_out)(gconstpointer context, guint node);
    double (*node_in)(gconstpointer context, guint node);
    double (*pod_out)(gconstpointer context, guint pod); /* pod_*: only with nodes_per_pod > 0 */
    double (*pod_in)(gconstpointer context, guint pod);
} TtNetwork;

/* A view of @topo, which must outlive it. */
TtNetwork tt_network_of_topology(const TtTopology *topo);

/* Sum of latencies and smallest capacity along a route; 0 and INFINITY from a rank to itself. */
TtTime tt_network_latency_ps(const TtNetwork *net, guint src, guint dst);
double tt_network_bytes_per_s(const TtNetwork *net, guint src, guint dst);

/* What kind of connection joins two ranks. */
TtHop tt_network_hop(const TtNetwork *net, guint src, guint dst);

/* @inner with its links of kind "memory" free, for profiles that already hold what they cost. What
 * a rank can inject is then unknown. Borrows @inner. */
TtNetwork tt_network_without_memory(const TtNetwork *inner);

/* sim.h's functions on any network. */
gboolean tt_sim_run_on(const TtPlan *plan, const TtNetwork *net, const TtSimOptions *options,
                       TtSimResult *result, GError **error);
TtTime tt_sim_bound_on_ps(const TtPlan *plan, const TtNetwork *net, char **limit);
