/* program.c - the rank's half of a job: from steps to moves with addresses.
 */
#include "exec/barrier.h"
#include "exec/gpu_group.h"
#include "exec/ping.h"
#include "exec/wires.h"

#include <string.h>

/* --- connections ---------------------------------------------------------------------------------
 */

/* Gives a port its memory, and empties what is this side's to empty: the sender's the slots, the receiver's
 * the ack. Over a wire both are this rank's own. */
static void
place_port(TtPort *port, guint8 *memory, gboolean slots, gboolean ack)
{
    port->ack = (_Atomic guint64 *)(gpointer)memory;
    port->first = port->slot = memory + TT_PAIR_BYTES;
    port->end = port->first + port->stride * port->n_slots;
    if (ack)
        atomic_store_explicit(port->ack, 0, memory_order_relaxed);
    for (guint8 *slot = port->first; slots && slot < port->end; slot += port->stride) {
        memset(slot, 0, port->stride); /* the payload too: no page faults in the timed loop */
        atomic_store_explicit(&((TtSlotHead *)(gpointer)slot)->sequence, 0, memory_order_relaxed);
    }
}

/* This rank's end of a connection. One over a wire gets its memory when all are known. */
TtPort *
tt_port_open(TtRank *self, guint32 number, guint peer, gboolean sends)
{
    const TtJob *job = &self->region->job;
    TtPort *port = sends ? &self->out_ports[number] : &self->in_ports[number];
    TtReachWires *reach = &self->reach[tt_wires_reach(self, peer)];

    if (port->n_slots)
        return port;
    port->stride = job->slot_stride;
    port->n_slots = job->n_slots;
    port->limit = port->n_slots;
    port->peer = peer;
    if (reach->transport) {
        TtWireEnd end = { .connection = number,
                          .peer = peer,
                          .sends = sends,
                          .slot_stride = port->stride,
                          .n_slots = port->n_slots };

        g_array_append_val(reach->ends, end);
        self->has_wires = TRUE;
    } else {
        place_port(port, job->connections + number * job->connection_bytes, sends, !sends);
        port->in_memory = self->has_memory_ends = TRUE;
    }
    return port;
}

static void
place_ends(TtRank *self, TtReachWires *reach)
{
    const TtJob *job = &self->region->job;

    tt_wires_sort_ends(reach);
    for (guint i = 0; i < reach->ends->len; i++) {
        TtWireEnd *end = &g_array_index(reach->ends, TtWireEnd, i);
        TtPort *ports = end->sends ? self->out_ports : self->in_ports;

        end->memory = reach->memory + i * job->connection_bytes;
        if (reach->payload)
            end->payload = reach->payload + i * job->connection_bytes;
        place_port(&ports[end->connection], end->memory, TRUE, TRUE);
        if (end->sends && reach->transport->lends)
            ports[end->connection].sent =
                (const _Atomic guint64 *)(gpointer)(end->memory + TT_SENT_AT);
        atomic_store((_Atomic guint64 *)(gpointer)(end->memory + TT_SENT_AT), 0);
    }
}

/* Memory for the ends that go over wires, and connects them. */
static gboolean
connect_wires(TtRank *self)
{
    for (guint i = 0; i < TT_N_REACHES; i++) {
        TtReachWires *reach = &self->reach[i];

        if (!reach->wire)
            continue;
        if (!tt_wires_make_room(self, reach, reach->ends->len * self->region->job.connection_bytes))
            return FALSE;
        place_ends(self, reach);
        if (!tt_wires_begin(self, reach))
            return FALSE;
    }
    return TRUE;
}

/* --- messages that need no slot ------------------------------------------------------------------
 */

static gboolean
is_looked_at(const TtRank *self)
{
    return self->checksum || self->region->fault.kind == TT_FAULT_CORRUPT;
}

/* The wire sends from, and receives to, this rank's buffers. */
static gboolean
may_lend_to_wire(const TtRank *self, const TtPort *port)
{
    const TtTransport *transport = self->reach[tt_wires_reach(self, port->peer)].transport;

    return !port->in_memory && transport && transport->lends && !is_looked_at(self) &&
           self->region->wire.streams == 1;
}

/* Both ends see each other's buffers, and no message is to be looked at on its way. */
static gboolean
may_be_direct(const TtRank *self, const TtPort *port)
{
    const TtRegion *region = self->region;

    return region->buffers && !is_looked_at(self) && port->in_memory &&
           port->peer - region->first_rank < region->n_local;
}

/* Inputs and outputs of all ranks here cannot stay in the last-level cache. */
static gboolean
is_beyond_caches(const TtRegion *region)
{
    const TtJob *job = &region->job;
    guint64 cache = tt_region_cache_bytes();
    guint64 bytes = 0;

    for (guint p = 0; p < job->n_parts; p++) {
        const TtPlanSpec *spec = &job->parts[p].plan.spec;

        bytes += spec->count * tt_type_bytes(spec->type) * 2 * MIN(spec->n_ranks, region->n_local);
    }
    return cache > 0 && bytes > cache;
}

static gsize
direct_least_bytes(const TtRegion *region)
{
    return region->n_on_host <= region->n_cores ? TT_PASS_LEAST_BYTES : TT_PASS_LEAST_BYTES_CROWDED;
}

/* What is best for a step, whatever the round. */
typedef struct {
    guint8 how;      /* its message goes out: TT_MOVE_PLACE, TT_MOVE_LEND or 0 */
    guint8 buffer;   /* PLACE: the receiver's */
    gboolean stream; /* what it stores may go past the caches */
} Direct;

/* @l: number in the job. */
static Direct *
decide_direct(TtRank *self, const TtJobPart *part, guint l)
{
    const TtJob *job = &self->region->job;
    const TtJobLane *lane = tt_job_lane(job, self->rank, l);
    Direct *direct = g_new0(Direct, lane->n_steps);
    gboolean streams = is_beyond_caches(self->region);
    TtPassing passing = { .lanes = job->lanes,
                          .n_lanes = job->n_lanes,
                          .first_lane = part->first_lane,
                          .lanes_per_channel = part->plan.lanes_per_channel,
                          .in_place = job->options.in_place };
    static const guint8 how[] = { 0, TT_MOVE_LEND, TT_MOVE_PLACE }; /* [TtPass] */

    if (tt_plan_max_message_bytes(&part->plan) < direct_least_bytes(self->region) ||
        lane->n_steps > TT_PASS_MOST_STEPS)
        return direct;
    for (guint32 i = 0; i < lane->n_steps; i++) {
        const TtJobStep *s = &lane->steps[i];
        guint buffer = 0;
        TtPort *out = NULL;

        direct[i].stream = streams && tt_passing_is_final(&passing, self->rank, l, i);
        if (s->send_peer != TT_NO_RANK)
            out = tt_port_open(self, s->send_connection, s->send_peer, TRUE);
        if (!out || (!may_be_direct(self, out) && !may_lend_to_wire(self, out)))
            continue;
        direct[i].how = how[tt_passing_choose(&passing, self->rank, l, i, out->in_memory, &buffer)];
        direct[i].buffer = (guint8)buffer;
    }
    return direct;
}

/* A step that is one piece, long enough. */
static void
make_direct(TtRank *self, const TtJobPart *part, TtMove *move, Direct direct, gsize first_byte)
{
    const TtRegion *region = self->region;

    if (move->in && may_be_direct(self, move->in))
        move->flags |= TT_MOVE_DIRECT_IN;
    if (move->in && may_lend_to_wire(self, move->in) &&
        (move->op == TT_OP_RECV || move->op == TT_OP_RECV_COPY_SEND))
        move->flags |= TT_MOVE_DIRECT_IN | TT_MOVE_WANT;
    if (direct.stream && (move->op == TT_OP_RECV || direct.how == TT_MOVE_PLACE))
        move->flags |= TT_MOVE_STREAM;
    if (!move->out || !direct.how)
        return;
    move->flags |= direct.how;
    if (direct.how == TT_MOVE_LEND) {
        if (!g_ptr_array_find(self->lenders, move->out, NULL))
            g_ptr_array_add(self->lenders, move->out);
    } else {
        guint buffer = direct.buffer;
        guint member = tt_job_member(part, move->out->peer);
        gssize start = tt_job_vector_start(&region->job, part, member, &buffer);

        move->place = tt_region_buffer(region, move->out->peer, buffer) + start + first_byte;
    }
}

/* --- moves ---------------------------------------------------------------------------------------
 */

/* Appends the pieces of one step in one round. FALSE if it has no elements. */
static gboolean
append_pieces(TtRank *self, const TtRankPart *part, guint lane, guint64 round, const TtJobStep *s,
              Direct direct, TtMove move)
{
    const TtPlan *plan = &part->job->plan;
    guint channel = tt_plan_channel(plan, lane), first = self->moves->len;
    gsize size = tt_type_bytes(plan->spec.type), offset;
    guint32 chunk = s->step.chunk, n_chunks = s->step.n_chunks;
    gsize message = size * tt_plan_span_count(plan, channel, round, chunk, n_chunks);
    TtMove *last;

    offset = message <= TT_SLOT_SMALL_BYTES ? TT_SLOT_SMALL_START : TT_SLOT_HEAD_BYTES;
    while (n_chunks > 0) {
        TtRange piece = tt_plan_next_piece(plan, channel, round, &chunk, &n_chunks);

        if (piece.count == 0)
            continue;
        move.src = part->vector[s->step.src] + piece.first * size;
        move.dst = part->vector[s->step.dst] + piece.first * size;
        move.bytes = piece.count * size;
        move.offset = offset;
        offset += move.bytes;
        g_array_append_val(self->moves, move);
    }
    if (self->moves->len == first)
        return FALSE;
    last = &g_array_index(self->moves, TtMove, self->moves->len - 1);
    g_array_index(self->moves, TtMove, first).flags |= TT_MOVE_FIRST;
    last->flags |= TT_MOVE_LAST;
    if (last->bytes == message && message >= direct_least_bytes(self->region))
        make_direct(self, part->job, last, direct, (gsize)(last->src - part->vector[s->step.src]));
    return TRUE;
}

static guint32
append_dep(TtRank *self, const TtRankPart *part, const TtJobStep *s, guint64 round)
{
    guint number = s->step.dep_lane;
    TtDep dep = { 0 };

    if (number == TT_NO_LANE)
        return 0;
    dep.lane = part->first_lane + number - part->job->first_lane;
    dep.steps =
        round * tt_job_lane(&self->region->job, self->rank, number)->n_steps + s->step.dep_step + 1;
    g_array_append_val(self->deps, dep);
    return self->deps->len - 1;
}

/* Appends one step of one round. An empty one with nothing to wait for is done when the one before
 * it is; an empty one that waits becomes a NOP. */
static void
append_step(TtRank *self, const TtRankPart *part, guint l, guint first_move, guint64 round,
            guint32 i, Direct direct)
{
    const TtJobLane *source = tt_job_lane(&self->region->job, self->rank, self->lanes[l].number);
    const TtJobStep *s = &source->steps[i];
    TtLane *lane = &self->lanes[l];
    TtMove move = { .op = s->step.op,
                    .dep = append_dep(self, part, s, round),
                    .steps_after = round * source->n_steps + i + 1 };

    if (s->recv_peer != TT_NO_RANK)
        move.in = tt_port_open(self, s->recv_connection, s->recv_peer, FALSE);
    if (s->send_peer != TT_NO_RANK)
        move.out = tt_port_open(self, s->send_connection, s->send_peer, TRUE);
    if (append_pieces(self, part, l - part->first_lane, round, s, direct, move))
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

/* A lane that begins later than the iteration waits for that first. */
static void
append_hold(TtRank *self, double offset_s)
{
    TtDep dep = { TT_HOLD, (guint64)(offset_s * 1e9) };
    TtMove move = { .op = TT_OP_NOP,
                    .flags = TT_MOVE_FIRST | TT_MOVE_LAST,
                    .dep = self->deps->len };

    g_array_append_val(self->deps, dep);
    g_array_append_val(self->moves, move);
    self->has_holds = TRUE;
}

static void
compile_lane(TtRank *self, const TtRankPart *part, guint l)
{
    const TtJob *job = &self->region->job;
    TtLane *lane = &self->lanes[l];
    guint first = self->moves->len;
    guint64 n_rounds = part->job->plan.n_rounds;
    g_autofree Direct *direct = NULL;

    lane->number = part->job->first_lane + l - part->first_lane;
    direct = decide_direct(self, part->job, lane->number);
    lane->steps_per_round = tt_job_lane(job, self->rank, lane->number)->n_steps;
    lane->n_steps = lane->steps_per_round * n_rounds;
    lane->done = &job->done[self->rank * job->done_stride + lane->number];
    if (part->job->offset_s[part->member] > 0)
        append_hold(self, part->job->offset_s[part->member]);
    for (guint64 round = 0; round < n_rounds; round++)
        for (guint32 i = 0; i < lane->steps_per_round; i++)
            append_step(self, part, l, first, round, i, direct[i]);
}

static void
compile_lanes(TtRank *self)
{
    g_autofree guint *first = g_new(guint, self->n_lanes + 1);

    for (guint p = 0; p < self->n_parts; p++) {
        const TtRankPart *part = &self->parts[p];

        for (guint l = part->first_lane; l < part->first_lane + part->job->plan.n_lanes; l++) {
            first[l] = self->moves->len;
            compile_lane(self, part, l);
        }
    }
    first[self->n_lanes] = self->moves->len;
    for (guint l = 0; l < self->n_lanes; l++) { /* the array has stopped moving */
        self->lanes[l].moves = &g_array_index(self->moves, TtMove, first[l]);
        self->lanes[l].end = &g_array_index(self->moves, TtMove, first[l + 1]);
    }
}

void
tt_program_find_parts(TtRank *self)
{
    const TtJob *job = &self->region->job;

    g_free(self->parts);
    self->parts = g_new0(TtRankPart, job->n_parts);
    self->n_parts = self->n_lanes = 0;
    for (guint p = 0; p < job->n_parts; p++) {
        guint member = tt_job_member(&job->parts[p], self->rank);

        if (member == TT_NO_RANK)
            continue;
        self->parts[self->n_parts++] = (TtRankPart){
            .job = &job->parts[p], .index = p, .member = member, .first_lane = self->n_lanes
        };
        self->n_lanes += job->parts[p].plan.n_lanes;
    }
}

gboolean
tt_program_compile(TtRank *self)
{
    const TtJob *job = &self->region->job;
    const TtPlanSpec *spec = &job->parts[0].plan.spec; /* type and reduction are those of all */
    TtRedop redop = spec->redop == TT_AVG ? TT_SUM : spec->redop;

    tt_program_clear(self);
    self->lanes = g_new0(TtLane, self->n_lanes);
    self->in_ports = g_new0(TtPort, job->n_connections);
    self->out_ports = g_new0(TtPort, job->n_connections);
    self->iteration = 0;
    self->has_holds = FALSE;
    g_ptr_array_set_size(self->lenders, 0);
    g_array_set_size(self->moves, 0);
    g_array_set_size(self->deps, 1);
    self->reduce = self->unit->reduce[spec->type][redop];
    self->reduce2 = self->unit->reduce2[spec->type][redop];
    self->stream2 = self->unit->stream2[spec->type][redop];
    self->has_wires = self->has_memory_ends = FALSE;
    for (guint i = 0; i < TT_N_REACHES; i++)
        g_array_set_size(self->reach[i].ends, 0);
    if (self->gpu)
        tt_gpu_open_ports(self);
    else
        compile_lanes(self);
    tt_barrier_open(self);
    tt_ping_open(self);
    self->spin_limit = tt_wait_spin_limit(self);
    return connect_wires(self) && (!self->gpu || tt_gpu_compile(self));
}

void
tt_program_clear(TtRank *self)
{
    g_clear_pointer(&self->lanes, g_free);
    g_clear_pointer(&self->in_ports, g_free);
    g_clear_pointer(&self->out_ports, g_free);
}
