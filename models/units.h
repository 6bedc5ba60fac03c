/* units.h - quantities as people write them, and the border between seconds and picoseconds.
 *
 * A leaf: any folder but algos/ may use it, it uses nothing of ours.
 *
 * Text always carries its unit: "400 Gbit/s", "25 GB/s", "1.5 us", "64 KiB", "3.2 TB/s". GB is 1e9 and
 * GiB 2^30 in files; only the size options of the command line follow nccl-tests (K, M, G = 1024^n).
 */
#pragma once
#include <glib.h>

typedef gint64 TtTime; /* simulated time, picoseconds */

#define TT_PS_PER_S 1e12
#define TT_TIME_MAX G_MAXINT64

#define TT_UNITS_ERROR (tt_units_error_quark())
GQuark tt_units_error_quark(void);
typedef enum { TT_UNITS_ERROR_PARSE } TtUnitsError;

/* Rounds to nearest; saturates at TT_TIME_MAX. */
static inline TtTime
tt_seconds_to_ps(double seconds)
{
    double ps = seconds * TT_PS_PER_S;

    return ps >= 9.2e18 ? TT_TIME_MAX : (TtTime)(ps + (ps < 0 ? -0.5 : 0.5));
}

static inline double
tt_ps_to_seconds(TtTime ps)
{
    return (double)ps / TT_PS_PER_S;
}

/* Time of @bytes at a rate; 0 at an infinite rate. Rounds to nearest. */
static inline TtTime
tt_transfer_ps(guint64 bytes, double bytes_per_s)
{
    return tt_seconds_to_ps((double)bytes / bytes_per_s);
}

/* Parse one quantity. A bare number, an unknown unit, a negative, NaN or infinite value: FALSE with
 * TT_UNITS_ERROR_PARSE "... needs a unit (one of ...)". Zero is allowed for times and sizes only. */
gboolean tt_parse_rate(const char *text, double *bytes_per_s, GError **error);   /* "400 Gbit/s" */
gboolean tt_parse_seconds(const char *text, double *seconds, GError **error);    /* "1.5 us" */
gboolean tt_parse_bytes(const char *text, guint64 *bytes, GError **error);       /* "64 KiB" */

/* The command line's sizes, as nccl-tests reads them: "8", "1K", "64M", "8G", "1T"; 1024-based; also
 * accepts KB, KiB and so on with the same meaning. Overflow and rubbish are errors. */
gboolean tt_parse_cli_size(const char *text, guint64 *bytes, GError **error);

/* "1 MiB", "1.5 KiB", "12 B": exact multiples short, else two decimals. Caller frees. */
char *tt_format_bytes(guint64 bytes);
char *tt_format_rate(double bytes_per_s); /* "25 GB/s", "371 GB/s", "inf" */
char *tt_format_seconds(double seconds);  /* "1.5 us", "12.3 ms" */
