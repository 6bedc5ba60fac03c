/* nccl_walk_start - from which net, and at which GPU, a channel begins. */
#include "models/nccl_walk_private.h"

#define PCI_ORDER_STEPS (1 << 10)

/* Traffic of one port counts on all nets that are that port. */
static void
take_port(TtWalk *w, guint n, float bw)
{
    for (guint i = 0; i < w->n_nets; i++)
        if (tt_walk_same_port(tt_walk_net(w, i), tt_walk_net(w, n)))
            w->net_bw[i] -= bw;
}

static gboolean
is_head_already(const TtNcclGraph *g, guint gpu)
{
    for (guint c = 0; c < g->n_channels; c++)
        if (g->gpu[c][0] == gpu)
            return TRUE;
    return FALSE;
}

/* NVLS and CollNetDirect only look for heads: one GPU per net. TRUE: enough of this channel. */
static gboolean
start_head(TtWalk *w, guint net, TtWalkPlan plan, int *budget)
{
    TtNcclGraph *g = &w->now.graph;
    guint list = w->n_gpus;
    int gpu;

    if (g->n_channels >= w->n_net_order[list])
        return FALSE;
    if (!w->rules.nvls_from_net) {
        gpu = w->paths->local_gpu[w->net_order[list][g->n_channels]];
        if (gpu >= 0)
            tt_walk_step(w, TT_WALK_NOWHERE, (guint)gpu, 0, plan, budget);
        return FALSE;
    }
    gpu = w->paths->local_gpu[net];
    if (gpu < 0 || is_head_already(g, (guint)gpu))
        return FALSE;
    tt_walk_step(w, w->n_gpus + net, (guint)gpu, 0, plan, budget);
    return TRUE;
}

static void
start_at_closest(TtWalk *w, guint net, TtWalkPlan plan, int *budget)
{
    guint16 gpus[TT_NCCL_MAX_GPUS];
    guint n = tt_nccl_paths_closest(w->paths, w->n_gpus + net, TT_SYS_GPU, gpus);
    int favourite = w->paths->local_gpu[net];

    if (favourite >= 0)
        tt_walk_step(w, w->n_gpus + net, (guint)favourite, 0, plan, budget);
    for (guint i = 0; i < n; i++)
        if ((int)gpus[i] != favourite)
            tt_walk_step(w, w->n_gpus + net, gpus[i], 0, plan, budget);
}

static void
start_walks(TtWalk *w, guint net, TtWalkPlan plan, int *budget)
{
    const TtNcclGraph *g = &w->now.graph;
    gboolean replay = g->n_channels > 0 && (!w->rules.replay_or_new || g->same_channels);
    gboolean others = g->n_channels == 0 || !g->same_channels;

    if (replay) {
        plan.order = TT_WALK_REPLAY;
        tt_walk_step(w, w->n_gpus + net, g->gpu[g->n_channels - 1][0], 0, plan, budget);
    }
    if (!others)
        return;
    if (g->n_channels == 0 && (w->rules.pci_order_first || !w->has_nvs)) {
        int steps = PCI_ORDER_STEPS; /* a reference, outside the budget */

        plan.order = TT_WALK_PCI;
        tt_walk_step(w, w->n_gpus + net, 0, 0, plan, &steps);
        if (steps == -1)
            *budget = -1;
    }
    plan.order = TT_WALK_FREE;
    start_at_closest(w, net, plan, budget);
}

static void
start_from_nets(TtWalk *w, TtWalkPlan plan, int *budget)
{
    TtNcclGraph *g = &w->now.graph;
    guint c = g->n_channels, list = w->n_gpus, n = w->n_net_order[list];
    int whole_bw = (int)g->bw_inter; /* NCCL counts a net's bandwidth in whole GB/s */
    gboolean heads = g->pattern == TT_PATTERN_NVLS || g->pattern == TT_PATTERN_COLLNET_DIRECT,
             enough = FALSE;

    for (guint i = 0; i < n && !enough; i++) {
        guint net = w->net_order[list][w->rules.rotate_nets ? (c + i) % n : i];

        if ((w->now.collnet && !tt_walk_net(w, net)->coll) || w->net_bw[net] < (float)whole_bw)
            continue;
        if (w->rules.alternate && g->pattern == TT_PATTERN_RING && g->cross_nic == 2 && (c & 1) &&
            net != (guint)g->net[c - 1][1])
            continue;
        g->net[c][0] = (gint16)net;
        g->latency_inter = tt_walk_net(w, net)->latency_us;
        take_port(w, net, (float)whole_bw);
        if (heads)
            enough = start_head(w, net, plan, budget);
        else
            start_walks(w, net, plan, budget);
        take_port(w, net, -(float)whole_bw);
    }
}

static void
start_inside(TtWalk *w, TtWalkPlan plan, int *budget)
{
    const TtNcclGraph *g = &w->now.graph;

    if (g->pattern == TT_PATTERN_NVLS) {
        tt_walk_step(w, TT_WALK_NOWHERE, g->n_channels % w->n_gpus, 0, plan, budget);
        return;
    }
    plan.order = g->n_channels == 0 ? TT_WALK_PCI : TT_WALK_REPLAY;
    tt_walk_step(w, TT_WALK_NOWHERE, g->n_channels == 0 ? 0 : g->gpu[g->n_channels - 1][0], 0, plan,
                 budget);
    plan.order = TT_WALK_FREE;
    for (guint i = 0; i < w->n_gpus && (!g->same_channels || g->n_channels == 0); i++)
        tt_walk_step(w, TT_WALK_NOWHERE, i, 0, plan, budget);
}

void
tt_walk_next_channel(TtWalk *w, int *budget)
{
    guint pattern = w->now.graph.pattern;
    TtWalkPlan plan = { -1, -1, TT_WALK_FREE };
    int last = (int)w->n_gpus - 1;

    if (*budget <= 0)
        return;
    if (w->n_nets > 0) {
        plan.to_net = pattern == TT_PATTERN_RING ? last : pattern == TT_PATTERN_SPLIT_TREE ? 1 : 0;
        start_from_nets(w, plan, budget);
    } else {
        plan.to_first = pattern == TT_PATTERN_RING ? last : -1;
        start_inside(w, plan, budget);
    }
}
