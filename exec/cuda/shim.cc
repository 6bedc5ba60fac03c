/* shim.cc - barriers of blocks and warps whose threads are threads of the host. */
#include "exec/cuda/shim.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

/* Votes alternate between three words: one is written, one may still be read, one is cleared. */
#define N_VOTES 3

typedef struct {
    pthread_barrier_t barrier;
    unsigned vote[N_VOTES];
} Warp;

struct TtShimBlock {
    alignas(64) unsigned char memory[TT_SHIM_SHARED_BYTES];
    unsigned n_threads, n_warps; /* n_warps 0: no whole ones */
    pthread_barrier_t barrier;
    Warp *warps;
};

__thread TtShimThread tt_shim;

TtShimBlock *
tt_shim_block_new(unsigned n_threads)
{
    TtShimBlock *block;
    void *memory;

    if (posix_memalign(&memory, 64, sizeof *block) != 0)
        abort();
    block = (TtShimBlock *)memory;
    block->n_threads = n_threads;
    block->n_warps = n_threads % TT_SHIM_WARP ? 0 : n_threads / TT_SHIM_WARP;
    block->warps = (Warp *)calloc(block->n_warps + 1, sizeof(Warp));
    pthread_barrier_init(&block->barrier, NULL, n_threads);
    for (unsigned w = 0; w < block->n_warps; w++)
        pthread_barrier_init(&block->warps[w].barrier, NULL, TT_SHIM_WARP);
    return block;
}

void
tt_shim_block_free(TtShimBlock *block)
{
    if (!block)
        return;
    for (unsigned w = 0; w < block->n_warps; w++)
        pthread_barrier_destroy(&block->warps[w].barrier);
    pthread_barrier_destroy(&block->barrier);
    free(block->warps);
    free(block);
}

void
tt_shim_barrier(void)
{
    if (tt_shim.n_threads.x > 1)
        pthread_barrier_wait(&tt_shim.shared->barrier);
}

void *
tt_shim_shared(void)
{
    return tt_shim.shared->memory;
}

static Warp *
my_warp(void)
{
    return &tt_shim.shared->warps[tt_shim.thread.x / TT_SHIM_WARP];
}

void
tt_shim_warp_barrier(void)
{
    pthread_barrier_wait(&my_warp()->barrier);
}

bool
tt_shim_warp_any(bool mine)
{
    Warp *warp = my_warp();
    unsigned now = tt_shim.votes++ % N_VOTES;
    bool any;

    if (mine)
        __atomic_store_n(&warp->vote[now], 1, __ATOMIC_RELAXED);
    pthread_barrier_wait(&warp->barrier);
    any = __atomic_load_n(&warp->vote[now], __ATOMIC_RELAXED);
    if (tt_shim.thread.x % TT_SHIM_WARP == 0)
        __atomic_store_n(&warp->vote[(now + N_VOTES - 1) % N_VOTES], 0, __ATOMIC_RELAXED);
    return any;
}

void
tt_shim_pause(uint32_t looks)
{
    struct timespec nap = { 0, looks < 1000 ? 20000 : 200000 };

    if (looks < 64)
        sched_yield();
    else
        nanosleep(&nap, NULL);
}

uint64_t
tt_shim_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
