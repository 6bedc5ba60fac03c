/* team.c - starts the ranks, gives them jobs, collects results, ends them. */
#include "exec/job.h"
#include "exec/reaches.h"
#include "exec/gpu_group.h"
#include "exec/team_private.h"
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
    team->watch.pid_fds = g_new(int, n);
    memset(team->watch.pid_fds, -1, n * sizeof *team->watch.pid_fds);
    for (guint r = first; r < first + team->region->n_local; r++) {
        pid_t pid = fork();

        if (pid == 0) {
            if (team->remote)
                tt_remote_forget(team->remote);
            live_as_process(team->region, r, parent);
        }
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

/* @n_ranks: all on this machine, whichever process runs them. */
static gboolean
check_memory(guint64 max_bytes, guint n_ranks, GError **error)
{
    guint64 available = tt_region_available_bytes();

    if (available == 0 || max_bytes <= available / 2 / n_ranks)
        return TRUE;
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                "%u rank%s with an input and an output of %" G_GUINT64_FORMAT
                " MiB each need more memory than the %" G_GUINT64_FORMAT
                " MiB available (use fewer ranks or a smaller size)",
                n_ranks, n_ranks == 1 ? "" : "s", max_bytes >> 20, available >> 20);
    return FALSE;
}

static gboolean
check_options(const TtTeamOptions *options, guint n_local, gboolean is_gpu, GError **error)
{
    if (n_local < 1 || n_local > MOST_RANKS) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "number of ranks must be 1 .. %u on one machine, not %u", MOST_RANKS, n_local);
        return FALSE;
    }
    return (is_gpu || check_memory(options->max_bytes, n_local, error)) &&
           tt_reduce_unit_get(error) != NULL;
}

static void
set_up_wires(TtRegion *region, const TtTeamOptions *options, const TtReaches *reaches,
             double timeout_s)
{
    memcpy(region->transports, reaches->transports, sizeof region->transports);
    region->fault = options->fault;
    region->is_gpu = reaches->gpu;
    region->gpu_protocol = options->gpu_protocol;
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
}

static void
set_up_watch(TtTeam *team)
{
    guint n = team->region->n_ranks;
    TtWatch *watch = &team->watch;

    watch->first_rank = team->region->first_rank;
    watch->stopped_by = g_new0(int, n);
    watch->status = g_new(int, n);
    memset(watch->status, -1, n * sizeof *watch->status);
}

/* What must be the same in all processes, in words; who shares memory with whom. */
static gboolean
settle(TtTeam *team, const TtTeamOptions *options, GError **error)
{
    g_autofree char *same = g_strdup_printf(
        "transport %s, %u streams, checksum %d, protocol %s, placement %s, sizes up to "
        "%" G_GUINT64_FORMAT " bytes",
        options->transport ? options->transport : "shm", MAX(1, options->streams),
        options->checksum, tt_gpu_protocol_name(options->gpu_protocol),
        tt_gpu_placement_name(options->gpu_placement), options->max_bytes);

    return tt_remote_settle(team->remote, &team->watch, same, error);
}

static gboolean
is_spread(const TtTeamOptions *options)
{
    const TtLaunch *launch = options->launch;

    return launch && launch->n_ranks > 0 && launch->n_local < launch->n_ranks;
}

/* Memory and what is shared; with the other processes, if there are some. */
static gboolean
lay_out(TtTeam *team, const TtTeamOptions *options, const TtReaches *reaches, GError **error)
{
    TtTeamOptions mine = *options;
    guint first = 0, n_local = options->n_ranks;
    TtRegion *region;

    if (is_spread(options) && !(team->remote = tt_remote_open(options, error)))
        return FALSE;
    if (team->remote)
        tt_remote_ranks(team->remote, &first, &n_local, &mine.n_ranks);
    if (!check_options(&mine, n_local, reaches->gpu, error))
        return FALSE;
    region = team->region = team->watch.region = tt_region_new(&mine, error);
    if (!region)
        return FALSE;
    region->first_rank = first;
    region->n_local = n_local;
    set_up_wires(region, options, reaches, team->watch.timeout_s);
    set_up_watch(team);
    if (!tt_fault_check(region, reaches->threads, error))
        return FALSE;
    if (!team->remote) {
        if (!options->interface)
            region->wire.interface = "lo";
        return TRUE;
    }
    return settle(team, options, error);
}

static gboolean
start_ranks(TtTeam *team, gboolean threads, GError **error)
{
    team->region->done_fd = eventfd(0, EFD_CLOEXEC);
    if (team->region->done_fd < 0) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM, "eventfd: %s (see ulimit -n)",
                    g_strerror(errno));
        return FALSE;
    }
    return (threads ? start_threads(team, error) : start_processes(team, error)) &&
           tt_watch_wait(&team->watch, TT_PHASE_UP, 1, error);
}

TtTeam *
tt_team_start(const TtTeamOptions *options, GError **error)
{
    g_autoptr(TtTeam) team = g_new0(TtTeam, 1);
    GError *mine = NULL;
    TtReaches reaches;

    if (!tt_reaches_parse(options->transport, &reaches, error))
        return NULL;
    team->watch.timeout_s = options->timeout_s > 0 ? options->timeout_s : DEFAULT_TIMEOUT_S;
    team->start_ticks = tt_ticks_now();
    team->start_us = g_get_monotonic_time();
    if (!lay_out(team, options, &reaches, error))
        return NULL;
    tt_region_map_buffers(team->region);
    team->watch.n_ranks = team->region->n_local; /* of the others we hear by their addresses */
    if (reaches.gpu)
        team->region->gpus =
            tt_gpus_open(team->region, options->gpus, options->gpu_placement, &mine);
    else
        check_memory(options->max_bytes, team->region->n_on_host, &mine);
    if (!mine)
        start_ranks(team, reaches.threads, &mine);
    team->watch.remote = team->remote;
    if (team->remote && !tt_remote_share_addresses(team->remote, mine, error)) {
        g_clear_error(&mine);
        return NULL;
    }
    if (mine) {
        g_propagate_error(error, mine);
        return NULL;
    }
    if (tt_team_is_root(team))
        team->watch.n_ranks = team->region->n_ranks;
    return g_steal_pointer(&team);
}

guint
tt_team_n_ranks(const TtTeam *team)
{
    return team->region->n_ranks;
}

guint
tt_team_n_strangers(const TtTeam *team)
{
    return team->remote ? tt_remote_n_strangers(team->remote) : 0;
}

gboolean
tt_team_is_root(const TtTeam *team)
{
    return !team->remote || tt_remote_is_root(team->remote);
}

const char *
tt_team_host_name(const TtTeam *team, guint rank)
{
    return team->remote ? tt_remote_host_name(team->remote, rank) : g_get_host_name();
}

guint
tt_team_ranks_per_host(const TtTeam *team)
{
    const TtRankBlock *ranks = team->region->ranks;
    guint n = team->region->n_ranks, each = 0;

    while (each < n && ranks[each].host == ranks[0].host)
        each++;
    if (each == n || n % each != 0)
        return 0;
    for (guint r = each; r < n; r++)
        if ((ranks[r].host == ranks[r - 1].host) != (r % each != 0))
            return 0;
    return each;
}

char *
tt_team_gpus_text(const TtTeam *team)
{
    return team->region->gpus ? tt_gpus_text(team->region->gpus) : NULL;
}

char *
tt_team_gpus_measure(TtTeam *team, GError **error)
{
    return tt_gpus_measure(team->region->gpus, error);
}

char *
tt_team_gpu_direct_text(const TtTeam *team)
{
    return team->region->gpus ? tt_gpus_direct_text(team->region->gpus) : NULL;
}

GPid
tt_team_pid(const TtTeam *team, guint rank)
{
    if (team->remote)
        return tt_remote_pid(team->remote, rank);
    if (team->region->is_gpu)
        return getpid(); /* its threads */
    return team->watch.pids ? team->watch.pids[rank] : 0;
}

/* --- ending ------------------------------------------------------------------------------------
 */

void
tt_team_send_command(TtTeam *team, TtCommandKind command)
{
    TtRegion *region = team->region;

    region->command = command;
    atomic_fetch_add_explicit(&region->command_number, 1, memory_order_release);
    tt_futex_wake(&region->command_number);
    tt_futex_wake(&region->go_number);
}

void
tt_team_end(TtTeam *team, double grace_s, const GError *why)
{
    team->broken = TRUE;
    if (team->remote && why)
        tt_remote_send_abort(team->remote, why);
    atomic_store(&team->region->aborted, 1);
    tt_team_send_command(team, TT_COMMAND_QUIT);
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
            tt_team_end(team, QUIT_GRACE_S, NULL);
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
    if (team->region)
        tt_gpus_close(team->region->gpus);
    tt_remote_close(team->remote);
    tt_region_free(team->region);
    g_free(team);
}
