/* lab.h - a cluster of network namespaces on this machine, made from a topology.
 *
 *     ttlab-NAME-h0                  ttlab-NAME-switches
 *       nic0  ======= veth ======= h0n0 [leaf0] l0s0 ===== veth ===== s0l0 [spine0]
 *
 * A namespace for each host, one for all switches, which are Linux bridges. Each end of a cable is
 * shaped for what it sends. Nothing is made outside these namespaces but a state file and
 * one of host names, so removing what the state file lists removes the lab.
 *
 * lab_plan.c says what to build, lab_script.c by which commands, lab_state.c keeps and removes it,
 * lab_host.c goes into a namespace, lab_exec.c runs ranks.
 */
#pragma once
#include "cli/cli.h"
#include "topologies/topology.h"

#include <sys/types.h>

#define TT_LAB_STATE_FOLDER "/run/tutti-labs"

/* One end of a cable between switches; both directions carry the same. */
typedef struct {
    guint leaf, spine; /* numbers of bridges */
    double bits_per_s;
} TtLabTrunk;

/* On this bridge, frames for this NIC leave through the trunk whose other end is @next. */
typedef struct {
    guint bridge, host, nic, next;
} TtLabWay;

typedef struct {
    char *name;                            /* "one-switch" */
    char *topology;                        /* as given: "tests/labs/one-switch.ini:8" */
    guint n_hosts, ranks_per_host, n_nics; /* NICs of a host */
    guint *nic_of_place;                   /* [ranks_per_host] each rank's own */

    /* Only of a lab to build. */
    double *nic_bits_per_s;  /* [n_nics] what the cable is shaped to */
    double efficiency;       /* what the topology takes of it for payload */
    GPtrArray *bridges;      /* of char*: "leaf0" */
    guint *bridge_of;        /* [n_hosts * n_nics] */
    GArray *trunks;          /* of TtLabTrunk */
    GArray *ways;            /* of TtLabWay */
    guint *frames_per_piece; /* [n_nics] what its cable is handed in one piece at most */
    GPtrArray *notes;        /* of char*: what the lab does not do, one line each */

    /* Only of one that is up. */
    char *secret;
    char **namespaces; /* NULL-terminated; NULL: not up */
    int lock;          /* nobody takes it down meanwhile; 0: none */
} TtLab;

void tt_lab_free(TtLab *lab);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtLab, tt_lab_free)

/* Error of the lab's own: @code is a TtCliError. */
void tt_lab_error(GError **error, int code, const char *format, ...) G_GNUC_PRINTF(3, 4);

/* What is to be built for @topo, opened as @topology. An error says why there can be no such lab. */
TtLab *tt_lab_plan(const TtTopology *topo, const char *name, const char *topology, GError **error);

guint tt_lab_n_ranks(const TtLab *lab);
char *tt_lab_namespace(const TtLab *lab, guint host); /* host n_hosts: the switches' */
char *tt_lab_hostname(const TtLab *lab, guint host);  /* "one-switch-h3" */
char *tt_lab_hosts_file(const char *name);            /* stands in for /etc/hosts */
char *tt_lab_ipv4(guint host, guint nic);
char *tt_lab_ipv6(guint host, guint nic);

/* For the cables of that NIC number, and links between switches (there is one NIC then). */
guint tt_lab_window_bytes(const TtLab *lab); /* of a TCP connection, at most */
guint tt_lab_burst_bytes(const TtLab *lab, guint nic, double bits_per_s); /* free after a pause */
guint tt_lab_gso_bytes(const TtLab *lab, guint nic);                      /* gso_max_size */

/* --- commands --- */

typedef struct {
    const char *tool; /* ip, tc, bridge or sysctl */
    char *namespace;  /* NULL: where we are */
    char *words;      /* what follows the tool's name */
} TtLabStep;

GPtrArray *tt_lab_script(const TtLab *lab);    /* of TtLabStep* */
char *tt_lab_step_text(const TtLabStep *step); /* as one could type it */
gboolean tt_lab_run_script(const GPtrArray *script, GError **error);

/* Runs @argv with @input (or NULL) on standard input. An error has its first complaint,
 * and for a batch of @batch steps the command that failed. */
gboolean tt_lab_run_tool(const char *const *argv, const char *input, const GPtrArray *batch,
                         guint first, GError **error);

/* --- what is up --- */

/* TRUE if labs can be made here; else an error for exit code 77 that says what is missing. */
gboolean tt_lab_possible(GError **error);
gboolean tt_lab_check_name(const char *name, GError **error);
gboolean tt_lab_is_up(const char *name);
char **tt_lab_list(void); /* names, sorted */
/* Locked until freed, or until this process becomes another: shared by those who go in, alone (@alone)
 * for who takes it down, so that nobody enters what goes away. */
TtLab *tt_lab_load(const char *name, gboolean alone, GError **error);
void tt_lab_unlock(TtLab *lab);
gboolean tt_lab_up(TtLab *lab, GError **error); /* all of it, or nothing and an error */
gboolean tt_lab_down(const char *name, GError **error);

/* --- inside --- */

/* Opens a namespace for tt_lab_enter(); -1 with an error. */
int tt_lab_open_namespace(const char *namespace, GError **error);

/* The calling process goes in: the host's network, its devices in /sys, its name, and the names of all
 * hosts of the lab. Safe between fork and exec. */
gboolean tt_lab_enter(int namespace_fd, const char *hostname, const char *hosts_file);
gboolean tt_lab_write_sysctls(const char *namespace, const char *words, GError **error);

typedef struct {
    guint n_ranks;
    gboolean all_output;
    guint grace_s; /* for the others once one failed */
} TtLabRun;

/* Runs @argv once per rank and unlocks @lab once they run; the exit code, or TT_EXIT_FAILED and an error. */
int tt_lab_exec(TtLab *lab, const TtLabRun *run, char **argv, GError **error);

/* Becomes @argv on that host. Returns only with an error. */
void tt_lab_become(const TtLab *lab, guint host, char **argv, GError **error);
