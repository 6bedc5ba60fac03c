/* nccl_seats.c - which GPUs there are, and that no two ranks have one. */
#include "exec/control.h"
#include "exec/nccl_private.h"

#include <dlfcn.h>
#include <string.h>

/* The runtime says "driver too old" of one that is not there at all. */
static gboolean
no_driver(const TtCudaApi *cuda, int code, GError **error)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    int version = 0;

    cuda->runtime_get_version(&version);
    if (driver)
        g_set_error(
            error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
            "the NVIDIA driver of %s is too old for the CUDA runtime %d.%d (%s): update it, or "
            "set TUTTI_CUDART_LIBRARY to an older runtime",
            g_get_host_name(), version / 1000, version % 1000 / 10, cuda->get_error_string(code));
    else
        g_set_error(
            error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
            "%s has no NVIDIA driver (no libcuda.so.1): --backend nccl needs GPUs; --transport "
            "shm or tcp needs none",
            g_get_host_name());
    if (driver)
        dlclose(driver);
    return FALSE;
}

gboolean
tt_nccl_count_gpus(const TtCudaApi *cuda, guint *n, GError **error)
{
    int count = 0, code = cuda->get_device_count(&count);
    const char *visible = g_getenv("CUDA_VISIBLE_DEVICES");

    if (code == TT_CUDA_DRIVER_TOO_OLD || code == TT_CUDA_STUB)
        return no_driver(cuda, code, error);
    if (code != TT_CUDA_SUCCESS && code != TT_CUDA_NO_DEVICE) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE, "%s: cudaGetDeviceCount: %s",
                    g_get_host_name(), cuda->get_error_string(code));
        return FALSE;
    }
    if (code == TT_CUDA_NO_DEVICE || count <= 0) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE, "%s has no GPU%s%s%s",
                    g_get_host_name(), visible ? " that CUDA_VISIBLE_DEVICES=" : "",
                    visible ? visible : "", visible ? " leaves visible" : "");
        return FALSE;
    }
    *n = (guint)count;
    return TRUE;
}

gboolean
tt_nccl_look_at_seat(const TtCudaApi *cuda, guint device, TtNcclSeat *seat, GError **error)
{
    g_autofree char *properties = g_malloc0(TT_CUDA_PROPERTIES_BYTES);
    g_autofree char *host_id = tt_control_host_id();
    int major = 0,
        code = cuda->device_get_pci_bus_id(seat->bus_id, sizeof seat->bus_id, (int)device);

    if (code == TT_CUDA_SUCCESS)
        code = cuda->get_device_properties(properties, (int)device);
    if (code == TT_CUDA_SUCCESS)
        code = cuda->device_get_attribute(&major, TT_CUDA_ATTRIBUTE_MAJOR, (int)device);
    if (code != TT_CUDA_SUCCESS) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE, "GPU %u on %s: %s", device,
                    g_get_host_name(), cuda->get_error_string(code));
        return FALSE;
    }
    properties[TT_CUDA_NAME_BYTES - 1] = '\0';
    /* the machine alone: containers on it may share a GPU */
    g_strlcpy(seat->host_id, host_id, MIN(sizeof seat->host_id, strcspn(host_id, " ") + 1));
    g_strlcpy(seat->host, g_get_host_name(), sizeof seat->host);
    g_strlcpy(seat->name, properties, sizeof seat->name);
    seat->device = device;
    seat->major = (guint32)major;
    return TRUE;
}

gboolean
tt_nccl_check_seats(const TtNcclSeat *seats, guint n, GError **error)
{
    for (guint b = 0; b < n; b++)
        for (guint a = 0; a < b; a++)
            if (strcmp(seats[a].bus_id, seats[b].bus_id) == 0 &&
                strcmp(seats[a].host_id, seats[b].host_id) == 0) {
                g_set_error(
                    error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "ranks %u and %u would share GPU %s of %s, which NCCL refuses: start as many "
                    "ranks as there are GPUs, or use --transport cuda, which can",
                    a, b, seats[b].bus_id, seats[b].host);
                return FALSE;
            }
    return TRUE;
}
