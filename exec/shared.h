/* shared.h - what the ranks of a team share: one anonymous mapping, made before they are started.
 *
 *   control | per rank | arena: what one job needs, laid out anew for each
 *
 * The mapping is at the same address in every rank, so it holds plain pointers. The parent writes a
 * job while the ranks sleep; afterwards a field has one writer, named beside it. Fields that
 * different ranks write never share a cache line.
 *
 * A connection is a FIFO of slots in one rank's direction:
 *
 *     ack        [consumed]                                  written by the receiver
 *     slot 0     [sequence | 48 B][payload .............]    written by the sender
 *     slot 1     [sequence | 48 B][payload .............]
 *
 * Message k (from 0) goes to slot k % n_slots; its sequence number k + 1, stored last, hands it
 * over. A small message travels in the same cache line as its sequence number: one line crosses,
 * not two.
 */
#pragma once
#include "exec/exec.h"

#include <stdatomic.h>

#define TT_LINE_BYTES       64
#define TT_PAIR_BYTES       128 /* what adjacent-line prefetchers fetch together */
#define TT_SLOT_HEAD_BYTES  64
#define TT_SLOT_SMALL_START 16
#define TT_SLOT_SMALL_BYTES 48

/* A variable with one cache-line pair to itself. */
typedef struct {
    _Alignas(TT_PAIR_BYTES) _Atomic guint64 value;
} TtCell;

/* The sequence number at the start of every slot. */
typedef _Atomic guint64 TtSequence;

/* One step of a lane as the parent resolves it: peers are ranks, connections are numbered. */
typedef struct {
    TtStep step;
    guint32 recv_peer, send_peer; /* TT_NO_RANK if none */
    guint32 recv_connection, send_connection;
} TtJobStep;

typedef struct {
    TtJobStep *steps; /* of one round */
    guint32 n_steps;
} TtJobLane;

/* Everything a rank must know to run one plan; read-only while it runs. */
typedef struct {
    TtPlan plan; /* shape and spec only: no algorithm behind it, usable for ranges */
    TtRunOptions options;
    TtJobLane *lanes; /* [rank * n_lanes + lane] */
    guint32 n_connections;
    guint8 *connections; /* n_connections times connection_bytes */
    gsize connection_bytes, slot_stride;
    _Atomic guint64
        *done; /* [rank * done_stride + lane]: steps finished in this job, by the rank */
    gsize done_stride;
    double *time_s;     /* [rank * repeats + repeat], by the rank */
    TtEvent *events;    /* by the rank, from event_first[rank] on; begin and end in ticks */
    gsize *event_first; /* [n_ranks + 1] */
} TtJob;

typedef enum {
    TT_RANK_BUSY,
    TT_RANK_WAITS_MESSAGE,
    TT_RANK_WAITS_SLOT,
    TT_RANK_WAITS_LANE,
    TT_RANK_WAITS_BARRIER,
    TT_RANK_IDLE,     /* between jobs */
    TT_RANK_NO_MEMORY /* could not map its buffers and left */
} TtRankState;

/* One per rank, written by it, read by whoever watches. */
typedef struct {
    _Alignas(TT_PAIR_BYTES) _Atomic guint64 heartbeat; /* grows in phases that finish no steps */
    _Atomic guint32 state;     /* TtRankState; not kept while a wait is short */
    _Atomic guint32 wait_peer; /* rank waited for */
    _Atomic guint32 wait_lane;
    _Atomic guint32 finished; /* jobs this rank has finished */
    gint64 wrong;
    gsize n_events;
} TtRankBlock;

typedef enum { TT_COMMAND_RUN, TT_COMMAND_QUIT } TtCommandKind;

typedef struct {
    guint n_ranks, n_cores; /* ranks: all agents of the plans it is for */
    gboolean pin;
    guint64 max_bytes;
    int done_fd; /* eventfd a rank writes when it has finished a job */
    gsize total_bytes;
    guint8 *arena;
    gsize arena_bytes, arena_used;
    guint32 command; /* TtCommandKind, by the parent before command_number moves */
    TtJob job;
    double flag_s; /* by rank 0 */

    _Alignas(TT_PAIR_BYTES) _Atomic guint32 command_number; /* a futex */
    _Alignas(TT_PAIR_BYTES) _Atomic guint32 aborted;
    _Alignas(TT_PAIR_BYTES) _Atomic guint32 arrived; /* at the barrier */
    _Alignas(TT_PAIR_BYTES) _Atomic guint32 epoch;   /* barriers passed */
    TtCell ping[2];
    TtRankBlock ranks[];
} TtRegion;

/* Maps the region, sized for @options. TT_EXEC_ERROR_SYSTEM if there is no memory for it. */
TtRegion *tt_region_new(const TtTeamOptions *options, GError **error);
void tt_region_free(TtRegion *region);

/* Memory the system could give now, 0 if it does not say. */
guint64 tt_region_available_bytes(void);

/* Zeroed memory for this job, aligned to a cache-line pair; NULL if the arena is full. */
gpointer tt_region_alloc(TtRegion *region, gsize bytes);

/* Forgets the last job; gives large memory back to the system. */
void tt_region_reset(TtRegion *region);

/* Lays out @plan as region->job. */
gboolean tt_job_prepare(TtRegion *region, const TtPlan *plan, const TtRunOptions *options,
                        GError **error);

/* A rank's life: serves commands until told to quit or aborted. */
void tt_rank_main(TtRegion *region, guint rank);

/* Sleeps while *word is @value (at most @timeout_ns if > 0); wakes all who do. */
void tt_futex_wait(_Atomic guint32 *word, guint32 value, gint64 timeout_ns);
void tt_futex_wake(_Atomic guint32 *word);
