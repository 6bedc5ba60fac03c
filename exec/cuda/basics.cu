/* basics.cu - kernels that move nothing or plain memory, for calibration; and the table of all others. */
#include "exec/cuda/kernels.h"
#include "exec/cuda/simple.cuh"

static __global__ void
empty(void)
{
}

/* Whole pairs of the range of this block: each block has one, as each lane has its own data. */
template <class OP>
DEVICE void
pass_share(uint8_t *to, const uint8_t *from, uint64_t bytes)
{
    Range all = { 0, bytes / sizeof(Pair) };
    Range mine = part_of(all, blockIdx.x, gridDim.x);
    uint64_t first = mine.first * sizeof(Pair);
    Pass pass = { OP::COMBINES ? to + first : from + first, from + first, to + first, NULL,
                  mine.count * sizeof(Pair) };

    pass_piece<Float32, OP>(pass);
}

static __global__ void
__launch_bounds__(TT_GPU_MOST_THREADS) copy(uint8_t *to, const uint8_t *from, uint64_t bytes)
{
    pass_share<Copied>(to, from, bytes);
}

static __global__ void
__launch_bounds__(TT_GPU_MOST_THREADS) reduce(uint8_t *to, const uint8_t *from, uint64_t bytes)
{
    pass_share<Sum>(to, from, bytes);
}

/* FALSE: the other has been silent for 2 s. Nobody waits for ever. */
DEVICE bool
hear(const uint64_t *flag, uint64_t number)
{
    uint64_t since = 0;

    for (uint32_t looks = 0; load_acquire_system(flag) < number;) {
        spin_pause(++looks);
        if (looks % LOOKS_AT_ONCE != 0)
            continue;
        if (since == 0)
            since = clock_ns();
        else if (clock_ns() - since > 2000000000)
            return false;
    }
    return true;
}

/* The first exchange is not counted: the other may have to start yet. */
static __global__ void
ping(uint8_t *mine, uint8_t *theirs, uint64_t n, uint64_t first)
{
    bool begins = first + blockIdx.x == 0;
    uint64_t *heard = (uint64_t *)(begins ? mine : theirs);
    uint64_t *told = (uint64_t *)(begins ? theirs : mine);
    uint64_t from_ns = 0;

    if (threadIdx.x != 0)
        return;
    for (uint64_t i = 1; i <= n + 1; i++) {
        if (begins)
            store_release_system(told, i);
        if (!hear(heard, i))
            return;
        if (!begins)
            store_release_system(told, i);
        else if (i == 1)
            from_ns = clock_ns();
    }
    if (begins)
        store_relaxed(heard + TT_GPU_PING_WORD, clock_ns() - from_ns);
}

#ifdef __CUDACC__
#define OWN(name) tt_gpu_cuda_##name
#else
#define OWN(name) tt_gpu_host_##name
#endif

extern "C" {
extern const TtGpuKernels OWN(Int8), OWN(Int32), OWN(Int64), OWN(Float16), OWN(Bfloat16),
    OWN(Float32), OWN(Float64), OWN(Float8e4m3), OWN(Float8e5m2);

const TtGpuKernels *const OWN(kernels)[TT_GPU_N_TYPES] = {
    &OWN(Int8),    &OWN(Int32),   &OWN(Int64),      &OWN(Float16),   &OWN(Bfloat16),
    &OWN(Float32), &OWN(Float64), &OWN(Float8e4m3), &OWN(Float8e5m2)
};
const TtGpuBasics OWN(basics) = { empty, copy, reduce, ping };
}
