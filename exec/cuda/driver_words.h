/* driver_words.h - codes of the CUDA runtime as sentences: what happened, and what to do about it.
 *
 * Knows CUDA's numbers, not its headers: compiled, and tested, where there is no toolkit.
 */
#pragma once
#include "exec/exec.h"

/* The codes that are told apart, as cudaError_t numbers them. */
enum {
    TT_CUDA_MEMORY = 2,
    TT_CUDA_OLD_DRIVER = 35,
    TT_CUDA_NO_DEVICE = 100,
    TT_CUDA_NO_IMAGE = 209,
    TT_CUDA_NO_PEERS = 217,
    TT_CUDA_TOO_MANY_BLOCKS = 720
};

/* What was known when a call failed; zeroed: nothing. */
typedef struct {
    const char *doing; /* "GPU 0 (NVIDIA H200): cannot launch"; NULL: not said */
    const char *own;   /* CUDA's own text for the code; NULL: none */
    guint driver,
        runtime;        /* versions as CUDA writes them, 12040 is 12.4; driver 0: there is none */
    guint major, minor; /* compute capability; 0: not known */
    const char *built_for;                         /* "sm_80 sm_90 compute_80"; NULL: not known */
    guint64 asked_bytes, free_bytes, memory_bytes; /* asked 0: not known */
    const char *visible;                           /* CUDA_VISIBLE_DEVICES; NULL: not set */
} TtCudaTrouble;

/* TT_EXEC_ERROR_SYSTEM where memory or the operating system ended, else HARDWARE. */
TtExecError tt_cuda_error_class(int code);

/* After these nothing can be done on the GPU by this process any more. */
gboolean tt_cuda_is_fatal(int code);

/* Sets @error, of that class, to one line: what was being done, what happened, what to do. */
void tt_cuda_error(GError **error, int code, const TtCudaTrouble *trouble);

/* "GPU 0 (...): 160 blocks of 512 threads cannot run at the same time: ..." with HARDWARE. */
void tt_cuda_blocks_error(GError **error, const char *gpu, guint n_blocks, guint n_threads,
                          guint most);
