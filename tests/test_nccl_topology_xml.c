/* Topologies as NCCL would find them, and topologies of NCCL's files. */
#include "tests/nccl_xml_check.h"

#include <glib/gstdio.h>
#include <math.h>
#include <unistd.h>

/* --- topologies as NCCL would find them --------------------------------------------------------
 */

static TtNcclXml *
of_preset(const char *name)
{
    GError *error = NULL;
    g_autoptr(TtTopology) topo = tt_topology_open(name, NULL, &error);
    TtNcclXml *xml = topo ? tt_nccl_xml_of_topology(topo, &error) : NULL;

    CHECK(xml, "%s: %s", name, error ? error->message : "no XML");
    g_clear_error(&error);
    return xml;
}

static const struct {
    const char *name;
    guint cpus, switches, gpus, nets, nvlinks,
        sm; /* nvlinks: of one GPU, all its targets together */
    double gpu_gts;
    int mbps;
} presets[] = {
    { "dgx1-v100", 2, 4, 8, 4, 6, 70, 8, 100000 },
    { "dgx2", 2, 8, 16, 8, 6, 70, 8, 100000 },
    { "dgx-a100", 2, 4, 8, 8, 12, 80, 16, 200000 },
    { "dgx-h100", 2, 8, 8, 8, 18, 90, 32, 400000 },
    { "hgx-h200", 2, 8, 8, 8, 18, 90, 32, 400000 },
    { "dgx-b200", 2, 8, 8, 8, 18, 100, 32, 400000 },
    { "pcie-8x4090", 2, 0, 8, 1, 0, 89, 16, 100000 },
    { "gh200-4", 4, 0, 4, 4, 18, 90, 0, 200000 },
    { "gb200-nvl72", 36, 0, 72, 72, 18, 100, 0, 400000 },
    { "mi300x-8", 2, 8, 8, 8, 7, 94, 32, 400000 },
    { "a100-4", 1, 0, 4, 2, 12, 80, 16, 200000 },
    { "h100-4", 2, 4, 4, 4, 18, 90, 32, 200000 },
    { "v100-4", 2, 2, 4, 2, 6, 70, 8, 100000 },
    { "p5-h100", 1, 8, 8, 8, 18, 90, 32, 400000 },
    { "p5en-h200", 2, 8, 8, 8, 18, 90, 32, 400000 },
};

static void
test_presets(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(presets); i++) {
        g_autoptr(TtNcclXml) xml = of_preset(presets[i].name);
        g_autofree guint *links = g_new0(guint, presets[i].gpus);
        const TtXmlPci *pci;

        if (!xml)
            continue;
        CHECK_ROW(&presets[i], xml->cpu->len == presets[i].cpus);
        CHECK_ROW(&presets[i], xml->gpu->len == presets[i].gpus);
        CHECK_ROW(&presets[i], xml->net->len == presets[i].nets);
        CHECK_ROW(&presets[i],
                  xml->pci->len == presets[i].switches + presets[i].gpus + presets[i].nets);
        for (guint k = 0; k < xml->nvlink->len; k++) {
            const TtXmlNvlink *link = &g_array_index(xml->nvlink, TtXmlNvlink, k);

            links[link->gpu] += link->count;
        }
        for (guint k = 0; k < xml->gpu->len; k++) {
            const TtXmlGpu *gpu = &g_array_index(xml->gpu, TtXmlGpu, k);

            pci = &g_array_index(xml->pci, TtXmlPci, gpu->pci);
            CHECK_ROW(&presets[i], links[k] == presets[i].nvlinks);
            CHECK_ROW(&presets[i], gpu->sm == presets[i].sm && gpu->rank == gpu->dev);
            CHECK_ROW(&presets[i], pci->link_gts == presets[i].gpu_gts);
            CHECK_ROW(&presets[i], pci->class_id >> 16 == 3);
        }
        for (guint k = 0; k < xml->net->len; k++)
            CHECK_ROW(&presets[i],
                      g_array_index(xml->net, TtXmlNet, k).speed_mbps == presets[i].mbps);
        check_round_trip(xml);
    }
}

/* The preset is the file NCCL searched, but for what the file makes up: bus ids and guids. */
static void
test_preset_is_example(void)
{
    g_autoptr(TtNcclXml) preset = of_preset("dgx-h100");
    g_autoptr(TtNcclXml) example = load_example();

    for (guint i = 0; preset && i < example->pci->len; i++) {
        const TtXmlPci *a = &g_array_index(preset->pci, TtXmlPci, i);
        const TtXmlPci *b = &g_array_index(example->pci, TtXmlPci, i);

        CU_ASSERT_TRUE(a->cpu == b->cpu && a->parent == b->parent && a->class_id == b->class_id &&
                       a->link_gts == b->link_gts && a->link_width == b->link_width);
    }
    CU_ASSERT_EQUAL(g_array_index(preset->cpu, TtXmlCpu, 1).model, 143);
    CU_ASSERT_EQUAL(g_array_index(preset->cpu, TtXmlCpu, 1).numa_id, 1);
}

static void
test_trays(void)
{
    g_autoptr(TtNcclXml) xml = of_preset("gb200-nvl72");
    const TtXmlCpu *cpu = xml ? (const TtXmlCpu *)xml->cpu->data : NULL;

    if (!xml)
        return;
    CU_ASSERT_STRING_EQUAL(cpu[0].host_hash, cpu[1].host_hash);
    CU_ASSERT_STRING_NOT_EQUAL(cpu[1].host_hash, cpu[2].host_hash);
    CU_ASSERT_EQUAL(cpu[3].numa_id, 1);
    CU_ASSERT_STRING_EQUAL(cpu[0].arch, "arm64");
    CU_ASSERT_EQUAL(xml->c2c->len, 72);
    CU_ASSERT_EQUAL(g_array_index(xml->c2c, TtXmlC2c, 0).mb_per_s, 44712);
}

/* --- topologies of such files ------------------------------------------------------------------
 */

static TtTopology *
open_as(const char *pattern, const char *text, const char *count, const char *const *settings,
        GError **error)
{
    g_autofree char *path = NULL, *with_count = NULL;
    int fd = g_file_open_tmp(pattern, &path, NULL);
    TtTopology *topo;

    g_assert(fd >= 0);
    close(fd);
    g_assert(g_file_set_contents(path, text, -1, NULL));
    with_count = g_strdup_printf("%s%s", path, count);
    topo = tt_topology_open(with_count, settings, error);
    g_unlink(path);
    return topo;
}

static TtTopology *
open_text(const char *text, const char *count, const char *const *settings, GError **error)
{
    return open_as("tt_XXXXXX.xml", text, count, settings, error);
}

/* Every preset, written as NCCL would and read again, has the routes of the preset. */
static void
test_there_and_back(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(presets); i++) {
        GError *error = NULL;
        g_autofree char *name = g_strdup_printf("%s:2", presets[i].name), *text = NULL;
        g_autoptr(TtTopology) preset = tt_topology_open(name, NULL, NULL), back = NULL;
        g_autoptr(TtNcclXml) xml = tt_nccl_xml_of_topology(preset, NULL);
        guint n = 2 * presets[i].gpus;

        text = tt_nccl_xml_to_text(xml);
        back = open_text(text, ":2", NULL, &error);
        CHECK_NO_ERROR(error);
        CHECK_ROW(&presets[i], back && tt_topology_n_ranks(back) == n);
        for (guint r = 1; back && r < n; r += 3) {
            double a = tt_topology_route_bytes_per_s(preset, 0, r);
            double b = tt_topology_route_bytes_per_s(back, 0, r);

            /* Between sockets presets hold NCCL's figure, a node from a file what its links carry. */
            if (tt_topology_route_passes_host(preset, 0, r))
                CHECK(b > 0.95 * a, "%s: rank 0 to %u: %g, %g", presets[i].name, r, a, b);
            else
                CHECK(a / b < 1.08 && b / a < 1.08, "%s: rank 0 to %u: %g, %g", presets[i].name, r,
                      a, b);
        }
        CHECK_ROW(&presets[i], back && tt_topology_nics_per_node(back) == presets[i].nets);
    }
}

static void
test_file_is_kept(void)
{
    const char *fabric[] = { "fabric.type=fat-tree", "fabric.nodes-per-leaf=2",
                             "fabric.oversubscription=2", NULL };
    const char *node[] = { "link socket-22.bandwidth=10 GB/s", NULL };
    g_autoptr(TtNcclXml) example = load_example(), again = NULL, changed = NULL;
    g_autofree char *text = tt_nccl_xml_to_text(example), *same = NULL;
    g_autoptr(TtTopology) plain = open_text(text, "", NULL, NULL);
    g_autoptr(TtTopology) with_fabric = open_text(text, ":4", fabric, NULL);
    g_autoptr(TtTopology) with_node = open_text(text, ":4", node, NULL);

    CU_ASSERT_PTR_NOT_NULL(tt_topology_nccl_xml(plain));
    CU_ASSERT_PTR_NOT_NULL(tt_topology_nccl_xml(with_fabric));
    CU_ASSERT_PTR_NULL(tt_topology_nccl_xml(with_node));
    again = tt_nccl_xml_of_topology(plain, NULL);
    same = tt_nccl_xml_to_text(again);
    CU_ASSERT_STRING_EQUAL(same, text);
    changed = tt_nccl_xml_of_topology(with_node, NULL);
    CU_ASSERT_EQUAL(changed->gpu->len, 8);
}

/* Two ports of one card share its PCIe link; an idle branch falls away; ranks decide the order. */
static void
test_unusual(void)
{
    const char *text =
        "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\">"
        "<pci busid=\"1\" link_speed=\"8 GT/s\" link_width=\"16\"><gpu dev=\"0\" sm=\"80\" "
        "rank=\"1\"/></pci>"
        "<pci busid=\"2\" link_speed=\"16 GT/s\" link_width=\"16\"><gpu dev=\"1\" sm=\"80\" "
        "rank=\"0\"/></pci>"
        "<pci busid=\"3\"><pci busid=\"4\"/></pci>"
        "<pci busid=\"5\" link_speed=\"16 GT/s\" link_width=\"8\"><nic>"
        "<net name=\"mlx5_0\" dev=\"0\" speed=\"100000\"/><net name=\"mlx5_1\" dev=\"1\" "
        "speed=\"100000\"/>"
        "</nic></pci>"
        "<nic><net name=\"eth0\" dev=\"2\" speed=\"10000\"/></nic>"
        "</cpu></system>";
    GError *error = NULL;
    g_autoptr(TtTopology) topo = open_text(text, ":3", NULL, &error);
    g_autofree char *described = NULL;

    CHECK_NO_ERROR(error);
    if (!topo)
        return;
    described = tt_topology_describe(topo);
    CHECK(strstr(described, "node: 2 gpu, 1 cpu, 1 pcie-switch, 3 nic"), "%s", described);
    CU_ASSERT_DOUBLE_EQUAL(tt_topology_rank_out_bytes_per_s(topo, 0), 31.508e9 * 0.762, 1e7);
    CU_ASSERT_DOUBLE_EQUAL(tt_topology_rank_out_bytes_per_s(topo, 1), 15.754e9 * 0.762, 1e7);
}

/* The .ini form keeps what NCCL's search reads. */
static void
test_kept_by_ini(void)
{
    const char *text =
        "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\">"
        "<pci busid=\"1\" link_speed=\"5 GT/s\" link_width=\"16\"><gpu dev=\"0\" sm=\"80\" "
        "rank=\"0\" gdr=\"1\"/></pci>"
        "<pci busid=\"2\" link_speed=\"8 GT/s\" link_width=\"8\"><gpu dev=\"1\" sm=\"80\" "
        "rank=\"1\" gdr=\"0\"/></pci>"
        "<pci busid=\"6\" link_speed=\"16 GT/s\" link_width=\"8\"><nic>"
        "<net name=\"mlx5_0\" dev=\"0\" speed=\"25000\" gdr=\"1\"/>"
        "<net name=\"mlx5_1\" dev=\"1\" speed=\"25000\" gdr=\"1\"/></nic></pci>"
        "<pci busid=\"4\" link_speed=\"2.5 GT/s\" link_width=\"16\"><nic>"
        "<net name=\"mlx5_2\" dev=\"2\" speed=\"400000\" gdr=\"1\"/></nic></pci>"
        "<pci busid=\"5\"><nic><net name=\"mlx5_3\" dev=\"3\" speed=\"100000\" "
        "gdr=\"0\"/></nic></pci>"
        "</cpu></system>";
    GError *error = NULL;
    g_autoptr(TtTopology) topo = open_text(text, ":2", NULL, &error), again = NULL;
    g_autoptr(TtNcclXml) before = NULL, after = NULL;
    g_autofree char *ini = topo ? tt_topology_to_ini(topo) : NULL;

    CHECK_NO_ERROR(error);
    again = ini ? open_as("tt_XXXXXX.ini", ini, "", NULL, &error) : NULL;
    CHECK_NO_ERROR(error);
    if (!again)
        return;
    before = tt_nccl_xml_of_topology(topo, NULL);
    after = tt_nccl_xml_of_topology(again, &error);
    CHECK_NO_ERROR(error);
    CHECK(before->pci->len == after->pci->len, "%u PCI devices", after->pci->len);
    for (guint i = 0; i < MIN(before->pci->len, after->pci->len); i++) {
        const TtXmlPci *a = &g_array_index(before->pci, TtXmlPci, i);
        const TtXmlPci *b = &g_array_index(after->pci, TtXmlPci, i);

        CHECK(a->link_gts == b->link_gts && a->link_width == b->link_width,
              "%u: %g GT/s x%u, was %g x%u", i, b->link_gts, b->link_width, a->link_gts,
              a->link_width);
    }
    for (guint i = 0; i < 2; i++)
        CHECK(g_array_index(before->gpu, TtXmlGpu, i).gdr ==
                  g_array_index(after->gpu, TtXmlGpu, i).gdr,
              "GPU %u", i);
    for (guint i = 0; i < 4; i++) {
        const TtXmlNet *a = &g_array_index(before->net, TtXmlNet, i);
        const TtXmlNet *b = &g_array_index(after->net, TtXmlNet, i);

        CHECK(a->speed_mbps == b->speed_mbps && a->gdr == b->gdr && a->pci == b->pci,
              "NIC %u: %d Mbit/s on PCI device %u", i, b->speed_mbps, b->pci);
    }
}

/* A NIC that came up slow, seen by NCCL or not; both send as little. Healthy ones are held up by
 * PCIe, 63.0154 GB/s by 76.2 %. */
static void
test_slow_nics(void)
{
    static const struct {
        const char *setting;
        int mbps;
        double node_gbytes_per_s;
    } rows[] = { { "nic.slower=3: 100 Gbit/s", 100000, 7 * 48.0175 + 12.25 },
                 { "nic.degraded=3: 100 Gbit/s", 400000, 7 * 48.0175 + 12.25 },
                 { "nic.slower=3: 800 Gbit/s", 400000, 8 * 48.0175 } };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        const char *settings[] = { rows[r].setting, NULL };
        GError *error = NULL;
        g_autoptr(TtTopology) topo = tt_topology_open("dgx-h100:2", settings, &error);
        g_autoptr(TtNcclXml) xml = topo ? tt_nccl_xml_of_topology(topo, &error) : NULL;

        CHECK_NO_ERROR(error);
        if (!xml)
            continue;
        CHECK(g_array_index(xml->net, TtXmlNet, 3).speed_mbps == rows[r].mbps, "%s",
              rows[r].setting);
        CHECK(fabs(tt_topology_any_nic_node_out_bytes_per_s(topo, 0) / 1e9 -
                   rows[r].node_gbytes_per_s) < 0.01,
              "%s: %g", rows[r].setting, tt_topology_any_nic_node_out_bytes_per_s(topo, 0));
    }
}

static void
test_no_gpus(void)
{
    GError *error = NULL;
    const char *settings[] = { "node.sm=90", NULL };
    g_autoptr(TtTopology) hosts = tt_topology_open("hosts", NULL, NULL);

    CU_ASSERT_PTR_NULL(tt_nccl_xml_of_topology(hosts, &error));
    CHECK_ERROR(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_USAGE, "hosts: has no GPUs");
    CU_ASSERT_PTR_NULL(open_text("<system version=\"1\"/>", "", NULL, &error));
    CHECK_ERROR(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_FILE, "no <gpu> in it");
    CU_ASSERT_PTR_NULL(open_text("hello\n", "", settings, &error));
    CHECK_ERROR(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_FILE, "not well-formed XML");
}

static CU_TestInfo tests[] = {
    { "presets as NCCL finds them", test_presets },
    { "dgx-h100 is the example", test_preset_is_example },
    { "trays", test_trays },
    { "a preset, written and read", test_there_and_back },
    { "the file is kept", test_file_is_kept },
    { "unusual nodes", test_unusual },
    { "kept by the .ini form", test_kept_by_ini },
    { "slow NICs", test_slow_nics },
    { "no GPUs", test_no_gpus },
    CU_TEST_INFO_NULL,
};

int
main(void)
{
    return check_main("nccl_topology_xml", tests);
}
