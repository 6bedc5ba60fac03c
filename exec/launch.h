/* launch.h - who am I: which ranks this process runs, of how many, and where rank 0 is met.
 *
 * Sources: options (--meet, --rank, --hostfile) and the environment of a launcher. None, or a
 * launcher that started one process only: this process forks all ranks itself ("fork"). Two launchers
 * that disagree, or an option that contradicts a launcher, are an error; docs/launchers.md has the
 * table of variables. Nothing is started on other machines: launchers do that.
 *
 * Which number a process has, and of how many, is known when all have met (control.h): in the order
 * of their ranks. The root is the process that runs rank 0.
 */
#pragma once
#include <glib.h>

#define TT_LAUNCH_DEFAULT_PORT 29400 /* as torchrun's rendezvous */

typedef struct {
    const char
        *source; /* "torchrun", "Open MPI", "Slurm", "MVAPICH", "MPICH", "--meet", "--hostfile";
                           "fork": everything on this machine, by this process. Static text */
    guint first_rank, n_local; /* ranks this process runs: first_rank .. first_rank + n_local - 1 */
    guint n_ranks;             /* of all processes; with "fork" and no --ranks 0 (and n_local 0) */
    guint host_rank,
        n_on_host;   /* among the processes on this machine, for pinning; 0, 1 if unknown */
    char *root_host; /* where the root listens; NULL: all are on this machine, see meeting */
    guint root_port;
    char *meeting; /* abstract unix socket where processes of one machine meet, without the leading
                      zero byte; NULL: use root_host */
    int pmi_fd;    /* >= 0: neither is known; the root says where it listens over Hydra's PMI */
} TtLaunch;

/* What this machine is called and who started us; for tests, which know better. */
typedef struct {
    const char *const *names; /* host names and addresses, NULL-terminated */
    const char *launcher;     /* tells one launcher's processes from another's on this machine */
} TtLaunchMachine;

typedef struct {
    const char *root;               /* HOST, HOST:PORT or [IPV6]:PORT; NULL: TUTTI_ROOT, if set */
    const char *rank;               /* "3" or "0-3"; NULL: not given */
    guint n_ranks;                  /* --ranks; 0: not given */
    const char *hostfile;           /* path; NULL: not given */
    const TtLaunchMachine *machine; /* NULL: ask the system */
} TtLaunchOptions;

/* @environment: "NAME=VALUE", NULL-terminated, as g_get_environ() gives it. Errors are of
 * TT_EXEC_ERROR, code USAGE, or G_FILE_ERROR. */
gboolean tt_launch_find(const TtLaunchOptions *options, const char *const *environment,
                        TtLaunch *launch, GError **error);
void tt_launch_clear(TtLaunch *launch);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(TtLaunch, tt_launch_clear)

/* "rank 3" or "ranks 4-7". Caller frees. */
char *tt_launch_ranks_text(guint first, guint n);
