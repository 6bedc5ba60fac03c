/* nccl_walk - depth-first search for channels. See nccl_walk.h. */
#include "models/nccl_walk_private.h"
#include <math.h>
#include <string.h>

void
tt_nccl_walk_copy(TtWalkGraph *to, const TtWalkGraph *from)
{
    const gsize head = G_STRUCT_OFFSET(TtNcclGraph, gpu);

    memcpy(&to->graph, &from->graph, head);
    for (guint c = 0; c < from->graph.n_channels; c++) {
        memcpy(to->graph.gpu[c], from->graph.gpu[c],
               from->graph.n_gpus * sizeof *from->graph.gpu[c]);
        memcpy(to->graph.net[c], from->graph.net[c], sizeof from->graph.net[c]);
    }
    to->collnet = from->collnet;
    to->min_channels = from->min_channels;
    to->max_channels = from->max_channels;
    to->n_hops = from->n_hops;
}

static void visit(TtWalk *w, guint gpu, int step, TtWalkPlan plan, int *budget);

void
tt_walk_step(TtWalk *w, guint from, guint gpu, int step, TtWalkPlan plan, int *budget)
{
    guint64 channel = G_GUINT64_CONSTANT(1) << w->now.graph.n_channels;

    if (from != TT_WALK_NOWHERE && !tt_walk_go(w, from, gpu, 1))
        return;
    w->used[gpu] ^= channel;
    visit(w, gpu, step, plan, budget);
    w->used[gpu] ^= channel;
    if (from != TT_WALK_NOWHERE)
        tt_walk_undo(w, from, gpu, 1);
}

static gboolean
is_better(const TtWalk *w)
{
    const TtNcclGraph *now = &w->now.graph, *best = &w->best->graph;
    float got = (float)(now->n_channels * now->bw_intra),
          had = (float)(best->n_channels * best->bw_intra);

    if (now->n_channels < w->now.min_channels)
        return FALSE;
    if (now->pattern == TT_PATTERN_NVLS)
        return (now->n_channels > best->n_channels && now->n_channels <= w->n_gpus) ||
               (w->rules.nvls_from_net &&
                now->n_channels * now->bw_inter > best->n_channels * best->bw_inter);
    if (w->rules.cross_penalty)
        had *= 1.0f - ((float)best->cross_nic - (float)now->cross_nic) * .15f;
    if (got != had)
        return got > had;
    return now->pattern == best->pattern && now->cross_nic == best->cross_nic &&
           w->now.n_hops < w->best->n_hops;
}

/* A channel is complete: keep it if that is better, and look for one more. */
static void
complete(TtWalk *w, int *budget)
{
    w->now.graph.n_channels++;
    if (is_better(w)) {
        tt_nccl_walk_copy(w->best, &w->now);
        if (w->now.graph.n_channels == w->now.max_channels)
            *budget = -1;
    }
    if (w->now.graph.n_channels < w->now.max_channels)
        tt_walk_next_channel(w, budget);
    w->now.graph.n_channels--;
}

/* May the channel that came in by @start leave by @net? */
static gboolean
may_leave_by(const TtWalk *w, guint start, guint net, int step)
{
    const TtNcclGraph *g = &w->now.graph;
    guint c = g->n_channels;

    if (g->pattern == TT_PATTERN_TREE && net != start)
        return FALSE;
    if (w->rules.alternate && g->pattern == TT_PATTERN_RING && g->cross_nic == 2) {
        if ((c & 1) && net != (guint)g->net[c - 1][0])
            return FALSE;
    } else if (g->cross_nic == 0 &&
               !tt_walk_same_port(tt_walk_net(w, net), tt_walk_net(w, start))) {
        return FALSE;
    }
    return g->pattern != TT_PATTERN_BALANCED_TREE || step == 0 || net == (guint)g->net[c][1];
}

static void
leave(TtWalk *w, guint gpu, int step, TtWalkPlan plan, int *budget)
{
    TtNcclGraph *g = &w->now.graph;
    guint c = g->n_channels, start = (guint)g->net[c][0];
    const gboolean balanced = g->pattern == TT_PATTERN_BALANCED_TREE;
    const double bw = g->bw_inter;

    for (guint i = 0; i < w->n_net_order[gpu]; i++) {
        guint net = w->net_order[gpu][i];
        TtWalkPlan on = plan;
        gboolean ok;

        if (!may_leave_by(w, start, net, step))
            continue;
        on.to_net = balanced && step == 0 ? 1 : -1; /* half by the first GPU, half by the second */
        if (balanced)
            g->bw_inter = bw / 2;
        ok = tt_walk_go(w, gpu, w->n_gpus + net, 1);
        g->bw_inter = bw;
        if (!ok)
            continue;
        g->net[c][1] = (gint16)net;
        visit(w, gpu, step, on, budget);
        if (balanced)
            g->bw_inter = bw / 2;
        tt_walk_undo(w, gpu, w->n_gpus + net, 1);
        g->bw_inter = bw;
    }
}

/* Heads: the head's share of the switch's traffic is two, the others' one. */
static void
try_nvls(TtWalk *w, guint head, int *budget)
{
    guint nvs = tt_nccl_end(w->paths, TT_SYS_NVS, 0), in = 0, out = 0;

    while (in < w->n_gpus && tt_walk_go(w, nvs, in, in == head ? 2 : 1))
        in++;
    while (in == w->n_gpus && out < w->n_gpus && tt_walk_go(w, out, nvs, out == head ? 2 : 1))
        out++;
    if (out == w->n_gpus) {
        if (*budget > 0) {
            --*budget;
            complete(w, budget);
        }
    }
    while (out-- > 0)
        tt_walk_undo(w, out, nvs, out == head ? 2 : 1);
    while (in-- > 0)
        tt_walk_undo(w, nvs, in, in == head ? 2 : 1);
}

/* The head exchanges its share with every other GPU. */
static void
try_collnet_direct(TtWalk *w, guint head, int *budget)
{
    TtNcclGraph *g = &w->now.graph;
    float share = 1.0f / (float)(w->n_gpus - 1);
    guint out = 0, in = 0, at = 1;

    while (out < w->n_gpus && tt_walk_go(w, head, out, share))
        out++;
    while (out == w->n_gpus && in < w->n_gpus && tt_walk_go(w, in, head, share))
        in++;
    if (in == w->n_gpus && *budget > 0) {
        for (guint i = 0; i < w->n_gpus; i++)
            if (i != head)
                g->gpu[g->n_channels][at++] = (guint16)i;
        --*budget;
        complete(w, budget);
    }
    while (in-- > 0)
        tt_walk_undo(w, in, head, share);
    while (out-- > 0)
        tt_walk_undo(w, head, out, share);
}

static void
go_on(TtWalk *w, guint gpu, int step, TtWalkPlan plan, int *budget)
{
    const TtNcclGraph *g = &w->now.graph;
    gsize mark = w->n_candidates;
    guint n = 1;

    if (mark + w->n_gpus > w->room) {
        w->room = 2 * w->room + w->n_gpus;
        w->candidates = g_renew(guint16, w->candidates, w->room);
    }
    if (plan.order == TT_WALK_PCI)
        w->candidates[mark] = (guint16)(step + 1);
    else if (plan.order == TT_WALK_REPLAY)
        w->candidates[mark] = g->gpu[g->n_channels - 1][step + 1];
    else
        n = tt_walk_next_gpus(w, gpu,
                              plan.to_net == -1         ? 0
                              : plan.to_net == step + 1 ? 1
                                                        : -1,
                              w->candidates + mark);
    w->n_candidates += n;
    for (guint i = 0; i < n; i++)
        tt_walk_step(w, gpu, w->candidates[mark + i], step + 1, plan, budget);
    w->n_candidates = mark;
}

/* At @gpu, the channel's @step-th. */
static void
visit(TtWalk *w, guint gpu, int step, TtWalkPlan plan, int *budget)
{
    TtNcclGraph *g = &w->now.graph;
    int n_gpus = (int)w->n_gpus;

    if (*budget <= 0)
        return;
    --*budget;
    if (step == n_gpus) {
        complete(w, budget);
        return;
    }
    g->gpu[g->n_channels][step] = (guint16)gpu;
    if (step == plan.to_net) {
        if (w->n_nets > 0)
            leave(w, gpu, step, plan, budget);
    } else if (g->pattern == TT_PATTERN_NVLS) {
        try_nvls(w, gpu, budget);
    } else if (g->pattern == TT_PATTERN_COLLNET_DIRECT) {
        try_collnet_direct(w, gpu, budget);
    } else if (step < n_gpus - 1) {
        go_on(w, gpu, step, plan, budget);
    } else if (step == plan.to_first) {
        guint first = g->gpu[g->n_channels][0];

        if (tt_walk_go(w, gpu, first, 1)) {
            visit(w, first, step + 1, (TtWalkPlan){ plan.to_net, -1, plan.order }, budget);
            tt_walk_undo(w, gpu, first, 1);
        }
    } else {
        visit(w, gpu, n_gpus, (TtWalkPlan){ -1, -1, plan.order }, budget);
    }
}

int
tt_nccl_walk_try(TtWalk *w, const TtWalkGraph *terms, TtWalkGraph *best, int budget)
{
    memcpy(w->left, w->full, w->system->n_links * sizeof *w->left);
    for (guint i = 0; i < w->n_nets; i++)
        w->net_bw[i] = tt_walk_net(w, i)->bw;
    memset(w->used, 0, sizeof w->used);
    tt_nccl_walk_copy(&w->now, terms);
    w->now.graph.n_channels = 0;
    w->best = best;
    if (w->n_nets > 0)
        tt_walk_order_nets(w);
    tt_walk_next_channel(w, &budget);
    return budget;
}

guint64
tt_nccl_walk_effort(const TtWalk *walk)
{
    return walk->effort;
}

static float
pci_bw_of(const TtNcclSystem *s, guint g)
{
    const TtSysNode *gpu = tt_nccl_system_node(s, TT_SYS_GPU, g);

    for (guint l = gpu->first_link; l < gpu->first_link + gpu->n_links; l++)
        if (s->link[l].type == TT_PATH_PIX)
            return MIN(s->link[l].bw, s->link[s->link[l].reverse].bw);
    return -1;
}

TtWalk *
tt_nccl_walk_new(const TtNcclPaths *paths, const TtWalkRules *rules)
{
    TtWalk *w = g_new0(TtWalk, 1);
    const TtNcclSystem *s = paths->system;

    w->paths = paths;
    w->system = s;
    w->rules = *rules;
    w->n_gpus = s->n[TT_SYS_GPU];
    w->n_nets = s->n[TT_SYS_NET];
    w->has_nvs = s->n[TT_SYS_NVS] > 0;
    w->full = g_new(int, s->n_links + 1);
    w->left = g_new(int, s->n_links + 1);
    w->traits = g_new0(TtWalkTraits, s->n_links + 1);
    for (guint i = 0; i < s->n_links; i++) {
        const TtSysNode *to = &s->node[s->link[i].to];

        w->full[i] = (int)lroundf(s->link[i].bw * 1000);
        w->traits[i] = (TtWalkTraits){
            .is_pci = s->link[i].type == TT_PATH_PIX,
            .to_old_gpu = to->type == TT_SYS_GPU && to->cc < 80,
            .to_power_cpu = to->type == TT_SYS_CPU && to->arch == TT_ARCH_POWER &&
                            s->link[i].type == TT_PATH_NVL,
            .reverse = s->link[i].reverse,
        };
    }
    w->peers = g_new0(guint16 *, (w->n_nets + 1) * w->n_gpus);
    w->net_bw = g_new(float, w->n_nets + 1);
    w->order_type = TT_N_PATHS;
    for (guint g = 0; g < w->n_gpus; g++)
        w->pci_bw[g] = pci_bw_of(s, g);
    for (guint list = 0; list <= w->n_gpus; list++)
        w->net_order[list] = g_new(guint16, w->n_nets + 1);
    return w;
}

void
tt_nccl_walk_free(TtWalk *w)
{
    if (!w)
        return;
    for (guint list = 0; list <= w->n_gpus; list++)
        g_free(w->net_order[list]);
    g_free(w->candidates);
    for (guint i = 0; i < (w->n_nets + 1) * w->n_gpus; i++)
        g_free(w->peers[i]);
    g_free(w->peers);
    g_free(w->full);
    g_free(w->left);
    g_free(w->traits);
    g_free(w->net_bw);
    g_free(w);
}
