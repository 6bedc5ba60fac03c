/* remote.c - what a process of a spread team tells the others, and what it waits for.
 */
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

/* --- hearing ------------------------------------------------------------------------------------- */

static void
mark_all_silent(TtRemote *self)
{
    gint64 now_us = g_get_monotonic_time();

    for (guint p = 1; p < self->n_processes; p++)
        if (now_us - self->heard_us[p] > SILENT_US)
            tt_remote_mark_silent(self, p);
}

gboolean
tt_remote_turn(TtRemote *self, GError **error)
{
    if (!tt_remote_hear(self, 0, error))
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
        if (!tt_remote_hear(self, 20, error))
            return FALSE;
        missing = 0;
        for (guint p = 1; p < self->n_processes; p++)
            missing += self->heard_us[p] < begin_us;
    }
    for (guint p = 1; p < self->n_processes; p++)
        if (self->heard_us[p] < begin_us)
            tt_remote_mark_silent(self, p);
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
        if (!tt_remote_hear(self, 100, error))
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
tt_remote_lost_root(const TtRemote *self)
{
    double patience_s = self->watch->timeout_s + 2. * ALIVE_US / G_USEC_PER_SEC;

    return !tt_remote_is_root(self) && tt_remote_root_silent_s(self) > patience_s;
}

gboolean
tt_remote_wait_verdict(TtRemote *self, GError **error)
{
    gint64 end_us = g_get_monotonic_time() + VERDICT_MS * 1000;

    if (tt_remote_is_root(self) || self->aborted)
        return FALSE;
    send_progress(self);
    while (g_get_monotonic_time() < end_us && !tt_remote_lost_root(self))
        if (!tt_remote_hear(self, 50, error))
            return TRUE;
    return FALSE;
}
