/* accuracy - how far predictions are from published measurements, by hardware and size.
 *
 *     bench_accuracy [OPTION...] [FILE or FOLDER...]      default: bench/measurements
 *
 *     --model NAME     what predicts: a row of bench/accuracy_model.h
 *     --in-place       in-place figures where a file has both
 *     --files          a line for each file as well
 *     --json FILE      every row and every figure
 *     --plots FOLDER   predicted and measured curves, a picture for each file
 *
 * The figure that counts is of allreduce with NCCL, quality A and B, not flagged anomalous. GH200, GB200, AMD
 * and MPI, and other collectives, are listed apart. A model with constants that were fitted is fitted anew
 * for each machine without that machine's files (leave one machine out), so the figures are of machines
 * the fit has not seen.
 */
#include "bench/accuracy_model.h"
#include "models/scoreboard.h"
#include "plots/plot.h"

#include <glib/gstdio.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    TtMeasured *m;    /* borrowed */
    GArray *rows;     /* TtMeasuredRow, borrowed: the place that is asked for */
    TtReplay *replay; /* NULL: not predicted */
    char *why_not;
    char *hardware_class;
    const char *section;
    double *predicted_us; /* one for each row; NAN */
    TtNcclChoice *choice;
} Run;

static const TtAccuracyModel *model = &tt_accuracy_models[0];
static gboolean in_place, list_files;
static char *model_name, *json_path, *plot_folder, **paths;

/* --- reading ----------------------------------------------------------------------------------- */

static void
run_free(gpointer data)
{
    Run *run = data;

    tt_replay_free(run->replay);
    g_free(run->why_not);
    g_free(run->hardware_class);
    g_free(run->predicted_us);
    g_free(run->choice);
    g_free(run);
}

static const char *const SCORED = "allreduce, NCCL, quality A and B, not anomalous";

/* Where a file's figures belong. */
static const char *
section_of(const TtMeasured *m, const TtHardware *h)
{
    if (m->library == TT_LIBRARY_MPI || m->library == TT_LIBRARY_OTHER)
        return "not NCCL (MPI and others)";
    if (h && !h->gpu->nvidia)
        return "AMD, RCCL";
    if (h && !strcmp(h->gpu->family, "GH200"))
        return "GH200";
    if (h && g_str_has_prefix(h->gpu->family, "GB200"))
        return "GB200";
    if (m->anomalous || m->quality == 'C')
        return "quality C or anomalous";
    if (tt_measured_func(m) < 0)
        return "point to point";
    return g_strcmp0(m->collective, "all_reduce") ? "other collectives, NCCL" : SCORED;
}

static Run *
run_new(TtMeasured *m)
{
    Run *run = g_new0(Run, 1);
    g_autoptr(GError) why = NULL;
    TtHardware h;
    gboolean known = tt_hardware_of(m, &h, NULL);

    run->m = m;
    run->rows = (in_place && m->rows_in_place->len) || !m->rows->len ? m->rows_in_place : m->rows;
    run->hardware_class = known ? tt_hardware_class(&h) : g_strdup("unknown hardware");
    run->section = section_of(m, known ? &h : NULL);
    run->predicted_us = g_new(double, run->rows->len + 1);
    run->choice = g_new0(TtNcclChoice, run->rows->len + 1);
    for (guint i = 0; i < run->rows->len; i++)
        run->predicted_us[i] = NAN;
    run->replay = tt_replay_new(m, NULL, &why);
    if (!run->replay)
        run->why_not = g_strdup(why->message);
    return run;
}

static void
read_file(const char *path, GPtrArray *tables, GPtrArray *runs)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) more = tt_measured_read(path, &error);

    if (!more) {
        fprintf(stderr, "bench_accuracy: %s\n", error->message);
        return;
    }
    for (guint i = 0; i < more->len; i++) {
        TtMeasured *m = g_steal_pointer(&more->pdata[i]);

        g_ptr_array_add(tables, m);
        if (m->rows->len + m->rows_in_place->len)
            g_ptr_array_add(runs, run_new(m));
    }
}

static int
by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void
read_path(const char *path, GPtrArray *tables, GPtrArray *runs)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GDir) folder = g_dir_open(path, 0, NULL);
    const char *name;

    if (!folder) {
        read_file(path, tables, runs);
        return;
    }
    while ((name = g_dir_read_name(folder)))
        if (!g_str_has_suffix(name, ".md"))
            g_ptr_array_add(names, g_build_filename(path, name, NULL));
    g_ptr_array_sort(names, by_name);
    for (guint i = 0; i < names->len; i++)
        read_file(names->pdata[i], tables, runs);
}

/* --- predicting -------------------------------------------------------------------------------- */

static void
predict(Run *run, gpointer constants)
{
    for (guint i = 0; run->replay && i < run->rows->len; i++) {
        const TtMeasuredRow *row = &g_array_index(run->rows, TtMeasuredRow, i);

        if (tt_replay_choose(run->replay, row, &run->choice[i], NULL))
            run->predicted_us[i] = model->time_us(run->replay, row, &run->choice[i], constants);
    }
}

/* What a fit may see: everything scored or listed apart but @machine's files and other libraries'. */
static GPtrArray *
training_without(const GPtrArray *runs, const char *machine)
{
    GPtrArray *training = g_ptr_array_new();

    for (guint i = 0; i < runs->len; i++) {
        const Run *run = runs->pdata[i];

        if (run->replay && strcmp(run->m->machine, machine) && !run->m->anomalous)
            g_ptr_array_add(training, run->replay);
    }
    return training;
}

static void
predict_all(GPtrArray *runs)
{
    g_autoptr(GHashTable) done = g_hash_table_new(g_str_hash, g_str_equal);

    for (guint i = 0; i < runs->len; i++) {
        const char *machine = ((Run *)runs->pdata[i])->m->machine;
        g_autoptr(GPtrArray) training = NULL;
        gpointer constants = NULL;

        if (!g_hash_table_add(done, (gpointer)machine))
            continue;
        if (model->fit) {
            training = training_without(runs, machine);
            constants = model->fit(training);
        }
        for (guint k = i; k < runs->len; k++)
            if (!strcmp(((Run *)runs->pdata[k])->m->machine, machine))
                predict(runs->pdata[k], constants);
        if (model->release)
            model->release(constants);
    }
}

/* --- telling ----------------------------------------------------------------------------------- */

static double
error_of(const Run *run, guint i)
{
    double measured_us = g_array_index(run->rows, TtMeasuredRow, i).time_us;

    return (run->predicted_us[i] - measured_us) / measured_us;
}

static void
print_stats(const char *name, const TtScoreboard *board, guint row)
{
    printf("  %-40.40s", name);
    for (guint c = 0; c <= TT_N_SIZE_CLASSES; c++) {
        TtErrorStats s = tt_scoreboard_stats(board, row, c);

        if (s.n == 0)
            printf(" |%25s", "");
        else
            printf(" |%5u %5.0f%% %5.0f%% %+5.0f%%", s.n, 100 * s.median_abs, 100 * s.p95_abs,
                   100 * s.median);
    }
    printf("\n");
}

static void
print_heading(const char *section)
{
    printf("\n%s\n  %-40s", section, "");
    for (guint c = 0; c <= TT_N_SIZE_CLASSES; c++)
        printf(" | %-24s", tt_size_class_name(c));
    printf("\n  %-40s", "");
    for (guint c = 0; c <= TT_N_SIZE_CLASSES; c++)
        printf(" |%5s %6s %6s %6s", "n", "median", "p95", "sign");
    printf("\n");
}

static TtScoreboard *
gather(const GPtrArray *runs, const char *section, gboolean by_file)
{
    TtScoreboard *board = tt_scoreboard_new();

    for (guint r = 0; r < runs->len; r++) {
        const Run *run = runs->pdata[r];

        if (run->section != section)
            continue;
        for (guint i = 0; i < run->rows->len; i++)
            if (isfinite(run->predicted_us[i]))
                tt_scoreboard_add(board, by_file ? run->m->id : run->hardware_class,
                                  g_array_index(run->rows, TtMeasuredRow, i).bytes,
                                  error_of(run, i));
    }
    return board;
}

static int
by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void
print_rows(const TtScoreboard *board)
{
    guint n = tt_scoreboard_n_rows(board);
    g_autofree const char **names = g_new(const char *, n + 1);

    for (guint i = 0; i < n; i++)
        names[i] = tt_scoreboard_row(board, i);
    qsort(names, n, sizeof *names, by_text);
    for (guint i = 0; i < n; i++)
        for (guint k = 0; k < n; k++)
            if (tt_scoreboard_row(board, k) == names[i])
                print_stats(names[i], board, k);
}

/* The two figures people quote: below 1 MiB, and from there. */
static void
print_halves(const GPtrArray *runs, const char *section)
{
    for (guint half = 0; half < 2; half++) {
        g_autoptr(GArray) errors = g_array_new(FALSE, FALSE, sizeof(double));
        TtErrorStats s;

        for (guint r = 0; r < runs->len; r++) {
            const Run *run = runs->pdata[r];

            for (guint i = 0; run->section == section && i < run->rows->len; i++) {
                double error = error_of(run, i);
                gboolean large = g_array_index(run->rows, TtMeasuredRow, i).bytes >= 1 << 20;

                if (isfinite(error) && large == (half == 1))
                    g_array_append_val(errors, error);
            }
        }
        s = tt_error_stats((const double *)(const void *)errors->data, errors->len);
        if (s.n)
            printf("  %s: %u rows, median |error| %.1f %%, p95 %.0f %%, sign %+.1f %%\n",
                   half ? "1 MiB and more" : "below 1 MiB", s.n, 100 * s.median_abs,
                   100 * s.p95_abs, 100 * s.median);
    }
}

static void
print_section(const GPtrArray *runs, const char *section)
{
    g_autoptr(TtScoreboard) board = gather(runs, section, FALSE);
    g_autoptr(TtScoreboard) files = gather(runs, section, TRUE);
    guint n_runs = 0, n_without = 0;

    for (guint r = 0; r < runs->len; r++) {
        const Run *run = runs->pdata[r];

        n_runs += run->section == section;
        n_without += run->section == section && !run->replay;
    }
    print_heading(section);
    print_rows(board);
    print_stats("all", board, TT_ALL_ROWS);
    if (list_files)
        print_rows(files);
    print_halves(runs, section);
    printf("  %u files, %u without a prediction\n", n_runs, n_without);
    for (guint r = 0; list_files && r < runs->len; r++) {
        const Run *run = runs->pdata[r];

        if (run->section == section && run->why_not)
            printf("    %s\n", run->why_not);
    }
}

static void
print_all(const GPtrArray *runs)
{
    g_autoptr(GPtrArray) seen = g_ptr_array_new();

    g_ptr_array_add(seen, (gpointer)SCORED);
    for (guint r = 0; r < runs->len; r++)
        if (!g_ptr_array_find(seen, ((Run *)runs->pdata[r])->section, NULL))
            g_ptr_array_add(seen, (gpointer)((Run *)runs->pdata[r])->section);
    printf("model %s: %s\n", model->name, model->summary);
    printf("error = (predicted - measured) / measured; median and p95 of its size, sign: its "
           "median\n");
    for (guint i = 0; i < seen->len; i++)
        print_section(runs, seen->pdata[i]);
}

/* --- files ------------------------------------------------------------------------------------- */

static void
add_text(GString *out, const char *name, const char *value)
{
    g_string_append_printf(out, "\"%s\": ", name);
    if (!value) {
        g_string_append(out, "null, ");
        return;
    }
    g_string_append_c(out, '"');
    for (const char *c = value; *c; c++)
        g_string_append_c(out, *c == '"' || *c == '\\' || (guchar)*c < 32 ? ' ' : *c);
    g_string_append(out, "\", ");
}

static void
add_number(GString *out, const char *name, double value, const char *end)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];

    g_string_append_printf(
        out, "\"%s\": %s%s", name,
        isfinite(value) ? g_ascii_formatd(text, sizeof text, "%.6g", value) : "null", end);
}

static void
add_run(GString *out, const Run *run)
{
    g_string_append(out, "  {");
    add_text(out, "id", run->m->id);
    add_text(out, "machine", run->m->machine);
    add_text(out, "section", run->section);
    add_text(out, "hardware", run->hardware_class);
    add_text(out, "not_predicted", run->why_not);
    g_string_append(out, "\"rows\": [");
    for (guint i = 0; i < run->rows->len; i++) {
        const TtMeasuredRow *row = &g_array_index(run->rows, TtMeasuredRow, i);
        gboolean known = isfinite(run->predicted_us[i]);

        g_string_append_printf(out, "%s\n    { \"bytes\": %" G_GUINT64_FORMAT ", ", i ? "," : "",
                               row->bytes);
        add_text(out, "algorithm", known ? tt_nccl_algo_name(run->choice[i].algo) : NULL);
        add_text(out, "protocol", known ? tt_nccl_proto_name(run->choice[i].proto) : NULL);
        add_number(out, "predicted_us", run->predicted_us[i], ", ");
        add_number(out, "measured_us", row->time_us, ", ");
        add_number(out, "error", error_of(run, i), " }");
    }
    g_string_append(out, "] }");
}

static gboolean
write_json(const GPtrArray *runs, GError **error)
{
    g_autoptr(GString) out = g_string_new("{ \"schema\": \"tutti-accuracy/1\", ");

    add_text(out, "model", model->name);
    g_string_append(out, "\"files\": [\n");
    for (guint r = 0; r < runs->len; r++) {
        add_run(out, runs->pdata[r]);
        g_string_append(out, r + 1 < runs->len ? ",\n" : "\n");
    }
    g_string_append(out, "] }\n");
    return g_file_set_contents(json_path, out->str, (gssize)out->len, error);
}

static gboolean
draw(const Run *run, GError **error)
{
    g_autoptr(GArray) points = g_array_new(FALSE, FALSE, sizeof(TtMeasuredPoint));
    g_autofree char *prefix = g_build_filename(plot_folder, run->m->id, NULL);
    g_autofree char *title = g_strdup_printf("%s on %u GPUs (%s)", run->m->collective,
                                             run->m->ngpus, run->hardware_class);

    for (guint i = 0; i < run->rows->len; i++) {
        const TtMeasuredRow *row = &g_array_index(run->rows, TtMeasuredRow, i);
        TtMeasuredPoint point = { (double)row->bytes, run->predicted_us[i], row->time_us,
                                  tt_measured_busbw_factor(run->m->collective, run->m->ngpus) };

        if (isfinite(run->predicted_us[i]))
            g_array_append_val(points, point);
    }
    return points->len < 2 || tt_plot_measured((TtMeasuredPoint *)(void *)points->data, points->len,
                                               prefix, title, run->m->id, error);
}

static gboolean
draw_all(const GPtrArray *runs, GError **error)
{
    if (g_mkdir_with_parents(plot_folder, 0777) != 0) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "cannot make the folder %s",
                    plot_folder);
        return FALSE;
    }
    for (guint r = 0; r < runs->len; r++)
        if (!draw(runs->pdata[r], error))
            return FALSE;
    return TRUE;
}

static gboolean
find_model(GError **error)
{
    g_autoptr(GString) names = NULL;

    for (model = tt_accuracy_models; model->name; model++)
        if (!model_name || !strcmp(model->name, model_name))
            return TRUE;
    names = g_string_new(NULL);
    for (model = tt_accuracy_models; model->name; model++)
        g_string_append_printf(names, "%s%s", names->len ? ", " : "", model->name);
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "--model %s: must be one of %s",
                model_name, names->str);
    return FALSE;
}

static gboolean
parse(int *argc, char ***argv, GError **error)
{
    const GOptionEntry entries[] = {
        { "model", 0, 0, G_OPTION_ARG_STRING, &model_name, "what predicts (default: the first)",
          "NAME" },
        { "in-place", 0, 0, G_OPTION_ARG_NONE, &in_place, "in-place figures where there are both",
          NULL },
        { "files", 0, 0, G_OPTION_ARG_NONE, &list_files, "a line for each file as well", NULL },
        { "json", 0, 0, G_OPTION_ARG_FILENAME, &json_path, "write all of it", "FILE" },
        { "plots", 0, 0, G_OPTION_ARG_FILENAME, &plot_folder, "draw each file", "FOLDER" },
        { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &paths, NULL, "[PATH...]" },
        { NULL },
    };
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);

    g_option_context_add_main_entries(context, entries, NULL);
    return g_option_context_parse(context, argc, argv, error) && find_model(error);
}

int
main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) tables = g_ptr_array_new_with_free_func((GDestroyNotify)tt_measured_free);
    g_autoptr(GPtrArray) runs = g_ptr_array_new_with_free_func(run_free);

    if (!parse(&argc, &argv, &error)) {
        fprintf(stderr, "bench_accuracy: %s\n", error->message);
        return 2;
    }
    for (guint i = 0; paths && paths[i]; i++)
        read_path(paths[i], tables, runs);
    if (!paths)
        read_path("bench/measurements", tables, runs);
    if (runs->len == 0) {
        fprintf(stderr, "bench_accuracy: no measurements read\n");
        return 3;
    }
    predict_all(runs);
    print_all(runs);
    if ((json_path && !write_json(runs, &error)) || (plot_folder && !draw_all(runs, &error))) {
        fprintf(stderr, "bench_accuracy: %s\n", error->message);
        return 1;
    }
    return 0;
}
