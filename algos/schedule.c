#include "algos/algo.h"

#include <string.h>

/* Channels and rounds cut at multiples of this, so that vector loops and cache lines stay whole and
 * a handful of elements is not scattered over many messages. Chunks are cut at single elements:
 * they must agree with the ranks' parts. */
#define PIECE_BYTES 64

/* Sanity limits: a plan past these is a typing error, not a machine. */
#define MAX_RANKS    (1u << 24)
#define MAX_CHANNELS 1024u
#define MAX_SLOTS    65536u

GQuark
tt_plan_error_quark(void)
{
    return g_quark_from_static_string("tt-plan-error");
}

static const char *const op_names[TT_N_OPS] = {
    "nop",
    "copy",
    "reduce",
    "send",
    "copy-send",
    "recv",
    "recv-copy-send",
    "recv-reduce",
    "recv-reduce-send",
    "recv-reduce-copy-send",
};

const char *
tt_op_name(guint op)
{
    return op < TT_N_OPS ? op_names[op] : "?";
}

const char *
tt_buffer_name(guint buffer)
{
    static const char *const names[TT_N_BUFFERS] = { "input", "output", "scratch" };

    return buffer < TT_N_BUFFERS ? names[buffer] : "?";
}

/* --- ranges ------------------------------------------------------------------------------------
 */

/* Part i of n of [0, total): parts differ by at most one, part boundaries nest when n divides n'.
 */
static inline guint64
cut(guint64 total, guint64 i, guint64 n)
{
    if (total <= G_MAXUINT32 && n <= G_MAXUINT32)
        return total * i / n;
    return (guint64)((unsigned __int128)total * i / n);
}

static inline TtRange
part_of(TtRange whole, guint64 i, guint64 n)
{
    guint64 first = cut(whole.count, i, n);

    return (TtRange){ whole.first + first, cut(whole.count, i + 1, n) - first };
}

/* The same in units of @unit elements; the last unit may be short. */
static inline TtRange
aligned_part_of(TtRange whole, guint64 i, guint64 n, guint64 unit)
{
    if (n == 1)
        return whole;

    guint64 n_units = (whole.count + unit - 1) / unit;
    guint64 first = MIN(cut(n_units, i, n) * unit, whole.count);
    guint64 end = MIN(cut(n_units, i + 1, n) * unit, whole.count);

    return (TtRange){ whole.first + first, end - first };
}

TtRange
tt_plan_chunk(const TtPlan *plan, guint32 chunk)
{
    return part_of((TtRange){ 0, plan->spec.count }, chunk, plan->n_chunks);
}

static inline guint64
piece_unit(const TtPlan *plan)
{
    return PIECE_BYTES / tt_type_bytes(plan->spec.type);
}

TtRange
tt_plan_range(const TtPlan *plan, guint channel, guint64 round, guint32 chunk)
{
    TtRange range = tt_plan_chunk(plan, chunk);

    if (plan->spec.n_channels == 1 && plan->n_rounds == 1)
        return range;
    range = aligned_part_of(range, channel, plan->spec.n_channels, piece_unit(plan));
    return aligned_part_of(range, round, plan->n_rounds, piece_unit(plan));
}

guint64
tt_plan_span_count(const TtPlan *plan, guint channel, guint64 round, guint32 chunk,
                   guint32 n_chunks)
{
    guint64 count = 0;

    while (n_chunks > 0)
        count += tt_plan_next_piece(plan, channel, round, &chunk, &n_chunks).count;
    return count;
}

TtRange
tt_plan_next_piece(const TtPlan *plan, guint channel, guint64 round, guint32 *chunk,
                   guint32 *n_chunks)
{
    TtRange range = tt_plan_range(plan, channel, round, *chunk);

    if (*n_chunks > 1 && plan->spec.n_channels == 1 && plan->n_rounds == 1) {
        TtRange last = tt_plan_chunk(plan, *chunk + *n_chunks - 1);

        range.count = last.first + last.count - range.first;
        *chunk += *n_chunks;
        *n_chunks = 0;
    } else {
        *chunk += 1;
        *n_chunks -= 1;
    }
    return range;
}

TtRange
tt_plan_buffer_range(const TtPlan *plan, guint rank, guint buffer)
{
    const TtPlanSpec *spec = &plan->spec;
    TtRange all = { 0, spec->count }, none = { 0, 0 };
    gboolean input = buffer == TT_INPUT, is_switch = rank >= spec->n_ranks;
    TtRange own;

    if (buffer == TT_SCRATCH)
        return plan->uses_scratch || is_switch ? all : none;
    if (is_switch)
        return none;
    own = part_of(all, rank, spec->n_ranks);
    switch (spec->collective) {
    case TT_REDUCE_SCATTER: return input ? all : own;
    case TT_ALLGATHER: return input ? own : all;
    case TT_BROADCAST: return input && rank != spec->root ? none : all;
    case TT_REDUCE: return !input && rank != spec->root ? none : all;
    default: return all;
    }
}

/* Bytes of the largest piece one chunk contributes to a message when cut into @n_rounds. Chunks are
 * largest where the division rounds up, so the largest chunk has ceil(count / n_chunks). */
static guint64
largest_piece_bytes(const TtPlan *plan, guint64 n_rounds)
{
    guint bytes = tt_type_bytes(plan->spec.type);
    guint64 unit = piece_unit(plan);
    guint64 chunk = (plan->spec.count + plan->n_chunks - 1) / plan->n_chunks;
    guint64 n_units;

    if (plan->spec.n_channels == 1 && n_rounds == 1)
        return chunk * bytes;
    n_units = (chunk + unit - 1) / unit;
    n_units = (n_units + plan->spec.n_channels - 1) / plan->spec.n_channels;
    n_units = (n_units + n_rounds - 1) / n_rounds;
    return MIN(n_units * unit, chunk) * bytes;
}

guint64
tt_plan_max_message_bytes(const TtPlan *plan)
{
    guint64 whole = plan->spec.count * tt_type_bytes(plan->spec.type);

    if (plan->spec.n_channels == 1 && plan->n_rounds == 1) { /* spans are contiguous */
        guint64 chunks = MIN(plan->max_span, plan->n_chunks);

        return MIN(whole,
                   (guint64)((unsigned __int128)plan->spec.count * chunks / plan->n_chunks + 1) *
                       tt_type_bytes(plan->spec.type));
    }
    return MIN(whole, largest_piece_bytes(plan, plan->n_rounds) * plan->max_span);
}

/* The fewest rounds for which a message fits slot_bytes; pieces stop shrinking at PIECE_BYTES. */
static guint64
count_rounds(const TtPlan *plan)
{
    guint64 per_chunk, piece;

    if (plan->spec.slot_bytes == 0)
        return 1;
    if (tt_plan_max_message_bytes(plan) <= plan->spec.slot_bytes)
        return 1;
    per_chunk =
        MAX(PIECE_BYTES, plan->spec.slot_bytes / plan->max_span / PIECE_BYTES * PIECE_BYTES);
    piece = largest_piece_bytes(plan, 1);
    /* One channel and one round is not cut at PIECE_BYTES; from two rounds on it is. */
    piece = (piece + PIECE_BYTES - 1) / PIECE_BYTES * PIECE_BYTES;
    return MAX(1, (piece + per_chunk - 1) / per_chunk);
}

/* --- making a plan -----------------------------------------------------------------------------
 */

/* @wiring: the caller's; the plan gets a copy only if it is in order. */
static gboolean
check_spec(TtPlanSpec *spec, const TtWiring *wiring, GError **error)
{
    const char *what = NULL;

    spec->n_channels = MAX(1, spec->n_channels);
    spec->n_slots = spec->n_slots ? spec->n_slots : 2;
    spec->group_size = spec->group_size ? spec->group_size : spec->n_ranks;

    if (spec->n_ranks < 1 || spec->n_ranks > MAX_RANKS)
        what = "number of ranks must be 1 .. 16777216";
    else if (spec->n_channels > MAX_CHANNELS)
        what = "number of channels must be 1 .. 1024";
    else if (spec->n_slots > MAX_SLOTS)
        what = "number of slots must be 1 .. 65536";
    else if (spec->root >= spec->n_ranks)
        what = "root must be a rank, 0 .. n_ranks-1";
    else if (spec->count > (G_GUINT64_CONSTANT(1) << 62) / tt_type_bytes(spec->type))
        what = "size overflows: at most 4 EiB";
    else if (spec->n_ranks % spec->group_size != 0)
        what = "ranks must come in whole groups";
    else if (wiring)
        what = tt_wiring_fault(wiring, spec->group_size);
    if (!what) {
        spec->wiring = wiring ? tt_wiring_copy(wiring) : NULL;
        return TRUE;
    }
    g_set_error(
        error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE,
        "%s (ranks %u, channels %u, slots %u, root %u, group size %u, count %" G_GUINT64_FORMAT ")",
        what, spec->n_ranks, spec->n_channels, spec->n_slots, spec->root, spec->group_size,
        spec->count);
    return FALSE;
}

static gboolean
shape(TtPlan *plan, const char *args, GError **error)
{
    if (!(plan->algo->collectives & TT_BIT(plan->spec.collective))) {
        g_autoptr(GString) can = g_string_new(NULL);

        for (guint c = 0; c < TT_N_COLLECTIVES; c++)
            if (plan->algo->collectives & TT_BIT(c))
                g_string_append_printf(can, "%s%s", can->len ? ", " : "", tt_collective_name(c));
        g_set_error(error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE, "%s cannot do %s (it does: %s)",
                    plan->name, tt_collective_name(plan->spec.collective), can->str);
        return FALSE;
    }
    plan->n_chunks = 1;
    plan->max_span = 1;
    plan->lanes_per_channel = 1;
    if (!plan->algo->init(plan, args, error)) {
        g_prefix_error(error, "%s: ", plan->name);
        return FALSE;
    }
    if ((guint64)plan->lanes_per_channel * plan->spec.n_channels >= TT_NO_LANE) {
        g_set_error(error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE,
                    "%s: %u channels of %u lanes are too many (at most 65534 lanes)", plan->name,
                    plan->spec.n_channels, plan->lanes_per_channel);
        return FALSE;
    }
    plan->n_lanes = plan->lanes_per_channel * plan->spec.n_channels;
    plan->n_rounds = 1;
    plan->n_rounds = count_rounds(plan);
    return TRUE;
}

TtPlan *
tt_plan_new_for(const TtAlgo *algo, gpointer data, const char *name, const TtPlanSpec *spec,
                GError **error)
{
    g_autoptr(TtPlan) plan = g_new0(TtPlan, 1);
    const char *args = strchr(name, ':');

    plan->spec = *spec;
    plan->spec.wiring = NULL;
    plan->name = g_strdup(name);
    plan->algo = algo;
    plan->data = data;
    if (!check_spec(&plan->spec, spec->wiring, error) ||
        !shape(plan, args ? args + 1 : NULL, error))
        return NULL;
    return g_steal_pointer(&plan);
}

TtPlan *
tt_plan_new(const char *algorithm, const TtPlanSpec *spec, GError **error)
{
    const TtAlgo *algo = tt_algo_find(algorithm);

    if (!algo) {
        g_autoptr(GString) known = g_string_new(NULL);

        for (guint i = 0; tt_algos[i]; i++)
            g_string_append_printf(known, "%s%s", i ? ", " : "", tt_algos[i]->name);
        g_set_error(error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE,
                    "unknown algorithm \"%s\" (one of: %s)", algorithm, known->str);
        return NULL;
    }
    return tt_plan_new_for(algo, NULL, algorithm, spec, error);
}

void
tt_plan_free(TtPlan *plan)
{
    if (!plan)
        return;
    if (plan->algo->clear)
        plan->algo->clear(plan);
    g_free((gpointer)plan->spec.wiring);
    g_free(plan->name);
    g_free(plan);
}

/* --- asking a plan -----------------------------------------------------------------------------
 */

guint32
tt_plan_program(const TtPlan *plan, guint rank, guint channel)
{
    return plan->algo->program ? plan->algo->program(plan, rank, channel) : rank;
}

guint32
tt_plan_n_steps(const TtPlan *plan, guint rank, guint lane)
{
    guint channel = lane / plan->lanes_per_channel;

    return plan->algo->n_steps(plan, tt_plan_program(plan, rank, channel),
                               lane % plan->lanes_per_channel);
}

TtStep
tt_plan_step(const TtPlan *plan, guint rank, guint lane, guint32 i)
{
    guint channel = lane / plan->lanes_per_channel;
    guint sub_lane = lane % plan->lanes_per_channel;
    TtStep step = plan->algo->step(plan, tt_plan_program(plan, rank, channel), sub_lane, i);

    if (plan->algo->chunk)
        step.chunk = plan->algo->chunk(plan, rank, channel, step.chunk);
    if (step.dep_lane != TT_NO_LANE)
        step.dep_lane += channel * plan->lanes_per_channel;
    return step;
}

guint
tt_plan_peer(const TtPlan *plan, guint rank, guint lane, guint role)
{
    return plan->algo->peer(plan, rank, tt_plan_channel(plan, lane), role);
}

TtSwitchPlace
tt_plan_switch(const TtPlan *plan, guint agent)
{
    g_assert(agent >= plan->spec.n_ranks && agent < tt_plan_n_agents(plan));
    return plan->algo->switch_place(plan, agent - plan->spec.n_ranks);
}

/* --- the registry -------------------------------------------------------------------------------
 */

const TtAlgo *
tt_algo_find(const char *name)
{
    size_t length = strcspn(name, ":");

    for (guint i = 0; tt_algos[i]; i++)
        if (strlen(tt_algos[i]->name) == length && strncmp(tt_algos[i]->name, name, length) == 0)
            return tt_algos[i];
    return NULL;
}

/* --- step constructors -------------------------------------------------------------------------
 */

static TtStep
make(TtOp op, guint from, guint to, TtBuffer src, TtBuffer dst, guint32 chunk)
{
    return (TtStep){ .op = op,
                     .src = src,
                     .dst = dst,
                     .recv_role = from,
                     .send_role = to,
                     .dep_lane = TT_NO_LANE,
                     .chunk = chunk,
                     .n_chunks = 1 };
}

TtStep
tt_nop(void)
{
    TtStep step = make(TT_OP_NOP, TT_NO_ROLE, TT_NO_ROLE, TT_INPUT, TT_INPUT, 0);

    step.n_chunks = 0;
    return step;
}

TtStep
tt_copy(TtBuffer src, TtBuffer dst, guint32 chunk)
{
    return make(TT_OP_COPY, TT_NO_ROLE, TT_NO_ROLE, src, dst, chunk);
}

TtStep
tt_send(guint role, TtBuffer src, guint32 chunk)
{
    return make(TT_OP_SEND, TT_NO_ROLE, role, src, src, chunk);
}

TtStep
tt_copy_send(guint role, TtBuffer src, TtBuffer dst, guint32 chunk)
{
    return make(TT_OP_COPY_SEND, TT_NO_ROLE, role, src, dst, chunk);
}

TtStep
tt_recv(guint role, TtBuffer dst, guint32 chunk)
{
    return make(TT_OP_RECV, role, TT_NO_ROLE, dst, dst, chunk);
}

TtStep
tt_recv_copy_send(guint from, guint to, TtBuffer dst, guint32 chunk)
{
    return make(TT_OP_RECV_COPY_SEND, from, to, dst, dst, chunk);
}

TtStep
tt_recv_reduce(guint role, TtBuffer src, TtBuffer dst, guint32 chunk)
{
    return make(TT_OP_RECV_REDUCE, role, TT_NO_ROLE, src, dst, chunk);
}

TtStep
tt_recv_reduce_send(guint from, guint to, TtBuffer src, guint32 chunk)
{
    return make(TT_OP_RECV_REDUCE_SEND, from, to, src, src, chunk);
}

TtStep
tt_recv_reduce_copy_send(guint from, guint to, TtBuffer src, TtBuffer dst, guint32 chunk)
{
    return make(TT_OP_RECV_REDUCE_COPY_SEND, from, to, src, dst, chunk);
}

TtStep
tt_span(TtStep step, guint32 n_chunks)
{
    step.n_chunks = n_chunks;
    return step;
}

TtStep
tt_after(TtStep step, guint sub_lane, guint32 dep_step)
{
    step.dep_lane = sub_lane;
    step.dep_step = dep_step;
    return step;
}
