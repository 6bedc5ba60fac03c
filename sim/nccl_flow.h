/* nccl_flow.h - NCCL's choice as a plan, and how long the simulator says it takes.
 *
 *     choice  -->  plan       what NCCL would run, on the rings, trees and heads its search found
 *     costs   -->  profile    what its steps cost: by kind of connection, for this one operation
 *     both    -->  tt_sim_run  flows on the topology's links, folded and leapt over
 *
 * Constants are those of the closed form (models/nccl_time.h), and so is the time where all is even. Where
 * channels, nodes or NICs do not carry the same, or links are shared with others, only this one knows.
 * docs/nccl.md tells which figure of the closed form becomes what.
 */
#pragma once
#include "algos/schedule.h"
#include "models/nccl_time.h"
#include "sim/sim.h"

/* One operation as NCCL was asked for it. */
typedef struct {
    TtNcclOp op;
    TtNcclChoice choice;
    TtType type;
    TtRedop redop;
    guint root; /* broadcast and reduce */
} TtNcclCall;

/* Where it runs, and what its steps cost there. Borrowed. */
typedef struct {
    const TtTopology *topo;
    const TtNcclComm *comm; /* of this topology's nodes; maybe fewer of them */
    const TtNcclMachine *machine;
    const double *costs; /* TT_N_COSTS */
    const TtMachineEffects *effects;
    const TtNcclXml
        *node; /* the node comm was made of; NULL: which NICs channels use is not known */
} TtNcclPlace;

/* The schedule of @call->choice: rounds are NCCL's loops, messages its chunks, slots what its buffers hold of
 * them. NULL with an error (TT_PLAN_ERROR_USAGE, TT_NCCL_ERROR_USAGE) where there is none. */
TtPlan *tt_nccl_plan(const TtNcclComm *comm, const TtNcclCall *call, GError **error);

/* What nothing that leaves nodes by NCCL's NICs can beat: @plan is of @call. @limit (may be NULL): what sets it;
 * the caller frees it. */
TtTime tt_nccl_bound_ps(const TtNcclPlace *place, const TtNcclCall *call, const TtPlan *plan,
                        char **limit);

/* Step costs of @call where messages are those of @plan, made by tt_nccl_plan(). */
TtProfile *tt_nccl_profile(const TtNcclPlace *place, const TtNcclCall *call, const TtPlan *plan);

/* Microseconds of one operation, as nccl-tests counts them. @result (may be NULL): the simulation alone,
 * without the kernel's start and the host; with its timeline if @record. Clear it. */
gboolean tt_nccl_flow_us(const TtNcclPlace *place, const TtNcclCall *call, gboolean record,
                         double *time_us, TtSimResult *result, GError **error);
