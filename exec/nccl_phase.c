#include "exec/nccl_private.h"

#include <string.h>

#define LOOK_US  20000 /* between two looks at the second thread */
#define LEAVE_US (G_USEC_PER_SEC)

/* What the second thread is given; it may outlive the phase. */
typedef struct {
    gint references;
    TtNcclTeam *team;
    TtNcclPhase phase;
    GMutex lock;
    GCond changed;
    gboolean done, good;
    GError *error;
} Work;

static void
work_unref(Work *w)
{
    if (!g_atomic_int_dec_and_test(&w->references))
        return;
    g_clear_error(&w->error);
    g_mutex_clear(&w->lock);
    g_cond_clear(&w->changed);
    g_free(w);
}

static gpointer
work_main(gpointer data)
{
    Work *w = data;
    GError *error = NULL;
    gboolean good = w->phase(w->team, &error);

    g_mutex_lock(&w->lock);
    w->good = good;
    w->error = error;
    w->done = TRUE;
    g_cond_signal(&w->changed);
    g_mutex_unlock(&w->lock);
    work_unref(w);
    return NULL;
}

/* FALSE: not done yet. */
static gboolean
wait_done(Work *w, gint64 until_us)
{
    gboolean done;

    g_mutex_lock(&w->lock);
    while (!w->done && g_cond_wait_until(&w->changed, &w->lock, until_us))
        ;
    done = w->done;
    g_mutex_unlock(&w->lock);
    return done;
}

static GError *
no_progress(const TtNcclTeam *team, double timeout_s)
{
    g_autofree char *ranks = tt_launch_ranks_text(team->first_rank, team->n_local);

    return g_error_new(TT_EXEC_ERROR, TT_EXEC_ERROR_HANG, "%s: no progress for %g s in %s", ranks,
                       timeout_s, (const char *)g_atomic_pointer_get(&team->doing));
}

/* Until the thread is done, or there is a reason to leave it. */
static void
look_after(TtNcclTeam *team, Work *w, double timeout_s, GError **why)
{
    gint seen = g_atomic_int_get(&team->n_done);
    gint64 since_us = g_get_monotonic_time();

    while (!wait_done(w, g_get_monotonic_time() + LOOK_US)) {
        gint now = g_atomic_int_get(&team->n_done);

        if (!tt_circle_look(team->circle, why))
            return;
        if (now != seen) {
            seen = now;
            since_us = g_get_monotonic_time();
        } else if (g_get_monotonic_time() - since_us >= (gint64)(timeout_s * G_USEC_PER_SEC)) {
            *why = no_progress(team, timeout_s);
            return;
        }
    }
}

gboolean
tt_nccl_supervise(TtNcclTeam *team, TtNcclPhase phase, double timeout_s, GError **error)
{
    Work *w = g_new0(Work, 1);
    GError *why = NULL;
    gboolean good;

    w->references = 2;
    w->team = team;
    w->phase = phase;
    g_mutex_init(&w->lock);
    g_cond_init(&w->changed);
    g_thread_unref(g_thread_new("nccl", work_main, w));
    look_after(team, w, timeout_s, &why);
    if (why) {
        g_atomic_int_set(&team->stop, 1);
        team->stuck = !wait_done(w, g_get_monotonic_time() + LEAVE_US);
    } else if (!w->good) {
        why = g_steal_pointer(&w->error);
    }
    good = !why;
    work_unref(w);
    if (good)
        return TRUE;
    team->broken = TRUE;
    g_propagate_error(error, why);
    return FALSE;
}

/* --- what went wrong --------------------------------------------------------------------------- */

/* As the results of NCCL are numbered: what they mean for the run. */
static int
error_of_result(int code)
{
    switch (code) {
    case 4: /* invalid argument, invalid usage */
    case 5: return TT_EXEC_ERROR_USAGE;
    case 2: /* system, remote: most often the network, or a process that has gone */
    case 6: return TT_EXEC_ERROR_NETWORK;
    default: return TT_EXEC_ERROR_SYSTEM;
    }
}

gboolean
tt_nccl_good(TtNcclTeam *team, int code, const char *function, TtNcclCommunicator *comm,
             GError **error)
{
    g_autofree char *ranks = tt_launch_ranks_text(team->first_rank, team->n_local);
    g_autofree char *last = NULL;
    const char *more = NULL;

    if (code == TT_NCCL_SUCCESS || code == TT_NCCL_IN_PROGRESS)
        return TRUE;
    if (team->nccl->get_last_error)
        more = team->nccl->get_last_error(comm);
    last = g_strstrip(g_strdelimit(g_strdup(more ? more : ""), "\n\r\t", ' '));
    g_set_error(error, TT_EXEC_ERROR, error_of_result(code),
                "%s: %s: %s%s%s (NCCL_DEBUG=WARN says more)", ranks, function,
                team->nccl->get_error_string(code), *last ? ": " : "", last);
    return FALSE;
}

gboolean
tt_nccl_cuda_good(const TtNcclTeam *team, int code, const char *function, int device,
                  GError **error)
{
    if (code == TT_CUDA_SUCCESS)
        return TRUE;
    team->cuda->get_last_error();
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM, "GPU %d on %s: %s: %s", device,
                g_get_host_name(), function, team->cuda->get_error_string(code));
    return FALSE;
}
