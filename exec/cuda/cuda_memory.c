/* Memory of CUDA's: of a GPU, of the host, of a peer GPU, of another process's GPU. */
#include "exec/cuda/cuda_device.h"

#include <string.h>

/* Below 2 MiB the runtime cuts allocations from larger ones, and a handle for another process is of the larger one. */
#define PIECE_BYTES ((gsize)2 << 20)

static gboolean
finish_copies(TtGpu *self, const char *doing, GError **error)
{
    return tt_cuda_good(self, cudaStreamSynchronize(self->copies), doing, error);
}

gboolean
tt_cuda_zero(TtGpu *self, gpointer memory, gsize bytes, GError **error)
{
    if (bytes == 0)
        return TRUE;
    return tt_cuda_use(self, error) &&
           tt_cuda_good(self, cudaMemsetAsync(memory, 0, bytes, self->copies), "clear memory",
                        error) &&
           finish_copies(self, "clear memory", error);
}

gboolean
tt_cuda_copy(TtGpu *self, gpointer to, gconstpointer from, gsize bytes, GError **error)
{
    if (bytes == 0)
        return TRUE;
    return tt_cuda_use(self, error) &&
           tt_cuda_good(self, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, self->copies),
                        "copy", error) &&
           finish_copies(self, "copy", error);
}

gpointer
tt_cuda_alloc(TtGpu *self, gsize bytes, GError **error)
{
    void *memory = NULL;
    gsize whole;

    if (!tt_cuda_use(self, error))
        return NULL;
    if (bytes > G_MAXSIZE - PIECE_BYTES)
        whole = bytes; /* refused below, with words */
    else
        whole = MAX(1, (bytes + PIECE_BYTES - 1) / PIECE_BYTES) * PIECE_BYTES;
    if (!tt_cuda_got(self, cudaMalloc(&memory, whole), "allocate memory", whole, error))
        return NULL;
    if (!tt_cuda_zero(self, memory, whole, error)) {
        tt_cuda_free(self, memory);
        return NULL;
    }
    return memory;
}

void
tt_cuda_free(TtGpu *self, gpointer memory)
{
    if (memory && cudaSetDevice(self->index) == cudaSuccess)
        cudaFree(memory);
    (void)cudaGetLastError();
}

/* --- of the host --------------------------------------------------------------------------------- */

gpointer
tt_cuda_alloc_host(TtGpu *self, gsize bytes, GError **error)
{
    void *memory = NULL;

    if (!tt_cuda_use(self, error) ||
        !tt_cuda_got(
            self,
            cudaHostAlloc(&memory, MAX(bytes, 1), cudaHostAllocPortable | cudaHostAllocMapped),
            "lock memory of the host", bytes, error))
        return NULL;
    memset(memory, 0, MAX(bytes, 1));
    return memory;
}

void
tt_cuda_free_host(TtGpu *self, gpointer memory)
{
    if (memory && cudaSetDevice(self->index) == cudaSuccess)
        cudaFreeHost(memory);
    (void)cudaGetLastError();
}

/* Registered for all GPUs of the process at once, so only by the first that asks: how many did, by address. */
static GMutex registered_lock;
static GHashTable *registered;

static guint
registered_count(gpointer memory)
{
    return registered ? GPOINTER_TO_UINT(g_hash_table_lookup(registered, memory)) : 0;
}

static void
registered_set(gpointer memory, guint n)
{
    if (!registered)
        registered = g_hash_table_new(NULL, NULL);
    if (n > 0)
        g_hash_table_insert(registered, memory, GUINT_TO_POINTER(n));
    else
        g_hash_table_remove(registered, memory);
    if (g_hash_table_size(registered) == 0)
        g_clear_pointer(&registered, g_hash_table_unref);
}

static gboolean
register_first(TtGpu *self, gpointer memory, gsize bytes, GError **error)
{
    void *seen = NULL;

    if (!tt_cuda_got(
            self,
            cudaHostRegister(memory, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped),
            "register memory of the host", bytes, error))
        return FALSE;
    if (cudaHostGetDevicePointer(&seen, memory, 0) == cudaSuccess && seen == memory)
        return TRUE;
    (void)cudaGetLastError();
    cudaHostUnregister(memory);
    g_set_error(
        error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
        "%s: it sees registered memory of the host at other addresses than the CPU does: use "
        "--transport cuda inside one machine",
        self->label);
    return FALSE;
}

gboolean
tt_cuda_register_host(TtGpu *self, gpointer memory, gsize bytes, GError **error)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&registered_lock);
    guint n = registered_count(memory);

    if (!tt_cuda_use(self, error) || (n == 0 && !register_first(self, memory, bytes, error)))
        return FALSE;
    registered_set(memory, n + 1);
    return TRUE;
}

void
tt_cuda_unregister_host(TtGpu *self, gpointer memory)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&registered_lock);
    guint n = registered_count(memory);

    if (n == 0)
        return;
    registered_set(memory, n - 1);
    if (n == 1 && cudaSetDevice(self->index) == cudaSuccess)
        cudaHostUnregister(memory);
    (void)cudaGetLastError();
}

/* --- of others ----------------------------------------------------------------------------------- */

gboolean
tt_cuda_reach(TtGpu *self, TtGpu *other)
{
    cudaError_t code;
    int can = 0;

    if (self->index == other->index)
        return TRUE;
    if (cudaDeviceCanAccessPeer(&can, self->index, other->index) != cudaSuccess || !can ||
        cudaSetDevice(self->index) != cudaSuccess) {
        (void)cudaGetLastError();
        return FALSE;
    }
    code = cudaDeviceEnablePeerAccess(other->index, 0);
    (void)cudaGetLastError();
    return code == cudaSuccess || code == cudaErrorPeerAccessAlreadyEnabled;
}

gboolean
tt_cuda_share(TtGpu *self, gpointer memory, guint8 handle[TT_GPU_HANDLE_BYTES], GError **error)
{
    cudaIpcMemHandle_t made;

    G_STATIC_ASSERT(sizeof made == TT_GPU_HANDLE_BYTES);
    memset(&made, 0, sizeof made);
    if (!tt_cuda_use(self, error) || !tt_cuda_good(self, cudaIpcGetMemHandle(&made, memory),
                                                   "share memory with other processes", error))
        return FALSE;
    memcpy(handle, &made, sizeof made);
    return TRUE;
}

gpointer
tt_cuda_attach(TtGpu *self, const guint8 handle[TT_GPU_HANDLE_BYTES], GError **error)
{
    cudaIpcMemHandle_t got;
    void *memory = NULL;

    memcpy(&got, handle, sizeof got);
    if (!tt_cuda_use(self, error) ||
        !tt_cuda_good(self, cudaIpcOpenMemHandle(&memory, got, cudaIpcMemLazyEnablePeerAccess),
                      "use another process's GPU memory", error))
        return NULL;
    return memory;
}

void
tt_cuda_detach(TtGpu *self, gpointer memory)
{
    if (memory && cudaSetDevice(self->index) == cudaSuccess)
        cudaIpcCloseMemHandle(memory);
    (void)cudaGetLastError();
}
