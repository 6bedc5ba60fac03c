/* engine_private.h - what engine.c, engine_lanes.c, engine_messages.c and engine_resources.c share.
 *
 * Inline is what every step of a lane passes through, most of it several times.
 */
#pragma once
#include "sim/engine.h"

static inline guint32
tt_lane_index(const TtEngine *self, const TtLane *lane)
{
    return (guint32)(lane - self->lanes);
}

static inline TtTime
tt_engine_now_ps(const TtEngine *self)
{
    return self->queue.now_ps;
}

/* Puts an event into the queue. Saturates at the end of time, where the loop gives up. */
static inline void
tt_engine_schedule(TtEngine *self, TtTime in_ps, guint32 kind, guint32 index)
{
    TtTime now = tt_engine_now_ps(self);

    tt_event_queue_push(&self->queue, in_ps > TT_TIME_MAX - now ? TT_TIME_MAX : now + in_ps, kind,
                        index);
}

static inline void
tt_lane_make_ready(TtEngine *self, TtLane *lane)
{
    guint32 place;

    if (lane->queued)
        return;
    lane->queued = TRUE;
    place = self->ready_first + self->ready_n++;
    self->ready[place >= self->total_lanes ? place - self->total_lanes : place] =
        tt_lane_index(self, lane);
}

/* --- waiting, as the record sees it ------------------------------------------------------------
 */

static inline void
tt_lane_begin_wait(TtEngine *self, TtLane *lane, TtLaneState state)
{
    gboolean again = lane->state == state;

    lane->state = state;
    if (self->watch && !(again && self->watch[tt_lane_index(self, lane)].waiting_since_ps >= 0))
        self->watch[tt_lane_index(self, lane)].waiting_since_ps = tt_engine_now_ps(self);
}

static inline void
tt_lane_note_wait(TtEngine *self, TtLane *lane, guint32 whom)
{
    TtWatch *watch = &self->watch[tt_lane_index(self, lane)];
    TtTime waited_ps =
        watch->waiting_since_ps < 0 ? 0 : tt_engine_now_ps(self) - watch->waiting_since_ps;

    if (waited_ps > watch->longest_ps) {
        watch->longest_ps = waited_ps;
        watch->longest_for = whom;
    }
    watch->waiting_since_ps = -1;
}

/* Bytes of one chunk's piece, the same for all chunks. Only if self->uniform. */
static inline guint64
tt_engine_piece_bytes(const TtEngine *self, guint channel, guint64 round)
{
    return self->even_bytes > 0
               ? self->even_bytes
               : tt_plan_range(self->plan, channel, round, 0).count * self->element_bytes;
}

/* --- lanes, engine.c and engine_lanes.c --------------------------------------------------------
 */

/* The lane has no step left in this iteration. */
void tt_lane_finish(TtEngine *self, TtLane *lane);
void tt_lane_advance(TtEngine *self, TtLane *lane);         /* as far as it gets at this instant */
gboolean tt_lane_finish_work(TtEngine *self, TtLane *lane); /* TRUE if it can go on at once */
void tt_lane_end_step(TtEngine *self, TtLane *lane);
void tt_lane_end_opening(TtEngine *self, TtLane *lane);
void tt_lane_enter_round(TtEngine *self, TtLane *lane);

/* --- messages and slots, engine_messages.c -----------------------------------------------------
 */

void tt_connection_queue(TtEngine *self, guint32 connection, guint64 bytes);
void tt_connection_injected(TtEngine *self, guint32 connection);
void tt_lent_count(TtEngine *self, const TtLane *lane);       /* the message it posts */
void tt_connection_paced(TtEngine *self, guint32 connection); /* its gap is over */

/* Nothing but another message can hold the next one up. */
static inline gboolean
tt_connection_may_start(const TtEngine *self, guint32 connection)
{
    return G_LIKELY(!self->paces) || self->paces[connection].next_ps <= tt_engine_now_ps(self);
}

static inline void
tt_connection_start(TtEngine *self, guint32 connection, guint64 bytes)
{
    if (G_UNLIKELY(self->paces)) {
        TtPace *pace = &self->paces[connection];

        pace->next_ps = tt_engine_now_ps(self) + pace->gap_ps;
        bytes = (guint64)((double)bytes * pace->wire_factor + 0.5);
    }
    tt_flows_start(self->flows, connection, bytes);
}

void tt_leap_count_message(TtEngine *self, guint32 connection, guint32 n); /* leap.c */

static inline void
tt_engine_count_message(TtEngine *self, guint32 connection)
{
    guint32 n = self->connection_weight ? self->connection_weight[connection] : 1;

    self->n_messages += n;
    if (self->leaps)
        tt_leap_count_message(self, connection, n);
}

/* Injects the message at once if no other is on its way into the connection. */
static inline void
tt_connection_post(TtEngine *self, guint32 connection, guint64 bytes)
{
    TtConnection *c = &self->connections[connection];

    tt_engine_count_message(self, connection);
    if (c->first == TT_IDLE && tt_connection_may_start(self, connection)) {
        c->first = TT_NONE;
        tt_connection_start(self, connection, bytes);
    } else {
        tt_connection_queue(self, connection, bytes);
    }
}

static inline void
tt_connection_arrived(TtEngine *self, guint32 connection)
{
    TtConnection *c = &self->connections[connection];
    TtLane *reader = &self->lanes[c->reader];

    c->n_arrived++;
    if (reader->state == TT_LANE_MESSAGE && reader->recv == connection)
        tt_lane_make_ready(self, reader);
}

void tt_lent_is_read(TtEngine *self, guint32 connection); /* or a message that was not lent */

static inline void
tt_connection_slot_freed(TtEngine *self, guint32 connection)
{
    TtConnection *c = &self->connections[connection];
    TtLane *writer = &self->lanes[c->writer];

    if (G_UNLIKELY(self->lent))
        tt_lent_is_read(self, connection);
    if (c->free_slots++ > 0) /* nobody waits where a slot was free before */
        return;
    if (writer->state == TT_LANE_SLOT && writer->send == connection)
        tt_lane_make_ready(self, writer);
}

/* --- workers and cores, engine_resources.c -----------------------------------------------------
 */

/* FALSE puts the lane in line; whoever releases the unit hands it on and wakes the lane. */
gboolean tt_resource_acquire(TtEngine *self, TtResource *resource, TtLane *lane);
void tt_resource_release(TtEngine *self, TtResource *resource);
TtResource *tt_lane_core(TtEngine *self, const TtLane *lane);

/* What the lane worked with. */
static inline void
tt_lane_release(TtEngine *self, TtLane *lane)
{
    if (self->ranks[lane->rank].is_switch)
        return;
    if (self->n_cores > 0)
        tt_resource_release(self, tt_lane_core(self, lane));
    if (self->profile->workers_per_rank > 0)
        tt_resource_release(self, &self->ranks[lane->rank].workers);
}
