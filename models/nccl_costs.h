/* nccl_costs.h - what NCCL's steps cost: the constants of the time model, one catalogue of them.
 *
 * A constant is a base figure (microseconds, GB/s, a share) or a factor that tells one generation of
 * GPUs, or one kind of network, from the base. A factor of 1 says nothing: hardware nobody has measured is
 * predicted by what it shares with hardware that was. Each has a prior, what one believes before any
 * measurement, and how firmly (standard deviation of its logarithm); fitting (nccl_fit.h) moves it from
 * there as far as measurements pull.
 */
#pragma once
#include "models/nccl.h"

typedef enum {
    TT_GEN_VOLTA,
    TT_GEN_TURING,
    TT_GEN_AMPERE,
    TT_GEN_ADA,
    TT_GEN_HOPPER,
    TT_GEN_BLACKWELL,
    TT_GEN_CDNA, /* AMD MI200, MI300 */
    TT_N_GENS
} TtGpuGen;

/* How two GPUs of a node reach each other. */
typedef enum { TT_WAY_NVLINK, TT_WAY_PCIE, TT_WAY_HOST, TT_N_WAYS } TtNcclWay;

typedef enum {
    TT_NIC_UNKNOWN,
    TT_NIC_IB,
    TT_NIC_ROCE,
    TT_NIC_EFA,
    TT_NIC_BOUNCE, /* EFA without GPUDirect: through host memory */
    TT_NIC_SLINGSHOT,
    TT_NIC_TCP,
    TT_N_NIC_KINDS
} TtNicKind;

/* Figures there is one of. */
typedef enum {
    TT_COST_START,          /* us, of the kernel on the GPU, once per operation */
    TT_COST_CALL,           /* us between two launches of a process that drives one GPU */
    TT_COST_CALL_EACH,      /* us for each GPU a process drives, if it drives all of a node's */
    TT_COST_EFA_GEN,        /* factor on a hop over EFA, from one generation to the next */
    TT_COST_PCIE_SHARE,     /* of a PCIe link */
    TT_COST_HOST_RATE,      /* GB/s of one GPU through host memory */
    TT_COST_FAR_SHARE,      /* of a NIC that is reached through a CPU */
    TT_COST_GRACE_FORWARD,  /* factor on handing over through a Grace CPU */
    TT_COST_TREE_CROWD,     /* share a tree's pace loses for each doubling of the nodes */
    TT_COST_NVLS_START,     /* us */
    TT_COST_NVLS_ROUND,     /* us, per chunk of a channel */
    TT_COST_NVLS_SHARE,     /* of a GPU's NVLink */
    TT_COST_NVLSTREE_ROUND, /* us */
    TT_COST_NVLSTREE_HOP,   /* factor on a Simple hop over the network */
    TT_COST_NVLSTREE_FILL,  /* rounds a pipeline over nodes takes to fill */
    TT_N_SINGLE_COSTS
} TtNcclSingleCost;

/* Figures each protocol has. */
typedef enum {
    TT_COST_HOP_NVLINK, /* us from a step's start to the next one's, beside its bytes */
    TT_COST_HOP_PCIE,
    TT_COST_HOP_HOST,
    TT_COST_HOP_GROWTH, /* us more for each doubling of the message beyond 64 B */
    TT_COST_CHANNEL,    /* GB/s of data one block moves */
    TT_COST_SHARE,      /* of an NVLink, data and flags together */
    TT_COST_HOP_NET,    /* us of a step over the network */
    TT_COST_FORWARD,    /* GB/s a message is handed over at, between GPU and NIC; LL */
    TT_COST_HIDDEN,     /* how much of a step's cost slices hide, per 100 kB; Simple */
    TT_COST_TREE,       /* factor on a block's rate: it works on two directions */
    TT_COST_BEGIN,      /* us more for an operation to begin and end */
    TT_N_PROTO_COSTS
} TtNcclProtoCost;

/* Factors of a GPU generation: for each protocol, and one for all. */
typedef enum {
    TT_GEN_HOP,
    TT_GEN_GROWTH,
    TT_GEN_CHANNEL,
    TT_GEN_SHARE,
    TT_N_GEN_PROTO_COSTS
} TtGenProtoCost;
typedef enum {
    TT_GEN_START,
    TT_GEN_NVLS_START,
    TT_GEN_NVLS_ROUND,
    TT_GEN_NVLS_SHARE,
    TT_N_GEN_COSTS
} TtGenCost;

/* Factors of a network: on a hop for each protocol, on handing over; and the share of a NIC's rate. */
typedef enum { TT_NIC_HOP, TT_NIC_FORWARD, TT_N_NIC_PROTO_COSTS } TtNicProtoCost;

/* Places in an array of all figures. */
enum {
    TT_COSTS_PROTO = TT_N_SINGLE_COSTS,
    TT_COSTS_GEN_PROTO = TT_COSTS_PROTO + TT_N_PROTO_COSTS * TT_NCCL_N_PROTOS,
    TT_COSTS_GEN = TT_COSTS_GEN_PROTO + TT_N_GENS * TT_N_GEN_PROTO_COSTS * TT_NCCL_N_PROTOS,
    TT_COSTS_NIC_PROTO = TT_COSTS_GEN + TT_N_GENS * TT_N_GEN_COSTS,
    TT_COSTS_NIC_SHARE =
        TT_COSTS_NIC_PROTO + TT_N_NIC_KINDS * TT_N_NIC_PROTO_COSTS * TT_NCCL_N_PROTOS,
    TT_N_COSTS = TT_COSTS_NIC_SHARE + TT_N_NIC_KINDS
};

static inline guint
tt_cost_proto(guint kind, guint proto)
{
    return TT_COSTS_PROTO + kind * TT_NCCL_N_PROTOS + proto;
}

static inline guint
tt_cost_gen_proto(guint gen, guint kind, guint proto)
{
    return TT_COSTS_GEN_PROTO + (gen * TT_N_GEN_PROTO_COSTS + kind) * TT_NCCL_N_PROTOS + proto;
}

static inline guint
tt_cost_gen(guint gen, guint kind)
{
    return TT_COSTS_GEN + gen * TT_N_GEN_COSTS + kind;
}

static inline guint
tt_cost_nic_proto(guint nic, guint kind, guint proto)
{
    return TT_COSTS_NIC_PROTO + (nic * TT_N_NIC_PROTO_COSTS + kind) * TT_NCCL_N_PROTOS + proto;
}

static inline guint
tt_cost_nic_share(guint nic)
{
    return TT_COSTS_NIC_SHARE + nic;
}

/* A set of constants: values, and what is known of where they come from. */
typedef struct {
    char *name; /* "built in", or a path */
    double value[TT_N_COSTS];
    double low[TT_N_COSTS], high[TT_N_COSTS]; /* 95 %; equal to the value where it was not fitted */
    char *from[TT_N_COSTS];                   /* "812 rows: cw-a100-80, ..."; NULL: the prior */
} TtNcclCosts;

char *tt_cost_name(guint cost); /* "hop.nvlink.ll", "gen.hopper.channel.simple"; caller frees */
const char *tt_cost_unit(guint cost); /* "us", "GB/s" or "" */
double tt_cost_prior(guint cost);
double tt_cost_sigma(guint cost); /* of the logarithm */

const char *tt_gpu_gen_name(guint gen);
const char *tt_nic_kind_name(guint nic);

TtNcclCosts *tt_nccl_costs_new(void); /* the priors */
void tt_nccl_costs_free(TtNcclCosts *costs);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtNcclCosts, tt_nccl_costs_free)

/* The constants compiled in, fitted on bench/measurements; made once, shared, never freed. */
const TtNcclCosts *tt_nccl_costs_built_in(void);

/* Reads and writes the .ini form: `name = value unit ; fitted: low .. high, from`. Names not listed keep
 * their priors. TT_NCCL_ERROR_FILE with one line. */
TtNcclCosts *tt_nccl_costs_parse(const char *name, const char *text, GError **error);
TtNcclCosts *tt_nccl_costs_load(const char *path, GError **error);
char *tt_nccl_costs_to_text(const TtNcclCosts *costs);
