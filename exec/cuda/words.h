/* words.h - the numbers of algos/types.h and algos/schedule.h a kernel needs, without GLib.
 *
 * driver_host.cc asserts that they are the same.
 */
#pragma once

enum {
    TT_GPU_INT8,
    TT_GPU_INT32,
    TT_GPU_INT64,
    TT_GPU_FLOAT16,
    TT_GPU_BFLOAT16,
    TT_GPU_FLOAT32,
    TT_GPU_FLOAT64,
    TT_GPU_FLOAT8E4M3,
    TT_GPU_FLOAT8E5M2,
    TT_GPU_N_TYPES
};

enum { TT_GPU_SUM, TT_GPU_PROD, TT_GPU_MIN, TT_GPU_MAX };

enum {
    TT_GPU_NOP,
    TT_GPU_COPY,
    TT_GPU_REDUCE,
    TT_GPU_SEND,
    TT_GPU_COPY_SEND,
    TT_GPU_RECV,
    TT_GPU_RECV_COPY_SEND,
    TT_GPU_RECV_REDUCE,
    TT_GPU_RECV_REDUCE_SEND,
    TT_GPU_RECV_REDUCE_COPY_SEND
};
