/* micro.h - plans of one to four steps that two ranks run in lockstep, to learn what a step costs.
 *
 * Messages of some length are passed directly (algos/passing.h), if the team shares memory. Which step then has
 * what to do is in brackets: -, or all that it has without.
 *
 *     nothing                start
 *     copy | reduce          start + copy | start + reduce
 *     send, recv             start + send + L + recv               [-, recv; + L: what is lent comes back]
 *     copy-send, recv        start + copy-send + L + recv
 *     send, recv-reduce      start + send + L + recv-reduce        [-, recv-reduce; + L]
 *     send, X, recv          start + send + L + X + L + recv       X: the three fused forms
 *                                        [-, X placed, -; but recv-reduce-send goes through a slot, to recv]
 *     send, recv, send, recv start + send + L + recv + send + L + recv             [-, recv, send placed, -]
 *
 * L is the flag latency. On the right: the time of one iteration with one round. The forms with X work
 * on two chunks, as a ring of two does: what is sent first is not what X finds in the cache.
 */
#pragma once
#include "exec/exec.h"

#define TT_MICRO_RANKS 2

/* Who runs them: 2 ranks, or an even number (on GPUs: all at the same time, as in a collective, on as many channels as
 * one of this size has there). */
typedef struct {
    guint n_ranks;
    const char *transport; /* as after --transport */
    double direct_bytes;   /* messages from this length on are passed directly; 0: none are */
} TtMicroTeam;

typedef enum {
    TT_MICRO_NOTHING,
    TT_MICRO_COPY,
    TT_MICRO_REDUCE,
    TT_MICRO_SEND,
    TT_MICRO_COPY_SEND,
    TT_MICRO_RECV_REDUCE,
    TT_MICRO_FORWARD_COPY,
    TT_MICRO_FORWARD_REDUCE,
    TT_MICRO_FORWARD_BOTH,
    TT_MICRO_ANSWER,
    TT_N_MICRO
} TtMicro;

typedef struct {
    double time_s; /* one iteration */
    double flag_s; /* beside it */
    double
        share[TT_N_OPS]; /* of an iteration's work, of one step of the kind that had all to do; by a
                               recorded timeline */
    double n_rounds, n_waits; /* waits: of one round */
    double message_bytes;     /* of one step of one lane */
    gboolean steady;          /* the machine stayed in one state meanwhile */
} TtMicroSample;

/* A plan in which rank r talks to rank r + n/2. @bytes: of one buffer; but as long as
 * messages are whole, @bytes is the length of one, and the forms with X have buffers of two. */
TtPlan *tt_micro_plan(const TtMicroTeam *who, TtMicro micro, guint64 bytes, GError **error);

/* Some milliseconds: timed loops, then recorded iterations. */
gboolean tt_micro_measure(TtTeam *team, const TtMicroTeam *who, TtMicro micro, guint64 bytes,
                          TtMicroSample *sample, GError **error);

/* How long a flag takes between GPUs, where the team does not measure it beside: what an answer takes longer than a
 * message, less the work of its steps. */
gboolean tt_micro_measure_flag(TtTeam *team, const TtMicroTeam *who, guint64 bytes, double *flag_s,
                               GError **error);
