#include "topologies/nccl_graph_xml.h"
#include "topologies/text_file.h"
#include "topologies/xml_reader.h"

#include <string.h>

#define MAX_GRAPHS        16u
#define MAX_CHANNELS      128u /* NCCL's MAXCHANNELS is 64 */
#define MAX_GPUS_OF_CHAIN 1024u

static const char *const path_types[] = { "LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C",
                                          "PXN", "PHB", "SYS", "NET", "DIS", NULL };

/* --- graphs ------------------------------------------------------------------------------------
 */

static void
channel_clear(gpointer data)
{
    g_array_unref(((TtGraphChannel *)data)->gpus);
}

TtGraphXml *
tt_graph_xml_new(int id)
{
    TtGraphXml *graph = g_new0(TtGraphXml, 1);

    graph->id = id;
    graph->channels = g_array_new(FALSE, FALSE, sizeof(TtGraphChannel));
    g_array_set_clear_func(graph->channels, channel_clear);
    return graph;
}

TtGraphChannel *
tt_graph_xml_add_channel(TtGraphXml *graph)
{
    TtGraphChannel channel = { TT_GRAPH_NO_NET, TT_GRAPH_NO_NET,
                               g_array_new(FALSE, FALSE, sizeof(gint64)) };

    g_array_append_val(graph->channels, channel);
    return &g_array_index(graph->channels, TtGraphChannel, graph->channels->len - 1);
}

void
tt_graph_xml_free(TtGraphXml *graph)
{
    if (!graph)
        return;
    g_array_unref(graph->channels);
    g_free(graph->type_intra);
    g_free(graph->type_inter);
    g_free(graph);
}

/* --- reading -----------------------------------------------------------------------------------
 */

typedef enum { E_NONE, E_GRAPHS, E_GRAPH, E_CHANNEL, E_DEVICE } Kind;

typedef struct {
    GPtrArray *graphs;
    guint kind[TT_XML_MAX_DEPTH]; /* Kind of the elements around */
} Parse;

static const TtXmlRule elements[] = {
    { "graphs", "nothing: it is the whole file", E_GRAPHS, 1u << E_NONE },
    { "graph", "<graphs>", E_GRAPH, 1u << E_GRAPHS },
    { "channel", "<graph>", E_CHANNEL, 1u << E_GRAPH },
    { "gpu", "<channel>", E_DEVICE, 1u << E_CHANNEL },
    { "net", "<channel>", E_DEVICE, 1u << E_CHANNEL },
};

static TtGraphXml *
last_graph(const Parse *p)
{
    return p->graphs->pdata[p->graphs->len - 1];
}

static gboolean
read_type(const TtXmlElement *e, const char *name, char **type, GError **error)
{
    const char *text = tt_xml_text(e, name);

    if (text && *text && !g_strv_contains(path_types, text)) {
        g_autofree char *allowed = g_strjoinv(", ", (char **)path_types);

        tt_xml_error(e, error, "%s=\"%.20s\" is not one of %s", name, text, allowed);
        return FALSE;
    }
    *type = g_strdup(text ? text : "");
    return TRUE;
}

static gboolean
read_graph(Parse *p, const TtXmlElement *e, GError **error)
{
    g_autoptr(TtGraphXml) graph = tt_graph_xml_new(0);

    if (p->graphs->len >= MAX_GRAPHS) {
        tt_xml_error(e, error, "more than %u of them", MAX_GRAPHS);
        return FALSE;
    }
    if (!tt_xml_int(e, "id", TRUE, 0, 15, &graph->id, error) ||
        !tt_xml_int(e, "pattern", TRUE, 1, 15, &graph->pattern, error) ||
        !tt_xml_int(e, "crossnic", FALSE, 0, 2, &graph->cross_nic, error) ||
        !tt_xml_count(e, "nchannels", TRUE, MAX_CHANNELS, &graph->n_channels, error) ||
        !tt_xml_number(e, "speedintra", TRUE, 1e6, &graph->speed_intra_gbytes_per_s, error) ||
        !tt_xml_number(e, "speedinter", TRUE, 1e6, &graph->speed_inter_gbytes_per_s, error) ||
        !tt_xml_number(e, "latencyinter", FALSE, 1e6, &graph->latency_inter_us, error) ||
        !read_type(e, "typeintra", &graph->type_intra, error) ||
        !read_type(e, "typeinter", &graph->type_inter, error) ||
        !tt_xml_flag(e, "samechannels", &graph->same_channels, error))
        return FALSE;
    g_ptr_array_add(p->graphs, g_steal_pointer(&graph));
    return TRUE;
}

static gboolean
read_channel(Parse *p, const TtXmlElement *e, GError **error)
{
    if (last_graph(p)->channels->len >= MAX_CHANNELS) {
        tt_xml_error(e, error, "more than %u of them", MAX_CHANNELS);
        return FALSE;
    }
    tt_graph_xml_add_channel(last_graph(p));
    return TRUE;
}

/* A net before the GPUs is where data comes in, one behind them where it leaves. */
static gboolean
read_device(Parse *p, const TtXmlElement *e, GError **error)
{
    GArray *channels = last_graph(p)->channels;
    TtGraphChannel *channel = &g_array_index(channels, TtGraphChannel, channels->len - 1);
    gboolean is_net = strcmp(e->name, "net") == 0;
    guint64 dev = 0;
    gint64 *place;

    if (!tt_xml_hex(e, "dev", TRUE, G_MAXINT64, &dev, error))
        return FALSE;
    if (!is_net) {
        if (channel->gpus->len >= MAX_GPUS_OF_CHAIN) {
            tt_xml_error(e, error, "more than %u of them in a channel", MAX_GPUS_OF_CHAIN);
            return FALSE;
        }
        if (channel->net_out != TT_GRAPH_NO_NET) {
            tt_xml_error(e, error, "stands behind the <net> that ends the channel");
            return FALSE;
        }
        g_array_append_val(channel->gpus, dev);
        return TRUE;
    }
    place = channel->gpus->len ? &channel->net_out : &channel->net_in;
    if (*place != TT_GRAPH_NO_NET) {
        tt_xml_error(e, error, "a second one at the same end; a channel is net, gpus, net");
        return FALSE;
    }
    *place = (gint64)dev;
    return TRUE;
}

static gboolean
read_element(Parse *p, const TtXmlElement *e, Kind kind, GError **error)
{
    int version = 0;

    switch (kind) {
    case E_GRAPHS: return tt_xml_int(e, "version", TRUE, 1, 2, &version, error);
    case E_GRAPH: return read_graph(p, e, error);
    case E_CHANNEL: return read_channel(p, e, error);
    case E_DEVICE: return read_device(p, e, error);
    case E_NONE: break;
    }
    g_assert_not_reached();
}

static TtXmlVerdict
on_element(gpointer user, const TtXmlElement *e, GError **error)
{
    Parse *p = user;
    GError *misplaced = NULL;
    const TtXmlRule *rule = tt_xml_place(e, elements, G_N_ELEMENTS(elements), "an NCCL graph file",
                                         p->kind, &misplaced);

    if (rule)
        return read_element(p, e, rule->kind, error) ? TT_XML_ENTER : TT_XML_FAILED;
    if (!misplaced)
        return TT_XML_SKIP;
    g_propagate_error(error, misplaced);
    return TT_XML_FAILED;
}

GPtrArray *
tt_graph_xml_parse(const char *origin, const char *text, gsize length, GError **error)
{
    Parse p = { .graphs = g_ptr_array_new_with_free_func((GDestroyNotify)tt_graph_xml_free) };

    if (!tt_xml_read(origin, text, length, on_element, &p, error)) {
        g_ptr_array_unref(p.graphs);
        return NULL;
    }
    return p.graphs;
}

GPtrArray *
tt_graph_xml_load(const char *path, GError **error)
{
    gsize length = 0;
    g_autofree char *text = tt_text_file_read(path, TT_XML_MAX_BYTES, &length, error);

    return text ? tt_graph_xml_parse(path, text, length, error) : NULL;
}

/* --- writing -----------------------------------------------------------------------------------
 */

static void
write_device(GString *text, const char *name, gint64 dev)
{
    g_string_append_printf(text, "      <%s dev=\"0x%" G_GINT64_MODIFIER "x\"/>\n", name,
                           (guint64)dev);
}

static void
write_number(GString *text, const char *name, double value)
{
    char buffer[G_ASCII_DTOSTR_BUF_SIZE];

    g_string_append_printf(text, " %s=\"%s\"", name,
                           g_ascii_formatd(buffer, sizeof buffer, "%.15g", value));
}

static void
write_graph(GString *text, const TtGraphXml *graph)
{
    g_string_append_printf(text,
                           "  <graph id=\"%d\" pattern=\"%d\" crossnic=\"%d\" nchannels=\"%u\"",
                           graph->id, graph->pattern, graph->cross_nic, graph->n_channels);
    write_number(text, "speedintra", graph->speed_intra_gbytes_per_s);
    write_number(text, "speedinter", graph->speed_inter_gbytes_per_s);
    write_number(text, "latencyinter", graph->latency_inter_us);
    g_string_append_printf(text, " typeintra=\"%s\" typeinter=\"%s\" samechannels=\"%d\">\n",
                           graph->type_intra ? graph->type_intra : "",
                           graph->type_inter ? graph->type_inter : "", graph->same_channels);
    for (guint i = 0; i < graph->channels->len; i++) {
        const TtGraphChannel *channel = &g_array_index(graph->channels, TtGraphChannel, i);

        g_string_append(text, "    <channel>\n");
        if (channel->net_in != TT_GRAPH_NO_NET)
            write_device(text, "net", channel->net_in);
        for (guint k = 0; k < channel->gpus->len; k++)
            write_device(text, "gpu", g_array_index(channel->gpus, gint64, k));
        if (channel->net_out != TT_GRAPH_NO_NET)
            write_device(text, "net", channel->net_out);
        g_string_append(text, "    </channel>\n");
    }
    g_string_append(text, "  </graph>\n");
}

/* 0, 1, 4, 2, 3, and whatever else there may be behind. */
static int
dump_place(int id)
{
    static const int places[] = { 0, 1, 3, 4, 2 };

    return id >= 0 && id < (int)G_N_ELEMENTS(places) ? places[id] : id;
}

char *
tt_graph_xml_to_text(const GPtrArray *graphs)
{
    GString *text = g_string_new("<graphs version=\"1\">\n");

    for (int place = 0; place < 16; place++)
        for (guint i = 0; i < graphs->len; i++)
            if (dump_place(((const TtGraphXml *)graphs->pdata[i])->id) == place)
                write_graph(text, graphs->pdata[i]);
    g_string_append(text, "</graphs>\n");
    return g_string_free(text, FALSE);
}
