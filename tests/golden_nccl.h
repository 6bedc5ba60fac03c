/* golden_nccl.h - the communicators of tests/data/nccl-golden.tsv, as its own Y, G and C rows describe them. */
#pragma once
#include "models/nccl_tuner.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

/* Lines of the file without comments, each split at its tabs. */
static inline GPtrArray *
golden_lines(void)
{
    g_autofree char *path =
        g_build_filename(g_getenv("TT_SOURCE_DIR"), "tests/data/nccl-golden.tsv", NULL);
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    GPtrArray *rows = g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i]; i++)
        if (lines[i][0] != '#' && lines[i][0] != '\0')
            g_ptr_array_add(rows, g_strsplit(lines[i], "\t", -1));
    return rows;
}

static inline guint
golden_name(const char *(*name_of)(guint), guint n, const char *text)
{
    for (guint i = 0; i < n; i++)
        if (strcmp(name_of(i), text) == 0)
            return i;
    g_error("golden file: unknown name %s", text);
}

/* What the file does not say of the systems in nccl.md 2.7. */
static inline void
golden_system(TtNcclComm *comm, const char *system)
{
    static const struct {
        const char *name;
        guint cc;
        gboolean amd, nvswitch;
        double nic_gbits;
    } systems[] = {
        { "dgx1v", 70, FALSE, FALSE, 100 },      { "dgx2", 70, FALSE, TRUE, 100 },
        { "dgxa100", 80, TRUE, TRUE, 200 },      { "dgxh100", 90, FALSE, TRUE, 400 },
        { "h100amd", 90, TRUE, TRUE, 400 },      { "dgxb200", 100, FALSE, TRUE, 400 },
        { "b200net800", 100, FALSE, TRUE, 800 }, { "h100x1", 90, FALSE, FALSE, 400 },
        { "a100x1", 80, TRUE, FALSE, 200 },
    };

    for (guint i = 0; i < G_N_ELEMENTS(systems); i++) {
        if (strcmp(systems[i].name, system) != 0)
            continue;
        comm->min_cc = comm->max_cc = systems[i].cc;
        comm->cpu_amd = systems[i].amd;
        comm->cpu_x86 = TRUE;
        comm->nvswitch = systems[i].nvswitch;
        comm->nic_gbits = systems[i].nic_gbits;
        return;
    }
    g_error("golden file: unknown system %s", system);
}

static inline void
golden_graph(TtNcclComm *comm, char **row)
{
    static const char *const graphs[] = { "ring", "tree", "collnet-chain", "nvls" };
    TtNcclGraph *graph = NULL;

    for (guint i = 0; i < G_N_ELEMENTS(graphs); i++)
        if (strcmp(graphs[i], row[5]) == 0)
            graph = &comm->graph[i];
    g_assert_nonnull(graph);
    graph->pattern = golden_name(tt_nccl_pattern_name, 7, row[6]);
    graph->n_channels = (guint)atoi(row[8]);
    graph->bw_intra = g_ascii_strtod(row[9], NULL);
    graph->bw_inter = g_ascii_strtod(row[10], NULL);
    graph->type_intra = golden_name(tt_nccl_path_name, TT_N_PATHS, row[11]);
    graph->type_inter = golden_name(tt_nccl_path_name, TT_N_PATHS, row[12]);
    graph->same_channels = atoi(row[13]);
}

/* Begins at the Y row @i; the merge over nodes makes tree and ring as many as the smaller has. Returns the
 * first row after the C row. */
static inline guint
golden_comm(const GPtrArray *rows, guint i, TtNcclComm *comm)
{
    char **row = rows->pdata[i];
    guint n;

    g_assert_cmpstr(row[0], ==, "Y");
    *comm = (TtNcclComm){ .version = tt_nccl_version_parse(row[1], NULL, NULL) };
    golden_system(comm, row[2]);
    comm->n_nodes = (guint)atoi(row[3]);
    comm->ranks_per_node = (guint)atoi(row[4]);
    comm->n_ranks = comm->n_nodes * comm->ranks_per_node;
    comm->max_bw = g_ascii_strtod(row[5], NULL);
    comm->total_bw = g_ascii_strtod(row[6], NULL);
    for (i++; strcmp(((char **)rows->pdata[i])[0], "G") == 0; i++)
        golden_graph(comm, rows->pdata[i]);
    row = rows->pdata[i];
    g_assert_cmpstr(row[0], ==, "C");
    comm->n_channels = (guint)atoi(row[5]);
    comm->nvls_channels = (guint)atoi(row[6]);
    comm->nvls = comm->nvls_channels > 0 && comm->graph[TT_GRAPH_NVLS].n_channels > 0;
    n = MIN(comm->graph[TT_GRAPH_RING].n_channels, comm->graph[TT_GRAPH_TREE].n_channels);
    comm->graph[TT_GRAPH_RING].n_channels = comm->graph[TT_GRAPH_TREE].n_channels = n;
    return i + 1;
}

/* The communicator of one system in the file. */
static inline TtNcclComm
golden_find(const char *version, const char *system, guint n_nodes)
{
    static GPtrArray *rows; /* read once: it is long */
    TtNcclComm comm;

    rows = rows ? rows : golden_lines();
    for (guint i = 0; i < rows->len; i++) {
        char **row = rows->pdata[i];

        if (row[0][0] == 'Y' && strcmp(row[1], version) == 0 && strcmp(row[2], system) == 0 &&
            (guint)atoi(row[3]) == n_nodes) {
            golden_comm(rows, i, &comm);
            return comm;
        }
    }
    g_error("golden file: no %s on %u x %s", version, n_nodes, system);
}

/* What nccl-tests runs by default. */
static inline TtNcclOp
float_sum(TtNcclFunc func, guint64 bytes)
{
    return (TtNcclOp){
        .func = func, .bytes = bytes, .type_bytes = 4, .is_float = TRUE, .op_is_sum = TRUE
    };
}

static inline TtNcclTable
table_of(const TtNcclComm *comm, TtNcclFunc func, const TtNcclEnv *env)
{
    TtNcclTable table;
    GError *error = NULL;

    CHECK(tt_nccl_table(comm, func, env, &table, &error), "%s", error->message);
    return table;
}
