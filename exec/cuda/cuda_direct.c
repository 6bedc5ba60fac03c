/* GPUDirect: network cards read and write a GPU's memory, without the host's in between. */
#include "exec/cuda/cuda_device.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

/* Of CUDA's driver, which the runtime has loaded: newer than the oldest toolkit that compiles this. */
#define DMA_BUF_FD    1   /* CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD */
#define NOT_SUPPORTED 801 /* CUDA_ERROR_NOT_SUPPORTED */
typedef int (*HandleForRange)(void *handle, unsigned long long memory, size_t bytes, int type,
                              unsigned long long flags);

static int
attribute(const TtGpu *self, enum cudaDeviceAttr which)
{
    int value = 0;

    if (cudaDeviceGetAttribute(&value, which, self->index) != cudaSuccess)
        value = 0;
    (void)cudaGetLastError();
    return value;
}

/* A payload comes by another way than the word that tells of it: without order between them, a kernel may see the
 * word and old bytes. */
gboolean
tt_cuda_direct(TtGpu *self, gboolean *flush, GError **error)
{
    gboolean ordered = attribute(self, cudaDevAttrGPUDirectRDMAWritesOrdering) >=
                       cudaGPUDirectRDMAWritesOrderingOwner;
    const char *why = NULL;

    if (!attribute(self, cudaDevAttrGPUDirectRDMASupported))
        why = "this GPU, or its driver, does not let network cards use its memory";
    else if (!ordered && !(attribute(self, cudaDevAttrGPUDirectRDMAFlushWritesOptions) &
                           cudaFlushGPUDirectRDMAWritesOptionHost))
        why = "its kernels cannot tell when a network card's writes are there";
    if (why) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE, "%s: %s", self->label, why);
        return FALSE;
    }
    *flush = !ordered;
    return TRUE;
}

gboolean
tt_cuda_flush_writes(TtGpu *self, GError **error)
{
    return tt_cuda_use(self, error) &&
           tt_cuda_good(
               self,
               cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
                                                  cudaFlushGPUDirectRDMAWritesToOwner),
               "wait for a network card's writes", error);
}

static HandleForRange
find_handle_for_range(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *symbol;
    HandleForRange found = NULL;

    if (!driver)
        return NULL;
    symbol = dlsym(driver, "cuMemGetHandleForAddressRange");
    memcpy(&found, &symbol, sizeof found);
    dlclose(driver); /* the runtime holds it, too */
    return found;
}

/* Whole pages of the host's size. */
gboolean
tt_cuda_dma_buf(TtGpu *self, gpointer memory, gsize bytes, int *fd, guint64 *offset, GError **error)
{
    HandleForRange func = find_handle_for_range();
    guint64 page = (guint64)sysconf(_SC_PAGESIZE), at = (guint64)(guintptr)memory;
    guint64 begin = at / page * page, end = (at + bytes + page - 1) / page * page;
    int code;

    if (!tt_cuda_use(self, error))
        return FALSE;
    code = func ? func(fd, begin, end - begin, DMA_BUF_FD, 0) : NOT_SUPPORTED;
    *offset = at - begin;
    if (code == 0)
        return TRUE;
    if (code == NOT_SUPPORTED)
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                    "%s: its driver makes no dma-bufs: needs NVIDIA's open kernel modules and "
                    "Linux 5.12 or later",
                    self->label);
    else
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                    "%s: its memory cannot be had as a dma-buf: code %d of CUDA's driver",
                    self->label, code);
    return FALSE;
}
