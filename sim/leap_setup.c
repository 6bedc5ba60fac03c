/* What of a run leaps by itself, and what is kept for it. */
#include "sim/leap.h"

#define FEW_ROUNDS     8  /* are not worth a look */
#define MAX_COMPONENTS 64 /* else the run is taken as one */

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
tt_leaps_init(TtEngine *self, double tolerance)
{
    TtLeaps *leaps;

    /* queues for workers and cores are not part of the state; connections must all be known */
    if (self->plan->n_rounds < FEW_ROUNDS || !self->is_connected || !self->uniform)
        return;
    leaps = self->leaps = g_new0(TtLeaps, 1);
    leaps->tolerance = tolerance;
    leaps->of_unit = g_new(guint32, MAX(1, self->n_units));
    leaps->lanes = g_new(guint32, self->total_lanes);
    leaps->busy_ps = g_new(TtTime, self->total_lanes);
    leaps->carried = g_new(guint64, MAX(1, self->n_connections));
    leaps->phase_ps = g_new0(TtTime, self->total_lanes + self->n_connections);
    leaps->saved_phase_ps = g_new0(TtTime, self->total_lanes + self->n_connections);
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
    g_free(leaps->phase_ps);
    g_free(leaps->saved_phase_ps);
    g_free(leaps);
}
