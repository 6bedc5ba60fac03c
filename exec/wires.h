/* wires.h - a rank's wires: one for each transport in use, pumped between moves.
 */
#pragma once
#include "exec/rank.h"

/* Which of them leads to @peer. One transport for all: one wire for all. */
static inline TtReach
tt_wires_reach(const TtRank *self, guint peer)
{
    const TtRegion *region = self->region;

    if (region->transports[TT_INSIDE] == region->transports[TT_ACROSS])
        return TT_INSIDE;
    return region->ranks[peer].host == region->ranks[self->rank].host ? TT_INSIDE : TT_ACROSS;
}

/* Opens them and writes this rank's addresses. FALSE: it has complained. */
gboolean tt_wires_open(TtRank *self);
void tt_wires_close(TtRank *self);

/* At least @bytes of memory for the ends of a job. FALSE: it has complained. */
gboolean tt_wires_make_room(TtRank *self, TtReachWires *reach, gsize bytes);

/* A job's ends in the order of their connections, and one of them then. */
void tt_wires_sort_ends(TtReachWires *reach);
const TtWireEnd *tt_wires_find_end(const TtRank *self, guint peer, guint32 connection,
                                   gboolean sends);
gboolean tt_wires_begin(TtRank *self, TtReachWires *reach);

/* Carries what can be carried; *moved (may be NULL): something arrived. FALSE: it has complained. */
gboolean tt_wires_pump(TtRank *self, gboolean *moved);

/* Returns when everything handed over is sure to leave. FALSE if the team was aborted or a wire failed. */
gboolean tt_wires_flush(TtRank *self);

/* Until something may have arrived. */
void tt_wires_sleep(TtRank *self, int timeout_ms);
