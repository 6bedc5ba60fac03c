#include "models/profile_file.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#define MAX_FILE_BYTES (1 << 20)
#define MAX_COUNT      65535 /* workers, cores */
#define PER_BYTE       "/B"

/* Names of the steps in files; the order is that of TtOp, which models/ does not see. */
static const char *const op_names[TT_PROFILE_OPS] = {
    "nop",
    "copy",
    "reduce",
    "send",
    "copy-send",
    "recv",
    "recv-copy-send",
    "recv-reduce",
    "recv-reduce-send",
    "recv-reduce-copy-send",
};

/* What is being read, for messages. */
typedef struct {
    GKeyFile *file;
    const char *name;
} Source;

static gboolean G_GNUC_PRINTF(5, 6) fail(const Source *src, const char *group, const char *key,
                                         GError **error, const char *format, ...)
{
    g_autofree char *what = NULL;
    va_list args;

    va_start(args, format);
    what = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(error, TT_PROFILE_ERROR, TT_PROFILE_ERROR_FILE, "%s: [%s]%s%s: %s", src->name,
                group, key ? " " : "", key ? key : "", what);
    return FALSE;
}

/* Turns another domain's error into ours, with the place. */
static gboolean
fail_with(const Source *src, const char *group, const char *key, GError *cause, GError **error)
{
    fail(src, group, key, error, "%s", cause->message);
    g_error_free(cause);
    return FALSE;
}

/* --- reading -----------------------------------------------------------------------------------
 */

static gboolean
read_text(const Source *src, const char *group, const char *key, char **text)
{
    char *value = g_key_file_get_string(src->file, group, key, NULL);

    if (!value)
        return FALSE;
    g_free(*text);
    *text = value;
    return TRUE;
}

static gboolean
read_flag(const Source *src, const char *group, const char *key, gboolean *flag, GError **error)
{
    g_autofree char *text = NULL;

    if (!read_text(src, group, key, &text))
        return TRUE;
    if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
        return fail(src, group, key, error, "\"%.40s\" must be yes or no", text);
    *flag = strcmp(text, "yes") == 0;
    return TRUE;
}

static gboolean
read_count(const Source *src, const char *group, const char *key, guint *count, GError **error)
{
    g_autofree char *text = NULL;
    guint64 value;

    if (!read_text(src, group, key, &text))
        return TRUE;
    if (!g_ascii_string_to_unsigned(text, 10, 0, MAX_COUNT, &value, NULL))
        return fail(src, group, key, error, "\"%.40s\" must be a whole number, 0 .. %d", text,
                    MAX_COUNT);
    *count = (guint)value;
    return TRUE;
}

static gboolean
read_time(const Source *src, const char *group, const char *key, double *seconds, GError **error)
{
    g_autofree char *text = NULL;
    GError *cause = NULL;

    if (read_text(src, group, key, &text) && !tt_parse_seconds(text, seconds, &cause))
        return fail_with(src, group, key, cause, error);
    return TRUE;
}

static gboolean
parse_footprint(const char *text, double *value, GError **error)
{
    guint64 bytes;

    if (!tt_parse_bytes(text, &bytes, error))
        return FALSE;
    *value = (double)bytes;
    return TRUE;
}

/* "50 ps/B" */
static gboolean
parse_per_byte(const char *text, double *value, GError **error)
{
    g_autofree char *time = NULL;

    if (!g_str_has_suffix(text, PER_BYTE)) {
        g_set_error(error, TT_PROFILE_ERROR, TT_PROFILE_ERROR_FILE,
                    "\"%.40s\" must be a time per byte, like 50 ps/B", text);
        return FALSE;
    }
    time = g_strndup(text, strlen(text) - strlen(PER_BYTE));
    return tt_parse_seconds(time, value, error);
}

/* A list of exactly *n values, or, if *n is 0, of 1 .. TT_PROFILE_MAX_POINTS, which sets it. */
static gboolean
read_list(const Source *src, const char *group, const char *key,
          gboolean (*parse)(const char *, double *, GError **), guint *n, double *values,
          GError **error)
{
    g_auto(GStrv) items = g_key_file_get_string_list(src->file, group, key, NULL, NULL);
    guint n_items = items ? g_strv_length(items) : 0;

    if (n_items == 0)
        return fail(src, group, key, error, "is missing");
    if (n_items > TT_PROFILE_MAX_POINTS)
        return fail(src, group, key, error, "has %u values, at most %d are allowed", n_items,
                    TT_PROFILE_MAX_POINTS);
    if (*n > 0 && n_items != *n)
        return fail(src, group, key, error, "has %u values, footprint has %u", n_items, *n);
    for (guint i = 0; i < n_items; i++) {
        GError *cause = NULL;

        if (!parse(g_strstrip(items[i]), &values[i], &cause))
            return fail_with(src, group, key, cause, error);
    }
    *n = n_items;
    return TRUE;
}

static gboolean
read_op(const Source *src, const char *group, TtProfile *profile, GError **error)
{
    const char *name = group + strlen("op ");
    TtOpCost cost = { 0 };
    guint op = 0;

    while (op < TT_PROFILE_OPS && strcmp(op_names[op], name) != 0)
        op++;
    if (op == TT_PROFILE_OPS) {
        g_autofree char *known = g_strjoinv(", ", (char **)op_names);

        return fail(src, group, NULL, error, "unknown step (one of: %s)", known);
    }
    if (!read_list(src, group, "footprint", parse_footprint, &cost.n, cost.footprint_bytes,
                   error) ||
        !read_list(src, group, "fixed", tt_parse_seconds, &cost.n, cost.fixed_s, error) ||
        !read_list(src, group, "per_byte", parse_per_byte, &cost.n, cost.per_byte_s, error))
        return FALSE;
    for (guint i = 0; i < cost.n; i++)
        if (cost.footprint_bytes[i] <= (i ? cost.footprint_bytes[i - 1] : 0))
            return fail(src, group, "footprint", error,
                        "value %u must be larger than the one before", i + 1);
    profile->op[op] = cost;
    return TRUE;
}

/* The keys a group may have, besides source and kind. */
typedef struct {
    const char *group;
    const char *const *keys;
} Allowed;

static const char *const profile_keys[] = { "machine", "measured_at", NULL };
static const char *const lanes_keys[] = { "covers_memory", "push", "workers_per_rank", "cores",
                                          NULL };
static const char *const times_keys[] = { "latency", "credit", "start", "switch", NULL };
static const char *const op_keys[] = { "footprint", "fixed", "per_byte", NULL };
static const char *const kinds[] = { "spec", "measured", "fitted", "assumed", NULL };

static const Allowed allowed[] = { { "profile", profile_keys },
                                   { "lanes", lanes_keys },
                                   { "times", times_keys } };

static gboolean
check_keys(const Source *src, const char *group, GError **error)
{
    const char *const *keys = g_str_has_prefix(group, "op ") ? op_keys : NULL;
    g_auto(GStrv) found = g_key_file_get_keys(src->file, group, NULL, NULL);
    g_autofree char *known = NULL, *kind = NULL;

    for (guint i = 0; i < G_N_ELEMENTS(allowed); i++)
        if (strcmp(allowed[i].group, group) == 0)
            keys = allowed[i].keys;
    if (!keys)
        return fail(src, group, NULL, error,
                    "unknown group (one of: profile, lanes, times, op NAME)");
    known = g_strjoinv(", ", (char **)keys);
    for (guint i = 0; found && found[i]; i++)
        if (!g_strv_contains(keys, found[i]) && strcmp(found[i], "source") != 0 &&
            strcmp(found[i], "kind") != 0)
            return fail(src, group, found[i], error, "unknown key (one of: %s, source, kind)",
                        known);
    if (read_text(src, group, "kind", &kind) && !g_strv_contains(kinds, kind))
        return fail(src, group, "kind", error,
                    "\"%.40s\" must be spec, measured, fitted or assumed", kind);
    return TRUE;
}

static gboolean
read_all(const Source *src, TtProfile *profile, GError **error)
{
    g_auto(GStrv) groups = g_key_file_get_groups(src->file, NULL);

    if (!g_key_file_has_group(src->file, "profile"))
        return fail(src, "profile", NULL, error, "is missing: not a profile, or cut short");
    for (guint i = 0; groups[i]; i++) {
        if (!check_keys(src, groups[i], error))
            return FALSE;
        if (g_str_has_prefix(groups[i], "op ") && !read_op(src, groups[i], profile, error))
            return FALSE;
    }
    read_text(src, "profile", "machine", &profile->machine);
    read_text(src, "profile", "measured_at", &profile->measured_at);
    return read_flag(src, "lanes", "covers_memory", &profile->covers_memory, error) &&
           read_flag(src, "lanes", "push", &profile->lane_pushes, error) &&
           read_count(src, "lanes", "workers_per_rank", &profile->workers_per_rank, error) &&
           read_count(src, "lanes", "cores", &profile->cores, error) &&
           read_time(src, "times", "latency", &profile->latency_s, error) &&
           read_time(src, "times", "credit", &profile->credit_s, error) &&
           read_time(src, "times", "start", &profile->start_s, error) &&
           read_time(src, "times", "switch", &profile->switch_s, error);
}

TtProfile *
tt_profile_parse(const char *text, gsize length, const char *name, GError **error)
{
    g_autoptr(TtProfile) profile = g_new0(TtProfile, 1);
    g_autoptr(GKeyFile) file = g_key_file_new();
    Source src = { file, name };
    GError *cause = NULL;

    profile->name = g_strdup(name);
    if (!g_key_file_load_from_data(file, text, length, G_KEY_FILE_NONE, &cause)) {
        g_set_error(error, TT_PROFILE_ERROR, TT_PROFILE_ERROR_FILE, "%s: %s", name, cause->message);
        g_error_free(cause);
        return NULL;
    }
    if (!read_all(&src, profile, error))
        return NULL;
    return g_steal_pointer(&profile);
}

TtProfile *
tt_profile_load(const char *path, GError **error)
{
    g_autofree char *text = NULL;
    gsize length;
    GStatBuf status;
    GError *cause = NULL;

    if (g_stat(path, &status) == 0 &&
        (!S_ISREG(status.st_mode) || status.st_size > MAX_FILE_BYTES)) {
        g_set_error(error, TT_PROFILE_ERROR, TT_PROFILE_ERROR_FILE,
                    "%s: a profile is a regular file of at most 1 MiB", path);
        return NULL;
    }
    if (!g_file_get_contents(path, &text, &length, &cause)) {
        g_set_error(error, TT_PROFILE_ERROR, TT_PROFILE_ERROR_FILE, "profile: %s", cause->message);
        g_error_free(cause);
        return NULL;
    }
    return tt_profile_parse(text, length, path, error);
}

/* --- writing -----------------------------------------------------------------------------------
 */

/* Shortest text that reads back as the same number, in picoseconds. */
static void
append_ps(GString *text, double seconds, const char *unit)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];

    for (int digits = 6; digits <= 17; digits++) {
        char format[8];

        g_snprintf(format, sizeof format, "%%.%dg", digits);
        g_ascii_formatd(number, sizeof number, format, seconds * 1e12);
        if (fabs(g_ascii_strtod(number, NULL) * 1e-12 - seconds) <= 1e-14 * seconds)
            break;
    }
    g_string_append_printf(text, "%s %s", number, unit);
}

static void
append_time(GString *text, const char *key, double seconds)
{
    g_string_append_printf(text, "%s = ", key);
    append_ps(text, seconds, "ps");
    g_string_append_c(text, '\n');
}

static void
append_origin(GString *text, const TtProfile *profile)
{
    g_string_append_printf(text, "source = %s\nkind = %s\n",
                           profile->machine ? "tutti calibrate" : profile->name,
                           profile->machine ? "measured" : "assumed");
}

static void
append_op(GString *text, const TtProfile *profile, guint op)
{
    const TtOpCost *cost = &profile->op[op];

    g_string_append_printf(text, "\n[op %s]\n", op_names[op]);
    append_origin(text, profile);
    g_string_append(text, "footprint = ");
    for (guint i = 0; i < cost->n; i++)
        g_string_append_printf(text, "%s%.0f B", i ? "; " : "", cost->footprint_bytes[i]);
    g_string_append(text, "\nfixed = ");
    for (guint i = 0; i < cost->n; i++) {
        g_string_append(text, i ? "; " : "");
        append_ps(text, cost->fixed_s[i], "ps");
    }
    g_string_append(text, "\nper_byte = ");
    for (guint i = 0; i < cost->n; i++) {
        g_string_append(text, i ? "; " : "");
        append_ps(text, cost->per_byte_s[i], "ps" PER_BYTE);
    }
    g_string_append_c(text, '\n');
}

/* A value from outside, fit for one line. */
static void
append_line(GString *text, const char *key, const char *value)
{
    g_autofree char *line = NULL;

    if (!value)
        return;
    line = g_strdelimit(g_strdup(value), "\n\r\\", ' ');
    g_string_append_printf(text, "%s = %s\n", key, g_strstrip(line));
}

char *
tt_profile_to_text(const TtProfile *profile)
{
    GString *text =
        g_string_new("# Tutti profile: what steps cost beside the wires\n\n[profile]\n");

    append_line(text, "machine", profile->machine);
    append_line(text, "measured_at", profile->measured_at);
    append_origin(text, profile);
    g_string_append_printf(text,
                           "\n[lanes]\ncovers_memory = %s\npush = %s\nworkers_per_rank = %u\n"
                           "cores = %u\n\n[times]\n",
                           profile->covers_memory ? "yes" : "no",
                           profile->lane_pushes ? "yes" : "no", profile->workers_per_rank,
                           profile->cores);
    append_origin(text, profile);
    append_time(text, "latency", profile->latency_s);
    append_time(text, "credit", profile->credit_s);
    append_time(text, "start", profile->start_s);
    append_time(text, "switch", profile->switch_s);
    for (guint op = 0; op < TT_PROFILE_OPS; op++)
        if (profile->op[op].n > 0)
            append_op(text, profile, op);
    return g_string_free(text, FALSE);
}

gboolean
tt_profile_save(const TtProfile *profile, const char *path, GError **error)
{
    g_autofree char *text = tt_profile_to_text(profile);
    GError *cause = NULL;

    if (g_file_set_contents(path, text, -1, &cause))
        return TRUE;
    g_set_error(error, TT_PROFILE_ERROR, TT_PROFILE_ERROR_FILE, "profile: %s", cause->message);
    g_error_free(cause);
    return FALSE;
}
