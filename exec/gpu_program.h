/* gpu_program.h - what a kernel is given: the plan of all ranks of one GPU, as small as it was written.
 *
 * One thread block serves one lane of one rank, and interprets it: the steps of one round, again for every
 * round, with the same arithmetic of chunks, channels and rounds as algos/schedule.c. Nothing is unrolled.
 * Plain C with fixed layout: read by kernels compiled by nvcc, by the same kernels compiled for the host, and
 * written by gpu_compile.c.
 *
 * A connection is what shared.h says it is, at addresses the GPU can reach:
 *
 *     ack        [consumed u64]                              at 0, written by the receiver
 *     slot k     at 128 + k * stride                         written by the sender
 *
 * How a slot is used depends on the connection's protocol; message number m (from 0) goes to slot m % n_slots:
 *
 *     SIMPLE   [sequence m + 1 u64 | info u64 | 48 B][payload]: sequence stored last, with release. A payload of at most
 *              48 bytes lies at 16, else at 64; info is where it ends. The layout wires carry, so one end may be a CPU.
 *     LL       words of 8 bytes: 4 of data and the low 32 bits of m + 1, each stored whole: no fence, twice the bytes
 *     LL128    lines of 128 bytes: 120 of data, then m + 1 as u64; a line's flag is seen after its data
 *
 * An end of a wire may have the payloads of its longer SIMPLE messages apart: ack and heads are the host's, payloads lie
 * in this GPU's memory, where the network puts and finds them.
 *
 * A sender needs m < consumed + n_slots before it writes, whatever the protocol.
 */
#pragma once
#include <stdint.h>

enum { TT_GPU_SIMPLE, TT_GPU_LL, TT_GPU_LL128, TT_GPU_N_PROTOCOLS };

#define TT_GPU_ACK_BYTES   128 /* before the first slot */
#define TT_GPU_HEAD_BYTES  64  /* of a SIMPLE slot */
#define TT_GPU_SMALL_START 16
#define TT_GPU_SMALL_BYTES 48
#define TT_GPU_LINE_BYTES  128 /* of LL128 */
#define TT_GPU_LINE_DATA   120

#define TT_GPU_NO_END  UINT32_MAX
#define TT_GPU_NO_LANE UINT32_MAX

/* One end of a connection; one block uses it. count and limit live from launch to launch. */
typedef struct {
    uint8_t *memory; /* ack, slots: as this GPU addresses them */
    /* SIMPLE: of slot 0's message, if it is not small; that of slot k at k * stride. NULL: in the slots. */
    uint8_t *payload;
    uint64_t stride; /* from slot to slot */
    uint64_t count;  /* messages passed */
    uint64_t
        limit; /* sender: may send while count < limit, as of the last look at the ack; begins as n_slots */
    uint32_t n_slots, protocol;
    uint32_t peer; /* rank, for what is said of a wait */
    uint32_t pad;
} TtGpuEnd;

/* One step of one round (TtStep). */
typedef struct {
    uint8_t op, src, dst, pad; /* TtOp, TtBuffer */
    uint32_t chunk, n_chunks;
    uint32_t recv, send; /* of ends[]; TT_GPU_NO_END */
    uint32_t dep_lane;   /* of lanes[]; TT_GPU_NO_LANE */
    uint32_t dep_step;
} TtGpuStep;

/* What a plan cuts the vector into. */
typedef struct {
    uint64_t count; /* elements */
    uint64_t n_rounds;
    uint32_t n_chunks, n_channels;
} TtGpuShape;

/* What the host sees of a lane while a kernel runs; in memory of the host. */
typedef struct {
    uint64_t
        done; /* steps finished of this launch, empty ones included; written now and then, exact when it has
                        waited for long, and at the end */
    uint32_t waits;  /* 0, or 1 + TtGpuWait, when it has waited for long */
    uint32_t peer;   /* rank waited for; of a lane, TT_GPU_NO_LANE */
    uint8_t pad[48]; /* a line of its own */
} TtGpuStatus;
enum { TT_GPU_WAITS_MESSAGE, TT_GPU_WAITS_SLOT, TT_GPU_WAITS_LANE };

/* A recorded step: times of the GPU's global clock, in ns. */
typedef struct {
    uint64_t begin_ns, end_ns, wait_ns; /* begin: when the step before it ended */
    uint64_t bytes;
    uint32_t round, step;
    uint32_t wait_end; /* the end waited for longest: of ends[]; TT_GPU_NO_END: none, or a lane */
    uint32_t pad;
} TtGpuEvent;

typedef struct {
    const TtGpuStep *steps; /* one round */
    uint32_t n_steps, channel, shape;
    uint32_t pad;
    uint8_t *vector
        [3]; /* [TtBuffer]: where element 0 of the vector is, or would be; aligned to elements */
    /* device: steps of all launches, for lanes of the rank that depend on it; begins as 0. NULL: none does, and it
     * depends on none. */
    uint64_t *finished;
    TtGpuStatus *status; /* host */
    TtGpuEvent *events;  /* room for n_steps * n_rounds; NULL: not recorded */
    uint64_t *n_events;
} TtGpuLane;

typedef struct {
    const TtGpuLane *lanes;
    TtGpuEnd *ends;
    const TtGpuShape *shapes;
    const uint32_t *abort; /* host: leave as soon as it is not 0; every wait looks at it */
    uint32_t n_lanes;      /* blocks */
    uint32_t type, redop;  /* TtType; TtRedop, with TT_SUM for TT_AVG */
    uint32_t element_bytes;
} TtGpuProgram;
