/* Picks the level, checks the request and holds every result against its lower bound. */
#include "sim/leap.h"
#include "sim/levels.h"
#include "sim/stretch.h"

#include <math.h>
#include <string.h>

GQuark
tt_sim_error_quark(void)
{
    return g_quark_from_static_string("tt-sim-error");
}

static const char *const level_names[TT_N_LEVELS] = { "bound", "hockney", "loggp", "flow" };

const char *
tt_level_name(TtLevel level)
{
    return level < TT_N_LEVELS ? level_names[level] : "?";
}

gboolean
tt_level_parse(const char *text, TtLevel *level, GError **error)
{
    for (guint l = 0; l < TT_N_LEVELS; l++) {
        if (g_ascii_strcasecmp(text, level_names[l]) == 0) {
            *level = l;
            return TRUE;
        }
    }
    g_set_error(error, TT_SIM_ERROR, TT_SIM_ERROR_USAGE,
                "unknown level \"%s\" (one of: bound, hockney, loggp, flow)", text);
    return FALSE;
}

void
tt_sim_result_clear(TtSimResult *result)
{
    g_free(result->limit);
    g_free(result->bottleneck);
    tt_timeline_free(result->timeline);
    memset(result, 0, sizeof *result);
}

/* Rounded down, so that the bound stays one. */
static TtTime
floor_ps(double seconds)
{
    double ps = floor(seconds * TT_PS_PER_S * (1 - 1e-12));

    return ps >= 9.2e18 ? TT_TIME_MAX : (TtTime)MAX(0, ps);
}

TtTime
tt_sim_bound_on_ps(const TtPlan *plan, const TtNetwork *net, char **limit)
{
    TtBound bound = tt_bound(plan, net);

    if (limit)
        *limit = g_steal_pointer(&bound.limit);
    g_free(bound.limit);
    return floor_ps(MAX(bound.latency_s, bound.bandwidth_s));
}

/* Every transfer rounds to a whole picosecond, maybe down, and every end of a sharing flow: the
 * most a rank's messages can have gained. */
static TtTime
rounding_ps(const TtEngine *engine)
{
    return (TtTime)(2 + 2 * engine->most_steps) + engine->end_ps / 1000000000;
}

static gboolean
check_bound(const TtEngine *engine, const char *name, GError **error)
{
    TtBound bound = tt_bound(engine->plan, engine->net);
    TtTime rounding = rounding_ps(engine);
    TtTime bucket_ps = tt_flows_bucket_ps(engine->flows);
    TtTime first_ps = floor_ps(MAX(bound.latency_s, bound.bandwidth_s)) - bucket_ps;
    TtTime all_ps = floor_ps(bound.bandwidth_s * engine->iterations) - bucket_ps;
    gboolean good = engine->first_end_ps + rounding >= first_ps &&
                    engine->end_ps + rounding * engine->iterations >= all_ps;

    if (!good)
        g_set_error(error, TT_SIM_ERROR, TT_SIM_ERROR_UNDER_BOUND,
                    "%s: simulated %.6f us, but nothing can be faster than %.6f us (%s): a bug of "
                    "the simulator, please report it",
                    name ? name : engine->plan->name, engine->first_end_ps / 1e6, first_ps / 1e6,
                    bound.limit);
    g_free(bound.limit);
    return good;
}

/* Steady state: the distance of the ends of iterations, to the nearest picosecond. */
static TtTime
time_per_iteration_ps(const TtEngine *engine)
{
    TtTime n = engine->iterations - 1;

    if (n == 0)
        return engine->end_ps;
    return (engine->end_ps - engine->first_end_ps + n / 2) / n;
}

/* Ranks and switches of which nothing was simulated. */
static guint
count_folded(const TtEngine *engine)
{
    g_autofree guint8 *simulated = g_new0(guint8, engine->n_agents);
    guint n = engine->n_agents;

    for (guint32 r = 0; r < engine->n_ranks; r++) {
        n -= !simulated[engine->ranks[r].agent];
        simulated[engine->ranks[r].agent] = TRUE;
    }
    return n;
}

static gboolean
run_flow(const TtPlan *plan, const TtNetwork *net, const TtSimOptions *options, TtSimResult *result,
         GError **error)
{
    TtSimOptions again = *options;
    TtEngine engine;
    GError *cause = NULL;
    gboolean good = tt_engine_init(&engine, plan, net, options, &cause) &&
                    tt_engine_run_long(&engine, options->leap_tolerance, &cause) &&
                    check_bound(&engine, options->name, &cause);

    if (!good && engine.is_folded) { /* who waits for whom, nobody folded away, will be told then */
        g_clear_error(&cause);
        tt_engine_clear(&engine);
        again.whole = TRUE;
        return run_flow(plan, net, &again, result, error);
    }
    if (!good) {
        g_propagate_error(error, cause);
    } else {
        result->time_ps = time_per_iteration_ps(&engine);
        result->bound_ps = MAX(0, result->bound_ps - tt_flows_bucket_ps(engine.flows));
        result->n_messages = engine.n_messages;
        result->n_events = engine.n_events;
        result->folded_ranks = count_folded(&engine);
        tt_leaps_report(&engine, result);
        result->bottleneck = tt_record_bottleneck(&engine);
        if (options->record)
            result->timeline = tt_record_timeline(&engine);
    }
    tt_engine_clear(&engine);
    return good;
}

gboolean
tt_sim_run_on(const TtPlan *plan, const TtNetwork *net, const TtSimOptions *options,
              TtSimResult *result, GError **error)
{
    g_autoptr(TtProfile) ideal = tt_profile_ideal();
    TtNetwork bare = tt_network_without_memory(net);
    TtSimOptions filled = *options;
    TtSimResult out = { 0 };

    if (plan->spec.n_ranks > net->n_ranks) {
        g_set_error(error, TT_SIM_ERROR, TT_SIM_ERROR_USAGE,
                    "the plan has %u ranks, the topology only %u", plan->spec.n_ranks,
                    net->n_ranks);
        return FALSE;
    }
    if (filled.level == TT_LEVEL_LOGGP) {
        g_set_error(error, TT_SIM_ERROR, TT_SIM_ERROR_USAGE,
                    "level loggp is the closed form of a library: it goes with --library nccl");
        return FALSE;
    }
    if (!filled.profile)
        filled.profile = ideal;
    if (filled.profile->covers_memory)
        net = &bare;
    out.bound_ps = tt_sim_bound_on_ps(plan, net, &out.limit);
    out.time_ps = out.bound_ps;
    if ((filled.level == TT_LEVEL_HOCKNEY &&
         !tt_hockney_ps(plan, net, filled.profile, &out.time_ps, error)) ||
        (filled.level == TT_LEVEL_FLOW && !run_flow(plan, net, &filled, &out, error))) {
        tt_sim_result_clear(&out);
        return FALSE;
    }
    /* a closed form knows nothing of flows that share a link */
    out.time_ps = MAX(out.time_ps, filled.level == TT_LEVEL_HOCKNEY ? out.bound_ps : 0);
    *result = out;
    return TRUE;
}
