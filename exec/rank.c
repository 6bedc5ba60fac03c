/* rank.c - a rank's life: wait for a job, prepare, warm up, time, check, report. */
#include "exec/barrier.h"
#include "exec/pattern.h"
#include "exec/ping.h"
#include "exec/strike.h"
#include "exec/wires.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Buffers start at different distances from a page, so that the streams a step reads and writes at
 * the same time do not collide in the low address bits. */
#define BUFFER_SKEW_BYTES 1088

#define HUGE_PAGE_BYTES (2u << 20)

static double
now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* --- memory ------------------------------------------------------------------------------------
 */

static gsize
mapped_bytes(const TtRegion *region)
{
    return region->max_bytes + TT_N_BUFFERS * BUFFER_SKEW_BYTES + HUGE_PAGE_BYTES;
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
    for (guint b = 0; b < TT_N_BUFFERS; b++) {
        guint8 *memory = mmap(NULL, mapped_bytes(region), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (memory == MAP_FAILED)
            return FALSE;
        madvise(memory, mapped_bytes(region), MADV_HUGEPAGE);
        self->memory[b] = memory;
        memory += (gsize)(-(guintptr)memory) & (HUGE_PAGE_BYTES - 1);
        self->buffers[b] = memory + b * BUFFER_SKEW_BYTES;
    }
    return TRUE;
}

static void
rank_clear(TtRank *self)
{
    tt_program_clear(self);
    g_array_unref(self->moves);
    g_array_unref(self->deps);
    tt_wires_close(self);
    for (guint b = 0; b < TT_N_BUFFERS; b++)
        if (self->memory[b])
            munmap(self->memory[b], mapped_bytes(self->region));
}

static void
heartbeat(TtRank *self)
{
    atomic_fetch_add_explicit(&self->region->ranks[self->rank].heartbeat, 1, memory_order_relaxed);
}

/* Where element 0 of the vector would be in each buffer. In place, input and output share memory
 * such that every element is at the same address in both. */
static void
place_buffers(TtRank *self)
{
    const TtJob *job = &self->region->job;
    gsize size = tt_type_bytes(job->plan.spec.type);

    for (guint b = 0; b < TT_N_BUFFERS; b++) {
        TtRange range = tt_plan_buffer_range(&job->plan, self->rank, b);
        gboolean shared = job->options.in_place && b != TT_SCRATCH;
        guint at = shared ? TT_OUTPUT : b;
        gsize start = shared ? 0 : range.first, bytes = (range.first + range.count - start) * size;

        self->vector[b] = self->buffers[at] - start * size;
        if (bytes > self->touched[at]) { /* no page faults in the timed loop */
            memset(self->buffers[at], 0, bytes);
            self->touched[at] = bytes;
            heartbeat(self);
        }
    }
}

/* A piece of a buffer at a time, so that whoever watches sees progress. */
#define FILL_PIECE 65536

static void
fill_input(TtRank *self)
{
    const TtJob *job = &self->region->job;
    TtRange all = tt_plan_buffer_range(&job->plan, self->rank, TT_INPUT);
    gsize size = tt_type_bytes(job->plan.spec.type);

    for (guint64 i = 0; i < all.count; i += FILL_PIECE) {
        TtRange piece = { all.first + i, MIN(FILL_PIECE, all.count - i) };

        tt_pattern_fill(&job->plan, self->rank, piece, self->vector[TT_INPUT] + piece.first * size);
        heartbeat(self);
    }
}

/* The timed loop left right answers behind: spoil them. */
static void
spoil_output(TtRank *self)
{
    const TtJob *job = &self->region->job;
    TtRange range = tt_plan_buffer_range(&job->plan, self->rank, TT_OUTPUT);
    gsize size = tt_type_bytes(job->plan.spec.type);

    memset(self->vector[TT_OUTPUT] + range.first * size, 0x5a, range.count * size);
    heartbeat(self);
}

static gint64
count_wrong(TtRank *self)
{
    const TtJob *job = &self->region->job;
    TtRange all = tt_plan_buffer_range(&job->plan, self->rank, TT_OUTPUT);
    gsize size = tt_type_bytes(job->plan.spec.type);
    guint64 wrong = 0;

    for (guint64 i = 0; i < all.count; i += FILL_PIECE) {
        TtRange piece = { all.first + i, MIN(FILL_PIECE, all.count - i) };

        wrong +=
            tt_pattern_count_wrong(&job->plan, piece, self->vector[TT_OUTPUT] + piece.first * size);
        heartbeat(self);
    }
    return (gint64)wrong;
}

/* --- measuring ---------------------------------------------------------------------------------
 */

static gboolean
run_many(TtRank *self, guint n)
{
    for (guint i = 0; i < n; i++)
        if (!tt_datapath_run(self))
            return FALSE;
    return TRUE;
}

static gboolean
run_timed(TtRank *self)
{
    TtJob *job = &self->region->job;
    guint n = job->options.iterations;

    if (!run_many(self, job->options.warmup))
        return FALSE;
    for (guint r = 0; r < job->options.repeats; r++) {
        double start;

        if (!tt_barrier_wait(self))
            return FALSE;
        start = now_s();
        if (!run_many(self, n) || !tt_wires_flush(self))
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
    return tt_barrier_wait(self) && tt_datapath_record(self, events, &block->n_events) &&
           tt_wires_flush(self);
}

static gboolean
run_checked(TtRank *self)
{
    spoil_output(self);
    fill_input(self);
    if (!tt_barrier_wait(self) || !tt_datapath_run(self) || !tt_wires_flush(self))
        return FALSE;
    self->region->ranks[self->rank].wrong = count_wrong(self);
    return TRUE;
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

    place_buffers(self);
    if (!tt_program_compile(self))
        return FALSE;
    fill_input(self);
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
