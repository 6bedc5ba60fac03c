/* barrier.h - all ranks wait for all: in shared memory if one process runs them, else by messages along a
 * binary tree, up and down again.
 */
#pragma once
#include "exec/rank.h"

/* Connections the tree needs: up from every rank but 0 to its parent, and down. */
#define TT_BARRIER_CONNECTIONS(n_ranks) (2 * ((n_ranks)-1))

/* Opens this rank's ends of them; after the job's own. */
void tt_barrier_open(TtRank *self);

/* FALSE if the team was aborted or a wire failed. */
gboolean tt_barrier_wait(TtRank *self);
