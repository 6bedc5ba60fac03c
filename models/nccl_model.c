/* nccl_model - the formulas between graphs and NCCL's table of latencies and bandwidths.
 *
 * Sources: NCCL src/graph/tuning.cc (ncclTopoTuneModel) of the releases named at each rule.
 */
#include "models/nccl_model.h"

#define V TT_NCCL_VERSION

guint
tt_nccl_log2(guint64 n)
{
    return n ? 63 - (guint)__builtin_clzll(n) : 0;
}

guint
tt_nccl_heads(const TtNcclComm *comm, guint algo)
{
    const TtNcclGraph *graph = tt_nccl_graph_of(comm, algo);
    guint n = 0;

    if (graph->n_gpus == 0) /* orders not known: a head per channel, as on one node */
        return MAX(1, MIN(graph->n_channels, comm->ranks_per_node));
    for (guint c = 0; c < graph->n_channels; c++) {
        gboolean seen = FALSE;

        for (guint before = 0; before < c; before++)
            seen |= graph->gpu[before][0] == graph->gpu[c][0];
        n += !seen;
    }
    return MAX(1, n);
}

void
tt_nccl_model_init(TtNcclModel *model, const TtNcclComm *comm, const TtNcclEnv *env)
{
    double(*hop)[TT_NCCL_N_PROTOS];

    g_assert(comm->n_nodes > 0 && comm->n_ranks >= comm->n_nodes);
    model->comm = comm;
    model->env = env;
    model->arch = tt_nccl_arch(comm->version, comm->min_cc);
    model->column = MIN(comm->n_nodes, 3) - 1;
    model->per_node = (double)comm->n_ranks / comm->n_nodes;
    tt_nccl_tables(comm->version, &model->tables);
    hop = model->tables.hop_us[TT_HOP_PCI];
    if (comm->cpu_power)
        hop[TT_NCCL_TREE][TT_NCCL_SIMPLE] = hop[TT_NCCL_RING][TT_NCCL_SIMPLE];
}

/* 2(N-1) for allreduce, N-1 for its halves, N for the rooted ones. */
static double
n_steps(const TtNcclComm *comm, TtNcclFunc func)
{
    switch (func) {
    case TT_NCCL_ALLREDUCE: return 2.0 * (comm->n_ranks - 1);
    case TT_NCCL_ALLGATHER:
    case TT_NCCL_REDUCE_SCATTER: return comm->n_ranks - 1;
    default: return comm->n_ranks;
    }
}

static gboolean
is_half(TtNcclFunc func)
{
    return func == TT_NCCL_ALLGATHER || func == TT_NCCL_REDUCE_SCATTER;
}

static gboolean
is_nvls(guint algo)
{
    return algo == TT_NCCL_NVLS || algo == TT_NCCL_NVLS_TREE;
}

/* --- bandwidth --------------------------------------------------------------------------------- */

/* LL is limited by the GPU inside a node, by the CPU that posts across nodes. */
static double
ll_max_gbps(const TtNcclModel *m)
{
    guint row = m->comm->n_nodes == 1 ? m->arch : m->comm->cpu_amd ? TT_CC_AMPERE : TT_CC_VOLTA;

    return m->tables.ll_max[row][m->column];
}

static double
ring_bus(const TtNcclModel *m, TtNcclFunc func, guint proto, double bus)
{
    const TtNcclComm *comm = m->comm;
    double share = 0.92;

    switch (proto) {
    case TT_NCCL_LL:
        if (comm->version >= V(2, 21, 0))
            share = 0.5;
        else if (comm->n_nodes > 1 || func == TT_NCCL_ALLREDUCE || func == TT_NCCL_REDUCE)
            share = 1.0 / 4;
        else
            share = 1.0 / 3;
        return MIN(ll_max_gbps(m), bus * share);
    case TT_NCCL_LL128:
        if (comm->version < V(2, 23, 0) && m->per_node < 2)
            share = 0.7; /* sends and receives at the same GPU */
        return MIN(bus * share, tt_nccl_graph_of(comm, TT_NCCL_RING)->n_channels *
                                    m->tables.ring_ll128_max[m->arch][m->column]);
    default: return bus;
    }
}

static double
tree_bus(const TtNcclModel *m, guint proto, double bus)
{
    const TtNcclGraph *graph = tt_nccl_graph_of(m->comm, TT_NCCL_TREE);

    bus = MIN(bus * 0.92, graph->n_channels * m->tables.tree_max[m->arch][m->column]);
    if (proto == TT_NCCL_LL)
        bus = MIN(bus / 3.8, ll_max_gbps(m));
    else if (proto == TT_NCCL_LL128)
        bus = MIN(bus * (m->comm->n_nodes == 1 ? 7.0 / 9 : 120.0 / 128),
                  graph->n_channels * m->tables.tree_ll128_max[m->arch][m->column]);
    if (graph->pattern == TT_PATTERN_TREE && m->comm->version >= V(2, 18, 3))
        bus *= 0.85;
    return bus;
}

/* NVLS and NVLSTree up to 2.27: the slower of the inside and the outside. */
static double
nvls_bus_before_28(const TtNcclModel *m, TtNcclFunc func, guint algo)
{
    const TtNcclGraph *graph = tt_nccl_graph_of(m->comm, algo);
    double intra = graph->bw_intra, inter = graph->bw_inter;

    if (m->comm->version < V(2, 19, 0))
        return graph->n_channels * (m->comm->n_nodes <= 2 ? intra : inter);
    if (algo == TT_NCCL_NVLS_TREE && m->comm->n_nodes > 2)
        inter /= 2;
    if (algo == TT_NCCL_NVLS && is_half(func) && m->comm->version >= V(2, 27, 0)) {
        intra *= (m->per_node - 1) / m->per_node;
        inter *= 0.9;
    }
    return graph->n_channels * MIN(intra, inter);
}

static double
nvls_bus(const TtNcclModel *m, TtNcclFunc func, guint algo)
{
    const TtNcclGraph *graph = tt_nccl_graph_of(m->comm, algo);
    double n = graph->n_channels, intra, inter, bw;

    if (m->comm->version < V(2, 28, 0))
        return nvls_bus_before_28(m, func, algo);
    if (graph->n_channels < 2)
        return 0;
    intra = graph->bw_intra * m->tables.nvls_efficiency[m->arch] * (n - 1) / n;
    intra *= is_half(func) ? (m->per_node - 1) / m->per_node : 2;
    inter = graph->bw_inter * (algo == TT_NCCL_NVLS_TREE && m->comm->n_nodes <= 2 ? 2 : 1);
    bw = MIN(intra, inter);
    if (algo == TT_NCCL_NVLS_TREE)
        bw = MIN(bw, m->tables.nvls_tree_max[m->arch][m->column]);
    return n * bw;
}

static double
collnet_direct_bus(const TtNcclModel *m, TtNcclFunc func, double bus)
{
    const TtNcclGraph *graph = tt_nccl_graph_of(m->comm, TT_NCCL_COLLNET_DIRECT);
    double ratio = m->per_node / MAX(1, graph->n_channels), w = (m->per_node - 1) / 7;

    if (!is_half(func)) { /* half the loss of GPUs that have no NIC of their own */
        ratio -= (ratio - 1) / 2;
        return bus / ratio * (m->comm->min_cc >= 90 ? 0.85 : 1);
    }
    if (m->comm->version >= V(2, 27, 0))
        return m->per_node * MIN(graph->bw_intra, graph->bw_inter * 0.9);
    return m->per_node * graph->bw_intra * (0.85 * w + 0.95 * (1 - w));
}

static double
bus_gbps(const TtNcclModel *m, TtNcclFunc func, guint algo, guint proto)
{
    const TtNcclGraph *graph = tt_nccl_graph_of(m->comm, algo);
    gboolean collnet = algo == TT_NCCL_COLLNET_DIRECT || algo == TT_NCCL_COLLNET_CHAIN;
    double bus =
        graph->n_channels * (m->comm->n_nodes <= 2 || collnet ? graph->bw_intra : graph->bw_inter);

    if (algo != TT_NCCL_TREE && algo != TT_NCCL_RING && proto != TT_NCCL_SIMPLE)
        return 0;
    switch (algo) {
    case TT_NCCL_RING: return ring_bus(m, func, proto, bus);
    case TT_NCCL_TREE: return tree_bus(m, proto, bus);
    case TT_NCCL_NVLS:
    case TT_NCCL_NVLS_TREE: return nvls_bus(m, func, algo);
    case TT_NCCL_COLLNET_DIRECT: return collnet_direct_bus(m, func, bus);
    case TT_NCCL_PAT: return bus * (m->comm->version >= V(2, 24, 0) ? 0.75 : 0.85);
    default: return bus;
    }
}

/* From what crosses the links to what the caller's bytes are divided by. */
static double
bus_to_algorithm(const TtNcclModel *m, TtNcclFunc func, guint algo)
{
    guint version = m->comm->version, nodes = m->comm->n_nodes;
    double ring = m->comm->n_ranks / n_steps(m->comm, func);

    if (algo == TT_NCCL_RING)
        return ring;
    if (is_half(func) &&
        (version >= V(2, 23, 0) || (algo == TT_NCCL_COLLNET_DIRECT && version >= V(2, 20, 0))))
        return 1;
    if (!is_nvls(algo))
        return 0.5;
    if (version >= V(2, 28, 0))
        return ring;
    if (version < V(2, 19, 0) && algo == TT_NCCL_NVLS_TREE)
        return nodes > 1 ? 0.70 * nodes / (2.0 * (nodes - 1)) : 0;
    return version < V(2, 18, 3) ? 0.75 : 5.0 / 6;
}

double
tt_nccl_model_gbps(const TtNcclModel *model, TtNcclFunc func, guint algo, guint proto)
{
    return bus_gbps(model, func, algo, proto) * bus_to_algorithm(model, func, algo);
}

/* --- latency ----------------------------------------------------------------------------------- */

static TtNcclHop
inside_hop(const TtNcclModel *m, guint algo)
{
    return tt_nccl_graph_of(m->comm, algo)->type_intra == TT_PATH_NVL ? TT_HOP_NVLINK : TT_HOP_PCI;
}

/* Posting a network operation keeps a rank busy even where the data stays inside the node. */
static double
net_overhead_us(const TtNcclModel *m, guint proto)
{
    double us = 1.0;

    if (m->comm->n_nodes == 1)
        return 0;
    if (m->env && m->env->net_overhead_ns != TT_NCCL_UNSET)
        us = m->env->net_overhead_ns / 1000.0;
    else if (m->comm->cpu_x86 && m->comm->cpu_amd)
        us = 2.0;
    return us * (proto == TT_NCCL_SIMPLE ? 3 : 1);
}

static double
ring_latency(const TtNcclModel *m, TtNcclFunc func, guint proto, double inside, double across)
{
    const TtNcclComm *comm = m->comm;
    double nodes = comm->n_nodes, steps = n_steps(comm, func), crossing;

    if (func == TT_NCCL_BROADCAST || func == TT_NCCL_REDUCE) {
        TtNcclHop hop = comm->n_nodes > 1 ? TT_HOP_NET : inside_hop(m, TT_NCCL_RING);

        if (tt_nccl_graph_of(comm, TT_NCCL_RING)->same_channels)
            return m->tables.hop_us[hop][TT_NCCL_RING][proto];
        return steps * /* Tree's figure holds the time of a chunk as well */
               m->tables.hop_us[hop][proto == TT_NCCL_SIMPLE ? TT_NCCL_TREE : TT_NCCL_RING][proto];
    }
    if (comm->n_nodes == 1)
        crossing = 0;
    else if (func == TT_NCCL_ALLREDUCE)
        crossing = comm->version >= V(2, 23, 0) ? 2 * (nodes - 1) : 2 * nodes;
    else
        crossing = nodes - 1;
    return (steps - crossing) * MAX(inside, net_overhead_us(m, proto)) + crossing * across;
}

double
tt_nccl_model_latency_us(const TtNcclModel *m, TtNcclFunc func, guint algo, guint proto)
{
    const TtNcclComm *comm = m->comm;
    const TtNcclTables *t = &m->tables;
    gboolean old = comm->version < V(2, 19, 0);
    double base = t->base_us[algo][proto], log_nodes = tt_nccl_log2(comm->n_nodes);
    double others = comm->n_ranks / comm->n_nodes - 1; /* of the node */
    double inside = t->hop_us[inside_hop(m, algo)][algo][proto];
    guint exposed = comm->n_ranks == comm->n_nodes && comm->version >= V(2, 23, 0);
    double net = t->hop_us[TT_HOP_NET][exposed ? TT_NCCL_TREE : algo][proto];
    double across = net + tt_nccl_graph_of(comm, algo)->latency_inter *
                              (proto == TT_NCCL_SIMPLE ? 2 : 1); /* the flush once more */

    switch (algo) {
    case TT_NCCL_RING: return base + ring_latency(m, func, proto, inside, across);
    case TT_NCCL_TREE: return base + 2 * (others * inside + log_nodes * across);
    case TT_NCCL_COLLNET_DIRECT:
        return base + 2 * (MIN(1, others) * inside + others * (old ? 0.5 : 0.4)) + across;
    case TT_NCCL_COLLNET_CHAIN: return base + 2 * others * inside + across;
    case TT_NCCL_NVLS:
        if (old)
            return base + (comm->n_nodes > 1 ? t->hop_us[TT_HOP_NET][algo][proto] : 0);
        return inside + (comm->n_nodes > 1 ? across : 0);
    case TT_NCCL_NVLS_TREE:
        if (old)
            return base + 2.0 * (comm->n_nodes - 1) * t->hop_us[TT_HOP_NET][algo][proto];
        return base + inside + 2 * log_nodes * across;
    default: return base + log_nodes * across / 3.5 + comm->n_ranks * 2.8; /* PAT */
    }
}
