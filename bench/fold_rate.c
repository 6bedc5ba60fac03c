/* fold_rate - what folding and leaping save: one plan simulated whole, and as it is by default.
 *
 *     bench_fold_rate [NODES [sweep]]     default: 16 nodes of a DGX H100
 *
 * Processor time, set-up of the run included. "sweep" times 31 sizes, 8 B .. 8 GiB, each by the plan a GPU
 * library would take, folded only: whole runs of a thousand ranks take minutes.
 */
#include "algos/algo.h"
#include "sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    const char *algo;
    guint64 bytes, slot_bytes;
    guint n_channels;
} Case;

static const Case cases[] = {
    { "ring", G_GUINT64_CONSTANT(8) << 30, 2 << 20, 16 },
    { "ring", 64 << 20, 2 << 20, 16 },
    { "nccl-tree", 256 << 20, 512 << 10, 16 },
    { "nccl-tree", 1 << 20, 32 << 10, 8 },
    { "double-tree", 256 << 20, 512 << 10, 16 },
    { "nvls-tree", G_GUINT64_CONSTANT(1) << 30, 64 << 10, 16 },
    { "nvls-tree", 16 << 20, 64 << 10, 16 },
};

static double
cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Channels of 20 GB/s in a node, 24 GB/s between nodes, as NCCL searches them on this machine. */
static TtProfile *
gpu_profile(void)
{
    TtProfile *profile = tt_profile_ideal();

    profile->hop_latency_s[TT_HOP_NVLINK] = 1e-6;
    profile->hop_latency_s[TT_HOP_NET] = 5e-6;
    profile->hop_bytes_per_s[TT_HOP_NVLINK] = 20e9;
    profile->hop_bytes_per_s[TT_HOP_NET] = 24e9;
    return profile;
}

/* Seconds, or -1 with a message. */
static double
time_case(const Case *c, const TtTopology *topo, const TtProfile *profile, gboolean whole,
          TtSimResult *result)
{
    TtPlanSpec spec = { .n_ranks = tt_topology_n_ranks(topo),
                        .count = MAX(1, c->bytes / 4),
                        .type = TT_FLOAT32,
                        .slot_bytes = c->slot_bytes,
                        .n_slots = 8,
                        .n_channels = c->n_channels,
                        .group_size = tt_topology_ranks_per_node(topo) };
    TtSimOptions options = {
        .level = TT_LEVEL_FLOW, .profile = profile, .whole = whole, .leap_tolerance = 1e-3
    };
    g_autoptr(GError) error = NULL;
    double begin_s = cpu_s();
    g_autoptr(TtPlan) plan = tt_plan_new(c->algo, &spec, &error);

    if (!plan || !tt_sim_run(plan, topo, &options, result, &error)) {
        printf("%s: %s\n", c->algo, error->message);
        return -1;
    }
    return cpu_s() - begin_s;
}

static void
compare(const TtTopology *topo, const TtProfile *profile)
{
    printf("%-12s %10s %5s %11s %11s %7s %9s %9s %9s\n", "plan", "bytes", "ch.", "whole s",
           "folded s", "ratio", "folded", "leapt", "deviates");
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        TtSimResult whole = { 0 }, folded = { 0 };
        double whole_s = time_case(&cases[i], topo, profile, TRUE, &whole);
        double folded_s = time_case(&cases[i], topo, profile, FALSE, &folded);
        g_autofree char *size = tt_format_bytes(cases[i].bytes);

        if (whole_s >= 0 && folded_s >= 0)
            printf("%-12s %10s %5u %11.4f %11.4f %7.0f %9u %9" G_GUINT64_FORMAT " %9.1e\n",
                   cases[i].algo, size, cases[i].n_channels, whole_s, folded_s, whole_s / folded_s,
                   folded.folded_ranks, folded.leapt_rounds,
                   (double)(folded.time_ps - whole.time_ps) / (double)whole.time_ps);
        tt_sim_result_clear(&whole);
        tt_sim_result_clear(&folded);
    }
}

static void
sweep(const TtTopology *topo, const TtProfile *profile)
{
    double sum_s = 0;

    for (guint64 bytes = 8; bytes <= G_GUINT64_CONSTANT(8) << 30; bytes *= 2) {
        gboolean small = bytes < 4 << 20;
        Case c = { small ? "nccl-tree" : "ring", bytes, small ? 32 << 10 : 2 << 20,
                   (guint)CLAMP(bytes / (64 << 10), 1, 16) };
        TtSimResult result = { 0 };
        double takes_s = time_case(&c, topo, profile, FALSE, &result);
        g_autofree char *size = tt_format_bytes(bytes);

        printf("%10s %-10s %3u channels %12.2f us, took %8.4f s\n", size, c.algo, c.n_channels,
               (double)result.time_ps * 1e-6, takes_s);
        sum_s += takes_s;
        tt_sim_result_clear(&result);
    }
    printf("sweep of %u ranks: %.3f s\n", tt_topology_n_ranks(topo), sum_s);
}

int
main(int argc, char **argv)
{
    g_autofree char *name = g_strdup_printf("dgx-h100:%s", argc > 1 ? argv[1] : "16");
    g_autoptr(GError) error = NULL;
    g_autoptr(TtTopology) topo = tt_topology_open(name, NULL, &error);
    g_autoptr(TtProfile) profile = gpu_profile();

    if (!topo) {
        printf("%s\n", error->message);
        return 2;
    }
    if (argc > 2 && strcmp(argv[2], "sweep") == 0)
        sweep(topo, profile);
    else
        compare(topo, profile);
    return 0;
}
