/* nccl_tuner - which algorithms and protocols NCCL may use, what it believes they cost, and its choice.
 *
 * Sources: NCCL src/graph/tuning.cc (enabling, ncclTopoGetAlgoTime) and src/enqueue.cc (conditions of one
 * operation, the choice), 2.18.1 to 2.30.7.
 */
#include "models/nccl_tuner.h"
#include "models/nccl_model.h"

#include <math.h>

#define V TT_NCCL_VERSION

enum { MAX_DIRECT_RANKS = 8, MAX_NVLS_RANKS = 32 }; /* GPUs of a node CollNet and NVLS can serve */

/* Compared by address: Ring so disabled is still what 2.19 to 2.23 fall back to. */
static const char filtered_algo[] = "NCCL_ALGO leaves it out";
static const char filtered_proto[] = "NCCL_PROTO leaves it out";

/* --- what is enabled --------------------------------------------------------------------------- */

static gboolean
is_half(TtNcclFunc func)
{
    return func == TT_NCCL_ALLGATHER || func == TT_NCCL_REDUCE_SCATTER;
}

/* NCCL_PAT_ENABLE: 2, the default, is where it can be. */
static const char *
pat_why_not(const TtNcclComm *comm, const TtNcclEnv *env)
{
    int wanted = env && env->pat_enable != TT_NCCL_UNSET ? env->pat_enable : 2;

    if (comm->version < V(2, 23, 0))
        return "PAT came with NCCL 2.23";
    if (comm->min_cc < 60 && comm->version >= V(2, 26, 0))
        return "PAT needs compute capability 6.0";
    if (wanted == 0)
        return "NCCL_PAT_ENABLE is 0";
    if (wanted == 2 && comm->n_nodes != comm->n_ranks)
        return "PAT needs one rank per node";
    return NULL;
}

/* Collectives an algorithm exists for. */
static const char *
func_why_not(const TtNcclComm *comm, TtNcclFunc func, guint algo)
{
    if (func == TT_NCCL_BROADCAST || func == TT_NCCL_REDUCE)
        return algo == TT_NCCL_RING ? NULL : "broadcast and reduce are by Ring only";
    if (func == TT_NCCL_ALLREDUCE)
        return algo == TT_NCCL_PAT ? "PAT does allgather and reduce-scatter only" : NULL;
    if (algo == TT_NCCL_TREE || algo == TT_NCCL_COLLNET_CHAIN || algo == TT_NCCL_NVLS_TREE)
        return "does allreduce only";
    if (algo == TT_NCCL_NVLS && comm->version < V(2, 19, 0))
        return "NVLS does allreduce only before 2.19";
    if (algo == TT_NCCL_COLLNET_DIRECT && comm->version < V(2, 20, 0))
        return "CollNetDirect does allreduce only before 2.20";
    return NULL;
}

static const char *
collnet_why_not(const TtNcclComm *comm, TtNcclFunc func, guint algo)
{
    if (!comm->collnet)
        return "CollNet is off (NCCL_COLLNET_ENABLE, a plug-in)";
    if (algo == TT_NCCL_COLLNET_DIRECT && !comm->nvswitch)
        return "CollNetDirect needs an NVSwitch";
    if (comm->ranks_per_node > MAX_DIRECT_RANKS &&
        (algo == TT_NCCL_COLLNET_DIRECT || comm->version >= V(2, 28, 0)))
        return "CollNet serves 8 GPUs of a node at most";
    if (is_half(func) && comm->n_nodes > 1 && comm->ranks_per_node > tt_nccl_heads(comm, algo))
        return "needs a NIC for every GPU";
    return NULL;
}

static const char *
nvls_why_not(const TtNcclComm *comm, TtNcclFunc func, guint algo)
{
    if (!comm->nvls)
        return "NVLS needs compute capability 9.0, an NVSwitch with multicast and 3 GPUs";
    if (algo == TT_NCCL_NVLS_TREE)
        return comm->n_nodes > 1 ? NULL : "NVLSTree needs two nodes";
    if (comm->n_nodes > 1) {
        if (!comm->collnet)
            return "NVLS across nodes needs CollNet";
        if (is_half(func) && comm->version < V(2, 27, 0))
            return "NVLS does this on one node only before 2.27";
        if (is_half(func) && comm->ranks_per_node > tt_nccl_heads(comm, TT_NCCL_COLLNET_DIRECT))
            return "needs a NIC for every GPU";
    }
    if (is_half(func) && comm->ranks_per_node > MAX_NVLS_RANKS)
        return "NVLS serves 32 GPUs of a node at most here";
    return NULL;
}

static const char *
algo_why_not(const TtNcclModel *m, TtNcclFunc func, guint algo, guint proto)
{
    const char *why = func_why_not(m->comm, func, algo);

    if (!why && algo != TT_NCCL_TREE && algo != TT_NCCL_RING && proto != TT_NCCL_SIMPLE)
        why = "has Simple only";
    if (why)
        return why;
    switch (algo) {
    case TT_NCCL_COLLNET_DIRECT:
    case TT_NCCL_COLLNET_CHAIN: return collnet_why_not(m->comm, func, algo);
    case TT_NCCL_NVLS:
    case TT_NCCL_NVLS_TREE: return nvls_why_not(m->comm, func, algo);
    case TT_NCCL_PAT: return pat_why_not(m->comm, m->env);
    default: return NULL;
    }
}

/* How far the NIC may be. */
static TtNcclPath
ll128_reach(const TtNcclModel *m)
{
    gboolean c2c = !m->env || m->env->ll128_c2c != 0;

    if (m->comm->min_cc < 90)
        return TT_PATH_PXB;
    if (m->comm->version < V(2, 27, 0))
        return TT_PATH_PXN;
    if (m->comm->version < V(2, 27, 5))
        return TT_PATH_P2C;
    return c2c ? TT_PATH_PXN : TT_PATH_PXB;
}

/* What the search puts where it found nothing: 0.1 GB/s over anything. */
static gboolean
is_stand_in(const TtNcclGraph *graph)
{
    return graph->n_channels == 1 && graph->type_intra == TT_PATH_SYS && graph->bw_intra < 0.11;
}

/* LL128 needs 128-byte stores to arrive whole: known to hold only over some wires and GPUs. */
static const char *
ll128_why_not(const TtNcclModel *m, guint algo)
{
    const TtNcclComm *comm = m->comm;
    const TtNcclGraph *graph = tt_nccl_graph_of(comm, algo);
    guint cc = comm->min_cc;
    gboolean known = cc >= 70;

    if (comm->version < V(2, 27, 0)) {
        known = cc == 70 || cc == 80 || cc == 90;
        known |= comm->version >= V(2, 25, 0) && (cc == 100 || cc == 120);
    }
    if (!known)
        return "LL128 is not trusted on these GPUs";
    if (comm->min_cc != comm->max_cc && !(comm->version >= V(2, 30, 0) && cc >= 90))
        return "LL128 needs GPUs of one kind";
    if (graph->type_intra > (comm->version < V(2, 18, 3) ? TT_PATH_NVL : TT_PATH_NVB))
        return is_stand_in(graph) ? "the search found no such graph; its stand-in is no NVLink"
                                  : "LL128 needs NVLink between GPUs";
    if (graph->type_inter > ll128_reach(m))
        return "LL128 needs a NIC nearer to the GPU";
    return NULL;
}

/* 2.18 looks at NCCL_ALGO for allreduce alone; 2.20 to 2.23 forget a list that leaves CollNet alone. */
static gboolean
algo_passes(const TtNcclComm *comm, TtNcclFunc func, const TtNcclFilter *filter, guint algo)
{
    gboolean any = filter->algo[TT_NCCL_RING] || filter->algo[TT_NCCL_TREE] ||
                   (filter->algo[TT_NCCL_NVLS] && comm->n_nodes == 1) ||
                   (filter->algo[TT_NCCL_NVLS_TREE] && comm->n_nodes > 1);

    if (comm->version < V(2, 19, 0) && func != TT_NCCL_ALLREDUCE)
        return TRUE;
    if (comm->version < V(2, 24, 0) && !comm->collnet && !any &&
        (algo == TT_NCCL_RING || algo == TT_NCCL_TREE))
        return TRUE;
    return filter->algo[algo] != 0;
}

static void
fill_cell(const TtNcclModel *m, TtNcclFunc func, const TtNcclFilter *filter, guint algo,
          guint proto, TtNcclCell *cell)
{
    const char *why = algo_why_not(m, func, algo, proto);

    *cell = (TtNcclCell){ 0 };
    if (!why) {
        cell->latency_us = tt_nccl_model_latency_us(m, func, algo, proto);
        cell->bw_gbps = tt_nccl_model_gbps(m, func, algo, proto);
        if (!(cell->bw_gbps > 0))
            why = "the search found no graph for it";
    }
    if (!why && !filter->proto[proto])
        why = filtered_proto;
    if (!why && proto == TT_NCCL_LL128 && !filter->ll128_forced)
        why = ll128_why_not(m, algo);
    if (!why && !algo_passes(m->comm, func, filter, algo))
        why = filtered_algo;
    cell->why_not = why;
    cell->enabled = why == NULL;
}

/* A rank alone copies, which NCCL counts as Ring Simple in no time. */
static void
fill_alone(TtNcclTable *table)
{
    for (guint a = 0; a < TT_NCCL_N_ALGOS; a++)
        for (guint p = 0; p < TT_NCCL_N_PROTOS; p++)
            table->cell[a][p] = (TtNcclCell){ .why_not = "one rank has nobody to talk to" };
    table->cell[TT_NCCL_RING][TT_NCCL_SIMPLE] =
        (TtNcclCell){ .enabled = TRUE, .bw_gbps = INFINITY };
}

gboolean
tt_nccl_table(const TtNcclComm *comm, TtNcclFunc func, const TtNcclEnv *env, TtNcclTable *table,
              GError **error)
{
    TtNcclModel model;
    TtNcclFilter filter;

    if (!tt_nccl_env_filter(env, comm->version, func, &filter, error))
        return FALSE;
    if (comm->n_ranks == 1) {
        fill_alone(table);
        return TRUE;
    }
    tt_nccl_model_init(&model, comm, env);
    for (guint a = 0; a < TT_NCCL_N_ALGOS; a++)
        for (guint p = 0; p < TT_NCCL_N_PROTOS; p++)
            fill_cell(&model, func, &filter, a, p, &table->cell[a][p]);
    return TRUE;
}

/* --- one operation ----------------------------------------------------------------------------- */

/* What the switch can add up: 32 and 64 bit integers and 16 bit floats by sum, min, max; 32 and 64 bit
 * floats by sum. An average is a scaled sum, which it cannot. */
static gboolean
switch_can_reduce(const TtNcclOp *op)
{
    if (op->op_is_avg || op->is_fp8 || op->type_bytes < 2 || (!op->is_float && op->type_bytes < 4))
        return FALSE;
    return op->op_is_sum || (op->op_is_min_max && (!op->is_float || op->type_bytes == 2));
}

static const char *
op_why_not(const TtNcclOp *op, guint algo)
{
    if ((algo == TT_NCCL_NVLS || algo == TT_NCCL_NVLS_TREE) && op->func != TT_NCCL_ALLGATHER &&
        !switch_can_reduce(op))
        return "the switch cannot reduce this type by this operation";
    if (algo == TT_NCCL_PAT && op->func == TT_NCCL_REDUCE_SCATTER && op->op_is_avg)
        return "PAT cannot average";
    return NULL;
}

const char *
tt_nccl_why_not(const TtNcclComm *comm, const TtNcclTable *table, const TtNcclOp *op,
                TtNcclAlgo algo, TtNcclProto proto)
{
    const TtNcclCell *cell = &table->cell[algo][proto];

    (void)comm;
    return cell->enabled ? op_why_not(op, algo) : cell->why_not;
}

/* The factor on Tree's (and lately NVLSTree's) bandwidth that makes up for medium sizes. */
static double
size_correction(const TtNcclComm *comm, const TtNcclOp *op, guint algo, guint proto)
{
    gboolean nvls_tree = algo == TT_NCCL_NVLS_TREE && comm->version >= V(2, 29, 2) &&
                         comm->min_cc >= 100 && comm->cpu_x86;
    guint k = tt_nccl_log2(op->bytes >> 6);

    if (op->func != TT_NCCL_ALLREDUCE || (algo != TT_NCCL_TREE && !nvls_tree))
        return 1;
    if (op->bytes < 64 && comm->version >= V(2, 22, 0))
        return 1; /* the power of two is -1 there, out of the table */
    if (k > TT_NCCL_N_CORRECTIONS - 1u + nvls_tree)
        return 1;
    return tt_nccl_tree_correction[proto][MIN(k, TT_NCCL_N_CORRECTIONS - 1u)];
}

static double
cell_time_us(const TtNcclComm *comm, const TtNcclCell *cell, const TtNcclOp *op, guint algo,
             guint proto)
{
    double us = cell->latency_us;
    guint64 share = op->bytes / ((guint64)MAX(1, comm->n_channels) * comm->n_ranks);

    if (algo == TT_NCCL_RING && proto == TT_NCCL_SIMPLE && op->func == TT_NCCL_ALLREDUCE &&
        comm->n_nodes > 1 && share >= 64)
        us *= comm->min_cc < 80 ? 1.9 : 1.4; /* a plateau seen with rings over the network */
    us += op->bytes / (1000 * cell->bw_gbps * size_correction(comm, op, algo, proto));
    if (op->is_fp8 && algo == TT_NCCL_RING && comm->n_ranks > 8 && comm->version >= V(2, 24, 0))
        us *= 1024; /* long chains of sums lose fp8's few bits: anything else first */
    return us;
}

double
tt_nccl_time_us(const TtNcclComm *comm, const TtNcclTable *table, const TtNcclOp *op,
                TtNcclAlgo algo, TtNcclProto proto)
{
    if (tt_nccl_why_not(comm, table, op, algo, proto))
        return INFINITY;
    return cell_time_us(comm, &table->cell[algo][proto], op, algo, proto);
}

/* 2.19 to 2.23 go back to Ring, by the protocols that are on, where NCCL_ALGO left nothing. */
static double
fallback_time_us(const TtNcclComm *comm, const TtNcclTable *table, const TtNcclOp *op, guint proto)
{
    const TtNcclCell *cell = &table->cell[TT_NCCL_RING][proto];

    if (comm->version < V(2, 19, 0) || comm->version >= V(2, 24, 0) ||
        cell->why_not != filtered_algo)
        return INFINITY;
    return cell_time_us(comm, cell, op, TT_NCCL_RING, proto);
}

static gboolean
nothing_left(const TtNcclComm *comm, const TtNcclEnv *env, const TtNcclOp *op, GError **error)
{
    g_autofree char *version = tt_nccl_version_name(comm->version);
    g_autoptr(GString) set = g_string_new(NULL);

    if (env && env->algo)
        g_string_append_printf(set, " with NCCL_ALGO=%s", env->algo);
    if (env && env->proto)
        g_string_append_printf(set, "%s NCCL_PROTO=%s", set->len ? " and" : " with", env->proto);
    g_set_error(error, TT_NCCL_ERROR, TT_NCCL_ERROR_USAGE,
                "NCCL %s has no algorithm and protocol for this %s%s (it fails with %s)", version,
                tt_nccl_func_name(op->func), set->str,
                set->len && comm->version >= V(2, 24, 0) ? "ncclInvalidUsage"
                                                         : "ncclInternalError");
    return FALSE;
}

gboolean
tt_nccl_choose(const TtNcclComm *comm, const TtNcclTable *table, const TtNcclEnv *env,
               const TtNcclOp *op, TtNcclChoice *choice, GError **error)
{
    double best_us = INFINITY;
    guint algo = 0, proto = 0;
    gboolean nothing;

    for (guint a = 0; a < TT_NCCL_N_ALGOS; a++) {
        for (guint p = 0; p < TT_NCCL_N_PROTOS; p++) {
            double us = tt_nccl_time_us(comm, table, op, a, p);

            if (us < best_us)
                best_us = us, algo = a, proto = p;
        }
    }
    nothing = isinf(best_us);
    for (guint p = 0; p < TT_NCCL_N_PROTOS && nothing; p++) {
        double us = fallback_time_us(comm, table, op, p);

        if (us < best_us)
            best_us = us, algo = TT_NCCL_RING, proto = p;
    }
    if (isinf(best_us))
        return nothing_left(comm, env, op, error);
    tt_nccl_shape(comm, table, env, op, algo, proto, choice);
    choice->time_us = best_us;
    return TRUE;
}
