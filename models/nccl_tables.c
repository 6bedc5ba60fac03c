/* nccl_tables - NCCL's tuning constants as a list of facts, each with the version it begins with.
 *
 * Facts stand in order of version within a table; tt_nccl_tables() applies those that are not newer than
 * the version asked for, so the last one that applies holds. Source of every line: the tables at the head
 * of NCCL's src/graph/tuning.cc in the release named (2.28 and later: ncclTopoTuneModel's constants in
 * src/include/plugin/tuner).
 */
#include "models/nccl_tables.h"

#define V TT_NCCL_VERSION

/* --- latencies --------------------------------------------------------------------------------- */

enum { BASE = TT_N_HOPS }; /* beside NVLINK, PCI and NET */

typedef struct {
    guint since;
    guint hop; /* TtNcclHop or BASE */
    guint algo;
    double us[TT_NCCL_N_PROTOS]; /* LL, LL128, Simple */
} LatencyFact;

static const LatencyFact latencies[] = {
    { 0, BASE, TT_NCCL_TREE, { 6.8, 14, 0 } },
    { V(2, 23, 0), BASE, TT_NCCL_TREE, { 6.8, 14, 8.4 } },
    { 0, BASE, TT_NCCL_RING, { 6.6, 14, 8.4 } },
    { 0, BASE, TT_NCCL_COLLNET_DIRECT, { 6.8, 14, 0 } },
    { V(2, 19, 0), BASE, TT_NCCL_COLLNET_DIRECT, { 0, 0, 0 } },
    { 0, BASE, TT_NCCL_COLLNET_CHAIN, { 6.8, 14, 0 } },
    { V(2, 19, 0), BASE, TT_NCCL_COLLNET_CHAIN, { 0, 0, 0 } },
    { 0, BASE, TT_NCCL_NVLS, { 0, 0, 23 } },
    { V(2, 19, 0), BASE, TT_NCCL_NVLS, { 0, 0, 0 } },
    { 0, BASE, TT_NCCL_NVLS_TREE, { 0, 0, 23 } },
    { V(2, 19, 0), BASE, TT_NCCL_NVLS_TREE, { 0, 0, 0 } },
    { 0, BASE, TT_NCCL_PAT, { 0, 0, 8 } },

    { 0, TT_HOP_NVLINK, TT_NCCL_TREE, { 0.6, 1.25, 28 } },
    { V(2, 18, 3), TT_HOP_NVLINK, TT_NCCL_TREE, { 0.6, 1.25, 4 } },
    { V(2, 19, 0), TT_HOP_NVLINK, TT_NCCL_TREE, { 0.6, 1.25, 28 } },
    { V(2, 23, 0), TT_HOP_NVLINK, TT_NCCL_TREE, { 0.6, 1.25, 4 } },
    { 0, TT_HOP_NVLINK, TT_NCCL_RING, { 0.6, 1.9, 3.4 } },
    { 0, TT_HOP_NVLINK, TT_NCCL_COLLNET_DIRECT, { 0, 0, 8.0 } },
    { V(2, 19, 0), TT_HOP_NVLINK, TT_NCCL_COLLNET_DIRECT, { 0, 0, 3.7 } },
    { 0, TT_HOP_NVLINK, TT_NCCL_COLLNET_CHAIN, { 0, 0, 4.75 } },
    { V(2, 19, 0), TT_HOP_NVLINK, TT_NCCL_COLLNET_CHAIN, { 0, 0, 2.8 } },
    { 0, TT_HOP_NVLINK, TT_NCCL_NVLS, { 0, 0, 0 } },
    { V(2, 19, 0), TT_HOP_NVLINK, TT_NCCL_NVLS, { 0, 0, 23 } },
    { V(2, 21, 0), TT_HOP_NVLINK, TT_NCCL_NVLS, { 0, 0, 25 } },
    { 0, TT_HOP_NVLINK, TT_NCCL_NVLS_TREE, { 0, 0, 0 } },
    { V(2, 19, 0), TT_HOP_NVLINK, TT_NCCL_NVLS_TREE, { 0, 0, 23 } },
    { V(2, 21, 0), TT_HOP_NVLINK, TT_NCCL_NVLS_TREE, { 0, 0, 25 } },
    { 0, TT_HOP_NVLINK, TT_NCCL_PAT, { 0, 0, 4 } },

    { 0, TT_HOP_PCI, TT_NCCL_TREE, { 1.0, 1.9, 28 } },
    { V(2, 18, 3), TT_HOP_PCI, TT_NCCL_TREE, { 1.0, 1.9, 6 } },
    { V(2, 19, 0), TT_HOP_PCI, TT_NCCL_TREE, { 1.0, 1.9, 28 } },
    { V(2, 23, 0), TT_HOP_PCI, TT_NCCL_TREE, { 1.0, 1.9, 4 } },
    { 0, TT_HOP_PCI, TT_NCCL_RING, { 1.0, 2.5, 5.7 } },
    { 0, TT_HOP_PCI, TT_NCCL_COLLNET_DIRECT, { 0, 0, 8.0 } },
    { V(2, 19, 0), TT_HOP_PCI, TT_NCCL_COLLNET_DIRECT, { 0, 0, 3.7 } },
    { 0, TT_HOP_PCI, TT_NCCL_COLLNET_CHAIN, { 0, 0, 8.0 } },
    { V(2, 19, 0), TT_HOP_PCI, TT_NCCL_COLLNET_CHAIN, { 0, 0, 2.8 } },
    { 0, TT_HOP_PCI, TT_NCCL_PAT, { 0, 0, 4 } },

    { 0, TT_HOP_NET, TT_NCCL_TREE, { 5.0, 8.5, 28 } },
    { V(2, 18, 3), TT_HOP_NET, TT_NCCL_TREE, { 5.0, 8.5, 14 } },
    { V(2, 19, 0), TT_HOP_NET, TT_NCCL_TREE, { 5.0, 8.5, 28 } },
    { V(2, 23, 0), TT_HOP_NET, TT_NCCL_TREE, { 5.0, 8.5, 14 } },
    { 0, TT_HOP_NET, TT_NCCL_RING, { 2.7, 4.0, 14 } },
    { 0, TT_HOP_NET, TT_NCCL_COLLNET_DIRECT, { 0, 0, 10.7 } },
    { V(2, 19, 0), TT_HOP_NET, TT_NCCL_COLLNET_DIRECT, { 0, 0, 31 } },
    { 0, TT_HOP_NET, TT_NCCL_COLLNET_CHAIN, { 0, 0, 14 } },
    { V(2, 19, 0), TT_HOP_NET, TT_NCCL_COLLNET_CHAIN, { 0, 0, 30 } },
    { 0, TT_HOP_NET, TT_NCCL_NVLS, { 0, 0, 18 } },
    { 0, TT_HOP_NET, TT_NCCL_NVLS_TREE, { 0, 0, 19 } },
    { V(2, 19, 0), TT_HOP_NET, TT_NCCL_NVLS_TREE, { 0, 0, 14 } },
    { V(2, 28, 9), TT_HOP_NET, TT_NCCL_NVLS_TREE, { 0, 0, 20.9 } },
    { 0, TT_HOP_NET, TT_NCCL_PAT, { 0, 0, 14 } },
};

/* --- ceilings ---------------------------------------------------------------------------------- */

typedef enum {
    LL_MAX,
    RING_LL128_MAX,
    TREE_LL128_MAX,
    TREE_MAX,
    NVLS_TREE_MAX,
    NVLS_EFFICIENCY /* the first figure only */
} Ceiling;

typedef struct {
    guint since;
    Ceiling table;
    TtNcclArch arch;
    double gbps[3]; /* one node, two, more */
} CeilingFact;

static const CeilingFact ceilings[] = {
    { 0, LL_MAX, TT_CC_VOLTA, { 39, 39, 20.4 } },
    { 0, LL_MAX, TT_CC_AMPERE, { 87.7, 22.5, 19 } },
    { 0, LL_MAX, TT_CC_HOPPER, { 87.7, 22.5, 19 } },
    { V(2, 21, 0), LL_MAX, TT_CC_HOPPER, { 141, 45, 35 } },
    { V(2, 25, 0), LL_MAX, TT_CC_BLACKWELL, { 282, 90, 70 } },

    { 0, RING_LL128_MAX, TT_CC_VOLTA, { 20, 20, 20 } },
    { 0, RING_LL128_MAX, TT_CC_AMPERE, { 20, 20, 20 } },
    { 0, RING_LL128_MAX, TT_CC_HOPPER, { 36.7, 36.7, 36.7 } },
    { V(2, 25, 0), RING_LL128_MAX, TT_CC_BLACKWELL, { 73.4, 73.4, 73.4 } },
    { V(2, 28, 7), RING_LL128_MAX, TT_CC_BLACKWELL, { 73.4, 34.6, 73.4 } },
    { V(2, 29, 0), RING_LL128_MAX, TT_CC_BLACKWELL, { 34.5, 34.6, 34.5 } },
    { V(2, 29, 7), RING_LL128_MAX, TT_CC_BLACKWELL, { 40, 40, 40 } },

    { 0, TREE_LL128_MAX, TT_CC_VOLTA, { 20, 20, 20 } },
    { 0, TREE_LL128_MAX, TT_CC_AMPERE, { 20, 20, 20 } },
    { 0, TREE_LL128_MAX, TT_CC_HOPPER, { 36.7, 36.7, 36.7 } },
    { V(2, 18, 3), TREE_LL128_MAX, TT_CC_HOPPER, { 36.7, 36.7, 29 } },
    { V(2, 25, 0), TREE_LL128_MAX, TT_CC_BLACKWELL, { 73.4, 73.4, 58 } },
    { V(2, 28, 0), TREE_LL128_MAX, TT_CC_BLACKWELL, { 55.6, 31.67, 20 } },

    { 0, TREE_MAX, TT_CC_VOLTA, { 26.5, 18.5, 10 } },
    { 0, TREE_MAX, TT_CC_AMPERE, { 24, 23.6, 17.8 } },
    { 0, TREE_MAX, TT_CC_HOPPER, { 38.7, 41.4, 33 } },
    { V(2, 18, 3), TREE_MAX, TT_CC_HOPPER, { 38.7, 41.4, 36 } },
    { V(2, 25, 0), TREE_MAX, TT_CC_BLACKWELL, { 77.4, 82.8, 72 } },
    { V(2, 28, 0), TREE_MAX, TT_CC_BLACKWELL, { 70, 42.8, 24 } },

    { V(2, 28, 0), NVLS_TREE_MAX, TT_CC_VOLTA, { 26.5, 18.5, 10 } },
    { V(2, 28, 0), NVLS_TREE_MAX, TT_CC_AMPERE, { 24, 23.6, 17.8 } },
    { V(2, 28, 0), NVLS_TREE_MAX, TT_CC_HOPPER, { 0, 57.7, 45.5 } },
    { V(2, 28, 0), NVLS_TREE_MAX, TT_CC_BLACKWELL, { 0, 96, 43.1 } },
    { V(2, 28, 9), NVLS_TREE_MAX, TT_CC_BLACKWELL, { 0, 96, 43.8 } },
    { V(2, 30, 0), NVLS_TREE_MAX, TT_CC_BLACKWELL, { 0, 96, 80 } },

    { V(2, 28, 0), NVLS_EFFICIENCY, TT_CC_HOPPER, { 0.85 } },
    { V(2, 28, 0), NVLS_EFFICIENCY, TT_CC_BLACKWELL, { 0.74 } },
};

const double tt_nccl_tree_correction[TT_NCCL_N_PROTOS][TT_NCCL_N_CORRECTIONS] = {
    { 1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1 },
    { 1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1 },
    { .9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9 },
};

static void
set_ceiling(TtNcclTables *tables, const CeilingFact *fact)
{
    double(*const table[])[3] = {
        [LL_MAX] = tables->ll_max,
        [RING_LL128_MAX] = tables->ring_ll128_max,
        [TREE_LL128_MAX] = tables->tree_ll128_max,
        [TREE_MAX] = tables->tree_max,
        [NVLS_TREE_MAX] = tables->nvls_tree_max,
    };

    if (fact->table == NVLS_EFFICIENCY) {
        tables->nvls_efficiency[fact->arch] = fact->gbps[0];
        return;
    }
    for (guint i = 0; i < 3; i++)
        table[fact->table][fact->arch][i] = fact->gbps[i];
}

void
tt_nccl_tables(guint version, TtNcclTables *tables)
{
    *tables = (TtNcclTables){ 0 };
    for (guint i = 0; i < G_N_ELEMENTS(latencies); i++) {
        const LatencyFact *f = &latencies[i];
        double *to = f->hop == BASE ? tables->base_us[f->algo] : tables->hop_us[f->hop][f->algo];

        for (guint p = 0; p < TT_NCCL_N_PROTOS && f->since <= version; p++)
            to[p] = f->us[p];
    }
    for (guint i = 0; i < G_N_ELEMENTS(ceilings); i++)
        if (ceilings[i].since <= version)
            set_ceiling(tables, &ceilings[i]);
}

TtNcclArch
tt_nccl_arch(guint version, guint cc)
{
    if (cc >= 100 && version >= V(2, 25, 0))
        return TT_CC_BLACKWELL;
    return cc >= 90 ? TT_CC_HOPPER : cc >= 80 ? TT_CC_AMPERE : TT_CC_VOLTA;
}
