/* nccl_walk_links - what a hop takes off the links of its way (followPath in NCCL's search.cc). */
#include "models/nccl_walk_private.h"
#include <math.h>

static gboolean
costs_more(const TtWalk *w, const TtWay *way)
{
    const TtNcclSystem *s = w->system;

    if (way->type != TT_PATH_PHB || s->node[s->link[way->link[0]].from].type != TT_SYS_GPU)
        return FALSE;
    for (guint i = 0; i < way->n_hops; i++) {
        const TtSysNode *to = &s->node[s->link[way->link[i]].to];

        if (to->type == TT_SYS_CPU && to->arch == TT_ARCH_X86 && to->vendor == TT_VENDOR_INTEL)
            return TRUE;
    }
    return FALSE;
}

/* Takes @bw off the first @n_hops links of @way, or gives it back if negative. Returns how many had it. */
static guint
take_along(TtWalk *w, const TtWay *way, guint n_hops, gboolean from_gpu, float bw)
{
    int mb = (int)lroundf(bw * 1000);
    int pci_mb =
        costs_more(w, way) ? (int)lroundf(bw * 6 / 5 * 1000) : mb; /* Intel: a fifth more */
    int *left = w->left;

    for (guint i = 0; i < n_hops; i++) {
        guint l = way->link[i];
        const TtWalkTraits *link = &w->traits[l];
        int forth = link->is_pci ? pci_mb : mb, back = 0;

        if (link->to_old_gpu && !from_gpu)
            back += forth / 8;
        if (link->to_power_cpu)
            back += forth;
        if (left[l] < forth || (back > 0 && left[link->reverse] < back))
            return i;
        left[l] -= forth;
        left[link->reverse] -= back;
    }
    return n_hops;
}

static gboolean
is_inter(const TtWalk *w, guint from, guint to)
{
    return from - w->n_gpus < w->n_nets || to - w->n_gpus < w->n_nets; /* nets come after GPUs */
}

static float
speed_between(const TtWalk *w, guint from, guint to)
{
    return is_inter(w, from, to) ? (float)w->now.graph.bw_inter : (float)w->now.graph.bw_intra;
}

gboolean
tt_walk_go(TtWalk *w, guint from, guint to, float share)
{
    const TtNcclGraph *g = &w->now.graph;
    const TtWay *way = tt_nccl_way(w->paths, from, to);
    guint farthest = is_inter(w, from, to) ? g->type_inter : g->type_intra, done;
    float bw = speed_between(w, from, to) * share;

    w->effort++;
    if (way->type >= TT_PATH_DIS || (share == 1 && way->type > farthest))
        return FALSE;
    if (w->rules.both_ways && share == 1 && g->pattern <= TT_PATTERN_TREE &&
        tt_nccl_way(w->paths, to, from)->type > farthest)
        return FALSE;
    done = take_along(w, way, way->n_hops, from < w->n_gpus, bw);
    if (done < way->n_hops) {
        take_along(w, way, done, from < w->n_gpus, -bw);
        return FALSE;
    }
    w->now.n_hops += (int)(share * way->n_hops);
    return TRUE;
}

void
tt_walk_undo(TtWalk *w, guint from, guint to, float share)
{
    const TtWay *way = tt_nccl_way(w->paths, from, to);

    take_along(w, way, way->n_hops, from < w->n_gpus, -speed_between(w, from, to) * share);
    w->now.n_hops -= (int)(share * way->n_hops);
}
