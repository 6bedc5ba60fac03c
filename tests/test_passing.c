/* Which messages may stay in the sender's buffer or go straight into the receiver's (algos/passing.h). */
#include "algos/passing.h"
#include "tests/check.h"
#include "tests/hand_plan.h"

/* One letter for each step of rank 0, lane 0: placed, lent, slot; "-" if it sends nothing. */
static char *
letters(const TtPlan *plan, gboolean in_place)
{
    g_autofree TtPassed *passed =
        tt_passing_of_plan(plan, plan->spec.n_ranks, in_place); /* rank 0 comes first */
    GString *text = g_string_new(NULL);

    for (guint32 i = 0; i < tt_plan_n_steps(plan, 0, 0); i++)
        g_string_append_c(text,
                          tt_op_sends(tt_plan_step(plan, 0, 0, i).op) ? "slp"[passed[i].out] : '-');
    return g_string_free(text, FALSE);
}

static void
built_in_plans_do_without_slots(void)
{
    static const struct {
        const char *name, *algorithm;
        guint n_ranks, in_place;
        const char *want;
    } rows[] = {
        { "two ranks: read the half, write the sum into both", "ring", 2, FALSE, "lp-" },
        { "in place: what is overwritten comes from who has read it", "ring", 2, TRUE, "lp-" },
        { "three in a ring: sums on the way are in no buffer", "ring", 3, FALSE, "lsll-" },
        { "in place: what is overwritten comes from another", "ring", 3, TRUE, "ssll-" },
        { "two shots: the last sum goes to one, the others read it", "two-shot", 3, FALSE,
          "ll-pp--" },
        { "one shot: everyone reads everyone's input", "direct", 3, FALSE, "ll--" },
        { "one shot in place: the sum would overwrite what is read", "direct", 3, TRUE, "ss--" },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        TtPlanSpec spec = { .n_ranks = rows[r].n_ranks, .count = 300, .n_slots = 2 };
        g_autoptr(TtPlan) plan = tt_plan_new(rows[r].algorithm, &spec, NULL);
        g_autofree char *got = letters(plan, rows[r].in_place);

        CHECK(g_str_equal(got, rows[r].want), "%s: %s, not %s", rows[r].name, got, rows[r].want);
    }
}

/* Rank 1 sends chunk 0 to rank 0, which sends a chunk back into rank 1's output. */
static void
a_place_must_be_left_alone(void)
{
    static const struct {
        const char *name;
        gboolean heard;      /* rank 0 hears from rank 1 first */
        guint before, after; /* chunk rank 1 copies before it sends, and after; 9: none */
        const char *want;
    } rows[] = {
        { "nothing in between", TRUE, 9, 9, "-p" },
        { "it copies there before it sends", TRUE, 0, 9, "-p" },
        { "it copies there after it has sent", TRUE, 9, 0, "-l" },
        { "it copies elsewhere", TRUE, 9, 1, "-p" },
        { "nobody knows whether it has begun", FALSE, 9, 9, "l" },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        HandPlan hand = hand_plan(2, 1, 2, 64);
        g_autoptr(TtPlan) plan = NULL;
        g_autofree char *got = NULL;

        if (rows[r].before != 9)
            hand_step(&hand, 1, 0, tt_copy(TT_INPUT, TT_OUTPUT, rows[r].before));
        if (rows[r].heard) {
            hand_step(&hand, 1, 0, tt_send(0, TT_INPUT, 1));
            hand_step(&hand, 0, 0, tt_recv(1, TT_SCRATCH, 1));
        }
        if (rows[r].after != 9)
            hand_step(&hand, 1, 0, tt_copy(TT_INPUT, TT_OUTPUT, rows[r].after));
        hand_step(&hand, 0, 0, tt_send(1, TT_SCRATCH, 0));
        hand_step(&hand, 1, 0, tt_recv(0, TT_OUTPUT, 0));
        plan = hand_plan_done(&hand);
        got = letters(plan, FALSE);
        CHECK(g_str_equal(got, rows[r].want), "%s: %s, not %s", rows[r].name, got, rows[r].want);
    }
}

/* Lane 0 of rank 0 sends output chunk 0 while lane 1 copies to it. */
static void
other_lanes_are_seen(void)
{
    for (guint ordered = 0; ordered < 2; ordered++) {
        HandPlan hand = hand_plan(2, 2, 1, 64);
        TtStep send = tt_send(1, TT_OUTPUT, 0);
        g_autoptr(TtPlan) plan = NULL;
        g_autofree char *got = NULL;

        hand_step(&hand, 0, 0, ordered ? tt_after(send, 1, 0) : send);
        hand_step(&hand, 0, 1, tt_copy(TT_INPUT, TT_OUTPUT, 0));
        hand_step(&hand, 1, 0, tt_recv(0, TT_OUTPUT, 0));
        plan = hand_plan_done(&hand);
        got = letters(plan, FALSE);
        CHECK(g_str_equal(got, ordered ? "l" : "s"), "ordered %u: %s", ordered, got);
    }
}

int
main(void)
{
    CU_TestInfo tests[] = { { "built-in plans do without slots", built_in_plans_do_without_slots },
                            { "a place must be left alone", a_place_must_be_left_alone },
                            { "other lanes are seen", other_lanes_are_seen },
                            CU_TEST_INFO_NULL };

    return check_main("passing", tests);
}
