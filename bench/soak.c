/* soak - runs long, and watches from outside whether memory or descriptors grow.
 *
 *   soak allreduces|jobs|teams N [TRANSPORT [RANKS]]
 *
 *   allreduces  N of 8 bytes in one job
 *   jobs        N jobs in one team: sizes and algorithms change all the time
 *   teams       N teams, started and stopped in one process
 *
 * A child does the work; this process reads /proc of it and of its ranks fifty times a second. Memory: the most seen in
 * the last three quarters is compared with the most in the first, as what is touched once, at the start, is no growth.
 * Descriptors: the median of the last quarter, as what is open for a moment is none either. Exit code 0: nothing grew.
 */
#include "exec/defaults.h"
#include "exec/exec.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_PIDS 64

/* What a process may gain by chance: a page table, a stdio buffer, a tree of the allocator's. */
#define LEEWAY_KIB 1024

typedef struct {
    gint64 kib, fds;
} Sample;

typedef struct {
    pid_t pid;
    GArray *samples; /* Sample */
} Watched;

typedef struct {
    Watched all[MOST_PIDS];
    guint n, n_samples;
} Watch;

/* --- the work ------------------------------------------------------------------------------------- */

static void
give_up(GError *error)
{
    fprintf(stderr, "soak: %s\n", error->message);
    exit(1);
}

static TtTeam *
start(const char *transport, guint n_ranks, guint64 max_bytes)
{
    TtTeamOptions options = {
        .n_ranks = n_ranks, .transport = transport, .max_bytes = max_bytes, .gid_index = -1
    };
    GError *error = NULL;
    TtTeam *team = tt_team_start(&options, &error);

    if (!team)
        give_up(error);
    return team;
}

static void
run(TtTeam *team, const char *algorithm, guint64 count, guint iterations)
{
    TtPlanSpec spec = {
        .n_ranks = tt_team_n_ranks(team), .count = count, .type = TT_FLOAT32, .redop = TT_SUM
    };
    TtRunOptions options = { .iterations = iterations, .check = TRUE };
    g_autoptr(TtPlan) plan = NULL;
    TtRunResult result;
    GError *error = NULL;

    tt_exec_defaults(&spec, algorithm);
    plan = tt_plan_new(algorithm, &spec, &error);
    if (!plan || !tt_team_run(team, plan, &options, &result, &error))
        give_up(error);
    if (result.wrong != 0) {
        fprintf(stderr, "soak: %" G_GINT64_FORMAT " wrong elements\n", result.wrong);
        exit(1);
    }
    tt_run_result_clear(&result);
}

static void
work(const char *kind, guint n, const char *transport, guint n_ranks)
{
    static const char *const algorithms[] = { "direct", "ring", "tree", "double-tree",
                                              "recursive-doubling" };

    if (strcmp(kind, "allreduces") == 0) {
        g_autoptr(TtTeam) team = start(transport, n_ranks, 8);

        run(team, "direct", 2, n);
    } else if (strcmp(kind, "jobs") == 0) {
        g_autoptr(TtTeam) team = start(transport, n_ranks, 65536 * sizeof(float));

        for (guint i = 0; i < n; i++) { /* the largest first, so that all memory is touched */
            guint64 count = i < G_N_ELEMENTS(algorithms) ? 65536 : 1 + (i * 7919) % 65536;

            run(team, algorithms[i % G_N_ELEMENTS(algorithms)], count, 2);
        }
    } else {
        for (guint i = 0; i < n; i++) {
            g_autoptr(TtTeam) team = start(transport, n_ranks, 4096);

            run(team, algorithms[i % G_N_ELEMENTS(algorithms)], 1024, 2);
        }
    }
}

/* --- the eye on it --------------------------------------------------------------------------------- */

static gint64
resident_kib(pid_t pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/status", (int)pid), *text = NULL;
    const char *line;

    if (!g_file_get_contents(path, &text, NULL, NULL) || !(line = strstr(text, "VmRSS:")))
        return -1;
    return g_ascii_strtoll(line + 6, NULL, 10);
}

static gint64
count_fds(pid_t pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/fd", (int)pid);
    GDir *dir = g_dir_open(path, 0, NULL);
    gint64 n = 0;

    if (!dir)
        return -1;
    while (g_dir_read_name(dir))
        n++;
    g_dir_close(dir);
    return n;
}

static void
look_at(Watch *watch, pid_t pid)
{
    Sample sample = { resident_kib(pid), count_fds(pid) };
    Watched *w = NULL;

    if (sample.kib < 0 || sample.fds < 0)
        return;
    for (guint i = 0; i < watch->n && !w; i++)
        if (watch->all[i].pid == pid)
            w = &watch->all[i];
    if (!w && watch->n == MOST_PIDS)
        return;
    if (!w) {
        w = &watch->all[watch->n++];
        *w = (Watched){ pid, g_array_new(FALSE, FALSE, sizeof(Sample)) };
    }
    g_array_append_val(w->samples, sample);
}

/* The most of samples @from up to @to. */
static Sample
most(const Watched *w, guint from, guint to)
{
    Sample most = { 0, 0 };

    for (guint i = from; i < to; i++) {
        const Sample *s = &g_array_index(w->samples, Sample, i);

        most.kib = MAX(most.kib, s->kib);
        most.fds = MAX(most.fds, s->fds);
    }
    return most;
}

static int
by_fds(gconstpointer a, gconstpointer b)
{
    gint64 x = ((const Sample *)a)->fds, y = ((const Sample *)b)->fds;

    return (x > y) - (x < y);
}

/* The median of the descriptors of the last quarter; sorts the samples. */
static gint64
last_fds(Watched *w)
{
    guint n = w->samples->len, from = MIN(n - 1, 3 * n / 4);

    qsort(&g_array_index(w->samples, Sample, from), n - from, sizeof(Sample), by_fds);
    return g_array_index(w->samples, Sample, from + (n - from) / 2).fds;
}

/* @child and those it has started. */
static void
look(Watch *watch, pid_t child, gboolean ranks_stay)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/task/%d/children", (int)child, (int)child);
    g_autofree char *text = NULL;
    g_auto(GStrv) pids = NULL;

    watch->n_samples++;
    look_at(watch, child);
    if (!ranks_stay || !g_file_get_contents(path, &text, NULL, NULL))
        return;
    pids = g_strsplit(g_strstrip(text), " ", -1);
    for (guint i = 0; pids[i]; i++)
        if (*pids[i])
            look_at(watch, atoi(pids[i]));
}

static int
judge(Watch *watch, pid_t child, double took_s, guint n, const char *what)
{
    int code = 0;

    printf("# %u %s in %.1f s, %.2f us each; %u samples\n", n, what, took_s, took_s / n * 1e6,
           watch->n_samples);
    printf("# process   KiB, first quarter      later  descriptors, first quarter       last\n");
    for (guint i = 0; i < watch->n; i++) {
        Watched *w = &watch->all[i];
        guint n_samples = w->samples->len, quarter = MAX(1, n_samples / 4);
        Sample first = most(w, 0, quarter), later = most(w, quarter, n_samples);
        gint64 last = last_fds(w);
        gboolean grew = later.kib > first.kib + LEEWAY_KIB || last > first.fds;

        printf("%9s %20" G_GINT64_FORMAT " %10" G_GINT64_FORMAT " %27" G_GINT64_FORMAT
               " %10" G_GINT64_FORMAT "%s\n",
               w->pid == child ? "parent" : "rank", first.kib, later.kib, first.fds, last,
               grew ? "  GREW" : "");
        code |= grew;
        g_array_unref(w->samples);
    }
    printf("%s\n", code ? "grew" : "no growth");
    return code;
}

int
main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "", *transport = argc > 3 ? argv[3] : "tcp";
    guint n = argc > 2 ? (guint)g_ascii_strtoull(argv[2], NULL, 10) : 0;
    guint n_ranks = argc > 4 ? (guint)g_ascii_strtoull(argv[4], NULL, 10) : 4;
    Watch watch = { 0 };
    gint64 begin_us = g_get_monotonic_time();
    int status = 0;
    pid_t child;

    if (n < 1 || n_ranks < 1 ||
        (strcmp(kind, "allreduces") && strcmp(kind, "jobs") && strcmp(kind, "teams"))) {
        fprintf(stderr, "usage: soak allreduces|jobs|teams N [TRANSPORT [RANKS]]\n");
        return 2;
    }
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        work(kind, n, transport, n_ranks);
        _exit(0);
    }
    while (waitpid(child, &status, WNOHANG) == 0) {
        look(&watch, child, strcmp(kind, "teams") != 0); /* of many teams only the parent lasts */
        g_usleep(20000);
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return 1;
    return judge(&watch, child, (double)(g_get_monotonic_time() - begin_us) * 1e-6, n, kind);
}
