/* gpu_bench.h - a plan as a GPU program, written by hand for tests: memory, ends, lanes; launched and waited for.
 *
 * Everything goes through the driver, as if its memory could not be seen from here.
 */
#pragma once
#include "algos/schedule.h"
#include "exec/gpu.h"
#include "tests/check.h"

#include <string.h>

extern const TtGpuDriver tt_gpu_driver_host;

#define BENCH_TIMEOUT_US 60000000

typedef struct {
    const char *algorithm;
    TtPlanSpec spec; /* its type: one of the same size if @type is not in algos/types.h */
    guint type;
    guint element_bytes;
    guint protocol; /* TT_GPU_N_PROTOCOLS: another one on every connection */
    guint n_threads;
    guint skew; /* elements the buffers are off an aligned address */
    gboolean events;
} BenchSpec;

typedef struct {
    const BenchSpec *spec;
    const TtGpuDriver *driver;
    TtGpu *gpu;
    TtPlan *plan;
    guint n_ranks, n_lanes;        /* lanes of a rank */
    guint8 *buffers[TT_N_BUFFERS]; /* device: of all ranks */
    gsize buffer_bytes;            /* of one rank */
    guint8 *connections;           /* device */
    gsize connection_bytes, stride;
    guint8 *memory; /* device: lanes, ends, steps, counters, events */
    TtGpuStatus *status;
    guint32 *abort;
    TtGpuLane *lanes; /* here; in device memory at @lanes_at */
    GArray *steps, *ends;
    gsize lanes_at, events_at;
    gsize most_events; /* of a lane */
    TtGpuProgram program;
} Bench;

static inline gsize
bench_round_up(gsize bytes)
{
    return (bytes + 255) / 256 * 256;
}

static inline gsize
bench_slot_bytes(guint protocol, gsize message)
{
    switch (protocol) {
    case TT_GPU_LL: return (message + 3) / 4 * 8;
    case TT_GPU_LL128: return (message + TT_GPU_LINE_DATA - 1) / TT_GPU_LINE_DATA * 128;
    default: return TT_GPU_HEAD_BYTES + message;
    }
}

static inline guint
bench_protocol(const Bench *self, guint from, guint to)
{
    return self->spec->protocol < TT_GPU_N_PROTOCOLS ? self->spec->protocol
                                                     : (from + 2 * to) % TT_GPU_N_PROTOCOLS;
}

/* Index + 1 of an end, by (owner, lane, peer, direction); ends of a rank are made as its steps need them. */
static inline guint32
bench_end(Bench *self, GHashTable *seen, guint rank, guint lane, guint peer, gboolean sends)
{
    guint n = self->n_ranks, from = sends ? rank : peer, to = sends ? peer : rank;
    gsize connection = ((gsize)from * n + to) * self->n_lanes + lane;
    gpointer key = GSIZE_TO_POINTER(2 * connection + sends + 1);
    gpointer found = g_hash_table_lookup(seen, key);
    TtGpuEnd end = { .memory = self->connections + connection * self->connection_bytes,
                     .stride = self->stride,
                     .limit = self->plan->spec.n_slots,
                     .n_slots = self->plan->spec.n_slots,
                     .protocol = bench_protocol(self, from, to),
                     .peer = peer };

    if (found)
        return GPOINTER_TO_UINT(found) - 1;
    g_array_append_val(self->ends, end);
    g_hash_table_insert(seen, key, GUINT_TO_POINTER(self->ends->len));
    return self->ends->len - 1;
}

static inline void
bench_compile_lane(Bench *self, GHashTable *seen, guint rank, guint l)
{
    const TtPlan *plan = self->plan;
    TtGpuLane *lane = &self->lanes[rank * self->n_lanes + l];

    lane->n_steps = tt_plan_n_steps(plan, rank, l);
    lane->channel = tt_plan_channel(plan, l);
    lane->steps = GSIZE_TO_POINTER(self->steps->len); /* for now */
    for (guint32 i = 0; i < lane->n_steps; i++) {
        TtStep s = tt_plan_step(plan, rank, l, i);
        TtGpuStep step = { .op = s.op,
                           .src = s.src,
                           .dst = s.dst,
                           .chunk = s.chunk,
                           .n_chunks = s.n_chunks,
                           .recv = TT_GPU_NO_END,
                           .send = TT_GPU_NO_END,
                           .dep_lane = TT_GPU_NO_LANE,
                           .dep_step = s.dep_step };

        if (s.recv_role != TT_NO_ROLE)
            step.recv =
                bench_end(self, seen, rank, l, tt_plan_peer(plan, rank, l, s.recv_role), FALSE);
        if (s.send_role != TT_NO_ROLE)
            step.send =
                bench_end(self, seen, rank, l, tt_plan_peer(plan, rank, l, s.send_role), TRUE);
        if (s.dep_lane != TT_NO_LANE)
            step.dep_lane = rank * self->n_lanes + s.dep_lane;
        g_array_append_val(self->steps, step);
    }
}

static inline void
bench_alloc(Bench *self)
{
    gsize size = self->spec->element_bytes;
    gsize message = tt_plan_max_message_bytes(self->plan), slot = 0;

    for (guint p = 0; p < TT_GPU_N_PROTOCOLS; p++)
        if (p == self->spec->protocol || self->spec->protocol == TT_GPU_N_PROTOCOLS)
            slot = MAX(slot, bench_slot_bytes(p, message));
    self->stride = (slot + 127) / 128 * 128;
    self->connection_bytes = TT_GPU_ACK_BYTES + self->stride * self->plan->spec.n_slots;
    self->connections = self->driver->alloc(
        self->gpu, self->n_ranks * self->n_ranks * self->n_lanes * self->connection_bytes, NULL);
    self->buffer_bytes = bench_round_up((self->plan->spec.count + self->spec->skew + 1) * size);
    for (guint b = 0; b < TT_N_BUFFERS; b++)
        self->buffers[b] = self->driver->alloc(self->gpu, self->n_ranks * self->buffer_bytes, NULL);
}

/* Buffer @b of a rank, where element 0 is. */
static inline guint8 *
bench_vector(const Bench *self, guint rank, guint b)
{
    return self->buffers[b] + rank * self->buffer_bytes +
           (gsize)self->spec->skew * self->spec->element_bytes;
}

static inline void
bench_upload(Bench *self)
{
    guint n = self->n_ranks * self->n_lanes;
    TtGpuShape shape = { self->plan->spec.count, self->plan->n_rounds, self->plan->n_chunks,
                         self->plan->spec.n_channels };
    gsize shape_at = 0, lanes_at = 256, steps_at = lanes_at + bench_round_up(n * sizeof(TtGpuLane));
    gsize ends_at = steps_at + bench_round_up((self->steps->len + 1) * sizeof(TtGpuStep));
    gsize done_at = ends_at + bench_round_up((self->ends->len + 1) * sizeof(TtGpuEnd));
    gsize events_at = done_at + n * 256, most = 0;
    guint8 *at;

    for (guint l = 0; l < n; l++)
        most = MAX(most, self->lanes[l].n_steps * shape.n_rounds);
    at = self->memory =
        self->driver->alloc(self->gpu, events_at + n * most * sizeof(TtGpuEvent), NULL);
    for (guint l = 0; l < n; l++) {
        TtGpuLane *lane = &self->lanes[l];

        lane->steps = (TtGpuStep *)(gpointer)(at + steps_at) + GPOINTER_TO_SIZE(lane->steps);
        lane->finished = (uint64_t *)(gpointer)(at + done_at + l * 256);
        lane->n_events = (uint64_t *)(gpointer)(at + done_at + l * 256 + 128);
        if (self->spec->events)
            lane->events = (TtGpuEvent *)(gpointer)(at + events_at) + l * most;
        lane->status = &self->status[l];
        for (guint b = 0; b < TT_N_BUFFERS; b++)
            lane->vector[b] = bench_vector(self, l / self->n_lanes, b);
    }
    self->driver->copy(self->gpu, at + shape_at, &shape, sizeof shape, NULL);
    self->driver->copy(self->gpu, at + lanes_at, self->lanes, n * sizeof(TtGpuLane), NULL);
    self->driver->copy(self->gpu, at + steps_at, self->steps->data,
                       self->steps->len * sizeof(TtGpuStep), NULL);
    self->driver->copy(self->gpu, at + ends_at, self->ends->data,
                       self->ends->len * sizeof(TtGpuEnd), NULL);
    self->most_events = most;
    self->program = (TtGpuProgram){ .lanes = (TtGpuLane *)(gpointer)(at + lanes_at),
                                    .ends = (TtGpuEnd *)(gpointer)(at + ends_at),
                                    .shapes = (TtGpuShape *)(gpointer)(at + shape_at),
                                    .abort = self->abort,
                                    .n_lanes = n,
                                    .type = self->spec->type,
                                    .redop = self->spec->spec.redop,
                                    .element_bytes = self->spec->element_bytes };
}

static inline Bench *
bench_new(const BenchSpec *spec, TtGpu *gpu)
{
    Bench *self = g_new0(Bench, 1);
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    GError *error = NULL;

    self->spec = spec;
    self->driver = &tt_gpu_driver_host;
    self->gpu = gpu;
    self->plan = tt_plan_new(spec->algorithm, &spec->spec, &error);
    if (!self->plan)
        g_error("%s", error->message);
    self->n_ranks = spec->spec.n_ranks;
    self->n_lanes = self->plan->n_lanes;
    self->lanes = g_new0(TtGpuLane, self->n_ranks * self->n_lanes);
    self->steps = g_array_new(FALSE, FALSE, sizeof(TtGpuStep));
    self->ends = g_array_new(FALSE, FALSE, sizeof(TtGpuEnd));
    self->status =
        self->driver->alloc_host(gpu, self->n_ranks * self->n_lanes * sizeof *self->status, NULL);
    self->abort = self->driver->alloc_host(gpu, 64, NULL);
    bench_alloc(self);
    for (guint r = 0; r < self->n_ranks; r++)
        for (guint l = 0; l < self->n_lanes; l++)
            bench_compile_lane(self, seen, r, l);
    bench_upload(self);
    return self;
}

static inline void
bench_free(Bench *self)
{
    const TtGpuDriver *driver = self->driver;

    for (guint b = 0; b < TT_N_BUFFERS; b++)
        driver->free(self->gpu, self->buffers[b]);
    driver->free(self->gpu, self->connections);
    driver->free(self->gpu, self->memory);
    driver->free_host(self->gpu, self->status);
    driver->free_host(self->gpu, self->abort);
    g_array_unref(self->steps);
    g_array_unref(self->ends);
    g_free(self->lanes);
    tt_plan_free(self->plan);
    g_free(self);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Bench, bench_free)

static inline void
bench_launch(Bench *self)
{
    TtGpuLaunch launch = { &self->program, self->spec->n_threads, self->spec->events };
    GError *error = NULL;

    if (!self->driver->launch(self->gpu, &launch, &error))
        g_error("%s", error->message);
}

/* FALSE after @timeout_us. */
static inline gboolean
bench_wait(Bench *self, gint64 timeout_us)
{
    gint64 end_us = g_get_monotonic_time() + timeout_us;

    while (self->driver->poll(self->gpu, NULL) == TT_GPU_RUNNING) {
        if (g_get_monotonic_time() > end_us)
            return FALSE;
        g_usleep(200);
    }
    return TRUE;
}

static inline void
bench_abort(Bench *self)
{
    __atomic_store_n(self->abort, 1, __ATOMIC_RELAXED);
}

/* Launches and waits; a hang is ended. */
static inline gboolean
bench_run(Bench *self)
{
    bench_launch(self);
    if (bench_wait(self, BENCH_TIMEOUT_US))
        return TRUE;
    for (guint l = 0; l < self->program.n_lanes; l++)
        fprintf(stderr, "lane %u: %" G_GUINT64_FORMAT " done, waits %u for %u\n", l,
                __atomic_load_n(&self->status[l].done, __ATOMIC_RELAXED),
                __atomic_load_n(&self->status[l].waits, __ATOMIC_RELAXED),
                __atomic_load_n(&self->status[l].peer, __ATOMIC_RELAXED));
    bench_abort(self);
    bench_wait(self, BENCH_TIMEOUT_US);
    return FALSE;
}

/* check_main() with host GPU 0 open in @gpu. */
static inline int
bench_main(const char *name, CU_TestInfo *tests, TtGpu **gpu)
{
    GError *error = NULL;
    int code;

    *gpu = tt_gpu_driver_host.open(0, &error);
    if (!*gpu)
        g_error("%s", error->message);
    code = check_main(name, tests);
    tt_gpu_driver_host.close(*gpu);
    return code;
}
