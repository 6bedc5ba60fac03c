/* Channels, threads, chunks and the split of the data. */
#include "tests/golden_nccl.h"

#include <math.h>

#define KIB 1024u
#define MIB (1024u * 1024u)

static TtNcclChoice
shape_of(const TtNcclComm *comm, TtNcclFunc func, guint64 bytes, TtNcclAlgo algo, TtNcclProto proto)
{
    TtNcclTable table = table_of(comm, func, NULL);
    TtNcclOp op = float_sum(func, bytes);
    TtNcclChoice choice;

    tt_nccl_shape(comm, &table, NULL, &op, algo, proto, &choice);
    return choice;
}

/* --- figures worked by hand -------------------------------------------------------------------- */

/* 2.27.7, allreduce; latency us, bandwidth GB/s: nccl.md 1.10. */
static const struct {
    const char *name, *system;
    guint n_nodes, algo, proto;
    double latency_us, bw_gbps;
} figures[] = {
    /* 6 ch x 20 GB/s: x 0.92, / 3.8, x 0.5; 6.8 + 2 x 7 x 0.6 */
    { "V100, tree of 8 by LL", "dgx1v", 1, TT_NCCL_TREE, TT_NCCL_LL, 15.2, 14.5 },
    { "V100, ring of 8 by Simple", "dgx1v", 1, TT_NCCL_RING, TT_NCCL_SIMPLE, 56, 68.6 },
    { "A100, ring by LL128", "dgxa100", 1, TT_NCCL_RING, TT_NCCL_LL128, 40.6, 126.2 },
    /* 12 ch x 30 = 360, x 8/14; 8.4 + 14 x 3.4 */
    { "H100, ring by Simple", "dgxh100", 1, TT_NCCL_RING, TT_NCCL_SIMPLE, 56, 205.7 },
    { "H100, the switch adds up", "dgxh100", 1, TT_NCCL_NVLS, TT_NCCL_SIMPLE, 25, 266.7 },
    /* 8 x 48 = 384, x 0.92, cap 8 x 41.4, x 0.85, x 0.5; 8.4 + 2 (7 x 4 + 14) */
    { "2 x H100, tree by Simple", "dgxh100", 2, TT_NCCL_TREE, TT_NCCL_SIMPLE, 92.4, 140.8 },
    { "16 x H100, tree of switches", "dgxh100", 16, TT_NCCL_NVLS_TREE, TT_NCCL_SIMPLE, 137, 160 },
    /* ring hops inside a node cost what posting does, 2 us with an AMD CPU */
    { "2 x A100, ring by LL", "dgxa100", 2, TT_NCCL_RING, TT_NCCL_LL, 68, 12 },
    { "4 GPUs, a node each, tree by LL128", "h100x1", 4, TT_NCCL_TREE, TT_NCCL_LL128, 48, 17.6 },
};

static void
test_figures(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(figures); i++) {
        TtNcclComm comm = golden_find("2.27.7", figures[i].system, figures[i].n_nodes);
        TtNcclTable table = table_of(&comm, TT_NCCL_ALLREDUCE, NULL);
        const TtNcclCell *cell = &table.cell[figures[i].algo][figures[i].proto];

        CHECK(fabs(cell->latency_us - figures[i].latency_us) < 0.06, "%s: %g us", figures[i].name,
              cell->latency_us);
        CHECK(fabs(cell->bw_gbps - figures[i].bw_gbps) < 0.06, "%s: %g GB/s", figures[i].name,
              cell->bw_gbps);
    }
}

/* k = 14, correction 0.5: 92.4 + 1048576 / 70380 = 107.3 us */
static void
test_time(void)
{
    TtNcclComm comm = golden_find("2.27.7", "dgxh100", 2);
    TtNcclTable table = table_of(&comm, TT_NCCL_ALLREDUCE, NULL);
    TtNcclOp op = float_sum(TT_NCCL_ALLREDUCE, MIB);
    double us = tt_nccl_time_us(&comm, &table, &op, TT_NCCL_TREE, TT_NCCL_SIMPLE);

    CHECK(fabs(us - 107.3) < 0.05, "%g", us);
}

/* 24 blocks; 128 cells of 8 KiB by Simple, 512 of 2 KiB by LL, 22 a channel: 23 x 22 + 6. */
static void
test_a100_example(void)
{
    TtNcclComm comm = golden_find("2.27.7", "dgxa100", 1);
    TtNcclChoice c = shape_of(&comm, TT_NCCL_ALLREDUCE, MIB, TT_NCCL_RING, TT_NCCL_LL);

    CHECK(c.n_channels == 24, "%u channels", c.n_channels);
    CHECK(c.used_channels == 24, "%u used", c.used_channels);
    CHECK(c.channel_bytes == 45056, "%" G_GUINT64_FORMAT, c.channel_bytes);
    CHECK(c.last_channel_bytes == 12288, "%" G_GUINT64_FORMAT, c.last_channel_bytes);
    CHECK(c.chunk_bytes == 5632, "%" G_GUINT64_FORMAT, c.chunk_bytes); /* 45056 / 8 ranks */
}

/* --- channels NCCL was seen to use ------------------------------------------------------------- */

/* "AllReduce: ... channel{Lo..Hi}" of NCCL 2.30.4 (published logs): 4 nodes of 8 H200, 16 channels. Least
 * size of each count 1, 2, 4, 8, 16, as a power of two; 0: never seen. */
static const struct {
    const char *name;
    guint algo, proto;
    guint n_nodes, per_node, n_channels;
    guint k[5];
} seen[] = {
    { "ring LL", TT_NCCL_RING, TT_NCCL_LL, 4, 8, 16, { 10, 18, 19, 20, 21 } },
    { "ring LL128", TT_NCCL_RING, TT_NCCL_LL128, 4, 8, 16, { 10, 15, 16, 17, 18 } },
    { "ring Simple", TT_NCCL_RING, TT_NCCL_SIMPLE, 4, 8, 16, { 10, 16, 17, 18, 19 } },
    { "tree LL", TT_NCCL_TREE, TT_NCCL_LL, 4, 8, 16, { 10, 13, 14, 15, 16 } },
    { "tree LL128", TT_NCCL_TREE, TT_NCCL_LL128, 4, 8, 16, { 10, 15, 16, 17, 18 } },
    { "tree Simple", TT_NCCL_TREE, TT_NCCL_SIMPLE, 4, 8, 16, { 10, 16, 17, 18, 19 } },
    { "one GPU a node, ring LL", TT_NCCL_RING, TT_NCCL_LL, 4, 1, 4, { 10, 15, 16 } },
    { "one GPU a node, ring LL128", TT_NCCL_RING, TT_NCCL_LL128, 4, 1, 4, { 10, 15, 16 } },
    { "one GPU a node, tree Simple", TT_NCCL_TREE, TT_NCCL_SIMPLE, 4, 1, 4, { 10, 16, 17 } },
};

static void
test_seen(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(seen); i++) {
        TtNcclComm comm = golden_find("2.30.7", "dgxh100", 4);
        guint n = 0;

        comm.n_nodes = seen[i].n_nodes, comm.ranks_per_node = seen[i].per_node;
        comm.n_ranks = comm.n_nodes * comm.ranks_per_node;
        comm.n_channels = seen[i].n_channels;
        for (guint k = 10; k <= 30; k++) {
            TtNcclChoice c =
                shape_of(&comm, TT_NCCL_ALLREDUCE, 1ull << k, seen[i].algo, seen[i].proto);

            while (n + 1 < 5 && seen[i].k[n + 1] && k >= seen[i].k[n + 1])
                n++;
            CHECK(c.used_channels == 1u << n, "%s, 2^%u: %u channels, seen %u", seen[i].name, k,
                  c.used_channels, 1u << n);
        }
    }
}

/* --- threads, chunks --------------------------------------------------------------------------- */

static const struct {
    const char *name, *version, *system;
    guint n_nodes, func, algo, proto;
    guint64 bytes;
    guint n_channels, n_threads;
    guint64 chunk_bytes, slice_bytes;
} shapes[] = {
    { "a full ring chunk is 4 steps of 512 KiB, in two slices", "2.27.7", "dgxh100", 2,
      TT_NCCL_ALLREDUCE, TT_NCCL_RING, TT_NCCL_SIMPLE, 1u << 30, 16, 544, 2 * MIB, MIB },
    { "allgather: each rank's part of a channel", "2.27.7", "dgxh100", 2, TT_NCCL_ALLGATHER,
      TT_NCCL_RING, TT_NCCL_SIMPLE, 64 * MIB, 16, 544, 256 * KIB, 128 * KIB },
    { "LL has 32 KiB of data a step", "2.27.7", "dgxh100", 2, TT_NCCL_ALLREDUCE, TT_NCCL_RING,
      TT_NCCL_LL, 1u << 30, 16, 512, 32 * KIB, 32 * KIB },
    { "LL128 has 15 of 16 parts", "2.27.7", "dgxh100", 2, TT_NCCL_ALLREDUCE, TT_NCCL_RING,
      TT_NCCL_LL128, 1u << 30, 16, 640, 576000, 576000 },
    { "few bytes: one block of 96 threads", "2.27.7", "dgxh100", 2, TT_NCCL_ALLREDUCE, TT_NCCL_RING,
      TT_NCCL_LL, 1024, 1, 96, 64, 64 },
    { "a tree takes all threads since 2.22", "2.27.7", "dgxh100", 2, TT_NCCL_ALLREDUCE,
      TT_NCCL_TREE, TT_NCCL_LL, 1024, 1, 640, 1024, 1024 },
    { "but not before", "2.21.5", "dgxh100", 2, TT_NCCL_ALLREDUCE, TT_NCCL_TREE, TT_NCCL_LL, 1024,
      1, 128, 1024, 1024 },
    /* d = 7 + 1 = 8; 64 MiB / (16 x 512 KiB) = 8 < 64, / 256 KiB = 16 < 64, 128 KiB: 32 not < 32 */
    { "2.19 cuts a tree's chunks by depth", "2.19.3", "dgxa100", 2, TT_NCCL_ALLREDUCE, TT_NCCL_TREE,
      TT_NCCL_SIMPLE, 64 * MIB, 16, 640, 128 * KIB, 128 * KIB },
    { "2.27 does not", "2.27.7", "dgxa100", 2, TT_NCCL_ALLREDUCE, TT_NCCL_TREE, TT_NCCL_SIMPLE,
      64 * MIB, 16, 640, 512 * KIB, 512 * KIB },
    { "the switch's chunks are 128 KiB", "2.27.7", "dgxh100", 1, TT_NCCL_ALLREDUCE, TT_NCCL_NVLS,
      TT_NCCL_SIMPLE, G_GUINT64_CONSTANT(8) << 30, 16, 640, 128 * KIB, 128 * KIB },
    /* 64 MiB over 16 channels: 4 MiB < 64 x 8 heads x 128 KiB, not < 8 x 8 x 64 KiB */
    { "64 KiB where there are few of them", "2.27.7", "dgxh100", 1, TT_NCCL_ALLREDUCE, TT_NCCL_NVLS,
      TT_NCCL_SIMPLE, 64 * MIB, 16, 640, 64 * KIB, 64 * KIB },
    { "the tree of switches: 64 KiB from 4 nodes on", "2.27.7", "dgxh100", 4, TT_NCCL_ALLREDUCE,
      TT_NCCL_NVLS_TREE, TT_NCCL_SIMPLE, 1u << 30, 16, 640, 64 * KIB, 64 * KIB },
    { "PAT takes every channel", "2.27.7", "h100x1", 4, TT_NCCL_ALLGATHER, TT_NCCL_PAT,
      TT_NCCL_SIMPLE, MIB, 4, 640, 64 * KIB, 64 * KIB },
    { "a broadcast moves single steps", "2.27.7", "dgxa100", 2, TT_NCCL_BROADCAST, TT_NCCL_RING,
      TT_NCCL_SIMPLE, 1u << 30, 16, 544, 512 * KIB, 512 * KIB },
};

static void
test_shapes(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(shapes); i++) {
        TtNcclComm comm = golden_find(shapes[i].version, shapes[i].system, shapes[i].n_nodes);
        TtNcclChoice c =
            shape_of(&comm, shapes[i].func, shapes[i].bytes, shapes[i].algo, shapes[i].proto);

        CHECK(c.n_channels == shapes[i].n_channels && c.n_threads == shapes[i].n_threads,
              "%s: %u blocks of %u", shapes[i].name, c.n_channels, c.n_threads);
        CHECK(c.chunk_bytes == shapes[i].chunk_bytes && c.slice_bytes == shapes[i].slice_bytes,
              "%s: chunk %" G_GUINT64_FORMAT ", slice %" G_GUINT64_FORMAT, shapes[i].name,
              c.chunk_bytes, c.slice_bytes);
    }
}

/* Buffers and threads as the environment wants them. */
static void
test_environment(void)
{
    TtNcclComm comm = golden_find("2.27.7", "dgxh100", 2);
    TtNcclEnv env;
    TtNcclTable table = table_of(&comm, TT_NCCL_ALLREDUCE, NULL);
    TtNcclOp op = float_sum(TT_NCCL_ALLREDUCE, 1u << 30);
    TtNcclChoice c;

    tt_nccl_env_init(&env);
    env.buff_size = 8 * MIB, env.n_threads = 256;
    tt_nccl_shape(&comm, &table, &env, &op, TT_NCCL_RING, TT_NCCL_SIMPLE, &c);
    CHECK(c.chunk_bytes == 4 * MIB, "%" G_GUINT64_FORMAT, c.chunk_bytes);
    CHECK(c.n_threads == 256 + 32, "%u", c.n_threads);
    env.n_threads = 100; /* no multiple of 32: the most */
    tt_nccl_shape(&comm, &table, &env, &op, TT_NCCL_RING, TT_NCCL_SIMPLE, &c);
    CHECK(c.n_threads == 512 + 32, "%u", c.n_threads);
}

/* Whatever the size, the channels' shares are the whole and chunks are not empty. */
static void
test_shares(void)
{
    static const char *const versions[] = { "2.18.5", "2.21.5", "2.22.3", "2.27.7", "2.30.7" };

    for (guint v = 0; v < G_N_ELEMENTS(versions); v++) {
        TtNcclComm comm = golden_find(versions[v], "dgxh100", 2);

        for (guint f = 0; f < TT_NCCL_N_FUNCS; f++) {
            TtNcclTable table = table_of(&comm, f, NULL);
            guint64 unit = f == TT_NCCL_ALLGATHER || f == TT_NCCL_REDUCE_SCATTER ? 64 : 4;

            for (guint64 bytes = unit; bytes < 1ull << 34;
                 bytes = bytes * 3 / 2 / unit * unit + unit) {
                TtNcclOp op = float_sum(f, bytes);

                for (guint a = 0; a < TT_NCCL_N_ALGOS * TT_NCCL_N_PROTOS; a++) {
                    TtNcclChoice c;

                    if (!table.cell[a / 3][a % 3].enabled)
                        continue;
                    tt_nccl_shape(&comm, &table, NULL, &op, a / 3, a % 3, &c);
                    CHECK((c.used_channels - 1) * c.channel_bytes + c.last_channel_bytes == bytes,
                          "%s, %s of %" G_GUINT64_FORMAT, versions[v], tt_nccl_func_name(f), bytes);
                    CHECK(c.used_channels >= 1 && c.used_channels <= c.n_channels, "%u of %u",
                          c.used_channels, c.n_channels);
                    CHECK(c.last_channel_bytes <= c.channel_bytes && c.last_channel_bytes > 0,
                          "last %" G_GUINT64_FORMAT, c.last_channel_bytes);
                    CHECK(c.chunk_bytes > 0 && c.slice_bytes > 0 && c.slice_bytes <= c.chunk_bytes,
                          "chunk %" G_GUINT64_FORMAT, c.chunk_bytes);
                }
            }
        }
    }
}

int
main(void)
{
    CU_TestInfo tests[] = {
        { "figures worked by hand", test_figures },
        { "a time worked by hand", test_time },
        { "a split worked by hand", test_a100_example },
        { "channels seen in use", test_seen },
        { "threads and chunks", test_shapes },
        { "buffers and threads from the environment", test_environment },
        { "shares are the whole", test_shares },
        CU_TEST_INFO_NULL,
    };

    return check_main("nccl_shape", tests);
}
