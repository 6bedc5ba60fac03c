/* nccl_flow_private.h - what nccl_flow.c, nccl_plan.c and nccl_profile.c share. */
#pragma once
#include "sim/nccl_flow.h"

#include <string.h>

TtPlan *tt_nccl_plan_of_bytes(const TtNcclComm *comm, const TtNcclCall *call, guint64 bytes,
                              GError **error);

/* Every channel as full as the fullest, which ends last: NCCL gives the last one what is left. At least
 * one element. For timing only. */
TtPlan *tt_nccl_full_plan(const TtNcclComm *comm, const TtNcclCall *call, GError **error);

/* Bytes of a message if all are equal, which simulations of these plans take them to be. */
double tt_nccl_message_bytes(const TtPlan *plan);
