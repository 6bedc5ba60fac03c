/* nccl_private.h - the inside of backend_nccl.c and its parts.
 *
 * Everything NCCL or CUDA does is done by a second thread, a phase at a time (nccl_phase.c): this one looks after
 * it, hears whether other processes are well, and walks away when nothing moves any more. So nothing hangs,
 * whatever call it is in.
 */
#pragma once
#include "exec/nccl_circle.h"
#include "exec/nccl_load.h"

/* A rank's GPU, as all know it. */
typedef struct {
    char host_id[160], host[64];
    char bus_id[32]; /* "0000:1b:00.0" */
    char name[64];   /* "NVIDIA H200" */
    guint32 device;  /* its number in its process */
    guint32 major;   /* of its compute capability */
} TtNcclSeat;

/* A rank of this process. */
typedef struct {
    guint rank;
    int device;
    TtNcclCommunicator *comm;
    gpointer stream;
    gpointer memory[2];   /* of the device: input, output; one alone if in place */
    gpointer in, out;     /* what the call is given */
    gpointer fill, check; /* where the input goes, where the result is */
    gsize memory_bytes[2];
    TtRange in_range, out_range;
} TtNcclRank;

typedef struct {
    const TtPlan *plan;
    TtPlanSpec spec;            /* the plan's */
    gboolean in_place, aligned; /* aligned: after one more call, which all end at the same time */
    guint n;                    /* calls to make, back to back */
    guint per_mark;             /* calls between two notes of how far they are; 0: none */
    double seconds;             /* for one */
    guint64 wrong;
} TtNcclTask;

typedef struct {
    const TtNcclApi *nccl;
    const TtCudaApi *cuda;
    int version;
    TtCircle *circle;
    TtBackendPlace *place;
    double timeout_s;
    guint first_rank, n_local, n_ranks;
    TtNcclRank *ranks; /* [n_local] */
    TtNcclSeat *seats; /* [n_ranks] */
    char **notes;      /* [n_ranks], NULL-terminated: of seats, for the heading */
    TtNcclId id;
    TtNcclTask task;

    /* Between the two threads. */
    gint n_done;       /* counts up whenever something moves */
    gint stop;         /* the second thread shall leave, if it can */
    const char *doing; /* the call it is in */
    gboolean broken;   /* something went wrong: communicators can only be aborted */
    gboolean stuck;    /* the second thread did not come back: nothing may be freed */
} TtNcclTeam;

typedef gboolean (*TtNcclPhase)(TtNcclTeam *team, GError **error);

/* Runs @phase in the second thread until it is done; or ends in an error if nothing moves for
 * @timeout_s, or another process has trouble. */
gboolean tt_nccl_supervise(TtNcclTeam *team, TtNcclPhase phase, double timeout_s, GError **error);

/* In a phase: what it does now, for messages; static text. */
static inline void
tt_nccl_do(TtNcclTeam *team, const char *what)
{
    g_atomic_pointer_set(&team->doing, what);
}

/* In a phase: something has moved. */
static inline void
tt_nccl_moved(TtNcclTeam *team)
{
    g_atomic_int_inc(&team->n_done);
}

/* Errors of the two libraries, as ours: TRUE if @code is success. */
gboolean tt_nccl_good(TtNcclTeam *team, int code, const char *function, TtNcclCommunicator *comm,
                      GError **error);
gboolean tt_nccl_cuda_good(const TtNcclTeam *team, int code, const char *function, int device,
                      GError **error);

/* nccl_join.c: libraries, GPUs, the others' GPUs, the root's id. Fills team's ranks, seats, notes, id; and n_ranks
 * and n_local if they are 0. */
gboolean tt_nccl_find_seats(TtNcclTeam *team, const TtBackendJoin *join, GError **error);
char *tt_nccl_settings(void); /* "NCCL_ALGO=Ring NCCL_PROTO=LL", sorted; caller frees */

/* nccl_seats.c: who sits at which GPU. */
gboolean tt_nccl_count_gpus(const TtCudaApi *cuda, guint *n, GError **error);
gboolean tt_nccl_look_at_seat(const TtCudaApi *cuda, guint device, TtNcclSeat *seat,
                              GError **error);
gboolean tt_nccl_check_seats(const TtNcclSeat *seats, guint n, GError **error);

/* nccl_work.c: phases. */
gboolean tt_nccl_phase_connect(TtNcclTeam *team, GError **error);
gboolean tt_nccl_phase_allocate(TtNcclTeam *team, GError **error);
gboolean tt_nccl_phase_fill(TtNcclTeam *team, GError **error);
gboolean tt_nccl_phase_perform(TtNcclTeam *team, GError **error);
gboolean tt_nccl_phase_check(TtNcclTeam *team, GError **error);
gboolean tt_nccl_phase_free(TtNcclTeam *team, GError **error);
gboolean tt_nccl_phase_destroy(TtNcclTeam *team, GError **error);
gboolean tt_nccl_phase_abort(TtNcclTeam *team, GError **error);
