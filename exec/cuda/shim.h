/* shim.h - stands in for CUDA where kernels are compiled for the host: every thread of a block is a thread here.
 *
 * Blocks, barriers and warps are those of shim.cc, which driver_host.cc sets up. Loads and stores that other
 * threads see are atomic, so that a thread sanitizer knows what is ordered after what.
 */
#pragma once
#include <stdint.h>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(n)

#define TT_SHIM_WARP         32
#define TT_SHIM_SHARED_BYTES 4096

typedef struct {
    unsigned x;
} TtShimIndex;

typedef struct TtShimBlock TtShimBlock;

/* What a thread knows of itself. */
typedef struct {
    TtShimIndex block, n_blocks, thread, n_threads;
    TtShimBlock *shared;
    unsigned votes; /* warp_any() so far */
} TtShimThread;

extern "C" {
extern __thread TtShimThread tt_shim;

/* Barriers and shared memory of a block; shared memory is not cleared. */
TtShimBlock *tt_shim_block_new(unsigned n_threads);
void tt_shim_block_free(TtShimBlock *block);

void tt_shim_barrier(void);
void *tt_shim_shared(void);
void tt_shim_warp_barrier(void);
bool tt_shim_warp_any(bool mine);

/* Between two looks at what one waits for: gives the core away, and sleeps once it has been long. */
void tt_shim_pause(uint32_t looks);
uint64_t tt_shim_clock_ns(void);
}

#define blockIdx        (tt_shim.block)
#define gridDim         (tt_shim.n_blocks)
#define threadIdx       (tt_shim.thread)
#define blockDim        (tt_shim.n_threads)
#define __syncthreads() tt_shim_barrier()
