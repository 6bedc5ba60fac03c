/* A lane on its way from one state to the next; engine.h draws them. */
#include "sim/engine_private.h"
#include "sim/leap.h"

/* --- steps -------------------------------------------------------------------------------------
 */

void
tt_lane_enter_round(TtEngine *self, TtLane *lane)
{
    lane->step = 0;
    if (self->uniform && lane->round < self->n_rounds)
        lane->piece_bytes =
            tt_engine_piece_bytes(self, tt_plan_channel(self->plan, lane->lane), lane->round);
}

static guint64
step_bytes(const TtEngine *self, const TtLane *lane, const TtStep *step)
{
    const TtPlan *plan = self->plan;
    guint channel;
    guint32 chunk;

    if (G_LIKELY(self->uniform)) /* no need to know which chunks they are */
        return lane->piece_bytes * step->n_chunks;
    channel = tt_plan_channel(plan, lane->lane);
    chunk = plan->algo->chunk
                ? plan->algo->chunk(plan, self->ranks[lane->rank].agent, channel, step->chunk)
                : step->chunk;
    return tt_plan_span_count(plan, channel, lane->round, chunk, step->n_chunks) *
           self->element_bytes;
}

/* What is left to do where messages are long enough to be lent or placed. */
static void
pass_directly(TtEngine *self, TtLane *lane)
{
    const TtPassed *passed =
        &self->passed[self->passed_first[tt_lane_index(self, lane)] + lane->step];

    lane->work = tt_passing_work(lane->op, passed->in, passed->out);
    lane->lends = passed->out == TT_PASS_LENT;
}

/* Into the lane goes all that the states after FETCH look at. */
static gboolean
fetch_step(TtEngine *self, TtLane *lane)
{
    const TtPlan *plan = self->plan;
    TtStep step;

    if (lane->step == lane->n_steps) {
        lane->round = lane->n_steps ? lane->round + 1 : self->n_rounds;
        tt_lane_enter_round(self, lane);
    }
    if (lane->round >= self->n_rounds)
        return FALSE;
    if (lane->counts && lane->step == 0 && lane->round > 0)
        tt_leap_note_round(self, lane);
    step = plan->algo->step(plan, lane->program, lane->lane % plan->lanes_per_channel, lane->step);
    lane->op = step.op;
    lane->bytes = step.op == TT_OP_NOP ? 0 : step_bytes(self, lane, &step);
    lane->recv = lane->send = TT_NONE;
    lane->dep_lane = TT_NO_LANE;
    if (step.dep_lane != TT_NO_LANE) {
        lane->dep_lane = lane->lane - lane->lane % plan->lanes_per_channel + step.dep_lane;
        lane->dep_step = step.dep_step;
    }
    if (lane->bytes > 0) {
        if (tt_op_receives(step.op))
            lane->recv =
                tt_engine_connection(self, tt_lane_index(self, lane), step.recv_role, TRUE);
        if (tt_op_sends(step.op))
            lane->send =
                tt_engine_connection(self, tt_lane_index(self, lane), step.send_role, FALSE);
    }
    lane->work = step.op;
    lane->lends = FALSE;
    if (self->passed && lane->bytes >= self->direct_bytes &&
        tt_passing_is_whole(plan, step.n_chunks))
        pass_directly(self, lane);
    if (self->watch)
        self->watch[tt_lane_index(self, lane)] = (TtWatch){ .begin_ps = tt_engine_now_ps(self),
                                                            .waiting_since_ps = -1,
                                                            .longest_for = TT_NO_RANK };
    return TRUE;
}

/* --- dependencies ------------------------------------------------------------------------------
 */

static gboolean
dependency_done(const TtLane *lane)
{
    const TtLane *other = lane + ((int)lane->dep_lane - lane->lane); /* of its unit */

    return other->round > lane->round ||
           (other->round == lane->round && other->step > lane->dep_step);
}

/* Counts the lane among its channel's waiters, or no longer. */
static void
park(TtEngine *self, TtLane *lane, gboolean parked)
{
    guint32 *waiters = &self->waiters[tt_lane_index(self, lane) / self->lanes_per_channel];

    if (lane->parked == parked)
        return;
    lane->parked = parked;
    *waiters += parked ? 1 : -1;
}

static void
wake_dependants(TtEngine *self, TtLane *lane)
{
    const TtPlan *plan = self->plan;
    TtLane *sibling;

    if (self->waiters[tt_lane_index(self, lane) / self->lanes_per_channel] == 0)
        return;
    sibling = lane - lane->lane % plan->lanes_per_channel;
    for (guint i = 0; i < plan->lanes_per_channel; i++)
        if (sibling[i].state == TT_LANE_DEPENDENCY)
            tt_lane_make_ready(self, &sibling[i]);
}

/* Whoever depends on the step may go. */
static void
next_step(TtEngine *self, TtLane *lane)
{
    lane->step++;
    lane->state = TT_LANE_FETCH;
    if (self->plan->lanes_per_channel > 1)
        wake_dependants(self, lane);
}

/* --- work --------------------------------------------------------------------------------------
 */

static void
note_busy(TtEngine *self, TtLane *lane)
{
    TtLaneWork *work = &self->work[tt_lane_index(self, lane)];

    work->busy_ps += tt_engine_now_ps(self) - work->busy_since_ps;
}

/* The step is done: its slot, worker and core are free, whoever depends on it may go. */
void
tt_lane_end_step(TtEngine *self, TtLane *lane)
{
    if (self->is_timed)
        note_busy(self, lane);
    if (lane->recv != TT_NONE) {
        self->connections[lane->recv].n_arrived--;
        if (self->credit_ps > 0)
            tt_engine_schedule(self, self->credit_ps, TT_EVENT_CREDIT, lane->recv);
        else
            tt_connection_slot_freed(self, lane->recv);
    }
    if (self->events && self->ranks[lane->rank].iteration + 1 == self->iterations)
        tt_record_step(self, tt_lane_index(self, lane));
    tt_lane_release(self, lane);
    next_step(self, lane);
}

/* The start of the rank has been worked off. */
void
tt_lane_end_opening(TtEngine *self, TtLane *lane)
{
    lane->opening = FALSE;
    if (!self->is_folded) /* see work_share() */
        note_busy(self, lane);
    tt_lane_release(self, lane);
}

gboolean
tt_lane_finish_work(TtEngine *self, TtLane *lane)
{
    if (lane->send != TT_NONE) {
        if (G_UNLIKELY(self->lent))
            tt_lent_count(self, lane);
        tt_connection_post(self, lane->send, lane->bytes);
        if (self->profile->lane_pushes) {
            lane->state = TT_LANE_PUSH;
            return FALSE;
        }
    }
    tt_lane_end_step(self, lane);
    return TRUE;
}

static TtTime
work_ps(TtEngine *self, const TtLane *lane)
{
    const TtStepCost *cost = &self->costs[self->ranks[lane->rank].cost];

    if (lane->opening)
        return self->start_ps;
    if (self->is_free)
        return 0;
    if (lane->work == TT_OP_NOP)
        return tt_seconds_to_ps(cost->fixed_s[lane->op]);
    return tt_seconds_to_ps(cost->fixed_s[lane->op] +
                            (double)lane->bytes * cost->per_byte_s[lane->work]);
}

static gboolean
begin_work(TtEngine *self, TtLane *lane)
{
    TtTime takes_ps = work_ps(self, lane);

    if (self->n_cores > 0 && !self->ranks[lane->rank].is_switch) {
        TtResource *core = tt_lane_core(self, lane);

        if (core->last_rank != lane->rank && core->last_rank != TT_NONE)
            takes_ps += self->switch_ps;
        core->last_rank = lane->rank;
    }
    if (self->watch) {
        tt_lane_note_wait(self, lane, lane->rank); /* a worker or core, if it waited for one */
        self->watch[tt_lane_index(self, lane)].work_ps = tt_engine_now_ps(self);
    }
    lane->state = TT_LANE_WORK;
    if (self->is_timed)
        self->work[tt_lane_index(self, lane)].busy_since_ps = tt_engine_now_ps(self);
    if (takes_ps == 0) /* never an opening: a rank whose start costs nothing has none */
        return tt_lane_finish_work(self, lane);
    tt_engine_schedule(self, takes_ps, TT_EVENT_WORK_DONE, tt_lane_index(self, lane));
    return FALSE;
}

/* --- from state to state -----------------------------------------------------------------------
 *
 * One function for each that a lane can wait in: TRUE if it need not, or need no longer.
 */

static guint32
peer_at(const TtEngine *self, guint32 lane_index)
{
    return self->ranks[self->lanes[lane_index].rank].agent;
}

static gboolean
pass_dependency(TtEngine *self, TtLane *lane)
{
    gboolean done;

    if (lane->dep_lane == TT_NO_LANE)
        return TRUE;
    done = dependency_done(lane);
    park(self, lane, !done);
    if (!done)
        tt_lane_begin_wait(self, lane, TT_LANE_DEPENDENCY);
    else if (self->watch)
        tt_lane_note_wait(self, lane, lane->rank);
    return done;
}

/* The message stays counted as arrived until the step ends. */
static gboolean
find_message(TtEngine *self, TtLane *lane)
{
    if (lane->recv == TT_NONE)
        return TRUE;
    if (self->connections[lane->recv].n_arrived == 0) {
        tt_lane_begin_wait(self, lane, TT_LANE_MESSAGE);
        return FALSE;
    }
    if (self->watch)
        tt_lane_note_wait(self, lane, peer_at(self, self->connections[lane->recv].writer));
    return TRUE;
}

static gboolean
take_slot(TtEngine *self, TtLane *lane)
{
    if (lane->send == TT_NONE)
        return TRUE;
    if (self->connections[lane->send].free_slots == 0) {
        tt_lane_begin_wait(self, lane, TT_LANE_SLOT);
        return FALSE;
    }
    self->connections[lane->send].free_slots--;
    if (self->watch)
        tt_lane_note_wait(self, lane, peer_at(self, self->connections[lane->send].reader));
    return TRUE;
}

static gboolean
take_worker(TtEngine *self, TtLane *lane)
{
    if (self->profile->workers_per_rank == 0 || self->ranks[lane->rank].is_switch)
        return TRUE;
    tt_lane_begin_wait(self, lane, TT_LANE_WORKER);
    return tt_resource_acquire(self, &self->ranks[lane->rank].workers, lane);
}

static gboolean
take_core(TtEngine *self, TtLane *lane)
{
    if (self->n_cores == 0 || self->ranks[lane->rank].is_switch)
        return TRUE;
    tt_lane_begin_wait(self, lane, TT_LANE_CORE);
    return tt_resource_acquire(self, tt_lane_core(self, lane), lane);
}

void
tt_lane_advance(TtEngine *self, TtLane *lane)
{
    for (;;) {
        switch ((TtLaneState)lane->state) {
        case TT_LANE_FETCH:
            if (!fetch_step(self, lane)) {
                if (self->lent && self->n_unread[tt_lane_index(self, lane)] > 0)
                    lane->state = TT_LANE_RETURNS;
                else
                    tt_lane_finish(self, lane);
                return;
            }
            G_GNUC_FALLTHROUGH;
        case TT_LANE_DEPENDENCY:
            if (!pass_dependency(self, lane))
                return;
            if (lane->bytes == 0) {
                next_step(self, lane);
                continue;
            }
            G_GNUC_FALLTHROUGH;
        case TT_LANE_MESSAGE:
            if (!find_message(self, lane))
                return;
            G_GNUC_FALLTHROUGH;
        case TT_LANE_SLOT:
            if (!take_slot(self, lane))
                return;
            G_GNUC_FALLTHROUGH;
        case TT_LANE_WORKER:
            if (!take_worker(self, lane))
                return;
            G_GNUC_FALLTHROUGH;
        case TT_LANE_CORE:
            if (!take_core(self, lane))
                return;
            G_GNUC_FALLTHROUGH;
        case TT_LANE_GRANTED:
            if (!begin_work(self, lane))
                return;
            continue;
        case TT_LANE_RETURNS: tt_lane_finish(self, lane); return;
        default: return; /* woken in vain */
        }
    }
}
