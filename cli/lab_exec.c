#include "cli/lab.h"

#include <errno.h>
#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MASTER_PORT "29500" /* torchrun's default */

#define LAST_WORDS_MS 1000 /* from the end of all ranks to the end of their output */

typedef struct Job Job;

/* One of a rank's two streams: whole lines go on, with the rank before them. */
typedef struct {
    Job *job;
    guint rank;
    FILE *to;
    GString *line;
    int fd;
} Stream;

typedef struct {
    Job *job;
    guint rank;
    GPid pid; /* 0: ended */
    int namespace_fd;
    const char *hostname, *hosts_file; /* borrowed until it is started */
    gboolean killed;                   /* by us */
    Stream streams[2];
} Rank;

struct Job {
    const TtLab *lab;
    const TtLabRun *run;
    GMainLoop *loop;
    Rank *ranks;
    guint n_running, n_open;
    int worst;
    gboolean ending;
    int interrupted; /* signal number */
};

/* --- output ------------------------------------------------------------------------------------ */

static void
put_line(Stream *s)
{
    if (s->line->len == 0)
        return;
    fprintf(s->to, "rank %u: %s\n", s->rank, s->line->str);
    fflush(s->to);
    g_string_truncate(s->line, 0);
}

static void
leave_if_done(Job *job)
{
    if (job->n_running == 0 && job->n_open == 0)
        g_main_loop_quit(job->loop);
}

static gboolean
read_stream(int fd, GIOCondition condition, gpointer data)
{
    Stream *s = data;
    char bytes[4096];
    gssize n = read(fd, bytes, sizeof bytes);

    (void)condition;
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return G_SOURCE_CONTINUE;
    for (gssize i = 0; i < n; i++) {
        if (bytes[i] == '\n' && s->line->len == 0)
            fprintf(s->to, "rank %u:\n", s->rank);
        else if (bytes[i] == '\n')
            put_line(s);
        else
            g_string_append_c(s->line, bytes[i]);
    }
    if (n > 0)
        return G_SOURCE_CONTINUE;
    put_line(s);
    close(fd);
    s->job->n_open--;
    leave_if_done(s->job);
    return G_SOURCE_REMOVE;
}

static void
watch_stream(Job *job, Rank *rank, guint which, int fd, FILE *to)
{
    Stream *s = &rank->streams[which];

    *s = (Stream){ job, rank->rank, to, g_string_new(NULL), fd };
    job->n_open++;
    g_unix_fd_add(fd, G_IO_IN | G_IO_HUP | G_IO_ERR, read_stream, s);
}

/* --- the end ----------------------------------------------------------------------------------- */

static void
signal_ranks(Job *job, int signal_number)
{
    for (guint r = 0; r < job->run->n_ranks; r++)
        if (job->ranks[r].pid) {
            kill(-job->ranks[r].pid, signal_number);
            job->ranks[r].killed |= signal_number == SIGKILL;
        }
}

static gboolean
grace_is_over(gpointer data)
{
    Job *job = data;

    if (job->n_running)
        fprintf(stderr, "tutti lab: %u ranks still run %u s later: killed\n", job->n_running,
                job->run->grace_s);
    signal_ranks(job, SIGKILL);
    return G_SOURCE_REMOVE;
}

static void
begin_to_end(Job *job)
{
    if (job->ending)
        return;
    job->ending = TRUE;
    g_timeout_add(job->run->grace_s * 1000, grace_is_over, job);
}

/* What a rank left running in a session of its own may hold its output open for ever. */
static gboolean
stop_reading(gpointer data)
{
    g_main_loop_quit(((Job *)data)->loop);
    return G_SOURCE_REMOVE;
}

static void
rank_ended(GPid pid, int status, gpointer data)
{
    Rank *rank = data;
    Job *job = rank->job;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);

    kill(-pid, SIGKILL); /* what it started and left */
    g_spawn_close_pid(pid);
    rank->pid = 0;
    job->n_running--;
    if (!rank->killed || !WIFSIGNALED(status)) {
        if (code && !job->ending && WIFSIGNALED(status))
            fprintf(stderr, "tutti lab: rank %u: signal %d (%s)\n", rank->rank, WTERMSIG(status),
                    strsignal(WTERMSIG(status)));
        else if (code && !job->ending)
            fprintf(stderr, "tutti lab: rank %u: exit code %d\n", rank->rank, code);
        job->worst = MAX(job->worst, code);
    }
    if (code)
        begin_to_end(job);
    if (job->n_running == 0)
        g_timeout_add(LAST_WORDS_MS, stop_reading, job);
    leave_if_done(job);
}

static gboolean
interrupt(Job *job, int signal_number)
{
    if (job->interrupted) { /* a second Ctrl-C has no patience */
        signal_ranks(job, SIGKILL);
        return G_SOURCE_CONTINUE;
    }
    job->interrupted = signal_number;
    signal_ranks(job, signal_number);
    begin_to_end(job);
    return G_SOURCE_CONTINUE;
}

static gboolean
on_int(gpointer data)
{
    return interrupt(data, SIGINT);
}

static gboolean
on_term(gpointer data)
{
    return interrupt(data, SIGTERM);
}

static gboolean
on_hup(gpointer data)
{
    return interrupt(data, SIGHUP);
}

/* --- the beginning ----------------------------------------------------------------------------- */

static char **
environment_of(const Job *job, guint rank)
{
    const TtLab *lab = job->lab;
    guint place = rank % lab->ranks_per_host, first = rank - place;
    g_autofree char *master = tt_lab_ipv4(0, lab->nic_of_place[0]);
    const struct {
        const char *name;
        char *value;
    } set[] = {
        { "RANK", g_strdup_printf("%u", rank) },
        { "WORLD_SIZE", g_strdup_printf("%u", job->run->n_ranks) },
        { "LOCAL_RANK", g_strdup_printf("%u", place) },
        { "LOCAL_WORLD_SIZE",
          g_strdup_printf("%u", MIN(lab->ranks_per_host, job->run->n_ranks - first)) },
        { "MASTER_ADDR", g_strdup(master) },
        { "MASTER_PORT",
          g_strdup(g_getenv("MASTER_PORT") ? g_getenv("MASTER_PORT") : MASTER_PORT) },
        { "TUTTI_INTERFACE", g_strdup_printf("nic%u", lab->nic_of_place[place]) },
        { "TUTTI_SECRET", g_strdup(lab->secret) },
        { "TUTTI_LAB", g_strdup(lab->name) },
    };
    char **environment = g_get_environ();

    for (guint i = 0; i < G_N_ELEMENTS(set); i++) {
        environment = g_environ_setenv(environment, set[i].name, set[i].value, TRUE);
        g_free(set[i].value);
    }
    return environment;
}

/* Between fork and exec. A group of its own, so that all a rank starts can be ended; and whatever
 * ends us ends it. */
static void
go_to_host(gpointer data)
{
    const Rank *rank = data;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!tt_lab_enter(rank->namespace_fd, rank->hostname, rank->hosts_file)) {
        static const char words[] = "tutti lab: cannot enter the namespace\n";

        (void)!write(2, words, sizeof words - 1);
        _exit(TT_EXIT_FAILED);
    }
}

static gboolean
start_rank(Job *job, Rank *rank, char **argv, GError **error)
{
    gboolean first = rank->rank == 0;
    g_auto(GStrv) environment = environment_of(job, rank->rank);
    GSpawnFlags flags = G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD;
    int out = -1, err = -1;

    if (!first && !job->run->all_output)
        flags |= G_SPAWN_STDOUT_TO_DEV_NULL;
    if (!g_spawn_async_with_pipes(NULL, argv, environment, flags, go_to_host, rank, &rank->pid,
                                  NULL, !first && job->run->all_output ? &out : NULL,
                                  first ? NULL : &err, error)) {
        rank->pid = 0;
        return FALSE;
    }
    job->n_running++;
    g_child_watch_add(rank->pid, rank_ended, rank);
    if (out >= 0)
        watch_stream(job, rank, 0, out, stdout);
    if (err >= 0)
        watch_stream(job, rank, 1, err, stderr);
    return TRUE;
}

static gboolean
start_all(Job *job, char **argv, GError **error)
{
    g_autofree char *hosts_file = tt_lab_hosts_file(job->lab->name);

    for (guint r = 0; r < job->run->n_ranks; r++) {
        guint host = r / job->lab->ranks_per_host;
        g_autofree char *namespace = tt_lab_namespace(job->lab, host);
        g_autofree char *hostname = tt_lab_hostname(job->lab, host);
        Rank *rank = &job->ranks[r];
        gboolean started;

        *rank = (Rank){ .job = job, .rank = r, .hostname = hostname, .hosts_file = hosts_file };
        rank->namespace_fd = tt_lab_open_namespace(namespace, error);
        if (rank->namespace_fd < 0)
            return FALSE;
        started = start_rank(job, rank, argv, error);
        close(rank->namespace_fd);
        rank->hostname = rank->hosts_file = NULL;
        if (!started)
            return FALSE;
    }
    return TRUE;
}

int
tt_lab_exec(TtLab *lab, const TtLabRun *run, char **argv, GError **error)
{
    g_autoptr(GMainLoop) loop = g_main_loop_new(NULL, FALSE);
    g_autofree Rank *ranks = g_new0(Rank, run->n_ranks);
    Job job = { .lab = lab, .run = run, .loop = loop, .ranks = ranks };
    GError *problem = NULL;

    fflush(stdout);
    g_unix_signal_add(SIGINT, on_int, &job);
    g_unix_signal_add(SIGTERM, on_term, &job);
    g_unix_signal_add(SIGHUP, on_hup, &job);
    if (!start_all(&job, argv, &problem)) {
        job.ending = TRUE;
        signal_ranks(&job, SIGKILL);
    }
    tt_lab_unlock(lab);
    if (job.n_running || job.n_open)
        g_main_loop_run(loop);
    for (guint r = 0; r < run->n_ranks; r++)
        for (guint s = 0; s < 2; s++)
            if (ranks[r].streams[s].line)
                g_string_free(ranks[r].streams[s].line, TRUE);
    if (problem) {
        gboolean usage = problem->domain == G_SPAWN_ERROR;

        tt_lab_error(error, usage ? TT_CLI_ERROR_USAGE : TT_CLI_ERROR_FAILED, "%s",
                     problem->message);
        g_error_free(problem);
    }
    return job.interrupted ? 128 + job.interrupted : job.worst;
}
