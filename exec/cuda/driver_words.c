/* Codes of the CUDA runtime as sentences. */
#include "exec/cuda/driver_words.h"

#include <string.h>

#define LOST "what ran on it is lost"
#define LOG  "look at the kernel's log (dmesg, lines with Xid)"

/* Those that need no more than their number. */
static const struct {
    int code;
    gboolean fatal; /* the process has lost the GPU */
    const char *words;
} rows[] = {
    { 1, FALSE, "CUDA refuses the values of a call: a mistake of this program" },
    { 3, FALSE, "CUDA cannot start in this process: " LOG ", and nvidia-smi must work" },
    { 34, FALSE, "a stub of the driver library was found first: take it out of LD_LIBRARY_PATH" },
    { 36, FALSE, "the driver is too old for this call: install a newer one" },
    { 46, TRUE,
      "the GPU is busy or gone: another process has it for itself (nvidia-smi, compute mode), or "
      "it "
      "fell off the bus (" LOG ")" },
    { 98, FALSE,
      "the kernel is not in this build for this GPU: build again with its architecture" },
    { 101, FALSE, "there is no GPU of this number, or it is in MIG mode without an instance" },
    { 102, FALSE, "the driver says that this GPU is not licensed (vGPU): see its licence server" },
    { 127, FALSE, "CUDA failed to start: " LOG },
    { 200, FALSE, "the kernels in this build are damaged: build again" },
    { 201, FALSE, "this process cannot open that memory: it is its own, or its owner has gone" },
    { 205, FALSE,
      "memory of another process cannot be mapped: its owner has gone, or they are in "
      "containers that do not share IPC (--ipc=host, --pid=host)" },
    { 214, TRUE,
      "uncorrectable ECC error: the GPU's memory is damaged; " LOST "; " LOG
      ", reset the GPU or take it out of use" },
    { 216, FALSE,
      "the GPU is in use by a process that has it for itself (nvidia-smi, compute mode)" },
    { 218, FALSE,
      "the driver cannot compile this build's PTX: build again with the GPU's architecture" },
    { 220, TRUE, "uncorrectable NVLink error: " LOST "; " LOG ", see nvidia-smi nvlink -e" },
    { 221, FALSE,
      "the driver's PTX compiler (libnvidia-ptxjitcompiler) is missing: install it, or build "
      "again with the GPU's architecture" },
    { 222, FALSE,
      "the driver is older than this build's PTX: install a newer driver, or build again with "
      "the GPU's architecture" },
    { 223, FALSE,
      "PTX may not be compiled here (CUDA_DISABLE_PTX_JIT): build again with the GPU's "
      "architecture" },
    { 226, TRUE, "an uncorrectable error was contained: " LOST "; " LOG },
    { 304, FALSE,
      "a call of the operating system failed: limits (ulimit -l, -v, -n), /dev/nvidia*, and "
      "/dev/shm between processes" },
    { 400, FALSE,
      "CUDA does not know the object or memory: its owner has gone, or a mistake of this "
      "program" },
    { 700, TRUE,
      "a kernel reached for memory that is not there: " LOST
      "; if a peer process ended, this follows from it, else a mistake of this program" },
    { 701, FALSE,
      "the kernel needs more registers or shared memory than a block can have: use fewer threads" },
    { 702, TRUE,
      "the kernel was stopped, as it ran too long for a GPU that drives a display: " LOST
      "; stop the display server or use another GPU" },
    { 705, FALSE, "access to the peer GPU is not enabled: use --placement host" },
    { 709, TRUE, "the process has lost the GPU after an earlier error: " LOST },
    { 710, TRUE, "an assertion failed in a kernel: " LOST "; a mistake of this program" },
    { 711, FALSE, "the GPU has no room for one more peer: use fewer GPUs or --placement host" },
    { 712, FALSE, "the host memory is registered already" },
    { 713, FALSE, "the host memory is not registered" },
    { 714, TRUE, "hardware stack error in a kernel: " LOST "; " LOG },
    { 715, TRUE, "illegal instruction in a kernel: " LOST "; " LOG },
    { 716, TRUE, "misaligned address in a kernel: " LOST "; a mistake of this program" },
    { 717, TRUE, "wrong address space in a kernel: " LOST "; a mistake of this program" },
    { 718, TRUE, "invalid program counter in a kernel: " LOST "; " LOG },
    { 719, TRUE, "the kernel failed while it ran: " LOST "; " LOG },
    { 800, FALSE, "not permitted here: access to /dev/nvidia*, or a container's limits" },
    { 801, FALSE, "this GPU, or its driver, cannot do this" },
    { 802, FALSE,
      "the system is not ready: GPUs behind NVSwitches need the fabric manager running "
      "(systemctl status nvidia-fabricmanager, its version that of the driver)" },
    { 803, FALSE,
      "the driver's library and kernel module are of different versions: reboot, or load the "
      "module of the installed version" },
    { 804, FALSE,
      "the CUDA compatibility package does not support this GPU: take it out of "
      "LD_LIBRARY_PATH, or install a newer driver" },
    { 805, FALSE,
      "no connection to the MPS server: start nvidia-cuda-mps-control, or unset "
      "CUDA_MPS_PIPE_DIRECTORY" },
    { 806, TRUE, "the MPS server does not answer: " LOST "; restart it" },
    { 807, FALSE, "the MPS server is not ready: try again, or restart it" },
    { 808, FALSE, "the MPS server takes no more clients" },
    { 809, FALSE, "the MPS server takes no more connections" },
    { 810, TRUE, "the MPS server has ended this process after another one's failure: " LOST },
    { 999, TRUE, "CUDA does not say what failed; the GPU may have fallen off the bus: " LOG },
};

TtExecError
tt_cuda_error_class(int code)
{
    return code == TT_CUDA_MEMORY || code == 304 ? TT_EXEC_ERROR_SYSTEM : TT_EXEC_ERROR_HARDWARE;
}

gboolean
tt_cuda_is_fatal(int code)
{
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++)
        if (rows[i].code == code)
            return rows[i].fatal;
    return FALSE;
}

static char *
size_words(guint64 bytes)
{
    if (bytes < 1024 * 1024)
        return g_strdup_printf("%" G_GUINT64_FORMAT " bytes", bytes);
    if (bytes < (guint64)10 << 30)
        return g_strdup_printf("%.1f MiB", bytes / (1024.0 * 1024));
    return g_strdup_printf("%.1f GiB", bytes / (1024.0 * 1024 * 1024));
}

/* CUDA's 12040 as 12.4. */
static char *
version_words(guint version)
{
    return g_strdup_printf("%u.%u", version / 1000, version % 1000 / 10);
}

static char *
old_driver_words(const TtCudaTrouble *t)
{
    g_autofree char *runtime = version_words(t->runtime), *driver = version_words(t->driver);

    if (t->driver == 0)
        return g_strdup(
            "there is no NVIDIA driver here: install one (nvidia-smi must work), or use "
            "--gpus host, which runs the kernels on the CPU");
    return g_strdup_printf(
        "the driver is too old: it can do CUDA %s, this build needs %s: install a "
        "newer driver, or build with an older CUDA Toolkit",
        driver, runtime);
}

static char *
no_device_words(const TtCudaTrouble *t)
{
    if (t->visible)
        return g_strdup_printf("no GPU is visible: CUDA_VISIBLE_DEVICES is \"%s\"", t->visible);
    return g_strdup(
        "there is a driver but no GPU: nvidia-smi -L must list one; a container must be "
        "given it (--gpus all), and in MIG mode it must have an instance; or use --device "
        "host");
}

static char *
memory_words(const TtCudaTrouble *t)
{
    g_autofree char *asked = size_words(t->asked_bytes), *left = size_words(t->free_bytes),
                    *all = size_words(t->memory_bytes);

    if (t->asked_bytes == 0)
        return g_strdup("out of memory (use a smaller size, or fewer ranks on each GPU)");
    if (t->memory_bytes == 0)
        return g_strdup_printf(
            "out of memory: no %s to be had (use a smaller size, or fewer ranks on "
            "each GPU)",
            asked);
    return g_strdup_printf("out of memory: %s wanted, %s of %s free (use a smaller size, or fewer "
                           "ranks on each GPU)",
                           asked, left, all);
}

static char *
no_image_words(const TtCudaTrouble *t)
{
    g_autofree char *here = t->major
                                ? g_strdup_printf("compute capability %u.%u", t->major, t->minor)
                                : g_strdup("a compute capability");

    if (!t->major)
        return g_strdup_printf("this build has no kernels for it: it is for %s",
                               t->built_for ? t->built_for : "others");
    return g_strdup_printf("this build has no kernels for %s: it is for %s; build again with "
                           "-DTT_CUDA_ARCHITECTURES=%u%u",
                           here, t->built_for ? t->built_for : "others", t->major, t->minor);
}

static char *
words_of(int code, const TtCudaTrouble *t)
{
    switch (code) {
    case TT_CUDA_MEMORY: return memory_words(t);
    case TT_CUDA_OLD_DRIVER: return old_driver_words(t);
    case TT_CUDA_NO_DEVICE: return no_device_words(t);
    case TT_CUDA_NO_IMAGE: return no_image_words(t);
    case TT_CUDA_NO_PEERS:
        return g_strdup("these GPUs cannot reach each other's memory: use --placement host");
    case TT_CUDA_TOO_MANY_BLOCKS:
        return g_strdup(
            "more blocks than can run at the same time: use fewer channels, or fewer ranks "
            "on each GPU");
    }
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++)
        if (rows[i].code == code)
            return g_strdup(rows[i].words);
    return g_strdup("CUDA reports an error");
}

void
tt_cuda_error(GError **error, int code, const TtCudaTrouble *trouble)
{
    g_autofree char *words = words_of(code, trouble);
    g_autofree char *own = trouble->own ? g_strdup_printf(": %s", trouble->own) : g_strdup("");

    g_set_error(error, TT_EXEC_ERROR, tt_cuda_error_class(code), "%s%s%s (CUDA error %d%s)",
                trouble->doing ? trouble->doing : "", trouble->doing ? ": " : "", words, code, own);
}

void
tt_cuda_blocks_error(GError **error, const char *gpu, guint n_blocks, guint n_threads, guint most)
{
    g_set_error(
        error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
        "%s: %u blocks of %u threads (one for each lane of each rank) cannot run at the same "
        "time, %u can: use fewer channels, or fewer ranks on each GPU",
        gpu, n_blocks, n_threads, most);
}
