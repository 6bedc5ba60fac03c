#include "sim/nccl_flow_private.h"

/* How far a leap over rounds that do not recur exactly may be off. The constants are no better. */
#define LEAP_TOLERANCE 1e-3
#define FEW_ROUNDS     64 /* looking for a short cut costs as much as going all the way */

gboolean
tt_nccl_flow_us(const TtNcclPlace *place, const TtNcclCall *call, gboolean record, double *time_us,
                TtSimResult *result, GError **error)
{
    g_autoptr(TtPlan) plan = tt_nccl_full_plan(place->comm, call, error);
    g_autoptr(TtProfile) profile = NULL;
    g_autoptr(TtPlan) merged = NULL;
    TtSimOptions options = { .level = TT_LEVEL_FLOW, .record = record, .even_pieces = TRUE };
    TtSimResult out;
    TtNcclRoutes routes;
    guint times = 1;

    if (!plan)
        return FALSE;
    options.leap_tolerance = plan->n_rounds > FEW_ROUNDS ? LEAP_TOLERANCE : 0;
    options.profile = profile = tt_nccl_profile(place, call, plan);
    merged = record ? NULL : tt_nccl_merged_plan(place->comm, call, plan, &times);
    for (guint hop = 0; merged && hop < TT_N_HOPS; hop++)
        profile->hop_bytes_per_s[hop] *= times;
    tt_nccl_routes_init(&routes, place, call->choice.algo);
    if (!tt_sim_run_on(merged ? merged : plan, &routes.net, &options, &out, error))
        return FALSE;
    *time_us = tt_nccl_join_us(tt_nccl_call_us(place->costs, place->effects, place->machine),
                               tt_nccl_start_us(place->costs, place->machine) + out.time_ps / 1e6);
    if (result)
        *result = out;
    else
        tt_sim_result_clear(&out);
    return TRUE;
}
