/* kernels.h - the kernels as drivers launch them.
 *
 * The same sources are compiled twice, by nvcc and, through shim.h, by the host's compiler, so each set has names
 * of its own. Functions are __global__ ones: nvcc's are for cudaLaunchKernel(), the host's are called by every
 * thread of a block.
 */
#pragma once
#include "exec/cuda/words.h"
#include "exec/gpu_program.h"

/* Most threads of a block; any number from 1 on is right, multiples of 32 are fast. */
#define TT_GPU_MOST_THREADS 512

#define TT_GPU_PING_WORD  16
#define TT_GPU_PING_BYTES 256

/* Of one element type. */
typedef struct {
    void (*collective)(TtGpuProgram program); /* n_lanes blocks, all resident */
    void (*scale)(uint8_t *data, uint64_t count, uint64_t divisor); /* any blocks */
} TtGpuKernels;

/* For calibration; any blocks. Pointers are aligned to 16 bytes. */
typedef struct {
    void (*empty)(void);
    void (*copy)(uint8_t *to, const uint8_t *from, uint64_t bytes);
    void (*reduce)(uint8_t *to, const uint8_t *from, uint64_t bytes); /* floats: to += from */

    /* Two blocks answer each other @n times through a flag in the memory of either, zero before; block 0 (with what the
     * launch adds: @first) says in word TT_GPU_PING_WORD behind its own how many ns all took. 0: no answer. */
    void (*ping)(uint8_t *mine, uint8_t *theirs, uint64_t n, uint64_t first);
} TtGpuBasics;

#ifdef __cplusplus
extern "C" {
#endif
extern const TtGpuKernels *const tt_gpu_cuda_kernels[TT_GPU_N_TYPES];
extern const TtGpuKernels *const tt_gpu_host_kernels[TT_GPU_N_TYPES];
extern const TtGpuBasics tt_gpu_cuda_basics, tt_gpu_host_basics;
#ifdef __cplusplus
}
#endif
