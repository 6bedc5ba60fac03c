/* nccl_paths - breadth-first ways, then NCCL's corrections of them. See nccl_paths.h. */
#include "models/nccl_paths.h"
#include <string.h>

typedef struct {
    TtNcclPaths *paths;
    const TtNcclSystem *system;
    guint p2p_level, gdr_level;
    gboolean pxn, nvb;
} Paths;

/* ---- ways to one device from all others ---- */

/* What one more link, from @at outwards to @to, makes of a way of kind @so_far. */
static guint8
kind_of(const TtNcclSystem *s, guint at, guint to, const TtSysLink *link, const TtWay *so_far)
{
    const TtSysNode *near = &s->node[at], *far = &s->node[to];
    guint8 kind = link->type == TT_PATH_NET ? TT_PATH_LOC : link->type;

    if (near->type == TT_SYS_PCI && far->type == TT_SYS_PCI)
        kind = TT_PATH_PXB;
    if (link->type == TT_PATH_PIX && (near->type == TT_SYS_CPU || far->type == TT_SYS_CPU))
        kind = TT_PATH_PHB;
    if (near->type == TT_SYS_GPU && so_far->type == TT_PATH_NVL && kind == TT_PATH_NVL &&
        so_far->n_hops > 0)
        kind = TT_PATH_NVB;
    return MAX(so_far->type, kind);
}

/* GPUs pass on only NVLink traffic between GPUs, over one GPU at most. */
static gboolean
may_pass(const Paths *p, guint base, guint at, const TtSysLink *link, const TtWay *so_far)
{
    const TtNcclSystem *s = p->system;

    return at == base || s->node[at].type != TT_SYS_GPU ||
           (p->nvb && link->type == TT_PATH_NVL && s->node[link->to].type == TT_SYS_GPU &&
            so_far->n_hops <= 1);
}

/* @way[n nodes]: how each device reaches @base. @seen, @queue [2 * n nodes]: scratch. */
static void
find_ways_to(const Paths *p, guint base, TtWay *way, guint *seen, guint16 *queue)
{
    const TtNcclSystem *s = p->system;
    guint n = 1, n_next = 0, round = 0;
    guint16 *now = queue, *next = queue + s->n_nodes;

    for (guint i = 0; i < s->n_nodes; i++)
        way[i].type = TT_PATH_DIS, way[i].n_hops = 0, way[i].bw = 0, seen[i] = 0;
    way[base].type = TT_PATH_LOC;
    way[base].bw = TT_SYS_LOC_BW;
    for (now[0] = base; n > 0; n = n_next, n_next = 0) {
        guint16 *swap = now;

        round++;
        for (guint i = 0; i < n; i++) {
            const TtSysNode *node = &s->node[now[i]];

            for (guint l = node->first_link; l < node->first_link + node->n_links; l++) {
                const TtSysLink *link = &s->link[l];
                const TtWay *from = &way[now[i]];
                TtWay *to = &way[link->to];
                float bw = MIN(from->bw, link->bw);

                if (!may_pass(p, base, now[i], link, from) || from->n_hops == TT_WAY_MAX_HOPS)
                    continue;
                if ((to->bw != 0 && to->n_hops <= from->n_hops) || to->bw >= bw)
                    continue;
                to->type = kind_of(s, now[i], link->to, link, from);
                to->link[0] = link->reverse;
                memcpy(to->link + 1, from->link, from->n_hops * sizeof *to->link);
                to->n_hops = from->n_hops + 1;
                to->bw = bw;
                if (seen[link->to] != round)
                    next[n_next++] = link->to;
                seen[link->to] = round;
            }
        }
        now = next;
        next = swap;
    }
}

static void
find_all_ways(const Paths *p)
{
    static const TtSysType types[] = { TT_SYS_GPU, TT_SYS_NET, TT_SYS_CPU, TT_SYS_NVS };
    const TtNcclSystem *s = p->system;
    g_autofree TtWay *way = g_new(TtWay, s->n_nodes);
    g_autofree guint *seen = g_new(guint, s->n_nodes);
    g_autofree guint16 *queue = g_new(guint16, 2 * s->n_nodes);

    for (guint t = 0; t < G_N_ELEMENTS(types); t++)
        for (guint i = 0; i < s->n[types[t]]; i++) {
            guint base = tt_nccl_end(p->paths, types[t], i);

            find_ways_to(p, s->of[types[t]][i], way, seen, queue);
            for (guint u = 0; u < G_N_ELEMENTS(types); u++)
                for (guint j = 0; j < s->n[types[u]]; j++)
                    *tt_nccl_way(p->paths, tt_nccl_end(p->paths, types[u], j), base) =
                        way[s->of[types[u]][j]];
        }
}

/* ---- corrections ---- */

static guint
closest_cpu(const TtNcclPaths *paths, guint gpu)
{
    guint best = TT_NO_INDEX;

    for (guint c = 0; c < paths->system->n[TT_SYS_CPU]; c++) {
        guint end = tt_nccl_end(paths, TT_SYS_CPU, c);
        const TtWay *way = tt_nccl_way(paths, gpu, end);

        if (way->n_hops > 0 &&
            (best == TT_NO_INDEX || way->n_hops < tt_nccl_way(paths, gpu, best)->n_hops))
            best = end;
    }
    return best;
}

static guint8
longer_kind(guint8 a, guint8 b)
{
    if (MIN(a, b) == TT_PATH_C2C && MAX(a, b) == TT_PATH_PHB)
        return TT_PATH_P2C;
    return MAX(a, b);
}

/* From now on @from reaches @to by way of @over. */
static void
detour(const TtNcclPaths *paths, guint from, guint over, guint to, gboolean is_pxn)
{
    TtWay first, second, *way = tt_nccl_way(paths, from, to);

    if (over == TT_NO_INDEX)
        return;
    first = *tt_nccl_way(paths, from, over);
    second = *tt_nccl_way(paths, over, to);
    if (first.type == TT_PATH_DIS || second.type == TT_PATH_DIS ||
        first.n_hops + second.n_hops > TT_WAY_MAX_HOPS) {
        way->type = TT_PATH_DIS;
        return;
    }
    memcpy(way->link, first.link, first.n_hops * sizeof *way->link);
    memcpy(way->link + first.n_hops, second.link, second.n_hops * sizeof *way->link);
    way->n_hops = first.n_hops + second.n_hops;
    way->bw = MIN(first.bw, second.bw);
    way->type = is_pxn ? TT_PATH_PXN
                       : (paths->system->version >= TT_NCCL_VERSION(2, 27, 0)
                              ? longer_kind(first.type, second.type)
                              : MAX(first.type, second.type));
}

/* NCCL_P2P_LEVEL: beyond it GPUs meet in host memory. */
static void
limit_p2p(const Paths *p)
{
    const TtNcclPaths *paths = p->paths;
    guint n = p->system->n[TT_SYS_GPU];

    for (guint to = 0; to < n; to++)
        for (guint from = 0; from < n; from++)
            if (from != to && tt_nccl_way(paths, from, to)->type > p->p2p_level)
                detour(paths, from, closest_cpu(paths, to), to, FALSE);
}

/* C2C to the CPU and PCI from there is a kind of its own since 2.27, for the nets closest to a GPU. */
static void
mark_c2c(const Paths *p)
{
    const TtNcclPaths *paths = p->paths;
    guint16 near[TT_SYS_MAX_NETS];

    for (guint g = 0; g < p->system->n[TT_SYS_GPU]; g++) {
        guint cpu = closest_cpu(paths, g), n;

        n = cpu == TT_NO_INDEX ? 0 : tt_nccl_paths_closest(paths, g, TT_SYS_NET, near);
        for (guint i = 0; i < n; i++) {
            guint net = tt_nccl_end(paths, TT_SYS_NET, near[i]);
            TtWay *out = tt_nccl_way(paths, g, net), *in = tt_nccl_way(paths, net, g);

            if (longer_kind(tt_nccl_way(paths, g, cpu)->type, tt_nccl_way(paths, net, cpu)->type) ==
                TT_PATH_P2C) {
                out->type = MIN(out->type, TT_PATH_P2C);
                in->type = MIN(in->type, TT_PATH_P2C);
            }
        }
    }
}

static gboolean
has_gdr(const Paths *p, guint g, guint n)
{
    return tt_nccl_system_node(p->system, TT_SYS_NET, n)->gdr &&
           tt_nccl_system_node(p->system, TT_SYS_GPU, g)->gdr &&
           tt_nccl_way(p->paths, g, tt_nccl_end(p->paths, TT_SYS_NET, n))->type <= p->gdr_level;
}

/* Through GPU @relay to net @n, if that is wider or keeps off the CPU. Only outwards: NCCL receives
 * locally and sends through others. */
static gboolean
use_pxn(const Paths *p, guint g, guint relay, guint n)
{
    const TtNcclPaths *paths = p->paths;
    guint net = tt_nccl_end(paths, TT_SYS_NET, n);
    const TtWay *there = tt_nccl_way(paths, relay, net), *mine = tt_nccl_way(paths, g, net);
    gboolean c2c = p->system->version >= TT_NCCL_VERSION(2, 27, 0);

    return there->type <= (c2c ? TT_PATH_P2C : TT_PATH_PXB) && (!c2c || has_gdr(p, relay, n)) &&
           tt_nccl_way(paths, relay, g)->type <= TT_PATH_NVL &&
           tt_nccl_system_node(p->system, TT_SYS_GPU, relay)->host ==
               tt_nccl_system_node(p->system, TT_SYS_GPU, g)->host &&
           (there->bw > mine->bw || mine->type > TT_PATH_PXN);
}

static void
correct_nets(const Paths *p)
{
    const TtNcclPaths *paths = p->paths;
    guint n_gpus = p->system->n[TT_SYS_GPU];

    for (guint n = 0; n < p->system->n[TT_SYS_NET]; n++) {
        guint net = tt_nccl_end(paths, TT_SYS_NET, n);
        int relay = p->pxn ? tt_nccl_paths_local_gpu(paths, n) : -1;

        for (guint g = 0; g < n_gpus; g++) {
            gboolean over_gpu = relay >= 0 && relay != (int)g && use_pxn(p, g, (guint)relay, n);
            guint cpu = closest_cpu(paths, g);

            if (over_gpu)
                detour(paths, g, (guint)relay, net, TRUE);
            if (tt_nccl_way(paths, g, net)->type < TT_PATH_PHB &&
                !has_gdr(p, over_gpu ? (guint)relay : g, n)) {
                detour(paths, net, cpu, g, FALSE);
                detour(paths, g, cpu, net, FALSE);
            } else if (!over_gpu) {
                continue;
            }
            if (p->pxn) /* ways have changed, so may what is closest */
                relay = tt_nccl_paths_local_gpu(paths, n);
        }
    }
}

/* ---- totals ---- */

static void
sum_up(TtNcclPaths *paths)
{
    const TtNcclSystem *s = paths->system;
    TtSysType type = s->n[TT_SYS_NET] > 0 ? TT_SYS_NET : TT_SYS_GPU;

    if (type == TT_SYS_GPU && s->n[TT_SYS_GPU] == 1) {
        paths->max_bw = paths->total_bw = TT_SYS_LOC_BW;
        return;
    }
    for (guint g = 0; g < s->n[TT_SYS_GPU]; g++) {
        const TtSysNode *gpu = tt_nccl_system_node(s, TT_SYS_GPU, g);
        float nvlink = 0, pci = 0;

        for (guint i = 0; i < s->n[type]; i++) {
            const TtWay *way = tt_nccl_way(paths, g, tt_nccl_end(paths, type, i));

            if (way->n_hops > 0)
                paths->max_bw = MAX(paths->max_bw, way->bw);
        }
        for (guint l = gpu->first_link; l < gpu->first_link + gpu->n_links; l++) {
            if (s->link[l].type == TT_PATH_NVL)
                nvlink += s->link[l].bw;
            else if (s->link[l].type == TT_PATH_PIX)
                pci = s->link[l].bw;
        }
        paths->total_bw = MAX(paths->total_bw, MAX(nvlink, pci));
    }
}

void
tt_nccl_paths_range(const TtNcclPaths *paths, TtSysType type, guint *nearest, guint *farthest)
{
    guint n_gpus = paths->system->n[TT_SYS_GPU];

    *nearest = TT_PATH_SYS;
    *farthest = TT_PATH_LOC;
    for (guint g = 0; g < n_gpus; g++)
        for (guint i = 0; i < paths->system->n[type]; i++) {
            guint kind = tt_nccl_way(paths, g, tt_nccl_end(paths, type, i))->type;

            if (type == TT_SYS_GPU && i == g)
                continue;
            *nearest = MIN(*nearest, kind);
            *farthest = MAX(*farthest, kind);
        }
}

gboolean
tt_nccl_paths_split(const TtNcclPaths *paths)
{
    guint n = paths->system->n[TT_SYS_GPU], group[TT_NCCL_MAX_GPUS], size[TT_NCCL_MAX_GPUS] = { 0 },
          n_groups = 0;

    for (guint g = 0; g < n; g++)
        group[g] = g;
    for (guint g = 0; g < n; g++)
        for (guint i = g + 1; i < n; i++)
            if (tt_nccl_way(paths, g, i)->type == TT_PATH_NVL)
                group[i] = group[g];
    for (guint g = 0; g < n; g++)
        n_groups += ++size[group[g]] == 2;
    return n_groups == 2;
}

TtNcclPaths *
tt_nccl_paths_new(const TtNcclSystem *system, const TtNcclEnv *env)
{
    TtNcclPaths *paths = g_new0(TtNcclPaths, 1);
    const TtSysNode *cpu =
        system->n[TT_SYS_CPU] ? tt_nccl_system_node(system, TT_SYS_CPU, 0) : NULL;
    gboolean amd = cpu && cpu->arch == TT_ARCH_X86 && cpu->vendor == TT_VENDOR_AMD;
    Paths p = { .paths = paths, .system = system };

    p.p2p_level = env && env->p2p_level != TT_NCCL_UNSET ? (guint)env->p2p_level
                  : amd && system->n[TT_SYS_GPU] <= 2    ? TT_PATH_SYS
                                                         : TT_PATH_PXB;
    p.gdr_level = env && env->gdr_level != TT_NCCL_UNSET         ? (guint)env->gdr_level
                  : system->version >= TT_NCCL_VERSION(2, 27, 0) ? TT_PATH_P2C
                                                                 : TT_PATH_PXB;
    p.pxn = !(env && env->pxn_disable == 1);
    p.nvb = !(env && env->nvb_disable == 1);
    paths->system = system;
    paths->n_ends = system->n[TT_SYS_GPU] + system->n[TT_SYS_NET] + system->n[TT_SYS_CPU] +
                    system->n[TT_SYS_NVS];
    paths->way = g_new(TtWay, (gsize)paths->n_ends * paths->n_ends);
    find_all_ways(&p);
    limit_p2p(&p);
    if (system->version >= TT_NCCL_VERSION(2, 27, 0))
        mark_c2c(&p);
    correct_nets(&p);
    tt_nccl_paths_find_own_nets(paths);
    sum_up(paths);
    return paths;
}

void
tt_nccl_paths_free(TtNcclPaths *paths)
{
    if (!paths)
        return;
    for (guint g = 0; paths->own_nets && g < paths->system->n[TT_SYS_GPU]; g++)
        g_free(paths->own_nets[g]);
    g_free(paths->own_nets);
    g_free(paths->n_own_nets);
    g_free(paths->local_gpu);
    g_free(paths->way);
    g_free(paths);
}
