/* nccl_search - the graphs of a communicator, one after the other. See nccl_search.h.
 *
 * Order and limits of the searches: NCCL's initTransportsRank() in src/init.cc.
 */
#include "models/nccl_search.h"
#include "models/nccl_channels.h"
#include "models/nccl_graph_search.h"

#define V TT_NCCL_VERSION

/* Without InfiniBand NCCL talks through sockets: no GPU memory on the wire, nothing reduced there. */
static void
use_sockets(TtNcclSystem *system)
{
    for (guint n = 0; n < system->n[TT_SYS_NET]; n++) {
        TtSysNode *net = &system->node[system->of[TT_SYS_NET][n]];

        net->gdr = net->coll = FALSE;
    }
}

/* NCCL_COLLNET_ENABLE asks for in-network reduction. Files made by hand say nothing about it: then every
 * net can do it, as the user wants to see what would be. */
static gboolean
has_collnet(TtNcclSystem *system, guint n_nodes, const TtNcclEnv *env)
{
    gboolean stated = FALSE;

    if (!env || env->collnet_enable != 1 || env->ib_disable == 1 || n_nodes < 2)
        return FALSE;
    for (guint n = 0; n < system->n[TT_SYS_NET]; n++)
        stated = stated || system->node[system->of[TT_SYS_NET][n]].coll;
    for (guint n = 0; n < system->n[TT_SYS_NET] && !stated; n++)
        system->node[system->of[TT_SYS_NET][n]].coll = TRUE;
    return TRUE;
}

static void
describe(TtNcclComm *comm, const TtNcclXml *node, const TtNcclSystem *system)
{
    comm->ranks_per_node = system->n[TT_SYS_GPU];
    comm->n_ranks = comm->n_nodes * comm->ranks_per_node;
    comm->min_cc = system->min_cc;
    comm->max_cc = system->max_cc;
    for (guint c = 0; c < system->n[TT_SYS_CPU]; c++) {
        const TtSysNode *cpu = tt_nccl_system_node(system, TT_SYS_CPU, c);

        comm->cpu_amd = comm->cpu_amd || cpu->vendor == TT_VENDOR_AMD;
        comm->cpu_x86 = comm->cpu_x86 || cpu->arch == TT_ARCH_X86;
        comm->cpu_power = comm->cpu_power || cpu->arch == TT_ARCH_POWER;
    }
    for (guint i = 0; i < node->net->len; i++)
        comm->nic_gbits =
            MAX(comm->nic_gbits, g_array_index(node->net, TtXmlNet, i).speed_mbps / 1000.0);
    comm->nvswitch = system->n[TT_SYS_NVS] > 0;
}

static void
search(TtNcclComm *comm, const TtNcclPaths *paths, const TtNcclEnv *env)
{
    guint most = tt_nccl_max_channels(comm->version), rings;
    TtNcclGraph *graph = comm->graph;

    graph[TT_GRAPH_RING].pattern = TT_PATTERN_RING;
    tt_nccl_graph_search(paths, env, FALSE, 1, most / 2, &graph[TT_GRAPH_RING]);
    rings = graph[TT_GRAPH_RING].n_channels;
    graph[TT_GRAPH_TREE].pattern = TT_PATTERN_BALANCED_TREE;
    tt_nccl_graph_search(paths, env, FALSE, rings, rings, &graph[TT_GRAPH_TREE]);
    if (comm->collnet) {
        graph[TT_GRAPH_COLLNET_CHAIN].pattern = TT_PATTERN_TREE;
        tt_nccl_graph_search(paths, env, TRUE, rings, rings, &graph[TT_GRAPH_COLLNET_CHAIN]);
        if (comm->ranks_per_node > 1) {
            graph[TT_GRAPH_COLLNET_DIRECT].pattern = TT_PATTERN_COLLNET_DIRECT;
            tt_nccl_graph_search(paths, env, TRUE, 1, most, &graph[TT_GRAPH_COLLNET_DIRECT]);
        }
        comm->collnet = graph[TT_GRAPH_COLLNET_CHAIN].n_channels > 0;
    }
    if (comm->nvls) {
        graph[TT_GRAPH_NVLS].pattern = TT_PATTERN_NVLS;
        tt_nccl_graph_search(paths, env, FALSE, 1, most, &graph[TT_GRAPH_NVLS]);
        comm->nvls = graph[TT_GRAPH_NVLS].n_channels > 0;
    }
}

gboolean
tt_nccl_comm_init(TtNcclComm *comm, const TtNcclXml *node, guint n_nodes, guint version,
                  const TtNcclEnv *env, TtNcclGraph *unmerged, GError **error)
{
    g_autoptr(TtNcclSystem) system = NULL;
    g_autoptr(TtNcclPaths) paths = NULL;

    if (n_nodes == 0 || n_nodes > G_MAXINT32 / TT_NCCL_MAX_GPUS) {
        g_set_error(error, TT_NCCL_ERROR, TT_NCCL_ERROR_USAGE,
                    "%u nodes: from 1 to %d are possible", n_nodes, G_MAXINT32 / TT_NCCL_MAX_GPUS);
        return FALSE;
    }
    system = tt_nccl_system_new(node, version, n_nodes > 1, error);
    if (!system)
        return FALSE;
    if (n_nodes > 1 && system->n[TT_SYS_NET] == 0) {
        g_set_error(error, TT_NCCL_ERROR, TT_NCCL_ERROR_USAGE,
                    "%s: no network port, so %u nodes cannot reach each other", node->origin,
                    n_nodes);
        return FALSE;
    }
    memset(comm, 0, sizeof *comm);
    comm->version = version;
    comm->n_nodes = n_nodes;
    if (env && env->ib_disable == 1)
        use_sockets(system);
    comm->collnet = has_collnet(system, n_nodes, env);
    describe(comm, node, system);
    comm->nvls = comm->nvswitch && comm->min_cc >= 90 && comm->ranks_per_node > 2 &&
                 !(env && env->nvls_enable == 0);
    for (guint g = 0; g < TT_N_GRAPHS; g++) {
        comm->graph[g].id = g;
        comm->graph[g].n_gpus = comm->ranks_per_node;
    }
    paths = tt_nccl_paths_new(system, env);
    comm->max_bw = paths->max_bw;
    comm->total_bw = paths->total_bw;
    search(comm, paths, env);
    if (unmerged)
        memcpy(unmerged, comm->graph, sizeof comm->graph);
    tt_nccl_channels_set(comm, env);
    return TRUE;
}
