#include "topologies/keys.h"

#include <math.h>
#include <string.h>

/* Outside of these a rate or time is a typing error; inside, sums of picoseconds cannot overflow.
 */
#define MIN_RATE_BYTES_PER_S 1e3
#define MAX_RATE_BYTES_PER_S 1e15
#define MAX_TIME_S           100.0

/* The key if it is there; *ok tells whether its absence is fine. */
static TtKey *
ask(TtKeys *keys, const char *section, const char *name, gboolean required, gboolean *ok,
    GError **error)
{
    TtKey *key = tt_keys_find(keys, section, name);

    *ok = key || !required;
    if (key)
        key->used = TRUE;
    else if (required)
        tt_keys_error_whole(keys, error, "[%s] needs the key \"%s\"", section, name);
    return key;
}

gboolean
tt_keys_text(TtKeys *keys, const char *section, const char *name, gboolean required,
             const char **text, GError **error)
{
    gboolean ok;
    TtKey *key = ask(keys, section, name, required, &ok, error);

    if (key && !*key->value) {
        tt_keys_error(keys, key, error, "is empty");
        return FALSE;
    }
    if (key)
        *text = key->value;
    return ok;
}

gboolean
tt_keys_count(TtKeys *keys, const char *section, const char *name, gboolean required, guint min,
              guint max, guint *count, GError **error)
{
    gboolean ok;
    TtKey *key = ask(keys, section, name, required, &ok, error);
    guint64 value;

    if (!key)
        return ok;
    if (!g_ascii_string_to_unsigned(key->value, 10, min, max, &value, NULL)) {
        g_autofree char *quoted = tt_quote(key->value);

        tt_keys_error(keys, key, error, "must be a whole number from %u to %u, not \"%s\"", min,
                      max, quoted);
        return FALSE;
    }
    *count = (guint)value;
    return TRUE;
}

/* Turns a parser's message into ours: with file, line and key. */
static gboolean
pass_on(const TtKeys *keys, const TtKey *key, GError *reason, GError **error)
{
    tt_keys_error(keys, key, error, "%s", reason->message);
    g_error_free(reason);
    return FALSE;
}

gboolean
tt_keys_rate(TtKeys *keys, const char *section, const char *name, gboolean required,
             double *bytes_per_s, GError **error)
{
    gboolean ok;
    TtKey *key = ask(keys, section, name, required, &ok, error);
    GError *reason = NULL;
    double value;

    if (!key)
        return ok;
    if (!tt_parse_rate(key->value, &value, &reason))
        return pass_on(keys, key, reason, error);
    if (value < MIN_RATE_BYTES_PER_S || value > MAX_RATE_BYTES_PER_S) {
        tt_keys_error(keys, key, error, "\"%s\" is not within 1 kB/s and 1 PB/s", key->value);
        return FALSE;
    }
    *bytes_per_s = value;
    return TRUE;
}

gboolean
tt_keys_time(TtKeys *keys, const char *section, const char *name, gboolean required,
             TtTime *time_ps, GError **error)
{
    gboolean ok;
    TtKey *key = ask(keys, section, name, required, &ok, error);
    GError *reason = NULL;
    double value;

    if (!key)
        return ok;
    if (!tt_parse_seconds(key->value, &value, &reason))
        return pass_on(keys, key, reason, error);
    if (value > MAX_TIME_S) {
        tt_keys_error(keys, key, error, "\"%s\" is more than 100 s", key->value);
        return FALSE;
    }
    *time_ps = tt_seconds_to_ps(value);
    return TRUE;
}

#define MAX_BURST_BYTES (G_GUINT64_CONSTANT(1) << 40)

gboolean
tt_keys_bytes(TtKeys *keys, const char *section, const char *name, gboolean required, double *bytes,
              GError **error)
{
    gboolean ok;
    TtKey *key = ask(keys, section, name, required, &ok, error);
    GError *reason = NULL;
    guint64 value;

    if (!key)
        return ok;
    if (!tt_parse_bytes(key->value, &value, &reason))
        return pass_on(keys, key, reason, error);
    if (value > MAX_BURST_BYTES) {
        tt_keys_error(keys, key, error, "\"%s\" is more than 1 TiB", key->value);
        return FALSE;
    }
    *bytes = (double)value;
    return TRUE;
}

/* A plain number and then exactly @end; NaN if it is anything else. */
static double
number(const char *text, const char *end)
{
    char *rest;
    double value;

    if (!g_ascii_isdigit(*text) || text[1] == 'x' || text[1] == 'X')
        return NAN;
    value = g_ascii_strtod(text, &rest);
    while (g_ascii_isspace(*rest))
        rest++;
    return strcmp(rest, end) == 0 ? value : NAN;
}

gboolean
tt_keys_percent(TtKeys *keys, const char *section, const char *name, gboolean required,
                double *fraction, GError **error)
{
    gboolean ok;
    TtKey *key = ask(keys, section, name, required, &ok, error);
    double value;

    if (!key)
        return ok;
    value = number(key->value, "%");
    if (!(value >= 1 && value <= 100)) {
        g_autofree char *quoted = tt_quote(key->value);

        tt_keys_error(keys, key, error, "must be 1 %% to 100 %%, with its unit, not \"%s\"",
                      quoted);
        return FALSE;
    }
    *fraction = value / 100;
    return TRUE;
}

gboolean
tt_keys_ratio(TtKeys *keys, const char *section, const char *name, gboolean required, double *ratio,
              GError **error)
{
    gboolean ok;
    TtKey *key = ask(keys, section, name, required, &ok, error);
    double value;

    if (!key)
        return ok;
    value = number(key->value, g_str_has_suffix(key->value, ":1") ? ":1" : "");
    if (!(value >= 1 && value <= 1000)) {
        g_autofree char *quoted = tt_quote(key->value);

        tt_keys_error(keys, key, error,
                      "must be a ratio from 1 to 1000 (\"2\" or \"2:1\"), not \"%s\"", quoted);
        return FALSE;
    }
    *ratio = value;
    return TRUE;
}

gboolean
tt_keys_yes_no(TtKeys *keys, const char *section, const char *name, gboolean required,
               gboolean *yes, GError **error)
{
    gboolean ok;
    TtKey *key = ask(keys, section, name, required, &ok, error);

    if (!key)
        return ok;
    if (strcmp(key->value, "yes") != 0 && strcmp(key->value, "no") != 0) {
        g_autofree char *quoted = tt_quote(key->value);

        tt_keys_error(keys, key, error, "must be yes or no, not \"%s\"", quoted);
        return FALSE;
    }
    *yes = key->value[0] == 'y';
    return TRUE;
}
