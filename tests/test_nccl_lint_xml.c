/* What lint finds: one change to a good node, one finding. */
#include "tests/check.h"
#include "topologies/nccl_draw.h"
#include "topologies/nccl_lint.h"

#include <string.h>

static char *
good_text(void)
{
    g_autofree char *path =
        g_build_filename(g_getenv("TT_SOURCE_DIR"), "tests/data/nccl_h100.xml", NULL);
    g_autoptr(TtNcclXml) xml = tt_nccl_xml_load(path, NULL);

    g_assert(xml);
    return tt_nccl_xml_to_text(xml);
}

/* The first @from behind @after becomes @to. */
static char *
changed(const char *text, const char *after, const char *from, const char *to)
{
    const char *start = strstr(text, after), *at = start ? strstr(start, from) : NULL;

    g_assert(at);
    return g_strdup_printf("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

/* The findings, one per line. */
static char *
lint_text(const char *text)
{
    GError *error = NULL;
    g_autoptr(TtNcclXml) xml = tt_nccl_xml_parse("node.xml", text, strlen(text), &error);
    g_autoptr(GPtrArray) findings = xml ? tt_nccl_lint(xml) : NULL;
    g_autoptr(GString) lines = g_string_new(NULL);

    CHECK_NO_ERROR(error);
    for (guint i = 0; findings && i < findings->len; i++) {
        const TtLintFinding *finding = findings->pdata[i];
        g_autofree char *line = tt_lint_line(finding);

        g_string_append_printf(lines, "%s\n", line);
    }
    return g_strdup(lines->str);
}

#define GPU3 "busid=\"0000:41:00.0\""
#define NIC3 "busid=\"0000:42:00.0\""
#define SW3  "busid=\"0000:40:00.0\""

static const struct {
    const char *name, *after, *from, *to;
    const char *line; /* how the finding begins */
} rows[] = {
    { "GPU at gen 4", GPU3, "32.0 GT/s", "16.0 GT/s",
      "warning: gpu 3 (0000:41:00.0): 16 GT/s x16; expected 32 GT/s x16, as gpu 0" },
    { "GPU at x8", GPU3, "link_width=\"16\"", "link_width=\"8\"",
      "warning: gpu 3 (0000:41:00.0): 32 GT/s x8; expected 32 GT/s x16" },
    { "NIC at x8", NIC3, "link_width=\"16\"", "link_width=\"8\"",
      "warning: nic mlx5_3 (0000:42:00.0): 32 GT/s x8; expected 32 GT/s x16" },
    { "switch at gen 4", SW3, "32.0 GT/s", "16.0 GT/s",
      "warning: PCIe switch (0000:40:00.0): 16 GT/s x16; expected 32 GT/s x16" },
    { "virtual machine", GPU3, "32.0 GT/s", "2.5 GT/s",
      "warning: gpu 3 (0000:41:00.0): 2.5 GT/s x16; expected 8 GT/s or more (virtual" },
    { "unknown speed", GPU3, "32.0 GT/s PCIe", "Unknown",
      "warning: gpu 3 (0000:41:00.0): PCIe link of unknown speed" },
    { "no NVLink", GPU3, "<nvlink target=\"0000:f0:00.0\" count=\"18\" tclass=\"0x068000\"/>", "",
      "error: gpu 3 (0000:41:00.0): no NVLink; expected 18, as its peers have" },
    { "fewer NVLinks", GPU3, "count=\"18\"", "count=\"16\"",
      "warning: gpu 3 (0000:41:00.0): 16 NVLinks; expected 18" },
    { "slow NIC", NIC3, "speed=\"400000\"", "speed=\"200000\"",
      "warning: nic mlx5_3: 200 Gbit/s; expected 400 Gbit/s, as the fastest NIC" },
    { "unknown NIC speed", NIC3, "speed=\"400000\"", "speed=\"-1\"",
      "warning: nic mlx5_3: speed -1; expected its speed" },
    { "gdr of a GPU", GPU3, "gdr=\"1\"", "gdr=\"0\"", "warning: 1 of 8 GPUs: gdr=0" },
    { "gdr of a NIC", NIC3, "gdr=\"1\"", "gdr=\"0\"", "warning: 1 of 8 NICs: gdr=0" },
    { "no rank", GPU3, "rank=\"3\" ", "", "warning: gpu 3 (0000:41:00.0): no rank" },
    { "another sm", GPU3, "sm=\"90\"", "sm=\"80\"",
      "warning: gpu 3 (0000:41:00.0): sm 80; expected sm 90" },
    { "numa", "<cpu", "numaid=\"0\"", "numaid=\"-1\"", "warning: cpu -1: numaid -1" },
    { "vendor", "<cpu", "vendor=\"GenuineIntel\" ", "", "warning: cpu 0: no arch, vendor" },
    { "empty branch", "<cpu", ">",
      "><pci busid=\"e\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"/>",
      "note: PCIe switch (e): neither GPU nor NIC below" },
    { "GPU without <gpu>", "<cpu", ">",
      "><pci busid=\"e\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"/>",
      "warning: pci e: a GPU's PCI class without <gpu>" },
    { "asymmetric", GPU3, "gdr=\"1\">",
      "gdr=\"1\"><nvlink target=\"0000:51:00.0\" count=\"2\" tclass=\"0x030200\"/>",
      "warning: gpu 3 (0000:41:00.0) and gpu 4 (0000:51:00.0): 2 NVLinks there, 0 back" },
};

static void
test_good(void)
{
    g_autofree char *text = good_text(), *lines = lint_text(text);

    CU_ASSERT_STRING_EQUAL(lines, "");
}

static void
test_rows(void)
{
    g_autofree char *text = good_text();

    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *bad = changed(text, rows[i].after, rows[i].from, rows[i].to);
        g_autofree char *lines = lint_text(bad), *begin = g_strdup_printf("\n%s", rows[i].line);
        g_autofree char *all = g_strdup_printf("\n%s", lines);

        CHECK(strstr(all, begin), "%s: wanted \"%s\", got %s", rows[i].name, rows[i].line, lines);
    }
}

/* All devices right below one CPU, as virtual machines show them. */
static void
test_virtual_machine(void)
{
    g_autofree char *lines = lint_text(
        "<system version=\"1\"><cpu numaid=\"-1\" arch=\"x86_64\">"
        "<pci busid=\"1\"><gpu dev=\"0\" sm=\"90\" rank=\"0\"/></pci>"
        "<pci busid=\"2\"><nic><net name=\"eth0\" speed=\"100000\"/></nic></pci></cpu></system>");

    CHECK(strstr(lines, "GPUDirect is off: PHB is farther than PXB"), "%s", lines);
    CHECK(strstr(lines, "give NCCL a file that shows them (NCCL_TOPO_FILE)"), "%s", lines);
    CHECK(strstr(lines, "gpu 0 (1) and 1 more: PCIe link of unknown speed"), "%s", lines);
}

/* A GPU whose NICs are all on the other socket; without NVLink that is worse. */
static void
test_far(void)
{
    g_autofree char *lines = lint_text(
        "<system version=\"1\">"
        "<cpu numaid=\"0\" arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"25\" modelid=\"1\">"
        "<pci busid=\"s\" link_speed=\"16 GT/s\" link_width=\"16\">"
        "<pci busid=\"1\" link_speed=\"16 GT/s\" link_width=\"16\"><gpu dev=\"0\" sm=\"80\"/></pci>"
        "<pci busid=\"2\" link_speed=\"16 GT/s\" link_width=\"16\"><nic>"
        "<net name=\"mlx5_0\" speed=\"200000\"/></nic></pci></pci></cpu>"
        "<cpu numaid=\"1\" arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"25\" modelid=\"1\">"
        "<pci busid=\"3\" link_speed=\"16 GT/s\" link_width=\"16\"><gpu dev=\"1\" sm=\"80\"/></pci>"
        "</cpu></system>");

    CU_ASSERT_STRING_EQUAL(
        lines,
        "warning: gpu 1 (3): every NIC is across sockets (SYS); expected a NIC below the same "
        "PCIe switch. NCCL: GPUDirect is off for it: farther than PXB; its network data "
        "crosses host memory\n");
}

/* Presets of servers NVIDIA sells have nothing to complain about. */
static void
test_presets(void)
{
    static const char *const names[] = { "dgx1-v100",   "dgx2",     "dgx-a100", "dgx-h100",
                                         "hgx-h200",    "dgx-b200", "gh200-4",  "mi300x-8",
                                         "gb200-nvl72", "v100-4",   "h100-4",   "p5en-h200" };

    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(TtTopology) topo = tt_topology_open(names[i], NULL, NULL);
        g_autoptr(TtNcclXml) xml = tt_nccl_xml_of_topology(topo, NULL);
        g_autoptr(GPtrArray) findings = tt_nccl_lint(xml);
        g_autofree char *line = findings->len ? tt_lint_line(findings->pdata[0]) : NULL;

        CHECK(findings->len == 0, "%s: %s", names[i], line);
    }
}

static guint
count(const char *text, const char *word)
{
    guint n = 0;

    for (; (text = strstr(text, word)); text++)
        n++;
    return n;
}

static const struct {
    const char *name;
    guint gpus, nics, switches, links; /* as drawn; links: NVLink lines and the legend's */
} drawn[] = {
    { "dgx-h100", 8, 8, 8, 8 },    { "dgx1-v100", 8, 4, 4, 18 }, { "pcie-8x4090", 8, 1, 0, 0 },
    { "gb200-nvl72", 4, 4, 0, 4 }, { "gh200-4", 4, 4, 0, 7 },
};

static void
test_drawing(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(drawn); i++) {
        g_autoptr(TtTopology) topo = tt_topology_open(drawn[i].name, NULL, NULL);
        g_autoptr(TtNcclXml) xml = tt_nccl_xml_of_topology(topo, NULL);
        g_autofree char *svg = tt_nccl_draw(xml, "a <b> & c");

        CHECK_ROW(&drawn[i], g_str_has_prefix(svg, "<svg ") && g_str_has_suffix(svg, "</svg>\n"));
        CHECK_ROW(&drawn[i], strstr(svg, "a &lt;b&gt; &amp; c"));
        CHECK_ROW(&drawn[i], count(svg, "class=\"gpu\"") == drawn[i].gpus);
        CHECK_ROW(&drawn[i], count(svg, "class=\"nic\"") == drawn[i].nics);
        CHECK_ROW(&drawn[i], count(svg, "class=\"switch\"") == drawn[i].switches);
        CHECK(count(svg, "class=\"nvlink\"") == drawn[i].links, "%s: %u", drawn[i].name,
              count(svg, "class=\"nvlink\""));
    }
}

static CU_TestInfo tests[] = {
    { "a good node", test_good },
    { "one thing wrong", test_rows },
    { "a virtual machine", test_virtual_machine },
    { "far from NICs", test_far },
    { "presets", test_presets },
    { "drawing", test_drawing },
    CU_TEST_INFO_NULL,
};

int
main(void)
{
    return check_main("nccl_lint", tests);
}
