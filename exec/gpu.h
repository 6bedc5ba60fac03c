/* gpu.h - a machine's GPUs, as the executor needs them: memory, copies, launches.
 *
 * One file exec/cuda/driver_<name> each: "cuda" is the real thing, "host" runs the same kernels with a thread of
 * the CPU for every thread of a block, so that all but the hardware can be tried (and taught) anywhere.
 * Addresses of device memory are only for kernels and copy(); host memory from alloc_host() or register_host() has one
 * address on both sides.
 *
 * All errors are TT_EXEC_ERROR: HARDWARE (no driver, too old, no such device, does not fit), SYSTEM (out of memory)
 * and say in one line what, where and what to do. Functions of one device are called by one
 * thread at a time.
 */
#pragma once
#include "exec/exec.h"
#include "exec/gpu_program.h"

typedef struct TtGpu TtGpu; /* a driver's own */

#define TT_GPU_HANDLE_BYTES 64

typedef struct {
    char name[96]; /* "NVIDIA H200" */
    char bus_id
        [32]; /* "00000000:1B:00.0": tells GPUs of a machine apart; of a host device, of a process too */
    guint64 memory_bytes, free_bytes;
    guint n_sms, major, minor; /* compute capability */
} TtGpuFacts;

typedef struct {
    const TtGpuProgram *program; /* in the host's memory; what it points to is the device's */
    guint n_threads;             /* of a block; 0: the driver's choice for the program */
    gboolean events;             /* some lane records */
} TtGpuLaunch;

typedef enum { TT_GPU_RUNNING, TT_GPU_DONE, TT_GPU_FAILED } TtGpuNews;

typedef struct {
    const char *name; /* "cuda" */

    /* GPUs here; HARDWARE if there can be none (no driver...). */
    gboolean (*count)(guint *n, GError **error);
    TtGpu *(*open)(guint index, GError **error);
    void (*close)(TtGpu *self); /* NULL is fine */
    void (*facts)(TtGpu *self, TtGpuFacts *facts);

    gpointer (*alloc)(TtGpu *self, gsize bytes, GError **error); /* of the device; zeroed */
    void (*free)(TtGpu *self, gpointer memory);
    gpointer (*alloc_host)(TtGpu *self, gsize bytes,
                           GError **error); /* zeroed, seen by all GPUs of the process */
    void (*free_host)(TtGpu *self, gpointer memory);
    gboolean (*register_host)(TtGpu *self, gpointer memory, gsize bytes,
                              GError **error); /* page-aligned */
    void (*unregister_host)(TtGpu *self, gpointer memory);

    /* Between any two kinds of memory, done when it returns. */
    gboolean (*copy)(TtGpu *self, gpointer to, gconstpointer from, gsize bytes, GError **error);
    gboolean (*zero)(TtGpu *self, gpointer memory, gsize bytes, GError **error);

    /* Kernels on @self may use memory of @other from now on. FALSE if they cannot: no error. */
    gboolean (*reach)(TtGpu *self, TtGpu *other);

    /* Memory of alloc() for another process of this machine, and there. */
    gboolean (*share)(TtGpu *self, gpointer memory, guint8 handle[TT_GPU_HANDLE_BYTES],
                      GError **error);
    gpointer (*attach)(TtGpu *self, const guint8 handle[TT_GPU_HANDLE_BYTES], GError **error);
    void (*detach)(TtGpu *self, gpointer memory);

    /* GPUDirect: a network card uses memory of alloc(). FALSE with why not; *@flush: running kernels see what a card wrote
     * only after flush_writes(), which any thread may call at any time. */
    gboolean (*direct)(TtGpu *self, gboolean *flush, GError **error);
    gboolean (*flush_writes)(TtGpu *self, GError **error);
    /* A dma-buf that @memory, in whole pages, lies in, for cards to register: *@fd is the caller's to close. */
    gboolean (*dma_buf)(TtGpu *self, gpointer memory, gsize bytes, int *fd, guint64 *offset,
                        GError **error);

    /* Blocks of @n_threads (0: as launch() chooses) that can be resident together with this program's kernel. */
    gboolean (*most_blocks)(TtGpu *self, const TtGpuLaunch *launch, guint *n, GError **error);

    /* One collective: all blocks at the same time. Returns at once; launches follow each other. */
    gboolean (*launch)(TtGpu *self, const TtGpuLaunch *launch, GError **error);

    /* Every element of @vector is divided by @n (TT_AVG); follows what was launched. */
    gboolean (*scale)(TtGpu *self, gpointer vector, guint64 count, guint type, guint n,
                      GError **error);

    TtGpuNews (*poll)(TtGpu *self, GError **error); /* everything launched has ended? */

    /* For calibration: seconds for one of @n launches of an empty kernel; for copying @bytes on the device (read
     * and written once) with @n_blocks, 0: the driver's own copy; for reducing likewise (two read, one written). */
    gboolean (*time_launch)(TtGpu *self, guint n, double *s, GError **error);
    gboolean (*time_copy)(TtGpu *self, gpointer to, gconstpointer from, gsize bytes, guint n_blocks,
                          gboolean reduce, double *s, GError **error);

    /* One way of a flag between a block of @self and one of @other, which it reaches, or of itself. */
    gboolean (*time_flag)(TtGpu *self, TtGpu *other, double *s, GError **error);
} TtGpuDriver;

/* "cuda" and "host", as far as they are compiled in; NULL at the end. */
extern const TtGpuDriver *const tt_gpu_drivers[];

/* For the "host" driver: how many GPUs it pretends to have, and threads in a block. */
void tt_gpu_host_set(guint n_gpus, guint n_threads);

/* NULL with HARDWARE if this build has none of that name: says what to install. */
const TtGpuDriver *tt_gpu_driver_find(const char *name, GError **error);
