/* graph.h - shortest ways through one node.
 *
 * Dijkstra (Numerische Mathematik 1, 1959) where a wire costs what a message of 1 MiB would take on
 * it, latency included: big enough to prefer NVLink over PCIe, small enough to prefer fewer hops at
 * equal speed. Costs are integer picoseconds, so equal is equal on every machine; among equals the
 * sum of the end points' numbers decides, which spreads pairs over parallel switches. Only CPUs,
 * caches, memories and switches forward.
 */
#pragma once
#include "topologies/template.h"

#define TT_UNREACHABLE G_MAXINT64
#define TT_NO_WAY      G_MAXUINT16 /* TtWay.n where there is none */

/* The wires by the device they leave, and those that leave a forwarding device by the one they
 * enter: of a switch's hundreds of wires a way's last step can only come from the source or from
 * there. */
typedef struct {
    const TtTemplate *t;
    const TtWire *wire;
    gint64 *cost_ps;             /* [n_wires] */
    guint *out_first, *in_first; /* [n_devices + 2] */
    guint16 *out_wire, *in_wire; /* [n_wires] */
    gint64 *dist_ps;             /* [n_devices + 1], of the last search */
    gboolean *done;
} TtGraph;

void tt_graph_init(TtGraph *graph, const TtTemplate *t); /* borrows @t */
void tt_graph_clear(TtGraph *graph);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(TtGraph, tt_graph_clear)

/* Distances from @src to every device. O(forwarding devices squared + wires). */
void tt_graph_search(TtGraph *graph, guint src);

/* Writes the way from the search's @src to @dst; n is TT_NO_WAY if there is none within TT_MAX_WAY.
 */
void tt_graph_trace(const TtGraph *graph, guint src, guint dst, TtWay *way);

/* What a way costs; TT_UNREACHABLE for TT_NO_WAY. */
gint64 tt_graph_cost_ps(const TtGraph *graph, const TtWay *way);
