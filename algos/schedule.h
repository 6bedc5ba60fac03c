/* schedule.h - the plan: what each rank does, step by step, in a form that is never unrolled.
 *
 * A plan says what and after what; never when, over which wire or at which address. It is verified
 * (verify.h), simulated (sim/), executed (exec/) and exported from this one description.
 *
 *   rank     0 .. n_ranks-1
 *   channel  an independent share of the data with connections of its own, 0 .. n_channels-1
 *   lane     one sequential program on one rank: a thread block on a GPU, a worker on a CPU.
 *            lane = channel * lanes_per_channel + sub-lane
 *   chunk    0 .. n_chunks-1, a share of the vector; a step moves a span of consecutive chunks
 *   round    0 .. n_rounds-1: the same program again on the next slice of every chunk (pipelining)
 *   role     how a program names a peer ("next", "parent"); peer() turns it into a rank
 *   agent    a rank, or a switch that reduces: n_ranks .. n_ranks + n_switches - 1. Switches run
 *            programs with lanes, steps and connections like ranks, but have no input, no output and
 *            no part in the result; what they hold is scratch. Plans of hosts only have none.
 *
 * A connection is a FIFO from (source rank, lane) to (destination rank, same lane) with n_slots
 * slots. A send takes a free slot, the matching receive frees it. A step whose span holds no
 * elements (a count smaller than the ranks, say) moves nothing and takes no slot, on either side.
 *
 * Data layout. The vector has `count` elements, seen whole: for allgather and reduce-scatter it is
 * the concatenation of all ranks' parts. It is cut into chunks, each chunk into channels, each
 * channel's share into rounds. Chunks are outermost, so rank r's part is the chunks
 * r*n_chunks/n_ranks .. and does not depend on channels or rounds.
 */
#pragma once
#include "algos/types.h"
#include "algos/wiring.h"

#define TT_PLAN_ERROR (tt_plan_error_quark())
GQuark tt_plan_error_quark(void);
typedef enum {
    TT_PLAN_ERROR_USAGE,  /* asked for what cannot be: unknown name, bad rank count, overflow */
    TT_PLAN_ERROR_INVALID /* the plan itself is wrong: what the verifier reports */
} TtPlanError;

typedef struct TtAlgo TtAlgo; /* algo.h */

#define TT_NO_RANK G_MAXUINT32
#define TT_NO_LANE G_MAXUINT16
#define TT_NO_ROLE G_MAXUINT32

/* What was asked for. Zero-initialised fields take the defaults given. */
typedef struct {
    TtCollective collective;
    guint n_ranks; /* >= 1 */
    guint64 count; /* elements of the whole vector; count * type size < 2^62 */
    TtType type;
    TtRedop redop;
    guint root;       /* broadcast and reduce */
    guint n_channels; /* 0: 1 */
    guint n_slots;    /* per connection; 0: 2 */
    guint64
        slot_bytes; /* aim for messages no larger than this; 0: no rounds, messages as they come */
    guint group_size;       /* ranks that are close (one node), consecutive; 0: all of them */
    const TtWiring *wiring; /* how channels thread through a group, whose size must be that of its
                               node; NULL: default. The plan keeps a copy, to which the pointer in
                               plan->spec then points. */
} TtPlanSpec;

typedef struct TtPlan {
    TtPlanSpec spec; /* as asked, defaults filled in */
    char *name;      /* as asked: "ring", "hierarchical:ring:tree" */
    const TtAlgo *algo;

    /* The shape, set by the algorithm's init(). */
    guint32 n_chunks; /* for reduce-scatter and allgather a multiple of n_ranks */
    guint32 max_span; /* the most chunks one step moves */
    guint16 lanes_per_channel;
    guint32 n_roles;       /* roles are 0 .. n_roles-1 */
    gboolean uses_scratch; /* of ranks; switches always have scratch */
    guint n_switches;      /* agents that are no ranks; 0: none */
    gpointer data;         /* the algorithm's own, released by its clear() */

    /* Derived. */
    guint16 n_lanes;  /* n_channels * lanes_per_channel */
    guint64 n_rounds; /* >= 1 */
} TtPlan;

/* Steps. The local operand is read from buffer `src`, the result stored to `dst`, both at the
 * step's span; `in` is the message from recv_role, `out` the message to send_role.
 *
 *                                reads        stores         out
 *   TT_OP_NOP                    -            -              -        only waits for its dependency
 *   TT_OP_COPY                   src          dst = src      -
 *   TT_OP_REDUCE                 src, dst     dst = dst+src  -
 *   TT_OP_SEND                   src          -              src
 *   TT_OP_COPY_SEND              src          dst = src      src
 *   TT_OP_RECV                   in           dst = in       -
 *   TT_OP_RECV_COPY_SEND         in           dst = in       in
 *   TT_OP_RECV_REDUCE            in, src      dst = src+in   -
 *   TT_OP_RECV_REDUCE_SEND       in, src      -              src+in
 *   TT_OP_RECV_REDUCE_COPY_SEND  in, src      dst = src+in   src+in
 */
typedef enum {
    TT_OP_NOP,
    TT_OP_COPY,
    TT_OP_REDUCE,
    TT_OP_SEND,
    TT_OP_COPY_SEND,
    TT_OP_RECV,
    TT_OP_RECV_COPY_SEND,
    TT_OP_RECV_REDUCE,
    TT_OP_RECV_REDUCE_SEND,
    TT_OP_RECV_REDUCE_COPY_SEND,
    TT_N_OPS
} TtOp;

typedef enum { TT_INPUT, TT_OUTPUT, TT_SCRATCH, TT_N_BUFFERS } TtBuffer;

typedef struct {
    guint8 op;         /* TtOp */
    guint8 src, dst;   /* TtBuffer */
    guint32 recv_role; /* TT_NO_ROLE if the op receives nothing */
    guint32 send_role; /* TT_NO_ROLE if the op sends nothing */
    guint16 dep_lane;  /* wait until that lane of this rank has finished dep_step of this round */
    guint32 dep_step;  /* meaningful if dep_lane != TT_NO_LANE */
    guint32 chunk, n_chunks;
} TtStep;

static inline gboolean
tt_op_receives(guint op)
{
    return op >= TT_OP_RECV;
}

static inline gboolean
tt_op_sends(guint op)
{
    return op == TT_OP_SEND || op == TT_OP_COPY_SEND || op == TT_OP_RECV_COPY_SEND ||
           op == TT_OP_RECV_REDUCE_SEND || op == TT_OP_RECV_REDUCE_COPY_SEND;
}

static inline gboolean
tt_op_reduces(guint op)
{
    return op == TT_OP_REDUCE || op >= TT_OP_RECV_REDUCE;
}

/* Reads the local buffer `src`. */
static inline gboolean
tt_op_loads(guint op)
{
    return (op >= TT_OP_COPY && op <= TT_OP_COPY_SEND) || op >= TT_OP_RECV_REDUCE;
}

/* Writes the local buffer `dst`. */
static inline gboolean
tt_op_stores(guint op)
{
    return op != TT_OP_NOP && op != TT_OP_SEND && op != TT_OP_RECV_REDUCE_SEND;
}

const char *tt_op_name(guint op);         /* "recv-reduce-send" */
const char *tt_buffer_name(guint buffer); /* "input" */

/* A contiguous share of the vector, in elements. */
typedef struct {
    guint64 first, count;
} TtRange;

/* Checks the spec, lets the algorithm shape the plan, derives lanes and rounds.
 * @algorithm: "ring", or "hierarchical:INNER:OUTER". NULL with TT_PLAN_ERROR_USAGE if it cannot be.
 * O(1) memory for every built-in algorithm, whatever the number of ranks. */
TtPlan *tt_plan_new(const char *algorithm, const TtPlanSpec *spec, GError **error);

/* The same for an algorithm object that is not in the registry (an imported table, a test).
 * Takes over @data, which becomes plan->data, also on failure if @algo has a clear(). */
TtPlan *tt_plan_new_for(const TtAlgo *algo, gpointer data, const char *name, const TtPlanSpec *spec,
                        GError **error);
void tt_plan_free(TtPlan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtPlan, tt_plan_free)

/* Where a switch that reduces is: in a node (group), as the switch all its ranks hang on, or the
 * network itself, which reaches every rank (SHARP). */
typedef struct {
    gboolean is_network;
    guint node; /* of the groups 0 .. n_ranks / group_size - 1; meaningful if not is_network */
} TtSwitchPlace;

/* Ranks and switches: numbers wherever "rank" names who runs a program or is a peer. */
static inline guint
tt_plan_n_agents(const TtPlan *plan)
{
    return plan->spec.n_ranks + plan->n_switches;
}

/* @agent: n_ranks .. tt_plan_n_agents() - 1. */
TtSwitchPlace tt_plan_switch(const TtPlan *plan, guint agent);

/* The program a rank runs on a channel: equal ids mean equal step lists (before chunk relabelling).
 */
guint32 tt_plan_program(const TtPlan *plan, guint rank, guint channel);

/* Steps of one round in @lane of @rank. */
guint32 tt_plan_n_steps(const TtPlan *plan, guint rank, guint lane);

/* Step i of one round, 0 <= i < n_steps, with absolute chunk numbers. O(1), computed, not stored.
 */
TtStep tt_plan_step(const TtPlan *plan, guint rank, guint lane, guint32 i);

/* The rank behind a role; TT_NO_RANK if this rank has none (the root's parent). */
guint tt_plan_peer(const TtPlan *plan, guint rank, guint lane, guint role);

static inline guint
tt_plan_channel(const TtPlan *plan, guint lane)
{
    return lane / plan->lanes_per_channel;
}

/* Elements of chunk @chunk that @channel handles in @round. Any argument in range; count may be 0.
 */
TtRange tt_plan_range(const TtPlan *plan, guint channel, guint64 round, guint32 chunk);

/* Elements of chunk @chunk over all channels and rounds. */
TtRange tt_plan_chunk(const TtPlan *plan, guint32 chunk);

/* Elements a span moves in one step: the sum over its chunks. */
guint64 tt_plan_span_count(const TtPlan *plan, guint channel, guint64 round, guint32 chunk,
                           guint32 n_chunks);

/* The longest contiguous piece that starts at chunk *chunk of a span of *n_chunks; advances both.
 * Adjacent chunks come as one piece when there is one channel and one round. For loops:
 *     while (n_chunks > 0) { TtRange piece = tt_plan_next_piece(plan, ch, round, &chunk,
 * &n_chunks); */
TtRange tt_plan_next_piece(const TtPlan *plan, guint channel, guint64 round, guint32 *chunk,
                           guint32 *n_chunks);

/* The most bytes one step of this plan sends: what a slot must hold. */
guint64 tt_plan_max_message_bytes(const TtPlan *plan);

/* The share of the vector a rank's buffer holds: all of it, its own part, or nothing; of a switch,
 * nothing but scratch, which is all.
 * Element e of the vector is at index e - range.first of that buffer. */
TtRange tt_plan_buffer_range(const TtPlan *plan, guint rank, guint buffer);

/* Constructors, so that an algorithm reads as a list of sentences. */
TtStep tt_nop(void);
TtStep tt_copy(TtBuffer src, TtBuffer dst, guint32 chunk);
TtStep tt_send(guint role, TtBuffer src, guint32 chunk);
TtStep tt_copy_send(guint role, TtBuffer src, TtBuffer dst, guint32 chunk);
TtStep tt_recv(guint role, TtBuffer dst, guint32 chunk);
TtStep tt_recv_copy_send(guint from, guint to, TtBuffer dst, guint32 chunk);
TtStep tt_recv_reduce(guint role, TtBuffer src, TtBuffer dst, guint32 chunk);
TtStep tt_recv_reduce_send(guint from, guint to, TtBuffer src, guint32 chunk);
TtStep tt_recv_reduce_copy_send(guint from, guint to, TtBuffer src, TtBuffer dst, guint32 chunk);
TtStep tt_span(TtStep step, guint32 n_chunks);                  /* the same step over more chunks */
TtStep tt_after(TtStep step, guint sub_lane, guint32 dep_step); /* ... after a step of that sub-lane
                                                                   of the same channel */
