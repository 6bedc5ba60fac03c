/* The state of one component, seen from the round its counting lane is in and from now. */
#include "sim/leap.h"
#include "sim/partition.h"

#include <string.h>

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
queue_state(const TtEngine *e, guint32 connection)
{
    const TtConnection *c = &e->connections[connection];
    guint64 look = tt_mix(connection, (guint64)c->free_slots << 32 | c->n_arrived);

    if (c->first == TT_IDLE)
        return tt_mix(look, TT_IDLE);
    for (guint32 node = c->first; node != TT_NONE; node = e->posted[node].next)
        look = tt_mix(look, e->posted[node].bytes);
    return look;
}

static gboolean
is_of(const TtEngine *e, const TtLeap *leap, guint32 connection)
{
    return tt_leap_of_lane(e, e->connections[connection].writer) == leap;
}

/* Calls @visit for what is due in the component but ends of flows, which are in the flows' states. */
static void
visit_events(const TtEngine *e, const TtLeap *leap,
             void (*visit)(const TtEngine *, const TtSimEvent *, gpointer), gpointer data)
{
    for (guint b = 1; b < G_N_ELEMENTS(e->queue.bucket); b++) {
        for (gsize i = 0; i < e->queue.bucket[b].n; i++) {
            const TtSimEvent *event = &e->queue.bucket[b].at[i];
            guint kind = event->kind & ((1u << TT_KIND_BITS) - 1);

            if (kind < TT_FLOW_N_KINDS)
                continue;
            if (kind == TT_EVENT_WORK_DONE ? tt_leap_of_lane(e, event->index) == leap
                                           : is_of(e, leap, event->index))
                visit(e, event, data);
        }
    }
}

/* Sums, since the order of what is due at one instant makes no difference. */
static void
add_exact(const TtEngine *e, const TtSimEvent *event, gpointer sum)
{
    *(guint64 *)sum +=
        tt_mix(tt_mix(event->kind, event->index), (guint64)(event->time_ps - e->queue.now_ps));
}

static void
add_rough(const TtEngine *e, const TtSimEvent *event, gpointer sum)
{
    (void)e;
    *(guint64 *)sum += tt_mix(event->kind, event->index);
}

guint64
tt_leap_state(const TtEngine *e, const TtLeap *leap)
{
    guint64 sum = lanes_state(e, leap);

    for (guint32 c = 0; c < e->n_connections; c++) {
        if (!is_of(e, leap, c))
            continue;
        sum += tt_mix(queue_state(e, c), tt_flows_state(e->flows, c));
        if (e->paces)
            sum += tt_mix(c, (guint64)MAX(0, e->paces[c].next_ps - e->queue.now_ps));
    }
    visit_events(e, leap, add_exact, &sum);
    return sum;
}

guint64
tt_leap_rough_state(const TtEngine *e, const TtLeap *leap)
{
    guint64 sum = lanes_state(e, leap);

    for (guint32 c = 0; c < e->n_connections; c++)
        if (is_of(e, leap, c))
            sum += tt_mix(queue_state(e, c), tt_flows_left_ps(e->flows, c) < 0);
    visit_events(e, leap, add_rough, &sum);
    return sum;
}

static void
add_phase(const TtEngine *e, const TtSimEvent *event, gpointer phases)
{
    TtTime *phase_ps = phases;
    guint kind = event->kind & ((1u << TT_KIND_BITS) - 1);

    phase_ps[kind == TT_EVENT_WORK_DONE ? event->index : e->total_lanes + event->index] +=
        event->time_ps - e->queue.now_ps;
}

void
tt_leap_phases(const TtEngine *e, const TtLeap *leap, TtTime *phase_ps)
{
    for (guint32 i = leap->first_lane; i < leap->first_lane + leap->n_lanes; i++)
        phase_ps[e->leaps->lanes[i]] = 0;
    for (guint32 c = 0; c < e->n_connections; c++)
        if (is_of(e, leap, c))
            phase_ps[e->total_lanes + c] = MAX(0, tt_flows_left_ps(e->flows, c));
    visit_events(e, leap, add_phase, phase_ps);
}

TtTime
tt_leap_drift_ps(const TtEngine *e, const TtLeap *leap)
{
    const TtLeaps *leaps = e->leaps;
    TtTime most_ps = 0;

    tt_leap_phases(e, leap, leaps->phase_ps);
    for (guint32 i = leap->first_lane; i < leap->first_lane + leap->n_lanes; i++) {
        guint32 at = leaps->lanes[i];

        most_ps = MAX(most_ps, ABS(leaps->phase_ps[at] - leaps->saved_phase_ps[at]));
    }
    for (guint32 c = 0; c < e->n_connections; c++) {
        guint32 at = e->total_lanes + c;

        if (is_of(e, leap, c))
            most_ps = MAX(most_ps, ABS(leaps->phase_ps[at] - leaps->saved_phase_ps[at]));
    }
    return most_ps;
}
