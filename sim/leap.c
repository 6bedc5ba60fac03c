#include "sim/leap.h"

#include "sim/engine_private.h"

#include <math.h>

#define EXACT_ROUNDS 64 /* so long an exact stride is hoped for */
#define LEAST_WINDOW 16
#define MOST_WINDOW  128
#define UNPROVEN     1e-12 /* two windows took the same time, but not to the same state */

void
tt_leap_count_message(TtEngine *self, guint32 connection, guint32 n)
{
    tt_leap_of_lane(self, self->connections[connection].writer)->n_messages += n;
}

/* Rounds the lanes under way are in. FALSE if they are not all in one iteration. */
static gboolean
rounds_of(const TtEngine *e, const TtLeap *leap, guint64 *least, guint64 *most)
{
    guint32 iteration = e->ranks[e->lanes[leap->counting].rank].iteration;

    *least = G_MAXUINT64;
    *most = 0;
    for (guint32 i = leap->first_lane; i < leap->first_lane + leap->n_lanes; i++) {
        const TtLane *lane = &e->lanes[e->leaps->lanes[i]];

        if (lane->state == TT_LANE_FINISHED)
            continue;
        if (lane->state == TT_LANE_STARTING || lane->opening ||
            e->ranks[lane->rank].iteration != iteration)
            return FALSE;
        *least = MIN(*least, lane->round);
        *most = MAX(*most, lane->round);
    }
    return *least <= *most;
}

/* The first round from @from on in which a channel under way has pieces of another size. */
static guint64
stride_ends(const TtEngine *e, const TtLeap *leap, guint64 from)
{
    guint64 end = e->n_rounds;
    g_autofree guint8 *seen = g_new0(guint8, e->plan->spec.n_channels);

    for (guint32 i = leap->first_lane; i < leap->first_lane + leap->n_lanes && !e->even_bytes;
         i++) {
        const TtLane *lane = &e->lanes[e->leaps->lanes[i]];
        guint channel = tt_plan_channel(e->plan, lane->lane);
        guint64 bytes, round = from + 1;

        if (seen[channel] || lane->state == TT_LANE_FINISHED)
            continue;
        seen[channel] = TRUE;
        bytes = tt_engine_piece_bytes(e, channel, from);
        while (round < end && tt_engine_piece_bytes(e, channel, round) == bytes)
            round++;
        end = round;
    }
    return end;
}

/* --- leaping -----------------------------------------------------------------------------------
 */

static void
save(TtEngine *e, TtLeap *leap, guint64 state, guint64 rough, guint64 least_round)
{
    TtLeaps *leaps = e->leaps;

    leap->is_saved = TRUE;
    leap->state = state;
    leap->rough = rough;
    leap->round = e->lanes[leap->counting].round;
    leap->least_round = least_round;
    leap->at_ps = e->queue.now_ps;
    leap->messages = leap->n_messages;
    for (guint32 i = leap->first_lane; i < leap->first_lane + leap->n_lanes; i++)
        leaps->busy_ps[leaps->lanes[i]] = e->work[leaps->lanes[i]].busy_ps;
    for (guint32 c = 0; c < e->n_connections; c++)
        if (tt_leap_of_lane(e, e->connections[c].writer) == leap)
            leaps->carried[c] = tt_flows_carried(e->flows, c);
}

/* What was done since the state was saved is done @times more. */
static void
repeat(TtEngine *e, TtLeap *leap, guint64 times, guint64 rounds)
{
    TtLeaps *leaps = e->leaps;
    guint64 messages = (leap->n_messages - leap->messages) * times;

    for (guint32 i = leap->first_lane; i < leap->first_lane + leap->n_lanes; i++) {
        guint32 index = leaps->lanes[i];
        TtLaneWork *work = &e->work[index];

        work->busy_ps += (work->busy_ps - leaps->busy_ps[index]) * (TtTime)times;
        if (e->lanes[index].state != TT_LANE_FINISHED)
            e->lanes[index].round += rounds;
    }
    for (guint32 c = 0; c < e->n_connections; c++) {
        if (tt_leap_of_lane(e, e->connections[c].writer) == leap) {
            guint64 carried = tt_flows_carried(e->flows, c) - leaps->carried[c];

            tt_flows_add_carried(e->flows, c, carried * times);
        }
    }
    leap->n_messages += messages;
    e->n_messages += messages;
    leap->n_leapt += rounds;
}

/* The run is as it was when saved, but for rounds and the time: by @differ of it at most. */
static void
try_leap(TtEngine *e, TtLeap *leap, guint64 most_round, double differ)
{
    guint64 period = e->lanes[leap->counting].round - leap->round;
    guint64 end = stride_ends(e, leap, leap->least_round);
    guint64 times = most_round < end ? (end - 1 - most_round) / period : 0;
    TtTime takes_ps = e->queue.now_ps - leap->at_ps;

    if (differ > 0 && times > 0) {
        times = (guint64)MIN((double)times, MAX(0, 2 * e->leaps->tolerance / differ - 1));
        if (times == 0)
            return;
    }
    if (times == 0 || takes_ps > (TT_TIME_MAX / 2 - leap->offset_ps) / (TtTime)times) {
        leap->quiet_until = end; /* sizes change there, if it is not the end of all rounds */
        return;
    }
    repeat(e, leap, times, times * period);
    leap->offset_ps += takes_ps * (TtTime)times;
    e->leaps->inexactness = MAX(e->leaps->inexactness, differ * (double)(times + 1) / 2);
}

static void
begin_search(TtLeap *leap, guint64 round)
{
    leap->is_searching = TRUE;
    leap->is_saved = FALSE;
    leap->search_from = leap->save_next = round;
    leap->window = leap->period = 0;
}

/* Brent's search for a cycle (BIT 20, 1980): states are held against one saved at ever greater
 * distances. */
static gboolean
recurs(TtEngine *e, TtLeap *leap, guint64 round, guint64 least)
{
    guint64 rough = tt_leap_rough_state(e, leap), state = tt_leap_state(e, leap);

    if (leap->is_saved && state == leap->state)
        return TRUE;
    if (leap->is_saved && rough == leap->rough)
        leap->period = round - leap->round;
    if (round >= leap->save_next) {
        save(e, leap, state, rough, least);
        leap->save_next = 2 * round - leap->search_from + 1;
    }
    return FALSE;
}

static void
begin_window(TtEngine *e, TtLeap *leap, guint64 window, guint64 least)
{
    leap->last_window_ps = window == leap->window ? e->queue.now_ps - leap->at_ps : 0;
    leap->window = window;
    save(e, leap, tt_leap_state(e, leap), tt_leap_rough_state(e, leap), least);
    tt_leap_phases(e, leap, e->leaps->saved_phase_ps);
}

/* TRUE if the state is that at the start of the window; or nearly, and the window took nearly the time of
 * the one before. *differ says how nearly. */
static gboolean
keeps_time(TtEngine *e, TtLeap *leap, guint64 round, guint64 least, double *differ)
{
    TtTime takes_ps = e->queue.now_ps - leap->at_ps;
    double drift;

    if (leap->window == 0) { /* whole periods, if there was one */
        guint64 period = MAX(1, leap->period);

        begin_window(e, leap, (LEAST_WINDOW + period - 1) / period * period, least);
        return FALSE;
    }
    if (round < leap->round + leap->window)
        return FALSE;
    *differ = 0;
    if (tt_leap_state(e, leap) == leap->state)
        return TRUE;
    drift = (double)tt_leap_drift_ps(e, leap) / (double)takes_ps;
    *differ = fabs((double)(takes_ps - leap->last_window_ps)) / (double)takes_ps;
    *differ = MAX(MAX(UNPROVEN, drift), *differ);
    if (leap->last_window_ps > 0 && *differ <= e->leaps->tolerance &&
        tt_leap_rough_state(e, leap) == leap->rough)
        return TRUE;
    begin_window(e, leap,
                 leap->last_window_ps > 0 ? MIN(2 * leap->window, MOST_WINDOW) : leap->window,
                 least);
    return FALSE;
}

/* A leap, and on with the search. */
static void
leap_over(TtEngine *e, TtLeap *leap, guint64 most, double differ)
{
    guint64 least = leap->least_round;

    try_leap(e, leap, most, differ);
    if (leap->window == 0)
        leap->is_searching = FALSE;
    else
        begin_window(e, leap, leap->window, least);
}

static void
consider(TtEngine *e, TtLeap *leap)
{
    const TtLane *lane = &e->lanes[leap->counting];
    guint32 iteration = e->ranks[lane->rank].iteration;
    guint64 least, most;
    double differ;

    if (iteration != leap->iteration) {
        leap->iteration = iteration;
        leap->is_searching = FALSE;
        leap->quiet_until = 0;
    }
    if (lane->state == TT_LANE_FINISHED || lane->round < leap->quiet_until)
        return;
    if (!rounds_of(e, leap, &least, &most)) {
        leap->is_searching = FALSE;
        return;
    }
    if (!leap->is_searching)
        begin_search(leap, lane->round);
    if (lane->round < leap->search_from + EXACT_ROUNDS) {
        if (recurs(e, leap, lane->round, least))
            leap_over(e, leap, most, 0);
    } else if (keeps_time(e, leap, lane->round, least, &differ)) {
        leap_over(e, leap, most, differ);
    }
}

void
tt_leaps_consider(TtEngine *self)
{
    TtLeaps *leaps = self->leaps;

    leaps->is_due = FALSE;
    for (guint32 k = 0; k < leaps->n_leaps; k++) {
        if (!leaps->leaps[k].is_due)
            continue;
        leaps->leaps[k].is_due = FALSE;
        consider(self, &leaps->leaps[k]);
    }
}

void
tt_leaps_report(const TtEngine *self, TtSimResult *result)
{
    for (guint32 k = 0; self->leaps && k < self->leaps->n_leaps; k++)
        result->leapt_rounds = MAX(result->leapt_rounds, self->leaps->leaps[k].n_leapt);
    result->leap_error = self->leaps ? self->leaps->inexactness : 0;
}
