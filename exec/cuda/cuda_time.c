/* What CUDA's GPUs take: launches, copies, reductions, flags. */
#include "exec/cuda/cuda_device.h"
#include "exec/cuda/kernels.h"

/* Waits as poll()'s callers do: without sleeping. */
static gboolean
wait_for_launches(TtGpu *self, GError **error)
{
    TtGpuNews news;

    while ((news = tt_cuda_poll(self, error)) == TT_GPU_RUNNING)
        ;
    return news == TT_GPU_DONE;
}

/* By the host's clock, one after the other: what a collective that moves nothing takes. */
gboolean
tt_cuda_time_launch(TtGpu *self, guint n, double *s, GError **error)
{
    const guint n_first = 10; /* not counted */
    gint64 began_us = 0;

    if (!tt_cuda_use(self, error))
        return FALSE;
    n = MAX(n, 1);
    for (guint i = 0; i < n_first + n; i++) {
        if (i == n_first)
            began_us = g_get_monotonic_time();
        if (!tt_cuda_good(self,
                          cudaLaunchCooperativeKernel(
                              (const void *)tt_gpu_cuda_basics.empty, (dim3){ 1, 1, 1 },
                              (dim3){ TT_GPU_MOST_THREADS, 1, 1 }, NULL, 0, self->launches),
                          "launch", error) ||
            !wait_for_launches(self, error))
            return FALSE;
    }
    *s = (double)(g_get_monotonic_time() - began_us) * 1e-6 / n;
    return TRUE;
}

static gboolean
copy_once(TtGpu *self, gpointer to, gconstpointer from, gsize bytes, guint n_blocks,
          gboolean reduce, GError **error)
{
    const void *kernel =
        reduce ? (const void *)tt_gpu_cuda_basics.reduce : (const void *)tt_gpu_cuda_basics.copy;
    uint64_t size = bytes;
    void *arguments[] = { &to, &from, &size };

    if (n_blocks == 0 && !reduce)
        return tt_cuda_good(self,
                            cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, self->launches),
                            "copy", error);
    if (n_blocks == 0)
        n_blocks = 2 * MAX(1, self->facts.n_sms);
    return tt_cuda_good(self,
                        cudaLaunchKernel(kernel, (dim3){ n_blocks, 1, 1 },
                                         (dim3){ TT_GPU_MOST_THREADS, 1, 1 }, arguments, 0,
                                         self->launches),
                        "launch", error);
}

gboolean
tt_cuda_time_copy(TtGpu *self, gpointer to, gconstpointer from, gsize bytes, guint n_blocks,
                  gboolean reduce, double *s, GError **error)
{
    /* A gigabyte in all, so that neither launches nor the clock's steps (0.5 us) are seen. */
    guint n = (guint)CLAMP(((gsize)1 << 30) / MAX(bytes, 1), 3, 1000);
    float ms = 0;

    if (!tt_cuda_use(self, error) || !copy_once(self, to, from, bytes, n_blocks, reduce, error) ||
        !tt_cuda_good(self, cudaEventRecord(self->begin, self->launches), "note the time", error))
        return FALSE;
    for (guint i = 0; i < n; i++)
        if (!copy_once(self, to, from, bytes, n_blocks, reduce, error))
            return FALSE;
    if (!tt_cuda_good(self, cudaEventRecord(self->end, self->launches), "note the time", error) ||
        !wait_for_launches(self, error) ||
        !tt_cuda_good(self, cudaEventElapsedTime(&ms, self->begin, self->end), "tell the time",
                      error))
        return FALSE;
    *s = (double)ms * 1e-3 / n;
    return TRUE;
}

/* --- flags ---------------------------------------------------------------------------------------- */

#define PINGS 1000

static gboolean
launch_ping(TtGpu *self, guint n_blocks, gpointer flags[2], guint64 first, GError **error)
{
    uint64_t n = PINGS, role = first;
    void *arguments[] = { &flags[0], &flags[1], &n, &role };

    return tt_cuda_use(self, error) &&
           tt_cuda_good(self,
                        cudaLaunchCooperativeKernel((const void *)tt_gpu_cuda_basics.ping,
                                                    (dim3){ n_blocks, 1, 1 }, (dim3){ 32, 1, 1 },
                                                    arguments, 0, self->launches),
                        "launch", error);
}

/* Whoever was launched is waited for, so that no kernel has memory that is gone. */
static gboolean
play_ping(TtGpu *self, TtGpu *other, gpointer flags[2], GError **error)
{
    gboolean good;

    if (self == other)
        return launch_ping(self, 2, flags, 0, error) && wait_for_launches(self, error);
    if (!launch_ping(self, 1, flags, 0, error))
        return FALSE;
    good = launch_ping(other, 1, flags, 1, error) && wait_for_launches(other, error);
    return wait_for_launches(self, good ? error : NULL) && good;
}

gboolean
tt_cuda_time_flag(TtGpu *self, TtGpu *other, double *s, GError **error)
{
    gpointer flags[2] = { tt_cuda_alloc(self, TT_GPU_PING_BYTES, error), NULL };
    guint64 words[TT_GPU_PING_WORD + 1] = { 0 };
    gboolean good;

    flags[1] = flags[0] ? tt_cuda_alloc(other, TT_GPU_PING_BYTES, error) : NULL;
    good = flags[1] && play_ping(self, other, flags, error) &&
           tt_cuda_copy(self, words, flags[0], sizeof words, error);
    tt_cuda_free(self, flags[0]);
    tt_cuda_free(other, flags[1]);
    if (good && words[TT_GPU_PING_WORD] == 0) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                    "%s: a flag does not come back from %s", self->label, other->label);
        return FALSE;
    }
    *s = (double)words[TT_GPU_PING_WORD] * 1e-9 / (2 * PINGS);
    return good;
}
