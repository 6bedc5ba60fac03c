/* Allocates a run and finds connections, workers, cores and step costs. */
#include "sim/fold.h"
#include "sim/leap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

G_STATIC_ASSERT(TT_PROFILE_OPS == TT_N_OPS);
G_STATIC_ASSERT(sizeof(TtLane) == 64);

#define NO_FOOTPRINT (-1.0)

/* --- costs -------------------------------------------------------------------------------------
 */

static double
footprint_bytes(const TtPlan *plan, guint rank, gboolean in_place)
{
    guint64 input = tt_plan_buffer_range(plan, rank, TT_INPUT).count;
    guint64 output = tt_plan_buffer_range(plan, rank, TT_OUTPUT).count;
    double elements = in_place ? (double)MAX(input, output) : (double)input + (double)output;

    return elements * tt_type_bytes(plan->spec.type);
}

/* The row for this footprint; ranks have one or two different ones, so the search is short. */
static guint32
cost_row(TtEngine *self, double footprint)
{
    TtStepCost *row;

    for (guint32 i = 0; i < self->n_costs; i++)
        if (self->costs[i].footprint_bytes == footprint)
            return i;
    self->costs = g_renew(TtStepCost, self->costs, self->n_costs + 1);
    row = &self->costs[self->n_costs];
    row->footprint_bytes = footprint;
    for (guint op = 0; op < TT_N_OPS; op++) {
        /* A cost is fixed + bytes * per_byte, so two values tell both. */
        double fixed = tt_profile_op_s(self->profile, op, 0, footprint);
        double big = tt_profile_op_s(self->profile, op, G_GUINT64_CONSTANT(1) << 40, footprint);

        row->fixed_s[op] = fixed;
        row->per_byte_s[op] = (big - fixed) / (double)(G_GUINT64_CONSTANT(1) << 40);
        if (big > 0)
            self->is_free = FALSE;
    }
    return self->n_costs++;
}

/* The row of switches. */
static guint32
free_row(TtEngine *self)
{
    for (guint32 i = 0; i < self->n_costs; i++)
        if (self->costs[i].footprint_bytes == NO_FOOTPRINT)
            return i;
    self->costs = g_renew(TtStepCost, self->costs, self->n_costs + 1);
    self->costs[self->n_costs] = (TtStepCost){ .footprint_bytes = NO_FOOTPRINT };
    return self->n_costs++;
}

static void
init_hops(TtEngine *self)
{
    const TtProfile *profile = self->profile;

    for (guint hop = 0; hop < TT_N_HOPS; hop++) {
        self->wire_factor[hop] = profile->hop_wire_factor[hop] > 0 ? profile->hop_wire_factor[hop]
                                 : profile->wire_factor > 0        ? profile->wire_factor
                                                                   : 1;
        self->hop_latency_ps[hop] = tt_seconds_to_ps(profile->hop_latency_s[hop]);
        self->hop_gap_ps[hop] = tt_seconds_to_ps(profile->hop_gap_s[hop]);
        self->has_hops |= profile->hop_latency_s[hop] > 0 || profile->hop_gap_s[hop] > 0 ||
                          profile->hop_bytes_per_s[hop] > 0;
    }
}

static void
init_costs(TtEngine *self, gboolean in_place)
{
    double message = (double)tt_plan_max_message_bytes(self->plan);

    self->is_free = TRUE;
    self->credit_ps = tt_seconds_to_ps(self->profile->credit_s);
    self->latency_ps = tt_seconds_to_ps(self->profile->latency_s);
    self->start_ps = tt_seconds_to_ps(self->profile->start_s);
    self->switch_ps = tt_seconds_to_ps(self->profile->switch_s);
    init_hops(self);
    for (guint32 r = 0; r < self->n_ranks; r++) {
        double touched = footprint_bytes(self->plan, r, in_place);

        if (self->ranks[r].is_switch) {
            self->ranks[r].cost = free_row(self);
            continue;
        }

        self->ranks[r].cost = cost_row(
            self, tt_profile_footprint(self->profile, touched, self->plan->n_rounds, message));
    }
}

static const TtResource idle_resource = {
    .n_free = 1, .first = TT_NONE, .last = TT_NONE, .last_rank = TT_NONE
};

static void
init_cores(TtEngine *self)
{
    guint per_node = self->net->ranks_per_node;
    guint n_nodes = (self->plan->spec.n_ranks + per_node - 1) / per_node;

    if (self->profile->cores == 0 ||
        MIN(per_node, self->plan->spec.n_ranks) <= self->profile->cores)
        return;
    self->n_cores = n_nodes * self->profile->cores;
    self->cores = g_new(TtResource, self->n_cores);
    for (guint32 c = 0; c < self->n_cores; c++)
        self->cores[c] = idle_resource;
}

/* The executor's own choice, for the nodes of this network. */
static void
init_passing(TtEngine *self, gboolean in_place)
{
    const TtProfile *profile = self->profile;
    double least = self->n_cores > 0 ? profile->direct_crowded_bytes : profile->direct_bytes;
    gsize first = 0;

    if (!(least > 0) || (double)tt_plan_max_message_bytes(self->plan) < least)
        return;
    self->passed = tt_passing_of_plan(self->plan, self->net->ranks_per_node, in_place);
    if (!self->passed)
        return;
    self->direct_bytes = (guint64)least;
    self->passed_first = g_new(gsize, MAX(1, self->total_lanes));
    self->n_unread = g_new0(guint32, MAX(1, self->total_lanes));
    for (guint32 i = 0; i < self->total_lanes; i++) {
        self->passed_first[i] = first;
        first += self->lanes[i].n_steps;
    }
}

/* --- lanes -------------------------------------------------------------------------------------
 */

static void
init_lanes(TtEngine *self)
{
    const TtPlan *plan = self->plan;

    for (guint32 i = 0; i < self->total_lanes; i++) {
        TtLane *lane = &self->lanes[i];

        lane->rank = i / self->n_lanes;
        lane->lane = (guint16)(i % self->n_lanes);
        lane->program = tt_plan_program(plan, lane->rank, tt_plan_channel(plan, lane->lane));
        lane->n_steps = tt_plan_n_steps(plan, lane->rank, lane->lane);
    }
    for (guint32 r = 0; r < self->n_ranks; r++) {
        TtRank *rank = &self->ranks[r];
        guint64 steps = 0;

        *rank = (TtRank){ .agent = r,
                          .first_lane = r * self->n_lanes,
                          .n_lanes = self->n_lanes,
                          .is_switch = r >= plan->spec.n_ranks,
                          .workers = idle_resource };
        rank->workers.n_free =
            self->profile->workers_per_rank ? self->profile->workers_per_rank : TT_NONE;
        for (guint32 i = 0; i < rank->n_lanes; i++)
            steps += self->lanes[rank->first_lane + i].n_steps;
        self->most_steps = MAX(self->most_steps, steps * plan->n_rounds);
    }
}

TtLane *
tt_new_lanes(gsize n)
{
    TtLane *lanes = aligned_alloc(sizeof *lanes, MAX(1, n) * sizeof *lanes);

    if (lanes)
        memset(lanes, 0, n * sizeof *lanes);
    return lanes;
}

static gboolean
allocate(TtEngine *self, GError **error)
{
    gsize n = self->total_lanes;
    double roles = 2.0 * (double)n * self->n_roles;

    self->lanes = tt_new_lanes(n);
    self->work = g_try_new0(TtLaneWork, n);
    self->ready = g_try_new(guint32, n);
    self->ranks = g_try_new0(TtRank, self->n_ranks);
    self->waiters = g_try_new0(guint32, self->n_units);
    self->by_role = roles < 1e12 ? g_try_new0(guint32, MAX(1, (gsize)roles)) : NULL;
    if (self->lanes && self->work && self->ready && self->ranks && self->waiters && self->by_role)
        return TRUE;
    g_set_error(error, TT_SIM_ERROR, TT_SIM_ERROR_USAGE,
                "%s on %u ranks: no memory for %" G_GSIZE_FORMAT
                " lanes of %u roles (%.1f GiB); use --level hockney or fewer ranks",
                self->plan->name, self->n_ranks, n, self->n_roles,
                (roles * 4 + (double)n * sizeof(TtLane)) / 0x1p30);
    return FALSE;
}

static guint64
mean_piece_bytes(const TtPlan *plan)
{
    unsigned __int128 n =
        (unsigned __int128)plan->n_chunks * plan->spec.n_channels * plan->n_rounds;
    guint64 bytes = plan->spec.count * tt_type_bytes(plan->spec.type);

    return (guint64)((bytes + n - 1) / n);
}

/* Is every switch of the plan there, and in reach of its ranks? */
static gboolean
check_switches(const TtEngine *self, GError **error)
{
    const TtPlanSpec *spec = &self->plan->spec;

    for (guint agent = spec->n_ranks; agent < self->n_agents; agent++) {
        TtSwitchPlace place = tt_plan_switch(self->plan, agent);
        guint rank = place.is_network ? 0 : place.node * spec->group_size;
        TtLink links[TT_MAX_ROUTE];

        if (self->net->switch_route &&
            self->net->switch_route(self->net->context, rank,
                                    place.is_network ? TT_NETWORK_SWITCH : place.node, TRUE,
                                    links) != TT_NO_ROUTE)
            continue;
        if (place.is_network)
            g_set_error(error, TT_SIM_ERROR, TT_SIM_ERROR_USAGE,
                        "%s: reduces in the network, but rank 0 has no NIC to reach it",
                        self->plan->name);
        else
            g_set_error(error, TT_SIM_ERROR, TT_SIM_ERROR_USAGE,
                        "%s: node %u has no switch that reduces (an NVSwitch next to every GPU)",
                        self->plan->name, place.node);
        return FALSE;
    }
    return TRUE;
}

gboolean
tt_engine_init(TtEngine *self, const TtPlan *plan, const TtNetwork *net,
               const TtSimOptions *options, GError **error)
{
    memset(self, 0, sizeof *self);
    self->plan = plan;
    self->net = net;
    self->profile = options->profile;
    self->n_ranks = self->n_agents = tt_plan_n_agents(plan);
    self->n_lanes = plan->n_lanes;
    self->lanes_per_channel = plan->lanes_per_channel;
    self->n_rounds = plan->n_rounds;
    self->n_roles = plan->n_roles;
    self->iterations = MAX(1, options->iterations);
    self->element_bytes = tt_type_bytes(plan->spec.type);
    self->even_bytes = options->even_pieces ? mean_piece_bytes(plan) : 0;
    self->uniform = self->even_bytes > 0 || plan->spec.count % plan->n_chunks == 0;
    self->free_posted = TT_NONE;
    self->ranks_left = self->n_ranks;
    self->record_from_ps = TT_TIME_MAX;

    if ((guint64)self->n_ranks * self->n_lanes >= G_MAXINT32) {
        g_set_error(error, TT_SIM_ERROR, TT_SIM_ERROR_USAGE,
                    "%u ranks of %u lanes are too many to simulate (at most 2^31 lanes)",
                    self->n_ranks, self->n_lanes);
        return FALSE;
    }
    self->total_lanes = self->n_ranks * self->n_lanes;
    self->n_units = self->n_ranks * plan->spec.n_channels;
    tt_event_queue_init(&self->queue);
    if (!check_switches(self, error) || !allocate(self, error))
        return FALSE;
    if (options->record) {
        self->watch = g_new0(TtWatch, self->total_lanes);
        self->events = g_array_new(FALSE, FALSE, sizeof(TtEvent));
        self->rates = g_array_new(FALSE, FALSE, sizeof(TtRateChange));
    }
    self->flows = tt_flows_new(net, &self->queue, self->rates);
    init_lanes(self);
    init_costs(self, options->in_place);
    init_cores(self);
    init_passing(self, options->in_place);
    self->is_timed =
        !self->is_free || self->start_ps > 0 || self->profile->lane_pushes || self->n_cores > 0;
    self->all_lanes = self->total_lanes;
    if (!options->whole && !net->has_bursts) { /* a bucket remembers: rounds are not alike */
        tt_engine_fold(self);
        tt_leaps_init(self,
                      options->leap_tolerance > 0 ? options->leap_tolerance : TT_LEAP_TOLERANCE);
    }
    return TRUE;
}

void
tt_engine_rewind(TtEngine *self, guint64 n_rounds)
{
    double tolerance = self->leaps ? self->leaps->tolerance : 0;

    tt_event_queue_clear(&self->queue);
    tt_flows_rewind(self->flows);
    memset(self->work, 0, self->total_lanes * sizeof *self->work);
    for (guint32 c = 0; self->paces && c < self->n_connections; c++)
        self->paces[c].next_ps = 0;
    if (self->lent)
        memset(self->lent, 0, self->n_connections * sizeof *self->lent);
    for (guint32 r = 0; r < self->n_ranks; r++)
        self->ranks[r].iteration = 0;
    self->ranks_left = self->n_ranks;
    self->record_from_ps = TT_TIME_MAX;
    self->first_end_ps = self->end_ps = 0;
    self->n_messages = 0;
    self->n_rounds = n_rounds;
    if (self->leaps) {
        g_clear_pointer(&self->leaps, tt_leaps_free);
        tt_leaps_init(self, tolerance);
    }
}

void
tt_engine_clear(TtEngine *self)
{
    tt_event_queue_clear(&self->queue);
    tt_flows_free(self->flows);
    free(self->lanes);
    g_free(self->work);
    g_free(self->ready);
    g_free(self->ranks);
    g_free(self->waiters);
    g_free(self->by_role);
    g_free(self->by_peers);
    g_free(self->connections);
    g_free(self->paces);
    g_free(self->lent);
    g_free(self->passed);
    g_free(self->passed_first);
    g_free(self->n_unread);
    tt_leaps_free(self->leaps);
    g_free(self->unit_weight);
    g_free(self->connection_weight);
    g_free(self->posted);
    g_free(self->cores);
    g_free(self->costs);
    g_free(self->watch);
    if (self->events)
        g_array_unref(self->events);
    if (self->rates)
        g_array_unref(self->rates);
    memset(self, 0, sizeof *self);
}
