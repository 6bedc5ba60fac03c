/* gpu_direct.c - GPUDirect: payloads of messages over wires in memory of this rank's GPU, if the network can be taught
 * to reach it: as a dma-buf, else by its address, else they lie in memory of the host as heads and acks do.
 *
 * TUTTI_DIRECT_FAILS, of "memory", "dma-buf" and "address" with commas, makes these steps fail, to try what is done then.
 */
#include "exec/gpu_group.h"

#include <string.h>
#include <unistd.h>

/* Enough to find out how. */
#define FIRST_BYTES ((gsize)1 << 20)
#define PIECE_BYTES ((gsize)64 << 10) /* pages of any machine */

static gboolean
is_to_fail(const char *step, GError **error)
{
    g_auto(GStrv) steps = g_strsplit(g_getenv("TUTTI_DIRECT_FAILS") ?: "", ",", -1);

    if (!g_strv_contains((const char *const *)steps, step))
        return FALSE;
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE, "fails as TUTTI_DIRECT_FAILS says");
    return TRUE;
}

/* --- memory -------------------------------------------------------------------------------------- */

static void
free_room(TtRank *self, TtReachWires *reach)
{
    TtGpuGroup *group = self->gpu->group;

    if (!reach->payload)
        return;
    pthread_mutex_lock(&group->lock);
    group->gpus->driver->free(group->gpu, reach->payload);
    pthread_mutex_unlock(&group->lock);
    reach->payload = NULL;
    reach->payload_bytes = 0;
}

void
tt_gpu_direct_close(TtRank *self, TtReachWires *reach)
{
    if (reach->payload && reach->wire)
        reach->transport->reach_device(reach->wire, NULL, NULL);
    free_room(self, reach);
}

static gboolean
make_room(TtRank *self, TtReachWires *reach, gsize bytes, gboolean *flush, GError **error)
{
    TtGpuGroup *group = self->gpu->group;
    const TtGpuDriver *driver = group->gpus->driver;

    tt_gpu_direct_close(self, reach);
    if (is_to_fail("memory", error))
        return FALSE;
    bytes = (bytes + PIECE_BYTES - 1) / PIECE_BYTES * PIECE_BYTES;
    pthread_mutex_lock(&group->lock);
    if (driver->direct(group->gpu, flush, error))
        reach->payload = driver->alloc(group->gpu, bytes, error);
    pthread_mutex_unlock(&group->lock);
    reach->payload_bytes = reach->payload ? bytes : 0;
    return reach->payload != NULL;
}

/* --- ways ---------------------------------------------------------------------------------------- */

static gboolean
flush_writes(gpointer context, GError **error)
{
    const TtGpuGroup *group = context;

    return group->gpus->driver->flush_writes(group->gpu, error);
}

static gboolean
by_address(TtRank *self, const TtReachWires *reach, TtWireDevice device, GError **error)
{
    (void)self;
    return !is_to_fail("address", error) &&
           reach->transport->reach_device(reach->wire, &device, error);
}

static gboolean
by_dma_buf(TtRank *self, const TtReachWires *reach, TtWireDevice device, GError **error)
{
    TtGpuGroup *group = self->gpu->group;
    gboolean good;

    if (is_to_fail("dma-buf", error))
        return FALSE;
    pthread_mutex_lock(&group->lock);
    good = group->gpus->driver->dma_buf(group->gpu, device.memory, device.bytes, &device.dma_buf,
                                        &device.dma_buf_offset, error);
    pthread_mutex_unlock(&group->lock);
    if (!good)
        return FALSE;
    good = reach->transport->reach_device(reach->wire, &device, error);
    close(device.dma_buf); /* the registration has its own hold on it */
    return good;
}

static void
stay_with_host(TtRank *self, TtReachWires *reach, char *why)
{
    free_room(self, reach);
    self->gpu->direct = TT_GPU_DIRECT_NO;
    g_free(self->gpu->direct_why);
    self->gpu->direct_why = why;
}

/* The first way that works. */
static void
find_way(TtRank *self, TtReachWires *reach, gsize bytes)
{
    static const struct {
        TtGpuDirect direct;
        const char *name;
        gboolean (*func)(TtRank *self, const TtReachWires *reach, TtWireDevice device,
                         GError **error);
    } ways[] = {
        { TT_GPU_DIRECT_DMA_BUF, "dma-buf", by_dma_buf },
        { TT_GPU_DIRECT_ADDRESS, "nvidia-peermem", by_address },
    };
    TtWireDevice device = { .dma_buf = -1, .context = self->gpu->group };
    g_autoptr(GString) why = g_string_new(NULL);
    g_autoptr(GError) no_memory = NULL;
    gboolean flush;

    if (!make_room(self, reach, bytes, &flush, &no_memory)) {
        stay_with_host(self, reach, g_strdup(no_memory->message));
        return;
    }
    device.memory = reach->payload;
    device.bytes = reach->payload_bytes;
    device.flush = flush ? flush_writes : NULL;
    for (guint i = 0; i < G_N_ELEMENTS(ways); i++) {
        g_autoptr(GError) error = NULL;

        if (ways[i].func(self, reach, device, &error)) {
            self->gpu->direct = ways[i].direct;
            return;
        }
        g_string_append_printf(why, "%s%s: %s", i ? "; " : "", ways[i].name, error->message);
    }
    stay_with_host(self, reach, g_strdup(why->str));
}

void
tt_gpu_direct_open(TtRank *self, TtReachWires *reach)
{
    if (self->gpu->group->gpus->placement == TT_GPU_PLACE_HOST)
        stay_with_host(self, reach, g_strdup("--placement host"));
    else if (!reach->transport->reach_device)
        stay_with_host(self, reach, g_strdup_printf("%s carries no other", reach->transport->name));
    else
        find_way(self, reach, FIRST_BYTES);
}

void
tt_gpu_direct_room(TtRank *self, TtReachWires *reach, gsize bytes)
{
    if (self->gpu->direct != TT_GPU_DIRECT_NO && bytes > reach->payload_bytes)
        find_way(self, reach, bytes);
}

/* --- words --------------------------------------------------------------------------------------- */

static char *
rank_text(const TtGpuRank *rank)
{
    switch (rank->direct) {
    case TT_GPU_DIRECT_DMA_BUF: return g_strdup("dma-buf");
    case TT_GPU_DIRECT_ADDRESS:
        return g_strdup(strcmp(rank->group->gpus->driver->name, "host") == 0
                            ? "as with nvidia-peermem (memory of the CPU)"
                            : "nvidia-peermem");
    default: return g_strdup_printf("no (host memory: %s)", rank->direct_why);
    }
}

/* Neighbours that are alike are named together; if all are, none is. */
char *
tt_gpus_direct_text(const TtGpus *self)
{
    guint first = self->region->first_rank, n = self->region->n_local, begin = 0, n_kinds = 0;
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *last = NULL;

    if (!self->region->transports[TT_ACROSS])
        return NULL;
    for (guint i = 0; i <= n; i++) {
        const TtGpuGroup *group = self->groups;
        g_autofree char *now = NULL;

        while (i < n && first + i >= group->first + group->n)
            group++;
        if (i < n)
            now = rank_text(group->ranks[first + i - group->first]);
        if (last && g_strcmp0(now, last) != 0) {
            g_autofree char *ranks = tt_launch_ranks_text(first + begin, i - begin);

            g_string_append_printf(text, "%s%s", n_kinds++ ? ", " : "", last);
            if (i - begin < n)
                g_string_append_printf(text, " (%s)", ranks);
            begin = i;
        }
        g_free(last);
        last = g_steal_pointer(&now);
    }
    return g_strdup(text->str);
}
