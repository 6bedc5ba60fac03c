/* trace.h - timelines as a Chrome trace, which ui.perfetto.dev opens.
 *
 * A process per rank (and per timeline, side by side, where there are several), a thread per lane;
 * a slice per step with its bytes and peers, its waiting as a slice inside; an arrow per message;
 * counters in a process of their own. Perfetto shows nanoseconds; the file holds picoseconds.
 */
#pragma once
#include "algos/timeline.h"

/* Caller frees. @timelines need not be sorted. */
char *tt_trace_json(const TtTimeline *const *timelines, guint n);
