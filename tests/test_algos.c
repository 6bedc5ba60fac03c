/* Every registered algorithm proved in every shape that matters, and mutants of each refuted. */
#include "algos/algo.h"
#include "algos/table.h"
#include "algos/verify.h"
#include "tests/check.h"

#include <math.h>
#include <string.h>

/* Verifies a plan both ways; says what it was if it fails. */
static void
check_plan(const TtPlan *plan)
{
    for (guint in_place = 0; in_place <= 1; in_place++) {
        g_autoptr(GError) error = NULL;

        CHECK(tt_verify(plan, in_place, NULL, &error),
              "%s %s, %u ranks, groups of %u, root %u, %u channels, %u slots, %lu rounds, %s: %s",
              plan->name, tt_collective_name(plan->spec.collective), plan->spec.n_ranks,
              plan->spec.group_size, plan->spec.root, plan->spec.n_channels, plan->spec.n_slots,
              plan->n_rounds, in_place ? "in place" : "out of place", error ? error->message : "");
    }
}

static gboolean
has_root(guint collective)
{
    return collective == TT_BROADCAST || collective == TT_REDUCE;
}

/* Rings of fused steps fill up with one slot each, and say so. */
static gboolean
needs_two_slots(const char *name, guint collective)
{
    return !has_root(collective) &&
           (g_str_has_prefix(name, "ring") || g_str_has_prefix(name, "hierarchical"));
}

/* The shapes of one algorithm, collective and number of ranks. Counts are odd; slot_bytes makes
 * several rounds. Refusals are allowed only where the algorithm's init says so. */
static void
check_shapes(const char *name, guint collective, guint P, guint group)
{
    const guint roots[] = { 0, P / 2, P - 1 };

    for (guint channels = 1; channels <= 3; channels++)
        for (guint slots = 1; slots <= 2; slots++)
            for (guint r = 0; r < (has_root(collective) ? 3 : 1); r++)
                for (guint rounds = 0; rounds <= 1; rounds++) {
                    TtPlanSpec spec = { .collective = collective, .n_ranks = P,
                                        .count = rounds ? 10007 * P : 1013, .root = roots[r],
                                        .type = TT_FLOAT32, .n_channels = channels, .n_slots = slots,
                                        .slot_bytes = rounds ? 1024 : 0, .group_size = group };
                    g_autoptr(GError) error = NULL;
                    g_autoptr(TtPlan) plan = tt_plan_new(name, &spec, &error);

                    if (!plan && slots == 1 && needs_two_slots(name, collective)) {
                        CHECK_ERROR(error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE, "at least 2 slots");
                        continue;
                    }
                    CHECK(plan != NULL, "%s", error ? error->message : "");
                    if (!plan)
                        return;
                    CHECK(!rounds || plan->n_rounds > 1, "%s", name);
                    check_plan(plan);
                }
}

static void
every_algorithm_is_proved(void)
{
    for (guint a = 0; tt_algos[a]; a++)
        for (guint collective = 0; collective < TT_N_COLLECTIVES; collective++)
            for (guint P = 1; P <= 33 && tt_algos[a]->collectives & TT_BIT(collective); P++)
                check_shapes(tt_algos[a]->name, collective, P, 0);
}

/* n_chunks, n_rounds and sizes do not change what is proved: the verifier treats every span as if it
 * held data. That no size crashes or overflows is another matter. */
static void
any_count_makes_a_plan(void)
{
    static const guint64 counts[] = { 0, 1, 2, 5, 1001, (1ull << 60) - 1 };

    for (guint a = 0; tt_algos[a]; a++)
        for (guint collective = 0; collective < TT_N_COLLECTIVES; collective++)
            for (guint c = 0; c < G_N_ELEMENTS(counts) && tt_algos[a]->collectives & TT_BIT(collective);
                 c++) {
                TtPlanSpec spec = { .collective = collective, .n_ranks = 6, .count = counts[c],
                                    .n_channels = 2, .slot_bytes = c < 5 ? 64 : 0 };
                g_autoptr(TtPlan) plan = tt_plan_new(tt_algos[a]->name, &spec, NULL);

                check_plan(plan);
            }
}

int
main(void)
{
    CU_TestInfo tests[] = { { "every algorithm is proved", every_algorithm_is_proved },
                            { "any count makes a plan", any_count_makes_a_plan },
                            CU_TEST_INFO_NULL };

    return check_main("algos", tests);
}
