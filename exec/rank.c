/* rank.c - a rank's life: wait for a job, prepare, warm up, time, check, report. */
#include "exec/barrier.h"
#include "exec/gpu_group.h"
#include "exec/ping.h"
#include "exec/strike.h"
#include "exec/wires.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static double
now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* --- memory ------------------------------------------------------------------------------------
 */

/* A buffer of this rank's alone. NULL with errno if there is no memory. */
static guint8 *
map_buffer(TtRank *self, guint b)
{
    gsize bytes = tt_region_buffer_bytes(self->region) + TT_HUGE_PAGE_BYTES;
    guint8 *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, bytes, MADV_HUGEPAGE);
    self->memory[b] = memory;
    memory += (gsize)(-(guintptr)memory) & (TT_HUGE_PAGE_BYTES - 1);
    return memory + tt_buffer_skew(self->rank, b);
}

/* Buffers and reduction unit; FALSE with errno if there is no memory. */
static gboolean
rank_init(TtRank *self, TtRegion *region, guint rank)
{
    *self = (TtRank){ .region = region, .rank = rank, .unit = tt_reduce_unit_get(NULL) };
    self->checksum = region->wire.checksum;
    for (guint i = 0; i < TT_N_REACHES; i++)
        self->reach[i].ends = g_array_new(FALSE, TRUE, sizeof(TtWireEnd));
    self->moves = g_array_new(FALSE, FALSE, sizeof(TtMove));
    self->deps = g_array_new(FALSE, TRUE, sizeof(TtDep));
    self->lenders = g_ptr_array_new();
    if (region->gpus)
        self->gpu = tt_gpu_rank_new(region->gpus, rank);
    for (guint b = 0; b < TT_N_BUFFERS && !self->gpu; b++) {
        self->buffers[b] =
            region->buffers ? tt_region_buffer(region, rank, b) : map_buffer(self, b);
        if (!self->buffers[b])
            return FALSE;
    }
    return TRUE;
}

static void
rank_clear(TtRank *self)
{
    tt_program_clear(self);
    g_free(self->parts);
    g_array_unref(self->moves);
    g_array_unref(self->deps);
    g_ptr_array_unref(self->lenders);
    tt_wires_close(self);
    if (self->gpu)
        tt_gpu_rank_free(self->gpu);
    for (guint b = 0; b < TT_N_BUFFERS; b++)
        if (self->memory[b])
            munmap(self->memory[b], tt_region_buffer_bytes(self->region) + TT_HUGE_PAGE_BYTES);
}

#define TOUCH_BYTES ((gsize)(16u << 20))

/* Gives memory its pages; whoever watches sees that it gets on. */
static void
touch(TtRank *self, guint8 *memory, gsize bytes)
{
    for (gsize i = 0; i < bytes; i += TOUCH_BYTES) {
        memset(memory + i, 0, MIN(TOUCH_BYTES, bytes - i));
        tt_rank_heartbeat(self);
    }
}

static void
place_part(TtRank *self, TtRankPart *part)
{
    const TtJob *job = &self->region->job;
    const TtPlan *plan = &part->job->plan;
    gsize size = tt_type_bytes(plan->spec.type);

    for (guint b = 0; b < TT_N_BUFFERS; b++) {
        TtRange range = tt_plan_buffer_range(plan, part->member, b);
        guint at = b;
        gssize start = tt_job_vector_start(job, part->job, part->member, &at);
        gsize bytes = (gsize)(start + (gssize)((range.first + range.count) * size));

        part->vector[b] = self->buffers[at] + start;
        if (bytes > self->touched[at]) { /* no page faults in the timed loop */
            touch(self, self->buffers[at], bytes);
            self->touched[at] = bytes;
            tt_rank_heartbeat(self);
        }
    }
}

static gboolean
place_buffers(TtRank *self)
{
    if (self->gpu)
        return tt_gpu_place_buffers(self);
    for (guint p = 0; p < self->n_parts; p++)
        place_part(self, &self->parts[p]);
    return TRUE;
}

/* --- measuring ---------------------------------------------------------------------------------
 */

static gboolean
run_many(TtRank *self, guint n)
{
    if (self->gpu)
        return tt_gpu_run(self, n, NULL);
    for (guint i = 0; i < n; i++)
        if (!tt_datapath_run(self))
            return FALSE;
    return TRUE;
}

static gboolean
run_many_stamped(TtRank *self, guint n, TtStamp *stamps)
{
    if (self->gpu) {
        stamps[n].begin = tt_now_ns();
        return tt_gpu_run(self, n, stamps);
    }
    stamps[n].begin = tt_ticks_now();
    for (guint i = 0; i < n; i++)
        if (!tt_datapath_run_stamped(self, &stamps[i]))
            return FALSE;
    return TRUE;
}

/* This rank's stamps of loop @repeat, touched: no page faults in the timed loop. NULL: none are wanted. */
static TtStamp *
prepare_stamps(TtRank *self, guint repeat)
{
    TtJob *job = &self->region->job;
    gsize n = (gsize)job->options.iterations + 1;
    TtStamp *stamps = job->stamps;

    if (!stamps)
        return NULL;
    stamps += self->rank * tt_job_n_stamps(job) + repeat * n;
    memset(stamps, 0, n * sizeof *stamps);
    return stamps;
}

static void
prepare_waited(TtRank *self)
{
    const TtJob *job = &self->region->job;
    gsize n = self->region->n_ranks;

    self->waited = job->waited ? job->waited + self->rank * n : NULL;
    if (self->waited)
        memset(self->waited, 0, n * sizeof *self->waited);
}

static gboolean
run_timed(TtRank *self)
{
    TtJob *job = &self->region->job;
    guint n = job->options.iterations;

    if (!run_many(self, job->options.warmup))
        return FALSE;
    prepare_waited(self);
    for (guint r = 0; r < job->options.repeats; r++) {
        TtStamp *stamps = prepare_stamps(self, r);
        double start;

        if (!tt_barrier_wait(self))
            return FALSE;
        start = now_s();
        if (!(stamps ? run_many_stamped(self, n, stamps) : run_many(self, n)) ||
            !tt_wires_flush(self))
            return FALSE;
        job->time_s[self->rank * job->options.repeats + r] = (now_s() - start) / n;
    }
    return TRUE;
}

static gboolean
run_recorded(TtRank *self)
{
    const TtJob *job = &self->region->job;
    TtRankBlock *block = &self->region->ranks[self->rank];
    TtEvent *events = job->events + job->event_first[self->rank];
    gsize n = job->event_first[self->rank + 1] - job->event_first[self->rank];

    memset(events, 0, n * sizeof *events); /* its pages */
    return tt_barrier_wait(self) &&
           (self->gpu ? tt_gpu_record(self, events, &block->n_events)
                      : tt_datapath_record(self, events, &block->n_events)) &&
           tt_wires_flush(self);
}

static gboolean
run_checked(TtRank *self)
{
    return tt_rank_spoil_output(self) && tt_rank_fill_input(self) && tt_barrier_wait(self) &&
           run_many(self, 1) && tt_wires_flush(self) && tt_rank_count_wrong(self);
}

static void
report(TtRegion *region)
{
    guint64 one = 1;

    if (write(region->done_fd, &one, sizeof one) != sizeof one)
        atomic_store(&region->aborted, 1); /* cannot be: the counter does not fill up */
}

/* Tells that it is ready, and for what; sleeps until all are and agree. */
static gboolean
wait_for_go(TtRank *self, guint32 number)
{
    TtRegion *region = self->region;
    TtRankBlock *block = &region->ranks[self->rank];
    guint32 seen;

    block->signature = region->job.signature;
    tt_fault_missign(self);
    atomic_store_explicit(&block->ready, number, memory_order_release);
    report(region);
    while ((seen = atomic_load_explicit(&region->go_number, memory_order_acquire)) != number) {
        if (atomic_load_explicit(&region->aborted, memory_order_relaxed))
            return FALSE;
        tt_futex_wait(&region->go_number, seen, 0);
    }
    return TRUE;
}

static gboolean
run_job(TtRank *self, guint32 number)
{
    const TtRunOptions *options = &self->region->job.options;

    tt_program_find_parts(self);
    if (!place_buffers(self) || !tt_program_compile(self) || !tt_rank_fill_input(self))
        return FALSE;
    return wait_for_go(self, number) && tt_barrier_wait(self) && tt_ping_measure(self) &&
           tt_barrier_wait(self) && run_timed(self) && (!options->record || run_recorded(self)) &&
           (!options->check || run_checked(self));
}

/* --- commands ----------------------------------------------------------------------------------
 */

static void
pin(const TtRegion *region, guint rank)
{
    cpu_set_t allowed, one;
    gint n, skip;

    if (!region->pin || sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    n = CPU_COUNT(&allowed);
    skip = (gint)(region->host_rank + rank - region->first_rank) % n;
    for (gint cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &allowed) && skip-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof one, &one);
            return;
        }
    }
}

/* Sleeps until the command after number @seen. FALSE to quit. */
static gboolean
next_command(TtRegion *region, TtRankBlock *block, guint32 seen)
{
    atomic_store_explicit(&block->state, TT_RANK_IDLE, memory_order_relaxed);
    while (atomic_load_explicit(&region->command_number, memory_order_acquire) == seen) {
        if (atomic_load_explicit(&region->aborted, memory_order_relaxed))
            return FALSE;
        tt_futex_wait(&region->command_number, seen, 0);
    }
    atomic_store_explicit(&block->state, TT_RANK_BUSY, memory_order_relaxed);
    return region->command == TT_COMMAND_RUN && !atomic_load(&region->aborted);
}

void
tt_rank_complain(TtRank *self, guint peer, const GError *error)
{
    TtRankBlock *block = &self->region->ranks[self->rank];

    block->trouble.code = (guint32)error->code;
    block->trouble.peer = peer;
    block->trouble.was = atomic_load_explicit(&block->state, memory_order_relaxed);
    g_strlcpy(block->trouble.text, error->message, sizeof block->trouble.text);
    atomic_store_explicit(&block->state, TT_RANK_TROUBLED, memory_order_release);
    report(self->region);
}

static gboolean
serve(TtRank *self)
{
    TtRegion *region = self->region;
    TtRankBlock *block = &region->ranks[self->rank];

    atomic_store_explicit(&block->up, 1, memory_order_release);
    report(region);
    for (guint32 number = 0; next_command(region, block, number);) {
        number++;
        if (!run_job(self, number))
            return FALSE;
        atomic_store_explicit(&block->finished, number, memory_order_release);
        report(region);
    }
    return TRUE;
}

/* A rank that has found something wrong keeps its connections, so that no other complains of those. */
static void
stay_until_told(const TtRegion *region)
{
    while (!atomic_load(&region->aborted))
        g_usleep(1000);
}

int
tt_rank_main(TtRegion *region, guint rank)
{
    TtRank self;
    gboolean good;

    pin(region, rank);
    good = rank_init(&self, region, rank);
    if (!good) {
        g_autoptr(GError) error = g_error_new(TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                                              "rank %u cannot map %d buffers of %" G_GUINT64_FORMAT
                                              " MiB (see ulimit -v, or use a smaller size)",
                                              rank, TT_N_BUFFERS, (region->max_bytes >> 20) + 1);

        tt_rank_complain(&self, TT_NO_RANK, error);
    }
    tt_fault_stay_away(&self);
    good = good && tt_wires_open(&self) && serve(&self);
    if (!good)
        stay_until_told(region);
    rank_clear(&self);
    return good ? 0 : 1;
}
