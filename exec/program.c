/* program.c - from a plan to moves: the parent resolves roles, each rank computes addresses.
 *
 * The parent writes the steps of one round per rank and lane, a small table, into the shared
 * region. Every rank multiplies its own by the rounds, all at the same time, in memory of its own.
 * So ranks need no algorithm: imported plans run as built-in ones do.
 */
#include "exec/rank.h"

#include <string.h>

/* --- the parent's half -------------------------------------------------------------------------
 */

/* Numbers connections, by (sender, lane, receiver), as steps mention them. */
typedef struct {
    GHashTable *numbers;
    guint32 n;
} Connections;

static guint32
connection_number(Connections *connections, guint from, guint lane, guint to)
{
    g_autofree char *key = g_strdup_printf("%u %u %u", from, lane, to);
    gpointer number;

    if (!g_hash_table_lookup_extended(connections->numbers, key, NULL, &number)) {
        number = GUINT_TO_POINTER(connections->n++);
        g_hash_table_insert(connections->numbers, g_steal_pointer(&key), number);
    }
    return GPOINTER_TO_UINT(number);
}

static TtJobStep
resolve(const TtPlan *plan, guint rank, guint lane, guint32 i, Connections *connections)
{
    TtJobStep s = { .step = tt_plan_step(plan, rank, lane, i),
                    .recv_peer = TT_NO_RANK,
                    .send_peer = TT_NO_RANK };

    if (tt_op_receives(s.step.op)) {
        s.recv_peer = tt_plan_peer(plan, rank, lane, s.step.recv_role);
        s.recv_connection = connection_number(connections, s.recv_peer, lane, rank);
    }
    if (tt_op_sends(s.step.op)) {
        s.send_peer = tt_plan_peer(plan, rank, lane, s.step.send_role);
        s.send_connection = connection_number(connections, rank, lane, s.send_peer);
    }
    return s;
}

static gboolean
resolve_lanes(TtRegion *region, const TtPlan *plan, Connections *connections)
{
    TtJob *job = &region->job;
    guint n_agents = tt_plan_n_agents(plan);

    job->lanes = tt_region_alloc(region, sizeof(TtJobLane) * n_agents * plan->n_lanes);
    for (guint rank = 0; job->lanes && rank < n_agents; rank++) {
        for (guint l = 0; l < plan->n_lanes; l++) {
            TtJobLane *lane = &job->lanes[rank * plan->n_lanes + l];

            lane->n_steps = tt_plan_n_steps(plan, rank, l);
            lane->steps = tt_region_alloc(region, sizeof(TtJobStep) * lane->n_steps);
            if (!lane->steps)
                return FALSE;
            for (guint32 i = 0; i < lane->n_steps; i++)
                lane->steps[i] = resolve(plan, rank, l, i, connections);
        }
    }
    return job->lanes != NULL;
}

/* Room for the results: times, progress, events. */
static gboolean
alloc_results(TtRegion *region)
{
    TtJob *job = &region->job;
    guint n_ranks = tt_plan_n_agents(&job->plan), n_lanes = job->plan.n_lanes;
    gsize n_events = 0;

    /* Each rank's counters on cache lines of their own. */
    job->done_stride = (n_lanes + 15) / 16 * 16;
    job->done = tt_region_alloc(region, sizeof *job->done * job->done_stride * n_ranks);
    job->time_s = tt_region_alloc(region, sizeof *job->time_s * n_ranks * job->options.repeats);
    job->event_first = tt_region_alloc(region, sizeof *job->event_first * (n_ranks + 1));
    if (!job->done || !job->time_s || !job->event_first)
        return FALSE;
    for (guint rank = 0; rank < n_ranks; rank++) {
        job->event_first[rank] = n_events;
        for (guint l = 0; l < n_lanes; l++)
            n_events += job->lanes[rank * n_lanes + l].n_steps * job->plan.n_rounds;
    }
    job->event_first[n_ranks] = n_events;
    if (!job->options.record)
        return TRUE;
    job->events = tt_region_alloc(region, sizeof *job->events * n_events);
    return job->events != NULL;
}

static gboolean
alloc_connections(TtRegion *region)
{
    TtJob *job = &region->job;
    gsize message = tt_plan_max_message_bytes(&job->plan);

    job->slot_stride = TT_SLOT_HEAD_BYTES;
    if (message > TT_SLOT_SMALL_BYTES)
        job->slot_stride += (message + TT_LINE_BYTES - 1) / TT_LINE_BYTES * TT_LINE_BYTES;
    /* An odd number of line pairs, so that neighbours do not fall into the same sets of a cache. */
    job->connection_bytes = TT_PAIR_BYTES + job->slot_stride * job->plan.spec.n_slots;
    job->connection_bytes =
        (job->connection_bytes / TT_PAIR_BYTES + 1) / 2 * 2 * TT_PAIR_BYTES + TT_PAIR_BYTES;
    if (job->n_connections > region->arena_bytes / job->connection_bytes)
        return FALSE;
    job->connections = tt_region_alloc(region, job->n_connections * job->connection_bytes);
    return job->connections != NULL;
}

gboolean
tt_job_prepare(TtRegion *region, const TtPlan *plan, const TtRunOptions *options, GError **error)
{
    g_autoptr(GHashTable) numbers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    Connections connections = { numbers, 0 };
    TtJob *job = &region->job;

    tt_region_reset(region);
    job->plan = *plan;
    job->plan.name = NULL;
    job->plan.algo = NULL;
    job->plan.data = NULL;
    job->plan.spec.wiring = NULL;
    job->options = *options;
    job->options.repeats = MAX(1, options->repeats);
    if (resolve_lanes(region, plan, &connections) && alloc_results(region)) {
        job->n_connections = connections.n;
        if (alloc_connections(region))
            return TRUE;
    }
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                "%s: %u connections with %u slots of %" G_GUINT64_FORMAT
                " bytes do not fit %" G_GUINT64_FORMAT " MiB of shared memory (use smaller slots)",
                plan->name, connections.n, plan->spec.n_slots, tt_plan_max_message_bytes(plan),
                (guint64)(region->arena_bytes >> 20));
    return FALSE;
}

/* --- the rank's half: connections ---------------------------------------------------------------
 */

/* This rank's end of a connection. The sender's end empties the slots, the receiver's the ack. */
static TtPort *
open_port(TtRank *self, guint32 number, guint peer, gboolean sends)
{
    const TtJob *job = &self->region->job;
    TtPort *port = sends ? &self->out_ports[number] : &self->in_ports[number];
    guint8 *memory = job->connections + number * job->connection_bytes;

    if (port->first)
        return port;
    port->ack = (_Atomic guint64 *)(gpointer)memory;
    port->first = port->slot = memory + TT_PAIR_BYTES;
    port->stride = job->slot_stride;
    port->n_slots = job->plan.spec.n_slots;
    port->end = port->first + port->stride * port->n_slots;
    port->limit = port->n_slots;
    port->peer = peer;
    if (!sends) {
        atomic_store_explicit(port->ack, 0, memory_order_relaxed);
        return port;
    }
    for (guint8 *slot = port->first; slot < port->end; slot += port->stride) {
        memset(slot, 0, port->stride); /* the payload too: no page faults in the timed loop */
        atomic_store_explicit((TtSequence *)(gpointer)slot, 0, memory_order_relaxed);
    }
    return port;
}

/* --- the rank's half: moves ----------------------------------------------------------------------
 */

/* Appends the pieces of one step in one round. FALSE if it has no elements. */
static gboolean
append_pieces(TtRank *self, guint lane, guint64 round, const TtJobStep *s, TtMove move)
{
    const TtPlan *plan = &self->region->job.plan;
    guint channel = tt_plan_channel(plan, lane), first = self->moves->len;
    gsize size = tt_type_bytes(plan->spec.type), offset;
    guint32 chunk = s->step.chunk, n_chunks = s->step.n_chunks;
    gsize message = size * tt_plan_span_count(plan, channel, round, chunk, n_chunks);

    offset = message <= TT_SLOT_SMALL_BYTES ? TT_SLOT_SMALL_START : TT_SLOT_HEAD_BYTES;
    while (n_chunks > 0) {
        TtRange piece = tt_plan_next_piece(plan, channel, round, &chunk, &n_chunks);

        if (piece.count == 0)
            continue;
        move.src = self->vector[s->step.src] + piece.first * size;
        move.dst = self->vector[s->step.dst] + piece.first * size;
        move.bytes = piece.count * size;
        move.offset = offset;
        offset += move.bytes;
        g_array_append_val(self->moves, move);
    }
    if (self->moves->len == first)
        return FALSE;
    g_array_index(self->moves, TtMove, first).flags |= TT_MOVE_FIRST;
    g_array_index(self->moves, TtMove, self->moves->len - 1).flags |= TT_MOVE_LAST;
    return TRUE;
}

static guint32
append_dep(TtRank *self, const TtJobStep *s, guint64 round)
{
    const TtJob *job = &self->region->job;
    guint lane = s->step.dep_lane;
    TtDep dep = { lane, 0 };

    if (lane == TT_NO_LANE)
        return 0;
    dep.steps =
        round * job->lanes[self->rank * self->n_lanes + lane].n_steps + s->step.dep_step + 1;
    g_array_append_val(self->deps, dep);
    return self->deps->len - 1;
}

/* Appends one step of one round. An empty one with nothing to wait for is done when the one before
 * it is; an empty one that waits becomes a NOP. */
static void
append_step(TtRank *self, guint l, guint first_move, guint64 round, guint32 i)
{
    const TtJobLane *source = &self->region->job.lanes[self->rank * self->n_lanes + l];
    const TtJobStep *s = &source->steps[i];
    TtLane *lane = &self->lanes[l];
    TtMove move = { .op = s->step.op,
                    .dep = append_dep(self, s, round),
                    .steps_after = round * source->n_steps + i + 1 };

    if (s->recv_peer != TT_NO_RANK)
        move.in = open_port(self, s->recv_connection, s->recv_peer, FALSE);
    if (s->send_peer != TT_NO_RANK)
        move.out = open_port(self, s->send_connection, s->send_peer, TRUE);
    if (append_pieces(self, l, round, s, move))
        return;
    if (move.dep != 0) {
        TtMove nop = { .op = TT_OP_NOP,
                       .flags = TT_MOVE_FIRST | TT_MOVE_LAST,
                       .dep = move.dep,
                       .steps_after = move.steps_after };

        g_array_append_val(self->moves, nop);
    } else if (self->moves->len > first_move) {
        for (guint m = self->moves->len; m > first_move; m--) { /* all pieces of the last step */
            TtMove *last = &g_array_index(self->moves, TtMove, m - 1);

            last->steps_after = move.steps_after;
            if (last->flags & TT_MOVE_FIRST)
                break;
        }
    } else {
        lane->free_steps = move.steps_after;
    }
}

static void
compile_lanes(TtRank *self)
{
    const TtJob *job = &self->region->job;
    g_autofree guint *first = g_new(guint, self->n_lanes + 1);

    for (guint l = 0; l < self->n_lanes; l++) {
        TtLane *lane = &self->lanes[l];

        first[l] = self->moves->len;
        lane->steps_per_round = job->lanes[self->rank * self->n_lanes + l].n_steps;
        lane->n_steps = lane->steps_per_round * job->plan.n_rounds;
        lane->done = &job->done[self->rank * job->done_stride + l];
        for (guint64 round = 0; round < job->plan.n_rounds; round++)
            for (guint32 i = 0; i < lane->steps_per_round; i++)
                append_step(self, l, first[l], round, i);
    }
    first[self->n_lanes] = self->moves->len;
    for (guint l = 0; l < self->n_lanes; l++) { /* the array has stopped moving */
        self->lanes[l].moves = &g_array_index(self->moves, TtMove, first[l]);
        self->lanes[l].end = &g_array_index(self->moves, TtMove, first[l + 1]);
    }
}

void
tt_program_compile(TtRank *self)
{
    const TtJob *job = &self->region->job;
    const TtPlanSpec *spec = &job->plan.spec;
    TtRedop redop = spec->redop == TT_AVG ? TT_SUM : spec->redop;

    tt_program_clear(self);
    self->n_lanes = job->plan.n_lanes;
    self->lanes = g_new0(TtLane, self->n_lanes);
    self->in_ports = g_new0(TtPort, job->n_connections);
    self->out_ports = g_new0(TtPort, job->n_connections);
    self->iteration = 0;
    g_array_set_size(self->moves, 0);
    g_array_set_size(self->deps, 1);
    self->reduce = self->unit->reduce[spec->type][redop];
    self->reduce2 = self->unit->reduce2[spec->type][redop];
    compile_lanes(self);
}

void
tt_program_clear(TtRank *self)
{
    g_clear_pointer(&self->lanes, g_free);
    g_clear_pointer(&self->in_ports, g_free);
    g_clear_pointer(&self->out_ports, g_free);
}
