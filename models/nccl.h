/* nccl.h - the words NCCL decides with: algorithms, protocols, path types, graphs, a communicator.
 *
 * What is known of NCCL's decisions, per version, stands in the nccl_*.c files of this folder; sources are
 * named there. Bandwidths are GB/s = 1e9 bytes per second, times microseconds, as NCCL prints them.
 */
#pragma once
#include "models/units.h"

#define TT_NCCL_ERROR (tt_nccl_error_quark())
GQuark tt_nccl_error_quark(void);
typedef enum { TT_NCCL_ERROR_USAGE, TT_NCCL_ERROR_FILE } TtNcclError;

/* In NCCL's order; ties between equal times go to the earlier one. */
typedef enum {
    TT_NCCL_TREE,
    TT_NCCL_RING,
    TT_NCCL_COLLNET_DIRECT,
    TT_NCCL_COLLNET_CHAIN,
    TT_NCCL_NVLS,
    TT_NCCL_NVLS_TREE,
    TT_NCCL_PAT,
    TT_NCCL_N_ALGOS
} TtNcclAlgo;

typedef enum { TT_NCCL_LL, TT_NCCL_LL128, TT_NCCL_SIMPLE, TT_NCCL_N_PROTOS } TtNcclProto;

typedef enum {
    TT_NCCL_BROADCAST,
    TT_NCCL_REDUCE,
    TT_NCCL_ALLGATHER,
    TT_NCCL_REDUCE_SCATTER,
    TT_NCCL_ALLREDUCE,
    TT_NCCL_N_FUNCS
} TtNcclFunc;

/* Nearest first. */
typedef enum {
    TT_PATH_LOC,
    TT_PATH_NVL,
    TT_PATH_NVB,
    TT_PATH_C2C,
    TT_PATH_PIX,
    TT_PATH_PXB,
    TT_PATH_P2C,
    TT_PATH_PXN,
    TT_PATH_PHB,
    TT_PATH_SYS,
    TT_PATH_NET,
    TT_PATH_DIS,
    TT_N_PATHS
} TtNcclPath;

/* Ids as in NCCL's logs and graph files. */
typedef enum {
    TT_PATTERN_BALANCED_TREE = 1,
    TT_PATTERN_SPLIT_TREE = 2,
    TT_PATTERN_TREE = 3,
    TT_PATTERN_RING = 4,
    TT_PATTERN_NVLS = 5,
    TT_PATTERN_COLLNET_DIRECT = 6
} TtNcclPattern;

typedef enum {
    TT_GRAPH_RING,
    TT_GRAPH_TREE,
    TT_GRAPH_COLLNET_CHAIN,
    TT_GRAPH_NVLS,
    TT_GRAPH_COLLNET_DIRECT,
    TT_N_GRAPHS
} TtNcclGraphId;

#define TT_NCCL_MAX_CHANNELS 64
#define TT_NCCL_MAX_GPUS     128 /* of a node (of an NVLink domain that counts as one) */

/* What the search found for one pattern. */
typedef struct {
    guint id;      /* TtNcclGraphId */
    guint pattern; /* TtNcclPattern */
    guint cross_nic;
    guint n_channels;             /* found by the search, before doubling; 0: no such graph */
    double bw_intra, bw_inter;    /* per channel */
    double latency_inter;         /* us */
    guint type_intra, type_inter; /* TtNcclPath */
    gboolean same_channels;
    guint n_gpus;
    guint16 gpu[TT_NCCL_MAX_CHANNELS]
               [TT_NCCL_MAX_GPUS]; /* places in the node, in the channel's order */
    gint16 net[TT_NCCL_MAX_CHANNELS]
              [2]; /* NET number where the channel enters and leaves; -1: none */
} TtNcclGraph;

/* A version as NCCL counts it: 22707 is 2.27.7. "2.27" is the newest 2.27 known; "nccl-2.27" too. Older
 * than 2.18.1 and newer than the newest known are taken as those, and *warning (may be NULL; caller
 * frees) then says so. */
guint tt_nccl_version_parse(const char *text, char **warning, GError **error);
char *tt_nccl_version_name(guint version); /* "2.27.7"; caller frees */
#define TT_NCCL_VERSION(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
extern const guint tt_nccl_versions[]; /* known, ascending, 0 at the end */

const char *tt_nccl_algo_name(
    guint algo); /* "Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT" */
const char *tt_nccl_proto_name(guint proto);     /* "LL", "LL128", "Simple" */
const char *tt_nccl_func_name(guint func);       /* "AllReduce" */
const char *tt_nccl_path_name(guint path);       /* "NVL" */
const char *tt_nccl_pattern_name(guint pattern); /* "BALANCED_TREE" */

/* NCCL's environment, as far as it changes decisions. tt_nccl_env_set() takes one variable with or without
 * the NCCL_ prefix; *used says whether it means anything to us (others are no error). */
typedef struct TtNcclEnv TtNcclEnv; /* nccl_env.h */

/* One communicator: every input of the tuning model. Filled by tt_nccl_comm_init() (nccl_search.h) or by
 * hand in tests. */
typedef struct {
    guint version;
    guint n_ranks, n_nodes, ranks_per_node;
    guint min_cc, max_cc; /* 90 for Hopper */
    gboolean cpu_amd;     /* any node's CPU vendor is AMD (or mixed) */
    gboolean cpu_x86, cpu_power;
    gboolean nvswitch, nvls, collnet; /* has NVSwitches; in-switch reduction; SHARP switched on */
    double max_bw, total_bw;
    double nic_gbits;               /* speed of one NIC, 0 without */
    TtNcclGraph graph[TT_N_GRAPHS]; /* after the merge over nodes */
    guint n_channels;               /* comm.nChannels: after doubling and limits */
    guint nvls_channels;
} TtNcclComm;

/* The graph an algorithm (TtNcclAlgo) runs on. */
const TtNcclGraph *tt_nccl_graph_of(const TtNcclComm *comm, guint algo);
