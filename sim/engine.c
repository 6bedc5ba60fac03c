/* The event loop and what moves a lane from one step to the next; engine.h draws the states. */
#include "sim/engine.h"

static inline guint32
index_of(const TtEngine *self, const TtLane *lane)
{
    return (guint32)(lane - self->lanes);
}

static inline TtTime
now_ps(const TtEngine *self)
{
    return self->queue.now_ps;
}

/* Saturates at the end of time, where the loop gives up. */
static void
schedule(TtEngine *self, TtTime in_ps, guint32 kind, guint32 index)
{
    TtTime now = now_ps(self);

    tt_event_queue_push(&self->queue, in_ps > TT_TIME_MAX - now ? TT_TIME_MAX : now + in_ps, kind,
                        index);
}

static inline void
make_ready(TtEngine *self, TtLane *lane)
{
    guint32 place;

    if (lane->queued)
        return;
    lane->queued = TRUE;
    place = self->ready_first + self->ready_n++;
    self->ready[place >= self->total_lanes ? place - self->total_lanes : place] =
        index_of(self, lane);
}

/* --- waiting, as the record sees it ------------------------------------------------------------
 */

static void
begin_wait(TtEngine *self, TtLane *lane, TtLaneState state)
{
    gboolean again = lane->state == state;

    lane->state = state;
    if (self->watch && !(again && self->watch[index_of(self, lane)].waiting_since_ps >= 0))
        self->watch[index_of(self, lane)].waiting_since_ps = now_ps(self);
}

static void
note_wait(TtEngine *self, TtLane *lane, guint32 whom)
{
    TtWatch *watch = &self->watch[index_of(self, lane)];
    TtTime waited_ps = watch->waiting_since_ps < 0 ? 0 : now_ps(self) - watch->waiting_since_ps;

    if (waited_ps > watch->longest_ps) {
        watch->longest_ps = waited_ps;
        watch->longest_for = whom;
    }
    watch->waiting_since_ps = -1;
}

static inline guint32
peer_at(const TtEngine *self, guint32 lane_index)
{
    return lane_index / self->n_lanes;
}

/* --- workers and cores -------------------------------------------------------------------------
 */

static gboolean
acquire(TtEngine *self, TtResource *resource, TtLane *lane)
{
    if (resource->n_free > 0) {
        resource->n_free--;
        return TRUE;
    }
    self->work[index_of(self, lane)].next = TT_NONE;
    if (resource->last == TT_NONE)
        resource->first = index_of(self, lane);
    else
        self->work[resource->last].next = index_of(self, lane);
    resource->last = index_of(self, lane);
    return FALSE;
}

/* Hands a unit to the lane that has waited longest. */
static void
release(TtEngine *self, TtResource *resource)
{
    TtLane *lane;

    if (resource->first == TT_NONE) {
        resource->n_free++;
        return;
    }
    lane = &self->lanes[resource->first];
    resource->first = self->work[resource->first].next;
    if (resource->first == TT_NONE)
        resource->last = TT_NONE;
    lane->state = lane->state == TT_LANE_WORKER ? TT_LANE_CORE : TT_LANE_GRANTED;
    make_ready(self, lane);
}

static TtResource *
core_of(TtEngine *self, guint rank)
{
    guint per_node = self->net->ranks_per_node;

    return &self->cores[rank / per_node * self->profile->cores +
                        rank % per_node % self->profile->cores];
}

static void
release_all(TtEngine *self, TtLane *lane)
{
    if (self->n_cores > 0)
        release(self, core_of(self, lane->rank));
    if (self->profile->workers_per_rank > 0)
        release(self, &self->ranks[lane->rank].workers);
}

/* --- steps -------------------------------------------------------------------------------------
 */

static void
enter_round(TtEngine *self, TtLane *lane)
{
    lane->step = 0;
    if (self->uniform && lane->round < self->plan->n_rounds)
        lane->piece_bytes =
            tt_plan_range(self->plan, tt_plan_channel(self->plan, lane->lane), lane->round, 0)
                .count *
            self->element_bytes;
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
    chunk =
        plan->algo->chunk ? plan->algo->chunk(plan, lane->rank, channel, step->chunk) : step->chunk;
    return tt_plan_span_count(plan, channel, lane->round, chunk, step->n_chunks) *
           self->element_bytes;
}

/* The next step of this iteration, or FALSE. */
static gboolean
fetch_step(TtEngine *self, TtLane *lane)
{
    const TtPlan *plan = self->plan;
    TtStep step;

    if (lane->step == lane->n_steps) {
        lane->round = lane->n_steps ? lane->round + 1 : plan->n_rounds;
        enter_round(self, lane);
    }
    if (lane->round >= plan->n_rounds)
        return FALSE;
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
            lane->recv = tt_engine_connection(self, index_of(self, lane), step.recv_role, TRUE);
        if (tt_op_sends(step.op))
            lane->send = tt_engine_connection(self, index_of(self, lane), step.send_role, FALSE);
    }
    if (self->watch)
        self->watch[index_of(self, lane)] = (TtWatch){ .begin_ps = now_ps(self),
                                                       .waiting_since_ps = -1,
                                                       .longest_for = TT_NO_RANK };
    return TRUE;
}

static gboolean
dependency_done(const TtLane *lane)
{
    const TtLane *other;

    other = lane - lane->lane + lane->dep_lane;
    return other->round > lane->round ||
           (other->round == lane->round && other->step > lane->dep_step);
}

static void
wake_dependants(TtEngine *self, TtLane *lane)
{
    const TtPlan *plan = self->plan;
    guint channel = tt_plan_channel(plan, lane->lane);
    TtLane *sibling;

    if (self->waiters[lane->rank * plan->spec.n_channels + channel] == 0)
        return;
    sibling = lane - lane->lane % plan->lanes_per_channel;
    for (guint i = 0; i < plan->lanes_per_channel; i++)
        if (sibling[i].state == TT_LANE_DEPENDENCY)
            make_ready(self, &sibling[i]);
}

static void
next_step(TtEngine *self, TtLane *lane)
{
    lane->step++;
    lane->state = TT_LANE_FETCH;
    if (self->plan->lanes_per_channel > 1)
        wake_dependants(self, lane);
}

/* --- messages ----------------------------------------------------------------------------------
 */

static void
post(TtEngine *self, guint32 connection, guint64 bytes)
{
    TtConnection *c = &self->connections[connection];
    guint32 node = self->free_posted;

    self->n_messages++;
    if (c->first == TT_IDLE) {
        c->first = TT_NONE;
        tt_flows_start(self->flows, connection, bytes);
        return;
    }
    if (node != TT_NONE) {
        self->free_posted = self->posted[node].next;
    } else {
        if (self->n_posted == self->posted_room) {
            self->posted_room = MAX(64, 2 * self->posted_room);
            self->posted = g_renew(TtPosted, self->posted, self->posted_room);
        }
        node = self->n_posted++;
    }
    self->posted[node] = (TtPosted){ bytes, TT_NONE };
    if (c->first == TT_NONE)
        c->first = node;
    else
        self->posted[c->last].next = node;
    c->last = node;
}

static void
arrived(TtEngine *self, guint32 connection)
{
    TtConnection *c = &self->connections[connection];
    TtLane *reader = &self->lanes[c->reader];

    c->n_arrived++;
    if (reader->state == TT_LANE_MESSAGE && reader->recv == connection)
        make_ready(self, reader);
}

static void
slot_freed(TtEngine *self, guint32 connection)
{
    TtConnection *c = &self->connections[connection];
    TtLane *writer = &self->lanes[c->writer];

    if (c->free_slots++ > 0) /* nobody waits where a slot was free before */
        return;
    if (writer->state == TT_LANE_SLOT && writer->send == connection)
        make_ready(self, writer);
}

static void
note_busy(TtEngine *self, TtLane *lane)
{
    TtLaneWork *work = &self->work[index_of(self, lane)];

    work->busy_ps += now_ps(self) - work->busy_since_ps;
}

/* The step is done: its slot, worker and core are free, whoever depends on it may go. */
static void
end_step(TtEngine *self, TtLane *lane)
{
    if (self->is_timed)
        note_busy(self, lane);
    if (lane->recv != TT_NONE) {
        self->connections[lane->recv].n_arrived--;
        if (self->credit_ps > 0)
            schedule(self, self->credit_ps, TT_EVENT_CREDIT, lane->recv);
        else
            slot_freed(self, lane->recv);
    }
    if (self->events && self->ranks[lane->rank].iteration + 1 == self->iterations)
        tt_record_step(self, index_of(self, lane));
    release_all(self, lane);
    next_step(self, lane);
}

static void
injected(TtEngine *self, guint32 connection)
{
    TtConnection *c = &self->connections[connection];
    guint32 node = c->first;

    if (c->latency_ps > 0)
        schedule(self, c->latency_ps, TT_EVENT_ARRIVES, connection);
    else
        arrived(self, connection);
    if (node == TT_NONE) {
        c->first = TT_IDLE;
    } else {
        c->first = self->posted[node].next;
        tt_flows_start(self->flows, connection, self->posted[node].bytes);
        self->posted[node].next = self->free_posted;
        self->free_posted = node;
    }
    if (self->profile->lane_pushes) {
        TtLane *writer = &self->lanes[c->writer];

        g_assert(writer->state == TT_LANE_PUSH && writer->send == connection);
        end_step(self, writer);
        make_ready(self, writer);
    }
}

/* --- iterations --------------------------------------------------------------------------------
 */

static void
release_lanes(TtEngine *self, guint rank)
{
    TtLane *lane = &self->lanes[rank * self->n_lanes];

    for (guint i = 0; i < self->n_lanes; i++) {
        lane[i].state = TT_LANE_FETCH;
        make_ready(self, &lane[i]);
    }
}

/* A rank enters the collective: what that costs is worked off by its first lane, before any step.
 */
static void
begin_iteration(TtEngine *self, guint rank)
{
    TtLane *lane = &self->lanes[rank * self->n_lanes];

    self->ranks[rank].n_left = self->n_lanes;
    for (guint i = 0; i < self->n_lanes; i++) {
        lane[i].state = TT_LANE_STARTING;
        lane[i].round = 0;
        enter_round(self, &lane[i]);
    }
    if (self->ranks[rank].iteration + 1 == self->iterations)
        self->record_from_ps = MIN(self->record_from_ps, now_ps(self));
    if (self->start_ps == 0) {
        release_lanes(self, rank);
        return;
    }
    lane->opening = TRUE;
    lane->state = TT_LANE_WORKER;
    make_ready(self, lane);
}

static void
finish_lane(TtEngine *self, TtLane *lane)
{
    TtRank *rank = &self->ranks[lane->rank];

    lane->state = TT_LANE_FINISHED;
    if (--rank->n_left > 0)
        return;
    if (rank->iteration == 0 && --self->ranks_in_first == 0)
        self->first_end_ps = now_ps(self);
    if (++rank->iteration < self->iterations) {
        begin_iteration(self, lane->rank);
        return;
    }
    if (--self->ranks_left == 0)
        self->end_ps = now_ps(self);
}

/* --- work --------------------------------------------------------------------------------------
 */

/* TRUE if the lane can go on at once. */
static gboolean
finish_work(TtEngine *self, TtLane *lane)
{
    if (lane->opening) {
        lane->opening = FALSE;
        note_busy(self, lane);
        release_all(self, lane);
        release_lanes(self, lane->rank);
        return FALSE; /* is on the ready list with its siblings */
    }
    if (lane->send != TT_NONE) {
        post(self, lane->send, lane->bytes);
        if (self->profile->lane_pushes) {
            lane->state = TT_LANE_PUSH;
            return FALSE;
        }
    }
    end_step(self, lane);
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
    return tt_seconds_to_ps(cost->fixed_s[lane->op] +
                            (double)lane->bytes * cost->per_byte_s[lane->op]);
}

static gboolean
begin_work(TtEngine *self, TtLane *lane)
{
    TtTime takes_ps = work_ps(self, lane);

    if (self->n_cores > 0) {
        TtResource *core = core_of(self, lane->rank);

        if (core->last_rank != lane->rank && core->last_rank != TT_NONE)
            takes_ps += self->switch_ps;
        core->last_rank = lane->rank;
    }
    if (self->watch) {
        note_wait(self, lane, lane->rank); /* a worker or core, if it waited for one */
        self->watch[index_of(self, lane)].work_ps = now_ps(self);
    }
    lane->state = TT_LANE_WORK;
    if (self->is_timed)
        self->work[index_of(self, lane)].busy_since_ps = now_ps(self);
    if (takes_ps == 0)
        return finish_work(self, lane);
    schedule(self, takes_ps, TT_EVENT_WORK_DONE, index_of(self, lane));
    return FALSE;
}

/* TRUE once the lane's step does not wait for another lane of its rank; counts it in its channel's
 * waiters meanwhile. */
static gboolean
pass_dependency(TtEngine *self, TtLane *lane)
{
    guint channel = tt_plan_channel(self->plan, lane->lane);
    guint32 *waiters = &self->waiters[lane->rank * self->plan->spec.n_channels + channel];
    gboolean done = dependency_done(lane);

    if (done && lane->parked) {
        lane->parked = FALSE;
        --*waiters;
    } else if (!done && !lane->parked) {
        lane->parked = TRUE;
        ++*waiters;
    }
    return done;
}

/* Moves a lane as far as it gets at this instant. */
static void
advance(TtEngine *self, TtLane *lane)
{
    for (;;) {
        switch ((TtLaneState)lane->state) {
        case TT_LANE_FETCH:
            if (!fetch_step(self, lane)) {
                finish_lane(self, lane);
                return;
            }
            G_GNUC_FALLTHROUGH;
        case TT_LANE_DEPENDENCY:
            if (lane->dep_lane != TT_NO_LANE) {
                if (!pass_dependency(self, lane)) {
                    begin_wait(self, lane, TT_LANE_DEPENDENCY);
                    return;
                }
                if (self->watch)
                    note_wait(self, lane, lane->rank);
            }
            if (lane->bytes == 0) {
                next_step(self, lane);
                continue;
            }
            G_GNUC_FALLTHROUGH;
        case TT_LANE_MESSAGE:
            if (lane->recv != TT_NONE) {
                if (self->connections[lane->recv].n_arrived == 0) {
                    begin_wait(self, lane, TT_LANE_MESSAGE);
                    return;
                }
                if (self->watch)
                    note_wait(self, lane, peer_at(self, self->connections[lane->recv].writer));
            }
            G_GNUC_FALLTHROUGH;
        case TT_LANE_SLOT:
            if (lane->send != TT_NONE) {
                if (self->connections[lane->send].free_slots == 0) {
                    begin_wait(self, lane, TT_LANE_SLOT);
                    return;
                }
                self->connections[lane->send].free_slots--;
                if (self->watch)
                    note_wait(self, lane, peer_at(self, self->connections[lane->send].reader));
            }
            G_GNUC_FALLTHROUGH;
        case TT_LANE_WORKER:
            if (self->profile->workers_per_rank > 0) {
                begin_wait(self, lane, TT_LANE_WORKER);
                if (!acquire(self, &self->ranks[lane->rank].workers, lane))
                    return;
            }
            G_GNUC_FALLTHROUGH;
        case TT_LANE_CORE:
            if (self->n_cores > 0) {
                begin_wait(self, lane, TT_LANE_CORE);
                if (!acquire(self, core_of(self, lane->rank), lane))
                    return;
            }
            G_GNUC_FALLTHROUGH;
        case TT_LANE_GRANTED:
            if (!begin_work(self, lane))
                return;
            continue;
        default: return; /* woken in vain */
        }
    }
}

/* --- the loop ----------------------------------------------------------------------------------
 */

static void
handle(TtEngine *self, const TtSimEvent *event)
{
    guint32 flow;
    TtLane *lane;

    switch (event->kind & ((1u << TT_KIND_BITS) - 1)) {
    case TT_FLOW_ENDS:
        if (tt_flows_take(self->flows, event))
            injected(self, event->index);
        break;
    case TT_FLOWS_SHARED_END:
        while ((flow = tt_flows_take_shared(self->flows)) != TT_NO_FLOW)
            injected(self, flow);
        break;
    case TT_EVENT_ARRIVES: arrived(self, event->index); break;
    case TT_EVENT_CREDIT: slot_freed(self, event->index); break;
    case TT_EVENT_WORK_DONE:
        lane = &self->lanes[event->index];
        if (finish_work(self, lane))
            make_ready(self, lane);
        break;
    default: g_assert_not_reached();
    }
}

static void
run_ready(TtEngine *self)
{
    while (self->ready_n > 0) {
        TtLane *lane = &self->lanes[self->ready[self->ready_first]];

        self->ready_n--;
        if (++self->ready_first == self->total_lanes)
            self->ready_first = 0;
        lane->queued = FALSE;
        advance(self, lane);
    }
}

gboolean
tt_engine_run(TtEngine *self, GError **error)
{
    TtSimEvent event;

    for (guint r = 0; r < self->n_ranks; r++)
        begin_iteration(self, r);
    for (;;) {
        run_ready(self);
        if (!tt_event_queue_has_now(&self->queue)) /* nothing more at this instant, as it seems */
            tt_flows_settle(self->flows);
        if (!tt_event_queue_pop(&self->queue, &event))
            break;
        if (event.time_ps == TT_TIME_MAX) {
            g_set_error(error, TT_SIM_ERROR, TT_SIM_ERROR_USAGE,
                        "%s takes longer than the simulator can count (106 days)",
                        self->plan->name);
            return FALSE;
        }
        self->n_events++;
        handle(self, &event);
    }
    if (self->ranks_left > 0) {
        g_autofree char *who = tt_record_deadlock(self);

        g_set_error(error, TT_SIM_ERROR, TT_SIM_ERROR_DEADLOCK, "%s: deadlock: %s",
                    self->plan->name, who);
        return FALSE;
    }
    return TRUE;
}
