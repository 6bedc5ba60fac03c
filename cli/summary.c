#include "cli/summary.h"
#include "cli/measure.h"
#include "models/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Medians further apart than this, either way, are worth a line. */
#define FAR_APART 1.5

static const struct {
    const char *name;
    guint64 above, up_to;
} classes[] = {
    { "up to 16 KiB", 0, 16ull << 10 },
    { "up to 1 MiB", 16ull << 10, 1ull << 20 },
    { "up to 64 MiB", 1ull << 20, 64ull << 20 },
    { "larger", 64ull << 20, G_MAXUINT64 },
};

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
    printf("#\n#  %-14s %4s %11s %9s %9s %11s\n", "size", "n", "med |error|", "p95", "max", "mean");
    for (guint i = 0; i < G_N_ELEMENTS(classes); i++)
        print_class(classes[i].name, samples, classes[i].above, classes[i].up_to);
    print_class("all", samples, 0, G_MAXUINT64);
}

/* --- in words ---------------------------------------------------------------------------------- */

/* Sizes of one or more neighbouring classes. */
typedef struct {
    guint n;
    guint64 smallest, largest;
    double ratio; /* median of measured / predicted */
} Stretch;

static Stretch
look_at(const GArray *samples, guint64 above, guint64 up_to)
{
    g_autoptr(GArray) ratios = g_array_new(FALSE, FALSE, sizeof(double));
    Stretch out = { .smallest = G_MAXUINT64 };

    for (guint i = 0; i < samples->len; i++) {
        const TtErrorSample *s = &g_array_index(samples, TtErrorSample, i);
        double ratio = 1 / (1 + s->error);

        if ((above && s->bytes <= above) || s->bytes > up_to)
            continue;
        g_array_append_val(ratios, ratio);
        out.smallest = MIN(out.smallest, s->bytes);
        out.largest = MAX(out.largest, s->bytes);
    }
    out.n = ratios->len;
    out.ratio = out.n ? tt_median((double *)(void *)ratios->data, out.n) : 1;
    return out;
}

/* 1: measured is far slower, -1: far faster. */
static int
verdict_of(const Stretch *s)
{
    return s->ratio > FAR_APART ? 1 : s->ratio < 1 / FAR_APART ? -1 : 0;
}

static void
print_stretch(const Stretch *s, const Stretch *all)
{
    g_autofree char *from = tt_format_bytes(s->smallest), *to = tt_format_bytes(s->largest);
    gboolean first = s->smallest == all->smallest, last = s->largest == all->largest;

    printf("# measured is %.1fx %s than predicted ", s->ratio > 1 ? s->ratio : 1 / s->ratio,
           s->ratio > 1 ? "slower" : "faster");
    if (s->smallest == s->largest)
        printf("at %s", from);
    else if (first && last)
        printf("at all sizes");
    else if (first)
        printf("up to %s", to);
    else if (last)
        printf("from %s up", from);
    else
        printf("from %s to %s", from, to);
    printf("%s\n", s->ratio > 1
                       ? ": see tutti topo lint, and NCCL_DEBUG=INFO for NICs, GDR and NVLS"
                       : ": see whether version, variables and topology are those of the run");
}

void
tt_print_error_verdict(const GArray *samples)
{
    Stretch all = look_at(samples, 0, G_MAXUINT64);
    gboolean any = FALSE;
    guint to;

    if (samples->len == 0)
        return;
    printf("# error > 0: predicted to take longer than was measured; < 0: measured took longer\n");
    for (guint from = 0; from < G_N_ELEMENTS(classes); from = to) {
        Stretch s = look_at(samples, classes[from].above, classes[from].up_to);
        int verdict = verdict_of(&s);

        for (to = from + 1; to < G_N_ELEMENTS(classes); to++) { /* neighbours that say the same */
            Stretch next = look_at(samples, classes[to].above, classes[to].up_to);

            if (next.n && verdict_of(&next) != verdict)
                break;
        }
        s = look_at(samples, classes[from].above, classes[to - 1].up_to);
        if (verdict)
            print_stretch(&s, &all);
        any |= verdict != 0;
    }
    if (!any)
        printf("# measured and predicted are within a factor of %g in every class of sizes\n",
               FAR_APART);
}
