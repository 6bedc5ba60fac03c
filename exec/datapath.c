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
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (guint64)now.tv_sec * 1000000000 + (guint64)now.tv_nsec;
#endif
}

/* --- one move ----------------------------------------------------------------------------------
 */

/* What keeps this move from being made, or TT_RANK_BUSY. */
static inline TtRankState
blocked_by(TtRank *self, const TtMove *m)
{
    if (m->dep != 0) {
        const TtDep *dep = &g_array_index(self->deps, TtDep, m->dep);
        const TtLane *other = &self->lanes[dep->lane];
        guint64 done = atomic_load_explicit(other->done, memory_order_relaxed);

        if (done < self->iteration * other->n_steps + dep->steps)
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

static inline void
make_move(TtRank *self, TtLane *lane, const TtMove *m)
{
    pass_over_data(self, m);
    if (m->flags & TT_MOVE_LAST) {
        if (m->out)
            tt_port_hand_over(m->out, G_UNLIKELY(self->checksum || self->spoil_next)
                                          ? tt_checked_info(self, m)
                                          : m->offset + m->bytes);
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
            .lane = (guint16)(lane - self->lanes),
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
    const TtPlan *plan = &self->region->job.plan;

    if (plan->spec.redop == TT_AVG && tt_collective_reduces(plan->spec.collective)) {
        TtRange range = tt_plan_buffer_range(plan, self->rank, TT_OUTPUT);
        gsize size = tt_type_bytes(plan->spec.type);

        self->unit->scale[plan->spec.type]((guint8 *)self->vector[TT_OUTPUT] + range.first * size,
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

/* Lanes take turns; when all are blocked the rank waits. */
static inline __attribute__((always_inline)) gboolean
iterate(TtRank *self, TtRecorder *recorders)
{
    TtWait wait = { 0 };
    TtRankState state;
    guint blocked = 0;

    if (!tt_fault_strike(self))
        return FALSE;
    begin_iteration(self);
    for (;;) {
        gboolean moved = advance_all(self, recorders, &state, &blocked), arrived = FALSE;

        if (state == TT_RANK_TROUBLED) /* and has said so: nothing may overwrite it */
            return FALSE;
        if (self->has_wires && !tt_wires_pump(self, &arrived))
            return FALSE;
        if (moved && wait.tries > 0)
            tt_wait_over(self, &wait);
        if (state == TT_RANK_BUSY)
            break;
        if (arrived)
            continue;
        if (!tt_wait(self, &wait, state, peer_waited_for(self, self->lanes[blocked].at, state),
                     blocked))
            return FALSE;
    }
    average(self);
    self->iteration++;
    self->iterations++;
    return TRUE;
}

gboolean
tt_datapath_run(TtRank *self)
{
    return iterate(self, NULL);
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
    return iterate(self, recorders);
}
