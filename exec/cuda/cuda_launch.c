/* Kernels of CUDA's: how many blocks fit, launches, news, and what they cost. */
#include "exec/cuda/cuda_device.h"
#include "exec/cuda/driver_words.h"
#include "exec/cuda/kernels.h"

#include "algos/types.h"

/* Threads of a block, unless the caller says: the largest with which all blocks are resident. 512 threads with four
 * 16-byte words each in flight cover some 32 KiB, what one SM needs to keep memory busy; fewer
 * threads leave registers for more blocks on an SM. */
static const guint sizes[] = { TT_GPU_MOST_THREADS, 256, 128, 64 };

static gboolean
most_of(TtGpu *self, const void *kernel, guint n_threads, guint *most, GError **error)
{
    int each = 0;

    if (!tt_cuda_good(
            self, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, (int)n_threads, 0),
            "find out how many blocks fit", error))
        return FALSE;
    *most = (guint)each * self->facts.n_sms;
    return TRUE;
}

/* The kernels of an element type. */
static const TtGpuKernels *
find_kernels(TtGpu *self, guint type, GError **error)
{
    if (type < TT_GPU_N_TYPES && tt_gpu_cuda_kernels[type])
        return tt_gpu_cuda_kernels[type];
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                "%s: this build has no kernels for %s", self->label,
                type < TT_N_TYPES ? tt_type_name((TtType)type) : "this type");
    return NULL;
}

static gboolean
check_threads(TtGpu *self, guint n_threads, guint most, GError **error)
{
    if (n_threads % self->warp == 0 && n_threads <= most)
        return TRUE;
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                "%s: blocks of %u threads cannot be: a multiple of %u up to %u can", self->label,
                n_threads, self->warp, most);
    return FALSE;
}

/* The largest block with which all are resident, or else the smallest. */
static gboolean
choose_threads(TtGpu *self, TtCudaFit *fit, guint most_threads, GError **error)
{
    for (gsize i = 0; i < G_N_ELEMENTS(sizes) && fit->most < fit->n_blocks; i++) {
        if (sizes[i] > most_threads)
            continue;
        fit->n_threads = sizes[i];
        if (!most_of(self, fit->kernel, fit->n_threads, &fit->most, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
fit_new(TtGpu *self, TtCudaFit *fit, GError **error)
{
    struct cudaFuncAttributes attributes;
    guint most_threads;

    if (!tt_cuda_good(self, cudaFuncGetAttributes(&attributes, fit->kernel), "load its kernels",
                      error))
        return FALSE;
    most_threads = MIN((guint)attributes.maxThreadsPerBlock, self->most_threads);
    if (!fit->asked_threads)
        return choose_threads(self, fit, most_threads, error);
    fit->n_threads = fit->asked_threads;
    return check_threads(self, fit->n_threads, most_threads, error) &&
           most_of(self, fit->kernel, fit->n_threads, &fit->most, error);
}

/* In self->fit. */
static gboolean
find_fit(TtGpu *self, const TtGpuLaunch *launch, GError **error)
{
    const TtGpuKernels *kernels = find_kernels(self, launch->program->type, error);
    TtCudaFit fit = { .asked_threads = launch->n_threads,
                      .n_blocks = MAX(1, launch->program->n_lanes) };

    if (!kernels || !tt_cuda_use(self, error))
        return FALSE;
    fit.kernel = (const void *)kernels->collective;
    if (fit.kernel == self->fit.kernel && fit.asked_threads == self->fit.asked_threads &&
        fit.n_blocks == self->fit.n_blocks)
        return TRUE;
    if (!fit_new(self, &fit, error))
        return FALSE;
    self->fit = fit;
    return TRUE;
}

gboolean
tt_cuda_most_blocks(TtGpu *self, const TtGpuLaunch *launch, guint *n, GError **error)
{
    if (!find_fit(self, launch, error))
        return FALSE;
    *n = self->fit.most;
    return TRUE;
}

gboolean
tt_cuda_launch(TtGpu *self, const TtGpuLaunch *launch, GError **error)
{
    void *arguments[] = { (void *)launch->program };
    guint n_blocks = launch->program->n_lanes;

    if (n_blocks == 0)
        return TRUE;
    if (!find_fit(self, launch, error))
        return FALSE;
    if (n_blocks > self->fit.most) {
        tt_cuda_blocks_error(error, self->label, n_blocks, self->fit.n_threads, self->fit.most);
        return FALSE;
    }
    return tt_cuda_good(self,
                        cudaLaunchCooperativeKernel(self->fit.kernel, (dim3){ n_blocks, 1, 1 },
                                                    (dim3){ self->fit.n_threads, 1, 1 }, arguments,
                                                    0, self->launches),
                        "launch", error);
}

gboolean
tt_cuda_scale(TtGpu *self, gpointer vector, guint64 count, guint type, guint n, GError **error)
{
    const TtGpuKernels *kernels = find_kernels(self, type, error);
    uint64_t elements = count, divisor = n;
    void *arguments[] = { &vector, &elements, &divisor };
    guint n_blocks = (guint)MIN((count + 255) / 256, 8 * MAX(1, self->facts.n_sms));

    if (!kernels || !tt_cuda_use(self, error))
        return FALSE;
    return count == 0 ||
           tt_cuda_good(self,
                        cudaLaunchKernel((const void *)kernels->scale, (dim3){ n_blocks, 1, 1 },
                                         (dim3){ 256, 1, 1 }, arguments, 0, self->launches),
                        "launch", error);
}

TtGpuNews
tt_cuda_poll(TtGpu *self, GError **error)
{
    cudaError_t code;

    if (!tt_cuda_use(self, error))
        return TT_GPU_FAILED;
    code = cudaStreamQuery(self->launches);
    if (code == cudaErrorNotReady) {
        (void)cudaGetLastError(); /* it counts as an error, too */
        return TT_GPU_RUNNING;
    }
    return tt_cuda_good(self, code, "finish a kernel", error) ? TT_GPU_DONE : TT_GPU_FAILED;
}
