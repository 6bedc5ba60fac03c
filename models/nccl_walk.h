/* nccl_walk.h - one try of NCCL's search: as many channels as the links carry at given speeds.
 *
 * A channel is a walk over all GPUs of the node: from a net (if there are several nodes) to a first GPU,
 * on from GPU to GPU, and back to a net or to the first GPU, as the pattern asks. Every hop takes its
 * speed off all links of the way. Depth first: with a channel complete the next one is looked for on
 * what is left, then other walks are tried, until every way was taken, the budget of steps is spent or
 * the most channels wanted are found. The order of tries decides what is found within the budget, so
 * it follows NCCL's (src/graph/search.cc).
 */
#pragma once
#include "models/nccl_paths.h"

/* What differs between versions. */
typedef struct {
    gboolean rotate_nets;     /* channel c starts at the c-th net (2.19) */
    gboolean replay_or_new;   /* the last channel's order, or others: not both (2.19) */
    gboolean pci_order_first; /* also with NVSwitches (before 2.19) */
    gboolean nvls_from_net;   /* NVLS heads count their net's traffic (2.19) */
    gboolean alternate;       /* crossNic 2: pairs of channels swap nets (2.23) */
    gboolean cross_penalty;   /* crossing nets must be 15 % better (before 2.21) */
    gboolean both_ways;       /* trees need the way back to be as near (2.21) */
} TtWalkRules;

/* The terms of a try, and the best found over all tries so far. */
typedef struct {
    TtNcclGraph graph;
    gboolean collnet; /* nets must support in-network reduction */
    guint min_channels, max_channels;
    int n_hops;
} TtWalkGraph;

typedef struct TtWalk TtWalk;

TtWalk *tt_nccl_walk_new(const TtNcclPaths *paths, const TtWalkRules *rules);
void tt_nccl_walk_free(TtWalk *walk);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtWalk, tt_nccl_walk_free)

/* Tries within @budget steps; @best is replaced by what is better. Returns the steps left, -1 if @best
 * now has the most channels wanted. */
int tt_nccl_walk_try(TtWalk *walk, const TtWalkGraph *terms, TtWalkGraph *best, int budget);

/* Hops tried so far, over all tries: what the search costs us. */
guint64 tt_nccl_walk_effort(const TtWalk *walk);

/* Copies of the figures and of the channels in use only: a TtNcclGraph is large. */
void tt_nccl_walk_copy(TtWalkGraph *to, const TtWalkGraph *from);
