/* nccl_paths.h - the way NCCL takes between each two GPUs, nets and CPUs, and what kind of way it is.
 *
 * Breadth-first shortest ways over the links of a node, then NCCL's second thoughts: GPUs that may not
 * reach each other directly go through a CPU, NICs are reached through the GPU next to them where
 * NVLink leads there (PXN), no GPUDirect RDMA means through a CPU (its src/graph/paths.cc).
 */
#pragma once
#include "models/nccl_system.h"

#define TT_WAY_MAX_HOPS 22

typedef struct {
    guint8 type; /* TtNcclPath; TT_PATH_DIS: no way */
    guint8 n_hops;
    float bw; /* narrowest link */
    guint16 link[TT_WAY_MAX_HOPS];
} TtWay;

typedef struct {
    const TtNcclSystem *system; /* borrowed, must outlive this */
    guint n_ends;               /* GPUs, nets, CPUs, then the NVSwitch */
    TtWay *way;                 /* [from * n_ends + to] */
    gint16 *local_gpu;          /* [n nets]: GPU that has this net as one of its own; -1: none */
    guint16 **own_nets;         /* [n gpus]: nets a GPU uses by itself, in the order of channels */
    guint *n_own_nets;
    float max_bw, total_bw;
} TtNcclPaths;

/* @env may be NULL. Cannot fail. */
TtNcclPaths *tt_nccl_paths_new(const TtNcclSystem *system, const TtNcclEnv *env);
void tt_nccl_paths_free(TtNcclPaths *paths);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtNcclPaths, tt_nccl_paths_free)

/* The end an GPU, net, CPU or the NVSwitch is. */
static inline guint
tt_nccl_end(const TtNcclPaths *paths, TtSysType type, guint index)
{
    const guint *n = paths->system->n;

    return index + (type == TT_SYS_GPU   ? 0
                    : type == TT_SYS_NET ? n[TT_SYS_GPU]
                    : type == TT_SYS_CPU ? n[TT_SYS_GPU] + n[TT_SYS_NET]
                                         : n[TT_SYS_GPU] + n[TT_SYS_NET] + n[TT_SYS_CPU]);
}

static inline TtWay *
tt_nccl_way(const TtNcclPaths *paths, guint from, guint to)
{
    return &paths->way[(gsize)from * paths->n_ends + to];
}

/* Nearest and farthest kind among ways from GPUs to others of @type (GPU or NET). */
void tt_nccl_paths_range(const TtNcclPaths *paths, TtSysType type, guint *nearest, guint *farthest);

/* The GPUs or nets closest to @end: widest way first, then nearest kind. Returns how many. */
guint tt_nccl_paths_closest(const TtNcclPaths *paths, guint end, TtSysType type, guint16 *found);

/* The first GPU, among those closest to net @n, that counts @n among its own: the one that does so in
 * the lowest channel, in the order of GPUs. -1: none. */
gint16 tt_nccl_paths_local_gpu(const TtNcclPaths *paths, guint n);

/* Fills local_gpu and own_nets; part of making @paths. */
void tt_nccl_paths_find_own_nets(TtNcclPaths *paths);

/* Two groups of GPUs with NVLink inside and none between. */
gboolean tt_nccl_paths_split(const TtNcclPaths *paths);
