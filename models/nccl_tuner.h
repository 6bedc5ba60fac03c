/* nccl_tuner.h - NCCL's tuning model: what it believes each algorithm and protocol costs, and what it
 * then chooses.
 *
 * Reproduces the figures NCCL prints with NCCL_DEBUG_SUBSYS=TUNING (tests/data/nccl-golden.tsv holds them
 * for eleven releases). They are NCCL's beliefs; what an operation really takes is another matter.
 */
#pragma once
#include "models/nccl_env.h"

typedef struct {
    gboolean enabled;
    const char *why_not; /* static text, NULL if enabled: "NVLSTree needs two nodes" */
    double latency_us;
    double bw_gbps; /* what bytes are divided by (algorithm bandwidth) */
} TtNcclCell;

/* A cell that is off keeps the figures it would have had, 0 where there are none. */
typedef struct {
    TtNcclCell cell[TT_NCCL_N_ALGOS][TT_NCCL_N_PROTOS];
} TtNcclTable;

/* The figures NCCL computes when a communicator is made, for one collective. @env may be NULL.
 * Fails if NCCL_ALGO or NCCL_PROTO hold what this version refuses. */
gboolean tt_nccl_table(const TtNcclComm *comm, TtNcclFunc func, const TtNcclEnv *env,
                       TtNcclTable *table, GError **error);

/* One operation as the chooser sees it. */
typedef struct {
    TtNcclFunc func;
    guint64
        bytes; /* max(send, receive) of one rank: count x size, x n_ranks for allgather and reduce-scatter */
    guint type_bytes;
    gboolean is_float, is_fp8, op_is_sum, op_is_min_max, op_is_avg;
} TtNcclOp;

typedef struct {
    TtNcclAlgo algo;
    TtNcclProto proto;
    double time_us;   /* what NCCL believes */
    guint n_channels; /* blocks used for these bytes, before the split */
    guint n_threads;  /* per block */
    guint64
        chunk_bytes; /* data bytes per message of one channel (step x chunkSteps, by its rules) */
    guint64 slice_bytes; /* what receiver and NIC see at a time */
    guint used_channels; /* after the split of the data over channels */
    guint64
        channel_bytes; /* data of a full channel, of TtNcclOp's bytes (all parts of allgather) */
    guint64 last_channel_bytes; /* the last one takes what is left */
    guint
        n_loops; /* over a full channel's data, a chunk for each part (ranks of a ring, heads) a loop */
} TtNcclChoice;

/* What NCCL believes one pair costs for @op (corrections for the size included); INFINITY if not enabled. */
double tt_nccl_time_us(const TtNcclComm *comm, const TtNcclTable *table, const TtNcclOp *op,
                       TtNcclAlgo algo, TtNcclProto proto);

/* Why a pair is no candidate for @op: the table's reason, or the type's or reduction's. NULL if it is one. */
const char *tt_nccl_why_not(const TtNcclComm *comm, const TtNcclTable *table, const TtNcclOp *op,
                            TtNcclAlgo algo, TtNcclProto proto);

/* Smallest time wins. Fails with one line where NCCL fails (2.24+: everything filtered out). */
gboolean tt_nccl_choose(const TtNcclComm *comm, const TtNcclTable *table, const TtNcclEnv *env,
                        const TtNcclOp *op, TtNcclChoice *choice, GError **error);

/* Channels, threads, chunk and split for a given pair. */
void tt_nccl_shape(const TtNcclComm *comm, const TtNcclTable *table, const TtNcclEnv *env,
                   const TtNcclOp *op, TtNcclAlgo algo, TtNcclProto proto, TtNcclChoice *choice);

/* Most threads a block of this pair has, before an operation's size cuts them: NCCL's "Max NThreads". */
guint tt_nccl_max_threads(const TtNcclComm *comm, const TtNcclEnv *env, TtNcclAlgo algo,
                          TtNcclProto proto);
