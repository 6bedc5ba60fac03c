/* team.c - starts the ranks, gives them jobs, collects results, ends them. */
#include "exec/job.h"
#include "exec/reaches.h"
#include "exec/strike.h"
#include "exec/rank.h"
#include "exec/watch.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEFAULT_TIMEOUT_S 30
#define MOST_RANKS        1024

/* How long ranks may take to leave when told to. */
#define QUIT_GRACE_S 0.5

/* The kernel rounds short sleeps up to the timer slack, 50 us by default. */
#define TIMER_SLACK_NS 1000

struct TtTeam {
    TtRegion *region;
    TtWatch watch;
    pthread_t *threads; /* [n_ranks] if the ranks are threads */
    guint n_started;
    gboolean broken;
    guint64 start_ticks; /* one instant, on two clocks */
    gint64 start_us;
};

/* --- starting ----------------------------------------------------------------------------------
 */

static void G_GNUC_NORETURN
live_as_process(TtRegion *region, guint rank, pid_t parent)
{
    /* Whatever becomes of the parent, its ranks go too. A Ctrl-C is the parent's to answer. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    signal(SIGINT, SIG_IGN);
    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
    _exit(tt_rank_main(region, rank));
}

static gboolean
start_processes(TtTeam *team, GError **error)
{
    guint n = team->region->n_ranks, first = team->region->first_rank;
    pid_t parent = getpid();

    team->watch.pids = g_new0(GPid, n);
    team->watch.stopped_by = g_new0(int, n);
    team->watch.pid_fds = g_new(int, n);
    team->watch.status = g_new(int, n);
    memset(team->watch.pid_fds, -1, n * sizeof *team->watch.pid_fds);
    memset(team->watch.status, -1, n * sizeof *team->watch.status);
    for (guint r = first; r < first + team->region->n_local; r++) {
        pid_t pid = fork();

        if (pid == 0)
            live_as_process(team->region, r, parent);
        if (pid < 0) {
            g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                        "cannot start rank %u of %u: %s (see ulimit -u)", r, n, g_strerror(errno));
            return FALSE;
        }
        team->watch.pids[r] = pid;
        team->watch.pid_fds[r] = (int)syscall(SYS_pidfd_open, pid, 0);
        team->n_started++;
    }
    return TRUE;
}

typedef struct {
    TtRegion *region;
    guint rank;
} ThreadArgs;

static void *
live_as_thread(void *data)
{
    g_autofree ThreadArgs *args = data;

    tt_rank_main(args->region, args->rank);
    return NULL;
}

static gboolean
start_threads(TtTeam *team, GError **error)
{
    guint n = team->region->n_ranks, first = team->region->first_rank;

    team->threads = g_new0(pthread_t, n);
    for (guint r = first; r < first + team->region->n_local; r++) {
        ThreadArgs *args = g_new0(ThreadArgs, 1);
        int code;

        *args = (ThreadArgs){ team->region, r };
        code = pthread_create(&team->threads[team->n_started], NULL, live_as_thread, args);
        if (code != 0) {
            g_free(args);
            g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                        "cannot start rank %u of %u as a thread: %s", r, n, g_strerror(code));
            return FALSE;
        }
        team->n_started++;
    }
    return TRUE;
}

static gboolean
check_options(const TtTeamOptions *options, GError **error)
{
    guint64 available = tt_region_available_bytes();

    if (options->n_ranks < 1 || options->n_ranks > MOST_RANKS) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "number of ranks must be 1 .. %u on one machine, not %u", MOST_RANKS,
                    options->n_ranks);
        return FALSE;
    }
    if (available > 0 && options->max_bytes > available / 2 / options->n_ranks) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                    "%u ranks with an input and an output of %" G_GUINT64_FORMAT
                    " MiB each need more memory than the %" G_GUINT64_FORMAT
                    " MiB available (use fewer ranks or a smaller size)",
                    options->n_ranks, options->max_bytes >> 20, available >> 20);
        return FALSE;
    }
    return tt_reduce_unit_get(error) != NULL;
}

static void
set_up_wires(TtRegion *region, const TtTeamOptions *options, const TtReaches *reaches,
             double timeout_s)
{
    memcpy(region->transports, reaches->transports, sizeof region->transports);
    region->fault = options->fault;
    region->wire = (TtWireOptions){ .n_ranks = region->n_ranks,
                                    .interface = options->interface,
                                    .device = options->device,
                                    .gid_index = options->gid_index,
                                    .streams = MAX(1, options->streams),
                                    .checksum = options->checksum,
                                    .timeout_s = timeout_s };
    for (guint i = 0; i < 2; i++)
        region->wire.token[i] = (guint64)g_random_int() << 32 | g_random_int();
    for (guint r = 0; options->ranks_per_host && r < region->n_ranks; r++)
        region->ranks[r].host = r / options->ranks_per_host;
    if (!options->interface) /* one machine */
        region->wire.interface = "lo";
}

TtTeam *
tt_team_start(const TtTeamOptions *options, GError **error)
{
    g_autoptr(TtTeam) team = NULL;
    TtReaches reaches;

    if (!check_options(options, error) || !tt_reaches_parse(options->transport, &reaches, error))
        return NULL;
    team = g_new0(TtTeam, 1);
    team->watch.timeout_s = options->timeout_s > 0 ? options->timeout_s : DEFAULT_TIMEOUT_S;
    team->region = team->watch.region = tt_region_new(options, error);
    if (!team->region)
        return NULL;
    team->region->done_fd = eventfd(0, EFD_CLOEXEC);
    if (team->region->done_fd < 0) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM, "eventfd: %s (see ulimit -n)",
                    g_strerror(errno));
        return NULL;
    }
    team->start_ticks = tt_ticks_now();
    team->start_us = g_get_monotonic_time();
    set_up_wires(team->region, options, &reaches, team->watch.timeout_s);
    tt_region_map_buffers(team->region);
    if (!tt_fault_check(team->region, error) ||
        !(reaches.threads ? start_threads(team, error) : start_processes(team, error)) ||
        !tt_watch_wait(&team->watch, TT_PHASE_UP, 1, error))
        return NULL;
    return g_steal_pointer(&team);
}

GPid
tt_team_pid(const TtTeam *team, guint rank)
{
    return team->watch.pids ? team->watch.pids[rank] : 0;
}

/* --- ending ------------------------------------------------------------------------------------
 */

static void
send_command(TtRegion *region, TtCommandKind command)
{
    region->command = command;
    atomic_fetch_add_explicit(&region->command_number, 1, memory_order_release);
    tt_futex_wake(&region->command_number);
    tt_futex_wake(&region->go_number);
}

/* Every rank is gone when this returns. */
static void
end_ranks(TtTeam *team, double grace_s)
{
    team->broken = TRUE;
    atomic_store(&team->region->aborted, 1);
    send_command(team->region, TT_COMMAND_QUIT);
    if (team->watch.pids)
        tt_watch_end(&team->watch, grace_s);
    for (guint r = 0; team->threads && r < team->n_started; r++)
        pthread_join(team->threads[r], NULL);
    team->n_started = 0;
}

void
tt_team_stop(TtTeam *team)
{
    if (!team)
        return;
    if (team->region) {
        if (team->n_started > 0)
            end_ranks(team, QUIT_GRACE_S);
        for (guint r = 0; team->watch.pid_fds && r < team->region->n_ranks; r++)
            if (team->watch.pid_fds[r] >= 0)
                close(team->watch.pid_fds[r]);
        if (team->region->done_fd >= 0)
            close(team->region->done_fd);
    }
    g_free(team->watch.pids);
    g_free(team->watch.pid_fds);
    g_free(team->watch.stopped_by);
    g_free(team->watch.status);
    g_free(team->threads);
    tt_region_free(team->region);
    g_free(team);
}

/* --- running -----------------------------------------------------------------------------------
 */

static gboolean
check_run(const TtTeam *team, const TtPlan *plan, const TtRunOptions *options, GError **error)
{
    const TtRegion *region = team->region;
    guint64 bytes = plan->spec.count * tt_type_bytes(plan->spec.type);

    if (team->broken)
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "the ranks have gone after an earlier error: start a new team");
    else if (tt_plan_n_agents(plan) != region->n_ranks)
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "a plan for %u ranks and %u switches on a team of %u", plan->spec.n_ranks,
                    plan->n_switches, region->n_ranks);
    else if (bytes > region->max_bytes)
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "a vector of %" G_GUINT64_FORMAT
                    " bytes on a team started for %" G_GUINT64_FORMAT,
                    bytes, region->max_bytes);
    else if (options->iterations < 1)
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE, "iterations must be at least 1");
    else
        return TRUE;
    return FALSE;
}

static int
compare_doubles(gconstpointer a, gconstpointer b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Mean over ranks of each repeat, then their order. */
static void
collect_times(const TtJob *job, TtRunResult *result)
{
    guint n = job->options.repeats, n_ranks = job->plan.spec.n_ranks;
    g_autofree double *mean_s = g_new0(double, n);

    for (guint i = 0; i < n; i++)
        for (guint r = 0; r < n_ranks; r++)
            mean_s[i] += job->time_s[r * n + i] / n_ranks;
    qsort(mean_s, n, sizeof *mean_s, compare_doubles);
    result->time_s = (mean_s[(n - 1) / 2] + mean_s[n / 2]) / 2;
    result->min_s = mean_s[0];
    result->max_s = mean_s[n - 1];
}

static double
ticks_to_ps(const TtTeam *team)
{
    guint64 ticks = tt_ticks_now() - team->start_ticks;
    gint64 us = g_get_monotonic_time() - team->start_us;

    return (double)us * 1e6 / (double)MAX(1, ticks);
}

static TtTimeline *
collect_timeline(const TtTeam *team, const TtPlan *plan)
{
    const TtRegion *region = team->region;
    const TtJob *job = &region->job;
    g_autofree char *title =
        g_strdup_printf("%s, %u ranks, %" G_GUINT64_FORMAT " bytes, measured", plan->name,
                        plan->spec.n_ranks, plan->spec.count * tt_type_bytes(plan->spec.type));
    TtTimeline *timeline = tt_timeline_new(title);
    double scale = ticks_to_ps(team);
    gint64 zero = G_MAXINT64;

    for (guint r = 0; r < region->n_ranks; r++)
        g_array_append_vals(timeline->events, job->events + job->event_first[r],
                            region->ranks[r].n_events);
    for (guint i = 0; i < timeline->events->len; i++)
        zero = MIN(zero, g_array_index(timeline->events, TtEvent, i).begin_ps);
    for (guint i = 0; i < timeline->events->len; i++) {
        TtEvent *e = &g_array_index(timeline->events, TtEvent, i);

        e->begin_ps = (gint64)((double)(e->begin_ps - zero) * scale);
        e->end_ps = (gint64)((double)(e->end_ps - zero) * scale);
        e->wait_ps = (gint64)((double)e->wait_ps * scale);
    }
    tt_timeline_sort(timeline);
    return timeline;
}

static void
collect(const TtTeam *team, const TtPlan *plan, TtRunResult *result)
{
    const TtRegion *region = team->region;
    const TtRunOptions *options = &region->job.options;

    *result = (TtRunResult){ .wrong = options->check ? 0 : -1, .flag_s = region->flag_s };
    collect_times(&region->job, result);
    for (guint r = 0; options->check && r < region->n_ranks; r++)
        result->wrong += region->ranks[r].wrong;
    if (options->record)
        result->timeline = collect_timeline(team, plan);
}

/* Before the first byte: does every rank mean the same? */
static gboolean
agree(const TtRegion *region, GError **error)
{
    for (guint r = 1; r < region->n_ranks; r++) {
        g_autofree char *difference =
            tt_signature_difference(0, &region->ranks[0].signature, r, &region->ranks[r].signature);

        if (difference) {
            g_set_error_literal(error, TT_EXEC_ERROR, TT_EXEC_ERROR_MISMATCH, difference);
            return FALSE;
        }
    }
    return TRUE;
}

static gboolean
go(TtTeam *team, guint32 number, GError **error)
{
    atomic_store_explicit(&team->region->go_number, number, memory_order_release);
    tt_futex_wake(&team->region->go_number);
    return tt_watch_wait(&team->watch, TT_PHASE_DONE, number, error);
}

gboolean
tt_team_run(TtTeam *team, const TtPlan *plan, const TtRunOptions *options, TtRunResult *result,
            GError **error)
{
    TtRegion *region = team->region;
    guint32 number;

    if (!check_run(team, plan, options, error))
        return FALSE;
    if (!tt_job_prepare(region, plan, options, error))
        return FALSE;
    if (!tt_watch_alive(&team->watch, error)) {
        end_ranks(team, 0);
        return FALSE;
    }
    region->flag_s = 0;
    atomic_store(&region->ping[0].value, 0);
    atomic_store(&region->ping[1].value, 0);
    number = atomic_load_explicit(&region->command_number, memory_order_relaxed) + 1;
    send_command(region, TT_COMMAND_RUN);
    if (!tt_watch_wait(&team->watch, TT_PHASE_READY, number, error) || !agree(region, error) ||
        !go(team, number, error)) {
        end_ranks(team, 0);
        return FALSE;
    }
    collect(team, plan, result);
    return TRUE;
}

void
tt_run_result_clear(TtRunResult *result)
{
    g_clear_pointer(&result->timeline, tt_timeline_free);
}
