/* nccl_env.h - NCCL's environment variables, as far as they change what it decides. */
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
};

void tt_nccl_env_init(TtNcclEnv *env); /* everything unset */
void tt_nccl_env_clear(TtNcclEnv *env);
gboolean tt_nccl_env_set(TtNcclEnv *env, const char *name, const char *value, gboolean *used,
                         GError **error);
