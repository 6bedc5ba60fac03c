/* sync.cuh - everything one thread block says to another, and how it waits: the only place that knows the machine.
 *
 * Three scopes. *System*: other GPUs, the host, network cards; of messages and acknowledgements. *Device*: blocks of
 * this GPU; of lanes that depend on each other. *Block*: through __syncthreads(). A thread that releases after a
 * __syncthreads() releases what all threads of its block wrote before it.
 *
 * A Pair is two words of 8 bytes, each of which is seen whole, in one access of 16 bytes. Words that carry their
 * own flags (LL) need no order between accesses. Lines (LL128) need that the 8 pairs which neighbouring threads of
 * a warp store at once are seen in no other order than the flag's last: so it is within a GPU and through NVLink, not
 * through PCIe.
 */
#pragma once
#include "exec/cuda/words.h"
#include "exec/gpu_program.h"

typedef struct {
    alignas(16) uint64_t word[2];
} Pair;

#ifdef __CUDACC__

#define DEVICE             static __device__ __forceinline__
#define UNROLL             _Pragma("unroll")
#define OUT_OF_LINE        static __device__ __noinline__
#define SHARED(type, name) __shared__ type name
#define LOOKS_AT_ONCE      1024 /* between looks at the abort word, which is far away: some 0.5 ms */
#define LOOKS_LONG         4096 /* then the host is told */

#define ACCESS(name, space, type, letter)                                                          \
    DEVICE type load_##name(const type *at)                                                        \
    {                                                                                              \
        type value;                                                                                \
                                                                                                   \
        asm volatile("ld." space " %0, [%1];" : "=" letter(value) : "l"(at) : "memory");           \
        return value;                                                                              \
    }
#define STORE(name, space, type, letter)                                                           \
    DEVICE void store_##name(type *at, type value)                                                 \
    {                                                                                              \
        asm volatile("st." space " [%0], %1;" ::"l"(at), letter(value) : "memory");                \
    }

ACCESS(acquire_system, "acquire.sys.u64", uint64_t, "l")
ACCESS(acquire_device, "acquire.gpu.u64", uint64_t, "l")
ACCESS(relaxed, "relaxed.sys.u64", uint64_t, "l")
ACCESS(relaxed32, "relaxed.sys.u32", uint32_t, "r")
STORE(release_system, "release.sys.u64", uint64_t, "l")
STORE(release_device, "release.gpu.u64", uint64_t, "l")
STORE(relaxed, "relaxed.sys.u64", uint64_t, "l")
STORE(relaxed32, "relaxed.sys.u32", uint32_t, "r")
#undef ACCESS
#undef STORE

DEVICE Pair
load_pair(const uint8_t *at)
{
    Pair p;

    asm volatile("ld.volatile.v2.u64 {%0, %1}, [%2];"
                 : "=l"(p.word[0]), "=l"(p.word[1])
                 : "l"(at)
                 : "memory");
    return p;
}

DEVICE void
store_pair(uint8_t *at, Pair p)
{
    asm volatile("st.volatile.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(p.word[0]), "l"(p.word[1])
                 : "memory");
}

/* After words with flags were read, which are there once their flags have been seen: no fence, which would
 * be most of a small message's time. */
DEVICE void
store_after_flags(uint64_t *at, uint64_t value)
{
    store_relaxed(at, value);
}

DEVICE uint64_t
clock_ns(void)
{
    uint64_t now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

DEVICE void
spin_pause(uint32_t looks)
{
    if (looks > LOOKS_LONG)
        __nanosleep(100);
}

/* For whole warps, all of whose threads are here. */
DEVICE bool
warp_any(bool mine)
{
    return __any_sync(0xffffffff, mine);
}

/* The part of a line a thread holds; the last of 8 threads holds the flag. Together, by a warp. */
DEVICE void
store_line_part(uint8_t *at, Pair p, bool stores, bool)
{
    __syncwarp();
    if (stores)
        store_pair(at, p);
}

/* The part of a line whose flag has been seen: @seen was loaded together with it. */
DEVICE Pair
load_line_part(const uint8_t *, Pair seen)
{
    return seen;
}

#else

#include "exec/cuda/shim.h"

#define DEVICE static inline
#define UNROLL
#define OUT_OF_LINE static __attribute__((unused))
#define SHARED(type, name)                                                                         \
    static_assert(sizeof(type) <= TT_SHIM_SHARED_BYTES, "fits a block's memory");                  \
    type &name = *(type *)tt_shim_shared()
#define LOOKS_AT_ONCE 1
#define LOOKS_LONG    64

#define ACCESS(name, load_order, store_order, type)                                                \
    DEVICE type load_##name(const type *at)                                                        \
    {                                                                                              \
        return __atomic_load_n(at, load_order);                                                    \
    }                                                                                              \
    DEVICE void store_##name(type *at, type value)                                                 \
    {                                                                                              \
        __atomic_store_n(at, value, store_order);                                                  \
    }

ACCESS(relaxed, __ATOMIC_RELAXED, __ATOMIC_RELAXED, uint64_t)
ACCESS(relaxed32, __ATOMIC_RELAXED, __ATOMIC_RELAXED, uint32_t)
#undef ACCESS

DEVICE uint64_t
load_acquire_system(const uint64_t *at)
{
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

DEVICE uint64_t
load_acquire_device(const uint64_t *at)
{
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

DEVICE void
store_release_system(uint64_t *at, uint64_t value)
{
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
}

DEVICE void
store_release_device(uint64_t *at, uint64_t value)
{
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
}

DEVICE Pair
load_pair(const uint8_t *at)
{
    const uint64_t *word = (const uint64_t *)at;
    Pair p;

    p.word[1] = __atomic_load_n(&word[1], __ATOMIC_ACQUIRE);
    p.word[0] = __atomic_load_n(&word[0], __ATOMIC_ACQUIRE);
    return p;
}

DEVICE void
store_pair(uint8_t *at, Pair p)
{
    uint64_t *word = (uint64_t *)at;

    __atomic_store_n(&word[0], p.word[0], __ATOMIC_RELAXED);
    __atomic_store_n(&word[1], p.word[1], __ATOMIC_RELAXED);
}

DEVICE void
store_after_flags(uint64_t *at, uint64_t value)
{
    store_release_system(at, value);
}

DEVICE uint64_t
clock_ns(void)
{
    return tt_shim_clock_ns();
}

DEVICE void
spin_pause(uint32_t looks)
{
    tt_shim_pause(looks);
}

DEVICE bool
warp_any(bool mine)
{
    return tt_shim_warp_any(mine);
}

/* No line is stored at once here: its flag follows when all have stored the rest. */
DEVICE void
store_line_part(uint8_t *at, Pair p, bool stores, bool last)
{
    if (stores && !last)
        store_pair(at, p);
    else if (stores)
        store_relaxed((uint64_t *)at, p.word[0]);
    tt_shim_warp_barrier();
    if (stores && last)
        store_release_system((uint64_t *)at + 1, p.word[1]);
}

DEVICE Pair
load_line_part(const uint8_t *at, Pair)
{
    return load_pair(at);
}

#endif

/* Blocks of whole warps do lines by warps. */
DEVICE bool
has_warps(void)
{
    return blockDim.x % 32 == 0;
}

/* --- waiting --------------------------------------------------------------------------------- */

/* Who may call a block back, and who is told that it waits; in shared memory. */
typedef struct {
    const uint32_t *abort;
    TtGpuStatus *status;
    uint64_t done;     /* steps of this launch; told now and then */
    uint32_t left;     /* a thread that carried has seen the abort word: all leave */
    uint32_t reported; /* status says that it waits */
} Watch;

/* A look has failed: FALSE if the block is to leave. @looks counts them, from 0.
 *
 * Who carries must then call leave(), which all read after the barrier. Thread 0 between two steps must not: others may
 * still be reading whether the last step was to be left, and would go without waiting for it at the next barrier. */
DEVICE bool
keep_waiting(Watch *watch, uint32_t *looks, uint32_t what, uint32_t peer)
{
    spin_pause(++*looks);
    if (*looks % LOOKS_AT_ONCE != 0)
        return true;
    if (load_relaxed32(watch->abort) != 0)
        return false;
    if (*looks >= LOOKS_LONG) {
        store_relaxed(&watch->status->done, watch->done);
        store_relaxed32(&watch->status->peer, peer);
        store_relaxed32(&watch->status->waits, what + 1);
        store_relaxed32(&watch->reported, 1);
    }
    return true;
}

DEVICE bool
leave(Watch *watch)
{
    store_relaxed32(&watch->left, 1);
    return false;
}

/* By one thread, when the wait is over. */
DEVICE void
stop_reporting(Watch *watch)
{
    if (load_relaxed32(&watch->reported) == 0)
        return;
    store_relaxed32(&watch->reported, 0);
    store_relaxed32(&watch->status->waits, 0);
}
