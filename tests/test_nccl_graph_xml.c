/* NCCL graph files: read, written, refused. */
#include "tests/check.h"
#include "topologies/nccl_graph_xml.h"

#include <string.h>

static GPtrArray *
parse(const char *text, GError **error)
{
    return tt_graph_xml_parse("graph.xml", text, strlen(text), error);
}

#define HEAD                                                                                       \
    "<graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"1\" speedintra=\"20\" "              \
    "speedinter=\"22.5\" latencyinter=\"0\" typeintra=\"NVL\" typeinter=\"PIX\" "                  \
    "samechannels=\"1\">"
#define GRAPH(x) "<graphs version=\"1\">" HEAD x "</graph></graphs>"

static void
test_reading(void)
{
    GError *error = NULL;
    g_autoptr(GPtrArray) graphs =
        parse("<graphs version=\"1\">" HEAD
              "<channel><net dev=\"0x2\"/><gpu dev=\"0\"/><gpu dev=\"0x100000000000001\"/>"
              "<gpu dev=\"a\"/><net dev=\"3\"/></channel><later/></graph>"
              "<graph id=\"3\" pattern=\"5\" nchannels=\"8\" speedintra=\"40\" speedinter=\"60\" "
              "news=\"x\"/></graphs>",
              &error);
    const TtGraphXml *ring, *nvls;
    const TtGraphChannel *channel;

    CHECK_NO_ERROR(error);
    if (!graphs)
        return;
    ring = graphs->pdata[0];
    nvls = graphs->pdata[1];
    CU_ASSERT_EQUAL(graphs->len, 2);
    CU_ASSERT_EQUAL(ring->pattern, 4);
    CU_ASSERT_EQUAL(ring->n_channels, 1);
    CU_ASSERT_EQUAL(ring->speed_inter_gbytes_per_s, 22.5);
    CU_ASSERT_STRING_EQUAL(ring->type_intra, "NVL");
    CU_ASSERT_STRING_EQUAL(ring->type_inter, "PIX");
    CU_ASSERT_TRUE(ring->same_channels);
    channel = &g_array_index(ring->channels, TtGraphChannel, 0);
    CU_ASSERT_EQUAL(channel->net_in, 2);
    CU_ASSERT_EQUAL(channel->net_out, 3);
    CU_ASSERT_EQUAL(channel->gpus->len, 3);
    CU_ASSERT_EQUAL(g_array_index(channel->gpus, gint64, 1), 0x100000000000001);
    CU_ASSERT_EQUAL(g_array_index(channel->gpus, gint64, 2), 10);
    CU_ASSERT_EQUAL(nvls->id, 3);
    CU_ASSERT_EQUAL(nvls->channels->len, 0);
    CU_ASSERT_STRING_EQUAL(nvls->type_intra, "");
}

static void
test_round_trip(void)
{
    static const int ids[] = { 3, 1, 0, 4, 2 }, order[] = { 0, 1, 4, 2, 3 };
    g_autoptr(GPtrArray) graphs = g_ptr_array_new_with_free_func((GDestroyNotify)tt_graph_xml_free);
    g_autoptr(GPtrArray) again = NULL;
    g_autofree char *text = NULL, *same = NULL;
    GError *error = NULL;

    for (int i = 0; i < 5; i++) {
        TtGraphXml *graph = tt_graph_xml_new(ids[i]);

        graph->pattern = 1 + i;
        graph->n_channels = 2;
        graph->speed_intra_gbytes_per_s = 41.2 + i;
        graph->speed_inter_gbytes_per_s = .24;
        graph->type_intra = g_strdup("PXB");
        for (gint64 k = 0; k < 2; k++) {
            TtGraphChannel *channel = tt_graph_xml_add_channel(graph);

            g_array_append_val(channel->gpus, k);
            channel->net_in = i % 2 ? k : TT_GRAPH_NO_NET;
            channel->net_out = i % 2 ? 7 - k : TT_GRAPH_NO_NET;
        }
        g_ptr_array_add(graphs, graph);
    }
    text = tt_graph_xml_to_text(graphs);
    again = parse(text, &error);
    CHECK_NO_ERROR(error);
    if (!again)
        return;
    same = tt_graph_xml_to_text(again);
    CU_ASSERT_STRING_EQUAL(same, text);
    for (guint i = 0; i < again->len; i++)
        CU_ASSERT_EQUAL(((const TtGraphXml *)again->pdata[i])->id, order[i]);
}

static const struct {
    const char *name, *text, *words;
} refused[] = {
    { "a topology", "<system version=\"1\"/>", "this is a topology file" },
    { "no version", "<graphs/>", "<graphs>: needs the attribute version" },
    { "no id", "<graphs version=\"1\"><graph/></graphs>", "<graph>: needs the attribute id" },
    { "path type",
      "<graphs version=\"1\"><graph id=\"0\" pattern=\"4\" nchannels=\"1\" speedintra=\"1\" "
      "speedinter=\"1\" typeintra=\"NVLINK\"/></graphs>",
      "typeintra=\"NVLINK\" is not one of LOC, NVL, NVB" },
    { "channels",
      "<graphs version=\"1\"><graph id=\"0\" pattern=\"4\" nchannels=\"1000\"/></graphs>",
      "nchannels=\"1000\" is not a whole number from 0 to 128" },
    { "speed",
      "<graphs version=\"1\"><graph id=\"0\" pattern=\"4\" nchannels=\"1\" speedintra=\"-1\" "
      "speedinter=\"1\"/></graphs>",
      "speedintra=\"-1\" is not a number" },
    { "device", GRAPH("<channel><gpu dev=\"x\"/></channel>"), "hexadecimal number" },
    { "no device", GRAPH("<channel><gpu/></channel>"), "<gpu>: needs the attribute dev" },
    { "nets", GRAPH("<channel><net dev=\"0\"/><net dev=\"0\"/></channel>"), "<net>: a second one" },
    { "gpu behind", GRAPH("<channel><gpu dev=\"0\"/><net dev=\"0\"/><gpu dev=\"1\"/></channel>"),
      "<gpu>: stands behind the <net>" },
    { "gpu in graph", GRAPH("<gpu dev=\"0\"/>"), "<gpu>: stands in the wrong place" },
    { "cut short", "<graphs version=\"1\">" HEAD "<channel>", "not well-formed XML" },
    { "DTD", "<!DOCTYPE graphs><graphs version=\"1\"/>", "a document type" },
};

static void
test_refusals(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(refused); i++) {
        GError *error = NULL;

        CHECK_ROW(&refused[i], parse(refused[i].text, &error) == NULL);
        CHECK_ERROR(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_FILE, refused[i].words);
    }
}

static void
test_too_many(void)
{
    g_autoptr(GString) text = g_string_new("<graphs version=\"1\">" HEAD);
    GError *error = NULL;

    for (int i = 0; i < 200; i++)
        g_string_append(text, "<channel/>");
    g_string_append(text, "</graph></graphs>");
    CU_ASSERT_PTR_NULL(parse(text->str, &error));
    CHECK_ERROR(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_FILE, "<channel>: more than 128");
}

static CU_TestInfo tests[] = {
    { "reading", test_reading },
    { "round trip", test_round_trip },
    { "refusals", test_refusals },
    { "too many channels", test_too_many },
    CU_TEST_INFO_NULL,
};

int
main(void)
{
    return check_main("nccl_graph_xml", tests);
}
