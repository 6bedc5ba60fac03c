/* plot.h - draw a CSV with gnuplot: PREFIX.png and PREFIX.svg, both or neither.
 *
 * The CSV needs a header line; columns are found by name, others are ignored, so what `tutti
 * predict
 * --csv` and `tutti compare --csv` write can be drawn again later. The scripts are plots/<name>.gp,
 * compiled in.
 */
#pragma once
#include <glib.h>

#define TT_PLOT_ERROR (tt_plot_error_quark())
GQuark tt_plot_error_quark(void);
typedef enum {
    TT_PLOT_ERROR_FILE,   /* the CSV: names line and column */
    TT_PLOT_ERROR_GNUPLOT /* not installed, or it failed: says what it said */
} TtPlotError;

/* Columns algorithm,bytes,predicted_us,measured_us,error: time against size, predicted lines and
 * measured points, and below it the signed error. */
gboolean tt_plot_compare(const char *csv_path, const char *out_prefix, const char *title,
                         GError **error);

/* Columns algorithm,bytes,time_us,busbw_gbps, maybe protocol: time and bus bandwidth against size, a line
 * per algorithm and protocol. */
gboolean tt_plot_predict(const char *csv_path, const char *out_prefix, const char *title,
                         GError **error);

/* The same columns, a row a size: one line for what is fastest or what NCCL chooses, and points that say what
 * that is. */
gboolean tt_plot_fastest(const char *csv_path, const char *out_prefix, const char *title,
                         GError **error);
gboolean tt_plot_nccl_choice(const char *csv_path, const char *out_prefix, const char *title,
                             GError **error);

/* One size of a measured run. */
typedef struct {
    double bytes, predicted_us, measured_us;
    double busbw_factor; /* of the collective over its ranks: busbw = bytes / time times this */
} TtMeasuredPoint;

/* Predicted lines and measured points: time and bus bandwidth against size. @points in any order; @source
 * names them below the title. */
gboolean tt_plot_measured(const TtMeasuredPoint *points, guint n_points, const char *out_prefix,
                          const char *title, const char *source, GError **error);

/* Whether gnuplot can be started; say so before minutes of work. */
gboolean tt_plot_available(GError **error);

/* The scripts: compiled in by the build. */
typedef struct {
    const char *name, *summary, *text;
} TtPlotScript;
extern const TtPlotScript tt_plot_scripts[];
