/* nccl_flow_private.h - what nccl_flow.c, nccl_plan.c and nccl_profile.c share. */
#pragma once
#include "sim/nccl_flow.h"

#include <string.h>

/* Every channel as full as the fullest, which ends last: NCCL gives the last one what is left. At least
 * one element. For timing only. */
TtPlan *tt_nccl_full_plan(const TtNcclComm *comm, const TtNcclCall *call, GError **error);

/* The same on fewer channels: those that take the same way are one, with messages so many times as large.
 * *@times: how many are one. NULL if no two are alike. */
TtPlan *tt_nccl_merged_plan(const TtNcclComm *comm, const TtNcclCall *call, const TtPlan *full,
                            guint *times);

/* Bytes of a message if all are equal, which simulations of these plans take them to be. */
double tt_nccl_message_bytes(const TtPlan *plan);
