/* driver_host - GPUs that are none: the kernels run on the CPU, so that all but the hardware can be tried anywhere.
 *
 * Device memory is a memory file each, which another process opens through /proc; of the same process, GPUs
 * see each other's memory, unless TUTTI_HOST_PEER=0 says that they do not, to try what is done then.
 * TUTTI_HOST_GPUS is how many there are, unless tt_gpu_host_set() was called.
 */
#include <glib.h>

#include "exec/cuda/host_pool.h"

extern "C" {
#include "algos/schedule.h"
#include "exec/gpu.h"
}

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define MOST_GPUS    64
#define MOST_THREADS 1024 /* of all blocks of a launch together */

static_assert((int)TT_INT8 == TT_GPU_INT8 && (int)TT_INT32 == TT_GPU_INT32 &&
                  (int)TT_INT64 == TT_GPU_INT64 && (int)TT_FLOAT16 == TT_GPU_FLOAT16 &&
                  (int)TT_BFLOAT16 == TT_GPU_BFLOAT16 && (int)TT_FLOAT32 == TT_GPU_FLOAT32 &&
                  (int)TT_FLOAT64 == TT_GPU_FLOAT64 && (int)TT_N_TYPES <= TT_GPU_N_TYPES,
              "words.h has the types of algos/types.h");
static_assert((int)TT_SUM == TT_GPU_SUM && (int)TT_PROD == TT_GPU_PROD &&
                  (int)TT_MIN == TT_GPU_MIN && (int)TT_MAX == TT_GPU_MAX,
              "and its reductions");
static_assert((int)TT_OP_NOP == TT_GPU_NOP && (int)TT_OP_COPY == TT_GPU_COPY &&
                  (int)TT_OP_REDUCE == TT_GPU_REDUCE && (int)TT_OP_SEND == TT_GPU_SEND &&
                  (int)TT_OP_COPY_SEND == TT_GPU_COPY_SEND && (int)TT_OP_RECV == TT_GPU_RECV &&
                  (int)TT_OP_RECV_COPY_SEND == TT_GPU_RECV_COPY_SEND &&
                  (int)TT_OP_RECV_REDUCE == TT_GPU_RECV_REDUCE &&
                  (int)TT_OP_RECV_REDUCE_SEND == TT_GPU_RECV_REDUCE_SEND &&
                  (int)TT_OP_RECV_REDUCE_COPY_SEND == TT_GPU_RECV_REDUCE_COPY_SEND,
              "and the operations of algos/schedule.h");

struct TtGpu {
    guint index;
    TtHostPool *pool;
    GHashTable *memories; /* address -> Memory */
};

/* Memory of alloc(), or attached. */
typedef struct {
    gpointer address;
    gsize bytes;
    int fd; /* -1: of another process */
} Memory;

/* What crosses to another process. */
typedef struct {
    gint32 pid, fd;
    guint64 bytes;
} Handle;

static struct {
    guint n_gpus, n_threads; /* 0: not set */
} chosen;

void
tt_gpu_host_set(guint n_gpus, guint n_threads)
{
    chosen.n_gpus = n_gpus;
    chosen.n_threads = n_threads;
}

/* --- devices ----------------------------------------------------------------------------------- */

static gboolean
count(guint *n, GError **error)
{
    const char *text = g_getenv("TUTTI_HOST_GPUS");
    guint64 number = 1;

    if (chosen.n_gpus > 0) {
        *n = chosen.n_gpus;
        return TRUE;
    }
    if (text && !g_ascii_string_to_unsigned(text, 10, 1, MOST_GPUS, &number, NULL)) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                    "TUTTI_HOST_GPUS: \"%s\" is not a number of GPUs (1 .. %d)", text, MOST_GPUS);
        return FALSE;
    }
    *n = (guint)number;
    return TRUE;
}

static void
memory_free(gpointer data)
{
    Memory *memory = (Memory *)data;

    munmap(memory->address, memory->bytes);
    if (memory->fd >= 0)
        close(memory->fd);
    g_free(memory);
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
                    "host GPU %u: there %s %u (0 .. %u)", index, n == 1 ? "is" : "are", n, n - 1);
        return NULL;
    }
    self = g_new0(TtGpu, 1);
    self->index = index;
    self->pool = tt_host_pool_new();
    self->memories = g_hash_table_new_full(NULL, NULL, NULL, memory_free);
    return self;
}

static void
close_gpu(TtGpu *self)
{
    if (!self)
        return;
    tt_host_pool_free(self->pool);
    g_hash_table_destroy(self->memories);
    g_free(self);
}

static void
facts(TtGpu *self, TtGpuFacts *facts)
{
    struct sysinfo info;

    memset(facts, 0, sizeof *facts);
    g_snprintf(facts->name, sizeof facts->name, "the host's processor");
    g_snprintf(facts->bus_id, sizeof facts->bus_id, "host:%d:%u", (int)getpid(), self->index);
    facts->n_sms = g_get_num_processors();
    if (sysinfo(&info) != 0)
        return;
    facts->memory_bytes = (guint64)info.totalram * info.mem_unit;
    facts->free_bytes = (guint64)(info.freeram + info.bufferram) * info.mem_unit;
}

/* --- memory ------------------------------------------------------------------------------------ */

static gpointer
refuse_memory(const TtGpu *self, const char *what, gsize bytes, GError **error)
{
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                "host GPU %u: cannot %s %" G_GSIZE_FORMAT " bytes of memory: %s", self->index, what,
                bytes, g_strerror(errno));
    return NULL;
}

/* Takes @fd, also on failure; -1 of an attached one is kept by the mapping alone. */
static gpointer
map_memory(TtGpu *self, int fd, gsize bytes, gboolean keeps, const char *what, GError **error)
{
    gpointer address = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int code = errno;
    Memory *memory;

    if (address == MAP_FAILED || !keeps)
        close(fd);
    if (address == MAP_FAILED) {
        errno = code;
        return refuse_memory(self, what, bytes, error);
    }
    memory = g_new0(Memory, 1);
    memory->address = address;
    memory->bytes = bytes;
    memory->fd = keeps ? fd : -1;
    g_hash_table_insert(self->memories, address, memory);
    return address;
}

static gpointer
alloc(TtGpu *self, gsize bytes, GError **error)
{
    int fd = memfd_create("tutti", MFD_CLOEXEC);

    bytes = MAX(bytes, 1);
    if (fd < 0)
        return refuse_memory(self, "get", bytes, error);
    if (bytes > G_MAXINT64 || ftruncate(fd, (off_t)bytes) != 0) {
        int code = bytes > G_MAXINT64 ? ENOMEM : errno;

        close(fd);
        errno = code;
        return refuse_memory(self, "get", bytes, error);
    }
    return map_memory(self, fd, bytes, TRUE, "get", error);
}

static void
free_memory(TtGpu *self, gpointer memory)
{
    if (memory)
        g_hash_table_remove(self->memories, memory);
}

static gboolean
register_host(TtGpu *self G_GNUC_UNUSED, gpointer memory G_GNUC_UNUSED, gsize bytes G_GNUC_UNUSED,
              GError **error G_GNUC_UNUSED)
{
    return TRUE;
}

static void
unregister_host(TtGpu *self G_GNUC_UNUSED, gpointer memory G_GNUC_UNUSED)
{
}

static gboolean
copy(TtGpu *self G_GNUC_UNUSED, gpointer to, gconstpointer from, gsize bytes,
     GError **error G_GNUC_UNUSED)
{
    if (bytes > 0)
        memcpy(to, from, bytes);
    return TRUE;
}

static gboolean
zero(TtGpu *self G_GNUC_UNUSED, gpointer memory, gsize bytes, GError **error G_GNUC_UNUSED)
{
    if (bytes > 0)
        memset(memory, 0, bytes);
    return TRUE;
}

static gboolean
reach(TtGpu *self, TtGpu *other)
{
    const char *text = g_getenv("TUTTI_HOST_PEER");

    return self == other || !text || strcmp(text, "0") != 0;
}

static gboolean
share(TtGpu *self, gpointer address, guint8 bytes[TT_GPU_HANDLE_BYTES], GError **error)
{
    const Memory *memory = (const Memory *)g_hash_table_lookup(self->memories, address);
    Handle handle;

    if (!memory || memory->fd < 0) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                    "host GPU %u: only memory of its own can be shared", self->index);
        return FALSE;
    }
    handle.pid = getpid();
    handle.fd = memory->fd;
    handle.bytes = memory->bytes;
    memset(bytes, 0, TT_GPU_HANDLE_BYTES);
    memcpy(bytes, &handle, sizeof handle);
    return TRUE;
}

static gpointer
attach(TtGpu *self, const guint8 bytes[TT_GPU_HANDLE_BYTES], GError **error)
{
    Handle handle;
    g_autofree char *path = NULL;
    int fd;

    memcpy(&handle, bytes, sizeof handle);
    path = g_strdup_printf("/proc/%d/fd/%d", handle.pid, handle.fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return refuse_memory(self, "attach another process's", (gsize)handle.bytes, error);
    return map_memory(self, fd, (gsize)handle.bytes, FALSE, "attach another process's", error);
}

/* --- kernels ----------------------------------------------------------------------------------- */

static guint
block_threads(const TtGpuLaunch *launch)
{
    guint n = launch->n_threads > 0 ? launch->n_threads : MAX(1, chosen.n_threads);

    return MIN(n, TT_GPU_MOST_THREADS);
}

static gboolean
most_blocks(TtGpu *self G_GNUC_UNUSED, const TtGpuLaunch *launch, guint *n,
            GError **error G_GNUC_UNUSED)
{
    *n = MOST_THREADS / block_threads(launch);
    return TRUE;
}

static gboolean
start(TtGpu *self, const TtHostWork *work, GError **error)
{
    if (work->n_blocks == 0 || tt_host_pool_launch(self->pool, work))
        return TRUE;
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                "host GPU %u: cannot start %u threads: %s (see ulimit -u)", self->index,
                work->n_blocks * work->n_threads, g_strerror(errno));
    return FALSE;
}

static void
run_collective(const TtHostWork *work)
{
    work->kernels->collective(work->program);
}

static gboolean
launch(TtGpu *self, const TtGpuLaunch *launch, GError **error)
{
    TtHostWork work = {};
    guint most;

    most_blocks(self, launch, &most, NULL);
    work.run = run_collective;
    work.n_blocks = launch->program->n_lanes;
    work.n_threads = block_threads(launch);
    work.program = *launch->program;
    work.kernels = tt_gpu_host_kernels[work.program.type];
    if (work.n_blocks > most) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                    "host GPU %u: %u blocks of %u threads are too many, at most %u can run at the "
                    "same time",
                    self->index, work.n_blocks, work.n_threads, most);
        return FALSE;
    }
    return start(self, &work, error);
}

static void
run_scale(const TtHostWork *work)
{
    work->kernels->scale(work->to, work->count, work->divisor);
}

static gboolean
scale(TtGpu *self, gpointer vector, guint64 count, guint type, guint n, GError **error)
{
    TtHostWork work = {};

    work.run = run_scale;
    work.n_blocks = work.n_threads = 1;
    work.kernels = tt_gpu_host_kernels[type];
    work.to = (guint8 *)vector;
    work.count = count;
    work.divisor = n;
    return start(self, &work, error);
}

static TtGpuNews
poll(TtGpu *self, GError **error G_GNUC_UNUSED)
{
    return tt_host_pool_is_idle(self->pool) ? TT_GPU_DONE : TT_GPU_RUNNING;
}

/* --- times ------------------------------------------------------------------------------------- */

static void
run_empty(const TtHostWork *work G_GNUC_UNUSED)
{
    tt_gpu_host_basics.empty();
}

static void
run_copy(const TtHostWork *work)
{
    tt_gpu_host_basics.copy(work->to, work->from, work->count);
}

static void
run_reduce(const TtHostWork *work)
{
    tt_gpu_host_basics.reduce(work->to, work->from, work->count);
}

/* Seconds for one of @n, each waited for. */
static gboolean
time_work(TtGpu *self, const TtHostWork *work, guint n, double *s, GError **error)
{
    gint64 begin_us = g_get_monotonic_time();

    for (guint i = 0; i < n; i++) {
        if (!start(self, work, error))
            return FALSE;
        tt_host_pool_wait(self->pool);
    }
    *s = (double)(g_get_monotonic_time() - begin_us) * 1e-6 / n;
    return TRUE;
}

static gboolean
time_launch(TtGpu *self, guint n, double *s, GError **error)
{
    TtHostWork work = {};

    work.run = run_empty;
    work.n_blocks = 1;
    work.n_threads = MAX(1, chosen.n_threads);
    return time_work(self, &work, 1, s, error) && time_work(self, &work, MAX(1, n), s, error);
}

static gboolean
time_copy(TtGpu *self, gpointer to, gconstpointer from, gsize bytes, guint n_blocks,
          gboolean reduce, double *s, GError **error)
{
    guint n = (guint)CLAMP(((gsize)64 << 20) / MAX(bytes, 1), 3, 1000);
    TtHostWork work = {};

    work.run = reduce ? run_reduce : run_copy;
    work.n_blocks = n_blocks > 0 ? MIN(n_blocks, MOST_THREADS) : g_get_num_processors();
    work.n_threads = 1;
    work.to = (guint8 *)to;
    work.from = (const guint8 *)from;
    work.count = bytes;
    return time_work(self, &work, 1, s, error) && time_work(self, &work, n, s, error);
}

#define PINGS 100

static void
run_ping(const TtHostWork *work)
{
    tt_gpu_host_basics.ping(work->flags[0], work->flags[1], PINGS, work->count);
}

static gboolean
play_ping(TtGpu *self, TtGpu *other, guint8 *const flags[2], GError **error)
{
    TtHostWork work = {};
    gboolean good;

    work.run = run_ping;
    work.n_blocks = self == other ? 2 : 1;
    work.n_threads = 1;
    work.flags[0] = flags[0];
    work.flags[1] = flags[1];
    good = start(self, &work, error);
    work.count = 1;
    good = good && (self == other || start(other, &work, error));
    tt_host_pool_wait(self->pool);
    tt_host_pool_wait(other->pool);
    return good;
}

static gboolean
time_flag(TtGpu *self, TtGpu *other, double *s, GError **error)
{
    guint8 *flags[2] = { (guint8 *)alloc(self, TT_GPU_PING_BYTES, error), NULL };
    guint64 ns = 0;
    gboolean good;

    flags[1] = flags[0] ? (guint8 *)alloc(other, TT_GPU_PING_BYTES, error) : NULL;
    good = flags[1] && play_ping(self, other, flags, error);
    if (good)
        memcpy(&ns, flags[0] + TT_GPU_PING_WORD * sizeof ns, sizeof ns);
    free_memory(self, flags[0]);
    free_memory(other, flags[1]);
    if (good && ns == 0) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                    "host GPU %u: a flag does not come back from host GPU %u", self->index,
                    other->index);
        return FALSE;
    }
    *s = (double)ns * 1e-9 / (2 * PINGS);
    return good;
}

/* --- network cards ----------------------------------------------------------------------------- */

static gboolean
direct(TtGpu *self G_GNUC_UNUSED, gboolean *flush, GError **error G_GNUC_UNUSED)
{
    *flush = FALSE;
    return TRUE;
}

static gboolean
flush_writes(TtGpu *self G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
    return TRUE;
}

static gboolean
dma_buf(TtGpu *self G_GNUC_UNUSED, gpointer memory G_GNUC_UNUSED, gsize bytes G_GNUC_UNUSED,
        int *fd G_GNUC_UNUSED, guint64 *offset G_GNUC_UNUSED, GError **error)
{
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE, "memory of the CPU is no dma-buf");
    return FALSE;
}

extern "C" {
extern const TtGpuDriver tt_gpu_driver_host;
const TtGpuDriver tt_gpu_driver_host = {
    .name = "host",
    .count = count,
    .open = open_gpu,
    .close = close_gpu,
    .facts = facts,
    .alloc = alloc,
    .free = free_memory,
    .alloc_host = alloc,
    .free_host = free_memory,
    .register_host = register_host,
    .unregister_host = unregister_host,
    .copy = copy,
    .zero = zero,
    .reach = reach,
    .share = share,
    .attach = attach,
    .detach = free_memory,
    .direct = direct,
    .flush_writes = flush_writes,
    .dma_buf = dma_buf,
    .most_blocks = most_blocks,
    .launch = launch,
    .scale = scale,
    .poll = poll,
    .time_launch = time_launch,
    .time_copy = time_copy,
    .time_flag = time_flag,
};
}
