#include "cli/explain_choice.h"
#include "cli/explain_json.h"
#include "cli/table.h"

#include <math.h>
#include <string.h>

/* More sizes than this are told as ranges only. */
#define MAX_SIZES_SHOWN 40

#define N_PAIRS (TT_NCCL_N_ALGOS * TT_NCCL_N_PROTOS)

static const char *const graph_names[TT_N_GRAPHS] = { "ring", "tree", "collnet-chain", "nvls",
                                                      "collnet-direct" };

const char *
tt_explain_graph_name(guint graph)
{
    return graph_names[graph];
}

void
tt_explain_case(const TtLibrary *library, const TtCase *c, TtCaseExplained *out)
{
    *out = (TtCaseExplained){ .op = tt_library_op(library, c), .winner = N_PAIRS, .next = N_PAIRS };
    for (guint i = 0; i < N_PAIRS; i++) {
        double us = tt_nccl_time_us(&library->comm, &library->table, &out->op, i / 3, i % 3);

        out->us[i] = us;
        if (!isfinite(us))
            continue;
        if (out->winner == N_PAIRS || us < out->us[out->winner]) {
            out->next = out->winner;
            out->winner = i;
        } else if (out->next == N_PAIRS || us < out->us[out->next]) {
            out->next = i;
        }
    }
    out->chosen = tt_library_choose(library, &out->op, NULL, &out->choice, NULL);
}

static char *
pair_name(guint pair)
{
    return g_strdup_printf("%s %s", tt_nccl_algo_name(pair / 3), tt_nccl_proto_name(pair % 3));
}

/* --- what was found ---------------------------------------------------------------------------- */

static void
print_communicator(const TtReport *report, const TtLibrary *l)
{
    const TtNcclComm *comm = &l->comm;

    tt_report_gap(report);
    tt_report_comment(report, "Communicator");
    tt_report_comment(report, "  ranks     %u on %u node%s, %u a node", comm->n_ranks,
                      comm->n_nodes, comm->n_nodes == 1 ? "" : "s", comm->ranks_per_node);
    tt_report_comment(report, "  GPUs      compute capability %u.%u%s, %s, %s, %s",
                      comm->min_cc / 10, comm->min_cc % 10,
                      comm->min_cc == comm->max_cc ? "" : " and later",
                      comm->nvswitch ? "NVSwitch" : "no NVSwitch", comm->nvls ? "NVLS" : "no NVLS",
                      comm->collnet ? "CollNet" : "no CollNet");
    tt_report_comment(report, "  CPUs      %s%s",
                      comm->cpu_x86     ? "x86"
                      : comm->cpu_power ? "POWER"
                                        : "other than x86",
                      comm->cpu_amd ? ", AMD" : "");
    tt_report_comment(report, "  links     best path %.1f GB/s, a GPU's links together %.1f GB/s",
                      comm->max_bw, comm->total_bw);
    if (comm->nvls)
        tt_report_comment(report, "  channels  %u, %u of them for NVLS", comm->n_channels,
                          comm->nvls_channels);
    else
        tt_report_comment(report, "  channels  %u", comm->n_channels);
}

static void
print_graphs(const TtReport *report, const TtLibrary *l)
{
    tt_report_gap(report);
    tt_report_comment(report, "Graphs: what the search found, after the merge over nodes");
    tt_report_comment(report, "  %-14s  %-14s  %8s  %15s  %13s  %8s  %s", "", "", "",
                      "GB/s a channel", "farthest path", "", "same");
    tt_report_comment(report, "  %-14s  %-14s  %8s  %7s %7s  %6s %6s  %8s  %s", "graph", "pattern",
                      "channels", "inside", "across", "inside", "across", "crossNic", "channels");
    for (guint i = 0; i < TT_N_GRAPHS; i++) {
        const TtNcclGraph *g = &l->comm.graph[i];

        if (g->n_channels == 0)
            continue;
        tt_report_comment(report, "  %-14s  %-14s  %8u  %7.2f %7.2f  %6s %6s  %8u  %s",
                          graph_names[i], tt_nccl_pattern_name(g->pattern), g->n_channels,
                          g->bw_intra, g->bw_inter, tt_nccl_path_name(g->type_intra),
                          tt_nccl_path_name(g->type_inter), g->cross_nic,
                          g->same_channels ? "yes" : "no");
    }
}

/* A star around its first GPU rather than a chain. */
gboolean
tt_explain_has_head(const TtNcclGraph *graph)
{
    return graph->pattern == TT_PATTERN_NVLS || graph->pattern == TT_PATTERN_COLLNET_DIRECT;
}

/* "NET 0 > GPU 0 1 2 3 > NET 1" */
static char *
order_of(const TtNcclGraph *g, guint channel)
{
    GString *text = g_string_new(NULL);

    if (g->net[channel][0] >= 0)
        g_string_append_printf(text, "NET %d > ", g->net[channel][0]);
    g_string_append(text, tt_explain_has_head(g) ? "head GPU" : "GPU");
    for (guint i = 0; i < (tt_explain_has_head(g) ? 1 : g->n_gpus); i++)
        g_string_append_printf(text, " %u", g->gpu[channel][i]);
    if (g->net[channel][1] >= 0)
        g_string_append_printf(text, " > NET %d", g->net[channel][1]);
    return g_string_free(text, FALSE);
}

/* Channels that follow each other in the same order are one line. */
static void
print_orders(const TtReport *report, const TtLibrary *l)
{
    tt_report_gap(report);
    tt_report_comment(report, "Orders: places of a node as a channel walks them");
    for (guint i = 0; i < TT_N_GRAPHS; i++) {
        const TtNcclGraph *g = &l->comm.graph[i];
        guint first = 0;

        for (guint c = 0; c < g->n_channels && g->n_gpus > 0; c++) {
            g_autofree char *order = order_of(g, c), *channels = NULL;
            g_autofree char *next = c + 1 < g->n_channels ? order_of(g, c + 1) : NULL;

            if (g_strcmp0(order, next) == 0)
                continue;
            channels = first == c ? g_strdup_printf("%u", c) : g_strdup_printf("%u-%u", first, c);
            tt_report_comment(report, "  %-14s  %7s  %s", first == 0 ? graph_names[i] : "",
                              channels, order);
            first = c + 1;
        }
    }
}

/* --- what was computed ------------------------------------------------------------------------- */

static void
append_cell(GString *line, const TtNcclCell *cell)
{
    g_autofree char *text = NULL;

    if (!cell->enabled)
        text = g_strdup("-");
    else if (isfinite(cell->bw_gbps))
        text = g_strdup_printf("%.1f/%.1f", cell->latency_us, cell->bw_gbps);
    else /* one GPU: nothing moves */
        text = g_strdup_printf("%.1f/-", cell->latency_us);

    g_string_append_printf(line, " %13s", text);
}

/* @pairs: the columns, one block of NCCL's three. */
static void
print_block(const TtReport *report, const TtNcclTable *tables, const guint *pairs, guint n)
{
    g_autoptr(GString) algos = g_string_new(NULL), protos = g_string_new(NULL);

    for (guint i = 0; i < n; i++) {
        g_string_append_printf(algos, " %13s", tt_nccl_algo_name(pairs[i] / 3));
        g_string_append_printf(protos, " %13s", tt_nccl_proto_name(pairs[i] % 3));
    }
    tt_report_comment(report, "  %-13s%s", "", algos->str);
    tt_report_comment(report, "  %-13s%s", "", protos->str);
    for (guint f = 0; f < TT_NCCL_N_FUNCS; f++) {
        g_autoptr(GString) line = g_string_new(NULL);

        for (guint i = 0; i < n; i++)
            append_cell(line, &tables[f].cell[pairs[i] / 3][pairs[i] % 3]);
        tt_report_comment(report, "  %-13s%s", tt_nccl_func_name(f), line->str);
    }
}

gboolean
tt_explain_tables(const TtLibrary *l, TtNcclTable *tables)
{
    for (guint f = 0; f < TT_NCCL_N_FUNCS; f++)
        if (!tt_nccl_table(&l->comm, f, &l->env, &tables[f], NULL))
            return FALSE;
    return TRUE;
}

/* Columns with something in them, six at a time. */
static void
print_table(const TtReport *report, const TtLibrary *l)
{
    TtNcclTable tables[TT_NCCL_N_FUNCS];
    guint pairs[N_PAIRS], n = 0;

    if (!tt_explain_tables(l, tables))
        return;
    for (guint i = 0; i < N_PAIRS; i++) {
        gboolean any = FALSE;

        for (guint f = 0; f < TT_NCCL_N_FUNCS; f++)
            any |= tables[f].cell[i / 3][i % 3].enabled;
        if (any)
            pairs[n++] = i;
    }
    tt_report_gap(report);
    tt_report_comment(report, "Table: latency (us) / bandwidth (GB/s); - is off");
    for (guint i = 0; i < n; i += 6) {
        if (i > 0)
            tt_report_gap(report);
        print_block(report, tables, pairs + i, MIN(6, n - i));
    }
}

/* Reasons, each once, with the protocols they are of. */
static void
print_off(const TtReport *report, const TtLibrary *l, const TtCase *c)
{
    TtNcclOp op = tt_library_op(l, c);

    tt_report_gap(report);
    tt_report_comment(report, "Off for %s of %s %s", tt_nccl_func_name(l->func),
                      tt_type_name(c->type), tt_redop_name(c->redop));
    for (guint a = 0; a < TT_NCCL_N_ALGOS; a++) {
        guint protos = a == TT_NCCL_TREE || a == TT_NCCL_RING ? 0 : TT_NCCL_SIMPLE;

        for (guint p = protos; p < TT_NCCL_N_PROTOS; p++) {
            const char *why = tt_nccl_why_not(&l->comm, &l->table, &op, a, p);
            g_autoptr(GString) names = g_string_new(tt_nccl_proto_name(p));

            if (!why)
                continue;
            while (p + 1 < TT_NCCL_N_PROTOS &&
                   g_strcmp0(why, tt_nccl_why_not(&l->comm, &l->table, &op, a, p + 1)) == 0)
                g_string_append_printf(names, ", %s", tt_nccl_proto_name(++p));
            tt_report_comment(report, "  %-14s  %-18s  %s", tt_nccl_algo_name(a), names->str, why);
        }
    }
}

/* --- what it believes -------------------------------------------------------------------------- */

static char *
size_of(const TtCase *c)
{
    return tt_format_bytes(c->bytes);
}

/* A row per size, a column per pair that is on, a star at the choice. */
static void
print_times(const TtReport *report, const TtLibrary *l, const TtCase *cases, guint n)
{
    g_autoptr(GString) algos = g_string_new(NULL), protos = g_string_new(NULL);

    tt_report_gap(report);
    tt_report_comment(report, "Believed time (us) by size; * is the choice");
    for (guint i = 0; i < N_PAIRS; i++) {
        if (!l->table.cell[i / 3][i % 3].enabled)
            continue;
        g_string_append_printf(algos, " %12s", tt_nccl_algo_name(i / 3));
        g_string_append_printf(protos, " %12s", tt_nccl_proto_name(i % 3));
    }
    tt_report_comment(report, "  %10s%s", "", algos->str);
    tt_report_comment(report, "  %10s%s", "size", protos->str);
    for (guint c = 0; c < n; c++) {
        g_autoptr(GString) line = g_string_new(NULL);
        g_autofree char *size = size_of(&cases[c]);
        TtCaseExplained e;

        tt_explain_case(l, &cases[c], &e);
        for (guint i = 0; i < N_PAIRS; i++) {
            g_autofree char *us = isfinite(e.us[i]) ? tt_fit_number(e.us[i], 11) : g_strdup("-");

            if (l->table.cell[i / 3][i % 3].enabled)
                g_string_append_printf(line, " %11s%c", us, i == e.winner ? '*' : ' ');
        }
        tt_report_comment(report, "  %10s%s", size, g_strchomp(line->str));
    }
}

/* By how much the winner leads, in percent. */
static double
lead_of(const TtCaseExplained *e)
{
    return 100 * e->us[e->next] / e->us[e->winner] - 100;
}

/* What comes second at both ends of a range. */
static char *
runner_up(const TtCaseExplained *a, const TtCaseExplained *b, const char *from, const char *to)
{
    g_autofree char *first = NULL, *last = NULL;

    if (a->winner == N_PAIRS)
        return g_strdup("nothing is on: what NCCL falls back to");
    if (a->next == N_PAIRS || b->next == N_PAIRS)
        return g_strdup("nothing else is on");
    first = pair_name(a->next), last = pair_name(b->next);
    if (a->op.bytes == b->op.bytes)
        return g_strdup_printf("then %s, %.0f %% slower", first, lead_of(a));
    if (a->next == b->next)
        return g_strdup_printf("then %s, %.0f to %.0f %% slower", first,
                               MIN(lead_of(a), lead_of(b)), MAX(lead_of(a), lead_of(b)));
    return g_strdup_printf("then %s (%.0f %% slower at %s), %s (%.0f %% at %s)", first, lead_of(a),
                           from, last, lead_of(b), to);
}

static void
print_range(const TtReport *report, const TtLibrary *l, const TtCase *first, const TtCase *last)
{
    g_autofree char *from = size_of(first), *to = size_of(last), *name = NULL, *next = NULL;
    g_autofree char *range = first == last ? g_strdup(from) : g_strdup_printf("%s to %s", from, to);
    TtCaseExplained a, b;

    tt_explain_case(l, first, &a);
    tt_explain_case(l, last, &b);
    name = pair_name(a.choice.algo * 3 + a.choice.proto);
    next = runner_up(&a, &b, from, to);
    tt_report_comment(report, "  %-24s  %-20s  %s", range, name, next);
}

/* Ranges of sizes with one choice, of the cases of one type and reduction. */
static void
print_ranges(const TtReport *report, const TtLibrary *l, const TtCase *cases, guint n)
{
    guint first = 0;

    tt_report_gap(report);
    tt_report_comment(report, "Choice by size");
    for (guint c = 0; c < n; c++) {
        TtCaseExplained a, b = { .chosen = FALSE };

        tt_explain_case(l, &cases[c], &a);
        if (c + 1 < n)
            tt_explain_case(l, &cases[c + 1], &b);
        if (b.chosen && a.choice.algo == b.choice.algo && a.choice.proto == b.choice.proto)
            continue;
        print_range(report, l, &cases[first], &cases[c]);
        first = c + 1;
    }
}

/* How the bytes are cut up. */
static void
print_shapes(const TtReport *report, const TtLibrary *l, const TtCase *cases, guint n)
{
    tt_report_gap(report);
    tt_report_comment(report, "Shape");
    tt_report_comment(report, "  %10s  %-20s  %8s  %7s  %14s  %10s  %10s", "size", "choice",
                      "channels", "threads", "a channel's", "chunk", "slice");
    for (guint c = 0; c < n; c++) {
        g_autofree char *size = size_of(&cases[c]), *name = NULL, *share = NULL, *chunk = NULL;
        g_autofree char *slice = NULL;
        TtCaseExplained e;

        tt_explain_case(l, &cases[c], &e);
        name = pair_name(e.choice.algo * 3 + e.choice.proto);
        share = tt_format_bytes(e.choice.channel_bytes);
        chunk = tt_format_bytes(e.choice.chunk_bytes);
        slice = tt_format_bytes(e.choice.slice_bytes);
        tt_report_comment(report, "  %10s  %-20s  %8u  %7u  %14s  %10s  %10s", size, name,
                          e.choice.used_channels, e.choice.n_threads, share, chunk, slice);
    }
}

static gboolean
same_call(const TtCase *a, const TtCase *b)
{
    return a->type == b->type && a->redop == b->redop;
}

void
tt_explain_choice(TtReport *report, const TtLibrary *library, const GArray *cases)
{
    const TtCase *all = (const TtCase *)(const void *)cases->data;

    if (!tt_report_is_table(report)) {
        g_autofree char *json = tt_explain_json(library, cases);

        tt_report_set_extra(report, "choice", json);
        return;
    }
    print_communicator(report, library);
    print_graphs(report, library);
    print_orders(report, library);
    print_table(report, library);
    for (guint first = 0, n; first < cases->len; first += n) {
        for (n = 1; first + n < cases->len && same_call(&all[first], &all[first + n]); n++)
            ;
        print_off(report, library, &all[first]);
        if (n <= MAX_SIZES_SHOWN) {
            print_times(report, library, &all[first], n);
            print_shapes(report, library, &all[first], n);
        }
        print_ranges(report, library, &all[first], n);
    }
}
