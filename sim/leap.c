#include "sim/leap.h"

#include "sim/engine_private.h"
#include "sim/partition.h"

#include <math.h>

#define FEW_ROUNDS     8    /* are not worth a look */
#define MAX_COMPONENTS 64   /* else the run is taken as one */
#define EXACT_ROUNDS   1024 /* so long an exact stride is hoped for */
#define LEAP_WINDOW    256

/* --- components --------------------------------------------------------------------------------
 */

static guint32
root_of(guint32 *parent, guint32 unit)
{
    while (parent[unit] != unit)
        unit = parent[unit] = parent[parent[unit]];
    return unit;
}

static void
join(guint32 *parent, guint32 a, guint32 b)
{
    guint32 x = root_of(parent, a), y = root_of(parent, b);

    parent[MAX(x, y)] = MIN(x, y);
}

static void
join_units(const TtEngine *e, guint32 *parent)
{
    guint32 lpc = e->lanes_per_channel, hops[TT_MAX_ROUTE + 1];
    g_autofree guint32 *on_link = g_new0(guint32, MAX(1, tt_flows_n_links(e->flows)));

    for (guint32 c = 0; c < e->n_connections; c++) {
        guint n = tt_flows_hops(e->flows, c, hops);
        guint32 unit = e->connections[c].writer / lpc;

        join(parent, unit, e->connections[c].reader / lpc);
        for (guint h = 0; h < n; h++) {
            if (on_link[hops[h]] > 0)
                join(parent, unit, on_link[hops[h]] - 1);
            on_link[hops[h]] = unit + 1;
        }
    }
    for (guint32 r = 0; r < e->n_ranks; r++)
        for (guint32 i = lpc; i < e->ranks[r].n_lanes; i += lpc)
            join(parent, e->ranks[r].first_lane / lpc, (e->ranks[r].first_lane + i) / lpc);
}

/* Numbers the components in order of their first units. */
static guint32
number_components(const TtEngine *e, guint32 *of_unit)
{
    g_autofree guint32 *parent = g_new(guint32, MAX(1, e->n_units));
    guint32 n = 0;

    for (guint32 u = 0; u < e->n_units; u++)
        parent[u] = u;
    join_units(e, parent);
    for (guint32 u = 0; u < e->n_units; u++)
        of_unit[u] = root_of(parent, u) == u ? n++ : of_unit[root_of(parent, u)];
    for (guint32 u = 0; n > MAX_COMPONENTS && u < e->n_units; u++)
        of_unit[u] = 0;
    return n > MAX_COMPONENTS ? 1 : n;
}

/* Counts the rounds of the first lane that has any. */
static void
list_lanes(TtEngine *e, TtLeaps *leaps)
{
    guint32 n = 0;

    for (guint32 k = 0; k < leaps->n_leaps; k++) {
        TtLeap *leap = &leaps->leaps[k];

        *leap = (TtLeap){ .first_lane = n, .counting = TT_NONE };
        for (guint32 i = 0; i < e->total_lanes; i++) {
            if (leaps->of_unit[i / e->lanes_per_channel] != k)
                continue;
            leaps->lanes[n++] = i;
            if (leap->counting == TT_NONE && e->lanes[i].n_steps > 0)
                leap->counting = i;
        }
        leap->n_lanes = n - leap->first_lane;
        if (leap->counting != TT_NONE)
            e->lanes[leap->counting].counts = TRUE;
    }
}

void
tt_leaps_init(TtEngine *self)
{
    TtLeaps *leaps;

    /* queues for workers and cores are not part of the state; connections must all be known */
    if (self->plan->n_rounds < FEW_ROUNDS || !self->is_connected || !self->uniform)
        return;
    leaps = self->leaps = g_new0(TtLeaps, 1);
    leaps->of_unit = g_new(guint32, MAX(1, self->n_units));
    leaps->lanes = g_new(guint32, self->total_lanes);
    leaps->busy_ps = g_new(TtTime, self->total_lanes);
    leaps->carried = g_new(guint64, MAX(1, self->n_connections));
    leaps->n_leaps = number_components(self, leaps->of_unit);
    leaps->leaps = g_new0(TtLeap, MAX(1, leaps->n_leaps));
    list_lanes(self, leaps);
}

void
tt_leaps_free(TtLeaps *leaps)
{
    if (!leaps)
        return;
    g_free(leaps->leaps);
    g_free(leaps->lanes);
    g_free(leaps->of_unit);
    g_free(leaps->busy_ps);
    g_free(leaps->carried);
    g_free(leaps);
}

void
tt_leap_count_message(TtEngine *self, guint32 connection, guint32 n)
{
    guint32 unit = self->connections[connection].writer / self->lanes_per_channel;

    self->leaps->leaps[self->leaps->of_unit[unit]].n_messages += n;
}

/* --- states ------------------------------------------------------------------------------------
 */

static guint32
component_of(const TtEngine *e, guint32 lane)
{
    return e->leaps->of_unit[lane / e->lanes_per_channel];
}

static guint64
lanes_state(const TtEngine *e, const TtLeap *leap)
{
    guint64 from = e->lanes[leap->counting].round, sum = 0;

    for (guint32 i = leap->first_lane; i < leap->first_lane + leap->n_lanes; i++) {
        guint32 index = e->leaps->lanes[i];
        const TtLane *lane = &e->lanes[index];
        guint64 look = tt_mix(index, lane->state);

        if (lane->state != TT_LANE_FINISHED) {
            look = tt_mix(look, (lane->round - from) << 32 | lane->step);
            look = tt_mix(look, lane->bytes);
        }
        sum += look;
    }
    return sum;
}

static guint64
connection_state(const TtEngine *e, guint32 connection)
{
    const TtConnection *c = &e->connections[connection];
    guint64 look = tt_mix(connection, (guint64)c->free_slots << 32 | c->n_arrived);

    if (c->first == TT_IDLE)
        look = tt_mix(look, TT_IDLE);
    else
        for (guint32 node = c->first; node != TT_NONE; node = e->posted[node].next)
            look = tt_mix(look, e->posted[node].bytes);
    if (e->paces)
        look = tt_mix(look, (guint64)MAX(0, e->paces[connection].next_ps - e->queue.now_ps));
    return tt_mix(look, tt_flows_state(e->flows, connection));
}

/* Ends of flows are in the flows' states. */
static guint64
event_state(const TtEngine *e, const TtLeap *leap, const TtSimEvent *event)
{
    guint kind = event->kind & ((1u << TT_KIND_BITS) - 1);
    guint32 lane;

    if (kind < TT_FLOW_N_KINDS)
        return 0;
    lane = kind == TT_EVENT_WORK_DONE ? event->index : e->connections[event->index].writer;
    if (&e->leaps->leaps[component_of(e, lane)] != leap)
        return 0;
    return tt_mix(tt_mix(kind, event->index), (guint64)(event->time_ps - e->queue.now_ps));
}

/* A sum, since the order of what is due at one instant makes no difference. */
static guint64
state_of(const TtEngine *e, const TtLeap *leap)
{
    guint64 sum = lanes_state(e, leap);

    for (guint32 c = 0; c < e->n_connections; c++)
        if (&e->leaps->leaps[component_of(e, e->connections[c].writer)] == leap)
            sum += connection_state(e, c);
    for (guint b = 1; b < G_N_ELEMENTS(e->queue.bucket); b++)
        for (gsize i = 0; i < e->queue.bucket[b].n; i++)
            sum += event_state(e, leap, &e->queue.bucket[b].at[i]);
    return sum;
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
    const TtPlan *plan = e->plan;
    guint64 end = plan->n_rounds;
    g_autofree guint8 *seen = g_new0(guint8, plan->spec.n_channels);

    for (guint32 i = leap->first_lane; i < leap->first_lane + leap->n_lanes; i++) {
        const TtLane *lane = &e->lanes[e->leaps->lanes[i]];
        guint channel = tt_plan_channel(plan, lane->lane);
        guint64 count, round = from + 1;

        if (seen[channel] || lane->state == TT_LANE_FINISHED)
            continue;
        seen[channel] = TRUE;
        count = tt_plan_range(plan, channel, from, e->piece_chunk).count;
        while (round < end && tt_plan_range(plan, channel, round, e->piece_chunk).count == count)
            round++;
        end = round;
    }
    return end;
}

/* --- leaping -----------------------------------------------------------------------------------
 */

static void
save(TtEngine *e, TtLeap *leap, guint64 state, guint64 least_round)
{
    TtLeaps *leaps = e->leaps;

    leap->is_saved = TRUE;
    leap->state = state;
    leap->round = e->lanes[leap->counting].round;
    leap->least_round = least_round;
    leap->at_ps = e->queue.now_ps;
    leap->messages = leap->n_messages;
    for (guint32 i = leap->first_lane; i < leap->first_lane + leap->n_lanes; i++)
        leaps->busy_ps[leaps->lanes[i]] = e->work[leaps->lanes[i]].busy_ps;
    for (guint32 c = 0; c < e->n_connections; c++)
        if (&leaps->leaps[component_of(e, e->connections[c].writer)] == leap)
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
        if (&leaps->leaps[component_of(e, e->connections[c].writer)] == leap) {
            guint64 carried = tt_flows_carried(e->flows, c) - leaps->carried[c];

            tt_flows_add_carried(e->flows, c, carried * times);
        }
    }
    leap->n_messages += messages;
    e->n_messages += messages;
    leap->n_leapt += rounds;
}

/* The run is as it was when saved, but for rounds and the time. */
static void
try_leap(TtEngine *e, TtLeap *leap, guint64 most_round)
{
    guint64 period = e->lanes[leap->counting].round - leap->round;
    guint64 end = stride_ends(e, leap, leap->least_round);
    guint64 times = most_round < end ? (end - 1 - most_round) / period : 0;
    TtTime takes_ps = e->queue.now_ps - leap->at_ps;

    if (times == 0 || takes_ps > (TT_TIME_MAX / 2 - leap->offset_ps) / (TtTime)times) {
        leap->quiet_until = end; /* sizes change there, if it is not the end of all rounds */
        return;
    }
    repeat(e, leap, times, times * period);
    leap->offset_ps += takes_ps * (TtTime)times;
    leap->quiet_until = e->lanes[leap->counting].round + 1;
}

static void
begin_search(TtLeap *leap, guint64 round)
{
    leap->is_searching = TRUE;
    leap->is_saved = FALSE;
    leap->search_from = leap->save_next = round;
    leap->last_window_ps = 0;
}

/* Brent's search for a cycle (BIT 20, 1980): states are held against one saved at ever greater
 * distances. */
static gboolean
recurs(TtEngine *e, TtLeap *leap, guint64 round, guint64 least)
{
    guint64 state = state_of(e, leap);

    if (leap->is_saved && state == leap->state)
        return TRUE;
    if (round >= leap->save_next) {
        save(e, leap, state, least);
        leap->save_next = 2 * round - leap->search_from + 1;
    }
    return FALSE;
}

/* TRUE once two windows in a row took the same time, nearly. The state saved is that at the start of
 * the second. */
static gboolean
keeps_time(TtEngine *e, TtLeap *leap, guint64 round, guint64 least)
{
    TtTime takes_ps = e->queue.now_ps - leap->at_ps;
    double differ = fabs((double)(takes_ps - leap->last_window_ps)) / (double)takes_ps;

    if (round > leap->search_from + EXACT_ROUNDS) {
        if (round < leap->round + LEAP_WINDOW)
            return FALSE;
        if (leap->last_window_ps > 0 && differ <= TT_LEAP_TOLERANCE) {
            e->leaps->tolerance = MAX(e->leaps->tolerance, differ);
            return TRUE;
        }
        leap->last_window_ps = takes_ps;
    }
    save(e, leap, 0, least);
    return FALSE;
}

static void
consider(TtEngine *e, TtLeap *leap)
{
    const TtLane *lane = &e->lanes[leap->counting];
    guint32 iteration = e->ranks[lane->rank].iteration;
    guint64 least, most;

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
    if (lane->round < leap->search_from + EXACT_ROUNDS ? recurs(e, leap, lane->round, least)
                                                       : keeps_time(e, leap, lane->round, least)) {
        try_leap(e, leap, most);
        leap->is_searching = FALSE;
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
    result->leap_tolerance = self->leaps ? self->leaps->tolerance : 0;
}
