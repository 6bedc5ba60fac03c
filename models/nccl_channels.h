/* nccl_channels.h - from the graphs of one node to the channels of a communicator. */
#pragma once
#include "models/nccl_env.h"

/* Most channels there can be: NCCL's MAXCHANNELS. */
guint tt_nccl_max_channels(guint version);

/* @comm->graph as found on each of its nodes, alike on all: merges them and sets the counts of channels.
 * @env may be NULL. */
void tt_nccl_channels_set(TtNcclComm *comm, const TtNcclEnv *env);
