#include "exec/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* How often to look although nothing was reported; without pid descriptors this finds deaths. */
#define LOOK_MS          50
#define LOOK_NO_PIDFD_MS 10

/* After a death the others need a moment to run into the gap, so that they can be named. */
#define GRACE_AFTER_DEATH_US 30000

/* Ranks a message describes before it says "and n more". */
#define MOST_NAMED 8

/* --- words -------------------------------------------------------------------------------------
 */

static void
append_step(GString *text, const TtRegion *region, guint rank, guint lane, guint64 number)
{
    const TtJob *job = &region->job;
    const TtJobLane *l = &job->lanes[rank * job->plan.n_lanes + lane];
    guint64 per_iteration = l->n_steps * job->plan.n_rounds, in_iteration = number % per_iteration;
    guint64 step = in_iteration % l->n_steps;

    g_string_append_printf(text,
                           "lane %u iteration %" G_GUINT64_FORMAT " round %" G_GUINT64_FORMAT
                           " step %" G_GUINT64_FORMAT " (%s)",
                           lane, number / per_iteration, in_iteration / l->n_steps, step,
                           tt_op_name(l->steps[step].step.op));
}

static guint64
steps_done(const TtRegion *region, guint rank, guint lane)
{
    const TtJob *job = &region->job;

    return atomic_load_explicit(&job->done[rank * job->done_stride + lane], memory_order_relaxed);
}

/* "; its last finished step is ..." of the lane that got least far. */
static void
append_last_step(GString *text, const TtRegion *region, guint rank)
{
    guint lane = 0;

    if (!region->job.lanes)
        return;
    for (guint l = 1; l < region->job.plan.n_lanes; l++)
        if (steps_done(region, rank, l) < steps_done(region, rank, lane))
            lane = l;
    if (steps_done(region, rank, lane) == 0) {
        g_string_append(text, ", no step finished");
        return;
    }
    g_string_append(text, ", last finished step: ");
    append_step(text, region, rank, lane, steps_done(region, rank, lane) - 1);
}

/* "rank 0 waits for a message from rank 1 at lane 0 ..."; FALSE if it does not wait. */
static gboolean
append_wait(GString *text, const TtRegion *region, guint rank)
{
    const TtRankBlock *block = &region->ranks[rank];
    guint32 state = atomic_load_explicit(&block->state, memory_order_relaxed);
    guint32 peer = atomic_load_explicit(&block->wait_peer, memory_order_relaxed);
    guint32 lane = atomic_load_explicit(&block->wait_lane, memory_order_relaxed);

    switch (state) {
    case TT_RANK_WAITS_MESSAGE:
        g_string_append_printf(text, "rank %u waits for a message from rank %u", rank, peer);
        break;
    case TT_RANK_WAITS_SLOT:
        g_string_append_printf(text, "rank %u waits for rank %u to free a slot", rank, peer);
        break;
    case TT_RANK_WAITS_LANE:
        g_string_append_printf(text, "rank %u waits for another lane of its own", rank);
        break;
    case TT_RANK_WAITS_BARRIER:
        g_string_append_printf(text, "rank %u waits at the barrier", rank);
        break;
    default: return FALSE;
    }
    if (lane != TT_NO_LANE && region->job.lanes) {
        g_string_append(text, ", ");
        append_step(text, region, rank, lane, steps_done(region, rank, lane));
    }
    return TRUE;
}

/* --- looking -----------------------------------------------------------------------------------
 */

/* Reaps; remembers stops. The first rank found dead, or n_ranks. */
static guint
look_for_death(TtWatch *self, int *status)
{
    guint n = self->region->n_ranks;

    for (guint r = 0; self->pids && r < n; r++) {
        int now;

        if (self->pids[r] == 0)
            continue;
        while (waitpid(self->pids[r], &now, WNOHANG | WUNTRACED | WCONTINUED) == self->pids[r]) {
            if (!WIFSTOPPED(now) && !WIFCONTINUED(now)) {
                self->pids[r] = 0;
                *status = now;
                return r;
            }
            self->stopped_by[r] = WIFSTOPPED(now) ? WSTOPSIG(now) : 0;
        }
    }
    return n;
}

static void
set_dead(TtWatch *self, guint dead, int status, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    guint named = 0, more = 0;

    g_string_append_printf(text, "rank %u died", dead);
    if (WIFSIGNALED(status))
        g_string_append_printf(text, " of signal %d (%s)", WTERMSIG(status),
                               strsignal(WTERMSIG(status)));
    else
        g_string_append_printf(text, " with exit code %d", WEXITSTATUS(status));
    append_last_step(text, self->region, dead);
    for (guint r = 0; r < self->region->n_ranks; r++) {
        const TtRankBlock *block = &self->region->ranks[r];
        g_autoptr(GString) wait = g_string_new(NULL);

        if (r == dead || atomic_load(&block->wait_peer) != dead ||
            !append_wait(wait, self->region, r))
            continue;
        if (named++ < MOST_NAMED)
            g_string_append_printf(text, "; %s", wait->str);
        else
            more++;
    }
    if (more > 0)
        g_string_append_printf(text, "; and %u more", more);
    g_set_error_literal(error, TT_EXEC_ERROR, TT_EXEC_ERROR_DEAD, text->str);
}

/* Those that do not wait come first: they are what the others wait for. */
static void
set_hang(TtWatch *self, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    guint n = self->region->n_ranks, named = 0;

    g_string_append_printf(text, "no progress for %g s", self->timeout_s);
    for (guint pass = 0; pass < 2; pass++) {
        for (guint r = 0; r < n; r++) {
            int signal = self->stopped_by ? self->stopped_by[r] : 0;
            g_autoptr(GString) wait = g_string_new(NULL);
            gboolean waits = append_wait(wait, self->region, r) && signal == 0;

            if (atomic_load(&self->region->ranks[r].state) == TT_RANK_IDLE || waits != (pass == 1))
                continue;
            if (named++ >= MOST_NAMED)
                continue;
            if (waits) {
                g_string_append_printf(text, "; %s", wait->str);
                continue;
            }
            g_string_append_printf(text, "; rank %u %s", r,
                                   signal ? "is stopped by signal " : "is stuck");
            if (signal)
                g_string_append_printf(text, "%d (%s)", signal, strsignal(signal));
            append_last_step(text, self->region, r);
        }
    }
    if (named > MOST_NAMED)
        g_string_append_printf(text, "; and %u more", named - MOST_NAMED);
    g_set_error_literal(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HANG, text->str);
}

/* Grows whenever any rank gets anywhere. */
static guint64
activity(const TtRegion *region)
{
    guint64 sum = 0;

    for (guint r = 0; r < region->n_ranks; r++) {
        sum += atomic_load_explicit(&region->ranks[r].heartbeat, memory_order_relaxed);
        sum += atomic_load_explicit(&region->ranks[r].finished, memory_order_relaxed);
        for (guint l = 0; l < region->job.plan.n_lanes; l++)
            sum += steps_done(region, r, l);
    }
    return sum;
}

static gboolean
all_finished(const TtRegion *region, guint32 number)
{
    for (guint r = 0; r < region->n_ranks; r++)
        if (atomic_load_explicit(&region->ranks[r].finished, memory_order_acquire) != number)
            return FALSE;
    return TRUE;
}

/* Sleeps until a rank reports or dies, or it is time to look again. */
static void
sleep_until_news(TtWatch *self)
{
    guint n = self->pids ? self->region->n_ranks : 0;
    g_autofree struct pollfd *fds = g_new0(struct pollfd, n + 1);
    int timeout_ms = LOOK_MS;
    guint64 reports;

    fds[n] = (struct pollfd){ .fd = self->region->done_fd, .events = POLLIN };
    for (guint r = 0; r < n; r++) {
        fds[r] = (struct pollfd){ .fd = self->pids[r] ? self->pid_fds[r] : -1, .events = POLLIN };
        if (self->pid_fds[r] < 0)
            timeout_ms = LOOK_NO_PIDFD_MS;
    }
    if (poll(fds, n + 1, timeout_ms) > 0 && (fds[n].revents & POLLIN))
        while (read(self->region->done_fd, &reports, sizeof reports) < 0 && errno == EINTR)
            ;
}

/* As processes and as threads: a thread that leaves does not die. */
static gboolean
check_memory(const TtWatch *self, GError **error)
{
    for (guint r = 0; r < self->region->n_ranks; r++) {
        if (atomic_load(&self->region->ranks[r].state) != TT_RANK_NO_MEMORY)
            continue;
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                    "rank %u cannot map %d buffers of %" G_GUINT64_FORMAT
                    " MiB (see ulimit -v, or use a smaller size)",
                    r, TT_N_BUFFERS, (self->region->max_bytes >> 20) + 1);
        return FALSE;
    }
    return TRUE;
}

gboolean
tt_watch_alive(TtWatch *self, GError **error)
{
    int status = 0;
    guint dead = look_for_death(self, &status);

    if (!check_memory(self, error))
        return FALSE;
    if (dead == self->region->n_ranks)
        return TRUE;
    g_usleep(GRACE_AFTER_DEATH_US);
    set_dead(self, dead, status, error);
    return FALSE;
}

gboolean
tt_watch_wait(TtWatch *self, guint32 number, GError **error)
{
    guint64 last = activity(self->region);
    gint64 since_us = g_get_monotonic_time();

    while (!all_finished(self->region, number)) {
        guint64 now;

        sleep_until_news(self);
        if (!tt_watch_alive(self, error))
            return FALSE;
        now = activity(self->region);
        if (now != last) {
            last = now;
            since_us = g_get_monotonic_time();
        } else if ((double)(g_get_monotonic_time() - since_us) > self->timeout_s * 1e6) {
            set_hang(self, error);
            return FALSE;
        }
    }
    return TRUE;
}

static guint
count_alive(const TtWatch *self)
{
    guint n = 0;

    for (guint r = 0; r < self->region->n_ranks; r++)
        n += self->pids[r] != 0;
    return n;
}

void
tt_watch_end(TtWatch *self, double grace_s)
{
    gint64 end_us = g_get_monotonic_time() + (gint64)(grace_s * 1e6);
    int status;

    while (count_alive(self) > 0 && g_get_monotonic_time() < end_us) {
        if (look_for_death(self, &status) == self->region->n_ranks)
            g_usleep(200);
    }
    for (guint r = 0; r < self->region->n_ranks; r++)
        if (self->pids[r] != 0)
            kill(self->pids[r], SIGKILL);
    for (guint r = 0; r < self->region->n_ranks; r++) {
        while (self->pids[r] != 0 && waitpid(self->pids[r], &status, 0) < 0 && errno == EINTR)
            ;
        self->pids[r] = 0;
    }
}
