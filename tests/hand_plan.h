/* hand_plan.h - plans and profiles of a few steps, and a run of them in one call. */
#pragma once
#include "algos/table.h"
#include "tests/check.h"
#include "tests/hand_network.h"

#include <string.h>

#define NS G_GINT64_CONSTANT(1000)
#define US G_GINT64_CONSTANT(1000000)
#define MB 1000000u /* at 10 GB/s: 100 us */

/* A plan under construction: int8 chunks of @chunk_bytes each. It calls itself a broadcast because
 * the lower bound of that asks least; run it on unbounded wires. */
typedef struct {
    TtTable *table;
    TtPlanSpec spec;
} HandPlan;

static inline HandPlan
hand_plan(guint n_ranks, guint n_lanes, guint n_chunks, guint chunk_bytes)
{
    return (HandPlan){ tt_table_new(n_ranks, n_chunks, n_lanes),
                       { .n_ranks = n_ranks,
                         .count = (guint64)n_chunks * chunk_bytes,
                         .type = TT_INT8,
                         .collective = TT_BROADCAST } };
}

static inline void
hand_step(HandPlan *plan, guint rank, guint lane, TtStep step)
{
    g_array_append_val(tt_table_steps(plan->table, rank, lane), step);
}

/* Sends @n chunks from lane @lane of @src to @dst, and receives them there. */
static inline void
hand_message(HandPlan *plan, guint src, guint dst, guint lane, guint n)
{
    hand_step(plan, src, lane, tt_span(tt_send(dst, TT_INPUT, 0), n));
    hand_step(plan, dst, lane, tt_span(tt_recv(src, TT_OUTPUT, 0), n));
}

static inline TtPlan *
hand_plan_done(HandPlan *plan)
{
    g_autoptr(GError) error = NULL;
    TtPlan *made = tt_table_to_plan(plan->table, "by hand", &plan->spec, &error);

    CHECK_NO_ERROR(error);
    return made;
}

/* One run; every failure is one of the test. */
static inline TtSimResult
hand_run_with(const TtPlan *plan, HandWires wires, const TtSimOptions *options)
{
    TtNetwork net = hand_network(&wires);
    g_autoptr(GError) error = NULL;
    TtSimResult result = { .time_ps = -1 };

    tt_sim_run_on(plan, &net, options, &result, &error);
    CHECK_NO_ERROR(error);
    return result;
}

static inline TtTime
hand_run(const TtPlan *plan, HandWires wires, const TtProfile *profile)
{
    TtSimOptions options = { .level = TT_LEVEL_FLOW, .profile = profile };
    TtSimResult result = hand_run_with(plan, wires, &options);
    TtTime time_ps = result.time_ps;

    tt_sim_result_clear(&result);
    return time_ps;
}

/* Every step of every kind costs the same. */
static inline void
hand_costs(TtProfile *profile, double fixed_s, double per_byte_s)
{
    for (guint op = 0; op < TT_N_OPS; op++)
        profile->op[op] = (TtOpCost){
            .n = 1, .footprint_bytes = { 1 }, .fixed_s = { fixed_s }, .per_byte_s = { per_byte_s }
        };
}
