/* The rules that switch pairs of algorithm and protocol on and off. */
#include "tests/golden_nccl.h"

#include <math.h>

#define MIB (1024u * 1024u)

static const struct {
    const char *name;
    guint version, min_cc, max_cc, type_intra, type_inter;
    gboolean on;
} ll128[] = {
    { "Ampere on NVLink", 22707, 80, 80, TT_PATH_NVL, TT_PATH_PXB, TRUE },
    { "not between GPUs over PCI", 22707, 80, 80, TT_PATH_PIX, TT_PATH_PXB, FALSE },
    { "over a GPU between two", 22707, 70, 70, TT_PATH_NVB, TT_PATH_PIX, TRUE },
    { "not so in 2.18.1", 21801, 70, 70, TT_PATH_NVB, TT_PATH_PIX, FALSE },
    { "Ampere: no NIC of another GPU", 22707, 80, 80, TT_PATH_NVL, TT_PATH_PXN, FALSE },
    { "Hopper may", 22707, 90, 90, TT_PATH_NVL, TT_PATH_PXN, TRUE },
    { "2.27.3 stops at P2C", 22703, 90, 90, TT_PATH_NVL, TT_PATH_PXN, FALSE },
    { "nothing through the CPU", 22707, 90, 90, TT_PATH_NVL, TT_PATH_PHB, FALSE },
    { "Turing not before 2.27", 22602, 75, 75, TT_PATH_NVL, TT_PATH_PIX, FALSE },
    { "Turing since", 22707, 75, 75, TT_PATH_NVL, TT_PATH_PIX, TRUE },
    { "Pascal never", 23007, 60, 60, TT_PATH_NVL, TT_PATH_PIX, FALSE },
    { "Blackwell not before 2.25", 22403, 100, 100, TT_PATH_NVL, TT_PATH_PIX, FALSE },
    { "Blackwell since", 22501, 100, 100, TT_PATH_NVL, TT_PATH_PIX, TRUE },
    { "no mixture", 22907, 90, 100, TT_PATH_NVL, TT_PATH_PIX, FALSE },
    { "2.30 mixes Hopper and later", 23007, 90, 100, TT_PATH_NVL, TT_PATH_PIX, TRUE },
    { "but not Ampere", 23007, 80, 90, TT_PATH_NVL, TT_PATH_PIX, FALSE },
};

static void
test_ll128(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(ll128); i++) {
        TtNcclComm comm = golden_find("2.27.7", "dgxh100", 2);
        TtNcclEnv env;
        TtNcclTable table;

        comm.version = ll128[i].version;
        comm.min_cc = ll128[i].min_cc, comm.max_cc = ll128[i].max_cc;
        comm.graph[TT_GRAPH_RING].type_intra = ll128[i].type_intra;
        comm.graph[TT_GRAPH_RING].type_inter = ll128[i].type_inter;
        table = table_of(&comm, TT_NCCL_ALLREDUCE, NULL);
        CHECK_ROW(&ll128[i], table.cell[TT_NCCL_RING][TT_NCCL_LL128].enabled == ll128[i].on);
        tt_nccl_env_init(&env);
        env.proto = (char *)"LL128"; /* by name it is on everywhere */
        table = table_of(&comm, TT_NCCL_ALLREDUCE, &env);
        CHECK_ROW(&ll128[i], table.cell[TT_NCCL_RING][TT_NCCL_LL128].enabled);
    }
}

/* fp8 in a ring of more than 8 ranks: anything else comes first, since 2.24. */
static void
test_fp8(void)
{
    TtNcclComm comm = golden_find("2.27.7", "dgxa100", 2);
    TtNcclTable table = table_of(&comm, TT_NCCL_ALLREDUCE, NULL);
    TtNcclOp op = float_sum(TT_NCCL_ALLREDUCE, 1u << 30);
    TtNcclChoice c = { 0 };
    double ring;

    ring = tt_nccl_time_us(&comm, &table, &op, TT_NCCL_RING, TT_NCCL_SIMPLE);
    op.is_fp8 = TRUE, op.type_bytes = 1;
    CHECK(tt_nccl_choose(&comm, &table, NULL, &op, &c, NULL) && c.algo == TT_NCCL_TREE, "%s",
          tt_nccl_algo_name(c.algo));
    CHECK(tt_nccl_time_us(&comm, &table, &op, TT_NCCL_RING, TT_NCCL_SIMPLE) == 1024 * ring,
          "x1024");
    comm.n_ranks = comm.ranks_per_node = 8, comm.n_nodes = 1;
    table = table_of(&comm, TT_NCCL_ALLREDUCE, NULL);
    CHECK(tt_nccl_choose(&comm, &table, NULL, &op, &c, NULL) && c.algo == TT_NCCL_RING, "8 ranks");
}

/* What the switch adds up. */
static const struct {
    const char *name;
    TtNcclOp op;
    gboolean on;
} reductions[] = {
    { "float sum", { .type_bytes = 4, .is_float = TRUE, .op_is_sum = TRUE }, TRUE },
    { "float max", { .type_bytes = 4, .is_float = TRUE, .op_is_min_max = TRUE }, FALSE },
    { "half max", { .type_bytes = 2, .is_float = TRUE, .op_is_min_max = TRUE }, TRUE },
    { "int64 min", { .type_bytes = 8, .op_is_min_max = TRUE }, TRUE },
    { "int8 sum", { .type_bytes = 1, .op_is_sum = TRUE }, FALSE },
    { "float product", { .type_bytes = 4, .is_float = TRUE }, FALSE },
    { "float average", { .type_bytes = 4, .is_float = TRUE, .op_is_avg = TRUE }, FALSE },
};

static void
test_reductions(void)
{
    TtNcclComm comm = golden_find("2.27.7", "dgxh100", 1);
    TtNcclTable reduce = table_of(&comm, TT_NCCL_ALLREDUCE, NULL);
    TtNcclTable gather = table_of(&comm, TT_NCCL_ALLGATHER, NULL);

    for (guint i = 0; i < G_N_ELEMENTS(reductions); i++) {
        TtNcclOp op = reductions[i].op;

        op.bytes = MIB, op.func = TT_NCCL_ALLREDUCE;
        CHECK_ROW(&reductions[i], isfinite(tt_nccl_time_us(&comm, &reduce, &op, TT_NCCL_NVLS,
                                                           TT_NCCL_SIMPLE)) == reductions[i].on);
        op.func = TT_NCCL_ALLGATHER; /* nothing is added up there */
        CHECK_ROW(&reductions[i],
                  isfinite(tt_nccl_time_us(&comm, &gather, &op, TT_NCCL_NVLS, TT_NCCL_SIMPLE)));
    }
}

/* SHARP on: what the switch inside and the network outside can do together. */
static void
test_collnet(void)
{
    TtNcclComm comm = golden_find("2.27.7", "dgxh100", 2);
    TtNcclTable table;

    comm.collnet = TRUE;
    comm.graph[TT_GRAPH_COLLNET_DIRECT] = comm.graph[TT_GRAPH_NVLS];
    comm.graph[TT_GRAPH_COLLNET_CHAIN] = comm.graph[TT_GRAPH_TREE];
    table = table_of(&comm, TT_NCCL_ALLREDUCE, NULL);
    /* f = 8 / 8 = 1: 8 x 40 x 0.85 (Hopper) x 0.5; 2 (3.7 + 7 x 0.4) + 31 */
    CHECK(fabs(table.cell[TT_NCCL_COLLNET_DIRECT][TT_NCCL_SIMPLE].bw_gbps - 136) < 1e-9, "%g",
          table.cell[TT_NCCL_COLLNET_DIRECT][TT_NCCL_SIMPLE].bw_gbps);
    CHECK(fabs(table.cell[TT_NCCL_COLLNET_DIRECT][TT_NCCL_SIMPLE].latency_us - 44) < 1e-9, "%g",
          table.cell[TT_NCCL_COLLNET_DIRECT][TT_NCCL_SIMPLE].latency_us);
    /* 2 x 7 x 2.8 + 30; 8 x 48 x 0.5 */
    CHECK(fabs(table.cell[TT_NCCL_COLLNET_CHAIN][TT_NCCL_SIMPLE].latency_us - 69.2) < 1e-9, "%g",
          table.cell[TT_NCCL_COLLNET_CHAIN][TT_NCCL_SIMPLE].latency_us);
    CHECK(table.cell[TT_NCCL_NVLS][TT_NCCL_SIMPLE].enabled, "NVLS across nodes");
    comm.nvswitch = FALSE;
    table = table_of(&comm, TT_NCCL_ALLREDUCE, NULL);
    CHECK(!table.cell[TT_NCCL_COLLNET_DIRECT][TT_NCCL_SIMPLE].enabled, "no NVSwitch");
}

/* Nobody to talk to. */
static void
test_one_rank(void)
{
    TtNcclComm comm = golden_find("2.27.7", "h100x1", 2);
    TtNcclTable table;
    TtNcclOp op = float_sum(TT_NCCL_ALLREDUCE, MIB);
    TtNcclChoice c;

    comm.n_ranks = comm.n_nodes = comm.ranks_per_node = 1;
    table = table_of(&comm, TT_NCCL_ALLREDUCE, NULL);
    CHECK(tt_nccl_choose(&comm, &table, NULL, &op, &c, NULL), "a choice");
    CHECK(c.algo == TT_NCCL_RING && c.proto == TT_NCCL_SIMPLE && c.time_us == 0, "%g", c.time_us);
}

int
main(void)
{
    CU_TestInfo tests[] = {
        { "LL128", test_ll128 },
        { "fp8", test_fp8 },
        { "reductions of the switch", test_reductions },
        { "CollNet", test_collnet },
        { "one rank", test_one_rank },
        CU_TEST_INFO_NULL,
    };

    return check_main("nccl_rules", tests);
}
