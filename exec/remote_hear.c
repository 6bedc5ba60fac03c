/* remote_hear.c - what others tell is written where a rank of this process would have: every message, checked.
 */
#include "exec/remote_private.h"

#include <string.h>

/* Reads @bytes off the front of what is left of a message. FALSE if there is not so much. */
static gboolean
take(TtControlMessage *m, gpointer to, gsize bytes)
{
    if (m->bytes < bytes)
        return FALSE;
    memcpy(to, m->data, bytes);
    m->data += bytes;
    m->bytes -= bytes;
    return TRUE;
}

static gboolean
take_done(TtRegion *region, guint rank, TtControlMessage *m)
{
    TtJob *job = &region->job;
    TtRankBlock *block = &region->ranks[rank];
    TtRemoteDone d;

    if (!take(m, &d, sizeof d) || d.n_times != job->options.repeats ||
        !take(m, &job->wrong[rank * job->n_parts], sizeof *job->wrong * job->n_parts) ||
        !take(m, &job->time_s[rank * d.n_times], sizeof *job->time_s * d.n_times))
        return FALSE;
    if (d.n_stamps != (job->stamps ? tt_job_n_stamps(job) : 0) ||
        (d.n_stamps > 0 &&
         !take(m, job->stamps + rank * d.n_stamps, sizeof *job->stamps * d.n_stamps)))
        return FALSE;
    if (d.n_waited != (job->waited ? region->n_ranks : 0) ||
        (d.n_waited > 0 &&
         !take(m, job->waited + (gsize)rank * d.n_waited, sizeof *job->waited * d.n_waited)))
        return FALSE;
    if (d.n_events > 0 &&
        (!job->events || d.n_events > job->event_first[rank + 1] - job->event_first[rank] ||
         !take(m, job->events + job->event_first[rank], sizeof *job->events * d.n_events)))
        return FALSE;
    block->tick_s = d.tick_s;
    block->n_events = d.n_events;
    return TRUE;
}

static gboolean
hear_ready(TtRemote *self, TtControlMessage *m, guint first, guint n)
{
    guint32 number;

    if (!take(m, &number, sizeof number))
        return FALSE;
    for (guint r = first; r < first + n; r++) {
        TtRankBlock *block = &self->region->ranks[r];

        if (!take(m, &block->signature, sizeof block->signature))
            return FALSE;
        atomic_store_explicit(&block->ready, number, memory_order_release);
    }
    return TRUE;
}

static gboolean
hear_done(TtRemote *self, TtControlMessage *m, guint first, guint n)
{
    guint32 number;

    if (!take(m, &number, sizeof number) || number != self->number)
        return FALSE;
    for (guint r = first; r < first + n; r++) {
        if (!take_done(self->region, r, m))
            return FALSE;
        atomic_store_explicit(&self->region->ranks[r].finished, number, memory_order_release);
    }
    return TRUE;
}

static gboolean
hear_progress(TtRemote *self, TtControlMessage *m, guint first, guint n)
{
    TtRegion *region = self->region;
    TtJob *job = &region->job;

    for (guint r = first; r < first + n; r++) {
        TtRankBlock *block = &region->ranks[r];
        TtRemoteProgress p;
        guint64 done;

        if (!take(m, &p, sizeof p))
            return FALSE;
        block->trouble = p.trouble;
        atomic_store(&block->wait_peer, p.wait_peer);
        atomic_store(&block->wait_lane, p.wait_lane);
        atomic_store(&block->heartbeat, p.heartbeat);
        atomic_store_explicit(&block->state, p.state, memory_order_release);
        self->watch->status[r] = p.status;
        self->watch->stopped_by[r] = p.stopped_by;
        for (guint l = 0; l < p.n_lanes; l++) {
            if (!take(m, &done, sizeof done))
                return FALSE;
            if (p.number == self->number && job->done && l < job->n_lanes)
                atomic_store(&job->done[r * job->done_stride + l], done);
        }
    }
    return TRUE;
}

static void
set_lost(const TtRemote *self, guint process, GError **error)
{
    const char *name = tt_control_name(self->control, process);
    g_autofree char *how = NULL;
    guint first, n;

    tt_control_ranks(self->control, process, &first, &n);
    if (self->left[process])
        how = g_strdup_printf("%s left early: its process has ended", name);
    else
        how = g_strdup_printf("%s died: its process has gone (killed, or its machine or network "
                              "failed)",
                              name);
    tt_diagnose_gone(self->region, first, how,
                     self->left[process] ? TT_EXEC_ERROR_LEFT : TT_EXEC_ERROR_DEAD, error);
}

/* It may say why. */
static void
hear_leave(TtRemote *self, TtControlMessage *m, GError **error)
{
    TtTrouble trouble;

    self->left[m->process] = TRUE;
    if (take(m, &trouble, sizeof trouble)) {
        trouble.text[sizeof trouble.text - 1] = '\0';
        g_set_error_literal(error, TT_EXEC_ERROR, (gint)trouble.code, trouble.text);
    } else {
        set_lost(self, m->process, error);
    }
}

static void
set_nonsense(const TtRemote *self, const TtControlMessage *m, GError **error)
{
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_NETWORK,
                "%s said what this process does not understand (message %u)",
                tt_control_name(self->control, m->process), m->kind);
}

static gboolean
hear_as_root(TtRemote *self, TtControlMessage *m, GError **error)
{
    guint first, n;
    gboolean good;

    tt_control_ranks(self->control, m->process, &first, &n);
    self->heard_us[m->process] = g_get_monotonic_time();
    switch (m->kind) {
    case TT_REMOTE_READY: good = hear_ready(self, m, first, n); break;
    case TT_REMOTE_PROGRESS: good = hear_progress(self, m, first, n); break;
    case TT_REMOTE_DONE: good = hear_done(self, m, first, n); break;
    case TT_REMOTE_LEAVE: hear_leave(self, m, error); return FALSE;
    default: good = FALSE;
    }
    if (!good)
        set_nonsense(self, m, error);
    return good;
}

static gboolean
hear_as_other(TtRemote *self, TtControlMessage *m, GError **error)
{
    TtTrouble trouble;

    self->heard_us[0] = g_get_monotonic_time();
    switch (m->kind) {
    case TT_REMOTE_ALIVE:
        self->changed_us = 0; /* answers, though there be no news */
        return TRUE;
    case TT_REMOTE_JOB:
        g_clear_pointer(&self->job, g_bytes_unref);
        self->job = g_bytes_new(m->data, m->bytes);
        return TRUE;
    case TT_REMOTE_GO:
        if (take(m, &self->go, sizeof self->go))
            return TRUE;
        break;
    case TT_REMOTE_RESULT:
        if (m->bytes != self->region->job.n_parts * sizeof *self->results)
            break;
        g_free(self->results);
        self->results = g_memdup2(m->data, m->bytes);
        return TRUE;
    case TT_REMOTE_LEAVE: self->left[0] = TRUE; return TRUE;
    case TT_REMOTE_ABORT:
        if (!take(m, &trouble, sizeof trouble))
            break;
        trouble.text[sizeof trouble.text - 1] = '\0';
        self->aborted = TRUE;
        g_set_error_literal(error, TT_EXEC_ERROR, (gint)trouble.code, trouble.text);
        return FALSE;
    default: break;
    }
    set_nonsense(self, m, error);
    return FALSE;
}

/* Looks as if stopped, until it is heard of. */
void
tt_remote_mark_silent(TtRemote *self, guint process)
{
    guint first, n;

    tt_control_ranks(self->control, process, &first, &n);
    for (guint r = first; r < first + n; r++)
        self->watch->stopped_by[r] = TT_WATCH_SILENT;
}

gboolean
tt_remote_hear(TtRemote *self, int timeout_ms, GError **error)
{
    TtControlMessage m;
    gboolean root = tt_remote_is_root(self);

    while (tt_control_receive(self->control, timeout_ms, &m)) {
        timeout_ms = 0;
        if (m.kind == TT_CONTROL_LOST) {
            if (!root && self->left[0])
                continue;
            set_lost(self, m.process, error);
            return FALSE;
        }
        if (!(root ? hear_as_root(self, &m, error) : hear_as_other(self, &m, error)))
            return FALSE;
    }
    return TRUE;
}
