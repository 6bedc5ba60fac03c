/* Machines from the facts of measurements: numbers, and a topology file NCCL's search can use. */
#include "models/replay.h"
#include "models/scoreboard.h"
#include "tests/check.h"

#include <math.h>
#include <string.h>

static void
finds_gpus(void)
{
    static const struct {
        const char *name, *want; /* NULL: not known */
    } rows[] = {
        { "NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB" },
        { "NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB" },
        { "A100-PCIE-40GB", "A100-PCIe" },
        { "NVIDIA A100 80GB PCIe", "A100-PCIe-80GB" },
        { "Tesla V100-SXM2-16GB", "V100-SXM2" },
        { "Tesla V100-SXM3-32GB", "V100-SXM3" },
        { "Tesla V100-PCIE-16GB", "V100-PCIe" },
        { "NVIDIA H100 80GB HBM3", "H100-SXM5" },
        { "NVIDIA H100 PCIe", "H100-PCIe" },
        { "NVIDIA H200", "H200-SXM" },
        { "NVIDIA H20", "H20" },
        { "NVIDIA GH200 120GB", "GH200" },
        { "NVIDIA GB200", "GB200" },
        { "GB10 (DGX Spark)", "GB10" },
        { "NVIDIA GeForce RTX 4090", "RTX 4090" },
        { "NVIDIA L40S", "L40S" },
        { "AMD Instinct MI300X VF", "MI300X" },
        { "MI300X (CPX partitions)", "MI300X (CPX partition)" },
        { "none (host memory)", NULL },
        { "", NULL },
        { "NVIDIA A1000", NULL },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        const TtGpuModel *gpu = tt_gpu_find(rows[i].name);

        CHECK(g_strcmp0(gpu ? gpu->name : NULL, rows[i].want) == 0, "%s is taken for %s",
              rows[i].name, gpu ? gpu->name : "none");
    }
}

/* What the files of bench/measurements become. */
static void
knows_machines(void)
{
    static const struct {
        const char *name;
        const char *class_name;
        guint n_nodes, cpus, switches, gpus, nets; /* of what NCCL sees; n_nodes as NCCL counts */
        int net_gbits;
    } rows[] = {
        { "dgxh100-1x8-ar", "H100 NVSwitch", 1, 2, 8, 8, 8, 400 },
        { "p5-h100-8x8-ar-bench", "H100 NVSwitch + EFA", 8, 2, 8, 8, 8,
          400 }, /* four NICs as one */
        { "ncclblog-h200-2x8-best", "H200 NVSwitch + EFA", 2, 2, 8, 8, 8, 400 },
        { "p4de-a100-2x8-ar", "A100 NVSwitch + EFA", 2, 2, 4, 8, 4, 100 },
        { "abci2-a100-2x8-ar", "A100 NVSwitch + InfiniBand", 2, 2, 4, 8, 4, 200 },
        { "abci2-v100-2x4-ar", "V100 NVLink mesh + InfiniBand", 2, 2, 2, 4, 2, 100 },
        { "polaris-a100-n256-ar-nccl221-env4", "A100 NVLink mesh + Slingshot", 256, 1, 0, 4, 2,
          200 },
        { "dgx2-v100-12-ar", "V100 NVSwitch", 1, 2, 8, 12, 8, 100 }, /* 12 of 16 GPUs take part */
        { "panl-v100-8-ar", "V100 NVLink mesh", 1, 2, 4, 8, 4, 100 },
        { "rtx4090-1x2-ar-docker", "RTX 40 host memory", 1, 1, 0, 2, 1, 100 },
        { "panl-a100pcie-8-ar", "A100 PCIe", 1, 2, 2, 8, 1, 100 },
        { "clu01-h100-10x1-ar", "H100 one GPU + InfiniBand", 10, 2, 8, 1, 1,
          400 }, /* the nearest NIC */
        { "alps-gh200-n002-ar-ofi192", "GH200 NVLink mesh + Slingshot", 2, 4, 0, 4, 4, 200 },
        { "cw-gb200-18x4-ar", "GB200 NVLink domain", 1, 36, 0, 72, 72, 400 },
        { "oci-gb200-32x4-ar", "GB200 NVLink domain + RoCE", 2, 32, 0, 64, 128, 400 },
        { "mi300x-2x8-ar", "MI300X xGMI + RoCE", 2, 2, 8, 8, 8, 400 },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *path = g_strdup_printf("%s/bench/measurements/%s.json",
                                                g_getenv("TT_SOURCE_DIR"), rows[i].name);
        g_autoptr(GPtrArray) tables = tt_measured_read(path, NULL);
        g_autoptr(GError) error = NULL;
        g_autoptr(TtNcclXml) xml = NULL;
        g_autofree char *class_name = NULL;
        guint n_nodes = 0, n_switches = 0;
        TtHardware h;

        CU_ASSERT_PTR_NOT_NULL_FATAL(tables);
        CHECK(tt_hardware_of(tables->pdata[0], &h, &error), "%s: %s", rows[i].name,
              error ? error->message : "");
        class_name = tt_hardware_class(&h);
        CHECK(!strcmp(class_name, rows[i].class_name), "%s: %s", rows[i].name, class_name);
        xml = tt_hardware_xml(&h, &n_nodes, &error);
        CU_ASSERT_PTR_NOT_NULL_FATAL(xml);
        for (guint p = 0; p < xml->pci->len; p++)
            n_switches += g_array_index(xml->pci, TtXmlPci, p).class_id == 0x060400;
        CHECK(n_nodes == rows[i].n_nodes && xml->cpu->len == rows[i].cpus &&
                  n_switches == rows[i].switches && xml->gpu->len == rows[i].gpus &&
                  xml->net->len == rows[i].nets,
              "%s: %u nodes, %u CPUs, %u switches, %u GPUs, %u NICs", rows[i].name, n_nodes,
              xml->cpu->len, n_switches, xml->gpu->len, xml->net->len);
        CHECK_ROW(&rows[i],
                  g_array_index(xml->net, TtXmlNet, 0).speed_mbps == 1000 * rows[i].net_gbits);
    }
}

/* Every published file's machine is written as a topology file that our own reader takes, with every
 * bus id once; and NCCL's search gets along with it. */
static void
makes_files_others_read(void)
{
    g_autofree char *folder =
        g_build_filename(g_getenv("TT_SOURCE_DIR"), "bench/measurements", NULL);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name;
    guint n = 0;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(folder, name, NULL), *text = NULL;
        g_autoptr(GPtrArray) tables = NULL;
        g_autoptr(GHashTable) buses = g_hash_table_new(g_str_hash, g_str_equal);
        g_autoptr(TtNcclXml) xml = NULL, again = NULL;
        g_autoptr(GError) error = NULL;
        guint n_nodes;
        TtHardware h;

        if (!g_str_has_suffix(name, ".json") || g_str_has_prefix(name, "h100-2x8-ibwrite"))
            continue;
        tables = tt_measured_read(path, NULL);
        CU_ASSERT_FATAL(tt_hardware_of(tables->pdata[0], &h, NULL));
        xml = tt_hardware_xml(&h, &n_nodes, &error);
        CU_ASSERT_PTR_NOT_NULL_FATAL(xml);
        CHECK((guint64)n_nodes * xml->gpu->len == (guint64)h.n_nodes * h.gpus_per_node, "%s: GPUs",
              name);
        for (guint i = 0; i < xml->pci->len; i++)
            CHECK(g_hash_table_add(buses, g_array_index(xml->pci, TtXmlPci, i).bus_id),
                  "%s: bus %s twice", name, g_array_index(xml->pci, TtXmlPci, i).bus_id);
        if (xml->pci->len < 200) { /* a loaded file holds 256 tags */
            text = tt_nccl_xml_to_text(xml);
            again = tt_nccl_xml_parse(name, text, strlen(text), &error);
            CHECK(again && again->gpu->len == xml->gpu->len && again->net->len == xml->net->len,
                  "%s: %s", name, error ? error->message : "not the same");
        }
        n++;
    }
    CHECK(n == 155, "%u machines", n);
}

static TtMeasured *
measured(const char *text)
{
    g_autoptr(GPtrArray) tables = tt_measured_parse("a.log", text, strlen(text), NULL);

    CU_ASSERT_PTR_NOT_NULL_FATAL(tables);
    return g_steal_pointer(&tables->pdata[0]);
}

#define LOG(GPU, A, B)                                                                             \
    "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20\n"        \
    "#  Rank  0 Group  0 Pid  1 on " A " device  0 [0x01] " GPU "\n"                               \
    "#  Rank  1 Group  0 Pid  2 on " B " device  1 [0x02] " GPU "\n"                               \
    "8 2 float sum -1 10.0 0.0 0.0 0 10.0 0.0 0.0 0\n"

static void
refuses_unknown_machines(void)
{
    g_autoptr(TtMeasured) strange = measured(LOG("NVIDIA Z9", "a", "a"));
    g_autoptr(TtMeasured) unnamed = measured("8 2 float sum -1 10.0 0.0 0.0 0\n");
    GError *error = NULL;
    TtHardware h;

    CU_ASSERT_FALSE(tt_hardware_of(strange, &h, &error));
    CHECK_ERROR(error, TT_HARDWARE_ERROR, TT_HARDWARE_ERROR_USAGE, "\"NVIDIA Z9\" is not known");
    CU_ASSERT_FALSE(tt_hardware_of(unnamed, &h, &error));
    CHECK_ERROR(error, TT_HARDWARE_ERROR, TT_HARDWARE_ERROR_USAGE, "no GPU is named");
}

/* Two GPUs took part; the topology has eight. */
static void
contradictions_say_both_numbers(void)
{
    g_autoptr(TtMeasured) m = measured(LOG("NVIDIA H100 80GB HBM3", "a", "a"));
    g_autoptr(TtTopology) topo = tt_topology_open("dgx-h100", NULL, NULL);
    g_autoptr(TtNcclXml) node = tt_nccl_xml_of_topology(topo, NULL);
    TtReplayOptions how = {
        .node = node, .n_nodes = 1, .topology = "dgx-h100", .collective = "all_reduce"
    };
    GError *error = NULL;

    CU_ASSERT_PTR_NULL(tt_replay_new(m, &how, &error));
    CHECK_ERROR(error, TT_REPLAY_ERROR, TT_REPLAY_ERROR_USAGE,
                "2 GPUs took part, and dgx-h100 has 8 (1 x 8)");
}

/* A log of two H100 is replayed: LL over a ring at 8 bytes, by the version it names or the one asked for. */
static void
replays_choices(void)
{
    g_autoptr(TtMeasured) m = measured(LOG("NVIDIA H100 80GB HBM3", "a", "a"));
    TtReplayOptions how = { .version = 22707, .collective = "all_reduce" };
    g_autoptr(TtReplay) r = tt_replay_new(m, &how, NULL);
    TtNcclChoice choice;

    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    CU_ASSERT_EQUAL(r->version, 22707);
    CU_ASSERT_EQUAL(r->comm.n_ranks, 2);
    CU_ASSERT_TRUE(tt_replay_choose(r, &g_array_index(m->rows, TtMeasuredRow, 0), &choice, NULL));
    CU_ASSERT_EQUAL(choice.algo, TT_NCCL_RING);
    CU_ASSERT_EQUAL(choice.proto, TT_NCCL_LL);
    CU_ASSERT_TRUE(tt_replay_time_us(r, &g_array_index(m->rows, TtMeasuredRow, 0), &choice) > 1);
}

static void
sorts_errors(void)
{
    static const double errors[] = { 0.1, -0.3, 0.2, -0.1, 0.5 };
    TtErrorStats s = tt_error_stats(errors, 5), none = tt_error_stats(errors, 0);
    g_autoptr(TtScoreboard) board = tt_scoreboard_new();

    CU_ASSERT_DOUBLE_EQUAL(s.median_abs, 0.2, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(s.p95_abs, 0.3 + 0.8 * 0.2, 1e-12); /* between the last two */
    CU_ASSERT_DOUBLE_EQUAL(s.median, 0.1, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(s.mean, 0.08, 1e-12);
    CU_ASSERT_EQUAL(none.n, 0);
    CU_ASSERT_TRUE(isnan(none.median));
    CU_ASSERT_EQUAL(tt_size_class(16384), 0);
    CU_ASSERT_EQUAL(tt_size_class(16385), 1);
    CU_ASSERT_EQUAL(tt_size_class(64 << 20), 2);
    CU_ASSERT_EQUAL(tt_size_class(G_MAXUINT64), 3);
    tt_scoreboard_add(board, "b", 8, 0.1);
    tt_scoreboard_add(board, "a", 1 << 20, -0.2);
    CU_ASSERT_EQUAL(tt_scoreboard_n_rows(board), 2);
    CU_ASSERT_EQUAL(tt_scoreboard_stats(board, 1, 1).n, 1);
    CU_ASSERT_EQUAL(tt_scoreboard_stats(board, 1, 0).n, 0);
    CU_ASSERT_EQUAL(tt_scoreboard_stats(board, TT_ALL_ROWS, TT_N_SIZE_CLASSES).n, 2);
}

/* Published measurements are JSON. */
static gboolean
can_json(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) tables = tt_measured_parse("a.json", "{}", 2, &error);

    return !tables && !strstr(error->message, "json-glib");
}

int
main(void)
{
    CU_TestInfo without_json[] = { { "names of GPUs", finds_gpus },
                                   { "unknown machines are refused", refuses_unknown_machines },
                                   { "contradictions say both numbers",
                                     contradictions_say_both_numbers },
                                   { "choices are replayed", replays_choices },
                                   { "errors are sorted", sorts_errors },
                                   CU_TEST_INFO_NULL };
    CU_TestInfo tests[] = { { "names of GPUs", finds_gpus },
                            { "machines of published files", knows_machines },
                            { "topology files of all of them", makes_files_others_read },
                            { "unknown machines are refused", refuses_unknown_machines },
                            { "contradictions say both numbers", contradictions_say_both_numbers },
                            { "choices are replayed", replays_choices },
                            { "errors are sorted", sorts_errors },
                            CU_TEST_INFO_NULL };

    return check_main("hardware", can_json() ? tests : without_json);
}
