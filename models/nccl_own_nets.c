/* nccl_own_nets - which nets a GPU uses by itself, and which GPU is a net's own.
 *
 * ncclTopoGetLocalNet() and ncclTopoGetLocalGpu() of NCCL's src/graph/topo.cc.
 */
#include "models/nccl_paths.h"

guint
tt_nccl_paths_closest(const TtNcclPaths *paths, guint end, TtSysType type, guint16 *found)
{
    guint n = 0, kind = TT_PATH_DIS;
    float bw = 0;

    for (guint i = 0; i < paths->system->n[type]; i++) {
        const TtWay *way = tt_nccl_way(paths, end, tt_nccl_end(paths, type, i));

        if (way->type == TT_PATH_DIS)
            continue;
        if (way->bw > bw || (way->bw == bw && way->type < kind))
            bw = way->bw, kind = way->type, n = 0;
        if (way->bw == bw && way->type == kind)
            found[n++] = i;
    }
    return n;
}

static guint
mirrored(guint value, guint power_of_two)
{
    guint mirror = 0;

    for (guint bit = 1; bit < power_of_two; bit <<= 1)
        if (value & bit)
            mirror += power_of_two / (bit << 1);
    return mirror;
}

/* What a GPU may choose from, worked out once for all channels. */
typedef struct {
    guint16 net[TT_SYS_MAX_NETS];
    guint n_nets, start, spread;
} Choice;

static gboolean
choice_of(const TtNcclPaths *paths, guint g, Choice *choice)
{
    guint16 gpus[TT_NCCL_MAX_GPUS];
    guint n_gpus;

    choice->n_nets = tt_nccl_paths_closest(paths, g, TT_SYS_NET, choice->net);
    if (choice->n_nets == 0)
        return FALSE;
    n_gpus = tt_nccl_paths_closest(paths, tt_nccl_end(paths, TT_SYS_NET, choice->net[0]),
                                   TT_SYS_GPU, gpus);
    choice->start = (guint)tt_nccl_system_node(paths->system, TT_SYS_GPU, g)->dev;
    if ((choice->n_nets & (choice->n_nets - 1)) == 0)
        choice->start = mirrored(choice->start, choice->n_nets);
    choice->spread = n_gpus ? (choice->n_nets + n_gpus - 1) / n_gpus : choice->n_nets;
    return TRUE;
}

/* The net a GPU uses for @channel: GPUs that share nets spread over them by their device number. */
static guint
net_of_channel(const Choice *choice, guint channel)
{
    return choice->net[(choice->start + channel % choice->spread) % choice->n_nets];
}

gint16
tt_nccl_paths_local_gpu(const TtNcclPaths *paths, guint n)
{
    guint16 gpus[TT_NCCL_MAX_GPUS];
    guint n_gpus =
              tt_nccl_paths_closest(paths, tt_nccl_end(paths, TT_SYS_NET, n), TT_SYS_GPU, gpus),
          lowest = TT_NCCL_MAX_CHANNELS;
    gint16 best = -1;
    Choice choice;

    for (guint i = 0; i < n_gpus; i++) {
        if (!choice_of(paths, gpus[i], &choice))
            continue;
        for (guint c = 0; c < MIN(lowest, choice.spread); c++)
            if (net_of_channel(&choice, c) == n) {
                lowest = c;
                best = (gint16)gpus[i];
            }
    }
    return best;
}

void
tt_nccl_paths_find_own_nets(TtNcclPaths *paths)
{
    const TtNcclSystem *s = paths->system;

    paths->local_gpu = g_new(gint16, s->n[TT_SYS_NET] + 1);
    for (guint n = 0; n < s->n[TT_SYS_NET]; n++)
        paths->local_gpu[n] = tt_nccl_paths_local_gpu(paths, n);
    paths->own_nets = g_new0(guint16 *, s->n[TT_SYS_GPU] + 1);
    paths->n_own_nets = g_new0(guint, s->n[TT_SYS_GPU]);
    for (guint g = 0; g < s->n[TT_SYS_GPU]; g++) {
        guint16 *nets = paths->own_nets[g] = g_new(guint16, TT_NCCL_MAX_CHANNELS);
        guint n = 0;
        Choice choice;

        for (guint c = 0; c < TT_NCCL_MAX_CHANNELS && choice_of(paths, g, &choice); c++) {
            guint net = net_of_channel(&choice, c);

            if (n > 0 && net == nets[0])
                break;
            nets[n++] = (guint16)net;
        }
        paths->n_own_nets[g] = n;
    }
}
