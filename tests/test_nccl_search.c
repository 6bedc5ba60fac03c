/* test_nccl_search - graphs and channels against those NCCL's own search found (nccl-golden.tsv). */
#include "check.h"
#include "models/nccl_search.h"
#include "nccl_systems.h"
#include <math.h>
#include <stdlib.h>

static const struct {
    const char *name;
    TtNcclGraphId id;
} graph_names[] = { { "ring", TT_GRAPH_RING }, { "tree", TT_GRAPH_TREE }, { "nvls", TT_GRAPH_NVLS } };

/* Printed with two decimals; the reference promises 0.2 %. */
static gboolean
near(double got, const char *want_text)
{
    double want = g_ascii_strtod(want_text, NULL);

    return fabs(got - want) <= 0.002 * want + 0.005;
}

static char *
graph_text(const TtNcclGraph *g)
{
    return g_strdup_printf("%s\t%u\t%u\t%.2f\t%.2f\t%s\t%s\t%d", tt_nccl_pattern_name(g->pattern),
                           g->cross_nic, g->n_channels, g->bw_intra, g->bw_inter,
                           tt_nccl_path_name(g->type_intra), tt_nccl_path_name(g->type_inter),
                           g->same_channels);
}

static gboolean
graph_matches(const TtNcclGraph *g, char **f)
{
    return g_str_equal(tt_nccl_pattern_name(g->pattern), f[6]) && g->cross_nic == (guint)atoi(f[7]) &&
           g->n_channels == (guint)atoi(f[8]) && near(g->bw_intra, f[9]) && near(g->bw_inter, f[10]) &&
           g_str_equal(tt_nccl_path_name(g->type_intra), f[11]) &&
           g_str_equal(tt_nccl_path_name(g->type_inter), f[12]) &&
           g->same_channels == atoi(f[13]);
}

/* One row of the file against one communicator; *text says what we got. */
static gboolean
row_matches(char **f, const TtNcclComm *comm, const TtNcclGraph *unmerged, char **text)
{
    if (f[0][0] == 'Y') {
        *text = g_strdup_printf("%.2f\t%.2f", comm->max_bw, comm->total_bw);
        return near(comm->max_bw, f[5]) && near(comm->total_bw, f[6]);
    }
    if (f[0][0] == 'C') {
        *text = g_strdup_printf("%u\t%u", comm->n_channels, comm->nvls_channels);
        return comm->n_channels == (guint)atoi(f[5]) && comm->nvls_channels == (guint)atoi(f[6]);
    }
    for (guint i = 0; i < G_N_ELEMENTS(graph_names); i++)
        if (g_str_equal(f[5], graph_names[i].name)) {
            *text = graph_text(&unmerged[graph_names[i].id]);
            return graph_matches(&unmerged[graph_names[i].id], f);
        }
    return FALSE;
}

static void
golden_rows_are_met(void)
{
    g_autofree char *path = g_build_filename(g_getenv("TT_SOURCE_DIR") ? g_getenv("TT_SOURCE_DIR") : ".",
                                             "tests/data/nccl-golden.tsv", NULL);
    g_autofree char *content = NULL, *last = NULL;
    g_autofree TtNcclComm *comm = g_new0(TtNcclComm, 1);
    g_autofree TtNcclGraph *unmerged = g_new0(TtNcclGraph, TT_N_GRAPHS);
    g_auto(GStrv) lines = NULL;
    guint met[128] = { 0 }, all[128] = { 0 };

    if (!g_file_get_contents(path, &content, NULL, NULL)) {
        CHECK(FALSE, "%s: not there", path);
        return;
    }
    lines = g_strsplit(content, "\n", -1);
    for (guint i = 0; lines[i]; i++) {
        g_auto(GStrv) f = NULL;
        g_autofree char *key = NULL, *text = NULL;
        guint kind = (guchar)lines[i][0] % 128;
        gboolean ok;

        if (!strchr("YGC", lines[i][0]) || !lines[i][0])
            continue;
        f = g_strsplit(lines[i], "\t", -1);
        key = g_strjoin(" ", f[1], f[2], f[3], NULL);
        if (g_strcmp0(key, last) != 0) {
            g_autoptr(TtNcclXml) xml = nccl_system_by_name(f[2]);
            g_autoptr(GError) error = NULL;

            tt_nccl_comm_init(comm, xml, (guint)atoi(f[3]), tt_nccl_version_parse(f[1], NULL, NULL),
                              NULL, unmerged, &error);
            CHECK_NO_ERROR(error);
            g_free(last);
            last = g_strdup(key);
        }
        ok = row_matches(f, comm, unmerged, &text);
        all[kind]++;
        met[kind] += ok;
        CHECK(ok, "\n  want %s\n  got  %s", lines[i], text);
    }
    printf("rows met: Y %u of %u, G %u of %u, C %u of %u ", met['Y'], all['Y'], met['G'], all['G'],
           met['C'], all['C']);
    CHECK(all['Y'] + all['G'] + all['C'] == 1672, "%u rows", all['Y'] + all['G'] + all['C']);
}

int
main(void)
{
    CU_TestInfo tests[] = {
        { "golden rows are met", golden_rows_are_met },
        CU_TEST_INFO_NULL,
    };

    return check_main("nccl_search", tests);
}
