/* Written by hand, so that it needs no library: names are ours, numbers finite or null. */
#include "cli/explain_json.h"

#include <string.h>

/* --- JSON -------------------------------------------------------------------------------------- */

/* Opens with '{' or '['; members and elements bring their own comma. */
static void
open_with(GString *json, char bracket)
{
    g_string_append_c(json, bracket);
}

static void
close_with(GString *json, char bracket)
{
    if (json->str[json->len - 1] == ',')
        g_string_truncate(json, json->len - 1);
    g_string_append_printf(json, "%c,", bracket);
}

static void
name(GString *json, const char *member)
{
    g_string_append_printf(json, "\"%s\":", member);
}

static void
real(GString *json, const char *member, double value)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];

    name(json, member);
    g_string_append_printf(json, "%s,",
                           isfinite(value) ? g_ascii_dtostr(number, sizeof number, value) : "null");
}

static void
count(GString *json, const char *member, guint64 value)
{
    name(json, member);
    g_string_append_printf(json, "%" G_GUINT64_FORMAT ",", value);
}

static void
flag(GString *json, const char *member, gboolean value)
{
    name(json, member);
    g_string_append(json, value ? "true," : "false,");
}

/* Anything may stand in a path or a variable. */
static void
text(GString *json, const char *member, const char *value)
{
    g_autofree char *valid = value ? g_utf8_make_valid(value, -1) : NULL;

    if (member)
        name(json, member);
    if (!valid) {
        g_string_append(json, "null,");
        return;
    }
    g_string_append_c(json, '"');
    for (const char *c = valid; *c; c++) {
        if (*c == '"' || *c == '\\')
            g_string_append_printf(json, "\\%c", *c);
        else if ((guchar)*c < 0x20)
            g_string_append_printf(json, "\\u%04x", (guint)(guchar)*c);
        else
            g_string_append_c(json, *c);
    }
    g_string_append(json, "\",");
}

/* --- the explanation --------------------------------------------------------------------------- */

static void
add_communicator(GString *json, const TtNcclComm *comm)
{
    name(json, "communicator");
    open_with(json, '{');
    count(json, "ranks", comm->n_ranks);
    count(json, "nodes", comm->n_nodes);
    count(json, "ranks_per_node", comm->ranks_per_node);
    count(json, "compute_capability", comm->min_cc);
    flag(json, "nvswitch", comm->nvswitch);
    flag(json, "nvls", comm->nvls);
    flag(json, "collnet", comm->collnet);
    flag(json, "cpu_amd", comm->cpu_amd);
    real(json, "max_bw_gbps", comm->max_bw);
    real(json, "total_bw_gbps", comm->total_bw);
    count(json, "channels", comm->n_channels);
    count(json, "nvls_channels", comm->nvls_channels);
    close_with(json, '}');
}

static void
add_orders(GString *json, const TtNcclGraph *g)
{
    name(json, "orders");
    open_with(json, '[');
    for (guint c = 0; c < g->n_channels && g->n_gpus > 0; c++) {
        open_with(json, '{');
        name(json, "gpus");
        open_with(json, '[');
        for (guint i = 0; i < (tt_explain_has_head(g) ? 1 : g->n_gpus); i++)
            g_string_append_printf(json, "%u,", g->gpu[c][i]);
        close_with(json, ']');
        name(json, "nets");
        open_with(json, '[');
        for (guint end = 0; end < 2 && g->net[c][end] >= 0; end++)
            g_string_append_printf(json, "%d,", g->net[c][end]);
        close_with(json, ']');
        close_with(json, '}');
    }
    close_with(json, ']');
}

static void
add_graphs(GString *json, const TtNcclComm *comm)
{
    name(json, "graphs");
    open_with(json, '[');
    for (guint i = 0; i < TT_N_GRAPHS; i++) {
        const TtNcclGraph *g = &comm->graph[i];

        if (g->n_channels == 0)
            continue;
        open_with(json, '{');
        text(json, "graph", tt_explain_graph_name(i));
        text(json, "pattern", tt_nccl_pattern_name(g->pattern));
        count(json, "channels", g->n_channels);
        real(json, "bw_intra_gbps", g->bw_intra);
        real(json, "bw_inter_gbps", g->bw_inter);
        text(json, "type_intra", tt_nccl_path_name(g->type_intra));
        text(json, "type_inter", tt_nccl_path_name(g->type_inter));
        count(json, "cross_nic", g->cross_nic);
        flag(json, "same_channels", g->same_channels != 0);
        add_orders(json, g);
        close_with(json, '}');
    }
    close_with(json, ']');
}

static void
add_pair(GString *json, guint algo, guint proto)
{
    text(json, "algorithm", tt_library_algo_word(algo));
    text(json, "protocol", tt_library_proto_word(proto));
}

static void
add_tables(GString *json, const TtLibrary *l)
{
    TtNcclTable tables[TT_NCCL_N_FUNCS];

    name(json, "table");
    open_with(json, '[');
    for (guint f = 0; tt_explain_tables(l, tables) && f < TT_NCCL_N_FUNCS; f++) {
        for (guint i = 0; i < TT_NCCL_N_ALGOS * TT_NCCL_N_PROTOS; i++) {
            const TtNcclCell *cell = &tables[f].cell[i / 3][i % 3];

            open_with(json, '{');
            text(json, "collective", tt_nccl_func_name(f));
            add_pair(json, i / 3, i % 3);
            flag(json, "enabled", cell->enabled);
            text(json, "why_not", cell->why_not);
            real(json, "latency_us", cell->enabled ? cell->latency_us : INFINITY);
            real(json, "bw_gbps", cell->enabled ? cell->bw_gbps : INFINITY);
            close_with(json, '}');
        }
    }
    close_with(json, ']');
}

static void
add_candidates(GString *json, const TtLibrary *l, const TtCaseExplained *e)
{
    name(json, "candidates");
    open_with(json, '[');
    for (guint i = 0; i < TT_NCCL_N_ALGOS * TT_NCCL_N_PROTOS; i++) {
        open_with(json, '{');
        add_pair(json, i / 3, i % 3);
        real(json, "time_us", e->us[i]);
        text(json, "why_not", tt_nccl_why_not(&l->comm, &l->table, &e->op, i / 3, i % 3));
        close_with(json, '}');
    }
    close_with(json, ']');
}

static void
add_case(GString *json, const TtLibrary *l, const TtCase *c)
{
    TtCaseExplained e;
    const TtNcclChoice *choice = &e.choice;

    tt_explain_case(l, c, &e);
    open_with(json, '{');
    count(json, "bytes", c->bytes);
    text(json, "type", tt_type_name(c->type));
    text(json, "redop", tt_redop_name(c->redop));
    if (e.chosen) {
        add_pair(json, choice->algo, choice->proto);
        real(json, "time_us", choice->time_us);
        count(json, "channels", choice->n_channels);
        count(json, "used_channels", choice->used_channels);
        count(json, "threads", choice->n_threads);
        count(json, "channel_bytes", choice->channel_bytes);
        count(json, "chunk_bytes", choice->chunk_bytes);
        count(json, "slice_bytes", choice->slice_bytes);
    }
    add_candidates(json, l, &e);
    close_with(json, '}');
}

char *
tt_explain_json(const TtLibrary *library, const GArray *cases)
{
    GString *json = g_string_new(NULL);
    g_autofree char *version = tt_nccl_version_name(library->version);

    open_with(json, '{');
    text(json, "nccl_version", version);
    add_communicator(json, &library->comm);
    add_graphs(json, &library->comm);
    add_tables(json, library);
    name(json, "sizes");
    open_with(json, '[');
    for (guint i = 0; i < cases->len; i++)
        add_case(json, library, &g_array_index(cases, TtCase, i));
    close_with(json, ']');
    close_with(json, '}');
    g_string_truncate(json, json->len - 1);
    return g_string_free(json, FALSE);
}
