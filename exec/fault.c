#include "exec/exec.h"

#include <string.h>

static const char *const names[TT_N_FAULTS] = {
    [TT_FAULT_NONE] = "none",         [TT_FAULT_KILL] = "kill",
    [TT_FAULT_STOP] = "stop",         [TT_FAULT_DELAY] = "delay",
    [TT_FAULT_EXIT] = "exit",         [TT_FAULT_ABSENT] = "absent",
    [TT_FAULT_MISMATCH] = "mismatch", [TT_FAULT_CORRUPT] = "corrupt",
    [TT_FAULT_CUT] = "cut",           [TT_FAULT_HALF_OPEN] = "half-open",
    [TT_FAULT_STRANGER] = "stranger",
};

const char *
tt_fault_name(TtFaultKind kind)
{
    return names[kind];
}

static gboolean
refuse(GError **error, const char *what, const char *text, const char *allowed)
{
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE, "fault: unknown %s \"%s\" (%s)", what,
                text, allowed);
    return FALSE;
}

static gboolean
parse_kind(const char *text, TtFaultKind *kind, GError **error)
{
    g_autofree char *all = g_strjoinv(", ", (char **)(names + 1));

    for (guint k = 1; k < TT_N_FAULTS; k++)
        if (strcmp(text, names[k]) == 0) {
            *kind = k;
            return TRUE;
        }
    return refuse(error, "kind", text, all);
}

/* A whole number below @limit. */
static gboolean
parse_number(const char *key, const char *text, guint64 limit, guint *value, GError **error)
{
    guint64 number;

    if (!g_ascii_string_to_unsigned(text, 10, 0, limit - 1, &number, NULL)) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "fault: %s must be 0 .. %" G_GUINT64_FORMAT ", not \"%s\"", key, limit - 1,
                    text);
        return FALSE;
    }
    *value = (guint)number;
    return TRUE;
}

static gboolean
parse_time(const char *text, double *time_s, GError **error)
{
    char *unit;
    double value = g_ascii_strtod(text, &unit), factor;

    factor = strcmp(unit, "s") == 0 ? 1 : strcmp(unit, "ms") == 0 ? 1e-3 : 0;
    if (unit == text || factor == 0 || !(value * factor >= 0 && value * factor <= 3600)) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "fault: time must be 0 s .. 3600 s with its unit (s, ms), not \"%s\"", text);
        return FALSE;
    }
    *time_s = value * factor;
    return TRUE;
}

static gboolean
parse_setting(const char *text, guint n_ranks, TtFault *fault, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(text, "=", 2);

    if (!parts[0] || !parts[1])
        return refuse(error, "setting", text, "rank=, peer=, after=, time=");
    if (strcmp(parts[0], "rank") == 0)
        return parse_number("rank", parts[1], n_ranks, &fault->rank, error);
    if (strcmp(parts[0], "peer") == 0)
        return parse_number("peer", parts[1], n_ranks, &fault->peer, error);
    if (strcmp(parts[0], "after") == 0)
        return parse_number("after", parts[1], 1u << 31, &fault->after, error);
    if (strcmp(parts[0], "time") == 0)
        return parse_time(parts[1], &fault->time_s, error);
    return refuse(error, "setting", parts[0], "rank=, peer=, after=, time=");
}

gboolean
tt_fault_parse(const char *text, guint n_ranks, TtFault *fault, GError **error)
{
    TtFault f = { .rank = MIN(1, n_ranks - 1), .peer = G_MAXUINT, .after = 2, .time_s = 0.1 };
    g_auto(GStrv) parts = g_strsplit(text, ":", 2);
    g_auto(GStrv) settings = NULL;

    if (!parse_kind(parts[0] ? parts[0] : "", &f.kind, error))
        return FALSE;
    if (f.kind == TT_FAULT_MISMATCH)
        f.after = 0;
    settings = g_strsplit(parts[1] ? parts[1] : "", ",", -1);
    for (guint i = 0; settings[i]; i++)
        if (!parse_setting(settings[i], n_ranks, &f, error))
            return FALSE;
    if (f.peer == f.rank) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "fault: peer must be another rank than %u", f.rank);
        return FALSE;
    }
    *fault = f;
    return TRUE;
}
