/* interpret.cuh - the kernel of a collective: block b runs lane b of the program, whatever its threads are.
 *
 *     thread 0                       all threads
 *     wait for the step's needs
 *     ------------------------ barrier ------------------------
 *                                    carry: one pass over the data
 *     ------------------------ barrier ------------------------
 *     hand over, acknowledge
 *
 * A step of words with flags waits for them while it carries.
 */
#pragma once
#include "exec/cuda/kernels.h"
#include "exec/cuda/mixed.cuh"
#include "exec/cuda/walk.cuh"

template <class T>
DEVICE void
carry(Move *move, Watch *watch)
{
    uint32_t protocol = move->in ? move->in_protocol : move->out_protocol;
    bool mixes = move->in && move->out && move->in_protocol != move->out_protocol;

    if (mixes || (protocol == TT_GPU_LL128 && !has_warps()))
        carry_mixed<T>(move, watch);
    else if (protocol == TT_GPU_LL)
        carry_ll<T>(move, watch);
    else if (protocol == TT_GPU_LL128)
        carry_ll128<T>(move, watch);
    else
        carry_simple<T>(move);
}

template <class T>
static __global__ void
__launch_bounds__(TT_GPU_MOST_THREADS) collective(TtGpuProgram program)
{
    SHARED(Block, block);
    Walk walk = {}; /* only that of thread 0 is used */

    bring_program(&block, &program);
    __syncthreads();
    if (threadIdx.x == 0)
        begin_walk(&walk, &block, &program);
    for (;;) {
        if (threadIdx.x == 0)
            block.over = !prepare(&walk, &block);
        __syncthreads();
        if (block.over)
            break;
        carry<T>(&block.move, &block.watch);
        __syncthreads();
        if (load_relaxed32(&block.watch.left) != 0)
            break;
        if (threadIdx.x == 0)
            hand_over(&walk, &block);
    }
    if (threadIdx.x == 0)
        end_walk(&walk, &block.watch);
}

/* A pass of all blocks over memory: elements first .. */
template <class T>
static __global__ void
scale(uint8_t *data, uint64_t count, uint64_t divisor)
{
    typename T::Element *element = (typename T::Element *)data;
    uint64_t stride = (uint64_t)blockDim.x * gridDim.x;

    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
        element[i] = T::narrow(T::quotient(T::widen(element[i]), divisor));
}

/* One file for each type instantiates this. */
#ifdef __CUDACC__
#define TT_KERNELS_OF(Type) tt_gpu_cuda_##Type
#else
#define TT_KERNELS_OF(Type) tt_gpu_host_##Type
#endif
#define TT_KERNELS(Type)                                                                           \
    extern "C" {                                                                                   \
    extern const TtGpuKernels TT_KERNELS_OF(Type);                                                 \
    const TtGpuKernels TT_KERNELS_OF(Type) = { collective<Type>, scale<Type> };                    \
    }
