/* nccl_graph_file - graphs by file. See nccl_graph_file.h.
 *
 * Source: NCCL src/graph/search.cc (ncclTopoGetGraphFromXml, ncclTopoGetXmlFromGraph). NCCL takes counts and
 * nets unseen; whatever cannot be is refused here.
 */
#include "models/nccl_graph_file.h"
#include "models/nccl_channels.h"
#include "topologies/nccl_graph_xml.h"

#include <string.h>

#define HOST_SHIFT 56 /* a gpu's dev: the host's number in the top byte */

typedef struct {
    const char *path;
    const TtNcclSystem *system;
    const TtGraphXml *from;
    guint channel; /* the one being read */
} Reading;

static gboolean fail(const Reading *r, GError **error, const char *format, ...) G_GNUC_PRINTF(3, 4);
static gboolean fail_channel(const Reading *r, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* Always FALSE, for whoever returns it. */
static gboolean
fail(const Reading *r, GError **error, const char *format, ...)
{
    g_autofree char *what = NULL;
    va_list arguments;

    va_start(arguments, format);
    what = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_set_error(error, TT_NCCL_ERROR, TT_NCCL_ERROR_FILE, "NCCL_GRAPH_FILE=%s: graph %d: %s",
                r->path, r->from->id, what);
    return FALSE;
}

static gboolean
fail_channel(const Reading *r, GError **error, const char *format, ...)
{
    g_autofree char *what = NULL;
    va_list arguments;

    va_start(arguments, format);
    what = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    return fail(r, error, "channel %u: %s", r->channel, what);
}

/* --- devices ----------------------------------------------------------------------------------- */

/* A device as graph files name it. */
static gint64
number_of(const TtSysNode *device)
{
    if (device->type == TT_SYS_NET)
        return device->number;
    return (gint64)device->host << HOST_SHIFT | device->dev;
}

static const TtSysNode *
find_device(const Reading *r, TtSysType type, gint64 dev, GError **error)
{
    g_autoptr(GString) known = g_string_new(NULL);

    for (guint i = 0; i < r->system->n[type]; i++) {
        const TtSysNode *device = tt_nccl_system_node(r->system, type, i);

        if (number_of(device) == dev)
            return device;
        if (i < 16)
            g_string_append_printf(known, "%s0x%" G_GINT64_MODIFIER "x", i ? ", " : "",
                                   (guint64)number_of(device));
        else if (i == 16)
            g_string_append(known, ", ...");
    }
    fail_channel(r, error, "the node has no %s dev=\"0x%" G_GINT64_MODIFIER "x\" (it has %s)",
                 type == TT_SYS_NET ? "net" : "gpu", (guint64)dev, known->str);
    return NULL;
}

/* --- reading ----------------------------------------------------------------------------------- */

/* NVLS and CollNetDirect spread data over heads, the first GPU of each channel; the rest says nothing. */
static gboolean
is_of_heads(const TtGraphXml *from)
{
    return from->id == TT_GRAPH_NVLS || from->id == TT_GRAPH_COLLNET_DIRECT;
}

static gboolean
read_gpus(const Reading *r, const TtGraphChannel *channel, guint16 *places, GError **error)
{
    guint n = r->system->n[TT_SYS_GPU], n_given = channel->gpus->len;
    gboolean seen[TT_NCCL_MAX_GPUS] = { FALSE };

    if (is_of_heads(r->from) ? n_given < 1 || n_given > n : n_given != n)
        return fail_channel(r, error, "%u GPUs, and the node has %u", n_given, n);
    for (guint i = 0; i < n_given; i++) {
        gint64 dev = g_array_index(channel->gpus, gint64, i);
        const TtSysNode *gpu = find_device(r, TT_SYS_GPU, dev, error);

        if (!gpu)
            return FALSE;
        if (seen[gpu->place] && !is_of_heads(r->from))
            return fail_channel(r, error, "gpu dev=\"0x%" G_GINT64_MODIFIER "x\" stands twice",
                                (guint64)dev);
        seen[gpu->place] = TRUE;
        places[i] = (guint16)gpu->place;
    }
    return TRUE;
}

static gboolean
read_nets(const Reading *r, const TtGraphChannel *channel, gint16 *nets, GError **error)
{
    const gint64 dev[2] = { channel->net_in, channel->net_out };

    nets[0] = nets[1] = -1;
    if (r->system->n[TT_SYS_NET] == 0) /* one node: whatever nets the file has are not used */
        return TRUE;
    for (guint side = 0; side < 2; side++) {
        const TtSysNode *net;

        if (dev[side] == TT_GRAPH_NO_NET)
            return fail_channel(r, error,
                                "no <net> %s its GPUs (the file is of one node by itself?)",
                                side ? "behind" : "before");
        net = find_device(r, TT_SYS_NET, dev[side], error);
        if (!net)
            return FALSE;
        nets[side] = (gint16)net->number;
    }
    return TRUE;
}

static gboolean
read_type(const Reading *r, const char *name, const char *text, guint *type, GError **error)
{
    for (*type = 0; *type < TT_N_PATHS; ++*type)
        if (g_strcmp0(text, tt_nccl_path_name(*type)) == 0)
            return TRUE;
    return fail(r, error, "%s is missing", name); /* others are refused by whoever read the file */
}

static gboolean
check_pattern(const Reading *r, GError **error)
{
    static const struct {
        int lowest, highest;
        const char *allowed;
    } of[TT_N_GRAPHS] = {
        [TT_GRAPH_RING] = { TT_PATTERN_RING, TT_PATTERN_RING, "4 (ring)" },
        [TT_GRAPH_TREE] = { TT_PATTERN_BALANCED_TREE, TT_PATTERN_TREE,
                            "1 (balanced tree), 2 (split tree) or 3 (tree)" },
        [TT_GRAPH_COLLNET_CHAIN] = { TT_PATTERN_TREE, TT_PATTERN_TREE, "3 (tree)" },
        [TT_GRAPH_NVLS] = { TT_PATTERN_NVLS, TT_PATTERN_NVLS, "5 (NVLS)" },
        [TT_GRAPH_COLLNET_DIRECT] = { TT_PATTERN_COLLNET_DIRECT, TT_PATTERN_COLLNET_DIRECT,
                                      "6 (CollNet direct)" },
    };
    const TtGraphXml *from = r->from;

    if (from->pattern >= of[from->id].lowest && from->pattern <= of[from->id].highest)
        return TRUE;
    return fail(r, error, "pattern=\"%d\" must be %s", from->pattern, of[from->id].allowed);
}

/* Rings, trees and chains are used twice, so half of NCCL's channels is all they may take. */
static gboolean
check_counts(const Reading *r, GError **error)
{
    guint most = tt_nccl_max_channels(r->system->version) / (is_of_heads(r->from) ? 1 : 2);
    const TtGraphXml *from = r->from;

    if (from->n_channels > most)
        return fail(r, error, "nchannels=\"%u\" is more than this version's %u", from->n_channels,
                    most);
    if (from->channels->len != from->n_channels)
        return fail(r, error, "nchannels=\"%u\", and it holds %u", from->n_channels,
                    from->channels->len);
    if (from->speed_intra_gbytes_per_s > 0 && from->speed_inter_gbytes_per_s > 0)
        return TRUE;
    return fail(r, error, "speedintra and speedinter must be above 0");
}

static gboolean
read_graph(Reading *r, TtNcclGraph *graph, GError **error)
{
    const TtGraphXml *from = r->from;

    if (!check_pattern(r, error) || !check_counts(r, error) ||
        !read_type(r, "typeintra", from->type_intra, &graph->type_intra, error) ||
        !read_type(r, "typeinter", from->type_inter, &graph->type_inter, error))
        return FALSE;
    graph->id = (guint)from->id;
    graph->pattern = (guint)from->pattern;
    graph->cross_nic = (guint)from->cross_nic;
    graph->n_channels = from->n_channels;
    graph->bw_intra = from->speed_intra_gbytes_per_s;
    graph->bw_inter = from->speed_inter_gbytes_per_s;
    graph->latency_inter = from->latency_inter_us;
    graph->same_channels = from->same_channels;
    graph->n_gpus = r->system->n[TT_SYS_GPU];
    for (r->channel = 0; r->channel < from->n_channels; r->channel++) {
        const TtGraphChannel *channel = &g_array_index(from->channels, TtGraphChannel, r->channel);

        if (!read_gpus(r, channel, graph->gpu[r->channel], error) ||
            !read_nets(r, channel, graph->net[r->channel], error))
            return FALSE;
    }
    return TRUE;
}

/* Without channels, or where NCCL_CROSS_NIC=0 forbids what the file wants, NCCL searches. */
static gboolean
is_taken(const TtGraphXml *from, const TtNcclEnv *env)
{
    return from->id < TT_N_GRAPHS && from->n_channels > 0 &&
           !(env && env->cross_nic == 0 && from->cross_nic == 1);
}

TtNcclGraphFile *
tt_nccl_graph_file_load(const char *path, const TtNcclSystem *system, const TtNcclEnv *env,
                        GError **error)
{
    g_autofree TtNcclGraphFile *file = g_new0(TtNcclGraphFile, 1);
    g_autoptr(GPtrArray) graphs = tt_graph_xml_load(path, error);

    if (!graphs) {
        g_prefix_error(error, "NCCL_GRAPH_FILE: ");
        return NULL;
    }
    for (guint i = 0; i < graphs->len; i++) {
        Reading r = { .path = path, .system = system, .from = graphs->pdata[i] };

        if (!is_taken(r.from, env))
            continue;
        if (file->given[r.from->id]) {
            fail(&r, error, "stands twice");
            return NULL;
        }
        file->given[r.from->id] = TRUE;
        if (!read_graph(&r, &file->graph[r.from->id], error))
            return NULL;
    }
    return g_steal_pointer(&file);
}

/* --- writing ----------------------------------------------------------------------------------- */

static gint64
number_of_place(const TtNcclSystem *system, guint place)
{
    for (guint i = 0; i < system->n[TT_SYS_GPU]; i++)
        if (tt_nccl_system_node(system, TT_SYS_GPU, i)->place == place)
            return number_of(tt_nccl_system_node(system, TT_SYS_GPU, i));
    g_assert_not_reached();
}

static TtGraphXml *
write_graph(const TtNcclGraph *graph, const TtNcclSystem *system)
{
    TtGraphXml *to = tt_graph_xml_new((int)graph->id);
    guint n_gpus = graph->id == TT_GRAPH_NVLS ? 1 : graph->n_gpus;

    to->pattern = (int)graph->pattern;
    to->cross_nic = (int)graph->cross_nic;
    to->n_channels = graph->n_channels;
    to->speed_intra_gbytes_per_s = graph->bw_intra;
    to->speed_inter_gbytes_per_s = graph->bw_inter;
    to->latency_inter_us = graph->latency_inter;
    to->type_intra = g_strdup(tt_nccl_path_name(graph->type_intra));
    to->type_inter = g_strdup(tt_nccl_path_name(graph->type_inter));
    to->same_channels = graph->same_channels;
    for (guint c = 0; c < graph->n_channels; c++) {
        TtGraphChannel *channel = tt_graph_xml_add_channel(to);

        channel->net_in = graph->net[c][0];
        channel->net_out = graph->net[c][1];
        for (guint i = 0; i < n_gpus; i++) {
            gint64 dev = number_of_place(system, graph->gpu[c][i]);

            g_array_append_val(channel->gpus, dev);
        }
    }
    return to;
}

/* Graphs nobody searched for have no pattern and are not written. */
char *
tt_nccl_graph_file_text(const TtNcclGraph *graph, const TtNcclXml *node, guint n_nodes,
                        guint version, GError **error)
{
    g_autoptr(TtNcclSystem) system = tt_nccl_system_new(node, version, n_nodes > 1, error);
    g_autoptr(GPtrArray) graphs = NULL;

    if (!system)
        return NULL;
    graphs = g_ptr_array_new_with_free_func((GDestroyNotify)tt_graph_xml_free);
    for (guint g = 0; g < TT_N_GRAPHS; g++)
        if (graph[g].pattern)
            g_ptr_array_add(graphs, write_graph(&graph[g], system));
    return tt_graph_xml_to_text(graphs);
}
