/* driver_cuda - NVIDIA's GPUs by the CUDA runtime, linked in: without a driver it says so.
 *
 * A process has one context on each GPU, whichever of its threads calls; so every function says first which GPU it is
 * about. CUDA does not survive fork(): it is first called in the process that launches.
 */
#include "exec/cuda/cuda_device.h"
#include "exec/cuda/driver_words.h"
#include "exec/cuda/kernels.h"

#include <string.h>

static void
trouble_init(TtCudaTrouble *trouble, const TtGpu *self, cudaError_t code, const char *doing)
{
    int driver = 0, runtime = 0;

    (void)cudaGetLastError(); /* so that no later call finds this one */
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    *trouble = (TtCudaTrouble){
        .doing = doing,
        .own = cudaGetErrorString(code),
        .driver = (guint)driver,
        .runtime = (guint)runtime,
        .major = self ? self->facts.major : 0,
        .minor = self ? self->facts.minor : 0,
        .built_for = TT_CUDA_BUILT_FOR,
        .visible = g_getenv("CUDA_VISIBLE_DEVICES"),
    };
}

gboolean
tt_cuda_got(TtGpu *self, cudaError_t code, const char *doing, gsize asked_bytes, GError **error)
{
    g_autofree char *what = NULL;
    TtCudaTrouble trouble;
    size_t left = 0, all = 0;

    if (code == cudaSuccess)
        return TRUE;
    what = self ? g_strdup_printf("%s: cannot %s", self->label, doing)
                : g_strdup_printf("--transport cuda: cannot %s", doing);
    trouble_init(&trouble, self, code, what);
    trouble.asked_bytes = asked_bytes;
    if (code == cudaErrorMemoryAllocation && cudaMemGetInfo(&left, &all) == cudaSuccess) {
        trouble.free_bytes = left;
        trouble.memory_bytes = all;
    }
    tt_cuda_error(error, (int)code, &trouble);
    return FALSE;
}

gboolean
tt_cuda_good(TtGpu *self, cudaError_t code, const char *doing, GError **error)
{
    return tt_cuda_got(self, code, doing, 0, error);
}

gboolean
tt_cuda_use(TtGpu *self, GError **error)
{
    return tt_cuda_good(self, cudaSetDevice(self->index), "be used", error);
}

/* --- opening -------------------------------------------------------------------------------------- */

static gboolean
count(guint *n, GError **error)
{
    int found = 0;

    if (!tt_cuda_good(NULL, cudaGetDeviceCount(&found), "count the GPUs", error))
        return FALSE;
    *n = (guint)found;
    return TRUE;
}

static int
attribute(const TtGpu *self, enum cudaDeviceAttr which)
{
    int value = 0;

    if (cudaDeviceGetAttribute(&value, which, self->index) != cudaSuccess)
        (void)cudaGetLastError();
    return value;
}

/* Instances of one GPU in MIG mode have one bus id: what follows it tells them apart. */
static void
name_bus(TtGpu *self, const struct cudaDeviceProp *properties)
{
    char bus[20] = "?";

    if (cudaDeviceGetPCIBusId(bus, sizeof bus, self->index) != cudaSuccess)
        (void)cudaGetLastError();
    if (strstr(properties->name, "MIG"))
        g_snprintf(self->facts.bus_id, sizeof self->facts.bus_id, "%s/%02x%02x%02x%02x", bus,
                   (guint8)properties->uuid.bytes[0], (guint8)properties->uuid.bytes[1],
                   (guint8)properties->uuid.bytes[2], (guint8)properties->uuid.bytes[3]);
    else
        g_strlcpy(self->facts.bus_id, bus, sizeof self->facts.bus_id);
}

static gboolean
learn(TtGpu *self, GError **error)
{
    struct cudaDeviceProp properties;
    size_t left = 0, all = 0;

    memset(&properties, 0, sizeof properties);
    if (!tt_cuda_good(self, cudaGetDeviceProperties(&properties, self->index), "say what it is",
                      error))
        return FALSE;
    g_strlcpy(self->facts.name, properties.name, sizeof self->facts.name);
    g_snprintf(self->label, sizeof self->label, "GPU %d (%s)", self->index, self->facts.name);
    name_bus(self, &properties);
    self->facts.n_sms = (guint)attribute(self, cudaDevAttrMultiProcessorCount);
    self->facts.major = (guint)attribute(self, cudaDevAttrComputeCapabilityMajor);
    self->facts.minor = (guint)attribute(self, cudaDevAttrComputeCapabilityMinor);
    self->warp = (guint)MAX(1, attribute(self, cudaDevAttrWarpSize));
    self->most_threads = (guint)MAX(1, attribute(self, cudaDevAttrMaxThreadsPerBlock));
    if (attribute(self, cudaDevAttrComputeMode) == cudaComputeModeProhibited) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                    "%s: its compute mode is \"prohibited\": nvidia-smi -c DEFAULT allows it",
                    self->label);
        return FALSE;
    }
    if (!attribute(self, cudaDevAttrCooperativeLaunch) ||
        !attribute(self, cudaDevAttrUnifiedAddressing)) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                    "%s: it has no cooperative launches or no unified addresses: use another GPU",
                    self->label);
        return FALSE;
    }
    if (!tt_cuda_use(self, error) ||
        !tt_cuda_good(self, cudaMemGetInfo(&left, &all), "be opened", error))
        return FALSE;
    self->facts.memory_bytes = all;
    self->facts.free_bytes = left;
    return TRUE;
}

static gboolean
load_kernel(TtGpu *self, const void *kernel, GError **error)
{
    struct cudaFuncAttributes attributes;

    return tt_cuda_good(self, cudaFuncGetAttributes(&attributes, kernel), "load its kernels",
                        error);
}

/* A kernel is loaded when it is first needed, which may wait for one that runs: so those that may follow one are
 * loaded before. Also finds out whether this build has code for the GPU. */
static gboolean
load_kernels(TtGpu *self, GError **error)
{
    if (!load_kernel(self, (const void *)tt_gpu_cuda_basics.empty, error))
        return FALSE;
    for (guint i = 0; i < TT_GPU_N_TYPES; i++)
        if (tt_gpu_cuda_kernels[i] &&
            !load_kernel(self, (const void *)tt_gpu_cuda_kernels[i]->scale, error))
            return FALSE;
    return TRUE;
}

static void
close_gpu(TtGpu *self)
{
    if (!self)
        return;
    if (cudaSetDevice(self->index) == cudaSuccess) {
        if (self->begin)
            cudaEventDestroy(self->begin);
        if (self->end)
            cudaEventDestroy(self->end);
        if (self->copies)
            cudaStreamDestroy(self->copies);
        if (self->launches)
            cudaStreamDestroy(self->launches);
    }
    (void)cudaGetLastError();
    g_free(self);
}

static gboolean
make_streams(TtGpu *self, GError **error)
{
    return tt_cuda_good(self, cudaStreamCreateWithFlags(&self->launches, cudaStreamNonBlocking),
                        "make a stream", error) &&
           tt_cuda_good(self, cudaStreamCreateWithFlags(&self->copies, cudaStreamNonBlocking),
                        "make a stream", error) &&
           tt_cuda_good(self, cudaEventCreate(&self->begin), "make an event", error) &&
           tt_cuda_good(self, cudaEventCreate(&self->end), "make an event", error);
}

static TtGpu *
open_gpu(guint index, GError **error)
{
    TtGpu *self;
    guint n;

    if (!count(&n, error))
        return NULL;
    if (index >= n) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                    "no GPU %u: this process sees %u, from 0", index, n);
        return NULL;
    }
    self = g_new0(TtGpu, 1);
    self->index = (int)index;
    g_snprintf(self->label, sizeof self->label, "GPU %u", index);
    if (learn(self, error) && load_kernels(self, error) && make_streams(self, error))
        return self;
    close_gpu(self);
    return NULL;
}

static void
facts(TtGpu *self, TtGpuFacts *out)
{
    size_t left, all;

    if (cudaSetDevice(self->index) == cudaSuccess && cudaMemGetInfo(&left, &all) == cudaSuccess)
        self->facts.free_bytes = left;
    (void)cudaGetLastError();
    *out = self->facts;
}

const TtGpuDriver tt_gpu_driver_cuda = {
    .name = "cuda",
    .count = count,
    .open = open_gpu,
    .close = close_gpu,
    .facts = facts,
    .alloc = tt_cuda_alloc,
    .free = tt_cuda_free,
    .alloc_host = tt_cuda_alloc_host,
    .free_host = tt_cuda_free_host,
    .register_host = tt_cuda_register_host,
    .unregister_host = tt_cuda_unregister_host,
    .copy = tt_cuda_copy,
    .zero = tt_cuda_zero,
    .reach = tt_cuda_reach,
    .share = tt_cuda_share,
    .attach = tt_cuda_attach,
    .detach = tt_cuda_detach,
    .direct = tt_cuda_direct,
    .flush_writes = tt_cuda_flush_writes,
    .dma_buf = tt_cuda_dma_buf,
    .most_blocks = tt_cuda_most_blocks,
    .launch = tt_cuda_launch,
    .scale = tt_cuda_scale,
    .poll = tt_cuda_poll,
    .time_launch = tt_cuda_time_launch,
    .time_copy = tt_cuda_time_copy,
    .time_flag = tt_cuda_time_flag,
};
