/* host_pool.h - launches of kernels compiled for the host: every thread of every block is a thread here.
 *
 * Threads are made when a launch first needs them and wait for the next, since a collective is launched many times.
 * Launches follow each other; nobody waits for them but who asks to.
 */
#pragma once
#include "exec/cuda/kernels.h"

#include <glib.h>

typedef struct TtHostPool TtHostPool;

/* A kernel with its arguments: run by every thread, which finds itself in blockIdx and threadIdx. */
typedef struct TtHostWork TtHostWork;
struct TtHostWork {
    void (*run)(const TtHostWork *work);
    guint n_blocks, n_threads;
    TtGpuProgram program;
    const TtGpuKernels *kernels;
    guint8 *to;
    const guint8 *from;
    guint8 *flags[2];
    guint64 count, divisor;
};

TtHostPool *tt_host_pool_new(void);
void tt_host_pool_free(TtHostPool *self); /* waits for what was launched */

/* FALSE if the system gives no more threads; errno says why. */
gboolean tt_host_pool_launch(TtHostPool *self, const TtHostWork *work);
gboolean tt_host_pool_is_idle(TtHostPool *self);
void tt_host_pool_wait(TtHostPool *self);
