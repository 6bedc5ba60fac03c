/* nccl_env.h - NCCL's environment variables, as far as they change what it decides.
 *
 * Never read from the process: whoever wants a variable honoured sets it here.
 */
#pragma once
#include "models/nccl.h"

#define TT_NCCL_UNSET (-1)

struct TtNcclEnv {
    char *algo, *proto; /* NCCL_ALGO, NCCL_PROTO as written; NULL: not set. Parsed by version */
    int min_channels,
        max_channels; /* NCCL_MIN_NCHANNELS / MIN_CTAS, NCCL_MAX_NCHANNELS / MAX_CTAS */
    int p2p_level;    /* TtNcclPath from NCCL_P2P_LEVEL; NCCL_P2P_DISABLE=1 is LOC */
    int gdr_level;    /* TtNcclPath from NCCL_NET_GDR_LEVEL */
    int shm_disable, nvls_enable, collnet_enable, pat_enable, cross_nic, pxn_disable, nvb_disable,
        mnnvl_enable;
    int ll128_c2c;
    gint64 buff_size, ll_buff_size, ll128_buff_size; /* bytes */
    int n_threads, ll128_n_threads;
    gint64 nvls_chunk_size, nvls_tree_max_chunk_size;
    int net_overhead_ns;
    int ib_disable;
    char *graph_file;      /* NCCL_GRAPH_FILE: a path; its graphs are not searched for */
    char *graph_dump_file; /* NCCL_GRAPH_DUMP_FILE: where who searched writes the result */
};

void tt_nccl_env_init(TtNcclEnv *env); /* everything unset */
void tt_nccl_env_clear(TtNcclEnv *env);
gboolean tt_nccl_env_set(TtNcclEnv *env, const char *name, const char *value, gboolean *used,
                         GError **error);

/* The names tt_nccl_env_set() knows, without NCCL_; NULL after the last. */
const char *tt_nccl_env_name(guint i);

/* Where a value must be one of a few, what it may be: "0 or 1"; for messages and completion. NULL for a
 * name that is not known. */
const char *tt_nccl_env_values(const char *name);

/* NCCL_ALGO and NCCL_PROTO as @version reads them, for one collective. */
typedef struct {
    gboolean algo[TT_NCCL_N_ALGOS];   /* 0: filtered out */
    gboolean proto[TT_NCCL_N_PROTOS]; /* likewise */
    gboolean algo_given, proto_given;
    gboolean ll128_forced; /* NCCL_PROTO leaves LL128 in: on whatever NCCL thinks of the hardware */
} TtNcclFilter;

/* @env may be NULL: everything passes. Fails with one line where @version refuses the text (2.24 and
 * later do; before, unknown names count as absent). */
gboolean tt_nccl_env_filter(const TtNcclEnv *env, guint version, TtNcclFunc func,
                            TtNcclFilter *filter, GError **error);
