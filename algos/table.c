#include "algos/table.h"
#include "algos/algo.h"

struct TtTable {
    guint n_ranks, n_chunks, n_sub_lanes;
    GPtrArray *steps; /* [agent][sub-lane], GArray of TtStep */
    GArray *switches; /* TtSwitchPlace */
};

static void
free_steps(gpointer steps)
{
    g_array_free(steps, TRUE);
}

static void
add_agent(TtTable *table)
{
    for (guint lane = 0; lane < table->n_sub_lanes; lane++)
        g_ptr_array_add(table->steps, g_array_new(FALSE, FALSE, sizeof(TtStep)));
}

TtTable *
tt_table_new(guint n_ranks, guint n_chunks, guint lanes_per_channel)
{
    TtTable *table = g_new0(TtTable, 1);

    g_assert(n_ranks > 0 && n_chunks > 0 && lanes_per_channel > 0 &&
             lanes_per_channel < TT_NO_LANE);
    table->n_ranks = n_ranks;
    table->n_chunks = n_chunks;
    table->n_sub_lanes = lanes_per_channel;
    table->steps = g_ptr_array_new_with_free_func(free_steps);
    table->switches = g_array_new(FALSE, FALSE, sizeof(TtSwitchPlace));
    for (guint rank = 0; rank < n_ranks; rank++)
        add_agent(table);
    return table;
}

void
tt_table_free(TtTable *table)
{
    if (!table)
        return;
    g_ptr_array_free(table->steps, TRUE);
    g_array_free(table->switches, TRUE);
    g_free(table);
}

guint
tt_table_add_switch(TtTable *table, TtSwitchPlace place)
{
    add_agent(table);
    g_array_append_val(table->switches, place);
    return table->n_ranks + table->switches->len - 1;
}

static GArray *
lane_steps(const TtTable *table, guint rank, guint sub_lane)
{
    g_assert(rank < table->n_ranks + table->switches->len && sub_lane < table->n_sub_lanes);
    return g_ptr_array_index(table->steps, (gsize)rank * table->n_sub_lanes + sub_lane);
}

GArray *
tt_table_steps(TtTable *table, guint rank, guint sub_lane)
{
    return lane_steps(table, rank, sub_lane);
}

TtTable *
tt_table_from_plan(const TtPlan *plan)
{
    TtTable *table = tt_table_new(plan->spec.n_ranks, plan->n_chunks, plan->lanes_per_channel);

    for (guint agent = plan->spec.n_ranks; agent < tt_plan_n_agents(plan); agent++)
        tt_table_add_switch(table, tt_plan_switch(plan, agent));
    for (guint rank = 0; rank < tt_plan_n_agents(plan); rank++)
        for (guint lane = 0; lane < table->n_sub_lanes; lane++) { /* channel 0: lane = sub-lane */
            GArray *steps = lane_steps(table, rank, lane);
            guint32 n = tt_plan_n_steps(plan, rank, lane);

            for (guint32 i = 0; i < n; i++) {
                TtStep step = tt_plan_step(plan, rank, lane, i);

                if (tt_op_receives(step.op))
                    step.recv_role = tt_plan_peer(plan, rank, lane, step.recv_role);
                if (tt_op_sends(step.op))
                    step.send_role = tt_plan_peer(plan, rank, lane, step.send_role);
                g_array_append_val(steps, step);
            }
        }
    return table;
}

/* --- the algorithm behind such a plan ----------------------------------------------------------
 */

/* The shape follows from the steps. */
static gboolean
table_init(TtPlan *plan, const char *args, GError **error)
{
    const TtTable *table = plan->data;

    (void)args;
    if (table->n_ranks != plan->spec.n_ranks) {
        g_set_error(error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE, "the table is for %u ranks, not %u",
                    table->n_ranks, plan->spec.n_ranks);
        return FALSE;
    }
    plan->n_chunks = table->n_chunks;
    plan->lanes_per_channel = table->n_sub_lanes;
    plan->n_switches = table->switches->len;
    plan->n_roles = table->n_ranks + plan->n_switches;
    for (guint i = 0; i < table->steps->len; i++) {
        const GArray *steps = g_ptr_array_index(table->steps, i);

        for (guint s = 0; s < steps->len; s++) {
            const TtStep *step = &g_array_index(steps, TtStep, s);

            plan->max_span = MAX(plan->max_span, MIN(step->n_chunks, plan->n_chunks));
            if (i / table->n_sub_lanes < table->n_ranks &&
                ((tt_op_loads(step->op) && step->src == TT_SCRATCH) ||
                 (tt_op_stores(step->op) && step->dst == TT_SCRATCH)))
                plan->uses_scratch = TRUE;
        }
    }
    return TRUE;
}

static void
table_clear(TtPlan *plan)
{
    tt_table_free(plan->data);
}

static guint32
table_n_steps(const TtPlan *plan, guint32 program, guint sub_lane)
{
    return lane_steps(plan->data, program, sub_lane)->len;
}

static TtStep
table_step(const TtPlan *plan, guint32 program, guint sub_lane, guint32 i)
{
    return g_array_index(lane_steps(plan->data, program, sub_lane), TtStep, i);
}

static guint
table_peer(const TtPlan *plan, guint rank, guint channel, guint role)
{
    (void)rank, (void)channel;
    return role < tt_plan_n_agents(plan) ? role : TT_NO_RANK;
}

static TtSwitchPlace
table_switch_place(const TtPlan *plan, guint index)
{
    const TtTable *table = plan->data;

    return g_array_index(table->switches, TtSwitchPlace, index);
}

static const TtAlgo table_algo = {
    .name = "table",
    .summary = "a schedule held step by step",
    .source = "",
    .collectives = TT_BIT(TT_N_COLLECTIVES) - 1,
    .init = table_init,
    .clear = table_clear,
    .n_steps = table_n_steps,
    .step = table_step,
    .peer = table_peer,
    .switch_place = table_switch_place,
};

TtPlan *
tt_table_to_plan(TtTable *table, const char *name, const TtPlanSpec *spec, GError **error)
{
    return tt_plan_new_for(&table_algo, table, name, spec, error);
}
