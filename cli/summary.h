/* summary.h - how good predictions were: errors by size class. */
#pragma once
#include <glib.h>

typedef struct {
    guint64 bytes;
    double error; /* (predicted - measured) / measured */
} TtErrorSample;

/* "# up to 16 KiB: n, median |error|, p95, max, mean signed" for each class that has samples, and for all
 * of them. */
void tt_print_error_summary(const GArray *samples);

/* What the sign means, and in which sizes measured and predicted are far apart, if any. */
void tt_print_error_verdict(const GArray *samples);
