/* measured_time.h - how long NCCL is predicted to take for a row somebody measured. */
#pragma once
#include "cli/options.h"
#include "models/replay.h"

/* Refuses a --level there are no figures for: only flow and loggp (default), and flow only on a @topo. */
gboolean tt_measured_time_check(const TtOptions *options, const TtTopology *topo, GError **error);

/* Microseconds, by the level asked for; NAN if the closed form has nothing to say. FALSE with an error where
 * there is no plan to simulate. @node: what @topo is to NCCL. */
gboolean tt_measured_time_us(const TtOptions *options, const TtTopology *topo,
                             const TtNcclXml *node, const TtReplay *replay,
                             const TtMeasuredRow *row, const TtNcclChoice *choice, double *time_us,
                             GError **error);

/* The same, in words. */
const char *tt_measured_time_source(const TtOptions *options);
