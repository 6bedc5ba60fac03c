/* nccl_graph_xml.h - NCCL's search results as a file: NCCL_GRAPH_DUMP_FILE writes it, NCCL_GRAPH_FILE
 * reads it instead of searching.
 *
 * Says what stands in the file and no more: devices are the file's numbers, path types its names. Words
 * and their meaning: NCCL src/graph/search.cc; docs/topology-format.md.
 */
#pragma once
#include "topologies/topology.h"

#define TT_GRAPH_NO_NET G_GINT64_CONSTANT(-1)

/* One ring, tree or chain: the network device it starts at, GPUs in order, the one it ends at. */
typedef struct {
    gint64 net_in, net_out; /* TT_GRAPH_NO_NET: one node, no network in it */
    GArray *gpus;           /* of gint64: the gpu's dev, the host's number in the top byte */
} TtGraphChannel;

typedef struct {
    int id;      /* 0 ring, 1 tree, 2 collnet chain, 3 nvls, 4 collnet direct */
    int pattern; /* 1 balanced tree, 2 split tree, 3 tree, 4 ring, 5 nvls, 6 collnet direct */
    int cross_nic;
    guint n_channels; /* as the file says; its channels may be fewer */
    double speed_intra_gbytes_per_s, speed_inter_gbytes_per_s; /* of one channel */
    double latency_inter_us;
    char *type_intra, *type_inter; /* "NVL", "PIX", ...; "" if the file has none */
    gboolean same_channels;
    GArray *channels; /* of TtGraphChannel */
} TtGraphXml;

/* The graphs of a file, in its order (of TtGraphXml *). One line about whatever is refused:
 * TT_TOPOLOGY_ERROR_FILE. */
GPtrArray *tt_graph_xml_load(const char *path, GError **error);
GPtrArray *tt_graph_xml_parse(const char *origin, const char *text, gsize length, GError **error);

/* A graph and a channel of it to fill, for writing. */
TtGraphXml *tt_graph_xml_new(int id);
TtGraphChannel *tt_graph_xml_add_channel(TtGraphXml *graph);
void tt_graph_xml_free(TtGraphXml *graph);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtGraphXml, tt_graph_xml_free)

/* The file's text, in the order NCCL dumps graphs: 0, 1, 4, 2, 3. Caller frees. */
char *tt_graph_xml_to_text(const GPtrArray *graphs);
