/* The event loop and the iterations of a rank. */
#include "sim/engine_private.h"
#include "sim/leap.h"

/* --- iterations --------------------------------------------------------------------------------
 */

static void
release_lanes(TtEngine *self, guint32 rank)
{
    TtLane *lane = &self->lanes[self->ranks[rank].first_lane];

    for (guint32 i = 0; i < self->ranks[rank].n_lanes; i++) {
        lane[i].state = TT_LANE_FETCH;
        tt_lane_make_ready(self, &lane[i]);
    }
}

/* A rank enters the collective: what that costs is worked off by its first lane, before any step.
 */
static void
begin_iteration(TtEngine *self, guint32 rank)
{
    TtLane *lane = &self->lanes[self->ranks[rank].first_lane];

    self->ranks[rank].n_left = self->ranks[rank].n_lanes;
    for (guint32 i = 0; i < self->ranks[rank].n_lanes; i++) {
        lane[i].state = TT_LANE_STARTING;
        lane[i].round = 0;
        tt_lane_enter_round(self, &lane[i]);
    }
    if (self->ranks[rank].iteration + 1 == self->iterations)
        self->record_from_ps = MIN(self->record_from_ps, tt_engine_now_ps(self));
    if (self->start_ps == 0 || self->ranks[rank].is_switch) {
        release_lanes(self, rank);
        return;
    }
    lane->opening = TRUE;
    lane->state = TT_LANE_WORKER;
    tt_lane_make_ready(self, lane);
}

void
tt_lane_finish(TtEngine *self, TtLane *lane)
{
    TtRank *rank = &self->ranks[lane->rank];
    TtTime now_ps = tt_engine_now_ps(self);

    lane->state = TT_LANE_FINISHED;
    if (--rank->n_left > 0)
        return;
    if (self->leaps)
        now_ps +=
            self->leaps
                ->leaps[self->leaps->of_unit[tt_lane_index(self, lane) / self->lanes_per_channel]]
                .offset_ps;
    if (rank->iteration == 0)
        self->first_end_ps = MAX(self->first_end_ps, now_ps);
    if (++rank->iteration < self->iterations) {
        begin_iteration(self, lane->rank);
        return;
    }
    self->ranks_left--;
    self->end_ps = MAX(self->end_ps, now_ps);
}

/* --- the loop ----------------------------------------------------------------------------------
 */

static void
work_done(TtEngine *self, TtLane *lane)
{
    if (lane->opening) {
        tt_lane_end_opening(self, lane);
        release_lanes(self, lane->rank);
    } else if (tt_lane_finish_work(self, lane)) {
        tt_lane_make_ready(self, lane);
    }
}

static void
handle(TtEngine *self, const TtSimEvent *event)
{
    guint32 flow;

    switch (event->kind & ((1u << TT_KIND_BITS) - 1)) {
    case TT_FLOW_ENDS:
        if (tt_flows_take(self->flows, event))
            tt_connection_injected(self, event->index);
        break;
    case TT_FLOWS_SHARED_END:
        while ((flow = tt_flows_take_shared(self->flows)) != TT_NO_FLOW)
            tt_connection_injected(self, flow);
        break;
    case TT_EVENT_ARRIVES: tt_connection_arrived(self, event->index); break;
    case TT_EVENT_CREDIT: tt_connection_slot_freed(self, event->index); break;
    case TT_EVENT_PACED: tt_connection_paced(self, event->index); break;
    case TT_EVENT_WORK_DONE: work_done(self, &self->lanes[event->index]); break;
    default: g_assert_not_reached();
    }
}

/* Until no lane can move at this instant. */
static void
run_ready(TtEngine *self)
{
    while (self->ready_n > 0) {
        TtLane *lane = &self->lanes[self->ready[self->ready_first]];

        self->ready_n--;
        if (++self->ready_first == self->total_lanes)
            self->ready_first = 0;
        lane->queued = FALSE;
        tt_lane_advance(self, lane);
    }
}

gboolean
tt_engine_run(TtEngine *self, GError **error)
{
    TtSimEvent event;

    for (guint32 r = 0; r < self->n_ranks; r++)
        begin_iteration(self, r);
    for (;;) {
        run_ready(self);
        if (!tt_event_queue_has_now(&self->queue)) /* nothing more at this instant, as it seems */
            tt_flows_settle(self->flows);
        if (self->leaps && self->leaps->is_due && !tt_event_queue_has_now(&self->queue))
            tt_leaps_consider(self);
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
