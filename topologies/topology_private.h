/* topology_private.h - what the files that open, route and describe a topology share. */
#pragma once
#include "topologies/fabric.h"
#include "topologies/template.h"

/* What a rank, and a node, can send and take at most. */
typedef struct {
    /* [ranks of a node] What the first (last) wires of its routes carry. */
    double *rank_out_bytes_per_s, *rank_in_bytes_per_s;
    double node_out_bytes_per_s, node_in_bytes_per_s;
} TtCuts;

struct TtTopology {
    char *name, *description;
    TtKeys *keys; /* every constant with its source, for descriptions */
    TtTemplate *node;
    TtNetwork network; /* fabric NULL: none */
    guint n_nodes;
    guint32 links_per_node, n_links;
    char **warnings;
    TtNcclXml *nccl_xml; /* the file the node came from, unchanged since; NULL: none */

    TtCuts own_nics, any_nic; /* of routes by ranks' own NICs, and by whatever NICs are asked for */
};

/* Fills own_nics and any_nic, and frees them. */
void tt_topology_sum_cuts(TtTopology *topo);
void tt_topology_free_cuts(TtTopology *topo);

/* Builds a topology of @n_nodes nodes from its keys, which it takes over, also on failure. */
TtTopology *tt_topology_new(TtKeys *keys, const char *name, guint n_nodes, GError **error);

/* The same from an .ini text; @where names it. @n_nodes 0: what the text says, else 1. */
TtTopology *tt_topology_parse(const char *text, gsize length, const char *where, guint n_nodes,
                              const char *const *settings, GError **error);

/* This machine with @n_ranks ranks (0: one per core) as an .ini text. discover_this.c, or its
 * stand-in where hwloc is missing. Caller frees. */
char *tt_discover_this(guint n_ranks, GError **error);
