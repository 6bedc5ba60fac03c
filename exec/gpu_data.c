/* gpu_data.c - a rank's buffers on its GPU. */
#include "exec/gpu_group.h"

/* What each buffer must hold for the job's parts. */
static void
add_needs(const TtRank *self, const TtRankPart *part, gsize needs[TT_N_BUFFERS])
{
    const TtPlan *plan = &part->job->plan;
    gsize size = tt_type_bytes(plan->spec.type);

    for (guint b = 0; b < TT_N_BUFFERS; b++) {
        TtRange range = tt_plan_buffer_range(plan, part->member, b);
        guint at = b;
        gssize start = tt_job_vector_start(&self->region->job, part->job, part->member, &at);

        needs[at] = MAX(needs[at], (gsize)(start + (gssize)((range.first + range.count) * size)));
    }
}

static gboolean
make_buffers(TtRank *self, const gsize needs[TT_N_BUFFERS], GError **error)
{
    TtGpuRank *gpu = self->gpu;

    for (guint b = 0; b < TT_N_BUFFERS; b++) {
        if (!tt_gpu_make_room(gpu->group, &gpu->buffer[b], needs[b], error)) {
            g_prefix_error(error, "%s of rank %u: ", tt_buffer_name(b), self->rank);
            return FALSE;
        }
        self->buffers[b] = gpu->buffer[b].memory;
    }
    return TRUE;
}

gboolean
tt_gpu_place_buffers(TtRank *self)
{
    TtGpuGroup *group = self->gpu->group;
    gsize needs[TT_N_BUFFERS] = { 0 };
    GError *error = NULL;
    gboolean good;

    for (guint p = 0; p < self->n_parts; p++)
        add_needs(self, &self->parts[p], needs);
    pthread_mutex_lock(&group->lock);
    good = make_buffers(self, needs, &error);
    pthread_mutex_unlock(&group->lock);
    for (guint p = 0; good && p < self->n_parts; p++)
        for (guint b = 0; b < TT_N_BUFFERS; b++) {
            const TtRankPart *part = &self->parts[p];
            guint at = b;
            gssize start = tt_job_vector_start(&self->region->job, part->job, part->member, &at);

            self->parts[p].vector[b] = self->buffers[at] + start;
        }
    return good || tt_gpu_complain(self, error);
}

static gboolean
copy(TtRank *self, gpointer to, gconstpointer from, gsize bytes)
{
    TtGpuGroup *group = self->gpu->group;
    GError *error = NULL;
    gboolean good;

    pthread_mutex_lock(&group->lock);
    good = group->gpus->driver->copy(group->gpu, to, from, bytes, &error);
    pthread_mutex_unlock(&group->lock);
    return good || tt_gpu_complain(self, error);
}

gboolean
tt_gpu_upload(TtRank *self, guint8 *to, gconstpointer from, gsize bytes)
{
    return copy(self, to, from, bytes);
}

gboolean
tt_gpu_download(TtRank *self, gpointer to, const guint8 *from, gsize bytes)
{
    return copy(self, to, from, bytes);
}

gboolean
tt_gpu_register(TtRank *self, gpointer memory, gsize bytes)
{
    TtGpuGroup *group = self->gpu->group;
    GError *error = NULL;
    gboolean good;

    pthread_mutex_lock(&group->lock);
    good = group->gpus->driver->register_host(group->gpu, memory, bytes, &error);
    pthread_mutex_unlock(&group->lock);
    return good || tt_gpu_complain(self, error);
}

void
tt_gpu_unregister(TtRank *self, gpointer memory)
{
    TtGpuGroup *group = self->gpu->group;

    pthread_mutex_lock(&group->lock);
    group->gpus->driver->unregister_host(group->gpu, memory);
    pthread_mutex_unlock(&group->lock);
}
