/* gpu_place.c - where connections lie.
 *
 * Connection n of a job is at n * connection_bytes of an arena: that of the receiver's GPU if the sender's kernel can
 * write there, that of the sender's GPU if only the receiver's can read there, else of memory of the host. Both sides
 * come to the same answer from what both know. Over wires both ends are memory of their own machine (wires.h).
 */
#include "exec/gpu_group.h"
#include "exec/wires.h"

#include <string.h>
#include <unistd.h>

#define ARENA_MOST_BYTES ((gsize)1 << 30)

/* --- slots --------------------------------------------------------------------------------------- */

/* Where the flags of LL, one for every four bytes, cost more than the fence and the counter that they save. NCCL's
 * tuning switches between 16 and 64 KiB per channel on NVLink machines. */
#define LL_MOST_BYTES ((gsize)16 << 10)

guint32
tt_gpu_choose_protocol(const TtRegion *region, gsize message_bytes)
{
    if (region->gpu_protocol != TT_GPU_PROTOCOL_AUTO)
        return region->gpu_protocol - TT_GPU_PROTOCOL_SIMPLE + TT_GPU_SIMPLE;
    return message_bytes <= LL_MOST_BYTES ? TT_GPU_LL : TT_GPU_SIMPLE;
}

gsize
tt_gpu_slot_bytes(guint32 protocol, gsize message_bytes)
{
    switch (protocol) {
    case TT_GPU_LL: return (message_bytes + 7) / 8 * 16; /* stored two words at a time */
    case TT_GPU_LL128:
        return (message_bytes + TT_GPU_LINE_DATA - 1) / TT_GPU_LINE_DATA * TT_GPU_LINE_BYTES;
    default: return TT_GPU_HEAD_BYTES + message_bytes;
    }
}

/* --- what other processes see -------------------------------------------------------------------- */

/* Some other process of this machine has ranks; where this one's host is not known to have more: none. */
static gboolean
has_neighbours(const TtRegion *region)
{
    return tt_region_is_part(region) && region->n_on_host > region->n_local &&
           !region->transports[TT_INSIDE];
}

static gsize
arena_bytes(const TtGpuGroup *group)
{
    return MIN(group->facts.free_bytes / 4, ARENA_MOST_BYTES) & ~(gsize)0xffff;
}

static gboolean
share_group(TtGpuGroup *group, GError **error)
{
    TtGpus *gpus = group->gpus;
    TtGpuAddress address;

    memset(&address, 0, sizeof address);
    if (!tt_gpu_make_room(group, &group->arena, arena_bytes(group), error) ||
        !gpus->driver->share(group->gpu, group->arena.memory, address.handle, error))
        return FALSE;
    g_strlcpy(address.bus_id, group->facts.bus_id, sizeof address.bus_id);
    for (guint r = group->first; r < group->first + group->n; r++)
        memcpy(gpus->region->ranks[r].address[TT_INSIDE].bytes, &address, sizeof address);
    return TRUE;
}

gboolean
tt_gpu_place_open(TtGpus *gpus, GError **error)
{
    gpus->attached = g_hash_table_new(NULL, NULL);
    for (guint g = 0; has_neighbours(gpus->region) && g < gpus->n_groups; g++)
        if (gpus->placement != TT_GPU_PLACE_HOST && !share_group(&gpus->groups[g], error))
            return FALSE;
    return TRUE;
}

static void
forget_host(TtGpus *gpus)
{
    TtGpu *gpu = gpus->groups[0].gpu;

    if (gpus->host && gpus->host_is_registered)
        gpus->driver->unregister_host(gpu, gpus->host);
    else if (gpus->host)
        gpus->driver->free_host(gpu, gpus->host);
    gpus->host = NULL;
    gpus->host_bytes = 0;
}

void
tt_gpu_place_close(TtGpus *gpus)
{
    GHashTableIter iter;
    gpointer memory;

    if (gpus->n_groups && gpus->groups[0].gpu)
        forget_host(gpus);
    if (!gpus->attached)
        return;
    g_hash_table_iter_init(&iter, gpus->attached);
    while (g_hash_table_iter_next(&iter, NULL, &memory))
        gpus->driver->detach(gpus->groups[0].gpu, memory);
    g_hash_table_unref(gpus->attached);
}

/* --- whose memory -------------------------------------------------------------------------------- */

static TtGpuGroup *
find_group(const TtGpus *gpus, guint rank)
{
    for (guint g = 0; g < gpus->n_groups; g++)
        if (rank - gpus->groups[g].first < gpus->groups[g].n)
            return &gpus->groups[g];
    return NULL;
}

/* TT_NO_RANK: the host's. */
static guint
choose_owner(const TtGpus *gpus, guint sender, guint receiver)
{
    const TtGpuGroup *from = find_group(gpus, sender), *to = find_group(gpus, receiver);

    if (from && from == to)
        return gpus->placement == TT_GPU_PLACE_HOST ? TT_NO_RANK : receiver;
    switch (gpus->placement) {
    case TT_GPU_PLACE_HOST: return TT_NO_RANK;
    case TT_GPU_PLACE_READ: return sender;
    case TT_GPU_PLACE_WRITE: return receiver;
    default: break;
    }
    if (!from || !to) /* another process: by IPC, or an error that says what else there is */
        return receiver;
    if (gpus->driver->reach(from->gpu, to->gpu))
        return receiver;
    return gpus->driver->reach(to->gpu, from->gpu) ? sender : TT_NO_RANK;
}

/* What kernels of @self may not reach. */
static gboolean
check_reach(TtRank *self, const TtGpuGroup *owner, GError **error)
{
    TtGpuGroup *group = self->gpu->group;
    gboolean reaches;

    if (owner == group)
        return TRUE;
    pthread_mutex_lock(&group->lock);
    reaches = group->gpus->driver->reach(group->gpu, owner->gpu);
    pthread_mutex_unlock(&group->lock);
    if (!reaches)
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                    "GPU %u has no peer access to GPU %u (use --placement host, or auto)",
                    group->index, owner->index);
    return reaches;
}

static guint8 *
attach(TtRank *self, guint owner, GError **error)
{
    TtGpuGroup *group = self->gpu->group;
    TtGpus *gpus = group->gpus;
    TtGpuAddress address;
    guint8 *memory;

    memcpy(&address, gpus->region->ranks[owner].address[TT_INSIDE].bytes, sizeof address);
    address.bus_id[sizeof address.bus_id - 1] = '\0';
    for (guint g = 0; g < gpus->n_groups; g++)
        if (strcmp(gpus->groups[g].facts.bus_id, address.bus_id) == 0) {
            g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                        "rank %u and rank %u of another process both use GPU %s: kernels of two "
                        "processes do not "
                        "run at the same time (several ranks on one GPU must be of one process)",
                        gpus->groups[g].first, owner, address.bus_id);
            return NULL;
        }
    pthread_mutex_lock(&group->lock);
    memory = gpus->driver->attach(group->gpu, address.handle, error);
    pthread_mutex_unlock(&group->lock);
    if (!memory)
        g_prefix_error(error, "memory of the GPU of rank %u: ", owner);
    return memory;
}

/* One mapping per owner; ranks of one process hand out the same handle, but each mapping is kept by rank. */
static guint8 *
attached_arena(TtRank *self, guint owner, GError **error)
{
    TtGpus *gpus = self->gpu->group->gpus;
    TtRankBlock *ranks = gpus->region->ranks;
    guint first = owner;
    gpointer memory;

    while (first > 0 && memcmp(&ranks[first - 1].address[TT_INSIDE],
                               &ranks[owner].address[TT_INSIDE], sizeof(TtGpuAddress)) == 0)
        first--;
    pthread_mutex_lock(&gpus->lock);
    memory = g_hash_table_lookup(gpus->attached, GUINT_TO_POINTER(first + 1));
    if (!memory && (memory = attach(self, first, error)))
        g_hash_table_insert(gpus->attached, GUINT_TO_POINTER(first + 1), memory);
    pthread_mutex_unlock(&gpus->lock);
    return memory;
}

guint8 *
tt_gpu_place(TtRank *self, guint32 connection, guint sender, guint receiver, GError **error)
{
    TtGpus *gpus = self->gpu->group->gpus;
    guint owner = choose_owner(gpus, sender, receiver);
    gsize offset = connection * gpus->region->job.connection_bytes;
    TtGpuGroup *group;
    guint8 *arena;

    if (owner == TT_NO_RANK)
        return gpus->host + offset;
    group = find_group(gpus, owner);
    if (group)
        arena = check_reach(self, group, error) ? group->arena.memory : NULL;
    else
        arena = attached_arena(self, owner, error);
    return arena ? arena + offset : NULL;
}

/* --- a job --------------------------------------------------------------------------------------- */

/* With neighbours: the memory that all processes of this machine share. */
static gboolean
make_host_room(TtGpus *gpus, gsize bytes, GError **error)
{
    const TtRegion *region = gpus->region;
    gsize page = (gsize)sysconf(_SC_PAGESIZE);

    bytes = (bytes + page - 1) / page * page;
    if (bytes <= gpus->host_bytes)
        return TRUE;
    forget_host(gpus);
    gpus->host_is_registered = has_neighbours(region);
    if (!gpus->host_is_registered)
        gpus->host = gpus->driver->alloc_host(gpus->groups[0].gpu, bytes, error);
    else if (gpus->driver->register_host(gpus->groups[0].gpu, region->host_arena, bytes, error))
        gpus->host = region->host_arena;
    gpus->host_bytes = gpus->host ? bytes : 0;
    return gpus->host != NULL;
}

static gboolean
needs_host(const TtGpus *gpus)
{
    const TtGpuGroup *groups = gpus->groups;

    if (gpus->placement == TT_GPU_PLACE_HOST)
        return TRUE;
    for (guint a = 0; gpus->placement == TT_GPU_PLACE_AUTO && a < gpus->n_groups; a++)
        for (guint b = 0; b < a; b++)
            if (!gpus->driver->reach(groups[a].gpu, groups[b].gpu) &&
                !gpus->driver->reach(groups[b].gpu, groups[a].gpu))
                return TRUE;
    return FALSE;
}

/* The first rank of a machine empties what all of its processes share. */
static void
empty_host(const TtGpus *gpus, gsize bytes)
{
    if (!gpus->host_is_registered || gpus->region->host_rank == 0)
        memset(gpus->host, 0, bytes);
}

static gboolean
place_on(TtGpuGroup *group, gsize bytes, GError **error)
{
    const TtGpus *gpus = group->gpus;
    const TtJob *job = &gpus->region->job;

    if (has_neighbours(gpus->region) && bytes > group->arena.bytes) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                    "%u connections of %" G_GSIZE_FORMAT " KiB do not fit the %" G_GSIZE_FORMAT
                    " MiB that GPU %u shares with other processes (use smaller slots)",
                    job->n_connections, job->connection_bytes >> 10, group->arena.bytes >> 20,
                    group->index);
        return FALSE;
    }
    return tt_gpu_make_room(group, &group->arena, bytes, error) &&
           gpus->driver->zero(group->gpu, group->arena.memory, bytes, error);
}

gboolean
tt_gpu_place_job(TtRank *self)
{
    TtGpus *gpus = self->gpu->group->gpus;
    const TtJob *job = &gpus->region->job;
    gsize bytes = MAX(1, job->n_connections) * job->connection_bytes;
    GError *error = NULL;

    if (needs_host(gpus)) {
        if (!make_host_room(gpus, bytes, &error))
            return tt_gpu_complain(self, error);
        empty_host(gpus, bytes);
    }
    for (guint g = 0; gpus->placement != TT_GPU_PLACE_HOST && g < gpus->n_groups; g++)
        if (!place_on(&gpus->groups[g], bytes, &error))
            return tt_gpu_complain(self, error);
    return TRUE;
}
