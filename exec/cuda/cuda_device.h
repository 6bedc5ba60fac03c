/* cuda_device.h - what the files of the CUDA driver share. Needs the toolkit's headers.
 *
 * Each device has two streams of its own, neither of which waits for the other: one for kernels, one for copies, so
 * that memory can be read and written while a kernel waits for something.
 */
#pragma once
#include "exec/gpu.h"

#include <cuda_runtime_api.h>

/* What launch() chose, kept for launches of the same kind: asking the runtime takes longer than to launch. */
typedef struct {
    const void *kernel;
    guint asked_threads, n_blocks;
    guint n_threads, most; /* blocks of so many threads are resident together */
} TtCudaFit;

struct TtGpu {
    int index;       /* as this process counts */
    char label[160]; /* "GPU 0 (NVIDIA H200)" */
    TtGpuFacts facts;
    guint warp, most_threads;
    cudaStream_t launches, copies;
    cudaEvent_t begin, end;
    TtCudaFit fit;
};

/* The calling thread's calls are for this device from now on. */
gboolean tt_cuda_use(TtGpu *self, GError **error);

/* TRUE if @code is success; else sets @error: "<label>: cannot <doing>: ...". @self may be NULL. */
gboolean tt_cuda_good(TtGpu *self, cudaError_t code, const char *doing, GError **error);
gboolean tt_cuda_got(TtGpu *self, cudaError_t code, const char *doing, gsize asked_bytes,
                     GError **error); /* likewise, for memory */

/* cuda_memory.c: as gpu.h says. */
gpointer tt_cuda_alloc(TtGpu *self, gsize bytes, GError **error);
void tt_cuda_free(TtGpu *self, gpointer memory);
gpointer tt_cuda_alloc_host(TtGpu *self, gsize bytes, GError **error);
void tt_cuda_free_host(TtGpu *self, gpointer memory);
gboolean tt_cuda_register_host(TtGpu *self, gpointer memory, gsize bytes, GError **error);
void tt_cuda_unregister_host(TtGpu *self, gpointer memory);
gboolean tt_cuda_copy(TtGpu *self, gpointer to, gconstpointer from, gsize bytes, GError **error);
gboolean tt_cuda_zero(TtGpu *self, gpointer memory, gsize bytes, GError **error);
gboolean tt_cuda_reach(TtGpu *self, TtGpu *other);
gboolean tt_cuda_share(TtGpu *self, gpointer memory, guint8 handle[TT_GPU_HANDLE_BYTES],
                       GError **error);
gpointer tt_cuda_attach(TtGpu *self, const guint8 handle[TT_GPU_HANDLE_BYTES], GError **error);
void tt_cuda_detach(TtGpu *self, gpointer memory);

/* cuda_direct.c: as gpu.h says. */
gboolean tt_cuda_direct(TtGpu *self, gboolean *flush, GError **error);
gboolean tt_cuda_flush_writes(TtGpu *self, GError **error);
gboolean tt_cuda_dma_buf(TtGpu *self, gpointer memory, gsize bytes, int *fd, guint64 *offset,
                         GError **error);

/* cuda_launch.c: as gpu.h says. */
gboolean tt_cuda_most_blocks(TtGpu *self, const TtGpuLaunch *launch, guint *n, GError **error);
gboolean tt_cuda_launch(TtGpu *self, const TtGpuLaunch *launch, GError **error);
gboolean tt_cuda_scale(TtGpu *self, gpointer vector, guint64 count, guint type, guint n,
                       GError **error);
TtGpuNews tt_cuda_poll(TtGpu *self, GError **error);

/* cuda_time.c: as gpu.h says. */
gboolean tt_cuda_time_launch(TtGpu *self, guint n, double *s, GError **error);
gboolean tt_cuda_time_copy(TtGpu *self, gpointer to, gconstpointer from, gsize bytes,
                           guint n_blocks, gboolean reduce, double *s, GError **error);
gboolean tt_cuda_time_flag(TtGpu *self, TtGpu *other, double *s, GError **error);
