/* datapath.c - the loop that moves the bytes.
 *
 * Everything a move needs was computed beforehand. What is left: look at a sequence number, make
 * one pass over the data, store a sequence number. A fused step reads the arriving slot and the
 * local operand once and writes the result to both its destinations.
 */
#include "exec/checksum.h"
#include "exec/strike.h"
#include "exec/wires.h"

#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

guint64
tt_ticks_now(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#else
    return tt_now_ns();
#endif
}

guint64
tt_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (guint64)now.tv_sec * 1000000000 + (guint64)now.tv_nsec;
}

/* --- one move ----------------------------------------------------------------------------------
 */

static inline gboolean
has_finished(const TtRank *self, const TtLane *lane, guint64 steps)
{
    guint64 done = atomic_load_explicit(lane->done, memory_order_relaxed);

    return done >= self->iteration * lane->n_steps + steps;
}

/* What keeps this move from being made, or TT_RANK_BUSY. */
static inline TtRankState
blocked_by(TtRank *self, const TtMove *m)
{
    if (m->dep != 0) {
        const TtDep *dep = &g_array_index(self->deps, TtDep, m->dep);

        if (dep->lane == TT_HOLD)
            return tt_now_ns() < self->begin_ns + dep->steps ? TT_RANK_WAITS_START : TT_RANK_BUSY;
        if (!has_finished(self, &self->lanes[dep->lane], dep->steps))
            return TT_RANK_WAITS_LANE;
    }
    if (m->in && !tt_port_has_message(m->in))
        return TT_RANK_WAITS_MESSAGE;
    if (m->out && !tt_port_has_slot(m->out))
        return TT_RANK_WAITS_SLOT;
    return TT_RANK_BUSY;
}

static inline void
pass_over_data(TtRank *self, const TtMove *m)
{
    const guint8 *in = m->in ? m->in->slot + m->offset : NULL;
    guint8 *out = m->out ? m->out->slot + m->offset : NULL;

    switch (m->op) {
    case TT_OP_NOP: break;
    case TT_OP_COPY: self->unit->copy(m->dst, m->src, m->bytes); break;
    case TT_OP_REDUCE: self->reduce(m->dst, m->dst, m->src, m->bytes); break;
    case TT_OP_SEND: self->unit->copy(out, m->src, m->bytes); break;
    case TT_OP_COPY_SEND: self->unit->copy2(m->dst, out, m->src, m->bytes); break;
    case TT_OP_RECV: self->unit->copy(m->dst, in, m->bytes); break;
    case TT_OP_RECV_COPY_SEND: self->unit->copy2(m->dst, out, in, m->bytes); break;
    case TT_OP_RECV_REDUCE: self->reduce(m->dst, m->src, in, m->bytes); break;
    case TT_OP_RECV_REDUCE_SEND: self->reduce(out, m->src, in, m->bytes); break;
    case TT_OP_RECV_REDUCE_COPY_SEND: self->reduce2(m->dst, out, m->src, in, m->bytes); break;
    }
}

/* Where the message is that a direct move receives. */
static inline const guint8 *
find_message(const TtMove *m)
{
    guint64 info = m->flags & TT_MOVE_DIRECT_IN ? tt_port_head(m->in)->info : 0;

    return info & TT_INFO_LENT     ? *tt_port_lent_at(m->in)
           : info & TT_INFO_PLACED ? m->dst
                                   : m->in->slot + TT_SLOT_HEAD_BYTES;
}

/* What a step stores besides, and sends: to @out, NULL if it stays where it is. */
static inline void
pass_directly(TtRank *self, const TtMove *m, guint8 *out, const guint8 *in)
{
    switch (m->op) {
    case TT_OP_SEND:
        if (out)
            (m->flags & TT_MOVE_STREAM ? self->unit->stream_copy : self->unit->copy)(out, m->src,
                                                                                     m->bytes);
        break;
    case TT_OP_RECV_REDUCE_SEND: self->reduce(out, m->src, in, m->bytes); break;
    case TT_OP_RECV_REDUCE: self->reduce(m->dst, m->src, in, m->bytes); break;
    case TT_OP_RECV_REDUCE_COPY_SEND:
        if (out)
            (m->flags & TT_MOVE_STREAM ? self->stream2 : self->reduce2)(m->dst, out, m->src, in,
                                                                        m->bytes);
        else
            self->reduce(m->dst, m->src, in, m->bytes);
        break;
    default: /* copies, which a placed message does not need */
        if (out && in != m->dst)
            self->unit->copy2(m->dst, out, in, m->bytes);
        else if (m->op == TT_OP_RECV && in != m->dst && (m->flags & TT_MOVE_STREAM))
            self->unit->stream_copy(m->dst, in, m->bytes);
        else if (out || in != m->dst)
            self->unit->copy(out ? out : m->dst, in, m->bytes);
    }
}

/* A move of data that need not pass through slots, as algos/passing.h says. Returns the info of what it sends. */
static guint64
make_direct_move(TtRank *self, const TtMove *m)
{
    const guint8 *in = m->in ? find_message(m) : m->src;
    guint64 info = TT_SLOT_HEAD_BYTES + m->bytes;
    guint8 *out = NULL;

    if (m->flags & TT_MOVE_PLACE) {
        out = m->place;
        info |= TT_INFO_PLACED;
    } else if (m->flags & TT_MOVE_LEND) {
        *tt_port_lent_at(m->out) = tt_op_receives(m->op) ? m->dst : m->src;
        m->out->lent = m->out->count + 1;
        info |= TT_INFO_LENT;
    } else if (m->out) {
        out = m->out->slot + TT_SLOT_HEAD_BYTES;
    }
    pass_directly(self, m, out, in);
    return info;
}

static inline void
make_move(TtRank *self, TtLane *lane, const TtMove *m)
{
    guint64 info = m->offset + m->bytes;

    if (m->flags & TT_MOVE_DIRECT)
        info = make_direct_move(self, m);
    else
        pass_over_data(self, m);
    if (m->flags & TT_MOVE_LAST) {
        if (m->out)
            tt_port_hand_over(m->out, G_UNLIKELY(self->checksum || self->spoil_next)
                                          ? tt_checked_info(self, m)
                                          : info);
        if (m->in)
            tt_port_acknowledge(m->in);
        atomic_store_explicit(lane->done, self->iteration * lane->n_steps + m->steps_after,
                              memory_order_relaxed);
    }
    lane->at++;
}

/* --- recording ---------------------------------------------------------------------------------
 */

/* Where the step a lane stands at began and how it has waited so far, in ticks. */
typedef struct {
    guint64 begin, wait_begin; /* wait_begin 0: not waiting */
    guint64 waited, longest;
    TtRankState blocked;
    guint32 wait_for;
    guint64 bytes, step;
    TtEvent *events; /* the rank's, shared by its lanes */
    gsize *n_events;
} TtRecorder;

static guint
peer_waited_for(const TtRank *self, const TtMove *m, TtRankState blocked)
{
    return blocked == TT_RANK_WAITS_MESSAGE ? m->in->peer
           : blocked == TT_RANK_WAITS_SLOT  ? m->out->peer
                                            : self->rank;
}

/* A look at a step found it @blocked. A wait may be for several things in turn. */
static void
record_look(const TtRank *self, TtRecorder *r, const TtMove *m, TtRankState blocked)
{
    guint64 now;

    if (r->wait_begin != 0 && blocked == r->blocked)
        return;
    if (r->wait_begin == 0 && blocked == TT_RANK_BUSY)
        return;
    now = tt_ticks_now();
    if (r->wait_begin != 0) {
        guint64 waited = now - r->wait_begin;

        r->waited += waited;
        if (waited > r->longest) {
            r->longest = waited;
            r->wait_for = peer_waited_for(self, m, r->blocked);
        }
    }
    r->wait_begin = blocked == TT_RANK_BUSY ? 0 : now;
    r->blocked = blocked;
}

static void
record_move(const TtRank *self, TtRecorder *r, const TtLane *lane, const TtMove *m)
{
    guint64 now;

    r->bytes += m->bytes;
    if (!(m->flags & TT_MOVE_LAST))
        return;
    now = tt_ticks_now();
    if (m->op != TT_OP_NOP)
        r->events[(*r->n_events)++] = (TtEvent){
            .rank = self->rank,
            .lane = (guint16)lane->number,
            .op = m->op,
            .round = (guint32)(r->step / lane->steps_per_round),
            .step = (guint32)(r->step % lane->steps_per_round),
            .recv_peer = m->in ? m->in->peer : TT_NO_RANK,
            .send_peer = m->out ? m->out->peer : TT_NO_RANK,
            .bytes = r->bytes,
            .begin_ps = (gint64)r->begin,
            .end_ps = (gint64)now,
            .wait_ps = (gint64)r->waited,
            .wait_for = r->waited ? r->wait_for : TT_NO_RANK,
        };
    r->begin = now;
    r->step = m->steps_after;
    r->bytes = r->waited = r->longest = 0;
}

/* --- one iteration -----------------------------------------------------------------------------
 */

/* Makes moves until one is blocked, and says by what; TT_RANK_BUSY at the end of the program.
 * @recorder: NULL in the timed loop, where this is compiled without it. */
static inline __attribute__((always_inline)) TtRankState
advance(TtRank *self, TtLane *lane, TtRecorder *recorder)
{
    while (lane->at < lane->end) {
        const TtMove *m = lane->at;

        if (m->flags & TT_MOVE_FIRST) {
            TtRankState blocked = blocked_by(self, m);

            if (recorder)
                record_look(self, recorder, m, blocked);
            if (blocked == TT_RANK_WAITS_MESSAGE && (m->flags & TT_MOVE_WANT))
                tt_port_want(m->in, m->dst, m->bytes);
            if (blocked != TT_RANK_BUSY)
                return blocked;
            if (G_UNLIKELY(self->checksum) && m->in && !tt_checksum_is_good(self, m->in))
                return TT_RANK_TROUBLED;
        }
        make_move(self, lane, m);
        if (recorder)
            record_move(self, recorder, lane, m);
    }
    return TT_RANK_BUSY;
}

static void
begin_iteration(TtRank *self)
{
    if (self->has_holds)
        self->begin_ns = tt_now_ns();
    for (guint l = 0; l < self->n_lanes; l++) {
        TtLane *lane = &self->lanes[l];

        lane->at = lane->moves;
        if (lane->free_steps > 0)
            atomic_store_explicit(lane->done, self->iteration * lane->n_steps + lane->free_steps,
                                  memory_order_relaxed);
    }
}

static inline void
average(TtRank *self)
{
    for (guint p = 0; p < self->n_parts; p++) {
        const TtRankPart *part = &self->parts[p];
        const TtPlan *plan = &part->job->plan;
        gsize size = tt_type_bytes(plan->spec.type);
        TtRange range;

        if (plan->spec.redop != TT_AVG || !tt_collective_reduces(plan->spec.collective))
            continue;
        range = tt_plan_buffer_range(plan, part->member, TT_OUTPUT);
        self->unit->scale[plan->spec.type](part->vector[TT_OUTPUT] + range.first * size,
                                           plan->spec.n_ranks, range.count * size);
    }
}

/* Every lane goes on as far as it can; *blocked is the first lane that is not done, *state what it
 * waits for; trouble in any lane is everybody's. FALSE if none moved. */
static inline __attribute__((always_inline)) gboolean
advance_all(TtRank *self, TtRecorder *recorders, TtRankState *state, guint *blocked)
{
    gboolean moved = FALSE;

    *state = TT_RANK_BUSY;
    for (guint l = 0; l < self->n_lanes; l++) {
        TtLane *lane = &self->lanes[l];
        TtMove *before = lane->at;
        TtRankState found = advance(self, lane, recorders ? &recorders[l] : NULL);

        moved |= lane->at != before;
        if (found != TT_RANK_BUSY && (*state == TT_RANK_BUSY || found == TT_RANK_TROUBLED)) {
            *state = found;
            *blocked = l;
        }
    }
    return moved;
}

/* A wait that is being counted. */
typedef struct {
    guint64 since; /* 0: none */
    guint32 peer;
    TtRankState state;
} TtWaiting;

/* The rank begins (or goes on) to wait, as @state says; or it does not: TT_RANK_BUSY. */
static inline void
count_wait(TtRank *self, TtWaiting *waiting, TtRankState state, guint32 peer)
{
    gboolean goes_on = waiting->since != 0 && waiting->state == state && waiting->peer == peer;
    guint64 now;

    if (goes_on || (waiting->since == 0 && state == TT_RANK_BUSY))
        return;
    now = tt_ticks_now();
    if (waiting->since != 0 && waiting->state == TT_RANK_WAITS_MESSAGE)
        self->waited[waiting->peer].message += now - waiting->since;
    if (waiting->since != 0 && waiting->state == TT_RANK_WAITS_SLOT)
        self->waited[waiting->peer].slot += now - waiting->since;
    *waiting = (TtWaiting){ state == TT_RANK_BUSY ? 0 : now, peer, state };
}

/* At the end of an iteration: nobody reads this rank's buffers any more. @waiting: to be counted; may be NULL. */
static gboolean
wait_for_returns(TtRank *self, TtWaiting *waiting)
{
    for (guint i = 0; i < self->lenders->len; i++) {
        TtPort *out = g_ptr_array_index(self->lenders, i);
        TtWait wait = { 0 };

        while (!tt_port_has_returns(out)) {
            if (waiting)
                count_wait(self, waiting, TT_RANK_WAITS_SLOT, out->peer);
            if ((self->has_wires && !tt_wires_pump(self, NULL)) ||
                !tt_wait(self, &wait, TT_RANK_WAITS_SLOT, out->peer, TT_NO_LANE))
                return FALSE;
        }
        tt_wait_over(self, &wait);
    }
    if (waiting)
        count_wait(self, waiting, TT_RANK_BUSY, TT_NO_RANK);
    return TRUE;
}

/* Lanes take turns; when all are blocked the rank waits. @recorders, @stamp: may be NULL. */
static inline __attribute__((always_inline)) gboolean
iterate(TtRank *self, TtRecorder *recorders, TtStamp *stamp)
{
    TtWait wait = { 0 };
    TtWaiting waiting = { 0 };
    TtRankState state;
    guint blocked = 0;

    if (!tt_fault_strike(self))
        return FALSE;
    if (stamp)
        stamp->begin = tt_ticks_now();
    begin_iteration(self);
    for (;;) {
        gboolean moved = advance_all(self, recorders, &state, &blocked), arrived = FALSE;
        guint peer;

        if (state == TT_RANK_TROUBLED) /* and has said so: nothing may overwrite it */
            return FALSE;
        if (self->has_wires && !tt_wires_pump(self, &arrived))
            return FALSE;
        if (moved && wait.tries > 0)
            tt_wait_over(self, &wait);
        if (stamp && self->waited && moved)
            count_wait(self, &waiting, TT_RANK_BUSY, TT_NO_RANK);
        if (state == TT_RANK_BUSY)
            break;
        if (arrived)
            continue;
        peer = peer_waited_for(self, self->lanes[blocked].at, state);
        if (stamp && self->waited && !moved)
            count_wait(self, &waiting, state, peer);
        if (!tt_wait(self, &wait, state, peer, self->lanes[blocked].number))
            return FALSE;
    }
    if (!wait_for_returns(self, stamp && self->waited ? &waiting : NULL))
        return FALSE;
    average(self);
    if (stamp)
        stamp->end = tt_ticks_now();
    self->iteration++;
    self->iterations++;
    return TRUE;
}

gboolean
tt_datapath_run(TtRank *self)
{
    return iterate(self, NULL, NULL);
}

gboolean
tt_datapath_run_stamped(TtRank *self, TtStamp *stamp)
{
    return iterate(self, NULL, stamp);
}

gboolean
tt_datapath_record(TtRank *self, TtEvent *events, gsize *n_events)
{
    g_autofree TtRecorder *recorders = g_new0(TtRecorder, self->n_lanes);
    guint64 now = tt_ticks_now();

    *n_events = 0;
    for (guint l = 0; l < self->n_lanes; l++)
        recorders[l] = (TtRecorder){
            .begin = now, .step = self->lanes[l].free_steps, .events = events, .n_events = n_events
        };
    return iterate(self, recorders, NULL);
}
