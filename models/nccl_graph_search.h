/* nccl_graph_search.h - the search for one graph: which terms to try, in which order, and when to stop.
 *
 * Tries (nccl_walk.h) start from the highest speed and the nearest kinds of ways and relax one thing at
 * a time until nothing better can be had; then the speed is raised while the channels hold
 * (NCCL's ncclTopoCompute, src/graph/search.cc).
 */
#pragma once
#include "models/nccl_walk.h"

/* @graph: id and pattern given. Limits on channels as NCCL sets them for each graph. With @collnet only
 * nets that reduce count. Fills @graph; n_channels is 0 if there is no such graph. Nets in it are NCCL's
 * numbers, GPUs places in the node. */
void tt_nccl_graph_search(const TtNcclPaths *paths, const TtNcclEnv *env, gboolean collnet,
                          guint min_channels, guint max_channels, TtNcclGraph *graph);
