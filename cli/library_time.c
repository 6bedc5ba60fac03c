/* How long NCCL takes for what it chose: by the simulator, by the closed form, or at least. */
#include "cli/library.h"

#include <math.h>

TtNcclCall
tt_library_call(const TtLibrary *library, const TtCase *c, guint root, const TtNcclChoice *choice)
{
    return (TtNcclCall){ .op = tt_library_op(library, c),
                         .choice = *choice,
                         .type = c->type,
                         .redop = c->redop,
                         .root = root };
}

const char *
tt_library_time_source(TtLevel level, GError **error)
{
    switch (level) {
    case TT_LEVEL_BOUND: return "times are lower bounds: no algorithm can be faster here";
    case TT_LEVEL_LOGGP:
        return "times by the closed form of NCCL's schedules, as if all links were shared evenly";
    case TT_LEVEL_FLOW:
        return "times by simulating the plan NCCL would run, with step costs fitted to "
               "measurements";
    default:
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "--level %s has no figures for NCCL's steps: use flow, loggp or bound",
                    tt_level_name(level));
        return NULL;
    }
}

/* What no algorithm can beat, for the collective itself. A closed form does without a plan. */
static gboolean
find_bound(const TtNcclPlace *place, const TtNcclCall *call, TtLevel level, TtLibraryTime *time,
           GError **error)
{
    gboolean need = level != TT_LEVEL_LOGGP;
    g_autoptr(TtPlan) plan = tt_nccl_plan(place->comm, call, need ? error : NULL);

    time->bound_us = NAN;
    if (!plan && need)
        g_prefix_error(error, "no plan to simulate (--level loggp may do without): ");
    if (!plan)
        return !need;
    time->bound_us = tt_nccl_bound_ps(place, call, plan, &time->limit) / 1e6;
    return TRUE;
}

static gboolean
simulate(const TtNcclPlace *place, const TtNcclCall *call, gboolean record, TtLibraryTime *time,
         GError **error)
{
    TtSimResult result;
    double recorded_us;

    if (!tt_nccl_flow_us(place, call, FALSE, &time->time_us, &result, error))
        return FALSE;
    time->bottleneck = g_steal_pointer(&result.bottleneck);
    tt_sim_result_clear(&result);
    if (!record)
        return TRUE;
    /* Once more, every rank by itself: the row is the same whether it is recorded or not. */
    if (!tt_nccl_flow_us(place, call, TRUE, &recorded_us, &result, error))
        return FALSE;
    time->timeline = g_steal_pointer(&result.timeline);
    tt_sim_result_clear(&result);
    return TRUE;
}

/* A closed form knows nothing of the fabric; no time is under the bound. */
static gboolean
calculate(const TtNcclPlace *place, const TtNcclCall *call, TtLibraryTime *time, GError **error)
{
    double us =
        tt_nccl_model_us(place->costs, place->effects, place->machine, &call->op, &call->choice);

    if (isnan(us)) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "there is no closed form for %s: use --level flow",
                    tt_library_algo_word(call->choice.algo));
        return FALSE;
    }
    time->time_us = fmax(us, time->bound_us); /* of a number and NAN, the number */
    return TRUE;
}

gboolean
tt_library_time(const TtLibrary *library, const TtNcclCall *call, TtLevel level, gboolean record,
                TtLibraryTime *time, GError **error)
{
    TtNcclPlace place = {
        library->topo,     &library->comm,
        &library->machine, (library->costs ? library->costs : tt_nccl_costs_built_in())->value,
        &tt_no_effects,    library->node
    };
    TtLibraryTime out = { 0 };
    gboolean good = find_bound(&place, call, level, &out, error);

    out.time_us = out.bound_us;
    if (good && level == TT_LEVEL_FLOW)
        good = simulate(&place, call, record, &out, error);
    else if (good && level == TT_LEVEL_LOGGP)
        good = calculate(&place, call, &out, error);
    if (good)
        *time = out;
    else
        tt_library_time_clear(&out);
    return good;
}

void
tt_library_time_clear(TtLibraryTime *time)
{
    g_clear_pointer(&time->limit, g_free);
    g_clear_pointer(&time->bottleneck, g_free);
    g_clear_pointer(&time->timeline, tt_timeline_free);
}
