/* Plans held as tables: a copy says what the original says, and edits show. */
#include "algos/algo.h"
#include "algos/table.h"
#include "algos/verify.h"
#include "tests/check.h"

#include <string.h>

static void
check_same_steps(const TtPlan *a, const TtPlan *b)
{
    CU_ASSERT_EQUAL(tt_plan_n_agents(a), tt_plan_n_agents(b));
    for (guint rank = 0; rank < tt_plan_n_agents(a); rank++)
        for (guint lane = 0; lane < a->lanes_per_channel; lane++) {
            guint32 n = tt_plan_n_steps(a, rank, lane);

            CHECK(tt_plan_n_steps(b, rank, lane) == n, "%s, rank %u", a->name, rank);
            for (guint32 i = 0; i < n; i++) {
                TtStep x = tt_plan_step(a, rank, lane, i), y = tt_plan_step(b, rank, lane, i);

                CHECK(x.op == y.op && x.src == y.src && x.dst == y.dst && x.chunk == y.chunk &&
                          x.n_chunks == y.n_chunks && x.dep_lane == y.dep_lane &&
                          (x.dep_lane == TT_NO_LANE || x.dep_step == y.dep_step),
                      "%s, rank %u, lane %u, step %u", a->name, rank, lane, i);
                if (tt_op_receives(x.op))
                    CU_ASSERT_EQUAL(tt_plan_peer(a, rank, lane, x.recv_role), y.recv_role);
                if (tt_op_sends(x.op))
                    CU_ASSERT_EQUAL(tt_plan_peer(b, rank, lane, y.send_role),
                                    tt_plan_peer(a, rank, lane, x.send_role));
            }
        }
}

static void
a_copy_says_the_same(void)
{
    for (guint a = 0; tt_algos[a]; a++)
        for (guint collective = 0; collective < TT_N_COLLECTIVES; collective++)
            for (guint P = 1; P <= 9; P++) {
                TtPlanSpec spec = { .collective = collective, .n_ranks = P, .count = 1000 };
                g_autoptr(TtPlan) plan = tt_plan_new(tt_algos[a]->name, &spec, NULL);
                g_autoptr(TtPlan) copy = NULL;
                g_autoptr(GError) error = NULL;

                if (!plan) /* what each can do is for test_algos.c */
                    continue;
                copy = tt_table_to_plan(tt_table_from_plan(plan), "copy", &spec, &error);
                CHECK_NO_ERROR(error);
                CU_ASSERT_EQUAL(copy->n_chunks, plan->n_chunks);
                CU_ASSERT_EQUAL(copy->lanes_per_channel, plan->lanes_per_channel);
                check_same_steps(plan, copy);
                CHECK(tt_verify(copy, FALSE, NULL, &error), "%s %u: %s", plan->name, P,
                      error ? error->message : "");
            }
}

static void
channels_share_the_table(void)
{
    TtPlanSpec spec = { .n_ranks = 4, .count = 1000, .n_channels = 3 };
    g_autoptr(TtPlan) plan = tt_plan_new("tree", &spec, NULL);
    g_autoptr(TtPlan) copy = tt_table_to_plan(tt_table_from_plan(plan), "copy", &spec, NULL);

    CU_ASSERT_EQUAL(copy->n_lanes, 3 * 2);
    /* rank 1's down lane waits for its up lane: lanes 2 and 3 on channel 1 */
    CU_ASSERT_EQUAL(tt_plan_step(copy, 1, 3, 0).dep_lane, 2);
    CU_ASSERT(tt_verify(copy, FALSE, NULL, NULL));
}

static void
edits_show(void)
{
    TtPlanSpec spec = { .n_ranks = 2, .count = 8 };
    TtTable *table = tt_table_new(2, 4, 1);
    TtStep step = tt_span(tt_copy(TT_INPUT, TT_SCRATCH, 1), 3);
    g_autoptr(TtPlan) plan = NULL;

    g_array_append_val(tt_table_steps(table, 1, 0), step);
    plan = tt_table_to_plan(table, "edited", &spec, NULL);
    CU_ASSERT_EQUAL(tt_plan_n_steps(plan, 0, 0), 0);
    CU_ASSERT_EQUAL(tt_plan_n_steps(plan, 1, 0), 1);
    CU_ASSERT_EQUAL(plan->max_span, 3);
    CU_ASSERT_TRUE(plan->uses_scratch);
    CU_ASSERT_EQUAL(tt_plan_peer(plan, 0, 0, 1), 1);
    CU_ASSERT_EQUAL(tt_plan_peer(plan, 0, 0, 2), TT_NO_RANK);
}

/* The table is released even so: the sanitizer's leak check is the other half of this test. */
static void
a_table_for_other_ranks_is_refused(void)
{
    TtPlanSpec spec = { .n_ranks = 3, .count = 8 }, bad = { .n_ranks = 0 };
    g_autoptr(GError) error = NULL;

    CU_ASSERT_PTR_NULL(tt_table_to_plan(tt_table_new(2, 1, 1), "table", &spec, &error));
    CHECK_ERROR(error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE, "for 2 ranks, not 3");
    CU_ASSERT_PTR_NULL(tt_table_to_plan(tt_table_new(2, 1, 1), "table", &bad, &error));
    CHECK_ERROR(error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE, "number of ranks");
}

int
main(void)
{
    CU_TestInfo tests[] = { { "a copy says the same", a_copy_says_the_same },
                            { "channels share the table", channels_share_the_table },
                            { "edits show", edits_show },
                            { "a table for other ranks is refused",
                              a_table_for_other_ranks_is_refused },
                            CU_TEST_INFO_NULL };

    return check_main("table", tests);
}
