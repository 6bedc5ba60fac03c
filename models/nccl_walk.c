/* nccl_walk - depth-first search for channels. See nccl_walk.h. */
#include "models/nccl_walk.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NOWHERE         G_MAXUINT
#define PCI_ORDER_STEPS (1 << 10)

typedef enum { ORDER_FREE, ORDER_PCI, ORDER_REPLAY } Order;

/* Where in a walk over all GPUs it returns to a net, or to its first GPU; -1: not at all. */
typedef struct {
    int to_net, to_first;
    Order order;
} Plan;

struct TtWalk {
    const TtNcclPaths *paths;
    const TtNcclSystem *system;
    TtWalkRules rules;
    guint n_gpus, n_nets;
    gboolean has_nvs;
    float *link_bw;                 /* left, [n_links] */
    float *net_bw;                  /* left, [n_nets] */
    guint64 used[TT_NCCL_MAX_GPUS]; /* bit c: in channel c */
    float pci_bw[TT_NCCL_MAX_GPUS];

    /* Nets to try from each GPU, and (last) to start from, nearest first, for @order_type. */
    guint order_type;
    guint16 *net_order[TT_NCCL_MAX_GPUS + 1];
    guint n_net_order[TT_NCCL_MAX_GPUS + 1];

    guint16 *candidates; /* a stack of next GPUs to try */
    gsize n_candidates, room;

    TtWalkGraph now;
    TtWalkGraph *best;
};

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

/* ---- bandwidth of links ---- */

static void
take(float *left, float bw)
{
    *left = roundf((*left - bw) * 1000) / 1000; /* floats would drift otherwise */
}

/* Takes @bw off the first @n_hops links of @way, or gives it back if negative. Returns how many had it. */
static guint
take_along(TtWalk *w, const TtWay *way, guint n_hops, float bw)
{
    const TtNcclSystem *s = w->system;
    const TtSysNode *start = way->n_hops ? &s->node[s->link[way->link[0]].from] : NULL;
    float pci_bw = bw;

    /* Peer traffic through an Intel CPU costs PCI a fifth more. */
    for (guint i = 0; i < way->n_hops && way->type == TT_PATH_PHB && start->type == TT_SYS_GPU;
         i++) {
        const TtSysNode *to = &s->node[s->link[way->link[i]].to];

        if (to->type == TT_SYS_CPU && to->arch == TT_ARCH_X86 && to->vendor == TT_VENDOR_INTEL)
            pci_bw = bw * 6 / 5;
    }
    for (guint i = 0; i < n_hops; i++) {
        const TtSysLink *link = &s->link[way->link[i]];
        const TtSysNode *to = &s->node[link->to];
        float forth = link->type == TT_PATH_PIX ? pci_bw : bw, back = 0;

        if (to->type == TT_SYS_GPU && to->cc < 80 && start->type != TT_SYS_GPU)
            back += forth / 8;
        if (to->type == TT_SYS_CPU && to->arch == TT_ARCH_POWER && link->type == TT_PATH_NVL)
            back += forth;
        if (w->link_bw[way->link[i]] < forth || (back != 0 && w->link_bw[link->reverse] < back))
            return i;
        take(&w->link_bw[way->link[i]], forth);
        if (back != 0)
            take(&w->link_bw[link->reverse], back);
    }
    return n_hops;
}

static float
speed_between(const TtWalk *w, guint from, guint to)
{
    guint first_net = w->n_gpus, end_nets = w->n_gpus + w->n_nets;
    gboolean inter = (from >= first_net && from < end_nets) || (to >= first_net && to < end_nets);

    return inter ? (float)w->now.graph.bw_inter : (float)w->now.graph.bw_intra;
}

/* @share times the speed of the try, from end to end; FALSE and nothing taken if a link lacks it or
 * the way is of too far a kind. */
static gboolean
go(TtWalk *w, guint from, guint to, float share)
{
    const TtNcclGraph *g = &w->now.graph;
    const TtWay *way = tt_nccl_way(w->paths, from, to);
    guint first_net = w->n_gpus, end_nets = w->n_gpus + w->n_nets;
    gboolean inter = (from >= first_net && from < end_nets) || (to >= first_net && to < end_nets);
    guint farthest = inter ? g->type_inter : g->type_intra, done;
    float bw = speed_between(w, from, to) * share;

    if (way->type >= TT_PATH_DIS || (share == 1 && way->type > farthest))
        return FALSE;
    if (w->rules.both_ways && share == 1 && g->pattern <= TT_PATTERN_TREE &&
        tt_nccl_way(w->paths, to, from)->type > farthest)
        return FALSE;
    done = take_along(w, way, way->n_hops, bw);
    if (done < way->n_hops) {
        take_along(w, way, done, -bw);
        return FALSE;
    }
    w->now.n_hops += (int)(share * way->n_hops);
    return TRUE;
}

static void
undo(TtWalk *w, guint from, guint to, float share)
{
    const TtWay *way = tt_nccl_way(w->paths, from, to);

    take_along(w, way, way->n_hops, -speed_between(w, from, to) * share);
    w->now.n_hops -= (int)(share * way->n_hops);
}

/* ---- nets in the order of tries ---- */

static void
add_net(TtWalk *w, guint list, guint16 net, guint8 *in_list)
{
    if (!in_list[net])
        w->net_order[list][w->n_net_order[list]++] = net;
    in_list[net] = 1;
}

/* First those GPUs use by themselves, then all others of a kind near enough. */
static void
order_nets(TtWalk *w)
{
    gboolean by_channel = w->system->n_hosts > 1;

    if (w->order_type == w->now.graph.type_inter)
        return;
    w->order_type = w->now.graph.type_inter;
    for (guint list = 0; list <= w->n_gpus; list++) {
        guint first = list < w->n_gpus ? list : 0, end = list < w->n_gpus ? list + 1 : w->n_gpus;
        guint8 in_list[TT_SYS_MAX_NETS] = { 0 };

        w->n_net_order[list] = 0;
        for (guint c = 0; c < (by_channel ? TT_NCCL_MAX_CHANNELS : 1); c++)
            for (guint g = first; g < end; g++)
                for (guint i = c; i < w->paths->n_own_nets[g] && (!by_channel || i == c); i++)
                    add_net(w, list, w->paths->own_nets[g][i], in_list);
        for (guint kind = 0; kind <= w->order_type; kind++)
            for (guint g = first; g < end; g++)
                for (guint n = 0; n < w->n_nets; n++)
                    if (tt_nccl_way(w->paths, g, w->n_gpus + n)->type == kind)
                        add_net(w, list, (guint16)n, in_list);
    }
}

static const TtSysNode *
net_node(const TtWalk *w, guint n)
{
    return tt_nccl_system_node(w->system, TT_SYS_NET, n);
}

static gboolean
same_port(const TtSysNode *a, const TtSysNode *b)
{
    return a->asic == b->asic && a->port == b->port;
}

/* Traffic of one port counts on all nets that are that port. */
static void
take_port(TtWalk *w, guint n, float bw)
{
    for (guint i = 0; i < w->n_nets; i++)
        if (same_port(net_node(w, i), net_node(w, n)))
            w->net_bw[i] -= bw;
}

/* ---- the next GPU ---- */

typedef struct {
    guint16 gpu;
    int key[6]; /* smallest first */
} Candidate;

static int
compare_candidates(const void *a, const void *b)
{
    const Candidate *x = a, *y = b;

    for (guint i = 0; i < G_N_ELEMENTS(x->key); i++)
        if (x->key[i] != y->key[i])
            return x->key[i] < y->key[i] ? -1 : 1;
    return 0;
}

/* With NVSwitches all peers are equal; NCCL keeps to neighbours. */
static guint
neighbours(const TtWalk *w, guint g, guint64 channel, guint16 *next)
{
    guint up = (g + 1) % w->n_gpus, down = (g + w->n_gpus - 1) % w->n_gpus, n = 0;
    guint pattern = w->now.graph.pattern;
    guint order[2] = { up, NOWHERE };

    if (pattern == TT_PATTERN_RING && down != up)
        order[0] = down, order[1] = up;
    else if ((pattern == TT_PATTERN_BALANCED_TREE || pattern == TT_PATTERN_SPLIT_TREE) &&
             down != up)
        order[0] = up, order[1] = down;
    for (guint i = 0; i < 2; i++)
        if (order[i] != NOWHERE && order[i] != g && !(w->used[order[i]] & channel) &&
            tt_nccl_way(w->paths, g, order[i])->n_hops > 0)
            next[n++] = (guint16)order[i];
    return n;
}

/* Best first: for the hop before the net those close to it, else those with the widest way. @near_net:
 * 1 for that hop, -1 for hops before it, 0 if no net lies ahead. */
static guint
next_gpus(const TtWalk *w, guint g, int near_net, guint16 *next)
{
    guint64 channel = G_GUINT64_CONSTANT(1) << w->now.graph.n_channels;
    Candidate found[TT_NCCL_MAX_GPUS];
    guint n = 0;
    gboolean all_alike = TRUE;
    guint net = w->n_gpus;

    if (w->has_nvs)
        return neighbours(w, g, channel, next);
    if (near_net)
        net += (guint)w->now.graph.net[w->now.graph.n_channels][0];
    for (guint i = 1; i < w->n_gpus; i++) {
        guint to = (g + i) % w->n_gpus;
        const TtWay *way = tt_nccl_way(w->paths, g, to),
                    *from_net = near_net ? tt_nccl_way(w->paths, net, to) : NULL;

        if (way->n_hops == 0 || (w->used[to] & channel))
            continue;
        found[n] = (Candidate){ .gpu = (guint16)to };
        if (from_net) {
            found[n].key[0] = -(int)from_net->bw;
            found[n].key[1] = -(int)w->pci_bw[to];
            found[n].key[2] = from_net->n_hops;
        }
        found[n].key[3] = -(int)way->bw;
        found[n].key[4] = way->n_hops;
        found[n].key[5] = (int)i;
        all_alike =
            all_alike && found[n].key[3] == found[0].key[3] && found[n].key[4] == found[0].key[4];
        n++;
    }
    qsort(found, n, sizeof *found, compare_candidates);
    for (guint i = 0; i < n; i++)
        next[near_net == -1 && all_alike ? n - 1 - i : i] = found[i].gpu;
    return n;
}

/* ---- the walk ---- */

static void visit(TtWalk *w, guint gpu, int step, Plan plan, int *budget);
static void next_channel(TtWalk *w, int *budget);

/* From end @from (NOWHERE: out of nothing) to @gpu, and on. */
static void
step_to(TtWalk *w, guint from, guint gpu, int step, Plan plan, int *budget)
{
    guint64 channel = G_GUINT64_CONSTANT(1) << w->now.graph.n_channels;

    if (from != NOWHERE && !go(w, from, gpu, 1))
        return;
    w->used[gpu] ^= channel;
    visit(w, gpu, step, plan, budget);
    w->used[gpu] ^= channel;
    if (from != NOWHERE)
        undo(w, from, gpu, 1);
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
        next_channel(w, budget);
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
    } else if (g->cross_nic == 0 && !same_port(net_node(w, net), net_node(w, start))) {
        return FALSE;
    }
    return g->pattern != TT_PATTERN_BALANCED_TREE || step == 0 || net == (guint)g->net[c][1];
}

static void
leave(TtWalk *w, guint gpu, int step, Plan plan, int *budget)
{
    TtNcclGraph *g = &w->now.graph;
    guint c = g->n_channels, start = (guint)g->net[c][0];
    const gboolean balanced = g->pattern == TT_PATTERN_BALANCED_TREE;
    const double bw = g->bw_inter;

    for (guint i = 0; i < w->n_net_order[gpu]; i++) {
        guint net = w->net_order[gpu][i];
        Plan on = plan;
        gboolean ok;

        if (!may_leave_by(w, start, net, step))
            continue;
        on.to_net = balanced && step == 0 ? 1 : -1; /* half by the first GPU, half by the second */
        if (balanced)
            g->bw_inter = bw / 2;
        ok = go(w, gpu, w->n_gpus + net, 1);
        g->bw_inter = bw;
        if (!ok)
            continue;
        g->net[c][1] = (gint16)net;
        visit(w, gpu, step, on, budget);
        if (balanced)
            g->bw_inter = bw / 2;
        undo(w, gpu, w->n_gpus + net, 1);
        g->bw_inter = bw;
    }
}

/* Heads: the head's share of the switch's traffic is two, the others' one. */
static void
try_nvls(TtWalk *w, guint head, int *budget)
{
    guint nvs = tt_nccl_end(w->paths, TT_SYS_NVS, 0), in = 0, out = 0;

    while (in < w->n_gpus && go(w, nvs, in, in == head ? 2 : 1))
        in++;
    while (in == w->n_gpus && out < w->n_gpus && go(w, out, nvs, out == head ? 2 : 1))
        out++;
    if (out == w->n_gpus) {
        if (*budget > 0) {
            --*budget;
            complete(w, budget);
        }
    }
    while (out-- > 0)
        undo(w, out, nvs, out == head ? 2 : 1);
    while (in-- > 0)
        undo(w, nvs, in, in == head ? 2 : 1);
}

/* The head exchanges its share with every other GPU. */
static void
try_collnet_direct(TtWalk *w, guint head, int *budget)
{
    TtNcclGraph *g = &w->now.graph;
    float share = 1.0f / (float)(w->n_gpus - 1);
    guint out = 0, in = 0, at = 1;

    while (out < w->n_gpus && go(w, head, out, share))
        out++;
    while (out == w->n_gpus && in < w->n_gpus && go(w, in, head, share))
        in++;
    if (in == w->n_gpus && *budget > 0) {
        for (guint i = 0; i < w->n_gpus; i++)
            if (i != head)
                g->gpu[g->n_channels][at++] = (guint16)i;
        --*budget;
        complete(w, budget);
    }
    while (in-- > 0)
        undo(w, in, head, share);
    while (out-- > 0)
        undo(w, head, out, share);
}

static void
go_on(TtWalk *w, guint gpu, int step, Plan plan, int *budget)
{
    const TtNcclGraph *g = &w->now.graph;
    gsize mark = w->n_candidates;
    guint n = 1;

    if (mark + w->n_gpus > w->room) {
        w->room = 2 * w->room + w->n_gpus;
        w->candidates = g_renew(guint16, w->candidates, w->room);
    }
    if (plan.order == ORDER_PCI)
        w->candidates[mark] = (guint16)(step + 1);
    else if (plan.order == ORDER_REPLAY)
        w->candidates[mark] = g->gpu[g->n_channels - 1][step + 1];
    else
        n = next_gpus(w, gpu,
                      plan.to_net == -1         ? 0
                      : plan.to_net == step + 1 ? 1
                                                : -1,
                      w->candidates + mark);
    w->n_candidates += n;
    for (guint i = 0; i < n; i++)
        step_to(w, gpu, w->candidates[mark + i], step + 1, plan, budget);
    w->n_candidates = mark;
}

/* At @gpu, the channel's @step-th. */
static void
visit(TtWalk *w, guint gpu, int step, Plan plan, int *budget)
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

        if (go(w, gpu, first, 1)) {
            visit(w, first, step + 1, (Plan){ plan.to_net, -1, plan.order }, budget);
            undo(w, gpu, first, 1);
        }
    } else {
        visit(w, gpu, n_gpus, (Plan){ -1, -1, plan.order }, budget);
    }
}

/* ---- where a channel starts ---- */

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
start_head(TtWalk *w, guint net, Plan plan, int *budget)
{
    TtNcclGraph *g = &w->now.graph;
    guint list = w->n_gpus;
    int gpu;

    if (g->n_channels >= w->n_net_order[list])
        return FALSE;
    if (!w->rules.nvls_from_net) {
        gpu = w->paths->local_gpu[w->net_order[list][g->n_channels]];
        if (gpu >= 0)
            step_to(w, NOWHERE, (guint)gpu, 0, plan, budget);
        return FALSE;
    }
    gpu = w->paths->local_gpu[net];
    if (gpu < 0 || is_head_already(g, (guint)gpu))
        return FALSE;
    step_to(w, w->n_gpus + net, (guint)gpu, 0, plan, budget);
    return TRUE;
}

static void
start_at_closest(TtWalk *w, guint net, Plan plan, int *budget)
{
    guint16 gpus[TT_NCCL_MAX_GPUS];
    guint n = tt_nccl_paths_closest(w->paths, w->n_gpus + net, TT_SYS_GPU, gpus);
    int favourite = w->paths->local_gpu[net];

    if (favourite >= 0)
        step_to(w, w->n_gpus + net, (guint)favourite, 0, plan, budget);
    for (guint i = 0; i < n; i++)
        if ((int)gpus[i] != favourite)
            step_to(w, w->n_gpus + net, gpus[i], 0, plan, budget);
}

static void
start_walks(TtWalk *w, guint net, Plan plan, int *budget)
{
    const TtNcclGraph *g = &w->now.graph;
    gboolean replay = g->n_channels > 0 && (!w->rules.replay_or_new || g->same_channels);
    gboolean others = g->n_channels == 0 || !g->same_channels;

    if (replay) {
        plan.order = ORDER_REPLAY;
        step_to(w, w->n_gpus + net, g->gpu[g->n_channels - 1][0], 0, plan, budget);
    }
    if (!others)
        return;
    if (g->n_channels == 0 && (w->rules.pci_order_first || !w->has_nvs)) {
        int steps = PCI_ORDER_STEPS; /* a reference, outside the budget */

        plan.order = ORDER_PCI;
        step_to(w, w->n_gpus + net, 0, 0, plan, &steps);
        if (steps == -1)
            *budget = -1;
    }
    plan.order = ORDER_FREE;
    start_at_closest(w, net, plan, budget);
}

static void
start_from_nets(TtWalk *w, Plan plan, int *budget)
{
    TtNcclGraph *g = &w->now.graph;
    guint c = g->n_channels, list = w->n_gpus, n = w->n_net_order[list];
    int whole_bw = (int)g->bw_inter; /* NCCL counts a net's bandwidth in whole GB/s */
    gboolean heads = g->pattern == TT_PATTERN_NVLS || g->pattern == TT_PATTERN_COLLNET_DIRECT,
             enough = FALSE;

    for (guint i = 0; i < n && !enough; i++) {
        guint net = w->net_order[list][w->rules.rotate_nets ? (c + i) % n : i];

        if ((w->now.collnet && !net_node(w, net)->coll) || w->net_bw[net] < (float)whole_bw)
            continue;
        if (w->rules.alternate && g->pattern == TT_PATTERN_RING && g->cross_nic == 2 && (c & 1) &&
            net != (guint)g->net[c - 1][1])
            continue;
        g->net[c][0] = (gint16)net;
        g->latency_inter = net_node(w, net)->latency_us;
        take_port(w, net, (float)whole_bw);
        if (heads)
            enough = start_head(w, net, plan, budget);
        else
            start_walks(w, net, plan, budget);
        take_port(w, net, -(float)whole_bw);
    }
}

static void
start_inside(TtWalk *w, Plan plan, int *budget)
{
    const TtNcclGraph *g = &w->now.graph;

    if (g->pattern == TT_PATTERN_NVLS) {
        step_to(w, NOWHERE, g->n_channels % w->n_gpus, 0, plan, budget);
        return;
    }
    plan.order = g->n_channels == 0 ? ORDER_PCI : ORDER_REPLAY;
    step_to(w, NOWHERE, g->n_channels == 0 ? 0 : g->gpu[g->n_channels - 1][0], 0, plan, budget);
    plan.order = ORDER_FREE;
    for (guint i = 0; i < w->n_gpus && (!g->same_channels || g->n_channels == 0); i++)
        step_to(w, NOWHERE, i, 0, plan, budget);
}

static void
next_channel(TtWalk *w, int *budget)
{
    guint pattern = w->now.graph.pattern;
    Plan plan = { -1, -1, ORDER_FREE };
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

/* ---- */

int
tt_nccl_walk_try(TtWalk *w, const TtWalkGraph *terms, TtWalkGraph *best, int budget)
{
    for (guint i = 0; i < w->system->n_links; i++)
        w->link_bw[i] = w->system->link[i].bw;
    for (guint i = 0; i < w->n_nets; i++)
        w->net_bw[i] = net_node(w, i)->bw;
    memset(w->used, 0, sizeof w->used);
    tt_nccl_walk_copy(&w->now, terms);
    w->now.graph.n_channels = 0;
    w->best = best;
    if (w->n_nets > 0)
        order_nets(w);
    next_channel(w, &budget);
    return budget;
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
    w->link_bw = g_new(float, MAX(s->n_links, 1));
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
    g_free(w->link_bw);
    g_free(w->net_bw);
    g_free(w);
}
