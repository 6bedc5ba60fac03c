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
 * not two. Between ranks that share no memory each side has such a FIFO of its own, and a wire
 * (transport.h) carries the slots over.
 *
 * A team may be spread over several processes, each of which has a region for the ranks it runs (first_rank ..)
 * and a copy of what it hears of the others (remote.h). Then the connections lie in a mapping of their own, which
 * all regions of one machine share.
 */
#pragma once
#include "algos/passing.h"
#include "exec/signature.h"
#include "exec/transport.h"

#include <stdatomic.h>

#define TT_LINE_BYTES       64
#define TT_PAIR_BYTES       128 /* what adjacent-line prefetchers fetch together */
#define TT_SLOT_HEAD_BYTES  64
#define TT_SENT_AT          64 /* in the pair of lines that holds the ack: what wires have sent */
#define TT_SLOT_SMALL_START 16
#define TT_SLOT_SMALL_BYTES 48

/* A variable with one cache-line pair to itself. */
typedef struct {
    _Alignas(TT_PAIR_BYTES) _Atomic guint64 value;
} TtCell;

/* The head of every slot. A small message follows right behind it, a long one at TT_SLOT_HEAD_BYTES. */
typedef struct {
    _Atomic guint64 sequence;
    guint64 info; /* see TT_INFO_* */
} TtSlotHead;

/* Bit fields of info: where the message ends, counted from the start of the slot; its checksum, 0 if
 * it has none. What is between them is the wires' own, and between ranks of one region what algos/passing.h calls:
 *
 *     LENT    the slot holds the address of the message, which is in a buffer of the sender
 *     PLACED  the message is in the receiver's buffer already
 *     WANTED  (of a slot that waits for a message) the slot holds the address where the message is to go
 */
#define TT_INFO_END_BITS       36
#define TT_INFO_END(info)      ((info) & ((G_GUINT64_CONSTANT(1) << TT_INFO_END_BITS) - 1))
#define TT_INFO_CHECKSUM_SHIFT 48
#define TT_INFO_CHECKSUM(info) ((guint16)((info) >> TT_INFO_CHECKSUM_SHIFT))
#define TT_INFO_LENT           (G_GUINT64_CONSTANT(1) << TT_INFO_END_BITS)
#define TT_INFO_PLACED         (G_GUINT64_CONSTANT(2) << TT_INFO_END_BITS)
#define TT_INFO_WANTED         (G_GUINT64_CONSTANT(4) << TT_INFO_END_BITS)

/* Steps as the parent resolves them: peers are ranks, connections are numbered. */
typedef TtPassStep TtJobStep;
typedef TtPassLane TtJobLane;

/* When an iteration began and ended on a rank, in its ticks (tt_ticks_now()). */
typedef struct {
    guint64 begin, end;
} TtStamp;

/* How long a rank stood waiting for another in its timed loops, in its ticks. */
typedef struct {
    guint64 message, slot;
} TtWaited;

/* One of the collectives of a job. Lanes are numbered through the job, by part: dependencies and connections know
 * these numbers. */
typedef struct {
    TtPlan plan;        /* shape and spec only: no algorithm behind it, usable for ranges */
    guint32 first_lane; /* n_lanes of the plan belong to it */
    guint32 n_members;
    guint32 *members; /* [n_members]: the rank of the team that plays each agent of the plan */
    double *offset_s; /* [n_members]: begins so long after the rank's iteration does */
} TtJobPart;

/* Everything a rank must know to run its part; read-only while it runs. */
typedef struct {
    TtJobPart *parts;
    guint32 n_parts, n_lanes;
    guint32 n_slots;      /* of every connection */
    guint32 gpu_protocol; /* of connections between GPUs: gpu_program.h */
    TtRunOptions options;
    TtJobLane *lanes; /* [rank * n_lanes + lane]; of a part a rank is not in: without steps */
    guint32 n_connections;
    guint8 *
        connections; /* n_connections times connection_bytes; those over wires have no memory here */
    gsize connection_bytes, slot_stride;
    /* Connections from these numbers on are for barriers (barrier.h) and the ping-pong (ping.h). */
    guint32 barrier_first, ping_first;
    TtSignature signature;
    _Atomic guint64
        *done; /* [rank * done_stride + lane]: steps finished in this job, by the rank */
    gsize done_stride;
    double *time_s; /* [rank * repeats + repeat], by the rank */
    gint64 *wrong;  /* [rank * n_parts + part], by the rank */
    /* [(rank * repeats + repeat) * (iterations + 1) + iteration], by the rank; the one after the last holds
     * when the loop began. NULL: not asked for. */
    TtStamp *stamps;
    TtWaited *waited;   /* [rank * n_ranks of the team + peer], by the rank; NULL: not asked for */
    TtEvent *events;    /* by the rank, from event_first[rank] on; begin and end in ticks */
    gsize *event_first; /* [n_ranks + 1] */
} TtJob;

/* Stamps a rank writes in a job, one for the beginning of every loop among them. */
static inline gsize
tt_job_n_stamps(const TtJob *job)
{
    return (gsize)job->options.repeats * ((gsize)job->options.iterations + 1);
}

static inline TtJobLane *
tt_job_lane(const TtJob *job, guint rank, guint lane)
{
    return &job->lanes[(gsize)rank * job->n_lanes + lane];
}

/* The part a lane belongs to. */
static inline const TtJobPart *
tt_job_part_of(const TtJob *job, guint lane)
{
    const TtJobPart *part = job->parts;

    while (lane >= part->first_lane + part->plan.n_lanes)
        part++;
    return part;
}

/* Which agent of its plan @rank plays; TT_NO_RANK: none. */
static inline guint
tt_job_member(const TtJobPart *part, guint rank)
{
    for (guint i = 0; i < part->n_members; i++)
        if (part->members[i] == rank)
            return i;
    return TT_NO_RANK;
}

typedef enum {
    TT_RANK_BUSY,
    TT_RANK_WAITS_MESSAGE,
    TT_RANK_WAITS_SLOT,
    TT_RANK_WAITS_LANE,
    TT_RANK_WAITS_START, /* until a collective is to begin */
    TT_RANK_WAITS_BARRIER,
    TT_RANK_IDLE,    /* between jobs */
    TT_RANK_TROUBLED /* found something wrong and left: see trouble */
} TtRankState;

/* What a rank found wrong, for whoever watches. */
#define TT_TROUBLE_BYTES 1000
typedef struct {
    guint32 code; /* TtExecError */
    guint32 peer; /* rank at fault, or TT_NO_RANK */
    guint32
        was; /* TtRankState before it: what the rank waited for is still in wait_peer and wait_lane */
    char text[TT_TROUBLE_BYTES];
} TtTrouble;

/* How ranks of one machine reach each other, and those of another. */
typedef enum { TT_INSIDE, TT_ACROSS, TT_N_REACHES } TtReach;

/* One per rank, written by it, read by whoever watches. */
typedef struct {
    _Alignas(TT_PAIR_BYTES) _Atomic guint64 heartbeat; /* grows in phases that finish no steps */
    _Atomic guint32 state;     /* TtRankState; not kept while a wait is short */
    _Atomic guint32 wait_peer; /* rank waited for */
    _Atomic guint32 wait_lane;
    _Atomic guint32 up;       /* 1: reachable, address is written */
    _Atomic guint32 ready;    /* jobs this rank has made ready for; signature is written */
    _Atomic guint32 finished; /* jobs this rank has finished */
    gsize n_events;
    double tick_s; /* how long its ticks are; by its process, when it has finished a job */
    guint32 host;  /* ranks with equal numbers share memory; by the parent */
    TtSignature signature;
    TtAddress address[TT_N_REACHES];
    TtTrouble trouble;
} TtRankBlock;

typedef enum { TT_COMMAND_RUN, TT_COMMAND_QUIT } TtCommandKind;

typedef struct TtGpus TtGpus; /* gpu_group.h */

typedef struct {
    guint n_ranks, n_cores;    /* ranks: all agents of the plans it is for */
    guint first_rank, n_local; /* those this process runs */
    guint n_on_host,
        host_rank; /* ranks on this machine, and how many of them come before first_rank */
    gboolean pin;
    const TtTransport *transports[TT_N_REACHES]; /* NULL: shared memory */
    TtWireOptions wire;                          /* what all ranks' wires have in common */
    TtFault fault;
    gboolean is_gpu; /* its ranks are threads, whose lanes run on GPUs */
    TtGpuProtocol gpu_protocol;
    TtGpus *gpus;       /* of this process; NULL until they are open */
    guint8 *host_arena; /* connections of all ranks of this machine; NULL: in the arena */
    gsize host_arena_bytes;
    guint64 max_bytes;
    guint8 *buffers; /* of the ranks this process runs; NULL: each rank maps its own */
    gsize buffers_bytes;
    int done_fd; /* eventfd a rank writes when it has finished a job */
    gsize total_bytes;
    guint8 *arena;
    gsize arena_bytes, arena_used;
    guint32 command; /* TtCommandKind, by the parent before command_number moves */
    TtJob job;
    double flag_s; /* by rank 0 */

    _Alignas(TT_PAIR_BYTES) _Atomic guint32 command_number; /* a futex */
    _Alignas(TT_PAIR_BYTES) _Atomic guint32 go_number; /* a futex: the job all ranks may begin */
    _Alignas(TT_PAIR_BYTES) _Atomic guint32 aborted;
    _Alignas(TT_PAIR_BYTES) _Atomic guint32 arrived; /* at the barrier */
    _Alignas(TT_PAIR_BYTES) _Atomic guint32 epoch;   /* barriers passed */
    TtCell ping[2];
    TtRankBlock ranks[];
} TtRegion;

/* Maps the region, sized for @options. TT_EXEC_ERROR_SYSTEM if there is no memory for it. */
TtRegion *tt_region_new(const TtTeamOptions *options, GError **error);
void tt_region_free(TtRegion *region);

/* The last-level cache that one core sees, 0 if the system does not say. */
guint64 tt_region_cache_bytes(void);

/* Memory the system could give now, 0 if it does not say. */
guint64 tt_region_available_bytes(void);

/* Zeroed memory for this job, aligned to a cache-line pair; NULL if the arena is full. */
gpointer tt_region_alloc(TtRegion *region, gsize bytes);

/* Maps the buffers of all ranks this process will run where all of them see them, at the same address.
 * Not if they share no memory otherwise, nor if there is no room: then ranks map their own. To be
 * called before they start. */
void tt_region_map_buffers(TtRegion *region);

/* Where a buffer of a rank begins in that mapping. */
guint8 *tt_region_buffer(const TtRegion *region, guint rank, guint buffer);

/* Of one buffer, with room for tt_buffer_skew(). */
#define TT_HUGE_PAGE_BYTES (2u << 20)
gsize tt_region_buffer_bytes(const TtRegion *region);

/* Buffers start at different distances from a page, so that the streams a step reads and writes at the
 * same time do not collide in the low address bits. */
gsize tt_buffer_skew(guint rank, guint buffer);

/* Where the vector of a part begins in every buffer of @rank, which is in it. */
gsize tt_job_slice(const TtJob *job, const TtJobPart *part, guint rank);

/* Where element 0 of a part's vector is in a buffer of one of its members, or would be, relative to where the
 * buffer *@buffer begins. In place, input and output share memory such that every element is at the
 * same address in both: then @buffer changes. */
gssize tt_job_vector_start(const TtJob *job, const TtJobPart *part, guint member, guint *buffer);

/* Forgets the last job; gives large memory back to the system. */
void tt_region_reset(TtRegion *region);

/* NULL: these two share memory. */
static inline const TtTransport *
tt_region_transport(const TtRegion *region, guint a, guint b)
{
    return region
        ->transports[region->ranks[a].host == region->ranks[b].host ? TT_INSIDE : TT_ACROSS];
}

/* The ranks are spread over several processes. */
static inline gboolean
tt_region_is_part(const TtRegion *region)
{
    return region->n_local < region->n_ranks;
}

/* A rank's life: serves commands until told to quit or aborted. Returns its exit code. */
int tt_rank_main(TtRegion *region, guint rank);

/* Sleeps while *word is @value (at most @timeout_ns if > 0); wakes all who do. */
void tt_futex_wait(_Atomic guint32 *word, guint32 value, gint64 timeout_ns);
void tt_futex_wake(_Atomic guint32 *word);
