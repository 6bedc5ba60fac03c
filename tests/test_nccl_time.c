/* The closed form of NCCL's schedules, against arithmetic by hand. */
#include "models/nccl_time.h"
#include "tests/check.h"

#include <math.h>

/* Constants that make sums easy: everything free but what a row sets. */
static void
free_costs(double *v)
{
    for (guint i = 0; i < TT_N_COSTS; i++)
        v[i] = 1;
    v[TT_COST_START] = v[TT_COST_CALL] = v[TT_COST_CALL_EACH] = 1e-9;
    v[TT_COST_TREE_CROWD] = 1e-12;
    for (guint p = 0; p < TT_NCCL_N_PROTOS; p++) {
        v[tt_cost_proto(TT_COST_HOP_NVLINK, p)] = 2;
        v[tt_cost_proto(TT_COST_HOP_NET, p)] = 10;
        v[tt_cost_proto(TT_COST_HOP_GROWTH, p)] = 1e-12;
        v[tt_cost_proto(TT_COST_CHANNEL, p)] = 10; /* GB/s */
        v[tt_cost_proto(TT_COST_FORWARD, p)] = 1e9;
        v[tt_cost_proto(TT_COST_HIDDEN, p)] = 1e-12;
        v[tt_cost_proto(TT_COST_BEGIN, p)] = 1e-9;
    }
}

static TtNcclMachine
machine_of(guint n_nodes, guint per_node)
{
    return (TtNcclMachine){ .n_ranks = n_nodes * per_node,
                            .n_nodes = n_nodes,
                            .ranks_per_node = per_node,
                            .gen = TT_GEN_AMPERE,
                            .way = TT_WAY_NVLINK,
                            .nvlink_gbps = 1e9,
                            .pcie_gbps = 1e9,
                            .nic = TT_NIC_IB,
                            .nics_gbps = 1e9,
                            .heads = per_node,
                            .nvls_channels = 16 };
}

static double
time_of(const double *v, const TtNcclMachine *m, TtNcclFunc func, guint64 bytes, TtNcclAlgo algo,
        TtNcclProto proto, guint channels, guint64 chunk)
{
    TtNcclOp op = { .func = func, .bytes = bytes, .type_bytes = 4, .is_float = TRUE };
    TtNcclChoice choice = { .algo = algo,
                            .proto = proto,
                            .used_channels = channels,
                            .channel_bytes = bytes / channels,
                            .chunk_bytes = chunk };

    return tt_nccl_model_us(v, &tt_no_effects, m, &op, &choice);
}

static void
rings(void)
{
    double v[TT_N_COSTS];
    TtNcclMachine four = machine_of(1, 4), two_by_four = machine_of(2, 4);
    double us;

    free_costs(v);
    /* 6 steps of 2 us, each 100 kB at 10 GB/s: 10 us. */
    us = time_of(v, &four, TT_NCCL_ALLREDUCE, 400000, TT_NCCL_RING, TT_NCCL_LL128, 1, 1 << 20);
    CHECK(fabs(us - 72) < 0.01, "%g", us);
    /* Three of them for half the work. */
    us = time_of(v, &four, TT_NCCL_ALLGATHER, 400000, TT_NCCL_RING, TT_NCCL_LL128, 1, 1 << 20);
    CHECK(fabs(us - 36) < 0.01, "%g", us);
    /* Chunks of 50 kB: two loops of 6 (2 + 5) us. */
    us = time_of(v, &four, TT_NCCL_ALLREDUCE, 400000, TT_NCCL_RING, TT_NCCL_LL128, 1, 50000);
    CHECK(fabs(us - 84) < 0.01, "%g", us);
    /* Eight ranks on two nodes: of 14 steps in a row 4 can cross (10 us), 5 us each for 50 kB. */
    us = time_of(v, &two_by_four, TT_NCCL_ALLREDUCE, 400000, TT_NCCL_RING, TT_NCCL_LL128, 1,
                 1 << 20);
    CHECK(fabs(us - (10 * 2 + 4 * 10 + 14 * 5)) < 0.01, "%g", us);
}

/* Large messages run at the rate of the narrowest wire. */
static void
wires(void)
{
    double v[TT_N_COSTS];
    TtNcclMachine m = machine_of(1, 8);
    double us, busbw;

    free_costs(v);
    m.nvlink_gbps = 50; /* for 24 channels of 10 */
    us = time_of(v, &m, TT_NCCL_ALLREDUCE, 1ull << 33, TT_NCCL_RING, TT_NCCL_SIMPLE, 24, 2 << 20);
    busbw = (double)(1ull << 33) * 14 / 8 / us / 1e3;
    CHECK(busbw > 49 && busbw <= 50, "%g GB/s", busbw);
    m = machine_of(4, 8);
    m.nics_gbps = 100;
    us = time_of(v, &m, TT_NCCL_ALLREDUCE, 1ull << 33, TT_NCCL_RING, TT_NCCL_SIMPLE, 24, 2 << 20);
    busbw = (double)(1ull << 33) * 62 / 32 / us / 1e3;
    CHECK(busbw > 97 && busbw <= 100, "%g GB/s", busbw);
    /* LL sends a flag with every word: half the data. */
    us = time_of(v, &m, TT_NCCL_ALLREDUCE, 1ull << 33, TT_NCCL_RING, TT_NCCL_LL, 24, 32768);
    busbw = (double)(1ull << 33) * 62 / 32 / us / 1e3;
    CHECK(busbw < 50, "%g GB/s", busbw);
}

static void
trees(void)
{
    double v[TT_N_COSTS];
    TtNcclMachine m = machine_of(4, 2);
    double us;

    free_costs(v);
    /* One chunk of 10 kB: chain hops 2 x 1 x (2 + 1) us, tree hops 2 x 2 x 10 us. */
    us = time_of(v, &m, TT_NCCL_ALLREDUCE, 10000, TT_NCCL_TREE, TT_NCCL_LL, 1, 32768);
    CHECK(fabs(us - (6 + 40)) < 0.01, "%g", us);
    /* Nine more chunks at 10 GB/s. */
    us = time_of(v, &m, TT_NCCL_ALLREDUCE, 100000, TT_NCCL_TREE, TT_NCCL_LL, 1, 10000);
    CHECK(fabs(us - (6 + 40 + 9)) < 0.01, "%g", us);
}

static void
host(void)
{
    double v[TT_N_COSTS];
    TtNcclMachine m = machine_of(1, 8);

    free_costs(v);
    v[TT_COST_CALL] = 5;
    v[TT_COST_CALL_EACH] = 4;
    CHECK(tt_nccl_call_us(v, &tt_no_effects, &m) == 5, "one launch a process");
    m.launch = TT_LAUNCH_ONE_PROCESS;
    CHECK(tt_nccl_call_us(v, &tt_no_effects, &m) == 32, "eight launches in a row");
    m.launch = TT_LAUNCH_GRAPH;
    CHECK(tt_nccl_call_us(v, &tt_no_effects, &m) == 2.5, "half with graphs");
    CHECK(fabs(tt_nccl_join_us(100, 10) - 100) < 0.01, "the slower of the two");
    CHECK(tt_nccl_join_us(10, 10) > 10 && tt_nccl_join_us(10, 10) < 12, "both are felt");
}

/* With the constants compiled in: more bytes never take less time within one choice, and nothing is free. */
static void
sane(void)
{
    const double *v = tt_nccl_costs_built_in()->value;
    static const TtNcclAlgo algos[] = { TT_NCCL_RING, TT_NCCL_TREE, TT_NCCL_NVLS,
                                        TT_NCCL_NVLS_TREE };

    for (guint gen = 0; gen < TT_N_GENS; gen++)
        for (guint nodes = 1; nodes <= 64; nodes *= 8)
            for (guint a = 0; a < G_N_ELEMENTS(algos); a++) {
                TtNcclMachine m = machine_of(nodes, 8);
                double before = 0;

                m.gen = gen;
                m.nvlink_gbps = 300;
                m.nics_gbps = 200;
                if ((algos[a] == TT_NCCL_NVLS) != (nodes == 1) && a >= 2)
                    continue;
                for (guint64 bytes = 1024; bytes <= 1ull << 33; bytes *= 2) {
                    double us = time_of(v, &m, TT_NCCL_ALLREDUCE, bytes, algos[a], TT_NCCL_SIMPLE,
                                        16, 512 << 10);

                    CHECK(us > 1 && us >= before, "%s, %u nodes, %s, %" G_GUINT64_FORMAT ": %g",
                          tt_gpu_gen_name(gen), nodes, tt_nccl_algo_name(algos[a]), bytes, us);
                    before = us;
                }
            }
    CHECK(isnan(time_of(v, &(TtNcclMachine){ .n_ranks = 16, .n_nodes = 2, .ranks_per_node = 8 },
                        TT_NCCL_ALLREDUCE, 1024, TT_NCCL_COLLNET_CHAIN, TT_NCCL_SIMPLE, 1, 1024)),
          "no form for CollNet");
}

int
main(void)
{
    CU_TestInfo tests[] = { { "rings by hand", rings },         { "wires limit", wires },
                            { "trees by hand", trees },         { "the host's pace", host },
                            { "more bytes take longer", sane }, CU_TEST_INFO_NULL };

    return check_main("nccl_time", tests);
}
