/* nccl_shape - blocks, threads, chunks and the split of the data, once algorithm and protocol are chosen.
 *
 *     operation      nc channels (blocks), nt threads each: cut for small sizes
 *       cells        2.22 and later: shares are whole cells, so a small operation uses fewer channels
 *         channel    its share, walked in loops
 *           chunk    one message per step of the algorithm
 *             slice  what the receiver (and the NIC) sees of it at a time
 *
 * Sources: NCCL src/enqueue.cc (topoGetAlgoInfo, scheduleCollTasksToPlan, calcCollChunking; before 2.22
 * getAlgoInfo and computeColl), src/include/device.h (buffers, steps), src/nvls.cc (chunks on Blackwell).
 */
#include "models/nccl_model.h"
#include "models/nccl_tuner.h"

#define V   TT_NCCL_VERSION
#define KIB G_GUINT64_CONSTANT(1024)

enum { STEPS = 8, WARP = 32, MAX_THREADS = 640 };

static gboolean
is_nvls(guint algo)
{
    return algo == TT_NCCL_NVLS || algo == TT_NCCL_NVLS_TREE;
}

static gboolean
is_half(TtNcclFunc func)
{
    return func == TT_NCCL_ALLGATHER || func == TT_NCCL_REDUCE_SCATTER;
}

static guint64
divide_up(guint64 a, guint64 b)
{
    return (a + b - 1) / b;
}

static guint64
round_up(guint64 a, guint64 to)
{
    return divide_up(a, to) * to;
}

/* --- channels and threads ---------------------------------------------------------------------- */

/* What NCCL_NTHREADS asks for, where it may; else the most. */
static guint
limit_threads(int wanted, guint least, guint most, guint otherwise)
{
    if (wanted <= 0)
        return otherwise;
    if (wanted % WARP || wanted > (int)most)
        return most;
    return MAX((guint)wanted, least);
}

guint
tt_nccl_max_threads(const TtNcclComm *comm, const TtNcclEnv *env, TtNcclAlgo algo,
                    TtNcclProto proto)
{
    const TtNcclGraph *ring = tt_nccl_graph_of(comm, TT_NCCL_RING);
    gboolean slow = ring->bw_intra * ring->n_channels <= 12; /* no faster than PCI gen 3 */

    if (algo != TT_NCCL_TREE && algo != TT_NCCL_RING)
        return proto == TT_NCCL_SIMPLE ? MAX_THREADS : 0;
    if (proto == TT_NCCL_LL128)
        return limit_threads(env ? env->ll128_n_threads : 0, MAX_THREADS / 4, MAX_THREADS,
                             MAX_THREADS);
    return limit_threads(env ? env->n_threads : 0, 2 * WARP, 512,
                         algo == TT_NCCL_RING && proto == TT_NCCL_SIMPLE && slow ? 256 : 512);
}

/* Bytes below which a thread is not worth having. */
static guint64
thread_threshold(const TtNcclComm *comm, guint algo, guint proto)
{
    if (algo == TT_NCCL_COLLNET_DIRECT || algo == TT_NCCL_COLLNET_CHAIN)
        return 512;
    if (proto == TT_NCCL_SIMPLE)
        return 64;
    return algo == TT_NCCL_RING && proto == TT_NCCL_LL ? 8ull * comm->n_ranks : 8;
}

/* In 2.20 and 2.21 the rings copied for NVLS's sake count in comm.nChannels but are not begun with. */
static guint
first_channels(const TtNcclComm *comm, const TtNcclEnv *env)
{
    const TtNcclGraph *ring = tt_nccl_graph_of(comm, TT_NCCL_RING);
    guint n = 2 * MIN(ring->n_channels, tt_nccl_graph_of(comm, TT_NCCL_TREE)->n_channels);

    if (comm->version < V(2, 20, 0) || comm->version >= V(2, 22, 0) || !comm->nvls ||
        comm->n_channels != comm->nvls_channels || n == 0)
        return MAX(1, comm->n_channels);
    if (comm->min_cc == 90 && comm->n_nodes > 1 && ring->bw_intra > 45 && n < 16)
        n *= 2;
    if (env && env->min_channels != TT_NCCL_UNSET)
        n = MAX(n, (guint)env->min_channels);
    return MAX(1, MIN(n, comm->n_channels));
}

/* CollNetDirect gives channels up in stages, and asks for less per thread at each. */
static guint
collnet_channels(const TtNcclComm *comm, const TtNcclOp *op, guint n, guint threads)
{
    guint64 threshold = 512, heads = tt_nccl_heads(comm, TT_NCCL_COLLNET_DIRECT);
    gboolean small = TRUE;

    for (guint stage = 16; stage >= 1 && small; stage /= 2) {
        while ((small = op->bytes < n * threads * heads * threshold) && n > stage) {
            if (n == stage + stage / 2)
                threshold /= 2;
            n--;
        }
    }
    return n;
}

static void
count_channels(const TtNcclComm *comm, const TtNcclEnv *env, const TtNcclOp *op, guint algo,
               guint proto, TtNcclChoice *choice)
{
    guint n = first_channels(comm, env), threads = tt_nccl_max_threads(comm, env, algo, proto);
    guint64 threshold = thread_threshold(comm, algo, proto);

    if (is_nvls(algo)) {
        n = comm->nvls_channels;
        if (algo == TT_NCCL_NVLS && comm->n_nodes > 1 && comm->version >= V(2, 28, 0))
            n = MIN(n, comm->n_channels);
    } else if (algo == TT_NCCL_COLLNET_DIRECT) {
        n = collnet_channels(comm, op, n, threads);
    } else if (algo != TT_NCCL_PAT) { /* PAT has no figure for its threads: nothing is cut */
        while (n > 1 && op->bytes < n * threads * threshold)
            n--;
        while (threads % 128 == 0 && op->bytes < n * threads * threshold)
            threads /= 2;
    }
    if (proto == TT_NCCL_SIMPLE) /* warps that only synchronise */
        threads += algo == TT_NCCL_RING ? WARP : algo == TT_NCCL_TREE ? 4 * WARP : 0;
    threads = MAX(threads, 3u * WARP);
    if (algo == TT_NCCL_PAT || (algo == TT_NCCL_TREE && comm->version >= V(2, 22, 0)))
        threads = MAX_THREADS;
    choice->n_channels = MAX(1, n);
    choice->n_threads = threads;
}

/* --- the split over channels ------------------------------------------------------------------- */

/* Crossings of a byte, as NCCL weighs operations against each other. */
static guint64
traffic_per_byte(const TtNcclComm *comm, TtNcclFunc func, guint proto)
{
    guint64 n = func == TT_NCCL_ALLREDUCE ? 2 : is_half(func) ? comm->n_ranks : 1;

    return proto == TT_NCCL_LL ? 4 * n : n;
}

static void
split_evenly(const TtNcclOp *op, TtNcclChoice *choice)
{
    guint64 share = round_up(divide_up(op->bytes, choice->n_channels), MAX(1, op->type_bytes));

    choice->used_channels = share ? (guint)divide_up(op->bytes, share) : 1;
    choice->channel_bytes = share;
    choice->last_channel_bytes = op->bytes - (choice->used_channels - 1) * share;
}

static void
split_by_cells(const TtNcclComm *comm, const TtNcclOp *op, guint proto, TtNcclChoice *choice)
{
    guint64 parts = is_half(op->func) ? comm->n_ranks : 1; /* cells are cut from one rank's part */
    guint64 least = comm->version >= V(2, 29, 0) ? 32 * KIB : 16 * KIB;
    guint64 per_byte = traffic_per_byte(comm, op->func, proto);
    guint64 cell = round_up(divide_up(least, per_byte), 16);
    guint64 bytes = op->bytes / parts, cells = MAX(1, divide_up(bytes, cell));
    guint64 traffic = MAX(least, bytes * per_byte) / choice->n_channels;
    guint64 per_channel = MIN(cells, divide_up(MAX(least, traffic), cell * per_byte));

    choice->used_channels = (guint)divide_up(cells, per_channel);
    choice->channel_bytes = MIN(per_channel * cell, bytes) * parts;
    choice->last_channel_bytes =
        op->bytes - (choice->used_channels - 1) * per_channel * cell * parts;
}

/* --- chunks ------------------------------------------------------------------------------------ */

static guint64
buffer_bytes(const TtNcclEnv *env, guint proto)
{
    static const guint64 defaults[] = { 512 * 1024, 4915200, 4 * 1024 * 1024 };
    gint64 given = TT_NCCL_UNSET;

    if (env)
        given = proto == TT_NCCL_LL      ? env->ll_buff_size
                : proto == TT_NCCL_LL128 ? env->ll128_buff_size
                                         : env->buff_size;
    return given > 0 ? (guint64)given : defaults[proto];
}

/* Data of one step of a connection's buffer: LL halves it for flags, LL128 keeps 15 of 16 words. */
static guint64
step_bytes(const TtNcclEnv *env, guint proto)
{
    guint64 step = buffer_bytes(env, proto) / STEPS;

    return proto == TT_NCCL_LL ? step / 2 : proto == TT_NCCL_LL128 ? step / 16 * 15 : step;
}

/* While @bytes fill fewer than @few chunks on each of @n, halve, down to @least. */
static guint64
halve(guint64 chunk, guint64 bytes, guint64 n, double few, guint64 least)
{
    while (chunk > least && bytes / (n * chunk) < few)
        chunk /= 2;
    return chunk;
}

static guint64
cap_below(guint64 chunk, guint64 bytes, guint64 n, guint few, guint64 cap)
{
    return bytes < few * n * chunk && chunk > cap ? cap : chunk;
}

static guint64
tree_chunk(const TtNcclComm *comm, guint proto, guint64 chunk, guint64 bytes, guint64 n)
{
    double log_nodes = tt_nccl_log2(comm->n_nodes);
    double per_node = (double)comm->n_ranks / comm->n_nodes, depth;

    if (proto == TT_NCCL_LL128) {
        depth = 1 + log_nodes + 0.1 * per_node;
        chunk = halve(chunk, bytes, n, depth * 64 / per_node, 128 * KIB);
        chunk = halve(chunk, bytes, n, depth * 16 / per_node, 32 * KIB);
    } else if (proto == TT_NCCL_SIMPLE && comm->version < V(2, 20, 0)) {
        depth = comm->n_ranks / comm->n_nodes - 1 + log_nodes;
        chunk = halve(chunk, bytes, n, depth * 8, 128 * KIB);
        chunk = halve(chunk, bytes, n, depth * 4, 64 * KIB);
        chunk = halve(chunk, bytes, n, depth, 32 * KIB);
    }
    return chunk;
}

/* 2.30 has chunks of its own for Blackwell on several nodes. FALSE: none for this one. */
static gboolean
blackwell_chunks(const TtNcclComm *comm, guint64 *chunk, guint64 *tree_most)
{
    double nic = comm->nic_gbits / 8;
    guint n = comm->ranks_per_node;
    gboolean near = tt_nccl_graph_of(comm, TT_NCCL_NVLS)->type_inter <= TT_PATH_PXB;

    if (comm->version < V(2, 30, 0) || comm->min_cc < 100 || comm->n_nodes < 2)
        return FALSE;
    *chunk = *tree_most = 128 * KIB;
    if (comm->n_nodes == 2 && nic >= 48) {
        if (n <= 4)
            *chunk = *tree_most = 256 * KIB;
        else if (n >= 16 || (n <= 8 && near && nic < 96))
            *tree_most = 64 * KIB;
    } else if (nic >= 96) {
        if (n <= 8)
            *chunk = *tree_most = 256 * KIB;
        else
            *tree_most = n < 32 ? 128 * KIB : 64 * KIB;
    } else if (nic >= 48) {
        *tree_most = near ? 64 * KIB : 128 * KIB;
    } else {
        *tree_most = comm->n_nodes >= 4 ? 64 * KIB : *chunk;
    }
    return TRUE;
}

static guint64
nvls_chunk(const TtNcclComm *comm, const TtNcclEnv *env, guint algo, guint64 step, guint64 bytes,
           guint64 n)
{
    guint64 chunk = 128 * KIB, tree_most, heads = n * tt_nccl_heads(comm, TT_NCCL_NVLS);

    if (!blackwell_chunks(comm, &chunk, &tree_most))
        tree_most = comm->n_nodes >= 4 ? 64 * KIB : G_MAXUINT64;
    if (env && env->nvls_chunk_size > 0)
        chunk = (guint64)env->nvls_chunk_size;
    if (env && env->nvls_tree_max_chunk_size > 0)
        tree_most = (guint64)env->nvls_tree_max_chunk_size;
    if (algo == TT_NCCL_NVLS_TREE) {
        chunk = MIN(chunk, tree_most);
        chunk = cap_below(chunk, bytes, heads, 32, 256 * KIB);
        chunk = cap_below(chunk, bytes, heads, 16, 128 * KIB);
        chunk = cap_below(chunk, bytes, heads, 4, 64 * KIB);
        return cap_below(chunk, bytes, heads, 1, 32 * KIB);
    }
    if (comm->n_nodes > 1) {
        TtNcclModel model;

        tt_nccl_model_init(&model, comm, env);
        if (tt_nccl_model_gbps(&model, TT_NCCL_ALLREDUCE, TT_NCCL_NVLS, TT_NCCL_SIMPLE) < 150)
            chunk = 32 * KIB;
    }
    chunk = MIN(chunk, step);
    chunk = cap_below(chunk, bytes, heads, 64, 64 * KIB);
    chunk = cap_below(chunk, bytes, heads, 8, 32 * KIB);
    return cap_below(chunk, bytes, heads, 2, 16 * KIB);
}

static guint64
collnet_chunk(const TtNcclComm *comm, guint algo, guint64 chunk, guint64 bytes, guint64 n)
{
    guint depth =
        algo == TT_NCCL_COLLNET_CHAIN ? comm->ranks_per_node : (comm->ranks_per_node > 1 ? 2 : 1);

    if (algo == TT_NCCL_COLLNET_DIRECT)
        n *= tt_nccl_heads(comm, algo);
    else
        chunk = MIN(256 * KIB, chunk);
    chunk = halve(chunk, bytes, n, depth * 64, 128 * KIB);
    chunk = halve(chunk, bytes, n, depth * 8, 64 * KIB);
    return halve(chunk, bytes, n, algo == TT_NCCL_COLLNET_CHAIN ? depth : depth * 8, 32 * KIB);
}

/* What a chunk may be for @bytes on @n channels, before the data itself is less. */
static guint64
rule_chunk(const TtNcclComm *comm, const TtNcclEnv *env, const TtNcclOp *op, guint algo,
           guint proto, guint64 bytes, guint64 n)
{
    static const guint64 grain[] = { 16, 1920, 512 };
    guint64 step = step_bytes(env, proto), chunk = step;

    switch (algo) {
    case TT_NCCL_RING:
        if (proto == TT_NCCL_SIMPLE && op->func != TT_NCCL_BROADCAST && op->func != TT_NCCL_REDUCE)
            chunk *= STEPS / 2;
        break;
    case TT_NCCL_TREE: chunk = tree_chunk(comm, proto, chunk, bytes, n); break;
    case TT_NCCL_NVLS:
    case TT_NCCL_NVLS_TREE: chunk = nvls_chunk(comm, env, algo, step, bytes, n); break;
    case TT_NCCL_PAT:
        while (chunk * n * (op->func == TT_NCCL_ALLGATHER ? 32 : 16) > bytes && chunk > 64 * KIB)
            chunk /= 2;
        break;
    default: chunk = collnet_chunk(comm, algo, chunk, bytes, n);
    }
    return MAX(chunk / grain[proto] * grain[proto], grain[proto]);
}

/* Chunks a loop over a channel's share has: it is cut smaller if there is less. */
static guint
chunks_per_loop(const TtNcclComm *comm, const TtNcclOp *op, guint algo)
{
    if (is_nvls(algo) || algo == TT_NCCL_COLLNET_DIRECT)
        return tt_nccl_heads(comm, algo);
    if (algo == TT_NCCL_RING && (op->func == TT_NCCL_ALLREDUCE || is_half(op->func)))
        return comm->n_ranks;
    return algo == TT_NCCL_PAT ? comm->n_ranks : 1;
}

/* Simple's chunks of a ring go in two slices, but not below 32 KiB (a 32nd of a full slice). */
static guint64
slice_of(guint algo, guint proto, const TtNcclOp *op, guint64 chunk, guint64 step)
{
    guint64 slices = 1, steps = 1, unit = 16 * MAX(1, op->type_bytes);

    if (proto != TT_NCCL_SIMPLE)
        return chunk;
    if (algo == TT_NCCL_RING && op->func != TT_NCCL_BROADCAST && op->func != TT_NCCL_REDUCE)
        slices = steps = 2;
    return MIN(chunk, MAX(round_up(divide_up(chunk, slices), unit), step * steps / 32));
}

void
tt_nccl_shape(const TtNcclComm *comm, const TtNcclTable *table, const TtNcclEnv *env,
              const TtNcclOp *op, TtNcclAlgo algo, TtNcclProto proto, TtNcclChoice *choice)
{
    gboolean collnet = algo == TT_NCCL_COLLNET_DIRECT || algo == TT_NCCL_COLLNET_CHAIN ||
                       (algo == TT_NCCL_NVLS && comm->n_nodes > 1);
    gboolean cells = comm->version >= V(2, 22, 0) && !collnet;
    guint64 chunk, share;

    *choice = (TtNcclChoice){ .algo = algo, .proto = proto };
    choice->time_us = tt_nccl_time_us(comm, table, op, algo, proto);
    count_channels(comm, env, op, algo, proto, choice);
    if (cells)
        split_by_cells(comm, op, proto, choice);
    else
        split_evenly(op, choice);
    chunk = cells ? rule_chunk(comm, env, op, algo, proto, choice->channel_bytes, 1)
                  : rule_chunk(comm, env, op, algo, proto, op->bytes, choice->n_channels);
    share = divide_up(choice->channel_bytes, chunks_per_loop(comm, op, algo));
    choice->chunk_bytes = MIN(chunk, MAX(round_up(share, 16), 16));
    choice->n_loops = (guint)MIN(divide_up(share, choice->chunk_bytes), G_MAXUINT);
    choice->slice_bytes = slice_of(algo, proto, op, choice->chunk_bytes, step_bytes(env, proto));
}
