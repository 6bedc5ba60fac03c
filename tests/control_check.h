/* control_check.h - forked processes that each play a part in a meeting, and what became of them. */
#pragma once
#include "exec/control.h"
#include "exec/net.h"
#include "tests/check.h"
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_PROCESSES 8

/* What a child did: 0 well, else the line; and the error it saw. */
typedef struct {
    int line;
    char error[400];
} Result;

typedef enum { UNIX, IPV4, IPV6 } Where;
static const char *const where_names[] = { "unix socket", "127.0.0.1", "::1" };

/* A port nobody uses; the kernel does not give it to others at once. */
static inline guint
free_port(const char *host)
{
    g_autoptr(GArray) addresses = tt_net_resolve(host, 0, NULL);
    int fd = addresses ? tt_net_listen(&g_array_index(addresses, TtNetAddress, 0), NULL) : -1;
    guint port = fd >= 0 ? tt_net_port(fd) : 0;

    if (fd >= 0)
        close(fd);
    return port;
}

static inline gboolean
has_ipv6(void)
{
    return free_port("::1") != 0;
}

static inline TtLaunch
launch_at(Where where, guint n_ranks)
{
    static guint next_meeting;
    TtLaunch launch = {
        .source = "--root", .n_local = 1, .n_ranks = n_ranks, .n_on_host = 1, .pmi_fd = -1
    };

    if (where == UNIX) {
        launch.meeting = g_strdup_printf("tutti-test-%d-%u", (int)getpid(), next_meeting++);
        return launch;
    }
    launch.root_host = g_strdup(where == IPV4 ? "127.0.0.1" : "::1");
    launch.root_port = free_port(launch.root_host);
    return launch;
}

typedef int (*Part)(guint process, const TtLaunch *launch, Result *result);

/* Runs @part in @n forked processes, process p with rank p, and gives what they did. */
static inline void
run_all(guint n, const TtLaunch *launch, Part part, Result *results)
{
    int pipes[MAX_PROCESSES][2];
    pid_t pids[MAX_PROCESSES];

    for (guint p = 0; p < n; p++) {
        CHECK(pipe(pipes[p]) == 0, "pipe");
        fflush(NULL);
        pids[p] = fork();
        if (pids[p] == 0) {
            Result result = { 0 };
            TtLaunch own = *launch;

            own.first_rank = p;
            alarm(60);
            result.line = part(p, &own, &result);
            if (write(pipes[p][1], &result, sizeof result) != sizeof result)
                _exit(1);
            _exit(0);
        }
        close(pipes[p][1]);
    }
    for (guint p = 0; p < n; p++) {
        memset(&results[p], 0, sizeof results[p]);
        if (read(pipes[p][0], &results[p], sizeof results[p]) != sizeof results[p])
            results[p].line = -1; /* it died, as some are told to */
        close(pipes[p][0]);
        waitpid(pids[p], NULL, 0);
    }
}

/* In a child. */
#define MUST(condition)                                                                            \
    do                                                                                             \
        if (!(condition))                                                                          \
            return __LINE__;                                                                       \
    while (0)

static inline TtControl *
open_here(const TtLaunch *launch, const char *secret, double timeout_s, Result *result)
{
    TtControlOptions options = { .secret = secret, .timeout_s = timeout_s };
    GError *error = NULL;
    TtControl *control;

    control = tt_control_open(launch, &options, &error);
    if (error)
        g_strlcpy(result->error, error->message, sizeof result->error);
    g_clear_error(&error);
    return control;
}

static inline void
check_all(const Result *results, guint n, const char *name)
{
    for (guint p = 0; p < n; p++)
        CHECK(results[p].line == 0, "%s: process %u, line %d: %s", name, p, results[p].line,
              results[p].error);
}
