/* nccl_walk_private.h - the state of a walk, shared by the nccl_walk*.c files and nobody else.
 *
 *     nccl_walk.c        from GPU to GPU and back to a net: the recursion
 *     nccl_walk_start.c  where a channel starts
 *     nccl_walk_order.c  which net, which GPU to try next
 *     nccl_walk_links.c  bandwidth left on links
 */
#pragma once
#include "models/nccl_walk.h"

#define TT_WALK_NOWHERE G_MAXUINT

typedef enum { TT_WALK_FREE, TT_WALK_PCI, TT_WALK_REPLAY } TtWalkOrder;

/* What counts about a link when traffic is taken off it. */
typedef struct {
    gboolean is_pci, to_old_gpu, to_power_cpu;
    guint reverse;
} TtWalkTraits;

/* Where in a walk over all GPUs it returns to a net, or to its first GPU; -1: not at all. */
typedef struct {
    int to_net, to_first;
    TtWalkOrder order;
} TtWalkPlan;

struct TtWalk {
    const TtNcclPaths *paths;
    const TtNcclSystem *system;
    TtWalkRules rules;
    guint n_gpus, n_nets;
    gboolean has_nvs;
    TtWalkTraits *traits;
    int *full, *left;               /* MB/s of each link: NCCL rounds to these after every step */
    float *net_bw;                  /* left, [n_nets] */
    guint64 used[TT_NCCL_MAX_GPUS]; /* bit c: in channel c */
    float pci_bw[TT_NCCL_MAX_GPUS];

    /* Nets to try from each GPU, and (last) to start from, nearest first, for @order_type. */
    guint order_type;
    guint16 *net_order[TT_NCCL_MAX_GPUS + 1];
    guint n_net_order[TT_NCCL_MAX_GPUS + 1];

    /* All other GPUs, best first, [(1 + net) * n_gpus + gpu]; each made when first needed. */
    guint16 **peers;
    guint16 *candidates; /* a stack of next GPUs to try */
    gsize n_candidates, room;

    guint64 effort;
    TtWalkGraph now;
    TtWalkGraph *best;
};

static inline const TtSysNode *
tt_walk_net(const TtWalk *w, guint n)
{
    return tt_nccl_system_node(w->system, TT_SYS_NET, n);
}

static inline gboolean
tt_walk_same_port(const TtSysNode *a, const TtSysNode *b)
{
    return a->asic == b->asic && a->port == b->port;
}

/* Takes @share times the speed of the try off all links from end to end. FALSE, and nothing is taken, if
 * a link lacks it or the way is of too far a kind. */
gboolean tt_walk_go(TtWalk *w, guint from, guint to, float share);
void tt_walk_undo(TtWalk *w, guint from, guint to, float share);

/* Fills @w->net_order for the kinds of ways of this try. */
void tt_walk_order_nets(TtWalk *w);

/* GPUs to go to from @g, best first; returns how many. @near_net: 1 for the hop after which the channel
 * goes to its net, -1 for hops before that one, 0 if no net lies ahead. */
guint tt_walk_next_gpus(TtWalk *w, guint g, int near_net, guint16 *next);

/* From end @from (TT_WALK_NOWHERE: out of nothing) to @gpu, the channel's @step-th, and on. */
void tt_walk_step(TtWalk *w, guint from, guint gpu, int step, TtWalkPlan plan, int *budget);

/* One more channel on what is left. */
void tt_walk_next_channel(TtWalk *w, int *budget);
