/* nccl_plan - NCCL's choice as a plan: channels on the orders its search found, chunks as rounds.
 *
 * Sources: NCCL src/enqueue.cc (chunks, loops), src/include/device.h (steps of a buffer), src/graph/connect.cc
 * (channels twice, orders), src/transport/nvls.cc (heads).
 */
#include "sim/nccl_flow_private.h"

#define BUFFER_STEPS     8 /* NCCL_STEPS: a connection's buffer */
#define RING_CHUNK_STEPS 4 /* of them are one chunk of a ring by Simple */

static TtCollective
collective_of(TtNcclFunc func)
{
    static const TtCollective collectives[TT_NCCL_N_FUNCS] = {
        [TT_NCCL_BROADCAST] = TT_BROADCAST, [TT_NCCL_REDUCE] = TT_REDUCE,
        [TT_NCCL_ALLGATHER] = TT_ALLGATHER, [TT_NCCL_REDUCE_SCATTER] = TT_REDUCE_SCATTER,
        [TT_NCCL_ALLREDUCE] = TT_ALLREDUCE,
    };

    return collectives[func];
}

static const char *
plan_name(guint algo)
{
    static const char *const names[TT_NCCL_N_ALGOS] = {
        [TT_NCCL_TREE] = "nccl-tree",
        [TT_NCCL_RING] = "ring",
        [TT_NCCL_COLLNET_DIRECT] = "collnet-direct",
        [TT_NCCL_COLLNET_CHAIN] = "collnet-chain",
        [TT_NCCL_NVLS] = "nvls",
        [TT_NCCL_NVLS_TREE] = "nvls-tree",
        [TT_NCCL_PAT] = "pat",
    };

    return names[algo];
}

/* --- wiring ------------------------------------------------------------------------------------ */

/* The orders of a graph's channels, one after the other. NULL if it has none. */
static guint16 *
orders_of(const TtNcclGraph *graph, guint n_channels, guint per_node)
{
    guint16 *orders;

    if (n_channels == 0 || graph->n_channels < n_channels || graph->n_gpus != per_node)
        return NULL;
    orders = g_new(guint16, (gsize)n_channels * per_node);
    for (guint c = 0; c < n_channels; c++)
        memcpy(orders + (gsize)c * per_node, graph->gpu[c], per_node * sizeof *orders);
    return orders;
}

/* GPUs that begin a channel of the graph, each once. */
static guint16 *
heads_of(const TtNcclGraph *graph, guint *n_heads)
{
    guint16 *heads = g_new(guint16, MAX(1, graph->n_channels));

    *n_heads = 0;
    for (guint c = 0; graph->n_gpus && c < graph->n_channels; c++) {
        gboolean seen = FALSE;

        for (guint h = 0; h < *n_heads; h++)
            seen |= heads[h] == graph->gpu[c][0];
        if (!seen)
            heads[(*n_heads)++] = graph->gpu[c][0];
    }
    return heads;
}

/* What the plan of @algo needs of the search's results; owns its arrays. */
typedef struct {
    TtWiring wiring;
    guint16 *ring, *tree, *head;
} Orders;

static void
orders_init(Orders *self, const TtNcclComm *comm, guint algo)
{
    const TtNcclGraph *ring = &comm->graph[TT_GRAPH_RING], *tree = &comm->graph[TT_GRAPH_TREE];
    guint per_node = comm->ranks_per_node, n = MIN(ring->n_channels, tree->n_channels);

    *self = (Orders){ .wiring = { .ranks_per_node = per_node } };
    if (algo == TT_NCCL_COLLNET_CHAIN) {
        tree = &comm->graph[TT_GRAPH_COLLNET_CHAIN];
        n = MIN(ring->n_channels, tree->n_channels);
    }
    self->ring = orders_of(ring, n, per_node);
    self->tree = orders_of(tree, n, per_node);
    if (algo == TT_NCCL_NVLS || algo == TT_NCCL_NVLS_TREE)
        self->head = heads_of(&comm->graph[TT_GRAPH_NVLS], &self->wiring.n_heads);
    else if (algo == TT_NCCL_COLLNET_DIRECT)
        self->head = heads_of(&comm->graph[TT_GRAPH_COLLNET_DIRECT], &self->wiring.n_heads);
    self->wiring.n_channels = n;
    self->wiring.ring = self->ring;
    self->wiring.ring_alternates = ring->cross_nic == 2;
    self->wiring.tree = self->tree;
    self->wiring.tree_pattern = tree->pattern <= TT_PATTERN_TREE ? tree->pattern : 0;
    self->wiring.head = self->head;
}

static void
orders_clear(Orders *self)
{
    g_free(self->ring);
    g_free(self->tree);
    g_free(self->head);
}

/* --- the plan ---------------------------------------------------------------------------------- */

/* Between nodes there is a buffer on either side, and a proxy that moves data from one to the other. */
static guint
slots_of(const TtNcclComm *comm, const TtNcclChoice *choice, TtNcclFunc func)
{
    gboolean chain = func == TT_NCCL_BROADCAST || func == TT_NCCL_REDUCE;
    guint buffers = comm->n_nodes > 1 ? 2 : 1;

    if (choice->algo == TT_NCCL_RING && choice->proto == TT_NCCL_SIMPLE && !chain)
        return buffers * BUFFER_STEPS / RING_CHUNK_STEPS;
    return buffers * BUFFER_STEPS;
}

/* For timing: what it costs to wait for buffers is in the hops measured, so as many slots as there can be. */
static guint
most_slots(const TtNcclComm *comm)
{
    return (comm->n_nodes > 1 ? 2 : 1) * BUFFER_STEPS;
}

/* @times: so many channels in one. */
static TtPlan *
make_plan(const TtNcclComm *comm, const TtNcclCall *call, guint64 bytes, guint times, guint n_slots,
          GError **error)
{
    const TtNcclChoice *choice = &call->choice;
    TtPlanSpec spec = {
        .collective = collective_of(call->op.func),
        .n_ranks = comm->n_ranks,
        .count = bytes / tt_type_bytes(call->type),
        .type = call->type,
        .redop = call->redop,
        .root = call->root,
        .n_channels = choice->used_channels / times,
        .n_slots = n_slots,
        .slot_bytes = choice->n_loops > 1 ? choice->chunk_bytes * times : 0,
        .group_size = comm->ranks_per_node,
    };
    Orders orders;
    TtPlan *plan;

    orders_init(&orders, comm, choice->algo);
    if (orders.ring) /* a communicator made by hand may have no orders */
        spec.wiring = &orders.wiring;
    plan = tt_plan_new(plan_name(choice->algo), &spec, error);
    orders_clear(&orders);
    return plan;
}

TtPlan *
tt_nccl_plan(const TtNcclComm *comm, const TtNcclCall *call, GError **error)
{
    return make_plan(comm, call, call->op.bytes, 1, slots_of(comm, &call->choice, call->op.func),
                     error);
}

TtPlan *
tt_nccl_full_plan(const TtNcclComm *comm, const TtNcclCall *call, GError **error)
{
    const TtNcclChoice *choice = &call->choice;
    guint64 size = tt_type_bytes(call->type), bytes = call->op.bytes;

    if (choice->used_channels > 1 && choice->channel_bytes > 0)
        bytes = choice->used_channels * choice->channel_bytes;
    return make_plan(comm, call, MAX(bytes, size), 1, most_slots(comm), error);
}

/* --- channels that take the same way -------------------------------------------------------------- */

/* Channels from this one on repeat those before. */
static guint
period(const TtPlan *plan, guint algo)
{
    guint n = plan->spec.wiring ? plan->spec.wiring->n_channels : plan->spec.n_channels;

    switch (algo) {
    case TT_NCCL_TREE: return 2 * n;  /* once for each tree */
    case TT_NCCL_NVLS_TREE: return 2; /* the trees take turns */
    case TT_NCCL_NVLS:
    case TT_NCCL_COLLNET_DIRECT:
    case TT_NCCL_PAT: return 1;
    default: return n;
    }
}

TtPlan *
tt_nccl_merged_plan(const TtNcclComm *comm, const TtNcclCall *call, const TtPlan *full,
                    guint *times)
{
    guint n = full->spec.n_channels, every = period(full, call->choice.algo);
    guint64 bytes = full->spec.count * tt_type_bytes(full->spec.type);
    TtPlan *plan;

    if (n <= every || n % every != 0)
        return NULL;
    plan = make_plan(comm, call, bytes, n / every, most_slots(comm), NULL);
    if (plan && plan->n_rounds != full->n_rounds)
        g_clear_pointer(&plan, tt_plan_free);
    *times = n / every;
    return plan;
}
