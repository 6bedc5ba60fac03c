/* gpu_run.c - launches, and what the host does meanwhile: carry messages to other machines, tell how far it is, leave when
 * the team is aborted.
 */
#include "exec/gpu_group.h"
#include "exec/strike.h"
#include "exec/wires.h"

#include <string.h>

/* Launches that may be under way before somebody looks whether they have ended. With wires they end only if this
 * thread carries messages, so it must not be held up by a full queue. */
#define BATCH       256
#define BATCH_WIRES 16

/* After an abort kernels leave by themselves; a GPU that does not answer must not hold the program. */
#define LEAVE_US 5000000

#define LOOKS_PER_REPORT 64

/* --- what the watch sees ------------------------------------------------------------------------- */

static void
report_lane(TtRank *self, guint number, const TtGpuStatus *status, guint64 iteration)
{
    TtJob *job = &self->region->job;
    const TtJobPart *part = tt_job_part_of(job, number);
    guint64 per_iteration = tt_job_lane(job, self->rank, number)->n_steps * part->plan.n_rounds;
    guint64 done = __atomic_load_n(&status->done, __ATOMIC_RELAXED);

    atomic_store_explicit(&job->done[self->rank * job->done_stride + number],
                          iteration * per_iteration + done, memory_order_relaxed);
}

/* Copies this rank's progress, and what the first of its lanes that waits for long waits for. */
static void
report(TtRank *self)
{
    static const TtRankState states[] = { TT_RANK_WAITS_MESSAGE, TT_RANK_WAITS_SLOT,
                                          TT_RANK_WAITS_LANE };
    const TtGpuRank *gpu = self->gpu;
    guint64 iteration = atomic_load_explicit(&gpu->group->iteration, memory_order_relaxed);
    TtRankBlock *block = &self->region->ranks[self->rank];
    TtRankState state = TT_RANK_BUSY;
    guint found = TT_NO_LANE, peer = TT_NO_RANK;

    for (guint p = 0; p < self->n_parts; p++)
        for (guint l = 0; l < self->parts[p].job->plan.n_lanes; l++) {
            guint number = self->parts[p].job->first_lane + l;
            const TtGpuStatus *status =
                &gpu->group->status[gpu->first_block + self->parts[p].first_lane + l];
            guint32 waits = __atomic_load_n(&status->waits, __ATOMIC_RELAXED);

            report_lane(self, number, status, iteration);
            if (waits == 0 || waits > G_N_ELEMENTS(states) || found != TT_NO_LANE)
                continue;
            found = number;
            state = states[waits - 1];
            peer = __atomic_load_n(&status->peer, __ATOMIC_RELAXED);
        }
    atomic_store_explicit(&block->wait_peer, peer, memory_order_relaxed);
    atomic_store_explicit(&block->wait_lane, found, memory_order_relaxed);
    atomic_store_explicit(&block->state, state, memory_order_relaxed);
}

/* --- launching ----------------------------------------------------------------------------------- */

static gboolean
launch_once(TtRank *self, const TtGpuLaunch *launch, GError **error)
{
    TtGpuGroup *group = self->gpu->group;
    const TtGpuDriver *driver = group->gpus->driver;
    const TtJob *job = &self->region->job;
    const TtPlanSpec *spec = &job->parts[0].plan.spec;

    if (!driver->launch(group->gpu, launch, error))
        return FALSE;
    if (spec->redop != TT_AVG || !tt_collective_reduces(spec->collective))
        return TRUE;
    for (guint i = 0; i < group->n; i++)
        for (guint p = 0; p < job->n_parts; p++) {
            const TtJobPart *part = &job->parts[p];
            guint rank = group->first + i, member = tt_job_member(part, rank), at = TT_OUTPUT;
            TtRange range;
            gssize start;

            if (member == TT_NO_RANK)
                continue;
            range = tt_plan_buffer_range(&part->plan, member, TT_OUTPUT);
            start = tt_job_vector_start(job, part, member, &at);
            start += (gssize)(range.first * tt_type_bytes(spec->type));
            if (!driver->scale(group->gpu, group->ranks[i]->buffer[at].memory + start, range.count,
                               spec->type, part->plan.spec.n_ranks, error))
                return FALSE;
        }
    return TRUE;
}

static gboolean
launch_many(TtRank *self, const TtGpuLaunch *launch, guint n)
{
    TtGpuGroup *group = self->gpu->group;
    GError *error = NULL;
    gboolean good = TRUE;

    pthread_mutex_lock(&group->lock);
    for (guint i = 0; good && i < n; i++)
        good = launch_once(self, launch, &error);
    pthread_mutex_unlock(&group->lock);
    return good || tt_gpu_complain(self, error);
}

static TtGpuNews
look(TtRank *self, GError **error)
{
    TtGpuGroup *group = self->gpu->group;
    TtGpuNews news;

    pthread_mutex_lock(&group->lock);
    news = group->gpus->driver->poll(group->gpu, error);
    pthread_mutex_unlock(&group->lock);
    return news;
}

/* Kernels see the word; FALSE. */
static gboolean
leave(TtRank *self)
{
    TtGpus *gpus = self->gpu->group->gpus;
    gint64 until = g_get_monotonic_time() + LEAVE_US;

    __atomic_store_n(gpus->abort, 1, __ATOMIC_RELEASE);
    while (look(self, NULL) == TT_GPU_RUNNING && g_get_monotonic_time() < until)
        g_usleep(500);
    return FALSE;
}

/* The one that launched looks at the GPU; the others at what it says. */
static gboolean
is_over(TtRank *self, gboolean launched, gboolean *failed)
{
    TtGpuGroup *group = self->gpu->group;
    GError *error = NULL;
    TtGpuNews news;

    if (!launched)
        return atomic_load_explicit(&group->runs, memory_order_acquire) >= self->gpu->runs;
    news = look(self, &error);
    if (news == TT_GPU_FAILED) {
        *failed = TRUE;
        return tt_gpu_complain(self, error);
    }
    return news == TT_GPU_DONE;
}

/* Until the group's launches have ended. */
static gboolean
watch_launches(TtRank *self, gboolean launched)
{
    gboolean failed = FALSE;
    TtWait wait = { 0 };

    for (guint looks = 1; !is_over(self, launched, &failed); looks++) {
        gboolean moved = FALSE;

        if (failed || (self->has_wires && !tt_wires_pump(self, &moved)))
            return leave(self);
        if (!moved && !tt_wait(self, &wait, TT_RANK_BUSY, TT_NO_RANK, TT_NO_LANE))
            return leave(self);
        if (looks % LOOKS_PER_REPORT == 0 || wait.tries > self->spin_limit)
            report(self);
        if (moved)
            tt_wait_over(self, &wait);
    }
    tt_wait_over(self, &wait);
    report(self);
    return TRUE;
}

/* Who comes last launches. */
static gboolean
mark_last(TtRank *self)
{
    self->gpu->launches = TRUE;
    return TRUE;
}

static gboolean
run_batch(TtRank *self, const TtGpuLaunch *launch, guint n)
{
    TtGpuGroup *group = self->gpu->group;

    self->gpu->launches = FALSE;
    self->gpu->runs++;
    if (!tt_gpu_meet(self, &group->meet, mark_last) ||
        (self->gpu->launches && !launch_many(self, launch, n)))
        return leave(self);
    if (!watch_launches(self, self->gpu->launches))
        return FALSE;
    if (self->gpu->launches) {
        atomic_fetch_add(&group->iteration, n);
        atomic_store_explicit(&group->runs, self->gpu->runs, memory_order_release);
    }
    return TRUE;
}

gboolean
tt_gpu_run(TtRank *self, guint n, TtStamp *stamps)
{
    TtGpuLaunch launch = { .program = &self->gpu->group->launch };
    gboolean one_by_one = stamps || self->region->fault.kind != TT_FAULT_NONE;
    guint most = one_by_one ? 1 : self->region->transports[TT_ACROSS] ? BATCH_WIRES : BATCH;

    for (guint i = 0; i < n; i += most) {
        guint batch = MIN(most, n - i);

        if (!tt_fault_strike(self))
            return leave(self);
        if (stamps)
            stamps[i].begin = tt_now_ns();
        if (!run_batch(self, &launch, batch))
            return FALSE;
        if (stamps)
            stamps[i].end = tt_now_ns();
        self->iterations += batch;
    }
    return TRUE;
}

/* --- recording ----------------------------------------------------------------------------------- */

static gsize
n_lane_events(const TtGpuRank *rank, guint lane)
{
    const TtGpuLane *l = &g_array_index(rank->lanes, TtGpuLane, lane);

    return l->n_steps * g_array_index(rank->shapes, TtGpuShape, l->shape).n_rounds;
}

static gsize
n_group_events(const TtGpuGroup *group)
{
    gsize n = 0;

    for (guint i = 0; i < group->n; i++)
        for (guint l = 0; l < group->ranks[i]->lanes->len; l++)
            n += n_lane_events(group->ranks[i], l);
    return n;
}

/* events | how many, per lane | lanes that know where to write theirs */
static gboolean
make_record(TtGpuGroup *group, GError **error)
{
    const TtGpuDriver *driver = group->gpus->driver;
    guint n = group->launch.n_lanes, block = 0;
    g_autofree TtGpuLane *lanes = g_new0(TtGpuLane, n);
    gsize events_bytes = n_group_events(group) * sizeof(TtGpuEvent), table = n * sizeof *lanes;
    gsize counts_bytes = n * sizeof(guint64);
    TtGpuEvent *events;
    uint64_t *counts;

    if (!driver->copy(group->gpu, lanes, group->launch.lanes, table, error) ||
        !tt_gpu_make_room(group, &group->events, events_bytes + counts_bytes + table, error) ||
        !driver->zero(group->gpu, group->events.memory + events_bytes, counts_bytes, error))
        return FALSE;
    events = (TtGpuEvent *)(gpointer)group->events.memory;
    counts = (uint64_t *)(gpointer)(group->events.memory + events_bytes);
    group->record = group->launch;
    group->record.lanes = (const TtGpuLane *)(gpointer)(counts + n);
    for (guint i = 0; i < group->n; i++)
        for (guint l = 0; l < group->ranks[i]->lanes->len; l++, block++) {
            lanes[block].events = events;
            lanes[block].n_events = &counts[block];
            events += n_lane_events(group->ranks[i], l);
        }
    return driver->copy(group->gpu, (gpointer)(guintptr)group->record.lanes, lanes, table, error);
}

static gboolean
prepare_record(TtRank *self)
{
    TtGpuGroup *group = self->gpu->group;
    GError *error = NULL;
    gboolean good;

    pthread_mutex_lock(&group->lock);
    good = make_record(group, &error);
    pthread_mutex_unlock(&group->lock);
    return good || tt_gpu_complain(self, error);
}

static TtEvent
translate(const TtRank *self, guint number, const TtGpuEvent *e)
{
    const TtJobStep *s = &tt_job_lane(&self->region->job, self->rank, number)->steps[e->step];
    guint32 wait_for = TT_NO_RANK;

    if (e->wait_ns > 0)
        wait_for =
            e->wait_end == TT_GPU_NO_END
                ? self->rank
                : g_array_index(self->gpu->ends, TtGpuEnd, e->wait_end - self->gpu->first_end).peer;
    return (TtEvent){ .rank = self->rank,
                      .lane = (guint16)number,
                      .op = s->step.op,
                      .round = e->round,
                      .step = e->step,
                      .recv_peer = s->recv_peer,
                      .send_peer = s->send_peer,
                      .bytes = e->bytes,
                      .begin_ps = (gint64)e->begin_ns,
                      .end_ps = (gint64)e->end_ns,
                      .wait_ps = (gint64)e->wait_ns,
                      .wait_for = wait_for };
}

/* Of one of this rank's lanes; FALSE: it has complained. */
static gboolean
collect_lane(TtRank *self, guint number, guint lane, const TtGpuEvent *device, TtEvent *events,
             gsize *n_events)
{
    gsize n = n_lane_events(self->gpu, lane);
    g_autofree TtGpuEvent *read = g_new(TtGpuEvent, n);
    const TtGpuGroup *group = self->gpu->group;
    const uint64_t *counts =
        (const uint64_t *)(gconstpointer)((const TtGpuEvent *)(gpointer)group->events.memory +
                                          n_group_events(group));
    guint64 written;

    if (!tt_gpu_download(self, &written, (const guint8 *)&counts[self->gpu->first_block + lane],
                         sizeof written) ||
        !tt_gpu_download(self, read, (const guint8 *)device, n * sizeof *read))
        return FALSE;
    for (guint64 i = 0; i < MIN(written, n); i++)
        events[(*n_events)++] = translate(self, number, &read[i]);
    return TRUE;
}

gboolean
tt_gpu_record(TtRank *self, TtEvent *events, gsize *n_events)
{
    TtGpuGroup *group = self->gpu->group;
    TtGpuLaunch launch = { .program = &group->record, .events = TRUE };
    const TtGpuEvent *device;

    *n_events = 0;
    if (!tt_gpu_meet(self, &group->meet, prepare_record) || !tt_fault_strike(self))
        return leave(self);
    if (!run_batch(self, &launch, 1))
        return FALSE;
    self->iterations++;
    device = (const TtGpuEvent *)(gpointer)group->events.memory;
    for (guint i = 0; i < self->gpu->index; i++)
        for (guint l = 0; l < group->ranks[i]->lanes->len; l++)
            device += n_lane_events(group->ranks[i], l);
    for (guint p = 0, lane = 0; p < self->n_parts; p++)
        for (guint l = 0; l < self->parts[p].job->plan.n_lanes; l++, lane++) {
            if (!collect_lane(self, self->parts[p].job->first_lane + l, lane, device, events,
                              n_events))
                return FALSE;
            device += n_lane_events(self->gpu, lane);
        }
    return TRUE;
}
