/* nccl_found.h - what NCCL's search finds on a machine, and how tests say it. */
#pragma once
#include "models/nccl_search.h"
#include "tests/check.h"
#include "tests/nccl_systems.h"

typedef struct {
    TtNcclComm comm;
    TtNcclGraph graph[TT_N_GRAPHS]; /* before the merge */
} Found;

static inline Found *
find(const TtNcclXml *xml, guint n_nodes, const char *version, const TtNcclEnv *env)
{
    Found *found = g_new0(Found, 1);
    g_autoptr(GError) error = NULL;

    tt_nccl_comm_init(&found->comm, xml, n_nodes, tt_nccl_version_parse(version, NULL, NULL), env,
                      found->graph, &error);
    CHECK(!error, "%s x %u, %s: %s", xml->origin, n_nodes, version, error ? error->message : "");
    return found;
}

static inline char *
channel_text(const TtNcclGraph *g, guint c)
{
    GString *text = g_string_new(NULL);

    g_string_append_printf(text, "%d:", g->net[c][0]);
    for (guint i = 0; i < g->n_gpus; i++)
        g_string_append_printf(text, " %u", g->gpu[c][i]);
    g_string_append_printf(text, " :%d", g->net[c][1]);
    return g_string_free(text, FALSE);
}

static inline char *
graph_text(const TtNcclGraph *g)
{
    return g_strdup_printf("%s\t%u\t%u\t%.2f\t%.2f\t%s\t%s\t%d", tt_nccl_pattern_name(g->pattern),
                           g->cross_nic, g->n_channels, g->bw_intra, g->bw_inter,
                           tt_nccl_path_name(g->type_intra), tt_nccl_path_name(g->type_inter),
                           g->same_channels);
}
