/* nccl_search.h - NCCL's topology search: from a node's devices to rings, trees and their speeds.
 *
 * How it goes (NCCL's src/graph and src/init.cc):
 *
 *     nccl_system    the file's devices and links, with the bandwidths NCCL believes in
 *     nccl_paths     ways between GPUs, nets and CPUs
 *     nccl_graph_search, nccl_walk    per graph: tries on ever weaker terms, each a depth-first search
 *     nccl_channels  merge over nodes, counts of channels
 *
 * The same file, version and environment give the same answer. Usually within milliseconds; tenths of a
 * second where NCCL itself would run into its time-outs.
 */
#pragma once
#include "models/nccl_env.h"
#include "topologies/nccl_xml.h"

/* What NCCL @version finds on @n_nodes nodes like @node: paths, graphs, channel counts. @env may be NULL.
 * GPUs in graphs are places in the node: positions in the order of ranks (without ranks: of CUDA device
 * numbers); nets are NCCL's numbers of them (dev), -1 with one node.
 * Graphs of a file that @env names (NCCL_GRAPH_FILE, nccl_graph_file.h) take the place of searched ones.
 * The graphs are those of one node before (@unmerged, may be NULL, TT_N_GRAPHS of them) and after the merge
 * over nodes. TT_NCCL_ERROR_USAGE with one line if there is no GPU, or more than we can hold; what
 * the file is refused for. */
gboolean tt_nccl_comm_init(TtNcclComm *comm, const TtNcclXml *node, guint n_nodes, guint version,
                           const TtNcclEnv *env, TtNcclGraph *unmerged, GError **error);
