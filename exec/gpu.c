/* The drivers of GPUs this build has, by name. */
#include "exec/gpu.h"

#include <string.h>

static const struct {
    const char *name, *words;
} absent[] = {
    { "cuda", "this build has no CUDA: install the CUDA Toolkit (nvcc) and build again, or use "
              "--gpus host, which runs the kernels on the CPU" },
    { "host", "this build cannot run kernels on the CPU: install a C++ compiler (g++) and build "
              "again" },
};

const TtGpuDriver *
tt_gpu_driver_find(const char *name, GError **error)
{
    for (guint i = 0; tt_gpu_drivers[i]; i++)
        if (strcmp(tt_gpu_drivers[i]->name, name) == 0)
            return tt_gpu_drivers[i];
    for (gsize i = 0; i < G_N_ELEMENTS(absent); i++)
        if (strcmp(absent[i].name, name) == 0) {
            g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE, "--transport cuda: %s",
                        absent[i].words);
            return NULL;
        }
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE, "no driver of GPUs named \"%s\"",
                name);
    return NULL;
}
