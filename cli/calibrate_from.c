#include "cli/calibrate_from.h"
#include "cli/output.h"
#include "models/nccl_train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    GPtrArray *tables;   /* TtMeasured, owned */
    GPtrArray *replays;  /* TtReplay, owned */
    GPtrArray *training; /* those of them that are fit to learn from */
    guint n_left_out;
} Lessons;

static gboolean
read_file(Lessons *l, const char *path, GError **error)
{
    g_autoptr(GPtrArray) more = tt_measured_read(path, error);

    if (!more)
        return FALSE;
    for (guint i = 0; i < more->len; i++) {
        TtMeasured *m = g_steal_pointer(&more->pdata[i]);
        TtReplay *r = tt_replay_new(m, NULL, NULL);

        g_ptr_array_add(l->tables, m);
        if (r)
            g_ptr_array_add(l->replays, r);
        if (r && tt_nccl_trains_on(r))
            g_ptr_array_add(l->training, r);
        else
            l->n_left_out++;
    }
    return TRUE;
}

static int
by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static gboolean
read_path(Lessons *l, const char *path, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GDir) folder = g_dir_open(path, 0, NULL);
    const char *name;

    if (!folder)
        return read_file(l, path, error);
    while ((name = g_dir_read_name(folder)))
        if (!g_str_has_suffix(name, ".md"))
            g_ptr_array_add(names, g_build_filename(path, name, NULL));
    g_ptr_array_sort(names, by_name);
    for (guint i = 0; i < names->len; i++)
        if (!read_file(l, names->pdata[i], error))
            return FALSE;
    return TRUE;
}

static int
ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* How well the constants tell the rows they were fitted on: a floor, no promise. */
static void
tell(const Lessons *l, const TtNcclCosts *costs)
{
    g_autoptr(GArray) errors = g_array_new(FALSE, FALSE, sizeof(double));
    const double *e;

    for (guint i = 0; i < l->training->len; i++) {
        const TtReplay *r = l->training->pdata[i];
        const GArray *rows =
            r->measured->rows->len ? r->measured->rows : r->measured->rows_in_place;

        for (guint k = 0; k < rows->len; k++) {
            const TtMeasuredRow *row = &g_array_index(rows, TtMeasuredRow, k);
            TtNcclChoice choice;
            double off;

            if (!(row->time_us > 0) || !tt_replay_choose(r, row, &choice, NULL))
                continue;
            off = fabs(tt_time_by_costs(r, row, &choice, (gpointer)costs) / row->time_us - 1);
            if (isfinite(off))
                g_array_append_val(errors, off);
        }
    }
    if (errors->len == 0)
        return;
    e = (const double *)(const void *)errors->data;
    qsort(errors->data, errors->len, sizeof(double), ascending);
    fprintf(
        stderr,
        "tutti calibrate: fitted on %u rows of %u tables (%u left out: not allreduce, quality C, "
        "odd, or not NCCL)\n"
        "tutti calibrate: median |error| %.1f %%, p95 %.0f %% on these same rows; on machines "
        "not seen expect more (bench/accuracy)\n",
        errors->len, l->training->len, l->n_left_out, 100 * e[errors->len / 2],
        100 * e[errors->len * 95 / 100]);
}

/* A measurement is not to be written over by what was learnt from it. */
static gboolean
spare_inputs(const Lessons *l, const char *output, GError **error)
{
    for (guint i = 0; output && i < l->tables->len; i++) {
        const TtMeasured *m = l->tables->pdata[i];

        if (tt_output_same(m->origin, output)) {
            g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                        "--output \"%s\" is one of the measurements; give another file", output);
            return FALSE;
        }
    }
    return TRUE;
}

int
tt_calibrate_from(char **paths, const char *output, gboolean quiet, GError **error)
{
    g_autoptr(GPtrArray) tables = g_ptr_array_new_with_free_func((GDestroyNotify)tt_measured_free);
    g_autoptr(GPtrArray) replays = g_ptr_array_new_with_free_func((GDestroyNotify)tt_replay_free);
    g_autoptr(GPtrArray) training = g_ptr_array_new();
    g_autoptr(TtNcclCosts) costs = tt_nccl_costs_new();
    g_autofree char *text = NULL;
    Lessons l = { tables, replays, training, 0 };

    if (output && !tt_output_check("--output", output, error))
        return TT_EXIT_USAGE;
    for (guint i = 0; paths[i]; i++)
        if (!read_path(&l, paths[i], error))
            return TT_EXIT_FILE;
    if (!spare_inputs(&l, output, error))
        return TT_EXIT_USAGE;
    if (!tt_nccl_train(costs, training, error))
        return TT_EXIT_FILE;
    text = tt_nccl_costs_to_text(costs);
    if (!output)
        fputs(text, stdout);
    else if (!tt_output_write(output, text, error))
        return TT_EXIT_FAILED;
    if (!quiet)
        tell(&l, costs);
    return TT_EXIT_GOOD;
}
