#include "models/units.h"

#include <errno.h>
#include <math.h>
#include <string.h>

GQuark
tt_units_error_quark(void)
{
    return g_quark_from_static_string("tt-units-error");
}

typedef struct {
    const char *name;
    double factor;
} Unit;

/* SI, then binary. "K" beside "k": people write KB and mean 1000 here; KiB is 1024. */
static const Unit prefixes[] = {
    { "", 1 },
    { "k", 1e3 },
    { "K", 1e3 },
    { "M", 1e6 },
    { "G", 1e9 },
    { "T", 1e12 },
    { "P", 1e15 },
    { "Ki", 1024.0 },
    { "Mi", 1048576.0 },
    { "Gi", 1073741824.0 },
    { "Ti", 1099511627776.0 },
    { "Pi", 1125899906842624.0 },
};

static const Unit rate_units[] = {
    { "bit/s", 0.125 }, { "b/s", 0.125 }, { "bps", 0.125 }, { "B/s", 1 }, { NULL, 0 }
};

static const Unit byte_units[] = { { "B", 1 }, { NULL, 0 } };

static const Unit time_units[] = {
    { "ps", 1e-12 },       { "ns", 1e-9 }, { "us", 1e-6 }, { "\302\265s", 1e-6 },
    { "\316\274s", 1e-6 }, /* both mu signs */
    { "ms", 1e-3 },        { "s", 1 },     { NULL, 0 }
};

#define RATE_HELP                                                                                  \
    "bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s, B/s, kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s"
#define BYTE_HELP "B, KB, MB, GB, TB, KiB, MiB, GiB, TiB"
#define TIME_HELP "ps, ns, us, ms, s"

/* What stands in @text: a number from 0 up, blanks, the rest. Quoted shortened in messages. */
typedef struct {
    const char *what; /* "a rate" */
    const char *help; /* the units, for people */
    char *quoted;     /* the text, safe to print */
    double number;
    gboolean is_integer;
    guint64 integer;
    const char *unit; /* in the caller's text */
    gsize unit_length;
} Quantity;

static void
quantity_clear(Quantity *q)
{
    g_free(q->quoted);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Quantity, quantity_clear)

static char *
quote(const char *text)
{
    g_autofree char *cut = g_strndup(text, 60);
    g_autofree char *valid = g_utf8_make_valid(cut, -1);

    for (char *c = valid; *c; c++)
        if (g_ascii_iscntrl(*c))
            *c = ' ';
    return g_steal_pointer(&valid);
}

static gboolean
fail(const Quantity *q, GError **error, const char *why)
{
    g_set_error(error, TT_UNITS_ERROR, TT_UNITS_ERROR_PARSE, "\"%s\" %s", q->quoted, why);
    return FALSE;
}

static gboolean
fail_unit(const Quantity *q, GError **error)
{
    g_autofree char *unit = g_strndup(q->unit, q->unit_length);
    g_autofree char *quoted = quote(unit);

    if (*quoted)
        g_set_error(error, TT_UNITS_ERROR, TT_UNITS_ERROR_PARSE,
                    "\"%s\": unknown unit \"%s\" of %s (one of %s)", q->quoted, quoted, q->what,
                    q->help);
    else
        g_set_error(error, TT_UNITS_ERROR, TT_UNITS_ERROR_PARSE, "\"%s\" needs a unit (one of %s)",
                    q->quoted, q->help);
    return FALSE;
}

/* Digits, perhaps a fraction and an exponent. Not what strtod knows besides: signs, hex, inf, nan.
 */
static gboolean
split(const char *text, Quantity *q, GError **error)
{
    const char *p = text;
    char *end = NULL;

    q->quoted = quote(text);
    while (g_ascii_isspace(*p))
        p++;
    if (*p == '-')
        return fail(q, error, "is negative");
    if (!(g_ascii_isdigit(*p) || (*p == '.' && g_ascii_isdigit(p[1]))) ||
        (*p == '0' && (p[1] == 'x' || p[1] == 'X')))
        return fail(q, error, "does not start with a number");

    errno = 0;
    q->number = g_ascii_strtod(p, &end);
    if (!isfinite(q->number) || (errno == ERANGE && q->number > 1))
        return fail(q, error, "is too large");
    q->is_integer = FALSE;
    if (strspn(p, "0123456789") == (gsize)(end - p)) {
        errno = 0;
        q->integer = g_ascii_strtoull(p, NULL, 10);
        q->is_integer = errno == 0;
    }

    while (g_ascii_isspace(*end))
        end++;
    q->unit = end;
    q->unit_length = strlen(end);
    while (q->unit_length && g_ascii_isspace(end[q->unit_length - 1]))
        q->unit_length--;
    return TRUE;
}

static gboolean
is_word(const Quantity *q, gsize length, const char *word)
{
    return length == strlen(word) && memcmp(q->unit, word, length) == 0;
}

/* The unit's factor: a prefix and one of @units. */
static gboolean
find_unit(const Quantity *q, const Unit *units, gboolean with_prefix, double *factor)
{
    for (; units->name; units++) {
        gsize length = strlen(units->name), rest = q->unit_length - length;

        if (length > q->unit_length || memcmp(q->unit + rest, units->name, length) != 0)
            continue;
        for (guint i = 0; i < (with_prefix ? G_N_ELEMENTS(prefixes) : 1); i++) {
            if (is_word(q, rest, prefixes[i].name)) {
                *factor = prefixes[i].factor * units->factor;
                return TRUE;
            }
        }
    }
    return FALSE;
}

gboolean
tt_parse_rate(const char *text, double *bytes_per_s, GError **error)
{
    g_auto(Quantity) q = { .what = "a rate", .help = RATE_HELP };
    double factor;

    if (!split(text, &q, error))
        return FALSE;
    if (!find_unit(&q, rate_units, TRUE, &factor))
        return fail_unit(&q, error);
    if (!(q.number * factor > 0))
        return fail(&q, error, "must be more than 0");
    if (!isfinite(q.number * factor))
        return fail(&q, error, "is too large");
    *bytes_per_s = q.number * factor;
    return TRUE;
}

gboolean
tt_parse_seconds(const char *text, double *seconds, GError **error)
{
    g_auto(Quantity) q = { .what = "a time", .help = TIME_HELP };
    double factor;

    if (!split(text, &q, error))
        return FALSE;
    if (!find_unit(&q, time_units, FALSE, &factor))
        return fail_unit(&q, error);
    *seconds = q.number * factor;
    return TRUE;
}

/* Exact: integers never pass through a double. */
static gboolean
whole_bytes(const Quantity *q, guint64 factor, guint64 *bytes, GError **error)
{
    double product = q->number * (double)factor;
    guint64 value;

    if (q->is_integer) {
        if (!g_uint64_checked_mul(&value, q->integer, factor))
            return fail(q, error, "is too large (at most 2^64 - 1 B)");
    } else {
        if (product >= 18446744073709551615.0)
            return fail(q, error, "is too large (at most 2^64 - 1 B)");
        if (product != floor(product))
            return fail(q, error, "is not a whole number of bytes");
        value = (guint64)product;
    }
    *bytes = value;
    return TRUE;
}

gboolean
tt_parse_bytes(const char *text, guint64 *bytes, GError **error)
{
    g_auto(Quantity) q = { .what = "a size", .help = BYTE_HELP };
    double factor;

    if (!split(text, &q, error))
        return FALSE;
    if (!find_unit(&q, byte_units, TRUE, &factor))
        return fail_unit(&q, error);
    return whole_bytes(&q, (guint64)factor, bytes, error);
}

gboolean
tt_parse_cli_size(const char *text, guint64 *bytes, GError **error)
{
    g_auto(Quantity) q = { .what = "a size", .help = "none, K, M, G, T, P, E: powers of 1024" };
    static const char letters[] = "KMGTPE";
    const char *letter;
    guint64 factor = 1;
    gsize used = 0;

    if (!split(text, &q, error))
        return FALSE;
    if (q.unit_length && (letter = strchr(letters, g_ascii_toupper(q.unit[0]))) && *letter) {
        factor = (guint64)1 << (10 * (letter - letters + 1));
        used = 1 + (q.unit_length == 3 && q.unit[1] == 'i' && q.unit[2] == 'B');
    }
    if (q.unit_length > used && q.unit[q.unit_length - 1] == 'B')
        used++;
    if (used != q.unit_length)
        return fail_unit(&q, error);
    return whole_bytes(&q, factor, bytes, error);
}

/* --- printing ----------------------------------------------------------------------------------
 */

/* At most @decimals of them, none at the end that says nothing; never the locale's comma. */
static char *
trimmed(double value, int decimals, const char *unit)
{
    char format[8], digits[G_ASCII_DTOSTR_BUF_SIZE + 320];

    g_snprintf(format, sizeof format, "%%.%df", decimals);
    g_ascii_formatd(digits, sizeof digits, format, value);
    if (strchr(digits, '.')) {
        char *end = digits + strlen(digits);

        while (end[-1] == '0')
            *--end = '\0';
        if (end[-1] == '.')
            *--end = '\0';
    }
    return g_strdup_printf("%s %s", digits, unit);
}

/* Three significant digits in the largest unit that leaves at least 1. @units ascend. */
static char *
three_digits(double value, const Unit *units, guint n)
{
    guint i = 0;

    while (i + 1 < n && value >= 0.9995 * units[i + 1].factor)
        i++;

    double v = value / units[i].factor;

    return trimmed(v, v < 9.995 ? 2 : v < 99.95 ? 1 : 0, units[i].name);
}

char *
tt_format_bytes(guint64 bytes)
{
    static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    guint i = 0;

    while (i + 1 < G_N_ELEMENTS(names) && bytes >> (10 * (i + 1)))
        i++;
    return trimmed((double)bytes / (double)((guint64)1 << (10 * i)), 2, names[i]);
}

char *
tt_format_rate(double bytes_per_s)
{
    static const Unit units[] = { { "B/s", 1 },    { "kB/s", 1e3 },  { "MB/s", 1e6 },
                                  { "GB/s", 1e9 }, { "TB/s", 1e12 }, { "PB/s", 1e15 } };

    if (!isfinite(bytes_per_s))
        return g_strdup(isnan(bytes_per_s) ? "nan" : "inf");
    return three_digits(bytes_per_s, units, G_N_ELEMENTS(units));
}

char *
tt_format_seconds(double seconds)
{
    static const Unit units[] = {
        { "ps", 1e-12 }, { "ns", 1e-9 }, { "us", 1e-6 }, { "ms", 1e-3 }, { "s", 1 }
    };

    if (!isfinite(seconds))
        return g_strdup(isnan(seconds) ? "nan" : "inf");
    if (seconds == 0)
        return g_strdup("0 s");
    return three_digits(seconds, units, G_N_ELEMENTS(units));
}
