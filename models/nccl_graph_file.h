/* nccl_graph_file.h - graphs by NCCL_GRAPH_FILE instead of the search, and the search's as such a file.
 *
 * A file (topologies/nccl_graph_xml.h) names GPUs and nets by their numbers; here they are looked up in a
 * node. Graphs are those of one node, before nodes are merged and channels doubled.
 */
#pragma once
#include "models/nccl_system.h"

typedef struct {
    gboolean given[TT_N_GRAPHS]; /* what the file has no channels for is still searched */
    TtNcclGraph graph[TT_N_GRAPHS];
} TtNcclGraphFile;

/* NULL with one line (path, graph, channel, what is allowed) where the file does not fit the node or what
 * NCCL can hold. @env may be NULL. Free with g_free(). */
TtNcclGraphFile *tt_nccl_graph_file_load(const char *path, const TtNcclSystem *system,
                                         const TtNcclEnv *env, GError **error);

/* The file of @graph [TT_N_GRAPHS], as one of @n_nodes nodes like @node found them. Loading it gives them
 * back. Caller frees. NULL where tt_nccl_system_new() fails. */
char *tt_nccl_graph_file_text(const TtNcclGraph *graph, const TtNcclXml *node, guint n_nodes,
                              guint version, GError **error);
