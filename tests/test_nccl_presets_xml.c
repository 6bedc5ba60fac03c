/* Presets as NCCL 2.27.7 sees and searches them: what its own search found on machines of the same
 * shape (NCCL's unmodified sources, run on hand-made topologies).
 */
#include "models/nccl_search.h"
#include "tests/check.h"

typedef struct {
    guint n;
    double intra, inter;
} Graph;

static const struct {
    const char *name;
    guint n_nodes;
    Graph ring, tree, nvls;
    guint channels, nvls_channels;
} rows[] = {
    { "dgx1-v100", 1, { 6, 20, 20 }, { 6, 20, 20 }, { 0 }, 12, 0 },
    { "dgx1-v100", 2, { 4, 12, 12 }, { 4, 20, 12 }, { 0 }, 8, 0 },
    { "dgx2", 1, { 6, 20, 20 }, { 6, 20, 20 }, { 0 }, 12, 0 },
    { "dgx2", 2, { 8, 12, 12 }, { 8, 15, 12 }, { 0 }, 16, 0 },
    { "dgx-a100", 1, { 12, 20, 20 }, { 12, 20, 20 }, { 0 }, 24, 0 },
    { "dgx-a100", 16, { 8, 24, 24 }, { 8, 30, 24 }, { 0 }, 16, 0 },
    { "dgx-h100", 1, { 12, 30, 30 }, { 12, 30, 30 }, { 8, 40, 60 }, 24, 16 },
    { "dgx-h100", 2, { 8, 48, 48 }, { 8, 48, 48 }, { 8, 40, 48 }, 16, 16 },
    { "hgx-h200", 4, { 8, 48, 48 }, { 8, 48, 48 }, { 8, 40, 48 }, 16, 16 },
    { "dgx-b200", 1, { 16, 45, 45 }, { 16, 40, 40 }, { 8, 80, 90 }, 32, 24 },
    { "dgx-b200", 2, { 8, 48, 48 }, { 8, 96, 48 }, { 8, 48, 48 }, 32, 32 },
};

static void
check_graph(const char *name, const char *which, const TtNcclGraph *found, const Graph *wanted)
{
    CHECK(found->n_channels == wanted->n && (wanted->n == 0 || (found->bw_intra == wanted->intra &&
                                                                found->bw_inter == wanted->inter)),
          "%s: %s: %u x %g/%g, wanted %u x %g/%g", name, which, found->n_channels, found->bw_intra,
          found->bw_inter, wanted->n, wanted->intra, wanted->inter);
}

static void
test_presets(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        g_autofree TtNcclComm *comm = g_new0(TtNcclComm, 1);
        g_autoptr(TtTopology) topo = tt_topology_open(rows[i].name, NULL, NULL);
        g_autoptr(TtNcclXml) xml = tt_nccl_xml_of_topology(topo, NULL);

        CHECK_ROW(&rows[i], tt_nccl_comm_init(comm, xml, rows[i].n_nodes, TT_NCCL_VERSION(2, 27, 7),
                                              NULL, NULL, &error));
        CHECK_NO_ERROR(error);
        check_graph(rows[i].name, "ring", &comm->graph[TT_GRAPH_RING], &rows[i].ring);
        check_graph(rows[i].name, "tree", &comm->graph[TT_GRAPH_TREE], &rows[i].tree);
        check_graph(rows[i].name, "nvls", &comm->graph[TT_GRAPH_NVLS], &rows[i].nvls);
        CHECK(comm->n_channels == rows[i].channels, "%s: %u channels", rows[i].name,
              comm->n_channels);
        CHECK(comm->nvls_channels == rows[i].nvls_channels, "%s: %u NVLS channels", rows[i].name,
              comm->nvls_channels);
    }
}

static CU_TestInfo tests[] = {
    { "presets", test_presets },
    CU_TEST_INFO_NULL,
};

int
main(void)
{
    return check_main("nccl_presets", tests);
}
