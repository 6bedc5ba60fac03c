/* What a whole table tells: repetitions, the unit of its times, what ran. */
#include "models/measured_nccl_text.h"

#include <math.h>
#include <string.h>

static int
by_time(gconstpointer a, gconstpointer b)
{
    double x = ((const TtMeasuredRow *)a)->time_us, y = ((const TtMeasuredRow *)b)->time_us;

    return (x > y) - (x < y);
}

/* Equal sizes are repetitions (-N): one row, the median. */
void
tt_nccl_merge_repeats(GArray *rows)
{
    g_autoptr(GHashTable) place = g_hash_table_new(g_int64_hash, g_int64_equal);
    g_autoptr(GPtrArray) groups = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);

    for (guint i = 0; i < rows->len; i++) {
        TtMeasuredRow *row = &g_array_index(rows, TtMeasuredRow, i);
        GArray *group = g_hash_table_lookup(place, &row->bytes);

        if (!group) {
            group = g_array_new(FALSE, FALSE, sizeof *row);
            g_ptr_array_add(groups, group);
            g_hash_table_insert(place, &row->bytes, group);
        }
        g_array_append_val(group, *row);
    }
    if (groups->len == rows->len)
        return;
    g_hash_table_remove_all(place); /* its keys are in rows */
    g_array_set_size(rows, 0);
    for (guint i = 0; i < groups->len; i++) {
        GArray *group = g_ptr_array_index(groups, i);
        TtMeasuredRow row;

        g_array_sort(group, by_time);
        row = g_array_index(group, TtMeasuredRow, (group->len - 1) / 2);
        row.n_repeats = group->len;
        row.median_us = row.time_us;
        row.min_us = g_array_index(group, TtMeasuredRow, 0).time_us;
        row.max_us = g_array_index(group, TtMeasuredRow, group->len - 1).time_us;
        g_array_append_val(rows, row);
    }
}

/* Headings of 2017 do not say that times are milliseconds; their bandwidths do. */
double
tt_nccl_unit_us(const GArray *rows)
{
    guint n_us = 0, n_ms = 0;

    for (guint i = 0; i < rows->len; i++) {
        const TtMeasuredRow *row = &g_array_index(rows, TtMeasuredRow, i);
        double ratio = (double)row->bytes / row->time_us / 1e3 / row->algbw_gbps;

        if (row->algbw_gbps > 0.1 && row->time_us > 0) {
            n_ms += ratio > 300 && ratio < 3000;
            n_us += ratio > 0.3 && ratio < 3;
        }
    }
    return n_ms > n_us ? 1000 : 1;
}

void
tt_nccl_scale(GArray *rows, double unit_us)
{
    for (guint i = 0; i < rows->len; i++) {
        g_array_index(rows, TtMeasuredRow, i).time_us *= unit_us;
        g_array_index(rows, TtMeasuredRow, i).min_us *= unit_us;
        g_array_index(rows, TtMeasuredRow, i).max_us *= unit_us;
    }
}

/* What ran, where neither the log nor its name says: from what is reduced and how bandwidths relate. */
const char *
tt_nccl_guess_collective(const TtMeasured *m)
{
    static const char *const reducing[] = { "all_reduce", "reduce_scatter", "reduce" };
    const GArray *rows = m->rows->len ? m->rows : m->rows_in_place;
    g_autofree char *base = g_path_get_basename(m->origin);
    const char *named = tt_measured_collective_name(base);
    double best = 0, ratio = 0;

    if (named)
        return named;
    for (guint i = 0; i < rows->len; i++) {
        const TtMeasuredRow *row = &g_array_index(rows, TtMeasuredRow, i);

        if (row->algbw_gbps > best && row->busbw_gbps > 0) {
            best = row->algbw_gbps;
            ratio = row->busbw_gbps / row->algbw_gbps;
        }
    }
    if (!m->redop || !m->redop[0] || !strcmp(m->redop, "none"))
        return m->root >= 0 ? "broadcast" : NULL;
    for (guint i = 0; m->ngpus > 2 && best > 1 && i < G_N_ELEMENTS(reducing); i++)
        if (fabs(ratio / tt_measured_busbw_factor(reducing[i], m->ngpus) - 1) < 0.03)
            return reducing[i];
    return ratio > 1.05 ? "all_reduce" : NULL;
}
