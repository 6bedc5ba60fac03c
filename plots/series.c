#include "plots/series.h"
#include "plots/plot.h"

#include <math.h>
#include <string.h>

void
tt_series_free(TtSeries *series)
{
    if (!series)
        return;
    g_free(series->name);
    g_free(series->algorithm);
    g_free(series->protocol);
    g_array_unref(series->points);
    g_free(series);
}

static TtSeries *
series_new(const char *name)
{
    TtSeries *series = g_new0(TtSeries, 1);

    series->name = g_strdup(name);
    series->points = g_array_new(FALSE, FALSE, sizeof(TtPoint));
    return series;
}

/* --- CSV --------------------------------------------------------------------------------------- */

/* The cells of one line; quotes may hold commas and doubled quotes, no line breaks. */
static GPtrArray *
split_line(const char *line)
{
    GPtrArray *cells = g_ptr_array_new_with_free_func(g_free);
    GString *cell = g_string_new(NULL);
    gboolean quoted = FALSE;

    for (const char *c = line; *c && *c != '\r'; c++) {
        if (*c == '"' && quoted && c[1] == '"') {
            g_string_append_c(cell, '"');
            c++;
        } else if (*c == '"') {
            quoted = !quoted;
        } else if (*c == ',' && !quoted) {
            g_ptr_array_add(cells, g_string_free(cell, FALSE));
            cell = g_string_new(NULL);
        } else {
            g_string_append_c(cell, *c);
        }
    }
    g_ptr_array_add(cells, g_string_free(cell, FALSE));
    return cells;
}

static gboolean
find_column(const GPtrArray *header, const char *name, guint *index, const char *path,
            GError **error)
{
    for (guint i = 0; i < header->len; i++)
        if (strcmp(header->pdata[i], name) == 0) {
            *index = i;
            return TRUE;
        }
    g_set_error(error, TT_PLOT_ERROR, TT_PLOT_ERROR_FILE, "%s: line 1: there is no column \"%s\"",
                path, name);
    return FALSE;
}

static TtSeries *
series_of(GPtrArray *all, const char *algorithm, const char *protocol)
{
    TtSeries *series;

    for (guint i = 0; i < all->len; i++) {
        series = all->pdata[i];
        if (strcmp(series->algorithm, algorithm) == 0 && g_strcmp0(series->protocol, protocol) == 0)
            return series;
    }
    series = series_new(algorithm);
    series->algorithm = g_strdup(algorithm);
    series->protocol = g_strdup(protocol);
    g_ptr_array_add(all, series);
    return series;
}

/* Where all are of one protocol, nobody needs to be told which. */
static void
name_protocols(GPtrArray *all)
{
    gboolean several = FALSE;

    for (guint i = 1; i < all->len; i++)
        several |= g_strcmp0(((TtSeries *)all->pdata[i])->protocol,
                             ((TtSeries *)all->pdata[0])->protocol) != 0;
    for (guint i = 0; several && i < all->len; i++) {
        TtSeries *series = all->pdata[i];

        g_free(series->name);
        series->name = g_strconcat(series->algorithm, " ", series->protocol, NULL);
    }
}

static gboolean
parse_cell(const char *text, double *value)
{
    char *end;

    *value = text[0] ? g_ascii_strtod(text, &end) : NAN;
    return text[0] == '\0' || *end == '\0';
}

static gboolean
read_line(GPtrArray *all, const char *line, const guint *at, const char *const *columns, guint n,
          const char *where, GError **error)
{
    g_autoptr(GPtrArray) cells = split_line(line);
    const char *protocol = at[n + 1] < cells->len ? cells->pdata[at[n + 1]] : NULL;
    TtPoint point = { { 0 } };

    for (guint c = 0; c <= n; c++) { /* at[n] is the algorithm, at[n + 1] the protocol */
        if (at[c] < cells->len && (c == n || parse_cell(cells->pdata[at[c]], &point.value[c])))
            continue;
        g_set_error(error, TT_PLOT_ERROR, TT_PLOT_ERROR_FILE, "%s: column \"%s\" %s", where,
                    c < n ? columns[c] : "algorithm",
                    at[c] < cells->len ? "is not a number" : "is missing");
        return FALSE;
    }
    g_array_append_val(series_of(all, cells->pdata[at[n]], protocol)->points, point);
    return TRUE;
}

static int
compare_sizes(gconstpointer pa, gconstpointer pb)
{
    double a = ((const TtPoint *)pa)->value[0], b = ((const TtPoint *)pb)->value[0];

    return (a > b) - (a < b);
}

GPtrArray *
tt_series_read(const char *csv_path, const char *const *columns, guint n_columns, GError **error)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func((GDestroyNotify)tt_series_free);
    g_autoptr(GPtrArray) header = NULL;
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    guint at[TT_SERIES_MAX_COLUMNS + 2];

    g_assert(n_columns <= TT_SERIES_MAX_COLUMNS);
    if (!g_file_get_contents(csv_path, &text, NULL, error))
        return NULL;
    lines = g_strsplit(text, "\n", -1);
    header = split_line(lines[0] ? lines[0] : "");
    for (guint c = 0; c <= n_columns; c++)
        if (!find_column(header, c < n_columns ? columns[c] : "algorithm", &at[c], csv_path, error))
            return NULL;
    if (!find_column(header, "protocol", &at[n_columns + 1], csv_path, NULL))
        at[n_columns + 1] = G_MAXUINT;
    for (guint i = 1; lines[0] && lines[i]; i++) {
        g_autofree char *where = g_strdup_printf("%s: line %u", csv_path, i + 1);

        if (lines[i][0] && !read_line(all, lines[i], at, columns, n_columns, where, error))
            return NULL;
    }
    if (all->len == 0) {
        g_set_error(error, TT_PLOT_ERROR, TT_PLOT_ERROR_FILE, "%s: no rows to draw", csv_path);
        return NULL;
    }
    for (guint s = 0; s < all->len; s++)
        g_array_sort(((TtSeries *)all->pdata[s])->points, compare_sizes);
    name_protocols(all);
    return g_steal_pointer(&all);
}

/* --- what plots derive ------------------------------------------------------------------------- */

TtSeries *
tt_series_lowest(const GPtrArray *all, guint by)
{
    TtSeries *lowest = series_new("lowest");
    GArray *points = lowest->points;
    guint kept = 0;

    for (guint s = 0; s < all->len; s++) {
        const GArray *more = ((const TtSeries *)all->pdata[s])->points;

        if (more->len > 0)
            g_array_append_vals(points, more->data, more->len);
    }
    g_array_sort(points, compare_sizes);
    for (guint i = 0; i < points->len; i++) {
        TtPoint point = g_array_index(points, TtPoint, i);
        TtPoint *last = kept ? &g_array_index(points, TtPoint, kept - 1) : NULL;

        if (!last || last->value[0] != point.value[0])
            g_array_index(points, TtPoint, kept++) = point;
        else if (point.value[by] < last->value[by] || isnan(last->value[by]))
            *last = point;
    }
    g_array_set_size(points, kept);
    return lowest;
}

static int
compare_doubles(gconstpointer pa, gconstpointer pb)
{
    double a = *(const double *)pa, b = *(const double *)pb;

    return (a > b) - (a < b);
}

/* Between neighbours linear. */
static double
quantile(const GArray *sorted, double q)
{
    double at = q * (sorted->len - 1), low, high;

    if (sorted->len == 0)
        return 0;
    low = g_array_index(sorted, double, (guint)at);
    high = g_array_index(sorted, double, MIN((guint)at + 1, sorted->len - 1));
    return low + (at - floor(at)) * (high - low);
}

guint
tt_series_magnitudes(const GPtrArray *all, guint column, double *median, double *p95)
{
    g_autoptr(GArray) values = g_array_new(FALSE, FALSE, sizeof(double));
    guint n;

    for (guint s = 0; s < all->len; s++) {
        const GArray *points = ((const TtSeries *)all->pdata[s])->points;

        for (guint i = 0; i < points->len; i++) {
            double value = fabs(g_array_index(points, TtPoint, i).value[column]);

            if (isfinite(value))
                g_array_append_val(values, value);
        }
    }
    n = values->len;
    g_array_sort(values, compare_doubles);
    *median = quantile(values, 0.5);
    *p95 = quantile(values, 0.95);
    return n;
}
