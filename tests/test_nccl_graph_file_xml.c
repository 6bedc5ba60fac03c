/* NCCL_GRAPH_FILE and NCCL_GRAPH_DUMP_FILE: what was found, written and read back; what a file changes; what
 * is refused. */
#include "models/nccl_graph_file.h"
#include "models/nccl_search.h"
#include "tests/check.h"
#include "topologies/topology.h"

#include <glib/gstdio.h>
#include <string.h>

#define VERSION TT_NCCL_VERSION(2, 27, 7)

/* A node, and a file to name in its environment. */
typedef struct {
    TtNcclXml *node;
    TtNcclEnv env;
    char *folder, *path;
    TtNcclComm *comm;
    TtNcclGraph *graph; /* of one node */
} Place;

static void
place_init(Place *p, const char *topology)
{
    g_autoptr(TtTopology) topo = tt_topology_open(topology, NULL, NULL);

    g_assert(topo);
    p->node = tt_nccl_xml_of_topology(topo, NULL);
    p->folder = g_dir_make_tmp("tutti-XXXXXX", NULL);
    g_assert(p->node && p->folder);
    p->path = g_build_filename(p->folder, "graph.xml", NULL);
    p->comm = g_new0(TtNcclComm, 1);
    p->graph = g_new0(TtNcclGraph, TT_N_GRAPHS);
    tt_nccl_env_init(&p->env);
}

static void
place_clear(Place *p)
{
    g_remove(p->path);
    g_rmdir(p->folder);
    g_free(p->path);
    g_free(p->folder);
    g_free(p->comm);
    g_free(p->graph);
    tt_nccl_env_clear(&p->env);
    tt_nccl_xml_free(p->node);
}

static gboolean
init(Place *p, guint n_nodes, guint version, GError **error)
{
    return tt_nccl_comm_init(p->comm, p->node, n_nodes, version, &p->env, p->graph, error);
}

static void
write_file(Place *p, const char *text)
{
    g_assert(g_file_set_contents(p->path, text, -1, NULL));
    tt_nccl_env_set(&p->env, "NCCL_GRAPH_FILE", p->path, NULL, NULL);
}

static gboolean
same(const TtNcclGraph *a, const TtNcclGraph *b)
{
    gboolean heads = a->id == TT_GRAPH_NVLS || a->id == TT_GRAPH_COLLNET_DIRECT;
    gsize n = (heads ? 1 : a->n_gpus) * sizeof a->gpu[0][0];
    gboolean equal = a->id == b->id && a->pattern == b->pattern && a->cross_nic == b->cross_nic &&
                     a->n_channels == b->n_channels && a->bw_intra == b->bw_intra &&
                     a->bw_inter == b->bw_inter && a->latency_inter == b->latency_inter &&
                     a->type_intra == b->type_intra && a->type_inter == b->type_inter &&
                     a->same_channels == b->same_channels && a->n_gpus == b->n_gpus;

    for (guint c = 0; equal && c < a->n_channels; c++)
        equal = !memcmp(a->gpu[c], b->gpu[c], n) && !memcmp(a->net[c], b->net[c], sizeof a->net[c]);
    return equal;
}

/* Every preset with GPUs, old and new, alone and together, with all that can be switched on. */
static void
test_round_trip(void)
{
    static const guint versions[] = { TT_NCCL_VERSION(2, 18, 1), VERSION }, nodes[] = { 1, 2, 4 };

    for (const TtPreset *preset = tt_presets; preset->name; preset++) {
        g_autoptr(TtTopology) topo = tt_topology_open(preset->name, NULL, NULL);
        g_autoptr(TtNcclXml) node = tt_nccl_xml_of_topology(topo, NULL);

        for (guint i = 0; node && i < 6; i++) {
            g_autofree char *text = NULL;
            g_autofree TtNcclGraph *first = g_new0(TtNcclGraph, TT_N_GRAPHS);
            guint version = versions[i % 2], n_nodes = nodes[i / 2];
            GError *error = NULL;
            TtNcclComm before;
            Place p;

            place_init(&p, preset->name);
            tt_nccl_env_set(&p.env, "NCCL_COLLNET_ENABLE", "1", NULL, NULL);
            if (init(&p, n_nodes, version, NULL)) {
                before = *p.comm;
                memcpy(first, p.graph, TT_N_GRAPHS * sizeof *first);
                text = tt_nccl_graph_file_text(first, p.node, n_nodes, version, &error);
                CHECK_NO_ERROR(error);
                write_file(&p, text);
                CHECK(init(&p, n_nodes, version, &error), "%s:%u", preset->name, n_nodes);
                CHECK_NO_ERROR(error);
                for (guint g = 0; g < TT_N_GRAPHS; g++)
                    CHECK(same(&first[g], &p.graph[g]), "%s:%u, %u: graph %u", preset->name,
                          n_nodes, version, g);
                CU_ASSERT_EQUAL(before.n_channels, p.comm->n_channels);
                CU_ASSERT_EQUAL(before.nvls_channels, p.comm->nvls_channels);
                CU_ASSERT_EQUAL(before.collnet, p.comm->collnet);
                CU_ASSERT_EQUAL(before.nvls, p.comm->nvls);
            }
            place_clear(&p);
        }
    }
}

#define GRAPH(id, pattern, n, more)                                                                \
    "<graph id=\"" #id "\" pattern=\"" #pattern "\" crossnic=\"0\" nchannels=\"" #n                \
    "\" speedintra=\"20\" speedinter=\"10\" latencyinter=\"2\" typeintra=\"NVL\" "                 \
    "typeinter=\"PIX\" "                                                                           \
    "samechannels=\"1\">" more "</graph>"
#define FILE_OF(x) "<graphs version=\"1\">" x "</graphs>"
#define GPU(x)     "<gpu dev=\"" x "\"/>"
#define GPUS       GPU("0x3") GPU("0x2") GPU("0x1") GPU("0x0") GPU("4") GPU("5") GPU("6") GPU("7")
#define NET(x)     "<net dev=\"" x "\"/>"
#define CHANNEL    "<channel>" NET("0x1") GPUS NET("0x0") "</channel>"

/* One ring by the file; everything else is searched, and merged and doubled as ever. */
static void
test_ring_only(void)
{
    const TtNcclGraph *ring;
    GError *error = NULL;
    Place p;

    place_init(&p, "dgx-a100");
    CU_ASSERT_TRUE(init(&p, 2, VERSION, NULL));
    CU_ASSERT_TRUE(p.comm->n_channels > 4);
    write_file(&p, FILE_OF(GRAPH(0, 4, 1, CHANNEL) GRAPH(1, 1, 0, "") GRAPH(9, 9, 0, "")));
    CU_ASSERT_TRUE(init(&p, 2, VERSION, &error));
    CHECK_NO_ERROR(error);
    ring = &p.comm->graph[TT_GRAPH_RING];
    CU_ASSERT_EQUAL(ring->n_channels, 1);
    CU_ASSERT_EQUAL(ring->gpu[0][0], 3);
    CU_ASSERT_EQUAL(ring->gpu[0][7], 7);
    CU_ASSERT_EQUAL(ring->net[0][0], 1);
    CU_ASSERT_EQUAL(ring->net[0][1], 0);
    CU_ASSERT_EQUAL(ring->bw_intra, 20);
    CU_ASSERT_EQUAL(ring->latency_inter, 2);
    CU_ASSERT_EQUAL(p.comm->graph[TT_GRAPH_TREE].n_channels, 1);
    CU_ASSERT_EQUAL(p.comm->n_channels, 2);
    /* alone, a file's nets say nothing */
    CU_ASSERT_TRUE(init(&p, 1, VERSION, &error));
    CU_ASSERT_EQUAL(p.comm->graph[TT_GRAPH_RING].net[0][0], -1);
    place_clear(&p);
}

/* NCCL_CROSS_NIC=0 and a file that crosses: searched. */
static void
test_cross_nic(void)
{
    g_autofree char *text = NULL;
    GError *error = NULL;
    Place p;

    place_init(&p, "dgx-a100");
    write_file(&p,
               "<graphs version=\"1\"><graph id=\"0\" pattern=\"4\" crossnic=\"1\" nchannels=\"1\" "
               "speedintra=\"20\" speedinter=\"10\" typeintra=\"NVL\" typeinter=\"PIX\" "
               "samechannels=\"1\">" CHANNEL "</graph></graphs>");
    CU_ASSERT_TRUE(init(&p, 2, VERSION, &error));
    CU_ASSERT_EQUAL(p.comm->n_channels, 2);
    tt_nccl_env_set(&p.env, "NCCL_CROSS_NIC", "0", NULL, NULL);
    CU_ASSERT_TRUE(init(&p, 2, VERSION, &error));
    CU_ASSERT_TRUE(p.comm->n_channels > 2);
    place_clear(&p);
}

static const struct {
    const char *name, *text, *words;
} refused[] = {
    { "not XML", "graphs", "NCCL_GRAPH_FILE: " },
    { "gpu", FILE_OF(GRAPH(0, 4, 1, "<channel>" NET("0") GPUS GPU("9") NET("0") "</channel>")),
      "graph 0: channel 0: 9 GPUs, and the node has 8" },
    { "no such gpu",
      FILE_OF(GRAPH(0, 4, 1,
                    "<channel>" NET("0") GPU("0") GPU("1") GPU("2") GPU("3") GPU("4") GPU("5")
                        GPU("6") GPU("0x100000000000007") NET("0") "</channel>")),
      "graph 0: channel 0: the node has no gpu dev=\"0x100000000000007\" (it has 0x0, 0x1, " },
    { "twice",
      FILE_OF(GRAPH(0, 4, 1,
                    "<channel>" NET("0") GPU("0") GPU("1") GPU("2") GPU("3") GPU("4") GPU("5")
                        GPU("6") GPU("6") NET("0") "</channel>")),
      "channel 0: gpu dev=\"0x6\" stands twice" },
    { "no such net",
      FILE_OF(GRAPH(1, 1, 2, CHANNEL "<channel>" NET("0") GPUS NET("0x5f") "</channel>")),
      "graph 1: channel 1: the node has no net dev=\"0x5f\" (it has 0x0" },
    { "no net", FILE_OF(GRAPH(0, 4, 1, "<channel>" GPUS "</channel>")),
      "channel 0: no <net> before its GPUs" },
    { "no net out", FILE_OF(GRAPH(0, 4, 1, "<channel>" NET("0") GPUS "</channel>")),
      "channel 0: no <net> behind its GPUs" },
    { "pattern", FILE_OF(GRAPH(0, 1, 1, CHANNEL)), "graph 0: pattern=\"1\" must be 4 (ring)" },
    { "nvls without heads", FILE_OF(GRAPH(3, 5, 1, "<channel>" NET("0") "</channel>")),
      "graph 3: channel 0: 0 GPUs" },
    { "too many", FILE_OF(GRAPH(0, 4, 33, "")),
      "graph 0: nchannels=\"33\" is more than this version's 32" },
    { "fewer", FILE_OF(GRAPH(0, 4, 2, CHANNEL)), "nchannels=\"2\", and it holds 1" },
    { "same id", FILE_OF(GRAPH(0, 4, 1, CHANNEL) GRAPH(0, 4, 1, CHANNEL)),
      "graph 0: stands twice" },
    { "no speed",
      FILE_OF("<graph id=\"0\" pattern=\"4\" nchannels=\"1\" speedintra=\"0\" speedinter=\"1\" "
              "typeintra=\"NVL\" typeinter=\"PIX\">" CHANNEL "</graph>"),
      "must be above 0" },
    { "no type",
      FILE_OF("<graph id=\"0\" pattern=\"4\" nchannels=\"1\" speedintra=\"1\" speedinter=\"1\" "
              "typeintra=\"NVL\">" CHANNEL "</graph>"),
      "graph 0: typeinter is missing" },
};

static void
test_refusals(void)
{
    Place p;

    place_init(&p, "dgx-a100");
    for (gsize i = 0; i < G_N_ELEMENTS(refused); i++) {
        GError *error = NULL;

        write_file(&p, refused[i].text);
        CHECK_ROW(&refused[i], !init(&p, 2, VERSION, &error));
        CHECK(error && strstr(error->message, refused[i].words), "%s: %s", refused[i].name,
              error ? error->message : "no error");
        CHECK_ROW(&refused[i], error && !strchr(error->message, '\n'));
        g_clear_error(&error);
    }
    place_clear(&p);
}

/* Bytes changed, cut and doubled: refused or taken, nothing worse. */
static void
test_mutations(void)
{
    g_autoptr(GRand) random = NULL;
    g_autofree char *text = NULL;
    guint32 seed = g_random_int();
    guint n = 600 / check_every(4), taken = 0;
    Place p;

    place_init(&p, "dgx-h100");
    printf("seed %u ", seed);
    random = g_rand_new_with_seed(seed);
    CU_ASSERT_TRUE(init(&p, 2, VERSION, NULL));
    text = tt_nccl_graph_file_text(p.graph, p.node, 2, VERSION, NULL);
    for (guint i = 0; i < n; i++) {
        static const char bytes[] = "0123456789abcdefx\"<>/=- .";
        g_autofree char *other = g_strdup(text);
        gsize length = strlen(other);
        guint changes = 1 + g_rand_int(random) % 3;
        GError *error = NULL;

        while (changes--)
            other[(guint)g_rand_int(random) % length] =
                bytes[(guint)g_rand_int(random) % (sizeof bytes - 1)];
        write_file(&p, other);
        if (init(&p, 2, VERSION, &error))
            taken++;
        CHECK(!error || !strchr(error->message, '\n'), "seed %u: %s", seed, error->message);
        g_clear_error(&error);
    }
    CHECK(taken > 0 && taken < n, "seed %u: %u of %u taken", seed, taken, n);
    place_clear(&p);
}

static CU_TestInfo tests[] = {
    { "round trip", test_round_trip },    { "a ring by file", test_ring_only },
    { "NCCL_CROSS_NIC", test_cross_nic }, { "refusals", test_refusals },
    { "mutations", test_mutations },      CU_TEST_INFO_NULL,
};

int
main(void)
{
    return check_main("nccl_graph_file", tests);
}
