/* What a run has to tell: the timeline, the busiest link, who waits for whom in a deadlock. */
#include "sim/engine.h"

#include <math.h>

#define MAX_COUNTERS      32  /* link tracks in a timeline: the busiest */
#define MAX_DEADLOCK_HOPS 8   /* links of the chain of waiting that an error spells out */
#define BUSY_ENOUGH       0.5 /* a resource busier than this is what limits */

/* --- steps -------------------------------------------------------------------------------------
 */

static guint32
agent_of(const TtEngine *self, guint32 lane_index)
{
    return self->ranks[self->lanes[lane_index].rank].agent;
}

void
tt_record_step(TtEngine *self, guint32 lane_index)
{
    const TtLane *lane = &self->lanes[lane_index];
    const TtWatch *watch = &self->watch[lane_index];
    TtEvent event = {
        .rank = self->ranks[lane->rank].agent,
        .lane = lane->lane,
        .op = lane->op,
        .step = lane->step,
        .round = (guint32)lane->round,
        .recv_peer = TT_NO_RANK,
        .send_peer = TT_NO_RANK,
        .bytes = lane->bytes,
        .begin_ps = watch->begin_ps,
        .end_ps = self->queue.now_ps,
        .wait_ps = watch->work_ps - watch->begin_ps,
        .wait_for = watch->longest_for,
    };

    if (lane->recv != TT_NONE)
        event.recv_peer = agent_of(self, self->connections[lane->recv].writer);
    if (lane->send != TT_NONE)
        event.send_peer = agent_of(self, self->connections[lane->send].reader);
    g_array_append_val(self->events, event);
}

/* --- links -------------------------------------------------------------------------------------
 */

typedef struct {
    TtLink link;
    double busy_s; /* bytes / capacity */
} Busy;

static int
busier_first(gconstpointer a, gconstpointer b)
{
    const Busy *x = a, *y = b;

    if (x->busy_s != y->busy_s)
        return x->busy_s > y->busy_s ? -1 : 1;
    return (x->link > y->link) - (x->link < y->link);
}

/* Links that carried anything and can limit, busiest first. Caller frees. */
static GArray *
busy_links(const TtEngine *self)
{
    g_autofree double *bytes = g_new0(double, MAX(1, self->net->n_links));
    GArray *links = g_array_new(FALSE, FALSE, sizeof(Busy));

    tt_flows_add_bytes(self->flows, bytes);
    for (TtLink l = 0; l < self->net->n_links; l++) {
        if (bytes[l] > 0) {
            TtLinkInfo info = self->net->link(self->net->context, l);
            Busy busy = { l, bytes[l] / info.capacity_bytes_per_s };

            g_array_append_val(links, busy);
        }
    }
    g_array_sort(links, busier_first);
    return links;
}

/* Time ranks' lanes spent on steps, as a share of all lanes' time. */
static double
work_share(const TtEngine *self)
{
    double busy_s = 0, all_s = tt_ps_to_seconds(self->end_ps) * (double)self->all_lanes;

    for (guint32 i = 0; i < self->total_lanes; i++) {
        guint32 weight = self->unit_weight ? self->unit_weight[i / self->lanes_per_channel] : 1;

        busy_s += tt_ps_to_seconds(self->work[i].busy_ps) * weight;
    }
    if (self->is_folded) /* one lane of every rank worked its start off; which, classes do not tell */
        busy_s += tt_ps_to_seconds(self->start_ps) * self->plan->spec.n_ranks * self->iterations;
    return all_s > 0 ? busy_s / all_s : 0;
}

char *
tt_record_bottleneck(const TtEngine *self)
{
    g_autoptr(GArray) links = busy_links(self);
    double link_share = 0, work = work_share(self), run_s = tt_ps_to_seconds(self->end_ps);

    if (self->end_ps == 0)
        return NULL;
    if (links->len > 0)
        link_share = g_array_index(links, Busy, 0).busy_s / run_s;
    if (link_share >= BUSY_ENOUGH && link_share >= work * 0.9) {
        TtLink link = g_array_index(links, Busy, 0).link;
        g_autofree char *name = self->net->link_name(self->net->context, link);

        return g_strdup_printf("link %s, %.0f %% busy", name, 100 * MIN(1, link_share));
    }
    if (work >= BUSY_ENOUGH)
        return g_strdup_printf("steps: lanes worked %.0f %% of the time", 100 * MIN(1, work));
    return g_strdup_printf("latency: lanes waited %.0f %% of the time", 100 * (1 - work));
}

/* --- link counters -----------------------------------------------------------------------------
 */

/* The load of one link over time, as a counter of the timeline. */
typedef struct {
    TtCounter *counter;
    double capacity, load;
    gint64 last_ps;
} Track;

static void
track_add(Track *track, gint64 time_ps, double change)
{
    double value;

    track->load += change;
    value = track->load / track->capacity;
    if (fabs(value) < 1e-9) /* what rounding leaves when the last flow has gone */
        value = track->load = 0;
    if (track->counter->value->len > 0 && track->last_ps == time_ps)
        g_array_index(track->counter->value, double, track->counter->value->len - 1) = value;
    else
        tt_counter_add(track->counter, time_ps, value);
    track->last_ps = time_ps;
}

static GArray *
new_tracks(const TtEngine *self, TtTimeline *timeline, guint32 *track_of)
{
    g_autoptr(GArray) links = busy_links(self);
    GArray *tracks = g_array_new(FALSE, TRUE, sizeof(Track));

    for (guint i = 0; i < MIN(links->len, MAX_COUNTERS); i++) {
        TtLink link = g_array_index(links, Busy, i).link;
        g_autofree char *name = self->net->link_name(self->net->context, link);
        Track track = { .counter = tt_timeline_add_counter(timeline, name),
                        .capacity =
                            self->net->link(self->net->context, link).capacity_bytes_per_s };

        g_array_append_val(tracks, track);
        track_of[link] = tracks->len;
    }
    return tracks;
}

/* Replays the changes of rate. Changes before the last iteration only set the load it starts with.
 */
static void
add_link_counters(TtEngine *self, TtTimeline *timeline)
{
    g_autofree guint32 *track_of = g_new0(guint32, MAX(1, self->net->n_links));
    g_autofree double *rate = g_new0(double, MAX(1, self->n_connections));
    g_autoptr(GArray) tracks = new_tracks(self, timeline, track_of);

    for (guint i = 0; i < self->rates->len; i++) {
        const TtRateChange *change = &g_array_index(self->rates, TtRateChange, i);
        TtLink links[TT_MAX_ROUTE];
        guint n = tt_flows_links(self->flows, change->flow, links);

        for (guint l = 0; l < n; l++)
            if (track_of[links[l]])
                track_add(&g_array_index(tracks, Track, track_of[links[l]] - 1),
                          MAX(0, change->time_ps - self->record_from_ps),
                          change->rate_bytes_per_s - rate[change->flow]);
        rate[change->flow] = change->rate_bytes_per_s;
    }
}

TtTimeline *
tt_record_timeline(TtEngine *self)
{
    g_autofree char *size = tt_format_bytes(self->plan->spec.count * self->element_bytes);
    g_autofree char *title = g_strdup_printf("%s %s, %u ranks, %s, predicted", self->plan->name,
                                             tt_collective_name(self->plan->spec.collective),
                                             self->plan->spec.n_ranks, size ? size : "?");
    TtTimeline *timeline = tt_timeline_new(title);

    for (guint i = 0; i < self->events->len; i++) {
        TtEvent *event = &g_array_index(self->events, TtEvent, i);

        event->begin_ps -= self->record_from_ps;
        event->end_ps -= self->record_from_ps;
    }
    g_array_append_vals(timeline->events, self->events->data, self->events->len);
    add_link_counters(self, timeline);
    tt_timeline_sort(timeline);
    return timeline;
}

/* --- deadlock ----------------------------------------------------------------------------------
 */

/* Appends what a lane waits for; returns the lane that would have to move first, or TT_NONE. */
static guint32
describe_wait(const TtEngine *self, guint32 index, GString *text)
{
    const TtLane *lane = &self->lanes[index];
    guint32 other = TT_NONE;

    g_string_append_printf(text, "rank %u lane %u step %u (%s) waits for ", agent_of(self, index),
                           lane->lane, lane->step, tt_op_name(lane->op));
    switch (lane->state) {
    case TT_LANE_MESSAGE:
        other = self->connections[lane->recv].writer;
        g_string_append_printf(text, "a message from rank %u", agent_of(self, other));
        break;
    case TT_LANE_SLOT:
        other = self->connections[lane->send].reader;
        g_string_append_printf(text, "a free slot to rank %u", agent_of(self, other));
        break;
    case TT_LANE_DEPENDENCY:
        other = (guint32)((gint64)index + lane->dep_lane - lane->lane);
        g_string_append_printf(text, "its lane %u to finish step %u", lane->dep_lane,
                               lane->dep_step);
        break;
    default: g_string_append(text, "its rank's turn"); break;
    }
    return other;
}

/* Follows the waiting from the first lane that hangs, until it bites its tail. */
char *
tt_record_deadlock(const TtEngine *self)
{
    GString *text = g_string_new(NULL);
    guint32 index = 0;

    while (index + 1 < self->total_lanes && self->lanes[index].state == TT_LANE_FINISHED)
        index++;
    for (guint hop = 0; hop < MAX_DEADLOCK_HOPS; hop++) {
        guint32 other;

        if (hop > 0)
            g_string_append(text, "; ");
        other = describe_wait(self, index, text);
        if (other == TT_NONE)
            break;
        index = other;
        if (self->lanes[index].state == TT_LANE_FINISHED) {
            g_string_append_printf(text, "; rank %u lane %u has finished", agent_of(self, index),
                                   self->lanes[index].lane);
            break;
        }
    }
    return g_string_free(text, FALSE);
}
