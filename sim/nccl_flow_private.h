/* nccl_flow_private.h - what nccl_flow.c, nccl_plan.c and nccl_profile.c share. */
#pragma once
#include "sim/nccl_flow.h"
#include "sim/network.h"

#include <string.h>

/* Every channel as full as the fullest, which ends last: NCCL gives the last one what is left. At least
 * one element. For timing only. */
TtPlan *tt_nccl_full_plan(const TtNcclComm *comm, const TtNcclCall *call, GError **error);

/* The same on fewer channels: those that take the same way are one, with messages so many times as large.
 * *@times: how many are one. NULL if no two are alike. */
TtPlan *tt_nccl_merged_plan(const TtNcclComm *comm, const TtNcclCall *call, const TtPlan *full,
                            guint *times);

/* A topology on which channels leave and enter nodes by the NICs NCCL's search gave them. Borrows the place,
 * and is borrowed by its own net. */
typedef struct {
    TtNetwork net;
    const TtTopology *topo;
    guint per_node, n_channels;
    /* [channel][place] NIC by which it talks to other nodes; TT_NO_NIC: its own */
    guint16 nic[TT_NCCL_MAX_CHANNELS][TT_NCCL_MAX_GPUS];
} TtNcclRoutes;
#define TT_NO_NIC G_MAXUINT16

void tt_nccl_routes_init(TtNcclRoutes *routes, const TtNcclPlace *place, guint algo);

/* Bytes of a message if all are equal, which simulations of these plans take them to be. */
double tt_nccl_message_bytes(const TtPlan *plan);
