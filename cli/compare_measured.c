#include "cli/compare_measured.h"
#include "cli/library.h"
#include "cli/measured_time.h"
#include "cli/outlets.h"
#include "cli/report.h"
#include "cli/summary.h"
#include "cli/table.h"
#include "models/replay.h"
#include "plots/plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const TtOptions *options;
    TtReport *report;
    gboolean in_place;
    TtTopology *topo; /* NULL: found by each file's hardware */
    TtNcclXml *node;
    TtNcclCosts *costs;   /* of --constants; NULL: those built in */
    GPtrArray *tables;    /* TtMeasured */
    GPtrArray *replays;   /* TtReplay, of tables that can be predicted */
    GArray *errors;       /* TtErrorSample, of all */
    GHashTable *pictures; /* prefixes taken, char * */
} Files;

/* --- before ------------------------------------------------------------------------------------ */

static gboolean
check_options(const TtOptions *options, GError **error)
{
    const char *useless = options->n_ranks                        ? "--ranks"
                          : options->profile                      ? "--profile"
                          : options->algo_given                   ? "--algo"
                          : tt_outlets_want_timelines(options)    ? "--trace and --timeline"
                          : options->channels || options->slots   ? "--channels and --slots"
                          : options->group                        ? "--group"
                          : options->chunk_bytes != TT_CHUNK_AUTO ? "--chunk-bytes"
                          : options->settings && !options->topo   ? "--set without --topo"
                                                                  : NULL;

    if (!useless)
        return TRUE;
    g_set_error(
        error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
        "%s: nothing to do with --measured: the file says what ran (NCCL's own choices change "
        "with --library nccl and --env)",
        useless);
    return FALSE;
}

static gboolean
open_topology(Files *f, GError **error)
{
    const TtOptions *options = f->options;

    if (options->constants && !(f->costs = tt_nccl_costs_load(options->constants, error)))
        return FALSE;
    if (!options->topo)
        return TRUE;
    f->topo = tt_topology_open(options->topo, options->settings, error);
    f->node = f->topo ? tt_nccl_xml_of_topology(f->topo, error) : NULL;
    return f->node != NULL;
}

static const GArray *
rows_of(const Files *f, const TtMeasured *m)
{
    const GArray *wanted = f->in_place ? m->rows_in_place : m->rows;
    const GArray *other = f->in_place ? m->rows : m->rows_in_place;

    return wanted->len ? wanted : other;
}

static gboolean
size_wanted(const TtOptions *options, guint64 bytes)
{
    return !options->sizes_given ||
           (bytes >= options->sizes[0] && bytes <= options->sizes[options->n_sizes - 1]);
}

/* Published ratios have none; a range of sizes may leave none. */
static gboolean
check_rows(const Files *f, const TtMeasured *m, GError **error)
{
    const GArray *rows = rows_of(f, m);

    for (guint i = 0; i < rows->len; i++)
        if (size_wanted(f->options, g_array_index(rows, TtMeasuredRow, i).bytes))
            return TRUE;
    g_set_error(error, TT_MEASURED_ERROR,
                rows->len ? TT_MEASURED_ERROR_USAGE : TT_MEASURED_ERROR_FILE, "%s: %s", m->origin,
                rows->len ? "none of its sizes lie between -b and -e: nothing to compare"
                          : "no times in it: nothing to compare");
    return FALSE;
}

static TtReplay *
replay(const Files *f, const TtMeasured *m, GError **error)
{
    static const char *const names[TT_N_COLLECTIVES] = {
        [TT_ALLREDUCE] = "all_reduce", [TT_REDUCE_SCATTER] = "reduce_scatter",
        [TT_ALLGATHER] = "all_gather", [TT_BROADCAST] = "broadcast",
        [TT_REDUCE] = "reduce",
    };
    TtReplayOptions how = { .node = f->node,
                            .n_nodes = f->topo ? tt_topology_n_nodes(f->topo) : 0,
                            .topology = f->options->topo,
                            .version = f->options->nccl_version,
                            .env = f->options->env,
                            .costs = f->costs,
                            .launch = f->options->launch + 1,
                            .collective = names[f->options->collective] };

    return tt_replay_new(m, &how, error);
}

/* One table of a file: kept if it can be predicted, else a note; *first is the first reason. */
static void
take_table(Files *f, TtMeasured *m, GError **first)
{
    g_autoptr(GError) why = NULL;
    TtReplay *r = replay(f, m, &why);

    if (r && !check_rows(f, m, &why))
        g_clear_pointer(&r, tt_replay_free);

    g_ptr_array_add(f->tables, m);
    for (guint i = 0; i < m->skipped->len; i++)
        tt_report_warn(f->report, "%s: %s", m->origin, (char *)m->skipped->pdata[i]);
    if (r) {
        g_ptr_array_add(f->replays, r);
        for (guint i = 0; i < r->notes->len; i++)
            tt_report_warn(f->report, "%s: %s", m->origin, (char *)r->notes->pdata[i]);
        return;
    }
    if (!*first)
        *first = g_error_copy(why);
    else
        tt_report_warn(f->report, "left out: %s", why->message);
}

/* Nothing at all, or anything that contradicts a topology that was given, is an error. */
static gboolean
read_files(Files *f, const GPtrArray *files, GError **error)
{
    g_autoptr(GError) first = NULL;

    for (guint i = 0; i < files->len; i++) {
        g_autoptr(GPtrArray) more = tt_measured_read(files->pdata[i], error);

        if (!more)
            return FALSE;
        for (guint t = 0; t < more->len; t++)
            take_table(f, g_steal_pointer(&more->pdata[t]), &first);
    }
    if (first && (f->replays->len == 0 || (f->topo && first->domain != TT_MEASURED_ERROR))) {
        g_propagate_error(error, g_steal_pointer(&first));
        return FALSE;
    }
    if (first)
        tt_report_warn(f->report, "left out: %s", first->message);
    return TRUE;
}

/* --- rows -------------------------------------------------------------------------------------- */

static const char *
type_word(const char *type)
{
    static const char *const pairs[][2] = { { "float32", "float" },
                                            { "float64", "double" },
                                            { "float16", "half" } };

    for (guint i = 0; type && i < G_N_ELEMENTS(pairs); i++)
        if (!strcmp(type, pairs[i][0]))
            return pairs[i][1];
    return type ? type : "float";
}

static TtRow
make_row(const TtReplay *r, const TtMeasuredRow *measured, const TtNcclChoice *choice,
         double predicted_us, gboolean in_place)
{
    static const char *const names[TT_NCCL_N_FUNCS] = { "broadcast", "reduce", "allgather",
                                                        "reduce-scatter", "allreduce" };
    static const char *const file_names[TT_NCCL_N_FUNCS] = { "broadcast", "reduce", "all_gather",
                                                             "reduce_scatter", "all_reduce" };
    const TtMeasured *m = r->measured;
    double scale = (double)measured->bytes / 1e3 *
                   tt_measured_busbw_factor(file_names[r->func], r->comm.n_ranks);
    TtRow row = {
        .collective = names[r->func],
        .algorithm = tt_library_algo_word(choice->algo),
        .protocol = tt_library_proto_word(choice->proto),
        .channels = choice->used_channels,
        .rounds = choice->n_loops,
        .ranks = r->comm.n_ranks,
        .bytes = measured->bytes,
        .count = measured->count ? measured->count : measured->bytes / r->type_bytes,
        .type = type_word(m->type),
        .redop = m->redop && m->redop[0] ? m->redop : "none",
        .root = m->root,
        .in_place = in_place,
        .bound_us = NAN,
        .wrong = -1,
        .measured_us = measured->time_us,
        .predicted_us = predicted_us,
        .flag_ns = NAN,
        .file = m->origin,
        .table = m->table,
    };

    row.error = (row.predicted_us - row.measured_us) / row.measured_us;
    row.predicted_busbw_gbps = scale / row.predicted_us;
    row.measured_busbw_gbps = scale / row.measured_us;
    return row;
}

static void
print_heading(const Files *f, const TtReplay *r)
{
    const TtMeasured *m = r->measured;
    g_autofree char *hardware = r->hardware.gpu && !f->topo ? tt_hardware_text(&r->hardware) : NULL;
    g_autofree char *version = tt_nccl_version_name(r->version);
    gboolean in_place = rows_of(f, m) == m->rows_in_place;

    tt_report_comment(f->report, "%s, table %u: %s, %s", m->origin, m->table,
                      m->collective ? m->collective : "all_reduce",
                      in_place ? "in place" : "out of place");
    tt_report_comment(f->report, "%s; NCCL %s%s", hardware ? hardware : f->options->topo, version,
                      r->version_assumed ? " (assumed)" : "");
    if (tt_report_is_table(f->report))
        tt_print_measured_header();
}

static void
compare_table(const Files *f, const TtReplay *r, GArray *errors, GArray *points)
{
    const TtMeasured *m = r->measured;
    const GArray *rows = rows_of(f, m);

    for (guint i = 0; i < rows->len; i++) {
        const TtMeasuredRow *measured = &g_array_index(rows, TtMeasuredRow, i);
        g_autoptr(GError) why = NULL;
        TtNcclChoice choice;
        TtErrorSample sample = { .bytes = measured->bytes };
        TtMeasuredPoint point;
        double predicted_us;
        TtRow row;

        if (!size_wanted(f->options, measured->bytes))
            continue;
        if (!tt_replay_choose(r, measured, &choice, &why) ||
            !tt_measured_time_us(f->options, f->topo, f->node, r, measured, &choice, &predicted_us,
                                 &why)) {
            tt_report_warn(f->report, "%s: %s", m->origin, why->message);
            continue;
        }
        row = make_row(r, measured, &choice, predicted_us, rows == m->rows_in_place);
        if (!isfinite(row.error))
            continue;
        tt_report_add(f->report, &row);
        if (tt_report_is_table(f->report))
            tt_print_measured_row(&row);
        sample.error = row.error;
        g_array_append_val(errors, sample);
        g_array_append_val(f->errors, sample);
        point = (TtMeasuredPoint){ (double)row.bytes, row.predicted_us, row.measured_us,
                                   row.measured_busbw_gbps * row.measured_us * 1e3 /
                                       (double)row.bytes };
        g_array_append_val(points, point);
    }
}

/* In a title: "2 x 8 H100-SXM", or the topology that was given. */
static char *
where_it_ran(const Files *f, const TtReplay *r)
{
    if (f->topo || !r->hardware.gpu)
        return g_strdup(f->options->topo);
    return g_strdup_printf("%u x %u %s", r->hardware.n_nodes, r->hardware.gpus_per_node,
                           r->hardware.gpu->name);
}

/* PREFIX alone, or PREFIX-<id>-<table> where there are several; logs of one name are numbered. Caller frees. */
static char *
picture_of(const Files *f, const TtMeasured *m)
{
    g_autofree char *safe = g_strdelimit(g_strdup(m->id), "/ ", '_');
    char *prefix = f->replays->len == 1
                       ? g_strdup(f->options->plot)
                       : g_strdup_printf("%s-%s-%u", f->options->plot, safe, m->table);

    for (guint i = 2; !g_hash_table_add(f->pictures, g_strdup(prefix)); i++) {
        g_free(prefix);
        prefix = g_strdup_printf("%s-%s-%u-%u", f->options->plot, safe, m->table, i);
    }
    return prefix;
}

/* One picture a table. */
static gboolean
draw(const Files *f, const TtReplay *r, const GArray *points, GError **error)
{
    const TtMeasured *m = r->measured;
    g_autofree char *prefix = NULL;
    g_autofree char *hardware = where_it_ran(f, r);
    g_autofree char *version = tt_nccl_version_name(r->version);
    g_autofree char *title =
        g_strdup_printf("%s on %s, NCCL %s, %u ranks", m->collective ? m->collective : "all_reduce",
                        hardware, version, r->comm.n_ranks);

    if (points->len == 0)
        return TRUE;
    prefix = picture_of(f, m);
    if (!tt_plot_measured((const TtMeasuredPoint *)(const void *)points->data, points->len, prefix,
                          title, m->id, error))
        return FALSE;
    if (!f->options->quiet)
        fprintf(stderr, "tutti compare: drew %s.png and %s.svg\n", prefix, prefix);
    return TRUE;
}

static gboolean
compare_tables(Files *f, GError **error)
{
    for (guint i = 0; i < f->replays->len; i++) {
        const TtReplay *r = f->replays->pdata[i];
        g_autoptr(GArray) errors = g_array_new(FALSE, FALSE, sizeof(TtErrorSample));
        g_autoptr(GArray) points = g_array_new(FALSE, FALSE, sizeof(TtMeasuredPoint));

        print_heading(f, r);
        compare_table(f, r, errors, points);
        if (tt_report_is_table(f->report)) {
            tt_print_error_summary(errors);
            tt_print_error_verdict(errors);
            tt_report_gap(f->report);
        }
        if (f->options->plot && !draw(f, r, points, error))
            return FALSE;
    }
    if (f->errors->len == 0) {
        g_set_error(error, TT_MEASURED_ERROR, TT_MEASURED_ERROR_FILE,
                    "not one size could be predicted and compared");
        return FALSE;
    }
    if (f->replays->len > 1 && tt_report_is_table(f->report)) {
        tt_report_comment(f->report, "all %u tables", f->replays->len);
        tt_print_error_summary(f->errors);
    }
    return TRUE;
}

static void
describe(const Files *f)
{
    if (f->topo)
        tt_report_set_topology(f->report, tt_topology_name(f->topo), tt_topology_n_ranks(f->topo),
                               tt_topology_n_nodes(f->topo));
    tt_report_config(f->report, "library", "nccl");
    tt_report_config(f->report, "place", f->in_place ? "in place" : "out of place");
    tt_report_config(f->report, "times", "%s", tt_measured_time_source(f->options));
    tt_report_comment(f->report, "tutti %s compare --measured: %s", TT_VERSION,
                      tt_measured_time_source(f->options));
}

int
tt_compare_measured(const TtOptions *options, const GPtrArray *files, gboolean in_place,
                    GError **error)
{
    g_autoptr(TtReport) report =
        tt_report_new(options, TT_FIELDS_CALL | TT_FIELDS_PLAN | TT_FIELDS_MEASURED);
    g_autoptr(GPtrArray) tables = g_ptr_array_new_with_free_func((GDestroyNotify)tt_measured_free);
    g_autoptr(GPtrArray) replays = g_ptr_array_new_with_free_func((GDestroyNotify)tt_replay_free);
    g_autoptr(GArray) errors = g_array_new(FALSE, FALSE, sizeof(TtErrorSample));
    g_autoptr(GHashTable) pictures = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    Files f = { .options = options,
                .report = report,
                .in_place = in_place,
                .tables = tables,
                .replays = replays,
                .errors = errors,
                .pictures = pictures };
    gboolean good = check_options(options, error) && tt_outlets_check(options, error) &&
                    open_topology(&f, error) && tt_measured_time_check(options, f.topo, error) &&
                    read_files(&f, files, error);

    if (good) {
        describe(&f);
        good = compare_tables(&f, error) && tt_report_finish(report, error);
    }
    tt_topology_free(f.topo);
    tt_nccl_xml_free(f.node);
    tt_nccl_costs_free(f.costs);
    return good ? TT_EXIT_GOOD : TT_EXIT_FAILED;
}
