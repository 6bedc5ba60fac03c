#include "exec/remote.h"

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
#define GRACE_AFTER_DEATH_US 80000
#define GRACE_AFTER_BREAK_US 300000

/* --- looking -----------------------------------------------------------------------------------
 */

/* Reaps; remembers stops and ends. */
static void
reap(TtWatch *self)
{
    for (guint r = 0; self->pids && r < self->region->n_ranks; r++) {
        int now;

        if (self->pids[r] == 0)
            continue;
        while (self->pids[r] != 0 &&
               waitpid(self->pids[r], &now, WNOHANG | WUNTRACED | WCONTINUED) == self->pids[r]) {
            self->stopped_by[r] = WIFSTOPPED(now) ? WSTOPSIG(now) : 0;
            if (!WIFSTOPPED(now) && !WIFCONTINUED(now)) {
                self->pids[r] = 0;
                self->status[r] = now;
            }
        }
    }
}

static gboolean
is_troubled(const TtRegion *region, guint rank)
{
    return atomic_load_explicit(&region->ranks[rank].state, memory_order_acquire) ==
           TT_RANK_TROUBLED;
}

/* A rank that ended without a word; n_ranks if there is none. */
static guint
find_dead(const TtWatch *self)
{
    guint n = self->region->n_ranks;

    for (guint r = 0; self->status && r < n; r++)
        if (self->status[r] >= 0 && !is_troubled(self->region, r))
            return r;
    return n;
}

/* One that told of trouble; a broken connection counts last. */
static guint
find_troubled(const TtRegion *region)
{
    guint found = region->n_ranks;

    for (guint r = 0; r < region->n_ranks; r++) {
        if (!is_troubled(region, r))
            continue;
        if (region->ranks[r].trouble.code != TT_EXEC_ERROR_NETWORK)
            return r;
        found = MIN(found, r);
    }
    return found;
}

/* A connection also breaks when the other side dies: that must come out as a death. */
static gboolean
is_settled(TtWatch *self, guint troubled)
{
    if (self->region->ranks[troubled].trouble.code != TT_EXEC_ERROR_NETWORK)
        return TRUE;
    if (self->broken_us == 0)
        self->broken_us = g_get_monotonic_time();
    return g_get_monotonic_time() - self->broken_us > GRACE_AFTER_BREAK_US;
}

/* A root that is alive says so now and then; without it nobody here knows of the others. */
static gboolean
is_root_silent(const TtWatch *self, GError **error)
{
    if (!self->remote || !tt_remote_lost_root(self->remote))
        return FALSE;
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HANG,
                "rank 0 does not answer, nor does its process: not a word for %g s",
                self->timeout_s);
    return TRUE;
}

/* The root sees more of what is wrong than this process does. */
static gboolean
leave_to_root(TtWatch *self, GError **error)
{
    guint n = self->region->n_ranks, dead = find_dead(self), troubled = find_troubled(self->region);

    if (dead == n && troubled == n)
        return TRUE;
    if (tt_remote_wait_verdict(self->remote, error) || is_root_silent(self, error))
        return FALSE;
    if (troubled < n)
        tt_diagnose_trouble(self->region, troubled, error);
    else
        tt_diagnose_death(self->region, dead, self->status[dead], error);
    return FALSE;
}

gboolean
tt_watch_alive(TtWatch *self, GError **error)
{
    guint n = self->region->n_ranks, dead, troubled;

    reap(self);
    if (self->remote && !tt_remote_turn(self->remote, error))
        return FALSE;
    if (self->remote && !tt_remote_is_root(self->remote))
        return leave_to_root(self, error);
    dead = find_dead(self);
    troubled = find_troubled(self->region);
    if (troubled < n && self->region->ranks[troubled].trouble.code != TT_EXEC_ERROR_NETWORK) {
        tt_diagnose_trouble(self->region, troubled, error);
        return FALSE;
    }
    if (dead < n) {
        g_usleep(GRACE_AFTER_DEATH_US);
        if (self->remote) /* what those of other processes wait for, now */
            tt_remote_turn(self->remote, NULL);
        tt_diagnose_death(self->region, dead, self->status[dead], error);
        return FALSE;
    }
    if (troubled == n || !is_settled(self, troubled))
        return TRUE;
    tt_diagnose_trouble(self->region, troubled, error);
    return FALSE;
}

static guint64
steps_done(const TtRegion *region, guint rank, guint lane)
{
    const TtJob *job = &region->job;

    return atomic_load_explicit(&job->done[rank * job->done_stride + lane], memory_order_relaxed);
}

/* Grows whenever the rank gets anywhere. */
static guint64
activity_of(const TtRegion *region, guint rank)
{
    const TtRankBlock *block = &region->ranks[rank];
    guint64 sum = (guint64)atomic_load_explicit(&block->heartbeat, memory_order_relaxed) +
                  atomic_load_explicit(&block->finished, memory_order_relaxed) +
                  atomic_load_explicit(&block->ready, memory_order_relaxed) +
                  atomic_load_explicit(&block->up, memory_order_relaxed);

    for (guint l = 0; region->job.done && l < region->job.n_lanes; l++)
        sum += steps_done(region, rank, l);
    return sum;
}

/* Ranks that get on together: all, or those of a collective that runs beside others, whose pace is not theirs. */
typedef struct {
    const TtJobPart *part; /* NULL: all */
    guint64 activity;
    gint64 since_us;
} Pace;

/* Of those whose progress this process hears of. */
static gboolean
is_watched(const TtWatch *self, guint rank)
{
    return rank - self->first_rank < self->n_ranks;
}

static guint64
activity(const TtWatch *self, const TtJobPart *part)
{
    guint n = part ? part->n_members : self->region->n_ranks;
    guint64 sum = 0;

    for (guint i = 0; i < n; i++) {
        guint rank = part ? part->members[i] : i;

        if (is_watched(self, rank))
            sum += activity_of(self->region, rank);
    }
    return sum;
}

/* Through with what they had to do, and waiting for others; whether those come, only the root sees. */
static gboolean
are_through(const TtWatch *self, const TtJobPart *part, guint32 number)
{
    const TtRegion *region = self->region;
    guint n = part ? part->n_members : region->n_ranks;

    if (!part && (!self->remote || tt_remote_is_root(self->remote)))
        return FALSE;
    for (guint i = 0; i < n; i++) {
        guint rank = part ? part->members[i] : i;
        const TtRankBlock *block = &region->ranks[rank];
        guint32 state = atomic_load_explicit(&block->state, memory_order_acquire);

        if (is_watched(self, rank) && state != TT_RANK_WAITS_BARRIER && state != TT_RANK_IDLE &&
            atomic_load_explicit(&block->finished, memory_order_acquire) != number)
            return FALSE;
    }
    return TRUE;
}

/* The root, which sees all, is to be the first to lose its patience. */
static double
patience_s(const TtWatch *self)
{
    return self->timeout_s + (self->remote && !tt_remote_is_root(self->remote) ? 1 : 0);
}

/* Takes the pace; the first that has stood still for too long, or NULL. */
static Pace *
find_stuck(const TtWatch *self, Pace *paces, guint n, guint32 number)
{
    gint64 now_us = g_get_monotonic_time();
    Pace *stuck = NULL;

    for (guint i = 0; i < n; i++) {
        Pace *pace = &paces[i];
        guint64 now = activity(self, pace->part);

        if (now != pace->activity || are_through(self, pace->part, number))
            *pace = (Pace){ pace->part, now, now_us };
        else if (!stuck && (double)(now_us - pace->since_us) > patience_s(self) * 1e6)
            stuck = pace;
    }
    return stuck;
}

static gboolean
have_come_to(const TtWatch *self, TtPhase phase, guint32 number)
{
    for (guint r = self->first_rank; r < self->first_rank + self->n_ranks; r++) {
        const TtRankBlock *block = &self->region->ranks[r];
        const _Atomic guint32 *at = phase == TT_PHASE_UP      ? &block->up
                                    : phase == TT_PHASE_READY ? &block->ready
                                                              : &block->finished;

        if (atomic_load_explicit(at, memory_order_acquire) != number)
            return FALSE;
    }
    return TRUE;
}

/* Sleeps until a rank reports or dies, or it is time to look again. */
static void
sleep_until_news(TtWatch *self)
{
    guint n = self->pids ? self->region->n_ranks : 0;
    g_autofree struct pollfd *fds = g_new0(struct pollfd, n + 2);
    int timeout_ms = LOOK_MS;
    guint64 reports;

    fds[n] = (struct pollfd){ .fd = self->region->done_fd, .events = POLLIN };
    fds[n + 1] =
        (struct pollfd){ .fd = self->remote ? tt_remote_fd(self->remote) : -1, .events = POLLIN };
    for (guint r = 0; r < n; r++) {
        fds[r] = (struct pollfd){ .fd = self->pids[r] ? self->pid_fds[r] : -1, .events = POLLIN };
        if (self->pids[r] && self->pid_fds[r] < 0)
            timeout_ms = LOOK_NO_PIDFD_MS;
    }
    if (poll(fds, n + 2, timeout_ms) > 0 && (fds[n].revents & POLLIN))
        while (read(self->region->done_fd, &reports, sizeof reports) < 0 && errno == EINTR)
            ;
}

gboolean
tt_watch_wait(TtWatch *self, TtPhase phase, guint32 number, GError **error)
{
    const TtRegion *region = self->region;
    guint n_parts = phase == TT_PHASE_DONE && region->job.n_parts > 1 ? region->job.n_parts : 0;
    g_autofree Pace *paces = g_new0(Pace, 1 + n_parts);

    for (guint i = 0; i <= n_parts; i++) {
        paces[i].part = i > 0 ? &region->job.parts[i - 1] : NULL;
        paces[i].activity = activity(self, paces[i].part);
        paces[i].since_us = g_get_monotonic_time();
    }
    while (!have_come_to(self, phase, number)) {
        Pace *stuck;

        sleep_until_news(self);
        if (!tt_watch_alive(self, error))
            return FALSE;
        if (phase == TT_PHASE_DONE && is_root_silent(self, error))
            return FALSE;
        stuck = find_stuck(self, paces, 1 + n_parts, number);
        if (!stuck)
            continue;
        if (self->remote && tt_remote_is_root(self->remote) &&
            !tt_remote_call_roll(self->remote, error))
            return FALSE;
        if (activity(self, stuck->part) != stuck->activity)
            continue;
        tt_diagnose_hang(region, stuck->part, self->stopped_by, phase, self->timeout_s, error);
        return FALSE;
    }
    return TRUE;
}

gboolean
tt_watch_wait_root(TtWatch *self, TtPhase phase, guint32 number, TtRunResult *results,
                   GError **error)
{
    while (!(phase == TT_PHASE_READY ? tt_remote_has_go(self->remote, number)
                                     : tt_remote_has_result(self->remote, results))) {
        sleep_until_news(self);
        if (!tt_watch_alive(self, error))
            return FALSE;
        /* The root waits for others, whose time is its to measure; this is for a root that is stuck. */
        if (tt_remote_root_silent_s(self->remote) > patience_s(self) && is_root_silent(self, error))
            return FALSE;
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
        reap(self);
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
