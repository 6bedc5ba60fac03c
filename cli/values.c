#include "cli/values.h"
#include "cli/cli.h"
#include "models/units.h"

#include <math.h>
#include <string.h>

/* More values than this in one list is a typing error. */
#define MAX_VALUES 65536u

static gboolean
refuse(GError **error, const char *option, const char *text, guint64 min, guint64 max)
{
    if (max == G_MAXUINT64)
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "%s \"%s\" must be a whole number, at least %" G_GUINT64_FORMAT, option, text,
                    min);
    else
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "%s \"%s\" must be a whole number, %" G_GUINT64_FORMAT " .. %" G_GUINT64_FORMAT,
                    option, text, min, max);
    return FALSE;
}

gboolean
tt_parse_count(const char *option, const char *text, guint64 min, guint64 max, guint64 *value,
               GError **error)
{
    guint64 parsed;

    if (!text)
        return TRUE;
    if (!g_ascii_string_to_unsigned(text, 10, min, max, &parsed, NULL))
        return refuse(error, option, text, min, max);
    *value = parsed;
    return TRUE;
}

gboolean
tt_parse_uint(const char *option, const char *text, guint min, guint max, guint *value,
              GError **error)
{
    guint64 parsed = *value;

    if (!tt_parse_count(option, text, min, max, &parsed, error))
        return FALSE;
    *value = (guint)parsed;
    return TRUE;
}

gboolean
tt_parse_size(const char *option, const char *text, guint64 *bytes, GError **error)
{
    if (!text)
        return TRUE;
    if (tt_parse_cli_size(text, bytes, error))
        return TRUE;
    g_prefix_error(error, "%s: ", option);
    return FALSE;
}

gboolean
tt_parse_timeout(const char *option, const char *text, double *seconds, GError **error)
{
    char *end;
    double value;

    if (!text)
        return TRUE;
    value = g_ascii_strtod(text, &end);
    if (end == text || *end != '\0') {
        if (!tt_parse_seconds(text, &value, NULL))
            value = -1;
    }
    if (!isfinite(value) || value <= 0) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "%s \"%s\" must be a time above zero: seconds, or with a unit as in \"500 ms\"",
                    option, text);
        return FALSE;
    }
    *seconds = value;
    return TRUE;
}

static gboolean
parse_range(const char *word, guint64 min, guint64 max, GArray *values)
{
    const char *dash = strchr(word, '-');
    g_autofree char *low = dash ? g_strndup(word, dash - word) : g_strdup(word);
    guint64 first, last;

    if (!g_ascii_string_to_unsigned(low, 10, min, max, &first, NULL) ||
        !g_ascii_string_to_unsigned(dash ? dash + 1 : low, 10, min, max, &last, NULL))
        return FALSE;
    if (last < first || last - first >= MAX_VALUES - values->len)
        return FALSE;
    for (guint64 v = first; v <= last; v++)
        g_array_append_val(values, v);
    return TRUE;
}

gboolean
tt_parse_ranges(const char *option, const char *text, guint64 min, guint64 max, GArray *values,
                GError **error)
{
    g_auto(GStrv) words = NULL;

    if (!text)
        return TRUE;
    words = tt_split_list(option, text, error);
    if (!words)
        return FALSE;
    for (guint i = 0; words[i]; i++) {
        if (parse_range(words[i], min, max, values))
            continue;
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "%s \"%s\" must be numbers or ranges like 2,4,8-16, each %" G_GUINT64_FORMAT
                    " .. %" G_GUINT64_FORMAT ", at most %u of them",
                    option, text, min, max, MAX_VALUES);
        return FALSE;
    }
    return TRUE;
}

char **
tt_split_list(const char *option, const char *text, GError **error)
{
    g_auto(GStrv) words = g_strsplit(text, ",", -1);

    for (guint i = 0; words[i]; i++)
        if (*g_strstrip(words[i]) == '\0')
            words[0][0] = '\0';
    if (!words[0] || words[0][0] == '\0') {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "%s \"%s\" has an empty entry; write words with single commas between", option,
                    text);
        return NULL;
    }
    return g_steal_pointer(&words);
}

/* Edits (insert, drop, change one letter) between two short words; one row of the usual table. */
static guint
edit_distance(const char *a, const char *b)
{
    guint row[32];
    size_t n = strlen(b);

    if (n >= G_N_ELEMENTS(row))
        return G_MAXUINT;
    for (guint j = 0; j <= n; j++)
        row[j] = j;
    for (guint i = 0; a[i]; i++) {
        guint diagonal = row[0];

        row[0] = i + 1;
        for (guint j = 0; j < n; j++) {
            guint change = diagonal + (a[i] != b[j]);

            diagonal = row[j + 1];
            row[j + 1] = MIN(change, MIN(row[j], diagonal) + 1);
        }
    }
    return row[n];
}

const char *
tt_nearest_word(const char *text, const char *const *words)
{
    const char *best = NULL;
    guint best_distance = 3; /* beyond two slips it is a guess */

    for (guint i = 0; words[i]; i++) {
        guint distance = edit_distance(text, words[i]);

        if (g_str_has_prefix(words[i], text) && strlen(text) >= 2)
            distance = MIN(distance, 1);
        if (distance < best_distance && distance < strlen(words[i])) {
            best = words[i];
            best_distance = distance;
        }
    }
    return best;
}
