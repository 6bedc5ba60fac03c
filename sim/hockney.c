/* The textbook's answer: an algorithm's closed form with the slowest route of those it uses. */
#include "sim/levels.h"

#include <math.h>

/* The largest latency and smallest bandwidth among the routes of a plan's connections. */
static void
slowest_route(const TtPlan *plan, const TtNetwork *net, TtTime *latency_ps, double *bytes_per_s)
{
    *latency_ps = 0;
    *bytes_per_s = INFINITY;
    for (guint rank = 0; rank < plan->spec.n_ranks; rank++) {
        for (guint channel = 0; channel < plan->spec.n_channels; channel++) {
            for (guint role = 0; role < plan->n_roles; role++) {
                guint peer = tt_plan_peer(plan, rank, channel * plan->lanes_per_channel, role);

                if (peer >= plan->spec.n_ranks || peer == rank)
                    continue;
                *latency_ps = MAX(*latency_ps, tt_network_latency_ps(net, rank, peer));
                *bytes_per_s = MIN(*bytes_per_s, tt_network_bytes_per_s(net, rank, peer));
            }
        }
    }
}

gboolean
tt_hockney_ps(const TtPlan *plan, const TtNetwork *net, const TtProfile *profile, TtTime *time_ps,
              GError **error)
{
    TtTime latency_ps;
    double bytes_per_s, seconds;

    if (!plan->algo->time_s) {
        g_set_error(error, TT_SIM_ERROR, TT_SIM_ERROR_USAGE,
                    "%s has no closed form; use --level flow", plan->name);
        return FALSE;
    }
    slowest_route(plan, net, &latency_ps, &bytes_per_s);
    seconds = plan->algo->time_s(plan, tt_ps_to_seconds(latency_ps) + profile->latency_s,
                                 1 / bytes_per_s);
    if (isnan(seconds)) {
        g_set_error(error, TT_SIM_ERROR, TT_SIM_ERROR_USAGE,
                    "%s has no closed form for %u ranks, %u channels and %" G_GUINT64_FORMAT
                    " rounds; use --level flow",
                    plan->name, plan->spec.n_ranks, plan->spec.n_channels, plan->n_rounds);
        return FALSE;
    }
    *time_ps = tt_seconds_to_ps(seconds + profile->start_s);
    return TRUE;
}
