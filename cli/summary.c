#include "cli/summary.h"
#include "cli/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void
print_class(const char *name, const GArray *samples, guint64 above, guint64 up_to)
{
    g_autoptr(GArray) sizes = g_array_new(FALSE, FALSE, sizeof(double)); /* |error| */
    double sum = 0, median;
    const double *sorted;

    for (guint i = 0; i < samples->len; i++) {
        const TtErrorSample *s = &g_array_index(samples, TtErrorSample, i);
        double size = fabs(s->error);

        if (s->bytes <= above || s->bytes > up_to)
            continue;
        g_array_append_val(sizes, size);
        sum += s->error;
    }
    if (sizes->len == 0)
        return;
    median = tt_median((double *)(void *)sizes->data, sizes->len); /* sorts */
    sorted = (const double *)(const void *)sizes->data;
    printf("#  %-14s %4u %10.1f%% %8.1f%% %8.1f%% %+10.1f%%\n", name, sizes->len, 100 * median,
           100 * tt_quantile(sorted, sizes->len, 0.95), 100 * sorted[sizes->len - 1],
           100 * sum / sizes->len);
}

void
tt_print_error_summary(const GArray *samples)
{
    static const struct {
        const char *name;
        guint64 above, up_to;
    } classes[] = {
        { "up to 16 KiB", 0, 16ull << 10 },
        { "up to 1 MiB", 16ull << 10, 1ull << 20 },
        { "up to 64 MiB", 1ull << 20, 64ull << 20 },
        { "larger", 64ull << 20, G_MAXUINT64 },
    };

    printf("#\n#  %-14s %4s %11s %9s %9s %11s\n", "size", "n", "med |error|", "p95", "max", "mean");
    for (guint i = 0; i < G_N_ELEMENTS(classes); i++)
        print_class(classes[i].name, samples, classes[i].above, classes[i].up_to);
    print_class("all", samples, 0, G_MAXUINT64);
}
