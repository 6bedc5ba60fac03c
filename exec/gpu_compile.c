/* gpu_compile.c - the job for kernels: every rank writes its steps, lanes and ends with indexes from 0; the last of a group
 * to come puts them one behind the other, adds the offsets and uploads all in one piece.
 */
#include "exec/barrier.h"
#include "exec/gpu_group.h"
#include "exec/wires.h"

#include <string.h>

#define ALIGN_BYTES 256

/* --- one rank ------------------------------------------------------------------------------------ */

static gboolean
goes_by_wire(const TtRank *self, guint peer)
{
    return self->reach[tt_wires_reach(self, peer)].transport != NULL;
}

typedef void (*EndFunc)(TtRank *self, const TtRankPart *part, guint lane, TtJobStep *step);

/* Every step of this rank's lanes; @lane counts through the rank's. */
static void
for_steps(TtRank *self, EndFunc func)
{
    for (guint p = 0; p < self->n_parts; p++) {
        const TtRankPart *part = &self->parts[p];

        for (guint l = 0; l < part->job->plan.n_lanes; l++) {
            TtJobLane *lane =
                tt_job_lane(&self->region->job, self->rank, part->job->first_lane + l);

            for (guint32 i = 0; i < lane->n_steps; i++)
                func(self, part, part->first_lane + l, &lane->steps[i]);
        }
    }
}

static void
open_port(TtRank *self, const TtRankPart *part G_GNUC_UNUSED, guint lane G_GNUC_UNUSED,
          TtJobStep *s)
{
    if (s->recv_peer != TT_NO_RANK && goes_by_wire(self, s->recv_peer))
        tt_port_open(self, s->recv_connection, s->recv_peer, FALSE);
    if (s->send_peer != TT_NO_RANK && goes_by_wire(self, s->send_peer))
        tt_port_open(self, s->send_connection, s->send_peer, TRUE);
}

void
tt_gpu_open_ports(TtRank *self)
{
    for_steps(self, open_port);
}

/* The memory of a port begins with its ack. */
static guint8 *
end_memory(TtRank *self, guint32 connection, guint peer, gboolean sends, GError **error)
{
    const TtPort *ports = sends ? self->out_ports : self->in_ports;

    if (goes_by_wire(self, peer))
        return (guint8 *)(gpointer)ports[connection].ack;
    return sends ? tt_gpu_place(self, connection, self->rank, peer, error)
                 : tt_gpu_place(self, connection, peer, self->rank, error);
}

/* Index of the end in the rank's; TT_GPU_NO_END with an error. @seen: connection and direction -> index + 1. */
static guint32
find_end(TtRank *self, GHashTable *seen, guint32 connection, guint peer, gboolean sends,
         GError **error)
{
    const TtJob *job = &self->region->job;
    gpointer key = GUINT_TO_POINTER(2 * connection + sends), found = g_hash_table_lookup(seen, key);
    TtGpuEnd end = { .stride = job->slot_stride,
                     .limit = job->n_slots,
                     .n_slots = job->n_slots,
                     .protocol = goes_by_wire(self, peer) ? TT_GPU_SIMPLE : job->gpu_protocol,
                     .peer = peer };

    if (found)
        return GPOINTER_TO_UINT(found) - 1;
    end.memory = end_memory(self, connection, peer, sends, error);
    if (goes_by_wire(self, peer))
        end.payload = tt_wires_find_end(self, peer, connection, sends)->payload;
    if (!end.memory)
        return TT_GPU_NO_END;
    g_array_append_val(self->gpu->ends, end);
    g_hash_table_insert(seen, key, GUINT_TO_POINTER(self->gpu->ends->len));
    return self->gpu->ends->len - 1;
}

static gboolean
append_step(TtRank *self, const TtRankPart *part, GHashTable *seen, const TtJobStep *s,
            GError **error)
{
    TtGpuStep step = { .op = s->step.op,
                       .src = s->step.src,
                       .dst = s->step.dst,
                       .chunk = s->step.chunk,
                       .n_chunks = s->step.n_chunks,
                       .recv = TT_GPU_NO_END,
                       .send = TT_GPU_NO_END,
                       .dep_lane = TT_GPU_NO_LANE,
                       .dep_step = s->step.dep_step };

    if (s->step.dep_lane != TT_NO_LANE)
        step.dep_lane = part->first_lane + s->step.dep_lane - part->job->first_lane;
    if (s->recv_peer != TT_NO_RANK &&
        (step.recv = find_end(self, seen, s->recv_connection, s->recv_peer, FALSE, error)) ==
            TT_GPU_NO_END)
        return FALSE;
    if (s->send_peer != TT_NO_RANK &&
        (step.send = find_end(self, seen, s->send_connection, s->send_peer, TRUE, error)) ==
            TT_GPU_NO_END)
        return FALSE;
    g_array_append_val(self->gpu->steps, step);
    return TRUE;
}

static gboolean
append_part(TtRank *self, const TtRankPart *part, GHashTable *seen, GError **error)
{
    const TtPlan *plan = &part->job->plan;
    TtGpuShape shape = { .count = plan->spec.count,
                         .n_rounds = plan->n_rounds,
                         .n_chunks = plan->n_chunks,
                         .n_channels = plan->spec.n_channels };

    g_array_append_val(self->gpu->shapes, shape);
    for (guint l = 0; l < plan->n_lanes; l++) {
        const TtJobLane *source =
            tt_job_lane(&self->region->job, self->rank, part->job->first_lane + l);
        TtGpuLane lane = { .n_steps = source->n_steps,
                           .channel = tt_plan_channel(plan, l),
                           .shape = self->gpu->shapes->len - 1 };

        for (guint b = 0; b < TT_N_BUFFERS; b++)
            lane.vector[b] = part->vector[b];
        g_array_append_val(self->gpu->lanes, lane);
        for (guint32 i = 0; i < source->n_steps; i++)
            if (!append_step(self, part, seen, &source->steps[i], error))
                return FALSE;
    }
    return TRUE;
}

void
tt_gpu_compile_clear(TtGpuRank *self)
{
    g_array_set_size(self->steps, 0);
    g_array_set_size(self->lanes, 0);
    g_array_set_size(self->ends, 0);
    g_array_set_size(self->shapes, 0);
}

/* --- the group ----------------------------------------------------------------------------------- */

/* Parts of the upload, in this order. */
typedef struct {
    gsize lanes, ends, shapes, steps, finished, bytes;
    guint n_lanes;
} Layout;

static gsize
append_room(gsize *bytes, gsize more)
{
    gsize at = *bytes;

    *bytes += (more + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    return at;
}

static Layout
lay_out(const TtGpuGroup *group)
{
    gsize n_ends = 0, n_shapes = 0, n_steps = 0;
    Layout layout = { 0 };

    for (guint i = 0; i < group->n; i++) {
        group->ranks[i]->first_block = layout.n_lanes;
        layout.n_lanes += group->ranks[i]->lanes->len;
        n_ends += group->ranks[i]->ends->len;
        n_shapes += group->ranks[i]->shapes->len;
        n_steps += group->ranks[i]->steps->len;
    }
    layout.lanes = append_room(&layout.bytes, layout.n_lanes * sizeof(TtGpuLane));
    layout.ends = append_room(&layout.bytes, n_ends * sizeof(TtGpuEnd));
    layout.shapes = append_room(&layout.bytes, n_shapes * sizeof(TtGpuShape));
    layout.steps = append_room(&layout.bytes, n_steps * sizeof(TtGpuStep));
    /* Each counter on a line of its own. */
    layout.finished = append_room(&layout.bytes, layout.n_lanes * TT_LINE_BYTES);
    return layout;
}

static void
shift(guint32 *index, guint32 none, gsize by)
{
    if (*index != none)
        *index += (guint32)by;
}

/* Lanes of ranks whose plan makes none wait for another need no counter, whose fence every step would pay for. */
static gboolean
has_deps(const TtGpuRank *rank)
{
    for (guint i = 0; i < rank->steps->len; i++)
        if (g_array_index(rank->steps, TtGpuStep, i).dep_lane != TT_GPU_NO_LANE)
            return TRUE;
    return FALSE;
}

/* An empty array may have no memory at all. */
static void
put(gpointer to, const GArray *from)
{
    if (from->len > 0)
        memcpy(to, from->data, from->len * g_array_get_element_size((GArray *)from));
}

/* Writes a rank's part to the image at the given positions, and moves these on. */
static void
write_rank(const TtGpuGroup *group, TtGpuRank *rank, const Layout *layout, guint8 *image,
           gsize *n_ends, gsize *n_shapes, gsize *n_steps)
{
    guint8 *device = group->program.memory;
    TtGpuLane *lanes = (TtGpuLane *)(gpointer)(image + layout->lanes) + rank->first_block;
    TtGpuStep *steps = (TtGpuStep *)(gpointer)(image + layout->steps);
    gboolean counts = has_deps(rank);

    for (guint l = 0; l < rank->lanes->len; l++) {
        guint block = rank->first_block + l;

        lanes[l] = g_array_index(rank->lanes, TtGpuLane, l);
        lanes[l].shape += (guint32)*n_shapes;
        lanes[l].steps = (const TtGpuStep *)(gpointer)(device + layout->steps) + *n_steps;
        if (counts)
            lanes[l].finished =
                (uint64_t *)(gpointer)(device + layout->finished + (gsize)block * TT_LINE_BYTES);
        lanes[l].status = &group->status[block];
        for (guint32 i = 0; i < lanes[l].n_steps; i++) {
            TtGpuStep *step = &steps[*n_steps + i];

            shift(&step->recv, TT_GPU_NO_END, *n_ends);
            shift(&step->send, TT_GPU_NO_END, *n_ends);
            shift(&step->dep_lane, TT_GPU_NO_LANE, rank->first_block);
        }
        *n_steps += lanes[l].n_steps;
    }
    rank->first_end = (guint)*n_ends;
    put((TtGpuEnd *)(gpointer)(image + layout->ends) + *n_ends, rank->ends);
    put((TtGpuShape *)(gpointer)(image + layout->shapes) + *n_shapes, rank->shapes);
    *n_ends += rank->ends->len;
    *n_shapes += rank->shapes->len;
}

static guint8 *
write_image(const TtGpuGroup *group, const Layout *layout)
{
    guint8 *image = g_malloc0(layout->bytes);
    gsize n_ends = 0, n_shapes = 0, n_steps = 0;

    for (guint i = 0; i < group->n; i++) {
        TtGpuRank *rank = group->ranks[i];

        put((TtGpuStep *)(gpointer)(image + layout->steps) + n_steps, rank->steps);
        write_rank(group, rank, layout, image, &n_ends, &n_shapes, &n_steps);
    }
    return image;
}

static gboolean
make_status(TtGpuGroup *group, guint n, GError **error)
{
    const TtGpuDriver *driver = group->gpus->driver;

    if (n > group->n_status) {
        if (group->status)
            driver->free_host(group->gpu, group->status);
        group->status = driver->alloc_host(group->gpu, n * sizeof *group->status, error);
        group->n_status = group->status ? n : 0;
    }
    if (group->status)
        memset(group->status, 0, n * sizeof *group->status);
    return group->status != NULL;
}

static gboolean
check_blocks(TtGpuGroup *group, GError **error)
{
    TtGpuLaunch launch = { .program = &group->launch };
    guint most, n = group->launch.n_lanes;

    if (!group->gpus->driver->most_blocks(group->gpu, &launch, &most, error))
        return FALSE;
    if (n <= most)
        return TRUE;
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                "%u ranks of %u lanes are %u thread blocks, of which %u fit GPU %u at the same "
                "time (use fewer "
                "channels, or fewer ranks on one GPU)",
                group->n, n / group->n, n, most, group->index);
    return FALSE;
}

static gboolean
upload(TtRank *self, TtGpuGroup *group, GError **error)
{
    const TtRegion *region = self->region;
    const TtPlanSpec *spec = &region->job.parts[0].plan.spec;
    Layout layout = lay_out(group);
    g_autofree guint8 *image = NULL;
    guint8 *device;

    if (!make_status(group, MAX(1, layout.n_lanes), error) ||
        !tt_gpu_make_room(group, &group->program, layout.bytes, error))
        return FALSE;
    device = group->program.memory;
    group->launch =
        (TtGpuProgram){ .lanes = (const TtGpuLane *)(gpointer)(device + layout.lanes),
                        .ends = (TtGpuEnd *)(gpointer)(device + layout.ends),
                        .shapes = (const TtGpuShape *)(gpointer)(device + layout.shapes),
                        .abort = group->gpus->abort,
                        .n_lanes = layout.n_lanes,
                        .type = spec->type,
                        .redop = spec->redop == TT_AVG ? TT_SUM : spec->redop,
                        .element_bytes = tt_type_bytes(spec->type) };
    image = write_image(group, &layout);
    return check_blocks(group, error) &&
           group->gpus->driver->copy(group->gpu, device, image, layout.bytes, error);
}

static gboolean
compile_group(TtRank *self)
{
    TtGpuGroup *group = self->gpu->group;
    GError *error = NULL;
    gboolean good;

    pthread_mutex_lock(&group->lock);
    good = upload(self, group, &error);
    atomic_store(&group->iteration, 0);
    pthread_mutex_unlock(&group->lock);
    return good || tt_gpu_complain(self, error);
}

gboolean
tt_gpu_compile(TtRank *self)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    TtGpus *gpus = self->gpu->group->gpus;
    GError *error = NULL;

    if (!tt_gpu_meet(self, &gpus->meet, tt_gpu_place_job))
        return FALSE;
    tt_gpu_compile_clear(self->gpu);
    for (guint p = 0; p < self->n_parts; p++)
        if (!append_part(self, &self->parts[p], seen, &error))
            return tt_gpu_complain(self, error);
    return tt_gpu_meet(self, &self->gpu->group->meet, compile_group);
}
