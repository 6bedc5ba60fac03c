/* The verbs transport alone, between two software RoCE cards: payloads of long messages may be in memory of a device at
 * either end, and come there before what tells of them. Memory of the CPU stands for the device's. Skipped
 * (77) where there are no cards. */
#include "exec/shared.h"
#include "tests/verbs_ends.h"

#include <sys/mman.h>
#include <unistd.h>

enum { MESSAGE = 4096, N_SLOTS = 3, N_MESSAGES = 40 };
#define STRIDE     ((gsize)(TT_SLOT_HEAD_BYTES + MESSAGE))
#define END_BYTES  (TT_PAIR_BYTES + N_SLOTS * STRIDE + 64)
#define ROOM_BYTES ((gsize)64 << 10)

/* One rank: it sends over connection `rank`, and receives over the other. */
typedef struct {
    guint rank;
    TtWire *wire;
    TtAddress address;
    guint8 *memory, *payloads; /* payloads: apart, if `apart` */
    gboolean apart, flushes;
    gboolean old[N_SLOTS]; /* of the messages from `received` on: shown before the present pump */
    TtWireEnd ends[2];
    guint64 sent, received;
    guint n_flushes, n_wrong;
    _Atomic guint32 aborted;
    GError *error;
} Side;

static Side sides[2];
static const TtTransport *verbs;

static const TtAddress *
address_of(gpointer context G_GNUC_UNUSED, guint rank)
{
    return &sides[rank].address;
}

static TtWireEnd *
end_of(Side *side, gboolean sends)
{
    return &side->ends[sends ? side->rank : 1 - side->rank];
}

static TtSlotHead *
head_of(const TtWireEnd *end, guint64 number)
{
    return (TtSlotHead *)(gpointer)(end->memory + TT_PAIR_BYTES + number % N_SLOTS * STRIDE);
}

static guint8 *
payload_of(const TtWireEnd *end, guint64 number, gsize bytes)
{
    guint8 *slot = (guint8 *)head_of(end, number);

    if (bytes <= TT_SLOT_SMALL_BYTES)
        return slot + TT_SLOT_SMALL_START;
    return end->payload ? end->payload + number % N_SLOTS * STRIDE : slot + TT_SLOT_HEAD_BYTES;
}

/* Sizes around where messages are small, where writes are inline, and where they need several packets. */
static gsize
bytes_of(guint64 number)
{
    static const gsize sizes[] = { 1, 48, 49, 64, 65, 1000, MESSAGE };

    return sizes[number % G_N_ELEMENTS(sizes)];
}

static gboolean
is_shown(Side *side, guint64 number)
{
    return atomic_load(&head_of(end_of(side, FALSE), number)->sequence) == number + 1;
}

/* Long messages shown by this pump so far. */
static guint
count_new(Side *side)
{
    guint n = 0;

    for (guint i = 0; i < N_SLOTS; i++)
        n += is_shown(side, side->received + i) && !side->old[i] &&
             bytes_of(side->received + i) > TT_SLOT_SMALL_BYTES;
    return n;
}

/* None is before the device has looked. */
static gboolean
flush(gpointer data, GError **error G_GNUC_UNUSED)
{
    Side *side = data;

    side->n_flushes++;
    side->n_wrong += count_new(side) > 0;
    return TRUE;
}

/* FALSE: it broke. */
static gboolean
pump(Side *side)
{
    guint n_flushes = side->n_flushes;
    TtWireNews news;

    for (guint i = 0; i < N_SLOTS; i++)
        side->old[i] = is_shown(side, side->received + i);
    news = verbs->pump(side->wire);
    if (side->apart && side->flushes)
        side->n_wrong += (count_new(side) > 0) != (side->n_flushes > n_flushes);
    return news != TT_WIRE_FAILED;
}

static gboolean
open_side(guint rank, guint streams)
{
    Side *side = &sides[rank];
    TtWireOptions options = { .rank = rank,
                              .n_ranks = 2,
                              .interface = "lo",
                              .device = "rxe1,rxe2",
                              .gid_index = -1,
                              .streams = streams,
                              .token = { 7, 9 },
                              .aborted = &side->aborted,
                              .timeout_s = 60,
                              .address = address_of };

    *side = (Side){ .rank = rank };
    side->memory =
        mmap(NULL, ROOM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    side->payloads =
        mmap(NULL, ROOM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    side->wire = verbs->open(&options, &side->address, &side->error);
    CHECK_NO_ERROR(side->error);
    return side->wire != NULL;
}

static gpointer
begin_side(gpointer data)
{
    Side *side = data;
    TtWireJob job = { .memory = side->memory,
                      .memory_bytes = ROOM_BYTES,
                      .ends = side->ends,
                      .n_ends = 2,
                      .job = 1 };

    for (guint c = 0; c < 2; c++)
        side->ends[c] =
            (TtWireEnd){ .connection = c,
                         .peer = 1 - side->rank,
                         .sends = c == side->rank,
                         .memory = side->memory + c * END_BYTES,
                         .slot_stride = STRIDE,
                         .n_slots = N_SLOTS,
                         .payload = side->apart ? side->payloads + c * END_BYTES : NULL };
    return GINT_TO_POINTER(verbs->begin(side->wire, &job, &side->error));
}

static gboolean
begin_both(void)
{
    GThread *other = g_thread_new("begin", begin_side, &sides[1]);
    gboolean good = GPOINTER_TO_INT(begin_side(&sides[0]));

    return GPOINTER_TO_INT(g_thread_join(other)) && good;
}

static void
close_side(Side *side)
{
    verbs->close(side->wire);
    munmap(side->memory, ROOM_BYTES);
    munmap(side->payloads, ROOM_BYTES);
    g_clear_error(&side->error);
}

static void
send_some(Side *side)
{
    TtWireEnd *end = end_of(side, TRUE);
    guint64 consumed = atomic_load((_Atomic guint64 *)(gpointer)end->memory);

    for (; side->sent < MIN(N_MESSAGES, consumed + N_SLOTS); side->sent++) {
        gsize bytes = bytes_of(side->sent);
        TtSlotHead *head = head_of(end, side->sent);

        fill(payload_of(end, side->sent, bytes), bytes, (guint32)(side->sent * 2 + side->rank));
        head->info =
            (bytes <= TT_SLOT_SMALL_BYTES ? TT_SLOT_SMALL_START : TT_SLOT_HEAD_BYTES) + bytes;
        atomic_store(&head->sequence, side->sent + 1);
    }
}

static void
receive_some(Side *side)
{
    TtWireEnd *end = end_of(side, FALSE);
    TtSlotHead *head = head_of(end, side->received);
    gsize bytes = bytes_of(side->received);

    if (atomic_load(&head->sequence) != side->received + 1)
        return;
    side->n_wrong += !is_filled(payload_of(end, side->received, bytes), bytes,
                                (guint32)(side->received * 2 + 1 - side->rank));
    if (side->apart) /* nothing came to the slot beside the head */
        side->n_wrong += !is_zero((guint8 *)head + TT_SLOT_HEAD_BYTES, MESSAGE);
    atomic_store((_Atomic guint64 *)(gpointer)end->memory, ++side->received);
}

static void
pass_messages(const char *what)
{
    gint64 end_us = g_get_monotonic_time() + PATIENCE_US;
    gboolean going = TRUE;

    while (going && g_get_monotonic_time() < end_us) {
        going = FALSE;
        for (guint i = 0; i < 2; i++) {
            Side *side = &sides[i];

            send_some(side);
            if (!pump(side)) {
                guint peer;

                verbs->explain(side->wire, &peer, &side->error);
                CHECK(FALSE, "%s: %s", what, side->error->message);
                return;
            }
            receive_some(side);
            going |= side->received < N_MESSAGES || !verbs->is_flushed(side->wire);
        }
    }
    CHECK(!going, "%s: %lu and %lu messages came", what, (gulong)sides[0].received,
          (gulong)sides[1].received);
}

static void
run_row(gboolean first, gboolean second, gboolean flushes, guint streams)
{
    gboolean apart[2] = { first, second };
    g_autofree char *what = g_strdup_printf("apart: %d and %d, flushes %d, %u streams", first,
                                            second, flushes, streams);
    gboolean good = open_side(0, streams) && open_side(1, streams);

    for (guint i = 0; good && i < 2; i++) {
        Side *side = &sides[i];
        TtWireDevice device = { .memory = side->payloads,
                                .bytes = ROOM_BYTES,
                                .dma_buf = -1,
                                .flush = flushes ? flush : NULL,
                                .context = side };

        side->apart = apart[i];
        side->flushes = flushes;
        CHECK(!apart[i] || verbs->reach_device(side->wire, &device, &side->error), "%s: %s", what,
              side->error ? side->error->message : "");
    }
    if (good && begin_both())
        pass_messages(what);
    for (guint i = 0; i < 2; i++) {
        Side *side = &sides[i];

        CHECK_NO_ERROR(side->error);
        CHECK(side->n_wrong == 0, "%s: %u messages are wrong", what, side->n_wrong);
        CHECK((side->n_flushes > 0) == (flushes && apart[i]), "%s: %u flushes", what,
              side->n_flushes);
        close_side(side);
    }
}

static void
test_apart(void)
{
    run_row(FALSE, FALSE, FALSE, 1);
    run_row(TRUE, FALSE, FALSE, 1);
    run_row(FALSE, TRUE, TRUE, 1);
    run_row(TRUE, TRUE, FALSE, 2);
    run_row(TRUE, TRUE, TRUE, 3);
}

/* What the card refuses is said, and the next way can be tried. */
static void
test_refused(void)
{
    g_autoptr(GError) error = NULL;
    int file = memfd_create("no dma-buf", MFD_CLOEXEC);
    guint8 *nothing = mmap(NULL, ROOM_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TtWireDevice device = { .memory = nothing, .bytes = ROOM_BYTES, .dma_buf = file };

    if (!open_side(0, 1))
        return;
    munmap(nothing, ROOM_BYTES);
    CHECK(!verbs->reach_device(sides[0].wire, &device, &error), "a file is taken for a dma-buf");
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                "rxe1: cannot register memory of a device: ");
    device.dma_buf = -1;
    CHECK(!verbs->reach_device(sides[0].wire, &device, &error), "no memory is taken for some");
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE, "rxe1: cannot register");
    device.memory = sides[0].payloads;
    CHECK(verbs->reach_device(sides[0].wire, &device, &error), "%s", error ? error->message : "");
    CHECK(verbs->reach_device(sides[0].wire, NULL, &error), "%s", error ? error->message : "");
    close(file);
    close_side(&sides[0]);
}

static CU_TestInfo tests[] = { { "payloads apart, at either end", test_apart },
                               { "memory that cannot be registered", test_refused },
                               CU_TEST_INFO_NULL };

int
main(void)
{
    verbs = tt_transport_find("verbs");
    return verbs_main("payloads over verbs", tests, NULL);
}
