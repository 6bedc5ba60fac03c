/* nccl_graph_search - the terms of tries. See nccl_graph_search.h. */
#include "models/nccl_graph_search.h"
#include "models/nccl_speeds.h"
#include <string.h>

#define V TT_NCCL_VERSION

/* Steps of all tries together, of one try, of one try whose channels must all be alike. */
#define ALL_STEPS   (1 << 19)
#define TRY_STEPS   (1 << 14)
#define ALIKE_STEPS (1 << 8)
#define PERFECT     (-1)

/* NCCL gives large machines without NVSwitches seconds. Past this many hops tried, a few tenths of a
 * second, tries get a sixteenth of their steps: no machine known to us comes near. */
#define MOST_EFFORT 8000000

typedef struct {
    const TtNcclPaths *paths;
    const TtNcclSystem *system;
    guint version;
    TtWalk *walk;
    const double *speeds;
    guint n_speeds, speed; /* index of the speed tried */
    guint nearest_intra, nearest_inter, farthest_intra, farthest_inter;
    guint cross_nic; /* what is permitted: NCCL_CROSS_NIC where it applies */
    gboolean alike_first, amd, has_nets;
    gint64 steps_left;
    TtWalkGraph now, best;
} Search;

static TtWalkRules
rules_of(guint version)
{
    return (TtWalkRules){
        .rotate_nets = version >= V(2, 19, 0),
        .replay_or_new = version >= V(2, 19, 0),
        .pci_order_first = version < V(2, 19, 0),
        .nvls_from_net = version >= V(2, 19, 0),
        .alternate = version >= V(2, 23, 0),
        .cross_penalty = version < V(2, 21, 0),
        .both_ways = version >= V(2, 21, 0),
    };
}

/* Kinds of ways a version does not know are no step of their own. */
static guint
next_kind(guint version, guint kind)
{
    do
        kind++;
    while ((kind == TT_PATH_C2C && version < V(2, 26, 0)) ||
           (kind == TT_PATH_P2C && version < V(2, 27, 0)));
    return kind;
}

/* ---- where to begin ---- */

static void
find_ranges(Search *s)
{
    s->nearest_intra = TT_PATH_LOC;
    s->nearest_inter = TT_PATH_PIX;
    s->farthest_intra = s->farthest_inter = TT_PATH_SYS;
    if (s->version < V(2, 21, 0)) {
        if (s->system->n[TT_SYS_GPU] > 1)
            s->nearest_intra = TT_PATH_NVL;
        return;
    }
    if (s->system->n[TT_SYS_GPU] > 1)
        tt_nccl_paths_range(s->paths, TT_SYS_GPU, &s->nearest_intra, &s->farthest_intra);
    if (s->has_nets) {
        tt_nccl_paths_range(s->paths, TT_SYS_NET, &s->nearest_inter, &s->farthest_inter);
        s->farthest_intra = s->farthest_inter;
    }
    /* Two GPUs of a balanced tree share a net; on Ampere the second may reach it over sockets only. */
    if (s->version >= V(2, 29, 0) && s->system->min_cc < 90)
        s->farthest_inter = TT_PATH_SYS;
}

/* The arrays hold floats in NCCL, and it compares as floats. */
static gboolean
too_fast(const Search *s, guint i, gboolean all_channels)
{
    float total = s->paths->total_bw, bw = (float)s->speeds[i];
    guint n = s->system->n[TT_SYS_GPU];

    if (n > 1 && s->now.graph.pattern != TT_PATTERN_RING)
        total *= (float)(n * 1.0 / (n - 1));
    return bw > s->paths->max_bw || (all_channels && bw * (float)s->now.min_channels > total);
}

static void
set_speed(Search *s)
{
    s->now.graph.bw_intra = s->now.graph.bw_inter = s->speeds[s->speed];
}

static void
limit_channels(Search *s)
{
    TtWalkGraph *g = &s->now;
    guint n_gpus = s->system->n[TT_SYS_GPU];

    if (g->graph.pattern == TT_PATTERN_NVLS) {
        if (s->version >= V(2, 19, 0) || !s->has_nets)
            g->max_channels = MIN(32, n_gpus); /* NCCL_MAX_NVLS_ARITY */
        if (!s->has_nets)                      /* inside a node every GPU pulls its part */
            g->min_channels = g->max_channels;
    }
    if (g->graph.pattern == TT_PATTERN_COLLNET_DIRECT)
        g->max_channels = MIN(8, n_gpus); /* NCCL_MAX_DIRECT_ARITY + 1 */
    /* Two islands of NVLink: the tree will want two channels, so the ring must have them too. */
    if (g->graph.pattern == TT_PATTERN_RING && s->version >= V(2, 20, 0) &&
        tt_nccl_paths_split(s->paths) && g->max_channels >= 2 && g->min_channels == 1)
        g->min_channels = 2;
}

static void
begin(Search *s, const TtNcclEnv *env)
{
    TtNcclGraph *g = &s->now.graph;
    gboolean may_cross = s->system->n[TT_SYS_NET] > 1 &&
                         (g->pattern == TT_PATTERN_RING || g->pattern == TT_PATTERN_BALANCED_TREE ||
                          g->pattern == TT_PATTERN_SPLIT_TREE);

    s->cross_nic = !may_cross                               ? 0
                   : env && env->cross_nic != TT_NCCL_UNSET ? (guint)env->cross_nic
                                                            : 2;
    find_ranges(s);
    limit_channels(s);
    s->alike_first = g->pattern != TT_PATTERN_NVLS;
    if (s->system->n[TT_SYS_GPU] == 1 && g->pattern != TT_PATTERN_RING)
        g->pattern = TT_PATTERN_TREE;
    g->cross_nic = s->cross_nic == 1;
    g->type_intra = s->nearest_intra;
    g->type_inter = s->nearest_inter;
    g->same_channels = s->alike_first;
    g->n_gpus = s->system->n[TT_SYS_GPU];
    tt_nccl_walk_copy(&s->best, &s->now);
    while (s->speed + 1 < s->n_speeds && too_fast(s, s->speed, TRUE))
        s->speed++;
    set_speed(s);
    s->steps_left = ALL_STEPS;
}

/* ---- first pass: relax ---- */

/* Changes one thing about the terms, undoing the changes tried before it. FALSE: nothing left. */
static gboolean
relax(Search *s, int budget)
{
    TtNcclGraph *g = &s->now.graph, *best = &s->best.graph;
    guint farthest;

    if (g->same_channels && !(s->amd && g->type_intra == TT_PATH_SYS)) {
        g->same_channels = FALSE;
        return TRUE;
    }
    g->same_channels = s->alike_first;

    s->steps_left += budget;
    if (s->steps_left < 0 && best->n_channels)
        return FALSE;

    if (s->system->min_cc >= 90 && g->pattern == TT_PATTERN_BALANCED_TREE) {
        g->pattern = TT_PATTERN_TREE;
        return TRUE;
    }
    g->pattern = best->pattern;

    farthest = s->has_nets ? g->type_inter : s->farthest_intra;
    if (g->type_intra < farthest && (best->n_channels == 0 || g->type_intra < best->type_intra)) {
        g->type_intra = next_kind(s->version, g->type_intra);
        if (g->type_intra < TT_PATH_DIS)
            return TRUE;
    }
    g->type_intra = s->nearest_intra;

    if (s->has_nets && g->type_inter < s->farthest_inter &&
        (best->n_channels == 0 || g->type_inter < best->type_inter ||
         g->type_inter < TT_PATH_PXN)) {
        g->type_inter = next_kind(s->version, g->type_inter);
        if (g->type_inter < TT_PATH_DIS)
            return TRUE;
    }
    g->type_inter = s->nearest_inter;

    if (s->cross_nic == 2 && g->cross_nic == 0 &&
        (best->pattern == TT_PATTERN_RING || best->pattern == TT_PATTERN_BALANCED_TREE)) {
        g->cross_nic = s->version >= V(2, 23, 0) ? 2 : 1;
        return TRUE;
    }
    g->cross_nic = s->cross_nic == 1;

    if (s->speed + 1 < s->n_speeds &&
        (best->n_channels == 0 || s->speeds[s->speed + 1] / best->bw_inter > .49)) {
        s->speed++;
        set_speed(s);
        return TRUE;
    }
    return FALSE;
}

/* ---- second pass: raise ---- */

/* Fast channels are used twice, at half the speed each: more blocks work at once. */
static void
double_channels(Search *s)
{
    TtNcclGraph *g = &s->best.graph;
    guint n = MIN(2 * g->n_channels, s->best.max_channels), parts;

    if (g->n_channels == 0 || g->pattern == TT_PATTERN_NVLS || g->bw_intra < 25)
        return;
    if (s->system->min_cc > 80 && g->bw_intra < 50 && g->n_channels > 4)
        return;
    parts = (n + g->n_channels - 1) / g->n_channels;
    for (guint c = g->n_channels; c < n; c++) {
        memcpy(g->gpu[c], g->gpu[c - g->n_channels], sizeof g->gpu[c]);
        memcpy(g->net[c], g->net[c - g->n_channels], sizeof g->net[c]);
    }
    g->bw_intra /= parts;
    g->bw_inter /= parts;
    g->n_channels = n;
}

static void
begin_raising(Search *s)
{
    if (s->version >= V(2, 19, 0))
        double_channels(s);
    tt_nccl_walk_copy(&s->now, &s->best);
    for (s->speed = 0; s->speed + 1 < s->n_speeds && s->speeds[s->speed] > s->best.graph.bw_inter;)
        s->speed++;
    set_speed(s);
    s->now.min_channels = s->best.graph.n_channels;
}

/* The next higher speed, for what may still gain by it. FALSE: no more. */
static gboolean
raise_speed(Search *s)
{
    TtNcclGraph *g = &s->now.graph, *best = &s->best.graph;
    gboolean newer = s->version >= V(2, 19, 0);

    if (s->speed == 0)
        return FALSE;
    if (best->pattern == TT_PATTERN_RING) {
        if (!newer)
            return FALSE;
        s->speed--;
        set_speed(s);
        return TRUE;
    }
    if (newer && best->pattern == TT_PATTERN_NVLS && g->bw_inter == best->bw_inter &&
        g->bw_inter < g->bw_intra * 2) {
        s->now.min_channels = s->now.max_channels = best->n_channels;
        g->bw_inter = s->speeds[--s->speed];
        return TRUE;
    }
    if (g->bw_intra == best->bw_intra && g->bw_intra < g->bw_inter * 2) {
        g->bw_intra = s->speeds[--s->speed];
        return TRUE;
    }
    return FALSE;
}

/* ---- */

static gboolean
is_saturated(const Search *s)
{
    return (float)(s->best.graph.n_channels * s->best.graph.bw_inter) >= s->paths->total_bw;
}

static void
try_all(Search *s)
{
    gboolean raising = FALSE;

    for (;;) {
        int budget = s->now.graph.same_channels ? ALIKE_STEPS : TRY_STEPS;

        if (tt_nccl_walk_effort(s->walk) > MOST_EFFORT)
            budget /= 16;
        s->steps_left -= budget;
        budget = tt_nccl_walk_try(s->walk, &s->now, &s->best, budget);
        if (!raising) {
            if (budget != PERFECT && !is_saturated(s) && relax(s, budget))
                continue;
            begin_raising(s);
            raising = TRUE;
            budget = PERFECT;
        }
        if (budget == 0 || !raise_speed(s))
            break;
    }
    if (s->version < V(2, 19, 0))
        double_channels(s);
}

/* Nothing found: GPUs in order, a speed that says so. */
static void
fall_back(Search *s)
{
    TtNcclGraph *g = &s->best.graph;
    guint n = s->system->n[TT_SYS_GPU];

    for (guint i = 0; i < n; i++)
        g->gpu[0][i] = (guint16)i;
    g->net[0][0] = g->net[0][1] = s->has_nets ? 0 : -1;
    if (s->has_nets && s->paths->n_own_nets[0] && s->paths->n_own_nets[n - 1]) {
        g->net[0][0] = (gint16)s->paths->own_nets[0][0];
        g->net[0][1] = (gint16)s->paths->own_nets[n - 1][0];
    }
    g->bw_intra = g->bw_inter = 0.1;
    g->type_intra = g->type_inter = TT_PATH_SYS;
    g->n_channels = 1;
}

/* From indices of devices to numbers people know. */
static void
translate(const Search *s, TtNcclGraph *g)
{
    for (guint c = 0; c < g->n_channels; c++) {
        for (guint i = 0; i < g->n_gpus; i++)
            g->gpu[c][i] = (guint16)tt_nccl_system_node(s->system, TT_SYS_GPU, g->gpu[c][i])->place;
        for (guint side = 0; side < 2; side++)
            g->net[c][side] = s->has_nets ? (gint16)tt_nccl_system_node(s->system, TT_SYS_NET,
                                                                        (guint)g->net[c][side])
                                                ->number
                                          : -1;
    }
}

void
tt_nccl_graph_search(const TtNcclPaths *paths, const TtNcclEnv *env, gboolean collnet,
                     guint min_channels, guint max_channels, TtNcclGraph *graph)
{
    const TtNcclSystem *system = paths->system;
    const TtSysNode *cpu = tt_nccl_system_node(system, TT_SYS_CPU, 0);
    TtWalkRules rules = rules_of(system->version);
    g_autofree Search *s = g_new0(Search, 1);

    s->paths = paths;
    s->system = system;
    s->version = system->version;
    s->has_nets = system->n[TT_SYS_NET] > 0;
    s->amd = s->version >= V(2, 21, 0) && cpu->arch == TT_ARCH_X86 && cpu->vendor == TT_VENDOR_AMD;
    s->speeds = tt_nccl_speeds(s->version, system->min_cc, s->has_nets, &s->n_speeds);
    s->now.graph.id = graph->id;
    s->now.graph.pattern = graph->pattern;
    s->now.collnet = collnet;
    s->now.min_channels = min_channels;
    s->now.max_channels = max_channels;
    begin(s, env);
    if (graph->pattern != TT_PATTERN_NVLS || (system->n[TT_SYS_NVS] > 0 && system->min_cc >= 90)) {
        g_autoptr(TtWalk) walk = s->walk = tt_nccl_walk_new(paths, &rules);

        try_all(s);
        if (s->best.graph.n_channels == 0 && !collnet && s->best.graph.pattern != TT_PATTERN_NVLS)
            fall_back(s);
    }
    translate(s, &s->best.graph);
    *graph = s->best.graph;
}
