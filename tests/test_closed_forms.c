/* Closed forms against the flow-level simulation on a crossbar nobody contends for. */
#include "algos/algo.h"
#include "sim/sim.h"
#include "tests/check.h"
#include "tests/hand_network.h"

/* 1 us per message, 1 ns per byte: whole picoseconds, so the two must agree but for rounding. */
#define ALPHA_S 1e-6
#define BETA_S  1e-9

/* TRUE if there was a closed form to compare. */
static gboolean
compare(const char *name, const TtPlanSpec *spec)
{
    HandWires wires = { .shape = HAND_CROSSBAR,
                        .n_ranks = spec->n_ranks,
                        .rank_bytes_per_s = 1 / BETA_S,
                        .latency_ps = 1000000 / 2 }; /* a message crosses two links */
    TtNetwork net = hand_network(&wires);
    g_autoptr(TtPlan) plan = tt_plan_new(name, spec, NULL);
    TtSimOptions options = { .level = TT_LEVEL_FLOW };
    g_autoptr(GError) error = NULL;
    TtSimResult result = { 0 };
    double want_s = plan->algo->time_s(plan, ALPHA_S, BETA_S);

    if (isnan(want_s))
        return FALSE;
    CHECK(tt_sim_run_on(plan, &net, &options, &result, &error), "%s: %s", name,
          error ? error->message : "");
    CHECK(fabs((double)result.time_ps - want_s * 1e12) <= 2,
          "%s %s, %u ranks, groups of %u, %u channels, %u slots, %lu rounds: %ld ps, wanted %.0f", name,
          tt_collective_name(spec->collective), spec->n_ranks, plan->spec.group_size,
          plan->spec.n_channels, plan->spec.n_slots, (unsigned long)plan->n_rounds,
          (long)result.time_ps, want_s * 1e12);
    tt_sim_result_clear(&result);
    return TRUE;
}

/* Sizes that every cut divides: chunks, channels and rounds in whole pieces of 64 bytes. */
static void
closed_forms_are_what_flows_take(void)
{
    for (guint a = 0; tt_algos[a]; a++)
        for (guint collective = 0; collective < TT_N_COLLECTIVES; collective++) {
            guint n_compared = 0;

            if (!tt_algos[a]->time_s || !(tt_algos[a]->collectives & TT_BIT(collective)))
                continue;
            for (guint P = 2; P <= 17; P++)
                for (guint channels = 1; channels <= 2; channels++)
                    for (guint rounds = 1; rounds <= 4; rounds *= 4) {
                        guint64 count = (guint64)P * 64 * 2 * 4 * 100;
                        TtPlanSpec spec = { .collective = collective, .n_ranks = P, .count = count,
                                            .type = TT_INT8, .n_channels = channels, .n_slots = 3,
                                            .group_size = P % 3 == 0 ? 3 : P % 2 == 0 ? 2 : 0 };
                        g_autoptr(TtPlan) whole = tt_plan_new(tt_algos[a]->name, &spec, NULL);

                        if (rounds > 1)
                            spec.slot_bytes = tt_plan_max_message_bytes(whole) / rounds;
                        n_compared += compare(tt_algos[a]->name, &spec);
                    }
            CHECK(n_compared >= 5, "%s: only %u", tt_algos[a]->name, n_compared);
        }
}

int
main(void)
{
    CU_TestInfo tests[] = { { "closed forms are what flows take", closed_forms_are_what_flows_take },
                            CU_TEST_INFO_NULL };

    return check_main("closed forms", tests);
}
