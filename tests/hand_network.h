/* hand_network.h - wires drawn by hand, so that a test's arithmetic fits in a comment.
 *
 *     crossbar   every rank has one link up and one down: 0..P-1 up, P..2P-1 down
 *     bus        one link shared by all messages
 *     line       rank i -> i+1 over link i, i -> i-1 over link P+i; messages pass through
 *     two_level  nodes of ranks: links up and down of every rank, then out and in of every node
 *     backplane  a crossbar whose messages all cross link 2P as well, of node_bytes_per_s
 */
#pragma once
#include "sim/network.h"

#include <math.h>

typedef enum { HAND_CROSSBAR, HAND_BUS, HAND_LINE, HAND_TWO_LEVEL, HAND_BACKPLANE } HandShape;

typedef struct {
    HandShape shape;
    guint n_ranks, per_node;
    double rank_bytes_per_s, node_bytes_per_s; /* node: two_level, backplane */
    TtTime latency_ps;                         /* of every link */
    const char *kind;                          /* NULL: "ib" */
    gboolean unbounded; /* no bandwidth bounds: for plans that do no collective */
} HandWires;

static inline guint
hand_n_nodes(const HandWires *w)
{
    return (w->n_ranks + w->per_node - 1) / w->per_node;
}

static inline TtLinkInfo
hand_link(gconstpointer context, TtLink link)
{
    const HandWires *w = context;
    gboolean is_node = link >= 2 * w->n_ranks;

    return (TtLinkInfo){ is_node ? w->node_bytes_per_s : w->rank_bytes_per_s, w->latency_ps,
                         w->kind ? w->kind : "ib" };
}

static inline char *
hand_link_name(gconstpointer context, TtLink link)
{
    (void)context;
    return g_strdup_printf("wire %u", link);
}

static inline guint
hand_route(gconstpointer context, guint src, guint dst, TtLink *links)
{
    const HandWires *w = context;
    guint n = 0, P = w->n_ranks, a = src / w->per_node, b = dst / w->per_node;

    if (src == dst)
        return 0;
    switch (w->shape) {
    case HAND_BUS: links[n++] = 0; break;
    case HAND_LINE:
        for (guint r = src; r < dst; r++)
            links[n++] = r;
        for (guint r = src; r > dst; r--)
            links[n++] = P + r;
        break;
    default:
        links[n++] = src;
        if (w->shape == HAND_TWO_LEVEL && a != b) {
            links[n++] = 2 * P + a;
            links[n++] = 2 * P + hand_n_nodes(w) + b;
        }
        if (w->shape == HAND_BACKPLANE)
            links[n++] = 2 * P;
        links[n++] = P + dst;
    }
    return n;
}

/* Switches that reduce stand in the middle: half of a route, up or down. */
static inline guint
hand_switch_route(gconstpointer context, guint rank, guint node, gboolean towards, TtLink *links)
{
    const HandWires *w = context;
    guint n = 0, P = w->n_ranks, own = rank / w->per_node;

    if (w->shape == HAND_BUS || w->shape == HAND_LINE) {
        links[n++] = w->shape == HAND_BUS ? 0 : towards ? rank : P + rank;
        return n;
    }
    if (towards)
        links[n++] = rank;
    if (w->shape == HAND_TWO_LEVEL && node == TT_NETWORK_SWITCH)
        links[n++] = 2 * P + (towards ? own : hand_n_nodes(w) + own);
    if (!towards)
        links[n++] = P + rank;
    return n;
}

static inline double
hand_rank_rate(gconstpointer context, guint rank)
{
    const HandWires *w = context;
    gboolean is_inner = w->shape == HAND_LINE && rank > 0 && rank + 1 < w->n_ranks;

    if (w->unbounded)
        return INFINITY;
    return is_inner ? 2 * w->rank_bytes_per_s : w->rank_bytes_per_s;
}

static inline double
hand_node_rate(gconstpointer context, guint node)
{
    const HandWires *w = context;

    (void)node;
    return w->shape == HAND_TWO_LEVEL && !w->unbounded ? w->node_bytes_per_s : INFINITY;
}

/* Borrows @wires; one node unless two_level. */
static inline TtNetwork
hand_network(HandWires *wires)
{
    if (wires->per_node == 0)
        wires->per_node = wires->n_ranks;
    return (TtNetwork){ .context = wires,
                        .n_ranks = wires->n_ranks,
                        .ranks_per_node = wires->per_node,
                        .n_links = 2 * wires->n_ranks + 2 * hand_n_nodes(wires),
                        .link = hand_link,
                        .link_name = hand_link_name,
                        .route = hand_route,
                        .switch_route = hand_switch_route,
                        .rank_out = hand_rank_rate,
                        .rank_in = hand_rank_rate,
                        .node_out = hand_node_rate,
                        .node_in = hand_node_rate };
}
