/* ping.h - a short ping-pong between ranks 0 and 1: how far apart they are just now.
 *
 * In shared memory on two cache lines of their own; over a wire, on two connections of their own.
 */
#pragma once
#include "exec/rank.h"

/* Connections it needs; none if ranks 0 and 1 share memory and this process runs them. */
#define TT_PING_CONNECTIONS 2
gboolean tt_ping_needs_connections(const TtRegion *region);

/* Opens this rank's ends of them; after the job's own. */
void tt_ping_open(TtRank *self);

/* One-way latency, by rank 0 into region->flag_s. All other ranks return at once. FALSE if the team was aborted or a
 * wire failed. */
gboolean tt_ping_measure(TtRank *self);
