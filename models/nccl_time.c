#include "models/nccl_time.h"

#include <math.h>

const TtMachineEffects tt_no_effects = { 1, 1, 1, 1 };

/* Bytes on the wire per byte of data: LL sends a flag with every 4 bytes, LL128 one with every 120. */
static const double wire_factor[TT_NCCL_N_PROTOS] = { 2, 16.0 / 15, 1 };

/* The larger of two, rounded at the corner (the sixth norm): near equality both are felt. */
static double
soft_max(double a, double b)
{
    double top = MAX(a, b), ratio = top > 0 ? MIN(a, b) / top : 0;
    double cube = ratio * ratio * ratio;

    return top * cbrt(sqrt(1 + cube * cube));
}

static double
eighth_power(double x)
{
    double square = x * x, fourth = square * square;

    return fourth * fourth;
}

double
tt_nccl_narrowest(double a, double b, double c)
{
    double least = MIN(MIN(a, b), c);

    return least / sqrt(sqrt(sqrt(eighth_power(least / a) + eighth_power(least / b) +
                                  eighth_power(least / c))));
}

/* Levels of a tree over @n nodes. */
static guint
ceil_log2(guint n)
{
    return n > 1 ? g_bit_storage(n - 1) : 0;
}

double
tt_nccl_join_us(double call_us, double gpu_us)
{
    return soft_max(call_us, gpu_us);
}

double
tt_nccl_start_us(const double *v, const TtNcclMachine *m)
{
    return v[TT_COST_START] * v[tt_cost_gen(m->gen, TT_GEN_START)];
}

double
tt_nccl_call_us(const double *v, const TtMachineEffects *e, const TtNcclMachine *m)
{
    switch (m->launch) {
    case TT_LAUNCH_ONE_PROCESS: return v[TT_COST_CALL_EACH] * m->ranks_per_node * e->call;
    case TT_LAUNCH_GRAPH: return v[TT_COST_CALL] / 2 * e->call; /* nccl-tests -G saves about half */
    default: return v[TT_COST_CALL] * e->call;
    }
}

/* GB/s of data a GPU sends to its peers in the node. */
static double
intra_gbps(const double *v, const TtMachineEffects *e, const TtNcclMachine *m, guint proto)
{
    switch (m->way) {
    case TT_WAY_NVLINK:
        return m->nvlink_gbps * v[tt_cost_proto(TT_COST_SHARE, proto)] *
               v[tt_cost_gen_proto(m->gen, TT_GEN_SHARE, proto)] / wire_factor[proto];
    case TT_WAY_PCIE: return m->pcie_gbps * v[TT_COST_PCIE_SHARE] / wire_factor[proto];
    default: return v[TT_COST_HOST_RATE] * e->host / wire_factor[proto];
    }
}

static double
nics_gbps(const double *v, const TtMachineEffects *e, const TtNcclMachine *m, guint algo,
          guint proto)
{
    double all = m->nics_gbps * v[tt_cost_nic_share(m->nic)] * e->nics;

    if (m->n_nodes < 2)
        return INFINITY;
    if (m->nic_far[algo == TT_NCCL_TREE])
        all *= v[TT_COST_FAR_SHARE];
    if (m->ranks_per_node == 1)
        all = MIN(all, m->pcie_gbps);
    return all / wire_factor[proto];
}

TtNcclStepCost
tt_nccl_step_cost(const double *v, const TtMachineEffects *e, const TtNcclMachine *m,
                  const TtNcclChoice *choice, double bytes)
{
    guint p = choice->proto, algo = choice->algo;
    double growth = v[tt_cost_proto(TT_COST_HOP_GROWTH, p)] *
                    v[tt_cost_gen_proto(m->gen, TT_GEN_GROWTH, p)] * log2(1 + bytes / 64);
    TtNcclStepCost c = {
        .hop_us = v[tt_cost_proto(TT_COST_HOP_NVLINK + m->way, p)] *
                      v[tt_cost_gen_proto(m->gen, TT_GEN_HOP, p)] +
                  growth,
        .channel_gbps =
            v[tt_cost_proto(TT_COST_CHANNEL, p)] * v[tt_cost_gen_proto(m->gen, TT_GEN_CHANNEL, p)],
        .nvlink_gbps = intra_gbps(v, e, m, p),
        .nics_gbps = nics_gbps(v, e, m, algo, p),
        .forward_gbps = INFINITY,
    };

    if (m->n_nodes > 1) {
        c.hop_net_us = v[tt_cost_proto(TT_COST_HOP_NET, p)] *
                       v[tt_cost_nic_proto(m->nic, TT_NIC_HOP, p)] * e->hop_net;
        if (m->nic == TT_NIC_EFA)
            c.hop_net_us *= pow(v[TT_COST_EFA_GEN], (double)m->efa_generation - 2);
        if (p != TT_NCCL_SIMPLE)
            c.forward_gbps = v[tt_cost_proto(TT_COST_FORWARD, p)] *
                             v[tt_cost_nic_proto(m->nic, TT_NIC_FORWARD, p)] *
                             (m->grace ? v[TT_COST_GRACE_FORWARD] : 1);
    }
    return c;
}

/* Steps along the longest way of a chunk around the ring for one loop, and how many of them cross nodes:
 * those left out of whole turns are inner ones where a node has ranks enough. */
static void
count_hops(const TtNcclMachine *m, TtNcclFunc func, double *inner, double *outer)
{
    double times = func == TT_NCCL_ALLREDUCE ? 2 : 1, all = times * (m->n_ranks - 1.0);

    *outer = m->n_nodes < 2 ? 0 : m->ranks_per_node == 1 ? all : MIN(all, times * m->n_nodes);
    *inner = all - *outer;
}

TtNcclRingCost
tt_nccl_ring_cost(const double *v, const TtMachineEffects *e, const TtNcclMachine *m,
                  const TtNcclChoice *c, double chunk, double n)
{
    TtNcclStepCost s = tt_nccl_step_cost(v, e, m, c, chunk);
    TtNcclRingCost cost = {
        .inner_us = s.hop_us,
        .outer_us = s.hop_net_us + tt_nccl_move_us(chunk, s.forward_gbps),
        .gbps = tt_nccl_narrowest(
            s.channel_gbps, m->ranks_per_node > 1 ? s.nvlink_gbps / n : INFINITY, s.nics_gbps / n),
    };

    if (c->proto == TT_NCCL_SIMPLE) /* the second slice moves while the first is worked on */
        cost.inner_us /= 1 + v[tt_cost_proto(TT_COST_HIDDEN, c->proto)] * chunk / 1e5;
    return cost;
}

static double
ring_us(const double *v, const TtMachineEffects *e, const TtNcclMachine *m, const TtNcclOp *op,
        const TtNcclChoice *c)
{
    gboolean chain = op->func == TT_NCCL_BROADCAST || op->func == TT_NCCL_REDUCE;
    double data = MAX(8.0, MIN((double)c->channel_bytes, (double)op->bytes));
    double shares = chain ? 1 : m->n_ranks, n = MAX(1, c->used_channels);
    double loops = MAX(1, ceil(data / (shares * (double)c->chunk_bytes) - 1e-9));
    double chunk = MAX(8, data / (shares * loops)), inner, outer, chunk_us;
    double begin_us = v[tt_cost_proto(TT_COST_BEGIN, c->proto)];
    TtNcclStepCost s = tt_nccl_step_cost(v, e, m, c, chunk);
    TtNcclRingCost ring = tt_nccl_ring_cost(v, e, m, c, chunk, n);

    chunk_us = tt_nccl_move_us(chunk, ring.gbps);
    if (chain) /* back to back, as measured, operations follow each other down the chain: no rank waits
                  for the last one, and what one operation costs is the slowest rank's share of it */
        return begin_us + MAX(s.hop_us, s.hop_net_us) + loops * chunk_us;
    count_hops(m, op->func, &inner, &outer);
    return begin_us +
           loops * (inner * ring.inner_us + outer * ring.outer_us + (inner + outer) * chunk_us);
}

/* Bytes through a node's NICs, one way, for each byte a double tree reduces: each tree half of the data,
 * up and down. A node in the middle of both trees sends all of it twice; with two or three nodes there is
 * none, and the load is spread. */
static double
tree_load(guint n_nodes)
{
    return n_nodes > 3 ? 2 : n_nodes > 1 ? 2 * (n_nodes - 1.0) / n_nodes : 1;
}

/* The first chunk travels as fast as a block can; then chunks come as fast as a block that works on two
 * directions, or the links all of them share: a chain's up and down, the NICs of the busiest node. */
TtNcclTreeCost
tt_nccl_tree_cost(const double *v, const TtMachineEffects *e, const TtNcclMachine *m,
                  const TtNcclChoice *c, double chunk, double n)
{
    TtNcclStepCost s = tt_nccl_step_cost(v, e, m, c, chunk);
    double G = m->ranks_per_node, alone_us = tt_nccl_move_us(chunk, s.channel_gbps);
    double chain = G > 1 ? s.nvlink_gbps / n * G / (2 * (G - 1)) : INFINITY;
    double nics = s.nics_gbps / n / tree_load(m->n_nodes);
    double rate =
        tt_nccl_narrowest(s.channel_gbps * v[tt_cost_proto(TT_COST_TREE, c->proto)], chain, nics);
    guint levels = ceil_log2(m->n_nodes);

    return (TtNcclTreeCost){
        .inner_us = s.hop_us + alone_us,
        .outer_us = s.hop_net_us + (c->proto != TT_NCCL_SIMPLE
                                        ? tt_nccl_move_us(chunk, s.forward_gbps)
                                        : alone_us + tt_nccl_move_us(chunk, s.nics_gbps)),
        .pace_us = tt_nccl_move_us(chunk, rate) * (1 + v[TT_COST_TREE_CROWD] * levels),
        .levels = levels,
    };
}

static double
tree_us(const double *v, const TtMachineEffects *e, const TtNcclMachine *m, const TtNcclOp *op,
        const TtNcclChoice *c)
{
    double data = MAX(8.0, MIN((double)c->channel_bytes, (double)op->bytes));
    double chunk = MAX(8, MIN((double)c->chunk_bytes, data)), chunks = MAX(1, data / chunk);
    TtNcclTreeCost tree = tt_nccl_tree_cost(v, e, m, c, chunk, MAX(1, c->used_channels));
    double inner = 2 * (m->ranks_per_node - 1.0), outer = 2.0 * tree.levels;

    if (m->side_trees && m->ranks_per_node > 1 && tree.levels > 1)
        inner += 2 * (tree.levels - 1.0); /* from one child's GPU to the next level's */
    return v[tt_cost_proto(TT_COST_BEGIN, c->proto)] + inner * tree.inner_us +
           outer * tree.outer_us + (chunks - 1) * tree.pace_us;
}

/* Rounds of one chunk per head and channel, at the rate of a GPU's NVLink, of which a head uses 2 parts in
 * G + 1 (NCCL's search: a head's channel uses 2 units, each other GPU 1). */
TtNcclNvlsCost
tt_nccl_nvls_cost(const double *v, const TtMachineEffects *e, const TtNcclMachine *m,
                  const TtNcclOp *op, const TtNcclChoice *c)
{
    double heads = MAX(1, m->heads), bytes = (double)op->bytes;
    double per_round = (double)m->nvls_channels * heads * (double)c->chunk_bytes;
    double rounds = MAX(1, bytes / MAX(per_round, 1));
    double link = m->nvlink_gbps * v[TT_COST_NVLS_SHARE] *
                  v[tt_cost_gen(m->gen, TT_GEN_NVLS_SHARE)] *
                  (op->func == TT_NCCL_ALLREDUCE ? heads / (heads + 1) : 1);
    TtNcclNvlsCost cost = {
        .start_us = v[TT_COST_NVLS_START] * v[tt_cost_gen(m->gen, TT_GEN_NVLS_START)],
        .rounds_us = rounds * v[TT_COST_NVLS_ROUND] * v[tt_cost_gen(m->gen, TT_GEN_NVLS_ROUND)],
        .gbps = link,
    };

    if (m->n_nodes < 2)
        return cost;
    cost.hop_us = tt_nccl_step_cost(v, e, m, c, 1).hop_net_us * v[TT_COST_NVLSTREE_HOP];
    cost.levels = ceil_log2(m->n_nodes);
    cost.rounds_us = rounds * v[TT_COST_NVLSTREE_ROUND];
    cost.fill_bytes = v[TT_COST_NVLSTREE_FILL] * MIN(bytes, per_round);
    cost.gbps = tt_nccl_narrowest(
        link, nics_gbps(v, e, m, c->algo, c->proto) / tree_load(m->n_nodes), INFINITY);
    return cost;
}

static double
nvls_us(const double *v, const TtMachineEffects *e, const TtNcclMachine *m, const TtNcclOp *op,
        const TtNcclChoice *c)
{
    TtNcclNvlsCost t = tt_nccl_nvls_cost(v, e, m, op, c);

    return t.start_us + 2.0 * t.levels * t.hop_us + t.rounds_us +
           tt_nccl_move_us((double)op->bytes + t.fill_bytes, t.gbps);
}

static double
pat_us(const double *v, const TtMachineEffects *e, const TtNcclMachine *m, const TtNcclOp *op,
       const TtNcclChoice *c)
{
    double n = MAX(1, c->used_channels), phases = ceil(log2(m->n_ranks));
    TtNcclStepCost s = tt_nccl_step_cost(v, e, m, c, (double)c->chunk_bytes);
    double rate = tt_nccl_narrowest(n * s.channel_gbps, s.nics_gbps, INFINITY);

    return phases * (m->n_nodes > 1 ? s.hop_net_us : s.hop_us) +
           tt_nccl_move_us((double)op->bytes * (m->n_ranks - 1.0) / m->n_ranks, rate);
}

double
tt_nccl_model_us(const double *v, const TtMachineEffects *e, const TtNcclMachine *m,
                 const TtNcclOp *op, const TtNcclChoice *c)
{
    double us;

    if (m->n_ranks < 2)
        us = 0;
    else if (c->algo == TT_NCCL_RING)
        us = ring_us(v, e, m, op, c);
    else if (c->algo == TT_NCCL_TREE)
        us = tree_us(v, e, m, op, c);
    else if (c->algo == TT_NCCL_NVLS || c->algo == TT_NCCL_NVLS_TREE)
        us = nvls_us(v, e, m, op, c);
    else if (c->algo == TT_NCCL_PAT)
        us = pat_us(v, e, m, op, c);
    else
        return NAN;
    return soft_max(tt_nccl_call_us(v, e, m), tt_nccl_start_us(v, m) + us);
}
