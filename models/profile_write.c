/* Profiles as .ini text: the counterpart of profile_file.c. */
#include "models/profile_file.h"

#include <math.h>

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
append_op(GString *text, const TtOpCost *cost, const char *prefix, guint op)
{
    g_string_append_printf(text, "\n[%sop %s]\n", prefix, tt_profile_op_names[op]);
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
        append_ps(text, cost->per_byte_s[i], "ps" TT_PER_BYTE);
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

static void
append_state(GString *text, const TtProfile *profile, const char *prefix)
{
    append_time(text, "latency", profile->latency_s);
    append_time(text, "credit", profile->credit_s);
    append_time(text, "start", profile->start_s);
    append_time(text, "switch", profile->switch_s);
    for (guint op = 0; op < TT_PROFILE_OPS; op++)
        if (profile->op[op].n > 0)
            append_op(text, &profile->op[op], prefix, op);
}

char *
tt_profile_to_text(const TtProfile *profile)
{
    GString *text =
        g_string_new("# Tutti profile: what steps cost beside the wires\n\n[profile]\n");

    append_line(text, "machine", profile->machine);
    append_line(text, "measured_at", profile->measured_at);
    append_line(text, "conditions", profile->conditions);
    append_origin(text, profile);
    g_string_append_printf(text,
                           "\n[lanes]\ncovers_memory = %s\npush = %s\nworkers_per_rank = %u\n"
                           "cores = %u\nuncut = %.0f B\ndirect = %.0f B\n"
                           "direct_crowded = %.0f B\n\n[times]\n",
                           profile->covers_memory ? "yes" : "no",
                           profile->lane_pushes ? "yes" : "no", profile->workers_per_rank,
                           profile->cores, profile->uncut_bytes, profile->direct_bytes,
                           profile->direct_crowded_bytes);
    append_origin(text, profile);
    append_state(text, profile, "");
    for (guint number = 2; (profile = profile->next); number++) {
        g_autofree char *prefix = g_strdup_printf("state %u ", number);

        g_string_append_printf(text, "\n[%stimes]\n", prefix);
        append_state(text, profile, prefix);
    }
    return g_string_free(text, FALSE);
}
