#include "sim/nccl_flow_private.h"

/* How far a leap over rounds that do not recur exactly may be off. The constants are no better. */
#define LEAP_TOLERANCE 1e-3
/* A broadcast or reduction begins before the last is over everywhere: measured back to back, they are a
 * pipeline. So many in a row show its stride. */
#define CHAIN_CALLS 6

static gboolean
is_chain(const TtNcclCall *call)
{
    return call->op.func == TT_NCCL_BROADCAST || call->op.func == TT_NCCL_REDUCE;
}

/* What no step has: the kernel's start, a protocol's, and of a chain, where operations follow each other and
 * only their distance counts, the hop of whoever is slowest. */
static double
start_us(const TtNcclPlace *place, const TtNcclCall *call, const TtProfile *profile)
{
    guint algo = call->choice.algo;
    double us = tt_nccl_start_us(place->costs, place->machine);

    if (place->comm->n_ranks < 2)
        return us;
    if (algo == TT_NCCL_RING || algo == TT_NCCL_TREE)
        us += place->costs[tt_cost_proto(TT_COST_BEGIN, call->choice.proto)];
    if (is_chain(call))
        us += 1e6 * MAX(profile->hop_latency_s[TT_HOP_NVLINK], profile->hop_latency_s[TT_HOP_NET]);
    return us;
}

/* Our name of NCCL's trees tells them from others; whoever asks for NCCL's knows no others. */
static const char *
algorithm_word(const TtPlan *plan)
{
    return plan->name + (g_str_has_prefix(plan->name, "nccl-") ? strlen("nccl-") : 0);
}

TtTime
tt_nccl_bound_ps(const TtNcclPlace *place, const TtNcclCall *call, const TtPlan *plan, char **limit)
{
    TtNcclRoutes routes;

    tt_nccl_routes_init(&routes, place, call->choice.algo);
    return tt_sim_bound_on_ps(plan, &routes.net, limit);
}

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
    options.iterations = is_chain(call) && !record ? CHAIN_CALLS : 1;
    options.leap_tolerance = LEAP_TOLERANCE;
    options.name = algorithm_word(plan);
    options.profile = profile = tt_nccl_profile(place, call, plan);
    merged = record ? NULL : tt_nccl_merged_plan(place->comm, call, plan, &times);
    for (guint hop = 0; merged && hop < TT_N_HOPS; hop++)
        profile->hop_bytes_per_s[hop] *= times;
    tt_nccl_routes_init(&routes, place, call->choice.algo);
    if (!tt_sim_run_on(merged ? merged : plan, &routes.net, &options, &out, error))
        return FALSE;
    *time_us = tt_nccl_join_us(tt_nccl_call_us(place->costs, place->effects, place->machine),
                               start_us(place, call, profile) + out.time_ps / 1e6);
    if (result)
        *result = out;
    else
        tt_sim_result_clear(&out);
    return TRUE;
}
