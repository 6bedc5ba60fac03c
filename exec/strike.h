/* strike.h - where in a rank's life the faults of fault.h happen.
 */
#pragma once
#include "exec/rank.h"

/* FALSE: it cannot happen in this plan, and the rank has complained. */
gboolean tt_fault_strike_now(TtRank *self);

/* Before every iteration. */
static inline gboolean
tt_fault_strike(TtRank *self)
{
    const TtFault *fault = &self->region->fault;

    return G_LIKELY(fault->kind == TT_FAULT_NONE) || fault->rank != self->rank ||
           self->iterations < fault->after || tt_fault_strike_now(self);
}

/* Before the rank says what it is to run. */
void tt_fault_missign(TtRank *self);

/* Can what is asked for happen to this team, whose ranks may be @threads of one process? */
gboolean tt_fault_check(const TtRegion *region, gboolean threads, GError **error);

/* Before it arrives. */
void tt_fault_stay_away(TtRank *self);
