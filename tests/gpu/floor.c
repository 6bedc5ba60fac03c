/* floor - what a GPU can do at best: floor cuda|host [GPU...] prints CSV.
 *
 *     launch                    seconds of a kernel that does nothing, launch to the host's noticing
 *     flag                      one way of a flag between two blocks, here or of a peer
 *     copy, reduce              by so many blocks (0: the driver's own), of so many bytes; a size that stays in the L2
 *                               cache, and one that does not
 *     peer                      the same copy to another GPU, if kernels here reach its memory
 *
 * bytes_per_s counts the bytes copied, once; a copy on the device reads and writes each, a reduction reads two and
 * writes one.
 */
#include "exec/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_GPUS 16

static const guint blocks[] = { 0, 1, 2, 4, 8, 16, 32, 64, 128, 256 };

static const TtGpuDriver *driver;
static TtGpu *gpus[MOST_GPUS];
static guint n_gpus;

static int
fail(const GError *error)
{
    fprintf(stderr, "floor: %s\n", error->message);
    return error->code == TT_EXEC_ERROR_HARDWARE ? 77 : 1;
}

static void
row(const char *what, guint gpu, int peer, guint n_blocks, guint64 bytes, double s)
{
    char there[16] = "";

    if (peer >= 0)
        g_snprintf(there, sizeof there, "%d", peer);
    printf("%s,%u,%s,%u,%" G_GUINT64_FORMAT ",%.9g,%.6g\n", what, gpu, there, n_blocks, bytes, s,
           bytes && s > 0 ? (double)bytes / s : 0.0);
}

static gboolean
copies(guint gpu, guint8 *to, const guint8 *from, int peer, guint64 bytes, GError **error)
{
    for (gsize i = 0; i < G_N_ELEMENTS(blocks); i++)
        for (int reduce = 0; reduce <= (peer < 0); reduce++) {
            const char *what = peer >= 0 ? "peer" : reduce ? "reduce" : "copy";
            double s;

            if (!driver->time_copy(gpus[gpu], to, from, bytes, blocks[i], reduce, &s, error))
                return FALSE;
            row(what, gpu, peer, blocks[i], bytes, s);
        }
    return TRUE;
}

/* Between GPU @gpu's own memory, and @to of @peer or (-1) its own. */
static gboolean
pair(guint gpu, int peer, const guint64 *sizes, GError **error)
{
    TtGpu *owner = peer < 0 ? gpus[gpu] : gpus[peer];
    guint64 most = MAX(sizes[0], sizes[1]);
    guint8 *to = driver->alloc(owner, most, error);
    guint8 *from = to ? driver->alloc(gpus[gpu], most, error) : NULL;
    gboolean good = from && copies(gpu, to, from, peer, sizes[0], error) &&
                    copies(gpu, to, from, peer, sizes[1], error);

    if (from)
        driver->free(gpus[gpu], from);
    if (to)
        driver->free(owner, to);
    return good;
}

static gboolean
measure(guint gpu, const guint64 *sizes, GError **error)
{
    double s;

    if (!driver->time_launch(gpus[gpu], 200, &s, error))
        return FALSE;
    row("launch", gpu, -1, 1, 0, s);
    if (!driver->time_flag(gpus[gpu], gpus[gpu], &s, error))
        return FALSE;
    row("flag", gpu, -1, 2, 0, s);
    if (!pair(gpu, -1, sizes, error))
        return FALSE;
    for (guint peer = 0; peer < n_gpus; peer++) {
        if (peer == gpu || !driver->reach(gpus[gpu], gpus[peer]) ||
            !driver->reach(gpus[peer], gpus[gpu]))
            continue;
        if (!driver->time_flag(gpus[gpu], gpus[peer], &s, error))
            return FALSE;
        row("flag", gpu, (int)peer, 2, 0, s);
        if (!pair(gpu, (int)peer, sizes, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
open_all(int argc, char **argv, GError **error)
{
    guint n;

    if (!driver->count(&n, error))
        return FALSE;
    for (guint i = 0; i < (argc > 2 ? (guint)argc - 2 : n) && i < MOST_GPUS; i++) {
        gpus[i] = driver->open(argc > 2 ? (guint)atoi(argv[i + 2]) : i, error);
        if (!gpus[i])
            return FALSE;
        n_gpus = i + 1;
    }
    return TRUE;
}

int
main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    gboolean host = argc > 1 && strcmp(argv[1], "host") == 0, good;
    /* 4 MiB in and out stay in any L2 cache, 1 GiB in none. */
    const guint64 sizes[] = { host ? 64 << 10 : 4 << 20, host ? 1 << 20 : 1 << 30 };

    if (argc < 2) {
        fputs("floor cuda|host [GPU...]\n", stderr);
        return 2;
    }
    driver = tt_gpu_driver_find(argv[1], &error);
    if (!driver)
        return fail(error);
    puts("what,gpu,peer,blocks,bytes,s,bytes_per_s");
    good = open_all(argc, argv, &error);
    for (guint gpu = 0; good && gpu < n_gpus; gpu++)
        good = measure(gpu, sizes, &error);
    for (guint gpu = 0; gpu < n_gpus; gpu++)
        driver->close(gpus[gpu]);
    return good ? 0 : fail(error);
}
