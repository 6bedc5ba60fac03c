/* Mutated NCCL files: whatever the text, an error of one line, or a node that can be written, checked,
 * drawn and opened; never a crash, leak or hang (mutate.h).
 */
#include "tests/mutate.h"
#include "topologies/nccl_draw.h"
#include "topologies/nccl_graph_xml.h"
#include "topologies/nccl_lint.h"
#include "topologies/topology_private.h"

static GPtrArray *samples; /* GBytes: texts of topologies, and one of graphs at the end */

/* What tends to hurt parsers of such files. */
static const char *const words[] = {
    "<",
    ">",
    "/>",
    "\"",
    "=",
    "&amp;",
    "&#0;",
    "&#10;",
    "&x;",
    "<!--",
    "-->",
    "<![CDATA[",
    "<?x ?>",
    "<!DOCTYPE s [<!ENTITY a \"b\">]>",
    "0",
    "1",
    "-1",
    "65535",
    "4294967296",
    "18446744073709551616",
    "1e999",
    "nan",
    "0x068000",
    "0x030200",
    "\303\251",
    "\377",
    "\001",
    " rank=\"3\"",
    " keep=\"0\"",
    " link_width=\"1\"",
    " link_speed=\"2.5 GT/s PCIe\"",
    " target=\"0000:11:00.0\"",
    " host_hash=\"0x2\"",
    "<gpu sm=\"90\"/>",
    "<nic><net speed=\"1\"/></nic>",
    "<pci busid=\"x\">",
    "</pci>",
    "</cpu>",
    "<cpu numaid=\"0\">",
    "<c2c bw=\"1\" count=\"0\"/>",
    "<nvlink target=\"0000:21:00.0\" count=\"3\" tclass=\"0x030000\"/>",
    "<pcilink target=\"0000:20:00.0\"/>",
    "<channel>",
    "</channel>",
};

static void
check_node(const TtNcclXml *xml, const char *what)
{
    GError *error = NULL;
    g_autofree char *text = tt_nccl_xml_to_text(xml), *again = NULL, *svg = NULL;
    g_autofree char *ini = tt_nccl_xml_to_ini(xml, NULL);
    g_autoptr(TtNcclXml) copy = tt_nccl_xml_parse("copy", text, strlen(text), &error);
    g_autoptr(GPtrArray) findings = tt_nccl_lint(xml);
    g_autoptr(TtTopology) topo = NULL;

    CHECK(copy, "%s: written, not readable: %s", what, error ? error->message : "");
    again = copy ? tt_nccl_xml_to_text(copy) : NULL;
    CHECK(g_strcmp0(text, again) == 0, "%s: differs when read again", what);
    svg = tt_nccl_draw(xml, "mutant");
    CHECK(g_str_has_suffix(svg, "</svg>\n"), "%s: not drawn", what);
    for (guint i = 0; i < findings->len; i++) {
        g_autofree char *line = tt_lint_line(findings->pdata[i]);

        CHECK(!strpbrk(line, "\n\001"), "%s: %s", what, line);
    }
    g_clear_error(&error);
    if (!ini)
        return;
    topo = tt_topology_parse(ini, strlen(ini), "mutant", 2, NULL, &error);
    CHECK(topo || is_one_line(error), "%s: %s", what, error ? error->message : "");
    if (topo && tt_topology_n_ranks(topo) > 1)
        CHECK(tt_topology_route_bytes_per_s(topo, 0, tt_topology_n_ranks(topo) - 1) > 0, "%s",
              what);
    g_clear_error(&error);
}

/* TRUE if it was accepted. */
static gboolean
try_text(const char *text, gsize length, gboolean is_graph, const char *what)
{
    GError *error = NULL;
    g_autoptr(TtNcclXml) xml = NULL;
    g_autoptr(GPtrArray) graphs = NULL;
    gboolean accepted;

    if (is_graph)
        graphs = tt_graph_xml_parse("mutant", text, length, &error);
    else
        xml = tt_nccl_xml_parse("mutant", text, length, &error);
    accepted = xml || graphs;
    CHECK(accepted == (error == NULL), "%s: neither node nor error", what);
    if (!accepted)
        CHECK(is_one_line(error), "%s: %s", what, error ? error->message : "");
    if (xml)
        check_node(xml, what);
    if (graphs) {
        g_autofree char *again = tt_graph_xml_to_text(graphs);
        g_autoptr(GPtrArray) copy = tt_graph_xml_parse("copy", again, strlen(again), NULL);

        CHECK(copy != NULL, "%s: graphs not readable again", what);
    }
    g_clear_error(&error);
    return accepted;
}

static gboolean
try_mutant(const char *text, gsize length, guint sample, GRand *rand, const char *what)
{
    (void)rand;
    return try_text(text, length, sample == samples->len - 1, what);
}

static Fuzz fuzz = { .seed = 1,
                     .n_mutants = 4000,
                     .most_at_once = 3,
                     .least_accepted = 100,
                     .words = words,
                     .n_words = G_N_ELEMENTS(words) };

static void
mutants(void)
{
    check_mutants(&fuzz, samples, try_mutant);
}

static void
cut_at_every_byte(void)
{
    for (guint i = 0; i < samples->len; i++) {
        gsize end;
        const char *text = g_bytes_get_data(samples->pdata[i], &end);

        while (end && g_ascii_isspace(text[end - 1]))
            end--;
        for (gsize length = 0; length < end; length += check_every(3) + length / 500) {
            g_autofree char *cut = g_strndup(text, length);
            g_autofree char *what = g_strdup_printf("sample %u cut after %zu bytes", i, length);
            gboolean accepted = try_text(cut, length, i == samples->len - 1, what);

            CHECK(!accepted, "%s: accepted", what);
        }
    }
}

/* As large as is read at all: every rule and drawing still ends in time. */
static void
largest(void)
{
    g_autoptr(GString) text = g_string_new("<system version=\"1\"><cpu numaid=\"0\">");
    gint64 begin_us = g_get_monotonic_time();

    for (guint i = 0; i < 1000; i++) {
        g_string_append_printf(text, "<pci busid=\"%u\"><gpu sm=\"90\">", i);
        for (guint k = 0; k < 8; k++)
            g_string_append_printf(text, "<nvlink target=\"%u\" count=\"1\"/>", (i + k + 1) % 1000);
        g_string_append_printf(
            text, "</gpu></pci><pci busid=\"n%u\"><nic><net speed=\"%u\"/></nic></pci>", i, i + 1);
    }
    g_string_append(text, "</cpu></system>");
    CHECK(try_text(text->str, text->len, FALSE, "largest"), "refused");
    CHECK(g_get_monotonic_time() - begin_us < 20000000, "too slow");
}

static void
make_samples(void)
{
    static const char *const names[] = { "dgx-h100", "dgx1-v100", "pcie-8x4090", "gh200-4",
                                         "a100-4" };
    static const char graphs[] =
        "<graphs version=\"1\">\n<graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"1\" "
        "speedintra=\"20\" speedinter=\"20\" latencyinter=\"0\" typeintra=\"NVL\" "
        "typeinter=\"PIX\" samechannels=\"1\">\n<channel>\n<net dev=\"0x0\"/>\n"
        "<gpu dev=\"0x0\"/>\n<gpu dev=\"0x1\"/>\n<net dev=\"0x0\"/>\n</channel>\n"
        "</graph>\n</graphs>\n";

    samples = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(TtTopology) topo = tt_topology_open(names[i], NULL, NULL);
        g_autoptr(TtNcclXml) xml = tt_nccl_xml_of_topology(topo, NULL);
        char *text = tt_nccl_xml_to_text(xml);

        g_ptr_array_add(samples, g_bytes_new_take(text, strlen(text)));
    }
    g_ptr_array_add(samples, g_bytes_new_static(graphs, sizeof graphs - 1));
}

int
main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        { "mutants", mutants },
        { "cut at every byte", cut_at_every_byte },
        { "the largest", largest },
        CU_TEST_INFO_NULL,
    };
    int result;

    fuzz_arguments(&fuzz, argc, argv);
    make_samples();
    result = check_main("nccl xml fuzz", tests);
    g_ptr_array_unref(samples);
    return result;
}
