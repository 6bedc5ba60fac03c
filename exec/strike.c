#include "exec/strike.h"

#include <signal.h>
#include <unistd.h>

#define NAP_US 10000

/* Kernels neither look at messages nor spoil them. */
static const char *
why_not_on_gpus(const TtRegion *region)
{
    if (region->wire.checksum)
        return "--checksum: kernels do not look at messages (it goes with shm, tcp and verbs)";
    if (region->fault.kind == TT_FAULT_CORRUPT)
        return "fault corrupt: kernels do not spoil messages (it goes with shm, tcp and verbs)";
    return NULL;
}

/* Ranks on GPUs are threads, too. */
static const char *
why_not_in_threads(const TtRegion *region)
{
    TtFaultKind kind = region->fault.kind;
    gboolean hits_process = kind == TT_FAULT_KILL || kind == TT_FAULT_STOP || kind == TT_FAULT_EXIT;

    return hits_process && region->n_local > 1
               ? "faults kill, stop and exit hit a process, and all ranks here are threads of one: "
                 "start one process per rank (--rank, or a launcher)"
               : NULL;
}

gboolean
tt_fault_check(const TtRegion *region, gboolean threads, GError **error)
{
    TtFaultKind kind = region->fault.kind;
    const char *why = region->is_gpu ? why_not_on_gpus(region) : NULL;

    if (!why && threads)
        why = why_not_in_threads(region);
    if (why) {
        g_set_error_literal(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE, why);
        return FALSE;
    }
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

static gboolean
is_connected(const TtRank *self, guint peer)
{
    for (guint i = 0; i < TT_N_REACHES; i++)
        for (guint e = 0; e < self->reach[i].ends->len; e++)
            if (g_array_index(self->reach[i].ends, TtWireEnd, e).peer == peer)
                return TRUE;
    return FALSE;
}

/* The one asked for, or the next that this plan connects this rank with; n_ranks if there is none. */
static guint
find_peer(const TtRank *self)
{
    guint n = self->region->n_ranks, asked = self->region->fault.peer;

    if (asked < n)
        return asked;
    for (guint i = 1; i < n; i++)
        if (is_connected(self, (self->rank + i) % n))
            return (self->rank + i) % n;
    return n;
}

/* A fault that cannot happen must not look like one that was survived. FALSE: it cannot, and the rank has said so. */
static gboolean
harm(TtRank *self, TtHarm how)
{
    guint n = self->region->n_ranks, peer = find_peer(self);
    g_autoptr(GString) others = g_string_new(NULL);
    g_autofree char *whom = NULL;
    g_autoptr(GError) error = NULL;

    if (peer < n && (how == TT_HARM_NOISE || is_connected(self, peer))) {
        for (guint i = 0; i < TT_N_REACHES; i++)
            if (self->reach[i].wire)
                self->reach[i].transport->harm(self->reach[i].wire, peer, how);
        return TRUE;
    }
    for (guint r = 0; r < n; r++)
        if (is_connected(self, r))
            g_string_append_printf(others, "%s %u", others->len ? "," : "; it has some with", r);
    if (peer < n)
        whom = g_strdup_printf(" with rank %u", peer);
    g_set_error(&error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                "fault %s: in this plan rank %u has no connection over a network%s%s",
                tt_fault_name(self->region->fault.kind), self->rank, whom ? whom : "", others->str);
    tt_rank_complain(self, TT_NO_RANK, error);
    return FALSE;
}

/* A rank that is slow does not hold up the end of a run that was given up. */
static void
sleep_unless_aborted(const TtRegion *region, double time_s)
{
    gint64 end_us = g_get_monotonic_time() + (gint64)(time_s * 1e6), left_us;

    while (!atomic_load(&region->aborted) && (left_us = end_us - g_get_monotonic_time()) > 0)
        g_usleep((gulong)MIN(left_us, NAP_US));
}

gboolean
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
    case TT_FAULT_DELAY: sleep_unless_aborted(self->region, fault->time_s); break;
    case TT_FAULT_CORRUPT: self->spoil_next |= first; break;
    case TT_FAULT_CUT: return harm(self, TT_HARM_CUT);
    case TT_FAULT_HALF_OPEN: return harm(self, TT_HARM_SILENT);
    case TT_FAULT_STRANGER: return !first || harm(self, TT_HARM_NOISE);
    default: break;
    }
    return TRUE;
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
        g_usleep(NAP_US);
}
