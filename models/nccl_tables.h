/* nccl_tables.h - the constants of NCCL's tuning model, by version: latencies and bandwidth ceilings.
 *
 * Source: NCCL src/graph/tuning.cc of each release from 2.18.1 to 2.30.7. They are what NCCL believes,
 * tuned by its authors so as to choose well; nothing here was measured by us. Microseconds and GB/s.
 */
#pragma once
#include "models/nccl.h"

/* What a hop runs over. */
typedef enum { TT_HOP_NVLINK, TT_HOP_PCI, TT_HOP_NET, TT_N_HOPS } TtNcclHop;

/* Columns of the per-architecture tables. */
typedef enum { TT_CC_VOLTA, TT_CC_AMPERE, TT_CC_HOPPER, TT_CC_BLACKWELL, TT_N_CC } TtNcclArch;

typedef struct {
    double base_us[TT_NCCL_N_ALGOS][TT_NCCL_N_PROTOS];           /* once per operation */
    double hop_us[TT_N_HOPS][TT_NCCL_N_ALGOS][TT_NCCL_N_PROTOS]; /* per hop */

    /* GB/s for one node, two nodes, more */
    double ll_max[TT_N_CC][3];         /* whole operation by LL */
    double ring_ll128_max[TT_N_CC][3]; /* per channel, as the rest */
    double tree_ll128_max[TT_N_CC][3];
    double tree_max[TT_N_CC][3];
    double nvls_tree_max[TT_N_CC][3]; /* 2.28 and later; 0 before */
    double nvls_efficiency[TT_N_CC];  /* 2.28 and later; 0 before */
} TtNcclTables;

/* Those of @version. */
void tt_nccl_tables(guint version, TtNcclTables *tables);

/* NCCL's row for GPUs of compute capability @cc (90: Hopper); Blackwell has one since 2.25. */
TtNcclArch tt_nccl_arch(guint version, guint cc);

/* What Tree's bandwidth is multiplied by where bytes / 64 has this power of two. */
#define TT_NCCL_N_CORRECTIONS 23
extern const double tt_nccl_tree_correction[TT_NCCL_N_PROTOS][TT_NCCL_N_CORRECTIONS];
