#include "plots/plot.h"
#include "plots/series.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

GQuark
tt_plot_error_quark(void)
{
    return g_quark_from_static_string("tt-plot-error");
}

static const char *
find_script(const char *name)
{
    for (guint i = 0; tt_plot_scripts[i].name; i++)
        if (strcmp(tt_plot_scripts[i].name, name) == 0)
            return tt_plot_scripts[i].text;
    g_assert_not_reached();
}

/* Below so many points there are no statistics. */
#define FEW_POINTS 5

/* --- gnuplot ----------------------------------------------------------------------------------- */

gboolean
tt_plot_available(GError **error)
{
    g_autofree char *path = g_find_program_in_path("gnuplot");

    if (path)
        return TRUE;
    g_set_error(error, TT_PLOT_ERROR, TT_PLOT_ERROR_GNUPLOT,
                "gnuplot is not installed, so nothing can be drawn: install gnuplot-nox");
    return FALSE;
}

static gboolean
run_gnuplot(const char *script_path, GError **error)
{
    char *argv[] = { "gnuplot", (char *)script_path, NULL };
    g_autofree char *said = NULL;
    g_autoptr(GError) failure = NULL;
    int status = 0;

    if (!g_spawn_sync(NULL, argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_STDOUT_TO_DEV_NULL, NULL,
                      NULL, NULL, &said, &status, error)) {
        g_prefix_error(error, "gnuplot: ");
        return FALSE;
    }
    if (g_spawn_check_wait_status(status, &failure))
        return TRUE;
    g_set_error(error, TT_PLOT_ERROR, TT_PLOT_ERROR_GNUPLOT, "gnuplot failed: %s",
                *g_strstrip(said) ? said : failure->message);
    return FALSE;
}

/* As a gnuplot string; single quotes take everything literally but themselves. */
static void
append_string(GString *script, const char *name, const char *value)
{
    g_string_append_printf(script, "%s = '", name);
    for (; *value; value++) {
        if (*value == '\'')
            g_string_append_c(script, '\'');
        g_string_append_c(script, (guchar)*value < ' ' ? ' ' : *value);
    }
    g_string_append(script, "'\n");
}

/* --- the data as gnuplot reads it -------------------------------------------------------------- */

static void
append_number(GString *script, double value)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];

    g_string_append_c(script, ' ');
    g_string_append(script, isfinite(value) ? g_ascii_dtostr(number, sizeof number, value) : "NaN");
}

static void
append_block(GString *script, const TtSeries *series, guint n_columns)
{
    for (guint i = 0; i < series->points->len; i++) {
        for (guint c = 0; c < n_columns; c++)
            append_number(script, g_array_index(series->points, TtPoint, i).value[c]);
        g_string_append_c(script, '\n');
    }
    g_string_append(script, "\n\n"); /* two blank lines end a block */
}

/* Limits of a logarithmic axis with some air. */
static void
append_limits(GString *script, const char *axis, double low, double high, double air)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];

    g_string_append_printf(script, "%s_min = %s\n", axis,
                           g_ascii_dtostr(number, sizeof number, low / air));
    g_string_append_printf(script, "%s_max = %s\n", axis,
                           g_ascii_dtostr(number, sizeof number, high * air));
}

/* @n_times: columns 1 .. n_times are times and share the first panel's axis. */
static void
append_all_limits(GString *script, const GPtrArray *all, guint n_times)
{
    double low[2] = { INFINITY, INFINITY }, high[2] = { 0, 0 };

    for (guint s = 0; s < all->len; s++) {
        const GArray *points = ((const TtSeries *)all->pdata[s])->points;

        for (guint i = 0; i < points->len; i++)
            for (guint c = 0; c <= n_times; c++) {
                double value = g_array_index(points, TtPoint, i).value[c];

                if (!(value > 0) || !isfinite(value))
                    continue;
                low[c > 0] = MIN(low[c > 0], value);
                high[c > 0] = MAX(high[c > 0], value);
            }
    }
    for (guint axis = 0; axis < 2; axis++)
        if (!(low[axis] <= high[axis]))
            low[axis] = high[axis] = 1;
    append_limits(script, "x", low[0], high[0], 1.3);
    append_limits(script, "y", low[1], high[1], 1.6);
}

/* --- looks ------------------------------------------------------------------------------------ */

/* An algorithm has a colour, its protocols differ in their dashes: solid, dashed, dotted. */
static void
append_looks(GString *script, const GPtrArray *all)
{
    static const char *const protocols[] = { "simple", "ll128", "ll" };
    g_autoptr(GPtrArray) algorithms = g_ptr_array_new();
    g_autoptr(GString) colours = g_string_new(NULL);
    g_autoptr(GString) dashes = g_string_new(NULL);

    for (guint s = 0; s < all->len; s++) {
        const TtSeries *series = all->pdata[s];
        guint colour, dash = 0;

        if (!g_ptr_array_find_with_equal_func(algorithms, series->algorithm, g_str_equal,
                                              &colour)) {
            colour = algorithms->len;
            g_ptr_array_add(algorithms, series->algorithm);
        }
        for (guint i = 0; i < G_N_ELEMENTS(protocols); i++)
            if (strcmp(series->name, series->algorithm) != 0 &&
                g_strcmp0(series->protocol, protocols[i]) == 0)
                dash = i;
        g_string_append_printf(colours, "%s%u", s ? " " : "", colour);
        g_string_append_printf(dashes, "%s%u", s ? " " : "", dash);
    }
    append_string(script, "looks_colour", colours->str);
    append_string(script, "looks_dash", dashes->str);
}

/* The largest value of a column, for what must keep clear of an axis. */
static void
append_top(GString *script, const GPtrArray *all, guint column)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    double top = 0;

    for (guint s = 0; s < all->len; s++) {
        const GArray *points = ((const TtSeries *)all->pdata[s])->points;

        for (guint i = 0; i < points->len; i++)
            top = fmax(top, g_array_index(points, TtPoint, i).value[column]);
    }
    g_string_append_printf(script, "top = %s\n", g_ascii_dtostr(number, sizeof number, top));
}

/* --- drawing ----------------------------------------------------------------------------------- */

/* Draws into PATH.tmp next to the result. */
static char *
draw(const char *prefix, const char *format, const char *body, GError **error)
{
    g_autofree char *path = g_strdup_printf("%s.%s.%d.tmp", prefix, format, (int)getpid());
    g_autofree char *script_path = g_strdup_printf("%s.gp", path);
    g_autoptr(GString) script = g_string_new(NULL);
    gboolean good;

    append_string(script, "format", format);
    append_string(script, "output_path", path);
    g_string_append(script, body);
    good = g_file_set_contents(script_path, script->str, script->len, error) &&
           run_gnuplot(script_path, error);
    g_unlink(script_path);
    if (good)
        return g_steal_pointer(&path);
    g_unlink(path);
    return NULL;
}

static gboolean
move_to(const char *from, const char *prefix, const char *format, GError **error)
{
    g_autofree char *to = g_strdup_printf("%s.%s", prefix, format);

    if (g_rename(from, to) == 0)
        return TRUE;
    g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(errno), "cannot write \"%s\": %s", to,
                g_strerror(errno));
    g_unlink(from);
    return FALSE;
}

static gboolean
draw_both(const char *prefix, const char *body, GError **error)
{
    g_autofree char *png = draw(prefix, "png", body, error);
    g_autofree char *svg = png ? draw(prefix, "svg", body, error) : NULL;

    if (!svg) {
        if (png)
            g_unlink(png);
        return FALSE;
    }
    if (!move_to(png, prefix, "png", error)) {
        g_unlink(svg);
        return FALSE;
    }
    return move_to(svg, prefix, "svg", error);
}

/* The body all formats share: title, data, limits, style, then the script itself. */
static gboolean
draw_script(const char *script_name, const char *prefix, const char *title, const char *subtitle,
            const GPtrArray *all, const TtSeries *extra, guint n_columns, guint n_times,
            GError **error)
{
    g_autoptr(GString) body = g_string_new(NULL);
    g_autoptr(GString) names = g_string_new(NULL);

    append_string(body, "plot_title", title);
    append_string(body, "plot_subtitle", subtitle);
    g_string_append(body, "$data << END_OF_DATA\n");
    for (guint s = 0; s < all->len; s++) {
        const TtSeries *series = all->pdata[s];

        append_block(body, series, n_columns);
        g_string_append_printf(names, "%s\"%s\"", s ? " " : "", series->name);
    }
    if (extra)
        append_block(body, extra, n_columns);
    g_string_append_printf(body, "END_OF_DATA\nn = %u\n", all->len);
    if (extra)
        append_string(body, "extra_name", extra->name);
    append_string(body, "algorithms", names->str);
    append_looks(body, all);
    append_top(body, all, n_columns - 1);
    append_all_limits(body, all, n_times);
    g_string_append(body, find_script("style"));
    g_string_append(body, find_script(script_name));
    return draw_both(prefix, body->str, error);
}

/* A handful of points has no distribution to speak of. */
static char *
describe_errors(const GPtrArray *all, guint column, const char *what)
{
    double median, p95;
    guint n = tt_series_magnitudes(all, column, &median, &p95);

    if (n < FEW_POINTS)
        return g_strdup_printf("%u %s", n, what);
    return g_strdup_printf("%u %s · median |error| %.1f %% · 95 %% are within %.1f %%", n, what,
                           100 * median, 100 * p95);
}

gboolean
tt_plot_compare(const char *csv_path, const char *out_prefix, const char *title, GError **error)
{
    static const char *const columns[] = { "bytes", "predicted_us", "measured_us", "error" };
    g_autoptr(GPtrArray) all = NULL;
    g_autofree char *subtitle = NULL;
    if (!tt_plot_available(error))
        return FALSE;
    all = tt_series_read(csv_path, columns, G_N_ELEMENTS(columns), error);
    if (!all)
        return FALSE;
    subtitle = describe_errors(all, 3, "sizes and algorithms");
    return draw_script("compare", out_prefix, title, subtitle, all, NULL, G_N_ELEMENTS(columns), 2,
                       error);
}

static gboolean
draw_predict(const char *script, const char *csv_path, const char *out_prefix, const char *title,
             const char *lowest, const char *subtitle, GError **error)
{
    static const char *const columns[] = { "bytes", "time_us", "busbw_gbps" };
    g_autoptr(GPtrArray) all = NULL;
    g_autoptr(TtSeries) fastest = NULL;

    if (!tt_plot_available(error))
        return FALSE;
    all = tt_series_read(csv_path, columns, G_N_ELEMENTS(columns), error);
    if (!all)
        return FALSE;
    fastest = tt_series_lowest(all, 1);
    g_free(fastest->name);
    fastest->name = g_strdup(lowest);
    return draw_script(script, out_prefix, title, subtitle, all, fastest, G_N_ELEMENTS(columns), 1,
                       error);
}

gboolean
tt_plot_predict(const char *csv_path, const char *out_prefix, const char *title, GError **error)
{
    return draw_predict("predict", csv_path, out_prefix, title, "predicted fastest",
                        "predicted; the band marks what is predicted fastest", error);
}

gboolean
tt_plot_fastest(const char *csv_path, const char *out_prefix, const char *title, GError **error)
{
    return draw_predict("choice", csv_path, out_prefix, title, "predicted fastest",
                        "predicted; the points say which algorithm is fastest at each size", error);
}

gboolean
tt_plot_nccl_choice(const char *csv_path, const char *out_prefix, const char *title, GError **error)
{
    return draw_predict("choice", csv_path, out_prefix, title, "NCCL's choice",
                        "predicted; the points say what NCCL chooses at each size", error);
}

static int
by_size(gconstpointer a, gconstpointer b)
{
    double x = ((const TtPoint *)a)->value[0], y = ((const TtPoint *)b)->value[0];

    return (x > y) - (x < y);
}

static void
series_unref(gpointer series)
{
    tt_series_free(series);
}

gboolean
tt_plot_measured(const TtMeasuredPoint *points, guint n_points, const char *out_prefix,
                 const char *title, const char *source, GError **error)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(series_unref);
    TtSeries *series = g_new0(TtSeries, 1);
    g_autofree char *subtitle = NULL, *errors = NULL;

    series->name = g_strdup("file");
    series->algorithm = g_strdup("file");
    series->points = g_array_new(FALSE, FALSE, sizeof(TtPoint));
    g_ptr_array_add(all, series);
    for (guint i = 0; i < n_points; i++) {
        const TtMeasuredPoint *m = &points[i];
        double scale = m->bytes * m->busbw_factor / 1e3; /* bytes per microsecond to GB/s */
        TtPoint point = { { m->bytes, m->predicted_us, m->measured_us, scale / m->predicted_us,
                            scale / m->measured_us, m->predicted_us / m->measured_us - 1 } };

        g_array_append_val(series->points, point);
    }
    g_array_sort(series->points, by_size);
    errors = describe_errors(all, 5, n_points == 1 ? "size" : "sizes");
    subtitle = g_strdup_printf("%s: predicted and measured, %s", source, errors);
    return tt_plot_available(error) &&
           draw_script("measured", out_prefix, title, subtitle, all, NULL, 5, 2, error);
}
