/* tuning.h - into how many rounds to cut a plan: chosen by trying, never baked into an algorithm.
 */
#pragma once
#include "sim/sim.h"

/* The slot_bytes for which @algorithm is predicted fastest on @topo; 0: no rounds. A pure function
 * of its arguments. @spec's own slot_bytes is ignored. */
guint64 tt_tune_slot_bytes(const char *algorithm, const TtPlanSpec *spec, const TtTopology *topo,
                           const TtSimOptions *options);
