/* NCCL topology files: what is read, what is refused, and that writing is the inverse of reading. */
#include "tests/nccl_xml_check.h"

#include <glib/gstdio.h>

static void
test_example(void)
{
    g_autoptr(TtNcclXml) xml = load_example();
    const TtXmlCpu *cpu = &g_array_index(xml->cpu, TtXmlCpu, 1);
    const TtXmlPci *above = &g_array_index(xml->pci, TtXmlPci, 3);
    const TtXmlPci *pci = &g_array_index(xml->pci, TtXmlPci, 4);
    const TtXmlGpu *gpu = &g_array_index(xml->gpu, TtXmlGpu, 7);
    const TtXmlNvlink *link = &g_array_index(xml->nvlink, TtXmlNvlink, 7);
    const TtXmlNet *net = &g_array_index(xml->net, TtXmlNet, 5);

    CU_ASSERT_EQUAL(xml->cpu->len, 2);
    CU_ASSERT_EQUAL(xml->pci->len, 24);
    CU_ASSERT_EQUAL(xml->gpu->len, 8);
    CU_ASSERT_EQUAL(xml->nvlink->len, 8);
    CU_ASSERT_EQUAL(xml->net->len, 8);
    CU_ASSERT_EQUAL(xml->c2c->len + xml->pci_link->len, 0);

    CU_ASSERT_EQUAL(cpu->numa_id, 1);
    CU_ASSERT_STRING_EQUAL(cpu->arch, "x86_64");
    CU_ASSERT_STRING_EQUAL(cpu->vendor, "GenuineIntel");
    CU_ASSERT_EQUAL(cpu->family, 6);
    CU_ASSERT_EQUAL(cpu->model, 143);
    CU_ASSERT_PTR_NULL(cpu->host_hash);

    CU_ASSERT_EQUAL(above->parent, TT_NO_INDEX);
    CU_ASSERT_EQUAL(above->class_id, 0x060400);
    CU_ASSERT_EQUAL(pci->parent, 3);
    CU_ASSERT_EQUAL(pci->cpu, 0);
    CU_ASSERT_STRING_EQUAL(pci->bus_id, "0000:21:00.0");
    CU_ASSERT_EQUAL(pci->class_id, 0x030200);
    CU_ASSERT_EQUAL(pci->link_gts, 32);
    CU_ASSERT_EQUAL(pci->link_width, 16);

    CU_ASSERT_EQUAL(gpu->dev, 7);
    CU_ASSERT_EQUAL(gpu->rank, 7);
    CU_ASSERT_EQUAL(gpu->sm, 90);
    CU_ASSERT_TRUE(gpu->gdr);
    CU_ASSERT_EQUAL(link->gpu, 7);
    CU_ASSERT_EQUAL(link->count, 18);
    CU_ASSERT_EQUAL(link->target_class, 0x068000);
    CU_ASSERT_STRING_EQUAL(link->target, "0000:f0:00.0");

    CU_ASSERT_STRING_EQUAL(net->name, "mlx5_5");
    CU_ASSERT_STRING_EQUAL(net->guid, "0x1006");
    CU_ASSERT_EQUAL(net->dev, 5);
    CU_ASSERT_EQUAL(net->speed_mbps, 400000);
    CU_ASSERT_EQUAL(net->port, 1);
    CU_ASSERT_EQUAL(net->max_conn, 131072);
    CU_ASSERT_EQUAL(net->cpu, 1);
    CU_ASSERT_EQUAL(net->pci, 17);
    CU_ASSERT_TRUE(net->gdr && net->keep && !net->coll);
}

static const char everything[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<!-- a comment -->\n"
    "<system version=\"1\" name=\"lab\" colour=\"green\">\n"
    "  <cpu numaid=\"-1\" affinity=\"ff,ffff0000\" arch=\"arm64\" host_hash=\"0x1f\">\n"
    "    <pci busid=\"0000:01:00.0\" class=\"0x060400\" vendor=\"0x10de\" device=\"0x1\"\n"
    "         subsystem_vendor=\"0x2\" subsystem_device=\"0x3\" link_speed=\"8 GT/s\" "
    "link_width=\"8\">\n"
    "      <pci busid=\"0000:02:00.0\" link_speed=\"Unknown\" link_width=\"255\">\n"
    "        <gpu sm=\"90\"><nvlink target=\"0000:03:00.0\" count=\"4\"/>\n"
    "          <nvlink target=\"fffffff:ffff:ff\" count=\"2\"/><c2c bw=\"22500\" "
    "count=\"14\"/></gpu>\n"
    "        <future><gpu/></future>\n"
    "      </pci>\n"
    "      <pci busid=\"0000:03:00.0\"><gpu dev=\"1\" sm=\"90\" gdr=\"0\"/></pci>\n"
    "      <pcilink target=\"0000:09:00.0\"/>\n"
    "    </pci>\n"
    "    <pci busid=\"0000:04:00.0\" link_speed=\"\" link_width=\"\">\n"
    "      <nic><net name=\"a&amp;b\" speed=\"200000\" port=\"1\"/>\n"
    "           <net dev=\"1\" speed=\"-1\" port=\"2\" latency=\"75.5\" coll=\"1\" keep=\"0\" "
    "rail=\"7\"/></nic>\n"
    "    </pci>\n"
    "    <nic><net name=\"eth0\" dev=\"2\" speed=\"10000\" gdr=\"0\"/></nic>\n"
    "  </cpu>\n"
    "</system>\n";

static void
test_what_is_allowed(void)
{
    GError *error = NULL;
    g_autoptr(TtNcclXml) xml = parse(everything, &error);
    const TtXmlPci *pci;
    const TtXmlNvlink *link;
    const TtXmlNet *net;

    CHECK_NO_ERROR(error);
    if (!xml)
        return;
    pci = (const TtXmlPci *)xml->pci->data;
    link = (const TtXmlNvlink *)xml->nvlink->data;
    net = (const TtXmlNet *)xml->net->data;
    CU_ASSERT_EQUAL(g_array_index(xml->cpu, TtXmlCpu, 0).numa_id, TT_NO_INDEX);
    CU_ASSERT_EQUAL(g_array_index(xml->cpu, TtXmlCpu, 0).model, -1);
    CU_ASSERT_PTR_NULL(g_array_index(xml->cpu, TtXmlCpu, 0).vendor);
    CU_ASSERT_EQUAL(xml->pci->len, 4);
    CU_ASSERT_EQUAL(pci[0].link_gts, 8);
    CU_ASSERT_EQUAL(pci[0].link_width, 8);
    CU_ASSERT_STRING_EQUAL(pci[0].subsystem_device, "0x3");
    CU_ASSERT_EQUAL(pci[1].link_gts, 0);
    CU_ASSERT_EQUAL(pci[1].link_width, 0);
    CU_ASSERT_EQUAL(pci[1].class_id, 0x030200);
    CU_ASSERT_EQUAL(pci[3].class_id, 0x020000);
    CU_ASSERT_EQUAL(xml->gpu->len, 2);
    CU_ASSERT_EQUAL(g_array_index(xml->gpu, TtXmlGpu, 0).rank, -1);
    CU_ASSERT_EQUAL(g_array_index(xml->gpu, TtXmlGpu, 0).dev, -1);
    CU_ASSERT_TRUE(g_array_index(xml->gpu, TtXmlGpu, 0).gdr);
    CU_ASSERT_FALSE(g_array_index(xml->gpu, TtXmlGpu, 1).gdr);
    CU_ASSERT_EQUAL(link[0].target_class, 0x030200);
    CU_ASSERT_EQUAL(link[1].target_class, 0x068000);
    CU_ASSERT_EQUAL(g_array_index(xml->c2c, TtXmlC2c, 0).mb_per_s, 22500);
    CU_ASSERT_EQUAL(g_array_index(xml->c2c, TtXmlC2c, 0).count, 14);
    CU_ASSERT_EQUAL(xml->pci_link->len, 1);
    CU_ASSERT_EQUAL(xml->net->len, 3);
    CU_ASSERT_STRING_EQUAL(net[0].name, "a&b");
    CU_ASSERT_STRING_EQUAL(net[1].name, "net1");
    CU_ASSERT_EQUAL(net[1].speed_mbps, -1);
    CU_ASSERT_EQUAL(net[1].latency_us, 75.5);
    CU_ASSERT_TRUE(net[1].coll && !net[1].keep);
    CU_ASSERT_EQUAL(net[2].pci, TT_NO_INDEX);
    CU_ASSERT_EQUAL(net[2].cpu, 0);
}

static void
test_round_trips(void)
{
    g_autoptr(TtNcclXml) example = load_example();
    g_autoptr(TtNcclXml) all = parse(everything, NULL);

    check_round_trip(example);
    check_round_trip(all);
}

#define CPU       "<cpu numaid=\"0\">"
#define IN_CPU(x) "<system version=\"1\">" CPU x "</cpu></system>"
#define IN_PCI(x) IN_CPU("<pci busid=\"1\">" x "</pci>")
#define IN_GPU(x) IN_PCI("<gpu sm=\"90\">" x "</gpu>")
#define IN_NIC(x) IN_PCI("<nic>" x "</nic>")

static const struct {
    const char *name, *text, *words;
} refused[] = {
    { "nothing", "", "node.xml:" },
    { "no XML", "hello", "not well-formed XML" },
    { "another format", "<a/>", "<a>: not an NCCL topology, whose outermost element is <system>" },
    { "a graph", "<graphs version=\"1\"/>", "this is a graph file" },
    { "no version", "<system/>", "node.xml:1: <system>: needs the attribute version" },
    { "version 3", "<system version=\"3\"/>", "version=\"3\" is not a whole number from 1 to 2" },
    { "cut short", "<system version=\"1\">\n<cpu numaid=\"0\">\n<pci bus", "node.xml:3: not well" },
    { "cut between", "<system version=\"1\">\n" CPU "\n", "not well-formed XML" },
    { "two roots", "<system version=\"1\"/><system version=\"1\"/>", "not well-formed XML" },
    { "wrong end", "<system version=\"1\">" CPU "</system></cpu>", "not well-formed XML" },
    { "no numa", "<system version=\"1\"><cpu/></system>", "<cpu>: needs the attribute numaid" },
    { "numa", "<system version=\"1\"><cpu numaid=\"x\"/></system>", "from -1 to 65535" },
    { "gpu in cpu", IN_CPU("<gpu sm=\"90\"/>"),
      "<gpu>: stands in the wrong place; it belongs into <pci>" },
    { "net in pci", IN_PCI("<net speed=\"1\"/>"),
      "<net>: stands in the wrong place; it belongs into <nic>" },
    { "system inside", IN_CPU("<system version=\"1\"/>"), "<system>: stands in the wrong place" },
    { "no bus id", IN_CPU("<pci/>"), "<pci>: needs the attribute busid" },
    { "empty bus id", IN_CPU("<pci busid=\"\"/>"), "<pci>: needs the attribute busid" },
    { "twice", IN_PCI("\n<pci busid=\"1\"/>"),
      "node.xml:2: <pci>: busid=\"1\" stands already in line 1" },
    { "class", IN_CPU("<pci busid=\"1\" class=\"zz\"/>"), "hexadecimal number up to 0xffffff" },
    { "large class", IN_CPU("<pci busid=\"1\" class=\"0x1000000\"/>"), "up to 0xffffff" },
    { "width", IN_CPU("<pci busid=\"1\" link_width=\"3\"/>"), "not one of 0 (unknown), 1, 2, 4" },
    { "width word", IN_CPU("<pci busid=\"1\" link_width=\"wide\"/>"), "from 0 to 255" },
    { "no sm", IN_PCI("<gpu dev=\"0\"/>"), "<gpu>: needs the attribute sm" },
    { "negative sm", IN_PCI("<gpu sm=\"-1\"/>"), "from 0 to 999" },
    { "trailing", IN_PCI("<gpu sm=\"90\" dev=\"0x\"/>"), "dev=\"0x\"" },
    { "rank", IN_PCI("<gpu sm=\"90\" rank=\"99999999999\"/>"), "rank=\"99999999999\"" },
    { "gdr", IN_PCI("<gpu sm=\"90\" gdr=\"2\"/>"), "from 0 to 1" },
    { "no target", IN_GPU("<nvlink count=\"1\"/>"), "<nvlink>: needs the attribute target" },
    { "no count", IN_GPU("<nvlink target=\"1\"/>"), "<nvlink>: needs the attribute count" },
    { "many links", IN_GPU("<nvlink target=\"1\" count=\"5000\"/>"), "from 0 to 1024" },
    { "c2c", IN_GPU("<c2c bw=\"-1\" count=\"1\"/>"), "a number from 0 to 1e+09" },
    { "c2c nan", IN_GPU("<c2c bw=\"nan\" count=\"1\"/>"), "bw=\"nan\"" },
    { "no speed", IN_NIC("<net name=\"a\"/>"), "<net>: needs the attribute speed" },
    { "speed", IN_NIC("<net speed=\"fast\"/>"), "speed=\"fast\" is not a whole number" },
    { "latency", IN_NIC("<net speed=\"1\" latency=\"inf\"/>"), "latency=\"inf\"" },
    { "pcilink", IN_PCI("<pcilink/>"), "<pcilink>: needs the attribute target" },
    { "control", IN_CPU("<pci busid=\"1&#10;2\"/>"), "<pci>: a control character" },
    { "unknown entity", IN_CPU("<pci busid=\"&boom;\"/>"), "not well-formed XML" },
    { "DTD", "<!DOCTYPE system SYSTEM \"http://127.0.0.1:9/x.dtd\"><system version=\"1\"/>",
      "a document type" },
    { "external entity",
      "<!DOCTYPE s [<!ENTITY f SYSTEM \"file:///etc/passwd\">]><system version=\"1\">&f;</system>",
      "a document type" },
    { "billion laughs",
      "<!DOCTYPE s [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\">"
      "<!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;\">]><system version=\"1\" name=\"&c;\"/>",
      "a document type" },
};

static void
test_refusals(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(refused); i++) {
        GError *error = NULL;
        g_autoptr(TtNcclXml) xml = parse(refused[i].text, &error);

        CHECK_ROW(&refused[i], xml == NULL);
        CHECK_ROW(&refused[i], error && strchr(error->message, '\n') == NULL);
        CHECK_ERROR(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_FILE, refused[i].words);
    }
}

/* @open n times, then @close n times. */
static char *
repeated(const char *before, const char *open, guint n, const char *close, const char *after)
{
    GString *text = g_string_new(before);

    for (guint i = 0; i < n; i++)
        g_string_append_printf(text, "%s", open);
    for (guint i = 0; close && i < n; i++)
        g_string_append(text, close);
    g_string_append(text, after);
    return g_string_free(text, FALSE);
}

static void
check_hostile(const char *name, char *text, const char *words)
{
    GError *error = NULL;
    g_autofree char *owned = text;
    g_autoptr(TtNcclXml) xml = parse(owned, &error);

    CHECK(xml == NULL, "%s", name);
    CHECK_ERROR(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_FILE, words);
}

static void
test_hostile(void)
{
    const char *head = "<system version=\"1\">" CPU, *tail = "</cpu></system>";
    g_autofree char *long_value = g_strnfill(300, 'x');
    g_autofree char *attributes = g_strdup("<system version=\"1\"");

    for (guint i = 0; i < 100; i++) {
        g_autofree char *old = attributes;

        attributes = g_strdup_printf("%s a%u=\"\"", old, i);
    }
    check_hostile("deep", repeated(head, "<x>", 100000, "</x>", tail),
                  "more than 32 elements inside");
    check_hostile("unclosed", repeated(head, "<x>", 100000, NULL, ""),
                  "more than 32 elements inside");
    check_hostile("wide", repeated(head, "<x/>", 100000, NULL, tail), "more than 50000 elements");
    check_hostile("many CPUs",
                  repeated("<system version=\"1\">", CPU "</cpu>", 5000, NULL, "</system>"),
                  "<cpu>: more than 4096 of them");
    check_hostile("long value", g_strdup_printf("<system version=\"1\" name=\"%s\"/>", long_value),
                  "<system>: more than 255 characters in name");
    check_hostile("attributes", g_strdup_printf("%s/>", attributes), "more than 64 attributes");
    check_hostile("long name", g_strdup_printf("<%s/>", long_value), "not an NCCL topology");
    check_hostile("huge",
                  repeated("<system version=\"1\">", "          ", 1000000, NULL, "</system>"),
                  "longer than 8388608 bytes");
}

static void
test_files(void)
{
    GError *error = NULL;

    CU_ASSERT_PTR_NULL(tt_nccl_xml_load("/no/such.xml", &error));
    CHECK_ERROR(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_FILE, "/no/such.xml: No such file");
    CU_ASSERT_PTR_NULL(tt_nccl_xml_load("/dev/zero", &error));
    CHECK_ERROR(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_FILE, "longer than");
    CU_ASSERT_PTR_NULL(tt_nccl_xml_load("/", &error));
    CHECK_ERROR(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_FILE, "/: Is a directory");
}

static CU_TestInfo tests[] = {
    { "the example of 8 H100", test_example },
    { "what is allowed", test_what_is_allowed },
    { "round trips", test_round_trips },
    { "refusals", test_refusals },
    { "hostile files", test_hostile },
    { "files that are none", test_files },
    CU_TEST_INFO_NULL,
};

int
main(void)
{
    return check_main("nccl_xml", tests);
}
