/* sim_rate - how fast the flow level is: messages and events per second of simulation, on one core.
 *
 *     bench_sim_rate [RANKS [REPEATS [CASE]]]     default: 1024 ranks, 7 repeats, all cases (0, 1,
 * ...)
 *
 * Prints the median over the repeats, per case, of processor time: others may use the machine too.
 * Machines: a crossbar, where no two flows share a link, and nodes of 8 ranks behind one shared
 * NIC, where they do.
 */
#include "tests/hand_network.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct {
    const char *name, *algo;
    HandShape shape;
    guint n_ranks; /* 0: as asked */
    guint64 bytes, slot_bytes;
    const char *profile; /* NULL: ideal */
    guint iterations, n_channels;
} Case;

static const Case cases[] = {
    { "ring, crossbar", "ring", HAND_CROSSBAR, 0, 1 << 30, 0, NULL, 1 },
    { "ring, crossbar, uneven chunks", "ring", HAND_CROSSBAR, 0, (1 << 30) + 4, 0, NULL, 1 },
    { "ring, crossbar, step costs", "ring", HAND_CROSSBAR, 0, 1 << 30, 0, "tutti", 1 },
    { "ring, nodes of 8", "ring", HAND_TWO_LEVEL, 0, 1 << 30, 0, NULL, 1 },
    { "tree of 64 rounds, crossbar", "tree", HAND_CROSSBAR, 0, 1 << 30, 1 << 24, NULL, 16 },
    { "two-shot, 128 ranks, nodes of 8", "two-shot", HAND_TWO_LEVEL, 128, 1 << 30, 0, NULL, 1 },
    { "two-shot, 128 ranks, uneven chunks", "two-shot", HAND_TWO_LEVEL, 128, (1 << 30) + 4 * 77, 0,
      NULL, 1 },
    { "two-shot, 128 ranks, step costs", "two-shot", HAND_TWO_LEVEL, 128, 1 << 30, 0, "tutti", 1 },
    { "direct, 128 ranks, 8 channels", "direct", HAND_TWO_LEVEL, 128, 1 << 20, 0, NULL, 1, 8 },
    { "direct, 128 ranks, 8 ch., 1 GiB", "direct", HAND_TWO_LEVEL, 128, 1 << 30, 0, NULL, 1, 8 },
};

static int
compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double
cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void
measure(const Case *c, guint n_ranks, guint repeats)
{
    HandWires wires = { .shape = c->shape,
                        .n_ranks = c->n_ranks ? c->n_ranks : n_ranks,
                        .per_node = c->shape == HAND_TWO_LEVEL ? 8 : 0,
                        .rank_bytes_per_s = 400e9,
                        .node_bytes_per_s = 200e9,
                        .latency_ps = 500000 };
    TtNetwork net = hand_network(&wires);
    TtPlanSpec spec = { .n_ranks = wires.n_ranks,
                        .count = c->bytes / 4,
                        .type = TT_FLOAT32,
                        .slot_bytes = c->slot_bytes, .n_channels = c->n_channels };
    g_autoptr(GError) error = NULL;
    g_autoptr(TtPlan) plan = tt_plan_new(c->algo, &spec, &error);
    g_autoptr(TtProfile) profile =
        plan ? tt_profile_open(c->profile ? c->profile : "ideal", &error) : NULL;
    TtSimOptions options = { .level = TT_LEVEL_FLOW,
                             .profile = profile,
                             .iterations = c->iterations,
                             .whole = TRUE }; /* the engine's rate; bench_fold_rate has the rest */
    g_autofree double *seconds = g_new(double, repeats);
    TtSimResult result = { 0 };
    double median;

    for (guint i = 0; !error && i < repeats; i++) {
        double begin_s = cpu_s();

        tt_sim_result_clear(&result);
        if (!tt_sim_run_on(plan, &net, &options, &result, &error))
            break;
        seconds[i] = cpu_s() - begin_s;
    }
    if (error) {
        printf("%-36s %s\n", c->name, error->message);
        return;
    }
    qsort(seconds, repeats, sizeof *seconds, compare_doubles);
    median = seconds[repeats / 2];
    printf("%-36s %6u %10" G_GUINT64_FORMAT " %10.4f %12.2f %12.2f\n", c->name, spec.n_ranks,
           result.n_messages, median, (double)result.n_messages / median / 1e6,
           (double)result.n_events / median / 1e6);
    tt_sim_result_clear(&result);
}

int
main(int argc, char **argv)
{
    guint n_ranks = argc > 1 ? (guint)strtoul(argv[1], NULL, 10) : 1024;
    guint repeats = argc > 2 ? (guint)strtoul(argv[2], NULL, 10) : 7;

    printf("%-36s %6s %10s %10s %12s %12s\n", "case", "ranks", "messages", "seconds", "Mmessages/s",
           "Mevents/s");
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        if (argc < 4 || strtoul(argv[3], NULL, 10) == i)
            measure(&cases[i], MAX(1, n_ranks), MAX(1, repeats));
    return 0;
}
