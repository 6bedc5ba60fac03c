/* exec.h - run a plan for real: ranks as processes, timed and checked.
 *
 * tt_team_start() forks the ranks once; tt_team_run() then measures any number of plans on them, as
 * nccl-tests does: warm-up, barrier, n iterations back to back, time / n, then a checked run
 * against a reference. All memory the ranks share is mapped before the fork and has no name, so
 * nothing can be left behind whoever dies.
 *
 * A rank that dies, or makes no progress for timeout_s, ends the run: every rank leaves, the team
 * is unusable, and the error names the rank, its last finished step and who waited for it.
 *
 * With a launch (launch.h) the team is spread over several processes: each starts the ranks it was given and
 * calls the same functions with the same arguments. What to run is said by the process of rank 0; the
 * others compare it with what they were told, before the first byte, and get the same result.
 */
#pragma once
#include "algos/timeline.h"
#include "exec/fault.h"
#include "exec/launch.h"

#define TT_EXEC_ERROR (tt_exec_error_quark())
GQuark tt_exec_error_quark(void);
typedef enum {
    TT_EXEC_ERROR_USAGE,
    TT_EXEC_ERROR_SYSTEM,   /* fork, mmap, memory: says what and how to get more */
    TT_EXEC_ERROR_HARDWARE, /* this transport is not available here */
    /* What can go wrong between ranks: see tt_exec_error_class(). */
    TT_EXEC_ERROR_ABSENT,   /* a rank never arrived */
    TT_EXEC_ERROR_LEFT,     /* a rank left early, by itself */
    TT_EXEC_ERROR_DEAD,     /* a rank died */
    TT_EXEC_ERROR_HANG,     /* no progress for timeout_s: a rank is stopped, or slow */
    TT_EXEC_ERROR_NETWORK,  /* a connection broke, or swallows messages, between ranks that live */
    TT_EXEC_ERROR_MISMATCH, /* ranks were told different things */
    TT_EXEC_ERROR_CORRUPT   /* a message arrived changed */
} TtExecError;

/* "died", "network broken", ...: the word for a class of trouble; NULL for the first three. */
const char *tt_exec_error_class(int code);

typedef struct TtTeam TtTeam;

/* How a message between GPUs tells that it is there: a counter after it, or a flag with every few bytes
 * (exec/gpu_program.h). AUTO: by its length. */
typedef enum {
    TT_GPU_PROTOCOL_AUTO,
    TT_GPU_PROTOCOL_SIMPLE,
    TT_GPU_PROTOCOL_LL,
    TT_GPU_PROTOCOL_LL128
} TtGpuProtocol;

/* Where a connection between GPUs lies. */
typedef enum {
    TT_GPU_PLACE_AUTO,
    TT_GPU_PLACE_WRITE, /* on the receiver's GPU */
    TT_GPU_PLACE_READ,  /* on the sender's GPU */
    TT_GPU_PLACE_HOST   /* in memory of the host */
} TtGpuPlacement;

/* "auto" (NULL), "simple", "ll", "ll128"; "auto" (NULL), "write", "read", "host". FALSE with
 * TT_EXEC_ERROR_USAGE. */
const char *tt_gpu_protocol_name(TtGpuProtocol protocol); /* "auto", "simple", ... */
const char *tt_gpu_placement_name(TtGpuPlacement placement);
gboolean tt_gpu_protocol_parse(const char *text, TtGpuProtocol *protocol, GError **error);
gboolean tt_gpu_placement_parse(const char *text, TtGpuPlacement *placement, GError **error);

/* Switches that reduce are processes here, which do what a switch would: a plan with some runs on a
 * team of tt_plan_n_agents(). */
typedef struct {
    guint n_ranks;
    const char *
        transport; /* "shm" (NULL), "tcp", ...: between all ranks; "shm,tcp": inside a machine, and across.
                              With "threads" first ("threads", "threads,tcp") ranks are threads of this
                              process, for sanitizers; with "cuda" first their lanes run on GPUs */
    guint64 max_bytes;    /* the largest vector that will be run */
    double timeout_s;     /* 0: 30 */
    gboolean pin;         /* rank r on core r % cores */
    guint ranks_per_host; /* for tests: take each so many for a machine of their own; 0: as it is */

    const char *interface, *device; /* of the network, and of RDMA; NULL: chosen */
    const char
        *gpus; /* with "cuda": "0,2"; "host" or "host:2": the same kernels on the CPU; NULL: all
                         there are */
    TtGpuProtocol gpu_protocol;
    TtGpuPlacement gpu_placement;
    gint gid_index;    /* RoCE's; -1: chosen */
    guint streams;     /* sockets or queue pairs for each connection; 0: 1 */
    gboolean checksum; /* of every message */
    TtFault fault;     /* what shall go wrong; zeroed: nothing */

    const TtLaunch
        *launch; /* NULL, or all ranks: by this process alone; else those the launch says, of a team
                               spread over processes (n_ranks is then the launch's) */
    const char *secret; /* what the processes must know; NULL: nothing */
} TtTeamOptions;

TtTeam *tt_team_start(const TtTeamOptions *options, GError **error);
void tt_team_stop(TtTeam *team); /* every rank is gone when it returns */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtTeam, tt_team_stop)

/* Process id of a rank, for tests that kill one, and the name of its machine. */
GPid tt_team_pid(const TtTeam *team, guint rank);
char *tt_team_gpus_measure(TtTeam *team,
                           GError **error); /* between runs: lines on what they do at best */
char *tt_team_gpus_text(
    const TtTeam *team); /* "0 NVIDIA H200 (ranks 0-7)", of this process; NULL: none */
/* How the network reaches memory of the GPUs of this process ("dma-buf", "no (host memory: WHY)"); NULL: none does. Not
 * while something runs. */
char *tt_team_gpu_direct_text(const TtTeam *team);
const char *tt_team_host_name(const TtTeam *team, guint rank);

/* Ranks of a machine, if there are several machines and each has so many, one after the other; else 0. */
guint tt_team_ranks_per_host(const TtTeam *team);

guint tt_team_n_ranks(const TtTeam *team);
guint tt_team_n_strangers(const TtTeam *team); /* turned away while the processes met */
gboolean tt_team_is_root(const TtTeam *team);  /* this process runs rank 0: it reports */

/* Not at the root: runs whatever the root runs, until it has no more. */
gboolean tt_team_serve(TtTeam *team, GError **error);

/* After the last run. Not at the root: waits for the root's last, too, so that both know if one was told more. */
gboolean tt_team_finish(TtTeam *team, GError **error);

typedef struct {
    guint warmup, iterations; /* iterations >= 1 */
    guint repeats;            /* timed loops; the median is reported; 0: 1 */
    gboolean in_place;
    gboolean check;  /* compare with the reference after the timed loop */
    gboolean record; /* one more iteration with a timeline */
    gboolean
        stamps; /* note when every timed iteration began and ended, on every rank: some 20 ns each */
    gboolean arrivals; /* with stamps: who came late, and who waited for whom */
} TtRunOptions;

/* When a rank came to the timed iterations, and whom it waited for; times are means over iterations unless said
 * otherwise. Ranks of one machine share a clock; those of different machines are compared from where their
 * loops began, which is as exact as a barrier. */
typedef struct {
    guint32 rank;
    double after_s, most_after_s; /* how long after the first rank it began; the most */
    guint64 n_late;               /* iterations it was late to: it began last, and after the next
                                     to last by more than a tenth of the iteration's time */
    double late_s;                /* by how much: median of those */
    double wait_message_s, wait_slot_s; /* it stood waiting for messages, and for free slots */
    guint32 waits_for;                  /* for whom longest; TT_NO_RANK: it never waited */
    double waits_for_s;
    double awaited_s; /* all others together stood waiting for it */
} TtArrival;

/* More stamped iterations than this, all ranks and repeats together, are refused. */
#define TT_MOST_STAMPS 4000000

/* What single iterations took. The time of one is the mean over ranks of the time from the end of the one
 * before (of the first: from the barrier) to its own, so that mean_s is time_s, over all repeats. A
 * percentile is the smallest time that so many are no longer than. */
typedef struct {
    guint64 n; /* 0: not stamped */
    double mean_s, min_s, max_s, p50_s, p95_s, p99_s;
    double stdev_s, cv; /* of the sample; cv = stdev_s / mean_s */
} TtIterationTimes;

typedef struct {
    double time_s;       /* per iteration, mean over ranks (not switches), median over repeats */
    double min_s, max_s; /* over repeats */
    double
        flag_s; /* one-way flag latency between ranks 0 and 1 measured beside it; 0 for one rank */
    gint64 wrong;               /* elements off the reference on all ranks; -1 if not checked */
    TtGpuProtocol gpu_protocol; /* between GPUs; AUTO: there are none */
    TtIterationTimes iterations;
    GArray *arrivals;     /* TtArrival, by rank; owned; NULL unless asked for */
    TtTimeline *timeline; /* owned; NULL unless recorded */
} TtRunResult;

gboolean tt_team_run(TtTeam *team, const TtPlan *plan, const TtRunOptions *options,
                     TtRunResult *result, GError **error);

/* One of several collectives that run at the same time, each on data of its own. */
typedef struct {
    const TtPlan *plan;
    const guint *
        members; /* [n_ranks of the plan]: which rank of the team plays each; NULL: all, in order */
    const double
        *offset_s; /* [n_ranks of the plan]: begins so long after the rank's iteration does; below
                               the team's time-out. NULL: at once */
} TtRunPart;

/* A rank may be in any number of parts: it serves their lanes side by side, and its iteration ends when all of them
 * are done. So a part's time is that of the iterations of its ranks. All parts have the same type and
 * reduction; switches only where there is one part. The vectors of the parts a rank is in, each rounded up to 128 bytes, must
 * fit the team's max_bytes together.
 * @results [n_parts]; the timeline is one for all, in the first; its lanes are numbered through the parts. */
gboolean tt_team_run_parts(TtTeam *team, const TtRunPart *parts, guint n_parts,
                           const TtRunOptions *options, TtRunResult *results, GError **error);
void tt_run_result_clear(TtRunResult *result);

/* Transports compiled in, and which vector unit the reductions use here ("avx2"). */
const char *const *tt_transport_names(void);
const char *tt_reduce_unit(void);
