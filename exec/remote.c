#include "exec/job.h"
#include "exec/remote_private.h"

#include <string.h>
#include <unistd.h>

/* How often a process tells how far its ranks are: if anything moved, and if not, so that it is known to live. */
#define TELL_US  (G_USEC_PER_SEC / 20)
#define ALIVE_US (G_USEC_PER_SEC / 2)

/* Not heard of for so long: does not answer. */
#define SILENT_US (2 * G_USEC_PER_SEC)

/* One that lives answers within LOOK_MS and TELL_US. */
#define ROLL_US (G_USEC_PER_SEC / 2)

/* Between jobs the root owes nobody a word; it is given this much more than the time-out. */
#define IDLE_ROOT_US (60 * G_USEC_PER_SEC)

/* How long the root may take to explain what went wrong here. */
#define VERDICT_MS 3000

/* --- telling ------------------------------------------------------------------------------------- */

static void
tell_root(TtRemote *self, guint32 kind, GByteArray *bytes)
{
    tt_control_send(self->control, 0, kind, bytes->data, bytes->len);
}

static void
tell_all(TtRemote *self, guint32 kind, gconstpointer data, gsize bytes)
{
    for (guint p = 1; p < self->n_processes; p++)
        tt_control_send(self->control, p, kind, data, bytes);
}

static guint32
end_of_local(const TtRegion *region)
{
    return region->first_rank + region->n_local;
}

static void
send_progress(TtRemote *self)
{
    const TtRegion *region = self->region;
    const TtJob *job = &region->job;
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    for (guint r = region->first_rank; r < end_of_local(region); r++) {
        const TtRankBlock *block = &region->ranks[r];
        TtRemoteProgress p = { .state = atomic_load(&block->state),
                               .wait_peer = atomic_load(&block->wait_peer),
                               .wait_lane = atomic_load(&block->wait_lane),
                               .heartbeat = atomic_load(&block->heartbeat),
                               .ready = atomic_load(&block->ready),
                               .n_lanes = job->done ? job->n_lanes : 0,
                               .status = self->watch->status ? self->watch->status[r] : -1,
                               .stopped_by =
                                   self->watch->stopped_by ? self->watch->stopped_by[r] : 0,
                               .number = self->number,
                               .trouble = block->trouble };

        g_byte_array_append(bytes, (const guint8 *)&p, sizeof p);
        for (guint l = 0; l < p.n_lanes; l++) {
            guint64 done = atomic_load(&job->done[r * job->done_stride + l]);

            g_byte_array_append(bytes, (const guint8 *)&done, sizeof done);
        }
    }
    self->told_us = g_get_monotonic_time();
    if (self->told && self->told->len == bytes->len &&
        memcmp(self->told->data, bytes->data, bytes->len) == 0 &&
        self->told_us - self->changed_us < ALIVE_US)
        return;
    self->changed_us = self->told_us;
    tell_root(self, TT_REMOTE_PROGRESS, bytes);
    g_clear_pointer(&self->told, g_byte_array_unref);
    self->told = g_steal_pointer(&bytes);
}

void
tt_remote_send_job(TtRemote *self, guint32 number)
{
    self->number = number;
    for (guint p = 1; p < self->n_processes; p++) {
        guint first, n;
        g_autoptr(GBytes) job = NULL;

        tt_control_ranks(self->control, p, &first, &n);
        job = tt_job_pack(self->region, first, n);
        tt_control_send(self->control, p, TT_REMOTE_JOB, g_bytes_get_data(job, NULL),
                        g_bytes_get_size(job));
        self->heard_us[p] = g_get_monotonic_time();
    }
}

void
tt_remote_send_go(TtRemote *self, guint32 number)
{
    tell_all(self, TT_REMOTE_GO, &number, sizeof number);
}

void
tt_remote_send_result(TtRemote *self, const TtRunResult *results)
{
    guint n = self->region->job.n_parts;
    g_autofree TtRunResult *bare = g_memdup2(results, n * sizeof *results);

    for (guint i = 0; i < n; i++) {
        bare[i].timeline = NULL;
        bare[i].arrivals = NULL;
    }
    tell_all(self, TT_REMOTE_RESULT, bare, n * sizeof *bare);
}

void
tt_remote_send_abort(TtRemote *self, const GError *why)
{
    TtTrouble trouble = { .code = (guint32)why->code };

    if (self->aborted)
        return;
    self->aborted = TRUE;
    g_strlcpy(trouble.text, why->message, sizeof trouble.text);
    if (tt_remote_is_root(self))
        tell_all(self, TT_REMOTE_ABORT, &trouble, sizeof trouble);
    else
        tt_control_send(self->control, 0, TT_REMOTE_LEAVE, &trouble, sizeof trouble);
}

void
tt_remote_send_ready(TtRemote *self, guint32 number)
{
    const TtRegion *region = self->region;
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    g_byte_array_append(bytes, (const guint8 *)&number, sizeof number);
    for (guint r = region->first_rank; r < end_of_local(region); r++)
        g_byte_array_append(bytes, (const guint8 *)&region->ranks[r].signature,
                            sizeof(TtSignature));
    tell_root(self, TT_REMOTE_READY, bytes);
}

/* --- results ------------------------------------------------------------------------------------- */

void
tt_remote_send_done(TtRemote *self, guint32 number)
{
    const TtRegion *region = self->region;
    const TtJob *job = &region->job;
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    send_progress(self);
    g_byte_array_append(bytes, (const guint8 *)&number, sizeof number);
    for (guint r = region->first_rank; r < end_of_local(region); r++) {
        const TtRankBlock *block = &region->ranks[r];
        TtRemoteDone d = { .n_events = job->options.record ? block->n_events : 0,
                           .n_stamps = job->stamps ? tt_job_n_stamps(job) : 0,
                           .tick_s = block->tick_s,
                           .n_times = job->options.repeats,
                           .n_waited = job->waited ? region->n_ranks : 0 };

        g_byte_array_append(bytes, (const guint8 *)&d, sizeof d);
        g_byte_array_append(bytes, (const guint8 *)&job->wrong[r * job->n_parts],
                            (guint)(sizeof *job->wrong * job->n_parts));
        g_byte_array_append(bytes, (const guint8 *)&job->time_s[r * job->options.repeats],
                            (guint)(sizeof *job->time_s * d.n_times));
        if (d.n_stamps > 0)
            g_byte_array_append(bytes, (const guint8 *)(job->stamps + r * d.n_stamps),
                                (guint)(sizeof *job->stamps * d.n_stamps));
        if (d.n_waited > 0)
            g_byte_array_append(bytes, (const guint8 *)(job->waited + (gsize)r * d.n_waited),
                                (guint)(sizeof *job->waited * d.n_waited));
        if (d.n_events > 0)
            g_byte_array_append(bytes, (const guint8 *)(job->events + job->event_first[r]),
                                (guint)(sizeof *job->events * d.n_events));
    }
    tell_root(self, TT_REMOTE_DONE, bytes);
}

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

/* --- hearing ------------------------------------------------------------------------------------- */

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
static void
mark_silent(TtRemote *self, guint process)
{
    guint first, n;

    tt_control_ranks(self->control, process, &first, &n);
    for (guint r = first; r < first + n; r++)
        self->watch->stopped_by[r] = TT_WATCH_SILENT;
}

static void
mark_all_silent(TtRemote *self)
{
    gint64 now_us = g_get_monotonic_time();

    for (guint p = 1; p < self->n_processes; p++)
        if (now_us - self->heard_us[p] > SILENT_US)
            mark_silent(self, p);
}

static gboolean
hear(TtRemote *self, int timeout_ms, GError **error)
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

gboolean
tt_remote_turn(TtRemote *self, GError **error)
{
    if (!hear(self, 0, error))
        return FALSE;
    if (tt_remote_is_root(self)) {
        mark_all_silent(self);
        if (g_get_monotonic_time() - self->told_us > ALIVE_US) {
            self->told_us = g_get_monotonic_time();
            tell_all(self, TT_REMOTE_ALIVE, NULL, 0);
        }
    } else if (g_get_monotonic_time() - self->told_us > TELL_US)
        send_progress(self);
    return TRUE;
}

gboolean
tt_remote_call_roll(TtRemote *self, GError **error)
{
    gint64 begin_us = g_get_monotonic_time();
    guint missing = self->n_processes;

    tell_all(self, TT_REMOTE_ALIVE, NULL, 0);
    while (missing > 0 && g_get_monotonic_time() - begin_us < ROLL_US) {
        if (!hear(self, 20, error))
            return FALSE;
        missing = 0;
        for (guint p = 1; p < self->n_processes; p++)
            missing += self->heard_us[p] < begin_us;
    }
    for (guint p = 1; p < self->n_processes; p++)
        if (self->heard_us[p] < begin_us)
            mark_silent(self, p);
    return TRUE;
}

/* --- the others' waits --------------------------------------------------------------------------- */

gboolean
tt_remote_wait_job(TtRemote *self, guint32 number, gboolean *more, GError **error)
{
    g_autoptr(GBytes) job = NULL;
    gconstpointer data;
    gsize bytes;

    gint64 end_us = g_get_monotonic_time() + (gint64)(self->watch->timeout_s * 1e6) + IDLE_ROOT_US;

    while (!self->job && !self->left[0]) {
        if (!hear(self, 100, error))
            return FALSE;
        if (g_get_monotonic_time() > end_us) {
            g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HANG,
                        "rank 0's process has neither said what to run nor left for %g s",
                        self->watch->timeout_s + 1e-6 * IDLE_ROOT_US);
            return FALSE;
        }
    }
    *more = self->job != NULL;
    if (!*more)
        return TRUE;
    job = g_steal_pointer(&self->job);
    self->number = number;
    g_clear_pointer(&self->results, g_free);
    data = g_bytes_get_data(job, &bytes);
    return tt_job_unpack(self->region, data, bytes, error);
}

gboolean
tt_remote_has_go(const TtRemote *self, guint32 number)
{
    return self->go == number;
}

gboolean
tt_remote_has_result(const TtRemote *self, TtRunResult *results)
{
    if (self->results && results)
        memcpy(results, self->results, self->region->job.n_parts * sizeof *results);
    return self->results != NULL;
}

double
tt_remote_root_silent_s(const TtRemote *self)
{
    return (double)(g_get_monotonic_time() - self->heard_us[0]) * 1e-6;
}

gboolean
tt_remote_wait_verdict(TtRemote *self, GError **error)
{
    gint64 end_us = g_get_monotonic_time() + VERDICT_MS * 1000;

    if (tt_remote_is_root(self) || self->aborted)
        return FALSE;
    send_progress(self);
    while (g_get_monotonic_time() < end_us)
        if (!hear(self, 50, error))
            return TRUE;
    return FALSE;
}
