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
add_rows(GArray *rows, const TtReplay *r, guint site, const double *value)
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
            !isfinite(tt_nccl_model_us(value, &tt_no_effects, row.machine, &row.op, &row.choice)))
            continue;
        g_array_append_val(rows, row);
    }
}

gboolean
tt_nccl_trains_on(const TtReplay *r)
{
    const TtMeasured *m = r->measured;

    return r->func == TT_NCCL_ALLREDUCE && !m->anomalous && m->quality != 'C';
}

/* Which machines' rows change when a cost does: where its value comes from. */
static char *
origin_of(guint cost, const double *value, const GArray *rows, const GPtrArray *names)
{
    g_autofree double *moved = g_new(double, TT_N_COSTS);
    g_autofree guint *n_rows = g_new0(guint, names->len + 1);
    g_autoptr(GString) list = g_string_new(NULL);
    guint all = 0, n_names = 0;

    memcpy(moved, value, sizeof(double) * TT_N_COSTS);
    moved[cost] *= 1.01;
    for (guint i = 0; i < rows->len; i++) {
        const TtFitRow *r = &g_array_index(rows, TtFitRow, i);
        double was = tt_nccl_model_us(value, &tt_no_effects, r->machine, &r->op, &r->choice);
        double is = tt_nccl_model_us(moved, &tt_no_effects, r->machine, &r->op, &r->choice);

        if (fabs(is / was - 1) > 1e-4) /* a hundredth of the change arrives */
            n_rows[r->site]++, all++;
    }
    for (guint s = 0; s < names->len; s++)
        if (n_rows[s])
            g_string_append_printf(list, "%s%s", n_names++ ? " " : "", (char *)names->pdata[s]);
    return all ? g_strdup_printf("%u rows of %s", all, list->str) : NULL;
}

gboolean
tt_nccl_train(TtNcclCosts *costs, const GPtrArray *replays, GError **error)
{
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(TtFitRow));
    g_autoptr(GHashTable) sites = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GPtrArray) names = g_ptr_array_new();

    for (guint i = 0; i < replays->len; i++) {
        const TtReplay *r = replays->pdata[i];
        guint site = site_of(sites, r->measured->machine);

        if (site == names->len)
            g_ptr_array_add(names, r->measured->machine);
        add_rows(rows, r, site, costs->value);
    }
    if (rows->len == 0) {
        g_set_error(error, TT_NCCL_ERROR, TT_NCCL_ERROR_FILE,
                    "nothing to fit on: no row of an allreduce with a time");
        return FALSE;
    }
    if (!tt_nccl_fit(costs, (const TtFitRow *)(const void *)rows->data, rows->len, names->len,
                     error))
        return FALSE;
    for (guint j = 0; j < TT_N_COSTS; j++) {
        g_free(costs->from[j]);
        costs->from[j] = origin_of(j, costs->value, rows, names);
        if (!costs->from[j])
            costs->low[j] = costs->high[j] = costs->value[j];
    }
    return TRUE;
}

double
tt_time_by_costs(const TtReplay *replay, const TtMeasuredRow *row, const TtNcclChoice *choice,
                 gpointer data)
{
    const TtNcclCosts *costs = data ? data : tt_nccl_costs_built_in();
    TtNcclOp op = tt_replay_op(replay, row);

    return tt_nccl_model_us(costs->value, &tt_no_effects, &replay->machine, &op, choice);
}
