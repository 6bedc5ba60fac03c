#include "exec/strike.h"

#include <signal.h>
#include <unistd.h>

gboolean
tt_fault_check(const TtRegion *region, GError **error)
{
    TtFaultKind kind = region->fault.kind;

    if (kind < TT_FAULT_CUT || region->transports[TT_INSIDE] || region->transports[TT_ACROSS])
        return TRUE;
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                "fault %s needs connections over a network (--transport tcp or verbs)",
                tt_fault_name(kind));
    return FALSE;
}

static gboolean
is_for(const TtRank *self, TtFaultKind kind)
{
    const TtFault *fault = &self->region->fault;

    return fault->kind == kind && fault->rank == self->rank;
}

static void
harm(TtRank *self, TtHarm how)
{
    guint peer = self->region->fault.peer;

    if (peer >= self->region->n_ranks)
        peer = (self->rank + 1) % self->region->n_ranks;
    for (guint i = 0; i < TT_N_REACHES; i++)
        if (self->reach[i].wire)
            self->reach[i].transport->harm(self->reach[i].wire, peer, how);
}

void
tt_fault_strike_now(TtRank *self)
{
    const TtFault *fault = &self->region->fault;
    gboolean first = self->iterations == fault->after;

    switch (fault->kind) {
    case TT_FAULT_KILL: raise(SIGKILL); break;
    case TT_FAULT_STOP:
        if (first)
            raise(SIGSTOP);
        break;
    case TT_FAULT_EXIT: _exit(0);
    case TT_FAULT_DELAY: g_usleep((gulong)(fault->time_s * 1e6)); break;
    case TT_FAULT_CORRUPT: self->spoil_next |= first; break;
    case TT_FAULT_CUT: harm(self, TT_HARM_CUT); break;
    case TT_FAULT_HALF_OPEN: harm(self, TT_HARM_SILENT); break;
    case TT_FAULT_STRANGER:
        if (first)
            harm(self, TT_HARM_NOISE);
        break;
    default: break;
    }
}

void
tt_fault_missign(TtRank *self)
{
    if (is_for(self, TT_FAULT_MISMATCH) && self->iterations >= self->region->fault.after)
        self->region->ranks[self->rank].signature.count++;
}

void
tt_fault_stay_away(TtRank *self)
{
    if (!is_for(self, TT_FAULT_ABSENT))
        return;
    while (!atomic_load(&self->region->aborted))
        g_usleep(10000);
}
