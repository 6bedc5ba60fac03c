#include "exec/nccl_load.h"
#include "exec/exec.h"

#include <dlfcn.h>
#include <string.h>

typedef struct {
    const char *name;     /* "NCCL" */
    const char *variable; /* that names a file */
    const char *install;
    const char *files[5]; /* in the order of preference */
} Library;

static const Library nccl_library = { "NCCL",
                                      "TUTTI_NCCL_LIBRARY",
                                      "NVIDIA's libnccl2 package, or pip's nvidia-nccl-cu13",
                                      { "libnccl.so.2", NULL } };
static const Library cuda_library = { "the CUDA runtime",
                                      "TUTTI_CUDART_LIBRARY",
                                      "the CUDA toolkit, or pip's nvidia-cuda-runtime",
                                      { "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0",
                                        "libcudart.so", NULL } };

/* One function of a table: where its address goes. */
typedef struct {
    const char *symbol;
    gsize offset;
    gboolean optional;
} Entry;

#define NCCL(symbol, member)                                                                       \
    {                                                                                              \
        "nccl" symbol, G_STRUCT_OFFSET(TtNcclApi, member), FALSE                                   \
    }
#define CUDA(symbol, member)                                                                       \
    {                                                                                              \
        "cuda" symbol, G_STRUCT_OFFSET(TtCudaApi, member), FALSE                                   \
    }
#define NCCL_OPTIONAL(symbol, member)                                                              \
    {                                                                                              \
        "nccl" symbol, G_STRUCT_OFFSET(TtNcclApi, member), TRUE                                    \
    }

static const Entry nccl_entries[] = {
    NCCL("GetVersion", get_version),
    NCCL("GetUniqueId", get_unique_id),
    NCCL("CommInitAll", comm_init_all),
    NCCL("CommInitRank", comm_init_rank),
    NCCL("CommDestroy", comm_destroy),
    NCCL("CommAbort", comm_abort),
    NCCL("CommGetAsyncError", comm_get_async_error),
    NCCL("GetErrorString", get_error_string),
    NCCL_OPTIONAL("GetLastError", get_last_error),
    NCCL("GroupStart", group_start),
    NCCL("GroupEnd", group_end),
    NCCL("AllReduce", all_reduce),
    NCCL("ReduceScatter", reduce_scatter),
    NCCL("AllGather", all_gather),
    NCCL("Broadcast", broadcast),
    NCCL("Reduce", reduce),
    { NULL, 0, FALSE },
};
static const Entry cuda_entries[] = {
    CUDA("GetDeviceCount", get_device_count),
    CUDA("SetDevice", set_device),
    CUDA("GetDeviceProperties", get_device_properties),
    CUDA("DeviceGetAttribute", device_get_attribute),
    CUDA("DeviceGetPCIBusId", device_get_pci_bus_id),
    CUDA("GetErrorString", get_error_string),
    CUDA("GetLastError", get_last_error),
    CUDA("Malloc", malloc),
    CUDA("Free", free),
    CUDA("Memcpy", memcpy),
    CUDA("Memset", memset),
    CUDA("DeviceSynchronize", device_synchronize),
    CUDA("StreamCreateWithFlags", stream_create),
    CUDA("StreamDestroy", stream_destroy),
    CUDA("StreamQuery", stream_query),
    CUDA("EventCreateWithFlags", event_create),
    CUDA("EventDestroy", event_destroy),
    CUDA("EventRecord", event_record),
    CUDA("EventQuery", event_query),
    CUDA("RuntimeGetVersion", runtime_get_version),
    { NULL, 0, FALSE },
};

/* Where else than the dynamic linker looks. Caller frees. */
static char **
folders(void)
{
    GPtrArray *list = g_ptr_array_new();
    const char *home = g_getenv("CUDA_HOME") ? g_getenv("CUDA_HOME") : g_getenv("CUDA_PATH");

    if (home && *home) {
        g_ptr_array_add(list, g_build_filename(home, "lib64", NULL));
        g_ptr_array_add(list, g_build_filename(home, "lib", NULL));
    }
    g_ptr_array_add(list, g_strdup("/usr/local/cuda/lib64"));
    g_ptr_array_add(list, g_strdup("/usr/local/cuda/lib"));
    g_ptr_array_add(list, NULL);
    return (char **)g_ptr_array_free(list, FALSE);
}

static gboolean
cannot_load(const char *file, GError **error)
{
    g_autofree char *why = g_strdup(dlerror());

    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE, "cannot load %s: %s", file, why);
    return FALSE;
}

/* A file that is there and does not load is an error at once; one that is not, is looked for on. */
static gboolean
try_folders(const char *const *files, char **in, void **handle, char **path, GError **error)
{
    for (guint f = 0; files[f]; f++)
        for (guint i = 0; in[i]; i++) {
            g_autofree char *file = g_build_filename(in[i], files[f], NULL);

            if (!g_file_test(file, G_FILE_TEST_EXISTS))
                continue;
            *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
            if (!*handle)
                return cannot_load(file, error);
            *path = g_steal_pointer(&file);
            return TRUE;
        }
    return TRUE;
}

/* @path, for messages: the caller frees. */
static void *
open_library(const Library *library, char **path, GError **error)
{
    const char *told = g_getenv(library->variable);
    g_auto(GStrv) in = folders();
    g_autofree char *all = NULL, *names = NULL;
    void *handle = NULL;

    if (told && *told) {
        handle = dlopen(told, RTLD_NOW | RTLD_LOCAL);
        if (!handle && !cannot_load(told, error))
            g_prefix_error(error, "%s: ", library->variable);
        *path = g_strdup(told);
        return handle;
    }
    for (guint f = 0; library->files[f]; f++) {
        handle = dlopen(library->files[f], RTLD_NOW | RTLD_LOCAL);
        if (handle) {
            *path = g_strdup(library->files[f]);
            return handle;
        }
    }
    if (!try_folders(library->files, in, &handle, path, error) || handle)
        return handle;
    all = g_strjoinv(", ", in);
    names = g_strjoinv(", ", (char **)library->files);
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                "%s is not here (no %s where the dynamic linker looks, nor in %s): install %s, or "
                "set %s to its path",
                library->name, names, all, library->install, library->variable);
    return NULL;
}

static gboolean
find_all(void *handle, const char *path, const Library *library, const Entry *entries,
         gpointer table, GError **error)
{
    for (; entries->symbol; entries++) {
        gpointer address = dlsym(handle, entries->symbol);

        memcpy((guint8 *)table + entries->offset, &address, sizeof address);
        if (address || entries->optional)
            continue;
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                    "%s has no function %s: it is not %s, or too old a one (set %s to another)",
                    path, entries->symbol, library->name, library->variable);
        return FALSE;
    }
    return TRUE;
}

char *
tt_nccl_version_text(int version)
{
    int unit = version < 10000 ? 1000 : 10000;

    return g_strdup_printf("%d.%d.%d", version / unit, version % unit / 100, version % 100);
}

const TtNcclApi *
tt_nccl_load(int *version, GError **error)
{
    static TtNcclApi api;
    g_autofree char *path = NULL, *text = NULL;
    void *handle = open_library(&nccl_library, &path, error);
    int code;

    *version = 0;
    if (!handle || !find_all(handle, path, &nccl_library, nccl_entries, &api, error))
        return NULL;
    code = api.get_version(version);
    if (code == TT_NCCL_SUCCESS && *version >= TT_NCCL_OLDEST)
        return &api;
    if (code != TT_NCCL_SUCCESS) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM, "%s: ncclGetVersion: %s", path,
                    api.get_error_string(code));
        return NULL;
    }
    text = tt_nccl_version_text(*version);
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                "%s is NCCL %s, too old: 2.4.0 is the first whose errors can be seen", path, text);
    return NULL;
}

const TtCudaApi *
tt_cuda_load(GError **error)
{
    static TtCudaApi api;
    g_autofree char *path = NULL;
    void *handle = open_library(&cuda_library, &path, error);

    return handle && find_all(handle, path, &cuda_library, cuda_entries, &api, error) ? &api : NULL;
}
