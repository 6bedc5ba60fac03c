/* nccl_costs_file - constants as text: `name = value unit ; fitted: low .. high, from`. */
#include "models/nccl_costs.h"
#include "models/nccl_costs_builtin.h"

#include <glib/gstdio.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define GROUP          "nccl-constants"
#define MAX_FILE_BYTES (1 << 20)

static guint
find_cost(const char *key)
{
    for (guint i = 0; i < TT_N_COSTS; i++) {
        g_autofree char *name = tt_cost_name(i);

        if (!strcmp(name, key))
            return i;
    }
    return TT_N_COSTS;
}

static gboolean G_GNUC_PRINTF(4, 5)
    fail(const char *name, const char *key, GError **error, const char *format, ...)
{
    g_autofree char *what = NULL;
    va_list arguments;

    va_start(arguments, format);
    what = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_set_error(error, TT_NCCL_ERROR, TT_NCCL_ERROR_FILE, "%s: %s: %s", name, key, what);
    return FALSE;
}

/* " ; fitted: 0.8 .. 1.1, 812 rows of a100-x and others" */
static void
parse_note(const char *note, double value, double *low, double *high, char **from)
{
    double a, b;
    int end = 0;

    *low = *high = value;
    if (sscanf(note, " fitted: %lf .. %lf, %n", &a, &b, &end) == 2 && end > 0 && a > 0 && a <= b) {
        *low = a;
        *high = b;
        note += end;
    }
    *from = g_strstrip(g_strdup(note));
}

static gboolean
parse_entry(TtNcclCosts *costs, const char *name, const char *key, const char *text, GError **error)
{
    guint cost = find_cost(key);
    const char *note = strchr(text, ';');
    g_autofree char *figure = g_strndup(text, note ? (gsize)(note - text) : strlen(text));
    char *rest;
    double value = g_ascii_strtod(figure, &rest);

    if (cost == TT_N_COSTS)
        return fail(name, key, error, "no such constant (see models/constants/nccl.ini)");
    if (rest == figure || !(value > 0) || !isfinite(value))
        return fail(name, key, error, "\"%s\" must be a number above 0", g_strstrip(figure));
    g_strstrip(rest);
    if (strcmp(rest, tt_cost_unit(cost)) != 0)
        return fail(name, key, error, "the unit must be \"%s\", not \"%s\"", tt_cost_unit(cost),
                    rest);
    costs->value[cost] = value;
    g_clear_pointer(&costs->from[cost], g_free);
    parse_note(note ? note + 1 : "", value, &costs->low[cost], &costs->high[cost],
               &costs->from[cost]);
    return TRUE;
}

TtNcclCosts *
tt_nccl_costs_parse(const char *name, const char *text, GError **error)
{
    g_autoptr(GKeyFile) file = g_key_file_new();
    g_autoptr(TtNcclCosts) costs = tt_nccl_costs_new();
    g_autoptr(GError) why = NULL;
    g_auto(GStrv) keys = NULL;

    if (!g_utf8_validate(text, -1, NULL)) {
        fail(name, "file", error, "not text (UTF-8)");
        return NULL;
    }
    if (!g_key_file_load_from_data(file, text, strlen(text), G_KEY_FILE_NONE, &why)) {
        fail(name, "file", error, "%s", why->message);
        return NULL;
    }
    keys = g_key_file_get_keys(file, GROUP, NULL, NULL);
    if (!keys) {
        fail(name, "file", error, "no [" GROUP "] in it: not what `tutti calibrate --from` writes");
        return NULL;
    }
    for (guint i = 0; keys[i]; i++) {
        g_autofree char *value = g_key_file_get_value(file, GROUP, keys[i], NULL);

        if (!parse_entry(costs, name, keys[i], value, error))
            return NULL;
    }
    g_free(costs->name);
    costs->name = g_strdup(name);
    return g_steal_pointer(&costs);
}

TtNcclCosts *
tt_nccl_costs_load(const char *path, GError **error)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) why = NULL;
    GStatBuf info;

    if (g_stat(path, &info) == 0 && (!S_ISREG(info.st_mode) || info.st_size > MAX_FILE_BYTES)) {
        fail(path, "file", error, "not a file of constants (a plain file up to 1 MiB)");
        return NULL;
    }
    if (!g_file_get_contents(path, &text, NULL, &why)) {
        g_set_error(error, TT_NCCL_ERROR, TT_NCCL_ERROR_FILE, "%s", why->message);
        return NULL;
    }
    return tt_nccl_costs_parse(path, text, error);
}

char *
tt_nccl_costs_to_text(const TtNcclCosts *costs)
{
    GString *text = g_string_new("# What NCCL's steps cost: base figures, and factors by GPU "
                                 "generation and network\n"
                                 "# name = value unit ; fitted: 95 % interval, where from. "
                                 "Meanings: models/nccl_costs.h.\n"
                                 "# Written by `tutti calibrate --from`.\n\n[" GROUP "]\n");

    for (guint i = 0; i < TT_N_COSTS; i++) {
        g_autofree char *name = tt_cost_name(i);
        const char *unit = tt_cost_unit(i);

        g_string_append_printf(text, "%s = %.4g%s%s ; ", name, costs->value[i], unit[0] ? " " : "",
                               unit);
        if (costs->high[i] > costs->low[i])
            g_string_append_printf(text, "fitted: %.4g .. %.4g, ", costs->low[i], costs->high[i]);
        g_string_append_printf(
            text, "%s\n", costs->from[i] ? costs->from[i] : "prior: no measurement depends on it");
    }
    return g_string_free(text, FALSE);
}

const TtNcclCosts *
tt_nccl_costs_built_in(void)
{
    static TtNcclCosts *built_in;

    if (g_once_init_enter(&built_in)) {
        TtNcclCosts *costs = NULL;

        for (guint i = 0; tt_builtin_costs[i].name && !costs; i++)
            if (!strcmp(tt_builtin_costs[i].name, "nccl"))
                costs = tt_nccl_costs_parse("built in", tt_builtin_costs[i].text, NULL);
        g_assert(costs); /* a test reads it */
        g_once_init_leave(&built_in, costs);
    }
    return built_in;
}
