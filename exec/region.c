#include "exec/shared.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#define GIB (G_GUINT64_CONSTANT(1) << 30)

/* Address space, not memory: pages appear when touched. Large messages without rounds want a lot.
 */
#define ARENA_MOST_BYTES  (64 * GIB)
#define ARENA_LEAST_BYTES (GIB / 4)

/* A job that used more than this returns it to the system. */
#define ARENA_KEEP_BYTES (GIB / 16)

#define SKEW_BYTES 1088
#define SKEWS      16

GQuark
tt_exec_error_quark(void)
{
    return g_quark_from_static_string("tt-exec-error");
}

static gsize
round_up(gsize value, gsize unit)
{
    return (value + unit - 1) / unit * unit;
}

/* No more than there is memory: what does not fit must be refused before pages are touched. */
static gsize
most_arena_bytes(void)
{
    guint64 available = tt_region_available_bytes();

    return available ? CLAMP(available, ARENA_LEAST_BYTES, ARENA_MOST_BYTES) : ARENA_MOST_BYTES;
}

TtRegion *
tt_region_new(const TtTeamOptions *options, GError **error)
{
    gsize page = (gsize)sysconf(_SC_PAGESIZE);
    gsize head = round_up(sizeof(TtRegion) + options->n_ranks * sizeof(TtRankBlock), page);
    gsize arena = most_arena_bytes() / page * page;
    TtRegion *region = MAP_FAILED;

    for (; arena >= ARENA_LEAST_BYTES && region == MAP_FAILED; arena /= 2)
        region = mmap(NULL, head + arena, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                    "cannot map %" G_GUINT64_FORMAT " MiB of shared memory: %s (see ulimit -v)",
                    (guint64)(ARENA_LEAST_BYTES >> 20), g_strerror(errno));
        return NULL;
    }
    arena *= 2; /* the loop halved it once more */
    region->n_ranks = options->n_ranks;
    region->n_local = region->n_on_host = options->n_ranks;
    region->n_cores = MAX(1, get_nprocs());
    region->pin = options->pin;
    region->max_bytes = options->max_bytes;
    region->done_fd = -1;
    region->total_bytes = head + arena;
    region->arena = (guint8 *)region + head;
    region->arena_bytes = arena;
    return region;
}

void
tt_region_free(TtRegion *region)
{
    if (!region)
        return;
    if (region->buffers)
        munmap(region->buffers, region->buffers_bytes);
    munmap(region, region->total_bytes);
}

/* --- buffers -------------------------------------------------------------------------------------
 */

gsize
tt_buffer_skew(guint rank, guint buffer)
{
    return (TT_N_BUFFERS * rank + buffer) % SKEWS * SKEW_BYTES;
}

gsize
tt_region_buffer_bytes(const TtRegion *region)
{
    return round_up(region->max_bytes + SKEWS * SKEW_BYTES, TT_HUGE_PAGE_BYTES);
}

void
tt_region_map_buffers(TtRegion *region)
{
    gsize n = (gsize)TT_N_BUFFERS * region->n_local, each = tt_region_buffer_bytes(region);
    guint8 *memory;

    if (region->is_gpu || region->transports[TT_INSIDE] || region->n_local < 2 ||
        each > G_MAXSSIZE / (n + 1))
        return;
    region->buffers_bytes = n * each + TT_HUGE_PAGE_BYTES;
    memory = mmap(NULL, region->buffers_bytes, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return;
    madvise(memory, region->buffers_bytes, MADV_HUGEPAGE);
    region->buffers = memory;
}

guint8 *
tt_region_buffer(const TtRegion *region, guint rank, guint buffer)
{
    gsize n = (gsize)TT_N_BUFFERS * (rank - region->first_rank) + buffer;
    gsize start = round_up((gsize)(guintptr)region->buffers, TT_HUGE_PAGE_BYTES) -
                  (gsize)(guintptr)region->buffers;

    return region->buffers + start + n * tt_region_buffer_bytes(region) +
           tt_buffer_skew(rank, buffer);
}

gsize
tt_job_slice(const TtJob *job, const TtJobPart *part, guint rank)
{
    gsize start = 0;

    for (const TtJobPart *p = job->parts; p < part; p++)
        if (tt_job_member(p, rank) != TT_NO_RANK)
            start += round_up(p->plan.spec.count * tt_type_bytes(p->plan.spec.type), TT_PAIR_BYTES);
    return start;
}

gssize
tt_job_vector_start(const TtJob *job, const TtJobPart *part, guint member, guint *buffer)
{
    gssize slice = (gssize)tt_job_slice(job, part, part->members[member]);

    if (job->options.in_place && *buffer != TT_SCRATCH) {
        *buffer = TT_OUTPUT;
        return slice;
    }
    return slice - (gssize)(tt_plan_buffer_range(&part->plan, member, *buffer).first *
                            tt_type_bytes(part->plan.spec.type));
}

/* sysconf() adds up all caches of the socket on some processors: each core sees one of them. */
guint64
tt_region_cache_bytes(void)
{
    guint64 bytes = 0;

    for (guint i = 0; i < 5; i++) {
        g_autofree char *path =
            g_strdup_printf("/sys/devices/system/cpu/cpu0/cache/index%u/size", i);
        g_autofree char *text = NULL;
        char *unit;
        guint64 size;

        if (!g_file_get_contents(path, &text, NULL, NULL))
            continue;
        size = g_ascii_strtoull(text, &unit, 10);
        bytes = MAX(bytes, size << (*unit == 'K' ? 10 : *unit == 'M' ? 20 : 0));
    }
    return bytes;
}

guint64
tt_region_available_bytes(void)
{
    g_autofree char *text = NULL;
    const char *line;

    if (!g_file_get_contents("/proc/meminfo", &text, NULL, NULL))
        return 0;
    line = strstr(text, "MemAvailable:");
    return line ? g_ascii_strtoull(line + strlen("MemAvailable:"), NULL, 10) * 1024 : 0;
}

gpointer
tt_region_alloc(TtRegion *region, gsize bytes)
{
    gpointer memory = region->arena + region->arena_used;

    if (bytes > region->arena_bytes - region->arena_used - TT_PAIR_BYTES)
        return NULL;
    region->arena_used += round_up(MAX(1, bytes), TT_PAIR_BYTES);
    return memory;
}

void
tt_region_reset(TtRegion *region)
{
    gsize page = (gsize)sysconf(_SC_PAGESIZE);

    memset(&region->job, 0, sizeof region->job);
    if (region->arena_used > ARENA_KEEP_BYTES)
        madvise(region->arena, round_up(region->arena_used, page), MADV_REMOVE);
    else
        memset(region->arena, 0, region->arena_used);
    region->arena_used = 0;
}

void
tt_futex_wait(_Atomic guint32 *word, guint32 value, gint64 timeout_ns)
{
    struct timespec timeout = { timeout_ns / 1000000000, timeout_ns % 1000000000 };

    syscall(SYS_futex, word, FUTEX_WAIT, value, timeout_ns > 0 ? &timeout : NULL, NULL, 0);
}

void
tt_futex_wake(_Atomic guint32 *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, G_MAXINT, NULL, NULL, 0);
}
