/* nccl_channels - channels of a communicator: each ring is used twice, each tree too.
 *
 * Sources: NCCL's src/init.cc (merge over ranks), src/graph/connect.cc (doubling, limits),
 * src/transport/nvls.cc (channels of NVLS).
 */
#include "models/nccl_channels.h"

#define V TT_NCCL_VERSION

guint
tt_nccl_max_channels(guint version)
{
    return version >= V(2, 25, 0) ? 64 : 32;
}

/* Nodes are alike, so the smallest of every figure is that of one node; but rings and trees share
 * channels. */
static void
merge(TtNcclComm *comm)
{
    TtNcclGraph *ring = &comm->graph[TT_GRAPH_RING], *tree = &comm->graph[TT_GRAPH_TREE];

    ring->n_channels = tree->n_channels = MIN(ring->n_channels, tree->n_channels);
}

static guint
limited(guint n, const TtNcclEnv *env)
{
    if (env && env->max_channels > 0)
        n = MIN(n, (guint)env->max_channels);
    if (env && env->min_channels > 0)
        n = MAX(n, (guint)env->min_channels);
    return n;
}

/* Blocks of one NVLS operation: 16 on Hopper; Blackwell 32 in 2.25 and 2.26, since then 24 in one node
 * and 32 over several. */
static guint
nvls_channels(const TtNcclComm *comm)
{
    if (!comm->nvls)
        return 0;
    if (comm->min_cc < 100 || comm->version < V(2, 25, 0))
        return 16;
    return comm->version >= V(2, 27, 0) && comm->n_nodes == 1 ? 24 : 32;
}

static guint
doubled(const TtNcclComm *comm)
{
    guint most = tt_nccl_max_channels(comm->version),
          n = MIN(2 * comm->graph[TT_GRAPH_RING].n_channels, most);
    const TtNcclGraph *chain = &comm->graph[TT_GRAPH_COLLNET_CHAIN];
    gboolean hopper = comm->version >= V(2, 25, 0) ? comm->min_cc >= 90 : comm->min_cc == 90;

    /* SHARP is slower than the node: more chains keep it busy. */
    if (comm->collnet && chain->n_channels > 0 && chain->bw_intra > chain->bw_inter &&
        comm->ranks_per_node > 1)
        n = MIN(n + n / 2, most);
    if (hopper && comm->n_nodes > 1 && comm->graph[TT_GRAPH_RING].bw_intra > 45.0 && n < 16)
        n *= 2;
    return n;
}

void
tt_nccl_channels_set(TtNcclComm *comm, const TtNcclEnv *env)
{
    guint most = tt_nccl_max_channels(comm->version), nvls = nvls_channels(comm);

    merge(comm);
    comm->nvls_channels = nvls ? CLAMP(limited(nvls, env), 1, most) : 0;
    comm->n_channels = CLAMP(limited(doubled(comm), env), 1, most);
    if (comm->version >= V(2, 20, 0) && comm->version < V(2, 28, 0)) /* rings are copied */
        comm->n_channels = MAX(comm->n_channels, comm->nvls_channels);
}
