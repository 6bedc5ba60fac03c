/* stretch.h - runs that neither end soon nor repeat: few rounds tell of many. Private to sim/.
 *
 * Where the parts of a plan go at paces of their own, no state recurs (leap.h). But what R rounds take still
 * grows in a straight line once all that goes on goes on: with T(R/4), T(R/2) and T(R) simulated, each
 * with its start and its end, the slopes between them say how straight. When they are equal within the
 * tolerance asked for, the rest is a multiple of the last slope.
 *
 * Where connections have a gap between messages, links have room and buffers last, rounds take the largest
 * gap in the end, and nothing is faster: two runs, of 8 and 16 rounds, then tell how far they are
 * from that. The error stated is what the rest of the filling is guessed to cost.
 *
 * Only where a tolerance was asked for that is larger than that of leaps by default.
 */
#pragma once
#include "sim/engine.h"

/* tt_engine_run(), or nearly. */
gboolean tt_engine_run_long(TtEngine *self, double tolerance, GError **error);
