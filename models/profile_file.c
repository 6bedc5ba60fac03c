#include "models/profile_file.h"

#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>

#define MAX_FILE_BYTES (1 << 20)
#define MAX_COUNT      65535 /* workers, cores */

/* Names of the steps in files; the order is that of TtOp, which models/ does not see. */
const char *const tt_profile_op_names[TT_PROFILE_OPS] = {
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

static gboolean
read_bytes(const Source *src, const char *group, const char *key, double *bytes, GError **error)
{
    g_autofree char *text = NULL;
    GError *cause = NULL;

    if (read_text(src, group, key, &text) && !parse_footprint(text, bytes, &cause))
        return fail_with(src, group, key, cause, error);
    return TRUE;
}

/* "50 ps/B" */
static gboolean
parse_per_byte(const char *text, double *value, GError **error)
{
    g_autofree char *time = NULL;

    if (!g_str_has_suffix(text, TT_PER_BYTE)) {
        g_set_error(error, TT_PROFILE_ERROR, TT_PROFILE_ERROR_FILE,
                    "\"%.40s\" must be a time per byte, like 50 ps/B", text);
        return FALSE;
    }
    time = g_strndup(text, strlen(text) - strlen(TT_PER_BYTE));
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
read_op(const Source *src, const char *group, const char *name, TtProfile *profile, GError **error)
{
    TtOpCost cost = { 0 };
    guint op = 0;

    while (op < TT_PROFILE_OPS && strcmp(tt_profile_op_names[op], name) != 0)
        op++;
    if (op == TT_PROFILE_OPS) {
        g_autofree char *known = g_strjoinv(", ", (char **)tt_profile_op_names);

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

static const char *const profile_keys[] = { "machine", "measured_at", "conditions", NULL };
static const char *const lanes_keys[] = { "covers_memory", "push",   "workers_per_rank", "cores",
                                          "uncut",         "direct", "direct_crowded",   NULL };
static const char *const times_keys[] = { "latency", "credit", "start", "switch", NULL };
static const char *const op_keys[] = { "footprint", "fixed", "per_byte", NULL };
static const char *const kinds[] = { "spec", "measured", "fitted", "assumed", NULL };

static const Allowed allowed[] = { { "profile", profile_keys },
                                   { "lanes", lanes_keys },
                                   { "times", times_keys } };

static gboolean
check_keys(const Source *src, const char *group, const char *plain, GError **error)
{
    const char *const *keys = g_str_has_prefix(plain, "op ") ? op_keys : NULL;
    g_auto(GStrv) found = g_key_file_get_keys(src->file, group, NULL, NULL);
    g_autofree char *known = NULL, *kind = NULL;

    for (guint i = 0; i < G_N_ELEMENTS(allowed); i++)
        if (strcmp(allowed[i].group, plain) == 0)
            keys = allowed[i].keys;
    if (!keys)
        return fail(src, group, NULL, error,
                    "unknown group (one of: profile, lanes, times, op NAME, state N times, "
                    "state N op NAME)");
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
read_times(const Source *src, const char *group, TtProfile *profile, GError **error)
{
    return read_time(src, group, "latency", &profile->latency_s, error) &&
           read_time(src, group, "credit", &profile->credit_s, error) &&
           read_time(src, group, "start", &profile->start_s, error) &&
           read_time(src, group, "switch", &profile->switch_s, error);
}

/* "state 2 op send" is "op send" of the second state; states follow each other from 2 on. */
static TtProfile *
find_state(const Source *src, const char *group, TtProfile *profile, const char **plain,
           GError **error)
{
    guint number, n = 1;
    int used = 0;

    *plain = group;
    if (!g_str_has_prefix(group, "state "))
        return profile;
    if (sscanf(group, "state %1u %n", &number, &used) != 1 || used == 0 || number < 2 ||
        number > TT_PROFILE_MAX_STATES) {
        fail(src, group, NULL, error, "states are numbered 2 .. %d", TT_PROFILE_MAX_STATES);
        return NULL;
    }
    *plain = group + used;
    for (; n < number && profile->next; n++)
        profile = profile->next;
    if (n + 1 < number) {
        fail(src, group, NULL, error, "state %u comes before this one and is missing", n + 1);
        return NULL;
    }
    if (n < number)
        profile = profile->next = tt_profile_new_state(profile);
    return profile;
}

static gboolean
read_group(const Source *src, const char *group, TtProfile *profile, GError **error)
{
    const char *plain;
    TtProfile *state = find_state(src, group, profile, &plain, error);

    if (!state || !check_keys(src, group, plain, error))
        return FALSE;
    if (g_str_has_prefix(plain, "op "))
        return read_op(src, group, plain + strlen("op "), state, error);
    if (strcmp(plain, "times") == 0)
        return read_times(src, group, state, error);
    if (state == profile)
        return TRUE;
    return fail(src, group, NULL, error, "a state has only times and op NAME");
}

static gboolean
read_all(const Source *src, TtProfile *profile, GError **error)
{
    g_auto(GStrv) groups = g_key_file_get_groups(src->file, NULL);

    if (!g_key_file_has_group(src->file, "profile"))
        return fail(src, "profile", NULL, error, "is missing: not a profile, or cut short");
    read_text(src, "profile", "machine", &profile->machine);
    read_text(src, "profile", "measured_at", &profile->measured_at);
    read_text(src, "profile", "conditions", &profile->conditions);
    if (!read_flag(src, "lanes", "covers_memory", &profile->covers_memory, error) ||
        !read_flag(src, "lanes", "push", &profile->lane_pushes, error) ||
        !read_count(src, "lanes", "workers_per_rank", &profile->workers_per_rank, error) ||
        !read_count(src, "lanes", "cores", &profile->cores, error) ||
        !read_bytes(src, "lanes", "uncut", &profile->uncut_bytes, error) ||
        !read_bytes(src, "lanes", "direct", &profile->direct_bytes, error) ||
        !read_bytes(src, "lanes", "direct_crowded", &profile->direct_crowded_bytes, error))
        return FALSE;
    for (guint i = 0; groups[i]; i++)
        if (!read_group(src, groups[i], profile, error))
            return FALSE;
    return TRUE;
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
