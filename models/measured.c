/* One measured sweep: its life, and what follows from what a file says. */
#include "models/measured_private.h"

#include <math.h>
#include <string.h>

GQuark
tt_measured_error_quark(void)
{
    return g_quark_from_static_string("tt-measured-error");
}

static void
var_clear(gpointer data)
{
    g_free(((TtMeasuredVar *)data)->name);
    g_free(((TtMeasuredVar *)data)->value);
}

TtMeasured *
tt_measured_new(const char *origin)
{
    TtMeasured *m = g_new0(TtMeasured, 1);

    m->origin = g_strdup(origin);
    m->table = 1;
    m->root = -1;
    m->intra_gbps = NAN;
    m->one_process = -1;
    m->rows = g_array_new(FALSE, FALSE, sizeof(TtMeasuredRow));
    m->rows_in_place = g_array_new(FALSE, FALSE, sizeof(TtMeasuredRow));
    m->env = g_array_new(FALSE, FALSE, sizeof(TtMeasuredVar));
    g_array_set_clear_func(m->env, var_clear);
    m->hosts = g_ptr_array_new_with_free_func(g_free);
    m->skipped = g_ptr_array_new_with_free_func(g_free);
    return m;
}

void
tt_measured_free(TtMeasured *m)
{
    if (!m)
        return;
    g_free(m->origin);
    g_free(m->id);
    g_free(m->machine);
    g_free(m->collective);
    g_free(m->type);
    g_free(m->redop);
    g_free(m->gpu);
    g_free(m->intra);
    g_free(m->intra_detail);
    g_free(m->inter);
    g_free(m->inter_name);
    g_free(m->cpu);
    g_free(m->version);
    g_free(m->net_plugin);
    g_free(m->tool);
    g_free(m->algo);
    g_free(m->proto);
    g_free(m->date);
    g_free(m->anomaly);
    g_free(m->notes);
    g_array_unref(m->rows);
    g_array_unref(m->rows_in_place);
    g_array_unref(m->env);
    g_ptr_array_unref(m->hosts);
    g_ptr_array_unref(m->skipped);
    g_free(m);
}

void
tt_measured_row_init(TtMeasuredRow *row)
{
    *row = (TtMeasuredRow){ .time_us = NAN,
                            .min_us = NAN,
                            .max_us = NAN,
                            .median_us = NAN,
                            .n_repeats = 1,
                            .algbw_gbps = NAN,
                            .busbw_gbps = NAN,
                            .wrong = -1 };
}

void
tt_measured_skip(TtMeasured *m, const char *format, ...)
{
    va_list arguments;

    if (m->skipped->len > TT_MEASURED_MOST_NOTES)
        return;
    if (m->skipped->len == TT_MEASURED_MOST_NOTES) {
        g_ptr_array_add(m->skipped, g_strdup("and more that was skipped"));
        return;
    }
    va_start(arguments, format);
    g_ptr_array_add(m->skipped, g_strdup_vprintf(format, arguments));
    va_end(arguments);
}

void
tt_measured_set_env(TtMeasured *m, const char *name, const char *value)
{
    TtMeasuredVar new = { 0 };

    for (guint i = 0; i < m->env->len; i++) {
        TtMeasuredVar *var = &g_array_index(m->env, TtMeasuredVar, i);

        if (!strcmp(var->name, name)) {
            g_free(var->value);
            var->value = g_strdup(value);
            return;
        }
    }
    if (m->env->len >= 1000)
        return;
    new.name = g_strdup(name);
    new.value = g_strdup(value);
    g_array_append_val(m->env, new);
}

const char *
tt_measured_env(const TtMeasured *m, const char *name)
{
    for (guint i = 0; i < m->env->len; i++)
        if (!strcmp(g_array_index(m->env, TtMeasuredVar, i).name, name))
            return g_array_index(m->env, TtMeasuredVar, i).value;
    return NULL;
}

/* A time from a bandwidth, or the other way round. */
static void
finish_row(const TtMeasured *m, TtMeasuredRow *row)
{
    double factor = tt_measured_busbw_factor(m->collective, m->ngpus);

    if (isnan(row->time_us) && row->busbw_gbps > 0) {
        row->time_us = (double)row->bytes * factor / row->busbw_gbps / 1e3;
        row->derived = TRUE;
    } else if (isnan(row->time_us) && row->algbw_gbps > 0) {
        row->time_us = (double)row->bytes / row->algbw_gbps / 1e3;
        row->derived = TRUE;
    }
    if (isnan(row->algbw_gbps) && row->time_us > 0)
        row->algbw_gbps = (double)row->bytes / row->time_us / 1e3;
    if (isnan(row->busbw_gbps) && !isnan(row->algbw_gbps) && m->ngpus)
        row->busbw_gbps = row->algbw_gbps * factor;
    if (isnan(row->min_us))
        row->min_us = row->time_us;
    if (isnan(row->max_us))
        row->max_us = row->time_us;
    if (isnan(row->median_us))
        row->median_us = row->time_us;
}

/* Nothing collective takes less than a picosecond or more than eleven days; such figures are damage. */
static gboolean
is_plausible(double us)
{
    return us >= 1e-6 && us <= 1e12;
}

static void
finish_rows(TtMeasured *m, GArray *rows)
{
    guint kept = 0;

    for (guint i = 0; i < rows->len; i++) {
        TtMeasuredRow *row = &g_array_index(rows, TtMeasuredRow, i);

        finish_row(m, row);
        if (is_plausible(row->time_us))
            g_array_index(rows, TtMeasuredRow, kept++) = *row;
    }
    if (kept < rows->len)
        tt_measured_skip(m, "%u rows without a usable time or bandwidth", rows->len - kept);
    g_array_set_size(rows, kept);
}

static gboolean
notes_say(const TtMeasured *m, const char *words)
{
    g_autofree char *low = m->notes ? g_ascii_strdown(m->notes, -1) : NULL;

    return low && strstr(low, words);
}

static char *
id_of_path(const char *path)
{
    g_autofree char *base = g_path_get_basename(path);
    char *dot = strrchr(base, '.');

    if (dot && dot != base)
        *dot = '\0';
    return g_strdup(base);
}

/* n GPUs give all_reduce a busbw of 2(n-1)/n times algbw; big rows say it precisely. */
static guint
ranks_of_bandwidths(const TtMeasured *m, const GArray *rows)
{
    const TtMeasuredRow *best = NULL;
    double share, n;

    for (guint i = 0; i < rows->len; i++) {
        const TtMeasuredRow *row = &g_array_index(rows, TtMeasuredRow, i);

        if (row->algbw_gbps > 10 && row->busbw_gbps > 0 &&
            (!best || row->algbw_gbps > best->algbw_gbps))
            best = row;
    }
    if (!best ||
        tt_measured_busbw_factor(m->collective, 2) == tt_measured_busbw_factor(m->collective, 4))
        return 0;
    share = best->busbw_gbps / best->algbw_gbps;
    if (!strcmp(m->collective, "all_reduce"))
        share /= 2;
    n = 1 / (1 - share); /* (n-1)/n = share */
    return n > 1.9 && n < 40 && fabs(n - round(n)) < 0.02 * n ? (guint)round(n) : 0;
}

void
tt_measured_finish(TtMeasured *m)
{
    if (!m->id)
        m->id = id_of_path(m->origin);
    if (!m->machine)
        m->machine = tt_measured_machine(m->id);
    if (!m->ngpus && m->nnodes && m->gpus_per_node)
        m->ngpus = m->nnodes * m->gpus_per_node;
    if (!m->ngpus && (m->ngpus = ranks_of_bandwidths(m, m->rows)))
        tt_measured_skip(m, "the number of GPUs is not stated: %u by the ratio of busbw to algbw",
                         m->ngpus);
    if (!m->algo && tt_measured_env(m, "NCCL_ALGO"))
        m->algo = g_strdup(tt_measured_env(m, "NCCL_ALGO"));
    if (!m->proto && tt_measured_env(m, "NCCL_PROTO"))
        m->proto = g_strdup(tt_measured_env(m, "NCCL_PROTO"));
    if (m->one_process < 0 && (notes_say(m, "single process") || notes_say(m, "single-process") ||
                               notes_say(m, "one process for") || notes_say(m, "by one process")))
        m->one_process = 1;
    m->graph |= notes_say(m, "graph launch") && !notes_say(m, "host launch");
    finish_rows(m, m->rows);
    finish_rows(m, m->rows_in_place);
}

GPtrArray *
tt_measured_parse(const char *origin, const char *text, gsize length, GError **error)
{
    g_autoptr(GPtrArray) tables = NULL;
    gboolean json = tt_measured_is_json(text, length);

    if (length > TT_MEASURED_MOST_BYTES) {
        g_set_error(error, TT_MEASURED_ERROR, TT_MEASURED_ERROR_FILE,
                    "%s: larger than %u MiB, too large for a log", origin,
                    TT_MEASURED_MOST_BYTES >> 20);
        return NULL;
    }
    if (length == 0) {
        g_set_error(error, TT_MEASURED_ERROR, TT_MEASURED_ERROR_FILE,
                    "%s: empty; a log of nccl-tests or a measurement is wanted", origin);
        return NULL;
    }
    tables = json ? tt_measured_from_json(origin, text, length, error)
                  : tt_measured_from_nccl_text(origin, text, length, error);
    for (guint i = 0; tables && i < tables->len; i++)
        ((TtMeasured *)g_ptr_array_index(tables, i))->table = i + 1;
    return g_steal_pointer(&tables);
}
