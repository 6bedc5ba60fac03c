/* series.h - a CSV of results as one series of points per algorithm, in order of appearance; where the
 * rows are of several protocols, one per algorithm and protocol. */
#pragma once
#include <glib.h>

#define TT_SERIES_MAX_COLUMNS 6

typedef struct {
    double value[TT_SERIES_MAX_COLUMNS]; /* NAN where the cell was empty; value[0] is the size */
} TtPoint;

typedef struct {
    char *name;                 /* "ring", with protocols "ring ll" */
    char *algorithm, *protocol; /* protocol is NULL where the CSV has none */
    GArray *points;             /* TtPoint, ascending by value[0] */
} TtSeries;

void tt_series_free(TtSeries *series);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtSeries, tt_series_free)

/* GPtrArray of TtSeries by the column "algorithm", and by "protocol" if there is one; @columns are looked
 * up in the header, others are skipped. TT_PLOT_ERROR_FILE naming line and column. */
GPtrArray *tt_series_read(const char *csv_path, const char *const *columns, guint n_columns,
                          GError **error);

/* The point with the lowest value[@by] of all series at each size. */
TtSeries *tt_series_lowest(const GPtrArray *all, guint by);

/* Median and 95th percentile of |value[@column]|; returns how many there were. */
guint tt_series_magnitudes(const GPtrArray *all, guint column, double *median, double *p95);
