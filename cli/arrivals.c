#include "cli/arrivals.h"
#include "cli/table.h"
#include "models/units.h"

#include <stdio.h>

static void
print_us(double seconds, guint width)
{
    g_autofree char *text = tt_fit_number(seconds * 1e6, width);

    printf("  %s", text);
}

void
tt_print_arrivals(const char *placement, const GArray *arrivals, guint64 n_iterations)
{
    guint n_verdicts = 0;

    printf("# arrivals, %-12s  %8s  %8s  %6s  %8s  %11s  %8s  %8s  %8s\n", placement, "after",
           "most", "late", "by", "for message", "for slot", "of rank", "awaited");
    printf("# %-22s  %8s  %8s  %6s  %8s  %11s  %8s  %8s  %8s\n", "", "(us)", "(us)", "(times)",
           "(us)", "(us)", "(us)", "", "(us)");
    for (guint i = 0; i < arrivals->len; i++) {
        const TtArrival *a = &g_array_index(arrivals, TtArrival, i);

        printf("# %17s %4u", "rank", a->rank);
        print_us(a->after_s, 8);
        print_us(a->most_after_s, 8);
        printf("  %6" G_GUINT64_FORMAT, a->n_late);
        print_us(a->late_s, 8);
        print_us(a->wait_message_s, 11);
        print_us(a->wait_slot_s, 8);
        if (a->waits_for == TT_NO_RANK)
            printf("  %8s", "-");
        else
            printf("  %8u", a->waits_for);
        print_us(a->awaited_s, 8);
        printf("\n");
    }
    for (guint i = 0; i < arrivals->len; i++) {
        g_autofree char *verdict =
            tt_arrivals_verdict(&g_array_index(arrivals, TtArrival, i), n_iterations);

        if (verdict)
            printf("# %s\n", verdict);
        n_verdicts += verdict != NULL;
    }
    if (n_verdicts == 0)
        printf("# no rank was late in more than half of the iterations\n");
}

char *
tt_arrivals_verdict(const TtArrival *arrival, guint64 n_iterations)
{
    g_autofree char *time = tt_format_seconds(arrival->late_s);

    if (arrival->n_late <= n_iterations / 2)
        return NULL;
    return g_strdup_printf("rank %u was late in %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
                           " iterations, by %s in the median",
                           arrival->rank, arrival->n_late, n_iterations, time);
}

/* --- JSON ---------------------------------------------------------------------------------------- */

static void
append_us(GString *json, const char *name, double seconds)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];

    g_string_append_printf(json, ", \"%s\": %s", name,
                           g_ascii_dtostr(number, sizeof number, seconds * 1e6));
}

static void
append_arrival(GString *json, const TtArrival *a)
{
    g_string_append_printf(json, "{\"rank\": %u", a->rank);
    append_us(json, "after_us", a->after_s);
    append_us(json, "most_after_us", a->most_after_s);
    g_string_append_printf(json, ", \"late\": %" G_GUINT64_FORMAT, a->n_late);
    append_us(json, "late_us", a->late_s);
    append_us(json, "wait_message_us", a->wait_message_s);
    append_us(json, "wait_slot_us", a->wait_slot_s);
    if (a->waits_for == TT_NO_RANK)
        g_string_append(json, ", \"waits_for\": null");
    else
        g_string_append_printf(json, ", \"waits_for\": %u", a->waits_for);
    append_us(json, "waits_for_us", a->waits_for_s);
    append_us(json, "awaited_us", a->awaited_s);
    g_string_append_c(json, '}');
}

char *
tt_arrivals_to_json(const GArray *arrivals)
{
    GString *json = g_string_new("[");

    for (guint i = 0; i < arrivals->len; i++) {
        if (i > 0)
            g_string_append(json, ", ");
        append_arrival(json, &g_array_index(arrivals, TtArrival, i));
    }
    g_string_append_c(json, ']');
    return g_string_free(json, FALSE);
}
