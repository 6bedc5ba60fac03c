/* gpu_measure.c - what a GPU does at best: launches, flags, copies and reductions by blocks, memory, cache, peers. */
#include "exec/gpu_group.h"

#define MEMORY_BYTES ((gsize)256 << 20) /* far beyond any cache */
#define CACHE_BYTES  ((gsize)4 << 20)   /* well inside that of data-centre GPUs (40 to 126 MB) */
#define HOST_BYTES   ((gsize)8 << 20)
#define LAUNCHES     200
#define TRIES        5

typedef struct {
    TtGpuGroup *group;
    gpointer from, to;
    gsize bytes;
} Bench;

/* Bytes a second, of the best of some tries: each copied byte is read and written once. 0 with an error. */
static double
best_rate(const Bench *bench, gpointer to, gsize bytes, guint n_blocks, gboolean reduce,
          GError **error)
{
    const TtGpuDriver *driver = bench->group->gpus->driver;
    double best_s = G_MAXDOUBLE;

    for (guint i = 0; i < TRIES; i++) {
        double s;

        if (!driver->time_copy(bench->group->gpu, to, bench->from, bytes, n_blocks, reduce, &s,
                               error))
            return 0;
        best_s = MIN(best_s, s);
    }
    return (double)bytes / best_s;
}

static gboolean
append_blocks(const Bench *bench, GString *text, GError **error)
{
    guint most = MAX(1, bench->group->facts.n_sms);

    g_string_append(text, "# blocks: GB/s copied, GB/s reduced:");
    for (guint n = 1;; n = MIN(2 * n, most)) {
        double copied = best_rate(bench, bench->to, bench->bytes, n, FALSE, error);
        double reduced = copied > 0 ? best_rate(bench, bench->to, bench->bytes, n, TRUE, error) : 0;

        if (reduced <= 0)
            return FALSE;
        g_string_append_printf(text, "%s %u: %.3g, %.3g", n > 1 ? ";" : "", n, copied / 1e9,
                               reduced / 1e9);
        if (n == most)
            break;
    }
    g_string_append_c(text, '\n');
    return TRUE;
}

static gboolean
append_peers(const Bench *bench, GString *text, GError **error)
{
    TtGpus *gpus = bench->group->gpus;

    for (guint g = 0; g < gpus->n_groups; g++) {
        TtGpuGroup *peer = &gpus->groups[g];
        gpointer there;
        double rate, flag_s;

        if (peer == bench->group || !gpus->driver->reach(bench->group->gpu, peer->gpu) ||
            !gpus->driver->reach(peer->gpu, bench->group->gpu))
            continue;
        there = gpus->driver->alloc(peer->gpu, bench->bytes, error);
        if (!there)
            return FALSE;
        rate = best_rate(bench, there, bench->bytes, 0, FALSE, error);
        gpus->driver->free(peer->gpu, there);
        if (rate <= 0 || !gpus->driver->time_flag(bench->group->gpu, peer->gpu, &flag_s, error))
            return FALSE;
        g_string_append_printf(text, "# to GPU %u: %.3g GB/s, a flag %.3g us\n", peer->index,
                               rate / 1e9, flag_s * 1e6);
    }
    return TRUE;
}

static gboolean
append_all(const Bench *bench, GString *text, GError **error)
{
    const TtGpuGroup *group = bench->group;
    double launch_s, flag_s, memory, cache;

    if (!group->gpus->driver->time_launch(group->gpu, LAUNCHES, &launch_s, error) ||
        !group->gpus->driver->time_flag(group->gpu, group->gpu, &flag_s, error) ||
        (memory = best_rate(bench, bench->to, bench->bytes, 0, FALSE, error)) <= 0 ||
        (cache = best_rate(bench, bench->to, MIN(CACHE_BYTES, bench->bytes), 0, FALSE, error)) <= 0)
        return FALSE;
    g_string_append_printf(
        text,
        "# GPU %u, %s: a launch %.3g us; a flag %.3g us; copies %.3g GB/s in memory (%u MiB), "
        "%.3g GB/s in the cache "
        "(%u MiB), each byte read and written once\n",
        group->index, group->facts.name, launch_s * 1e6, flag_s * 1e6, memory / 1e9,
        (guint)(bench->bytes >> 20), cache / 1e9, (guint)(MIN(CACHE_BYTES, bench->bytes) >> 20));
    return append_blocks(bench, text, error) && append_peers(bench, text, error);
}

static gboolean
measure_group(TtGpuGroup *group, GString *text, GError **error)
{
    const TtGpuDriver *driver = group->gpus->driver;
    gboolean is_host = g_str_equal(driver->name, "host");
    Bench bench = { .group = group,
                    .bytes =
                        is_host ? HOST_BYTES : MIN(MEMORY_BYTES, group->facts.free_bytes / 8) };
    gboolean good;

    pthread_mutex_lock(&group->lock);
    bench.from = driver->alloc(group->gpu, bench.bytes, error);
    bench.to = bench.from ? driver->alloc(group->gpu, bench.bytes, error) : NULL;
    good = bench.to && append_all(&bench, text, error);
    if (bench.from)
        driver->free(group->gpu, bench.from);
    if (bench.to)
        driver->free(group->gpu, bench.to);
    pthread_mutex_unlock(&group->lock);
    return good;
}

char *
tt_gpus_measure(TtGpus *self, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (guint g = 0; g < self->n_groups; g++)
        if (!measure_group(&self->groups[g], text, error))
            return NULL;
    return g_string_free(g_steal_pointer(&text), FALSE);
}
