#include "models/nccl_train.h"

#include <math.h>
#include <string.h>

static guint
site_of(GHashTable *sites, const char *machine)
{
    gpointer found;

    if (g_hash_table_lookup_extended(sites, machine, NULL, &found))
        return GPOINTER_TO_UINT(found);
    g_hash_table_insert(sites, (gpointer)machine, GUINT_TO_POINTER(g_hash_table_size(sites)));
    return g_hash_table_size(sites) - 1;
}

static void
add_rows(GArray *rows, const TtReplay *r, guint site)
{
    const GArray *from = r->measured->rows->len ? r->measured->rows : r->measured->rows_in_place;

    for (guint i = 0; i < from->len; i++) {
        const TtMeasuredRow *measured = &g_array_index(from, TtMeasuredRow, i);
        TtFitRow row = { .site = site,
                         .machine = &r->machine,
                         .op = tt_replay_op(r, measured),
                         .measured_us = measured->time_us };

        if (!(measured->time_us > 0) || measured->bytes == 0 ||
            !tt_replay_choose(r, measured, &row.choice, NULL) ||
            !isfinite(tt_nccl_model_us(tt_nccl_costs_built_in()->value, &tt_no_effects, row.machine,
                                       &row.op, &row.choice)))
            continue;
        g_array_append_val(rows, row);
    }
}

gboolean
tt_nccl_train(TtNcclCosts *costs, const GPtrArray *replays, GError **error)
{
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(TtFitRow));
    g_autoptr(GHashTable) sites = g_hash_table_new(g_str_hash, g_str_equal);

    for (guint i = 0; i < replays->len; i++) {
        const TtReplay *r = replays->pdata[i];

        add_rows(rows, r, site_of(sites, r->measured->machine));
    }
    return tt_nccl_fit(costs, (const TtFitRow *)(const void *)rows->data, rows->len,
                       g_hash_table_size(sites), error);
}

double
tt_time_by_costs(const TtReplay *replay, const TtMeasuredRow *row, const TtNcclChoice *choice,
                 gpointer data)
{
    const TtNcclCosts *costs = data ? data : tt_nccl_costs_built_in();
    TtNcclOp op = tt_replay_op(replay, row);

    return tt_nccl_model_us(costs->value, &tt_no_effects, &replay->machine, &op, choice);
}
