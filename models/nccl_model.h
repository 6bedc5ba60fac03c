/* nccl_model.h - latency and bandwidth NCCL gives an algorithm and protocol, whether enabled or not.
 *
 * Source: NCCL src/graph/tuning.cc, 2.18.1 to 2.30.7. Private to nccl_*.c.
 */
#pragma once
#include "models/nccl_env.h"
#include "models/nccl_tables.h"

/* What the formulas take beside the communicator, worked out once. */
typedef struct {
    const TtNcclComm *comm; /* borrowed */
    const TtNcclEnv *env;   /* borrowed; may be NULL */
    TtNcclTables tables;
    TtNcclArch arch;
    guint column;    /* of the tables: 0 one node, 1 two nodes, 2 more */
    double per_node; /* ranks per node, not rounded */
} TtNcclModel;

void tt_nccl_model_init(TtNcclModel *model, const TtNcclComm *comm, const TtNcclEnv *env);

/* GB/s bytes are divided by; 0: NCCL has no such thing. */
double tt_nccl_model_gbps(const TtNcclModel *model, TtNcclFunc func, guint algo, guint proto);
double tt_nccl_model_latency_us(const TtNcclModel *model, TtNcclFunc func, guint algo, guint proto);

/* GPUs of a node that data is spread over before it leaves (NVLS, CollNet): distinct first GPUs of the
 * graph's channels. */
guint tt_nccl_heads(const TtNcclComm *comm, guint algo);

/* Power of two at or below @n; 0 for 0. */
guint tt_nccl_log2(guint64 n);
