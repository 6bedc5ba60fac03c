/* NVML, as far as it is needed: nvml.h of the toolkit is not, these few declarations are its binary interface. */
#include "topologies/nvml.h"

#include <dlfcn.h>
#include <string.h>

#define MOST_LINKS 36 /* a B200 has 18 */
#define MOST_GPUS  512

enum {
    GOOD = 0,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    DRIVER_NOT_LOADED = 9,
    GPU_IS_LOST = 15,
    MISMATCH = 18
};
enum { REMOTE_GPU = 0, REMOTE_NPU = 1, REMOTE_SWITCH = 2 };
enum { CAN_PEERS = 0 };

typedef struct Device *Device;

typedef struct {
    char legacy_bus_id[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
} PciInfo;

typedef struct {
    gpointer handle;
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*words)(int code);
    int (*count)(unsigned *n);
    int (*by_index)(unsigned index, Device *device);
    int (*pci)(Device device, PciInfo *info);
    int (*name)(Device device, char *name, unsigned length);
    int (*capability)(Device device, int *major, int *minor);
    /* The rest need not be there. */
    int (*mig)(Device device, unsigned *now, unsigned *after_reset);
    int (*link_state)(Device device, unsigned link, int *up);
    int (*link_can)(Device device, unsigned link, int what, unsigned *can);
    int (*link_pci)(Device device, unsigned link, PciInfo *info);
    int (*link_type)(Device device, unsigned link, int *type);
} Nvml;

static void
link_clear(gpointer data)
{
    g_free(((TtNvmlLink *)data)->bus_id);
}

static void
gpu_free(gpointer data)
{
    TtNvmlGpu *gpu = data;

    g_free(gpu->bus_id);
    g_free(gpu->name);
    g_array_unref(gpu->links);
    g_free(gpu);
}

static void note(GPtrArray *notes, const char *format, ...) G_GNUC_PRINTF(2, 3);

static void
note(GPtrArray *notes, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    g_ptr_array_add(notes, g_strdup_vprintf(format, arguments));
    va_end(arguments);
}

/* --- the library --------------------------------------------------------------------------------- */

static gboolean
find_functions(Nvml *nvml, const char *library, GError **error)
{
    const struct {
        const char *name;
        gpointer *at;
        gboolean needed;
    } functions[] = {
        { "nvmlInit_v2", (gpointer *)&nvml->init, TRUE },
        { "nvmlShutdown", (gpointer *)&nvml->shutdown, TRUE },
        { "nvmlErrorString", (gpointer *)&nvml->words, TRUE },
        { "nvmlDeviceGetCount_v2", (gpointer *)&nvml->count, TRUE },
        { "nvmlDeviceGetHandleByIndex_v2", (gpointer *)&nvml->by_index, TRUE },
        { "nvmlDeviceGetPciInfo_v3", (gpointer *)&nvml->pci, TRUE },
        { "nvmlDeviceGetName", (gpointer *)&nvml->name, TRUE },
        { "nvmlDeviceGetCudaComputeCapability", (gpointer *)&nvml->capability, TRUE },
        { "nvmlDeviceGetMigMode", (gpointer *)&nvml->mig, FALSE },
        { "nvmlDeviceGetNvLinkState", (gpointer *)&nvml->link_state, FALSE },
        { "nvmlDeviceGetNvLinkCapability", (gpointer *)&nvml->link_can, FALSE },
        { "nvmlDeviceGetNvLinkRemotePciInfo_v2", (gpointer *)&nvml->link_pci, FALSE },
        { "nvmlDeviceGetNvLinkRemoteDeviceType", (gpointer *)&nvml->link_type, FALSE },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(functions); i++) {
        *functions[i].at = dlsym(nvml->handle, functions[i].name);
        if (functions[i].needed && !*functions[i].at) {
            g_set_error(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_USAGE,
                        "GPUs: %s has no %s: a newer driver is needed", library, functions[i].name);
            return FALSE;
        }
    }
    return TRUE;
}

static gboolean
start(const Nvml *nvml, GError **error)
{
    int code = nvml->init();
    const char *more = "";

    if (code == GOOD)
        return TRUE;
    if (code == DRIVER_NOT_LOADED)
        more = " (modprobe nvidia; the kernel's log says why not)";
    else if (code == MISMATCH)
        more = " (the library is newer or older than the kernel module: reboot)";
    g_set_error(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_USAGE,
                "GPUs: the NVIDIA driver does not answer: %s%s", nvml->words(code), more);
    return FALSE;
}

static gboolean
load(Nvml *nvml, const char *library, GError **error)
{
    memset(nvml, 0, sizeof *nvml);
    nvml->handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!nvml->handle) {
        g_set_error(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_USAGE,
                    "GPUs: no NVIDIA driver here (%s cannot be loaded)", library);
        return FALSE;
    }
    if (find_functions(nvml, library, error) && start(nvml, error))
        return TRUE;
    dlclose(nvml->handle);
    return FALSE;
}

/* --- a GPU --------------------------------------------------------------------------------------- */

/* "00000000:1B:00.0" as the kernel writes it: "0000:1b:00.0". */
static char *
bus_id_of(const PciInfo *info)
{
    g_autofree char *low = g_ascii_strdown(info->bus_id, sizeof info->bus_id);
    const char *at = low;

    low[sizeof info->bus_id - 1] = '\0';
    while (strcspn(at, ":") > 4 && at[0] == '0')
        at++;
    return g_strdup(at);
}

/* What a link leads to; FALSE: it is down, or not for peers. */
static gboolean
read_link(const Nvml *nvml, Device device, unsigned link, TtNvmlLink *out)
{
    PciInfo info = { .bus_id = "" };
    unsigned can = 0;
    int up = 0, type = -1;

    if (nvml->link_state(device, link, &up) != GOOD || !up)
        return FALSE;
    if (nvml->link_can && nvml->link_can(device, link, CAN_PEERS, &can) == GOOD && !can)
        return FALSE;
    if (nvml->link_pci(device, link, &info) != GOOD)
        return FALSE;
    info.bus_id[sizeof info.bus_id - 1] = '\0';
    out->bus_id = bus_id_of(&info);
    if (!nvml->link_type || nvml->link_type(device, link, &type) != GOOD)
        type = g_str_has_prefix(out->bus_id, "fff") ? REMOTE_SWITCH : REMOTE_GPU;
    out->peer = type == REMOTE_SWITCH ? TT_NVLINK_SWITCH
                : type == REMOTE_NPU  ? TT_NVLINK_NPU
                                      : TT_NVLINK_GPU;
    return TRUE;
}

static void
read_links(const Nvml *nvml, Device device, TtNvmlGpu *gpu)
{
    if (!nvml->link_state || !nvml->link_pci)
        return;
    for (unsigned link = 0; link < MOST_LINKS; link++) {
        TtNvmlLink found = { 0 };

        if (read_link(nvml, device, link, &found))
            g_array_append_val(gpu->links, found);
    }
}

static int
read_gpu(const Nvml *nvml, unsigned index, TtNvmlGpu *gpu)
{
    PciInfo info = { .bus_id = "" };
    int code, major = 0, minor = 0;
    unsigned now = 0, later = 0;
    Device device = NULL;
    char name[96] = "";

    if ((code = nvml->by_index(index, &device)) != GOOD ||
        (code = nvml->pci(device, &info)) != GOOD ||
        (code = nvml->name(device, name, sizeof name)) != GOOD ||
        (code = nvml->capability(device, &major, &minor)) != GOOD)
        return code;
    gpu->index = index;
    gpu->bus_id = bus_id_of(&info);
    gpu->name = g_strndup(name, sizeof name);
    gpu->sm = (guint)(major * 10 + minor);
    gpu->mig = nvml->mig && nvml->mig(device, &now, &later) == GOOD && now == 1;
    if (!gpu->mig)
        read_links(nvml, device, gpu);
    return GOOD;
}

static GPtrArray *
read_gpus(const Nvml *nvml, GPtrArray *notes, GError **error)
{
    g_autoptr(GPtrArray) gpus = g_ptr_array_new_with_free_func(gpu_free);
    unsigned n = 0;
    int code = nvml->count(&n);

    for (unsigned i = 0; code == GOOD && i < MIN(n, MOST_GPUS); i++) {
        TtNvmlGpu *gpu = g_new0(TtNvmlGpu, 1);
        int bad;

        gpu->links = g_array_new(FALSE, FALSE, sizeof(TtNvmlLink));
        g_array_set_clear_func(gpu->links, link_clear);
        bad = read_gpu(nvml, i, gpu);
        if (bad == GOOD) {
            g_ptr_array_add(gpus, gpu);
            continue;
        }
        gpu_free(gpu);
        note(notes, "GPU %u is left out: %s%s", i, nvml->words(bad),
             bad == GPU_IS_LOST ? " (it fell off the bus: see the kernel's log)" : "");
    }
    if (gpus->len > 0)
        return g_steal_pointer(&gpus);
    g_set_error(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_USAGE,
                "GPUs: the NVIDIA driver shows none%s%s", code == GOOD ? "" : ": ",
                code == GOOD ? "" : nvml->words(code));
    return NULL;
}

GPtrArray *
tt_nvml_gpus(const char *library, GPtrArray *notes, GError **error)
{
    GPtrArray *gpus;
    Nvml nvml;

    if (!load(&nvml, library ? library : TT_NVML_LIBRARY, error))
        return NULL;
    gpus = read_gpus(&nvml, notes, error);
    nvml.shutdown();
    dlclose(nvml.handle);
    return gpus;
}
