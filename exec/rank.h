/* rank.h - what one rank knows of its own: buffers, ports, and its plan compiled to moves.
 *
 * A plan computes its steps; doing that between two messages would cost more than the messages. So
 * before the timed loop every step of every round becomes one or more moves: pointers, bytes,
 * ports.
 */
#pragma once
#include "exec/ports.h"
#include "exec/reduce.h"

/* Of a move, the whole step in one piece: what comes in may be lent or placed; what goes out is. */
enum {
    TT_MOVE_FIRST = 1,
    TT_MOVE_LAST = 2,
    TT_MOVE_DIRECT_IN = 4,
    TT_MOVE_LEND = 8,
    TT_MOVE_PLACE = 16,
    TT_MOVE_STREAM = 32, /* stores past the caches */
    TT_MOVE_WANT = 64,   /* a wire may put the message where it belongs */
    TT_MOVE_DIRECT = TT_MOVE_DIRECT_IN | TT_MOVE_LEND | TT_MOVE_PLACE
};

/* A contiguous piece of a step; FIRST waits for what the step needs, LAST hands over and
 * acknowledges. One cache line. */
typedef struct {
    guint8 op, flags;
    guint16 pad;
    guint32 dep;         /* index into deps; 0: none */
    guint64 steps_after; /* steps of this iteration finished after it, empty ones that follow
                            included */
    const guint8 *src;
    guint8 *dst;
    TtPort *in, *out; /* NULL if the op receives or sends nothing */
    union {
        gsize offset;  /* of the piece from the start of a slot */
        guint8 *place; /* PLACE: in the receiver's buffer; the offset is TT_SLOT_HEAD_BYTES */
    };
    gsize bytes;
} TtMove;

/* A lane of this rank, and how many steps of this iteration it must have finished; or TT_HOLD, and how many
 * nanoseconds the iteration must be old. */
#define TT_HOLD G_MAXUINT
typedef struct {
    guint lane;
    guint64 steps;
} TtDep;

typedef struct {
    guint32 number; /* in the job */
    TtMove *moves, *at, *end;
    guint64 free_steps; /* empty steps before the first move */
    guint64 n_steps;    /* of one iteration */
    guint32 steps_per_round;
    _Atomic guint64 *done; /* in the job: steps finished, all iterations */
} TtLane;

/* A collective this rank takes part in. */
typedef struct {
    const TtJobPart *job;
    guint index;                  /* of the part, in the job */
    guint member;                 /* who this rank is in its plan */
    guint first_lane;             /* of this rank's lanes */
    guint8 *vector[TT_N_BUFFERS]; /* address element 0 of the vector has, or would have */
} TtRankPart;

/* What a rank has of one transport: its wire, and the memory of this job's ends. */
typedef struct {
    const TtTransport *transport; /* NULL: shared memory, the rest is empty */
    TtWire *wire;
    GArray *ends;     /* TtWireEnd */
    guint8 *memory;   /* of all ends */
    gsize room_bytes; /* mapped; kept for the next job */
    guint8 *payload;  /* of all ends, in memory of the GPU; NULL: in the slots */
    gsize payload_bytes;
} TtReachWires;

typedef struct TtGpuRank TtGpuRank; /* gpu_group.h */

typedef struct {
    TtRegion *region;
    guint rank;
    TtGpuRank *gpu; /* NULL: its lanes run here, on the CPU */
    const TtReduceUnit *unit;
    gpointer memory[TT_N_BUFFERS]; /* as mapped, if they are private */
    guint8 *buffers[TT_N_BUFFERS]; /* max_bytes each */
    gsize touched[TT_N_BUFFERS];   /* bytes that have memory behind them */
    guint32 spin_limit;

    TtReachWires reach[TT_N_REACHES];
    gboolean has_wires, has_memory_ends; /* in this job: connections over wires, in shared memory */
    gboolean checksum;
    guint64 iterations;  /* finished in all jobs, for faults */
    gboolean spoil_next; /* change a bit of the next message */

    /* The compiled plan. */
    TtPort *in_ports, *out_ports; /* [n_connections]; only this rank's are set */
    TtRankPart *parts;
    guint n_parts;
    TtLane *lanes; /* of its parts, one after another */
    guint n_lanes;
    gboolean has_holds; /* lanes that begin later than the iteration */
    guint64 begin_ns;   /* of the iteration, if there are some */
    GArray *moves;      /* TtMove */
    GArray *deps;       /* TtDep; the first is not used */
    GPtrArray *lenders; /* ports that lend; borrowed */
    guint64 iteration;
    TtWaited *waited; /* [n_ranks], in the job; NULL: not to be counted */
    TtReduce reduce;
    TtReduce2 reduce2, stream2;
} TtRank;

/* Says what is wrong, for whoever watches; the rank must then leave. */
void tt_rank_complain(TtRank *self, guint peer, const GError *error);

/* Whoever watches sees that this rank gets on, where it finishes no steps. */
static inline void
tt_rank_heartbeat(TtRank *self)
{
    atomic_fetch_add_explicit(&self->region->ranks[self->rank].heartbeat, 1, memory_order_relaxed);
}

/* rank_contents.c: inputs; outputs that no right answer of an earlier run is left in; wrong elements of the outputs,
 * to the job. FALSE: the rank has complained. */
gboolean tt_rank_fill_input(TtRank *self);
gboolean tt_rank_spoil_output(TtRank *self);
gboolean tt_rank_count_wrong(TtRank *self);

/* program.c: compiles region->job for this rank; resets its ends of all connections. FALSE if the rank has
 * complained. */
gboolean tt_program_compile(TtRank *self);
void tt_program_clear(TtRank *self);

/* Which collectives of the job this rank is in; before it is compiled. */
void tt_program_find_parts(TtRank *self);
TtPort *tt_port_open(TtRank *self, guint32 number, guint peer, gboolean sends);

/* datapath.c: one collective. FALSE if the team was aborted. The last writes events, times in
 * ticks, to @events, which has room for every step, and returns how many. */
gboolean tt_datapath_run(TtRank *self);
gboolean tt_datapath_run_stamped(TtRank *self, TtStamp *stamp);
gboolean tt_datapath_record(TtRank *self, TtEvent *events, gsize *n_events);

/* Ticks of the clock that stamps events; the same clock on all ranks. */
guint64 tt_ticks_now(void);

/* The monotonic clock, where a tick of a known length is wanted. */
guint64 tt_now_ns(void);

/* wait.c: how a rank waits. Counts tries; spins, then yields, then sleeps. */
typedef struct {
    guint32 tries;
} TtWait;

/* The slow half: says in the shared block what is waited for, looks for an abort (FALSE). */
gboolean tt_wait_slow(TtRank *self, TtWait *wait, TtRankState state, guint peer, guint lane);

static inline void
tt_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* To be called after a look that found nothing. FALSE if the team was aborted. */
static inline gboolean
tt_wait(TtRank *self, TtWait *wait, TtRankState state, guint peer, guint lane)
{
    if (wait->tries >= self->spin_limit)
        return tt_wait_slow(self, wait, state, peer, lane);
    wait->tries++;
    tt_relax();
    return TRUE;
}

void tt_wait_say_busy(TtRank *self);

/* How often to look in vain before the slow half, for this job's connections. */
guint32 tt_wait_spin_limit(const TtRank *self);

static inline void
tt_wait_over(TtRank *self, TtWait *wait)
{
    if (wait->tries > self->spin_limit)
        tt_wait_say_busy(self);
    wait->tries = 0;
}
