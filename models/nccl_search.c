/* nccl_search - the graphs of a communicator, one after the other. See nccl_search.h.
 *
 * Order and limits of the searches: NCCL's initTransportsRank() in src/init.cc.
 */
#include "models/nccl_search.h"
#include "models/nccl_channels.h"
#include "models/nccl_graph_file.h"
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

typedef struct {
    TtNcclComm *comm;
    const TtNcclPaths *paths;
    const TtNcclEnv *env;
    const TtNcclGraphFile *file; /* NULL: none */
} Search;

/* One graph: the file's, if it has it. */
static void
find(const Search *s, TtNcclGraphId id, guint pattern, guint min_channels, guint max_channels)
{
    TtNcclGraph *graph = &s->comm->graph[id];
    gboolean collnet = id == TT_GRAPH_COLLNET_CHAIN || id == TT_GRAPH_COLLNET_DIRECT;

    if (s->file && s->file->given[id]) {
        *graph = s->file->graph[id];
        return;
    }
    graph->pattern = pattern;
    tt_nccl_graph_search(s->paths, s->env, collnet, min_channels, max_channels, graph);
}

static void
search(const Search *s)
{
    TtNcclComm *comm = s->comm;
    guint most = tt_nccl_max_channels(comm->version), rings;

    find(s, TT_GRAPH_RING, TT_PATTERN_RING, 1, most / 2);
    rings = comm->graph[TT_GRAPH_RING].n_channels;
    find(s, TT_GRAPH_TREE, TT_PATTERN_BALANCED_TREE, rings, rings);
    if (comm->collnet) {
        find(s, TT_GRAPH_COLLNET_CHAIN, TT_PATTERN_TREE, rings, rings);
        if (comm->ranks_per_node > 1)
            find(s, TT_GRAPH_COLLNET_DIRECT, TT_PATTERN_COLLNET_DIRECT, 1, most);
        comm->collnet = comm->graph[TT_GRAPH_COLLNET_CHAIN].n_channels > 0;
    }
    if (comm->nvls) {
        find(s, TT_GRAPH_NVLS, TT_PATTERN_NVLS, 1, most);
        comm->nvls = comm->graph[TT_GRAPH_NVLS].n_channels > 0;
    }
}

gboolean
tt_nccl_comm_init(TtNcclComm *comm, const TtNcclXml *node, guint n_nodes, guint version,
                  const TtNcclEnv *env, TtNcclGraph *unmerged, GError **error)
{
    g_autoptr(TtNcclSystem) system = NULL;
    g_autoptr(TtNcclPaths) paths = NULL;
    g_autofree TtNcclGraphFile *file = NULL;

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
    if (env && env->graph_file &&
        !(file = tt_nccl_graph_file_load(env->graph_file, system, env, error)))
        return FALSE;
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
    search(&(Search){ comm, paths, env, file });
    if (unmerged)
        memcpy(unmerged, comm->graph, sizeof comm->graph);
    tt_nccl_channels_set(comm, env);
    return TRUE;
}
