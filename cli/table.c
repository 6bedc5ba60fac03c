#include "cli/table.h"

#include <stdio.h>
#include <string.h>

char *
tt_fit_number(double value, guint width)
{
    double limit = 1;
    guint digits = 1, decimals;

    if (!isfinite(value))
        return g_strdup_printf("%*s", (int)width, "N/A");
    while (digits < 300 && value >= (limit *= 10))
        digits++;
    decimals = digits + 3 <= width ? 2 : digits + 2 <= width ? 1 : 0;
    return g_strdup_printf("%*.*f", (int)width, (int)decimals, value);
}

static void
print_number(double value, guint width)
{
    g_autofree char *text = tt_fit_number(value, width);

    printf("  %s", text);
}

static void
print_call(const TtRow *row)
{
    printf("%12" G_GUINT64_FORMAT "  %12" G_GUINT64_FORMAT "  %8s  %6s", row->bytes, row->count,
           row->type, row->redop);
}

/* --- predict ----------------------------------------------------------------------------------- */

void
tt_print_predict_header(void)
{
    printf("#\n"
           "#%11s  %12s  %8s  %6s    %-18s %8s  %6s  %10s  %7s  %7s  %10s  %s\n"
           "#%11s  %12s  %8s  %6s    %-18s %8s  %6s  %10s  %7s  %7s  %10s\n",
           "size", "count", "type", "redop", "algorithm", "channels", "rounds", "time", "algbw",
           "busbw", "bound", "limit", "(B)", "(elements)", "", "", "", "", "", "(us)", "(GB/s)",
           "(GB/s)", "(us)");
}

void
tt_print_predict_row(const TtRow *row, gboolean mark_fastest)
{
    print_call(row);
    printf("  %c %-18s %8" G_GUINT64_FORMAT "  %6" G_GUINT64_FORMAT,
           mark_fastest && row->fastest ? '*' : ' ', row->algorithm, row->channels, row->rounds);
    print_number(row->time_us, 10);
    print_number(row->algbw_gbps, 7);
    print_number(row->busbw_gbps, 7);
    print_number(row->bound_us, 10);
    printf("  %s\n", row->limit ? row->limit : "");
}

void
tt_print_library_header(void)
{
    printf("#\n"
           "#%11s  %12s  %8s  %6s    %-14s  %-8s  %8s  %6s  %10s  %7s  %7s  %10s  %s\n"
           "#%11s  %12s  %8s  %6s    %-14s  %-8s  %8s  %6s  %10s  %7s  %7s  %10s\n",
           "size", "count", "type", "redop", "algorithm", "protocol", "channels", "rounds", "time",
           "algbw", "busbw", "bound", "busiest", "(B)", "(elements)", "", "", "", "", "", "",
           "(us)", "(GB/s)", "(GB/s)", "(us)");
}

/* "latency: lanes waited 98 % of the time" is "latency" here, and whole in JSON and CSV. */
static int
bottleneck_width(const char *text)
{
    return (int)(g_str_has_prefix(text, "latency:") ? strlen("latency") : strlen(text));
}

void
tt_print_library_row(const TtRow *row, gboolean mark_fastest)
{
    print_call(row);
    printf("  %c %-14s  %-8s  %8" G_GUINT64_FORMAT "  %6" G_GUINT64_FORMAT,
           mark_fastest && row->fastest ? '*' : ' ', row->algorithm, row->protocol, row->channels,
           row->rounds);
    print_number(row->time_us, 10);
    print_number(row->algbw_gbps, 7);
    print_number(row->busbw_gbps, 7);
    print_number(row->bound_us, 10);
    if (row->bottleneck)
        printf("  %.*s", bottleneck_width(row->bottleneck), row->bottleneck);
    printf("\n");
}

/* --- run --------------------------------------------------------------------------------------- */

void
tt_print_run_header(void)
{
    printf("#\n"
           "# %55s %-37s %s\n"
           "#%11s  %12s  %8s  %6s  %6s  %7s  %6s  %6s %6s  %7s  %6s  %6s %6s  %s\n"
           "#%11s  %12s  %8s  %6s  %6s  %7s  %6s  %6s %6s  %7s  %6s  %6s\n",
           "", "out-of-place", "in-place", "size", "count", "type", "redop", "root", "time",
           "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong", "algorithm", "(B)",
           "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)");
}

static void
print_placement(const TtRow *row)
{
    print_number(row->time_us, 7);
    print_number(row->algbw_gbps, 6);
    print_number(row->busbw_gbps, 6);
    if (row->wrong < 0)
        printf(" %6s", "N/A");
    else
        printf(" %6" G_GINT64_FORMAT, row->wrong);
}

void
tt_print_run_row(const TtRow *out_of_place, const TtRow *in_place)
{
    print_call(out_of_place);
    printf("  %6" G_GINT64_FORMAT, out_of_place->root);
    print_placement(out_of_place);
    print_placement(in_place);
    printf("  %s\n", out_of_place->algorithm);
}

static void
print_iterations(const char *placement, const TtRow *row)
{
    printf("# %30s", placement);
    printf("   min");
    print_number(row->min_us, 7);
    printf("  p50");
    print_number(row->p50_us, 7);
    printf("  p95");
    print_number(row->p95_us, 7);
    printf("  p99");
    print_number(row->p99_us, 7);
    printf("  max");
    print_number(row->max_us, 7);
    printf(" us  cv");
    print_number(row->cv * 100, 5);
    printf(" %%\n");
}

void
tt_print_run_iterations(const TtRow *out_of_place, const TtRow *in_place)
{
    print_iterations("iterations, out of place:", out_of_place);
    print_iterations("in place:", in_place);
}

/* --- compare ----------------------------------------------------------------------------------- */

void
tt_print_compare_header(void)
{
    printf("#\n"
           "#%11s  %12s  %8s  %6s    %-18s  %10s  %10s  %8s   %s\n"
           "#%11s  %12s  %8s  %6s    %-18s  %10s  %10s  %8s\n",
           "size", "count", "type", "redop", "algorithm", "predicted", "measured", "error",
           "differs most at", "(B)", "(elements)", "", "", "", "(us)", "(us)", "(%)");
}

void
tt_print_compare_row(const TtRow *row, gboolean other_state)
{
    print_call(row);
    printf("    %-18s", row->algorithm);
    print_number(row->predicted_us, 10);
    print_number(row->measured_us, 10);
    printf("  %+8.1f %s %s\n", row->error * 100, other_state ? "~" : " ", row->diverges);
}

/* --- compare --measured ------------------------------------------------------------------------ */

void
tt_print_measured_header(void)
{
    printf("#\n"
           "#%11s  %12s  %8s  %6s    %-14s %-8s %8s  %10s  %10s  %8s  %10s  %10s\n"
           "#%11s  %12s  %8s  %6s    %-14s %-8s %8s  %10s  %10s  %8s  %10s  %10s\n",
           "size", "count", "type", "redop", "algorithm", "protocol", "channels", "predicted",
           "measured", "error", "pred.busbw", "meas.busbw", "(B)", "(elements)", "", "", "", "", "",
           "(us)", "(us)", "(%)", "(GB/s)", "(GB/s)");
}

void
tt_print_measured_row(const TtRow *row)
{
    print_call(row);
    printf("    %-14s %-8s %8" G_GUINT64_FORMAT, row->algorithm, row->protocol, row->channels);
    print_number(row->predicted_us, 10);
    print_number(row->measured_us, 10);
    printf("  %+8.1f", row->error * 100);
    print_number(row->predicted_busbw_gbps, 10);
    print_number(row->measured_busbw_gbps, 10);
    printf("\n");
}
