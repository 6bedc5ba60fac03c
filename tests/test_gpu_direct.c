/* GPUDirect: which way the network reaches a GPU's memory, in which order the ways are tried, and what is said if there is
 * none. With a driver and a transport that can what a row says. */
#include "exec/gpu_group.h"
#include "tests/check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *name;
    /* What goes well. */
    gboolean direct, memory, has_dma_buf, takes_dma_buf, takes_address;
    gboolean flush;
    TtGpuPlacement placement;
    const char *fails; /* TUTTI_DIRECT_FAILS */
    TtGpuDirect want;
    const char *words; /* of tt_gpus_direct_text() */
} Row;

static const Row *row;
static guint n_dma_buf, n_address, n_given_back, n_rooms, n_flushes;
static TtWireDevice reached; /* memory NULL: none */

static gboolean
say(GError **error, const char *what)
{
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE, "%s", what);
    return FALSE;
}

/* --- a driver ------------------------------------------------------------------------------------ */

static gboolean
fake_direct(TtGpu *self G_GNUC_UNUSED, gboolean *flush, GError **error)
{
    *flush = row->flush;
    return row->direct || say(error, "cards are kept out");
}

static gboolean
fake_flush(TtGpu *self G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
    n_flushes++;
    return TRUE;
}

static gpointer
fake_alloc(TtGpu *self G_GNUC_UNUSED, gsize bytes, GError **error)
{
    if (!row->memory)
        return say(error, "memory is out") ? NULL : NULL;
    n_rooms++;
    return g_malloc0(bytes);
}

static void
fake_free(TtGpu *self G_GNUC_UNUSED, gpointer memory)
{
    n_rooms--;
    g_free(memory);
}

static gboolean
fake_dma_buf(TtGpu *self G_GNUC_UNUSED, gpointer memory G_GNUC_UNUSED, gsize bytes G_GNUC_UNUSED,
             int *fd, guint64 *offset, GError **error)
{
    if (!row->has_dma_buf)
        return say(error, "no dma-bufs here");
    *fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    *offset = 4096;
    return TRUE;
}

static const TtGpuDriver driver = { .name = "cuda",
                                    .direct = fake_direct,
                                    .flush_writes = fake_flush,
                                    .alloc = fake_alloc,
                                    .free = fake_free,
                                    .dma_buf = fake_dma_buf };

/* --- a transport --------------------------------------------------------------------------------- */

static gboolean
fake_reach(TtWire *self G_GNUC_UNUSED, const TtWireDevice *device, GError **error)
{
    memset(&reached, 0, sizeof reached);
    if (!device) {
        n_given_back++;
        return TRUE;
    }
    n_dma_buf += device->dma_buf >= 0;
    n_address += device->dma_buf < 0;
    if (device->dma_buf >= 0)
        CHECK(fcntl(device->dma_buf, F_GETFD) >= 0 && device->dma_buf_offset == 4096,
              "a dma-buf of descriptor %d", device->dma_buf);
    if (!(device->dma_buf >= 0 ? row->takes_dma_buf : row->takes_address))
        return say(error, device->dma_buf >= 0 ? "card too old" : "address unknown");
    reached = *device;
    return TRUE;
}

static const TtTransport verbs = { .name = "verbs", .reach_device = fake_reach };
static const TtTransport tcp = { .name = "tcp" };

/* --- a rank -------------------------------------------------------------------------------------- */

typedef struct {
    TtRegion *region;
    TtGpus gpus;
    TtGpuGroup group;
    TtGpuRank gpu, *ranks[1];
    TtRank rank;
    TtReachWires *reach;
} Fixture;

static void
fixture_open(Fixture *f, const TtTransport *transport, TtGpuPlacement placement)
{
    memset(f, 0, sizeof *f);
    f->region = aligned_alloc(_Alignof(TtRegion), sizeof *f->region);
    memset(f->region, 0, sizeof *f->region);
    f->region->n_ranks = 2;
    f->region->n_local = 1;
    f->region->transports[TT_ACROSS] = transport;
    f->gpus = (TtGpus){ .driver = &driver,
                        .region = f->region,
                        .placement = placement,
                        .groups = &f->group,
                        .n_groups = 1 };
    f->ranks[0] = &f->gpu;
    f->group = (TtGpuGroup){ .gpus = &f->gpus, .n = 1, .ranks = f->ranks };
    pthread_mutex_init(&f->group.lock, NULL);
    f->gpu.group = &f->group;
    f->rank = (TtRank){ .region = f->region, .gpu = &f->gpu };
    f->reach = &f->rank.reach[TT_ACROSS];
    f->reach->transport = transport;
    f->reach->wire = (TtWire *)f;
    n_dma_buf = n_address = n_given_back = n_rooms = n_flushes = 0;
    memset(&reached, 0, sizeof reached);
}

static void
fixture_close(Fixture *f)
{
    tt_gpu_direct_close(&f->rank, f->reach);
    CHECK(n_rooms == 0 && !reached.memory, "%u rooms are left", n_rooms);
    pthread_mutex_destroy(&f->group.lock);
    g_free(f->gpu.direct_why);
    free(f->region);
}

static void
check_words(const Fixture *f, const char *name, const char *want)
{
    g_autofree char *text = tt_gpus_direct_text(&f->gpus);

    CHECK(g_strcmp0(text, want) == 0, "%s: \"%s\" is not \"%s\"", name, text, want);
}

/* --- tests --------------------------------------------------------------------------------------- */

static const Row rows[] = {
    { "a dma-buf comes first", TRUE, TRUE, TRUE, TRUE, TRUE, FALSE, TT_GPU_PLACE_AUTO, NULL,
      TT_GPU_DIRECT_DMA_BUF, "dma-buf" },
    { "and may need flushes", TRUE, TRUE, TRUE, TRUE, TRUE, TRUE, TT_GPU_PLACE_AUTO, NULL,
      TT_GPU_DIRECT_DMA_BUF, "dma-buf" },
    { "a GPU without dma-bufs", TRUE, TRUE, FALSE, TRUE, TRUE, FALSE, TT_GPU_PLACE_AUTO, NULL,
      TT_GPU_DIRECT_ADDRESS, "nvidia-peermem" },
    { "a card without dma-bufs", TRUE, TRUE, TRUE, FALSE, TRUE, TRUE, TT_GPU_PLACE_AUTO, NULL,
      TT_GPU_DIRECT_ADDRESS, "nvidia-peermem" },
    { "neither", TRUE, TRUE, FALSE, TRUE, FALSE, FALSE, TT_GPU_PLACE_AUTO, NULL, TT_GPU_DIRECT_NO,
      "no (host memory: dma-buf: no dma-bufs here; nvidia-peermem: address unknown)" },
    { "no memory", TRUE, FALSE, TRUE, TRUE, TRUE, FALSE, TT_GPU_PLACE_AUTO, NULL, TT_GPU_DIRECT_NO,
      "no (host memory: memory is out)" },
    { "a GPU that lets no card in", FALSE, TRUE, TRUE, TRUE, TRUE, FALSE, TT_GPU_PLACE_AUTO, NULL,
      TT_GPU_DIRECT_NO, "no (host memory: cards are kept out)" },
    { "host memory is asked for", TRUE, TRUE, TRUE, TRUE, TRUE, FALSE, TT_GPU_PLACE_HOST, NULL,
      TT_GPU_DIRECT_NO, "no (host memory: --placement host)" },
    { "dma-buf made to fail", TRUE, TRUE, TRUE, TRUE, TRUE, FALSE, TT_GPU_PLACE_AUTO, "dma-buf",
      TT_GPU_DIRECT_ADDRESS, "nvidia-peermem" },
    { "both made to fail", TRUE, TRUE, TRUE, TRUE, TRUE, FALSE, TT_GPU_PLACE_AUTO,
      "dma-buf,address", TT_GPU_DIRECT_NO,
      "no (host memory: dma-buf: fails as TUTTI_DIRECT_FAILS says; nvidia-peermem: fails as "
      "TUTTI_DIRECT_FAILS says)" },
};

/* First some memory, to find the way; then more, for a job; flushes are the driver's. */
static void
test_ways(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        Fixture f;
        gsize before;

        row = &rows[i];
        fixture_open(&f, &verbs, row->placement);
        if (row->fails)
            g_setenv("TUTTI_DIRECT_FAILS", row->fails, TRUE);
        tt_gpu_direct_open(&f.rank, f.reach);
        check_words(&f, row->name, row->words);
        CHECK(f.gpu.direct == row->want, "%s: %u", row->name, f.gpu.direct);
        before = f.reach->payload_bytes;
        CHECK((before > 0) == (row->want != TT_GPU_DIRECT_NO), "%s: %zu bytes", row->name, before);
        tt_gpu_direct_room(&f.rank, f.reach, before);
        CHECK(n_given_back == 0, "%s: room that is there is kept", row->name);
        tt_gpu_direct_room(&f.rank, f.reach, 3 * before + 1);
        CHECK(f.reach->payload_bytes > 3 * before || !before, "%s: no more room", row->name);
        CHECK(reached.memory == f.reach->payload && reached.bytes == f.reach->payload_bytes,
              "%s: what the network reaches is another room", row->name);
        CHECK((reached.flush != NULL) == (row->flush && before), "%s", row->name);
        if (reached.flush)
            CHECK(reached.flush(reached.context, NULL) && n_flushes == 1, "%s", row->name);
        check_words(&f, row->name, row->words);
        fixture_close(&f);
        g_unsetenv("TUTTI_DIRECT_FAILS");
    }
}

/* A card may take little memory and refuse more: then all goes by the host's, and that is said. */
static void
test_change(void)
{
    static const Row good = { .direct = TRUE, .memory = TRUE, .takes_address = TRUE };
    static const Row bad = { .direct = TRUE, .memory = TRUE };
    Fixture f;

    row = &good;
    fixture_open(&f, &verbs, TT_GPU_PLACE_AUTO);
    tt_gpu_direct_open(&f.rank, f.reach);
    check_words(&f, "at first", "nvidia-peermem");
    row = &bad;
    tt_gpu_direct_room(&f.rank, f.reach, 100 << 20);
    check_words(&f, "then",
                "no (host memory: dma-buf: no dma-bufs here; nvidia-peermem: address unknown)");
    CHECK(!f.reach->payload && n_rooms == 0, "memory nobody uses is kept");
    row = &good;
    tt_gpu_direct_room(&f.rank, f.reach, 100 << 20);
    CHECK(!f.reach->payload, "tried again");
    fixture_close(&f);
}

static void
test_other_transports(void)
{
    Fixture f;

    row = &rows[0];
    fixture_open(&f, &tcp, TT_GPU_PLACE_AUTO);
    tt_gpu_direct_open(&f.rank, f.reach);
    check_words(&f, "tcp", "no (host memory: tcp carries no other)");
    fixture_close(&f);
    fixture_open(&f, NULL, TT_GPU_PLACE_AUTO);
    check_words(&f, "one machine", NULL);
    fixture_close(&f);
}

static CU_TestInfo tests[] = { { "dma-buf, by address, host memory", test_ways },
                               { "more memory may not be had", test_change },
                               { "transports that cannot", test_other_transports },
                               CU_TEST_INFO_NULL };

int
main(void)
{
    return check_main("GPUDirect", tests);
}
