/* outlets.h - the files a command was asked for beside its rows: traces, timelines, plots.
 *
 * Checked before the work, written after it, whole or not at all.
 */
#pragma once
#include "algos/timeline.h"
#include "cli/report.h"

/* Every path can be written, gnuplot and json-glib are there if they are wanted. */
gboolean tt_outlets_check(const TtOptions *options, GError **error);

/* Whether timelines are wanted at all. */
gboolean tt_outlets_want_timelines(const TtOptions *options);

/* --trace takes all of the timelines, --timeline the only one. */
gboolean tt_outlets_write_timelines(const TtOptions *options, const GPtrArray *timelines,
                                    GError **error);

/* --plot: draws the report's rows with @draw (plots/plot.h). */
typedef gboolean (*TtDraw)(const char *csv_path, const char *out_prefix, const char *title,
                           GError **error);
gboolean tt_outlets_plot(const TtReport *report, const TtOptions *options, TtDraw draw,
                         const char *title, GError **error);
