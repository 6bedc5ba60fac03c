/* The verbs layer between two software RoCE cards, rxe1 and rxe2, as tests/labs/verbs-guest has them.
 * Elsewhere it checks what it says without, and counts as skipped (exit code 77). */
#include "exec/verbs.h"
#include "tests/check.h"

#include <dirent.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/capability.h>
#include <unistd.h>

#define SKIPPED     77
#define MOST_BYTES  (1 << 20)
#define GUARD       64 /* bytes before and after what is written, which must stay as they are */
#define PATIENCE_US (60 * G_USEC_PER_SEC)      /* emulated machines are slow, and some are busy */
#define MS          G_GINT64_CONSTANT(1000000) /* in ns */

/* --- one end ------------------------------------------------------------------------------------ */

/* A card, a buffer peers may write to, and queues to one peer. */
typedef struct {
    TtVerbs *verbs;
    guint8 *buffer;
    TtVerbsMemory *memory;
    TtVerbsQueue *queues[4];
    guint n_queues;
} End;

/* What the other end must know. */
typedef struct {
    TtVerbsRemote remote;
    TtVerbsAddress queues[4];
} Letter;

static void
end_open(End *end, const char *device, guint n_queues, guint depth, Letter *letter)
{
    g_autoptr(GError) error = NULL;
    TtVerbsOptions options = { .device = device,
                               .gid_index = -1,
                               .n_queues = 4,
                               .send_depth = depth,
                               .receive_depth = depth };

    *end = (End){ .n_queues = n_queues };
    end->verbs = tt_verbs_open(&options, &error);
    g_assert_no_error(error);
    end->buffer = g_malloc0(MOST_BYTES + 2 * GUARD);
    end->memory = tt_verbs_register(end->verbs, end->buffer, MOST_BYTES + 2 * GUARD, TRUE, &error);
    g_assert_no_error(error);
    tt_verbs_remote(end->memory, &letter->remote);
    for (guint i = 0; i < n_queues; i++) {
        g_autofree char *name = g_strdup_printf("peer of %s, queue %u", device, i);

        end->queues[i] = tt_verbs_queue_new(end->verbs, name, end, &error);
        g_assert_no_error(error);
        tt_verbs_address(end->queues[i], &letter->queues[i]);
    }
}

static void
end_connect(End *end, const Letter *peer)
{
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < end->n_queues; i++) {
        tt_verbs_connect(end->queues[i], &peer->queues[i], &error);
        g_assert_no_error(error);
    }
}

static void
end_close(End *end)
{
    for (guint i = 0; i < end->n_queues; i++)
        tt_verbs_queue_free(end->queues[i]);
    tt_verbs_unregister(end->memory);
    tt_verbs_close(end->verbs);
    g_free(end->buffer);
}

/* Both ends in this process. */
typedef struct {
    End a, b;
    Letter from_a, from_b;
} Pair;

static void
pair_open(Pair *pair, guint n_queues, guint depth)
{
    end_open(&pair->a, "rxe1", n_queues, depth, &pair->from_a);
    end_open(&pair->b, "rxe2", n_queues, depth, &pair->from_b);
    end_connect(&pair->a, &pair->from_b);
    end_connect(&pair->b, &pair->from_a);
}

static void
pair_close(Pair *pair)
{
    end_close(&pair->a);
    end_close(&pair->b);
}

/* A write of @bytes to the same place behind the guard at the peer. */
static TtVerbsWrite
write_of(const End *end, const Letter *peer, guint32 bytes, guint32 immediate)
{
    return (TtVerbsWrite){
        .from = end->buffer + GUARD,
        .memory = end->memory,
        .bytes = bytes,
        .to = GUINT64_FROM_BE(peer->remote.address) + GUARD,
        .key = GUINT32_FROM_BE(peer->remote.key),
        .immediate = immediate,
        .cookie = ~immediate,
        .report = TRUE,
    };
}

/* The next completion, polled for and then slept for. FALSE with @error if a queue broke, or with the
 * error of a time-out. */
static gboolean
next_completion(TtVerbs *verbs, TtVerbsCompletion *completion, GError **error)
{
    gint64 end_us = g_get_monotonic_time() + PATIENCE_US;

    while (g_get_monotonic_time() < end_us) {
        int n = tt_verbs_poll(verbs, completion, 1, error);

        if (n)
            return n > 0;
        if (!tt_verbs_wait(verbs, 100 * MS, error))
            return FALSE;
    }
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HANG, "nothing happened");
    return FALSE;
}

/* Nothing happens within @timeout_ns. */
static gboolean
stays_quiet(TtVerbs *verbs, gint64 timeout_ns)
{
    gint64 end_us = g_get_monotonic_time() + timeout_ns / 1000;
    TtVerbsCompletion completion;

    while (g_get_monotonic_time() < end_us) {
        if (!tt_verbs_wait(verbs, 10 * MS, NULL) || tt_verbs_poll(verbs, &completion, 1, NULL))
            return FALSE;
    }
    return TRUE;
}

static void
fill(guint8 *bytes, gsize n, guint32 seed)
{
    for (gsize i = 0; i < n; i++)
        bytes[i] = (guint8)((i * 2654435761u + seed) >> 13);
}

static gboolean
is_filled(const guint8 *bytes, gsize n, guint32 seed)
{
    for (gsize i = 0; i < n; i++) {
        if (bytes[i] != (guint8)((i * 2654435761u + seed) >> 13))
            return FALSE;
    }
    return TRUE;
}

static gboolean
is_zero(const guint8 *bytes, gsize n)
{
    for (gsize i = 0; i < n; i++) {
        if (bytes[i])
            return FALSE;
    }
    return TRUE;
}

/* --- without a card ----------------------------------------------------------------------------- */

static void
test_words(void)
{
    gboolean harmless;

    for (int i = 0; i < 24; i++)
        CHECK(strlen(tt_verbs_status_words(i)) >= 4, "status %d", i);
    for (int i = 0; i < 20; i++)
        CHECK(strlen(tt_verbs_event_words(i, &harmless)) >= 10, "event %d", i);
    CHECK(strstr(tt_verbs_status_words(24), "unknown"), "%s", tt_verbs_status_words(24));
    CHECK(strstr(tt_verbs_status_words(-1), "unknown"), "%s", tt_verbs_status_words(-1));
    CHECK(strstr(tt_verbs_event_words(99, &harmless), "unknown"), "an event of the future");
    CHECK(harmless, "an event of the future");
}

/* --- opening ------------------------------------------------------------------------------------ */

static void
test_refused(void)
{
    static const struct {
        const char *name;
        TtVerbsOptions options;
        TtExecError code;
        const char *words;
    } rows[] = {
        { "a name that is not there lists those that are",
          { .device = "mlx5_9", .gid_index = -1 },
          TT_EXEC_ERROR_USAGE,
          "no RDMA device \"mlx5_9\": this machine has rxe1, rxe2" },
        { "a port that is not there",
          { .device = "rxe1", .port = 2, .gid_index = -1 },
          TT_EXEC_ERROR_USAGE,
          "rxe1: no port 2: ports are 1 to 1" },
        { "a GID index beyond the table",
          { .device = "rxe1", .gid_index = 100000 },
          TT_EXEC_ERROR_USAGE,
          "10.77.0.1 (RoCE v2)" },
        { "a GID index of an empty entry",
          { .device = "rxe1", .gid_index = 200 },
          TT_EXEC_ERROR_USAGE,
          "no GID index 200: it has 0 " },
        { "more in flight than the card takes",
          { .device = "rxe1", .gid_index = -1, .n_queues = 1000, .send_depth = 4096 },
          TT_EXEC_ERROR_USAGE,
          "1000 queues with 4096 writes" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(TtVerbs) verbs = tt_verbs_open(&rows[i].options, &error);

        CHECK_ROW(&rows[i], verbs == NULL);
        CHECK_ERROR(error, TT_EXEC_ERROR, rows[i].code, rows[i].words);
    }
}

static void
test_chosen(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(TtVerbs) any = tt_verbs_open(&(TtVerbsOptions){ .gid_index = -1 }, &error);
    g_autoptr(TtVerbs) second = NULL;

    CHECK_NO_ERROR(error);
    second = tt_verbs_open(&(TtVerbsOptions){ .device = "rxe2", .gid_index = 0 }, &error);
    CHECK_NO_ERROR(error);
    if (!any || !second)
        return;
    CHECK(strcmp(tt_verbs_info(any)->device, "rxe1") == 0, "%s", tt_verbs_info(any)->device);
    CHECK(tt_verbs_info(any)->port == 1, "%u", tt_verbs_info(any)->port);
    CHECK(strcmp(tt_verbs_info(any)->address, "10.77.0.1 (RoCE v2)") == 0, "%s",
          tt_verbs_info(any)->address);
    CHECK(tt_verbs_info(any)->mtu_bytes == 4096, "%u", tt_verbs_info(any)->mtu_bytes);
    CHECK(tt_verbs_info(second)->gid_index == 0, "%d", tt_verbs_info(second)->gid_index);
    CHECK(g_str_has_prefix(tt_verbs_info(second)->address, "fe80::"), "%s",
          tt_verbs_info(second)->address);
}

/* Takes the link h1 down, which is under rxe1 in the guest only. */
static void
test_port_down(void)
{
    g_autofree char *link = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(TtVerbs) named = NULL, any = NULL;

    if (!g_file_get_contents("/sys/class/infiniband/rxe1/parent", &link, NULL, NULL) ||
        strcmp(g_strstrip(link), "h1") != 0 || system("ip link set h1 down") != 0)
        return;
    named = tt_verbs_open(&(TtVerbsOptions){ .device = "rxe1", .gid_index = -1 }, &error);
    CHECK(named == NULL, "opened");
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                "no active RDMA port: rxe1 port 1 is ");
    any = tt_verbs_open(&(TtVerbsOptions){ .gid_index = -1 }, &error);
    CHECK_NO_ERROR(error);
    CHECK(any && strcmp(tt_verbs_info(any)->device, "rxe2") == 0, "took another card");
    /* What hangs on the link's state goes with it: the routes are the guest's, kept in its script. */
    CHECK(system("ip link set h1 up && ip route replace local 10.77.0.1 dev h1 table 1 && "
                 "ip route replace 10.77.0.0/24 dev h1 src 10.77.0.1 table 1 && "
                 "ip route del local 10.77.0.1 dev h1 table local") == 0,
          "h1 is up again");
}

static guint
n_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    guint n = 0;

    while (folder && readdir(folder))
        n++;
    closedir(folder);
    return n;
}

static void
test_nothing_left(void)
{
    guint before = 0;

    for (int i = 0; i < 30; i++) {
        Pair pair;

        pair_open(&pair, 2, 16);
        if (i % 2) { /* close frees what is left */
            tt_verbs_close(pair.a.verbs);
            g_free(pair.a.buffer);
            end_close(&pair.b);
        } else {
            pair_close(&pair);
        }
        if (i == 0)
            before = n_descriptors();
    }
    CHECK(n_descriptors() == before, "%u descriptors became %u", before, n_descriptors());
}

/* --- writing ------------------------------------------------------------------------------------ */

/* One write from a to b: the event, the data, nothing beside it, and the report. */
static void
check_write(Pair *pair, guint32 bytes, guint32 immediate)
{
    g_autoptr(GError) error = NULL;
    TtVerbsWrite write = write_of(&pair->a, &pair->from_b, bytes, immediate);
    TtVerbsCompletion arrived = { 0 }, written = { 0 };

    memset(pair->b.buffer, 0, MOST_BYTES + 2 * GUARD);
    fill(pair->a.buffer + GUARD, bytes, immediate);
    CHECK(tt_verbs_receive(pair->b.queues[0], 1, &error), "%u bytes", bytes);
    CHECK(tt_verbs_write(pair->a.queues[0], &write, &error) == TT_VERBS_POSTED, "%u bytes", bytes);
    CHECK(next_completion(pair->b.verbs, &arrived, &error), "%u bytes", bytes);
    CHECK_NO_ERROR(error);
    CHECK(arrived.what == TT_VERBS_ARRIVED && arrived.immediate == immediate &&
              arrived.bytes == bytes && arrived.queue == pair->b.queues[0] &&
              arrived.user == &pair->b,
          "%u bytes: event of %u bytes, immediate %x", bytes, arrived.bytes, arrived.immediate);
    CHECK(is_filled(pair->b.buffer + GUARD, bytes, immediate), "%u bytes", bytes);
    CHECK(is_zero(pair->b.buffer, GUARD) && is_zero(pair->b.buffer + GUARD + bytes, GUARD),
          "%u bytes and something beside", bytes);
    CHECK(next_completion(pair->a.verbs, &written, &error), "%u bytes", bytes);
    CHECK_NO_ERROR(error);
    CHECK(written.what == TT_VERBS_WRITTEN && written.cookie == ~immediate, "%u bytes", bytes);
}

static void
test_sizes(void)
{
    Pair pair;
    guint32 inline_bytes;

    pair_open(&pair, 1, 16);
    inline_bytes = tt_verbs_info(pair.a.verbs)->inline_bytes;
    CHECK(inline_bytes >= 8, "%u", inline_bytes);
    check_write(&pair, 0, 0);
    check_write(&pair, 8, 0xffffffff);
    check_write(&pair, inline_bytes - 1, 0x80000001);
    check_write(&pair, inline_bytes, 3);
    check_write(&pair, inline_bytes + 1, 4);
    check_write(&pair, 4095, 5);
    check_write(&pair, 4097, 6);
    check_write(&pair, 64 << 10, 7);
    check_write(&pair, MOST_BYTES, 8);
    pair_close(&pair);
}

/* A small write needs no registered memory and may be overwritten at once. */
static void
test_inline(void)
{
    g_autoptr(GError) error = NULL;
    Pair pair;
    TtVerbsWrite write;
    TtVerbsCompletion arrived;
    guint64 value = 42;

    pair_open(&pair, 1, 16);
    write = write_of(&pair.a, &pair.from_b, sizeof value, 1);
    write.from = &value;
    write.memory = NULL;
    CHECK(tt_verbs_receive(pair.b.queues[0], 1, &error), "receive");
    CHECK(tt_verbs_write(pair.a.queues[0], &write, &error) == TT_VERBS_POSTED, "write");
    value = 0;
    CHECK(next_completion(pair.b.verbs, &arrived, &error), "arrives");
    CHECK_NO_ERROR(error);
    memcpy(&value, pair.b.buffer + GUARD, sizeof value);
    CHECK(value == 42, "%" G_GUINT64_FORMAT, value);
    pair_close(&pair);
}

enum { DEPTH = 16, N_MANY = 3000, SLOT = 96 };

/* Writes to queue @q until it is full or has had its share; returns whether it was full. */
static gboolean
fill_queue(const Pair *pair, guint q, guint *posted, GError **error)
{
    TtVerbsPosted done = TT_VERBS_POSTED;

    while (*posted < N_MANY / 4 && done == TT_VERBS_POSTED) {
        TtVerbsWrite write = write_of(&pair->a, &pair->from_b, SLOT, *posted << 2 | q);
        guint place = (*posted % DEPTH * 4 + q) * SLOT;

        write.from = pair->a.buffer + place;
        write.to += place;
        write.report = FALSE;
        done = tt_verbs_write(pair->a.queues[q], &write, error);
        *posted += done == TT_VERBS_POSTED;
    }
    return done == TT_VERBS_FULL;
}

/* More writes than fit, on four queues, none of them reported: all arrive, in order on each queue. */
static void
test_many(void)
{
    g_autoptr(GError) error = NULL;
    Pair pair;
    guint posted[4] = { 0 }, arrived[4] = { 0 }, n_full = 0, n_arrived = 0, wrong = 0;
    gint64 end_us = g_get_monotonic_time() + PATIENCE_US;

    pair_open(&pair, 4, DEPTH);
    for (guint q = 0; q < 4; q++)
        CHECK(tt_verbs_receive(pair.b.queues[q], DEPTH, &error), "queue %u", q);
    while (n_arrived < N_MANY && !error && g_get_monotonic_time() < end_us) {
        TtVerbsCompletion completions[8];
        int n = tt_verbs_poll(pair.b.verbs, completions, 8, &error);

        for (int i = 0; i < n; i++, n_arrived++) {
            guint q = completions[i].immediate & 3;

            wrong += completions[i].immediate >> 2 != arrived[q]++ ||
                     completions[i].queue != pair.b.queues[q] || completions[i].bytes != SLOT;
            tt_verbs_receive(completions[i].queue, 1, &error);
        }
        for (guint q = 0; q < 4 && !error; q++)
            n_full += fill_queue(&pair, q, &posted[q], &error);
        if (!error)
            wrong += tt_verbs_poll(pair.a.verbs, completions, 8, &error) != 0; /* asked for none */
    }
    CHECK_NO_ERROR(error);
    CHECK(n_arrived == N_MANY && wrong == 0, "%u arrived, %u wrong", n_arrived, wrong);
    CHECK(n_full > 0, "the queues were never full");
    CHECK(!tt_verbs_receive(pair.b.queues[0], DEPTH + 1, &error),
          "more receives than there is room");
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM, "at most 16");
    pair_close(&pair);
}

/* --- two processes ------------------------------------------------------------------------------ */

static gboolean
swap_letters(int fd, const Letter *mine, Letter *other)
{
    return write(fd, mine, sizeof *mine) == sizeof *mine &&
           recv(fd, other, sizeof *other, MSG_WAITALL) == sizeof *other;
}

/* Sends everything back until a message of no bytes comes. 0 if all went well. */
static int
echo(int fd)
{
    g_autoptr(GError) error = NULL;
    End end;
    Letter mine = { 0 }, other;
    TtVerbsCompletion completion;
    gboolean done = FALSE;
    guint32 last = 0;

    end_open(&end, "rxe2", 1, 8, &mine);
    tt_verbs_receive(end.queues[0], 8, &error);
    if (error || !swap_letters(fd, &mine, &other))
        return 1;
    end_connect(&end, &other);
    while (!done) {
        TtVerbsWrite write;

        if (!next_completion(end.verbs, &completion, &error))
            return 2;
        if (completion.what == TT_VERBS_WRITTEN)
            continue;
        done = completion.bytes == 0;
        write = write_of(&end, &other, completion.bytes, completion.immediate + 1);
        last = write.cookie;
        if (!tt_verbs_receive(end.queues[0], 1, &error) ||
            tt_verbs_write(end.queues[0], &write, &error) != TT_VERBS_POSTED)
            return 3;
    }
    do { /* the last one must be out before the queue goes */
        if (!next_completion(end.verbs, &completion, &error))
            return 4;
    } while (completion.what != TT_VERBS_WRITTEN || completion.cookie != last);
    end_close(&end);
    return 0;
}

static void
test_two_processes(void)
{
    static const guint32 sizes[] = { 8, 64, 65, 64 << 10, MOST_BYTES, 0 };
    g_autoptr(GError) error = NULL;
    End end;
    Letter mine = { 0 }, other;
    int fds[2], status = -1;
    pid_t child;

    g_assert(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    child = fork();
    if (child == 0)
        _exit(echo(fds[1]));
    close(fds[1]);
    end_open(&end, "rxe1", 1, 8, &mine);
    tt_verbs_receive(end.queues[0], 8, &error);
    CHECK(swap_letters(fds[0], &mine, &other), "the letters");
    end_connect(&end, &other);
    for (guint i = 0; i < G_N_ELEMENTS(sizes) && !error; i++) {
        TtVerbsWrite write = write_of(&end, &other, sizes[i], i);
        TtVerbsCompletion completion = { 0 };

        fill(end.buffer + GUARD, sizes[i], i);
        tt_verbs_write(end.queues[0], &write, &error);
        while (!error && next_completion(end.verbs, &completion, &error) &&
               completion.what == TT_VERBS_WRITTEN)
            memset(end.buffer + GUARD, 0, sizes[i]); /* the echo may be in it already */
        CHECK(completion.bytes == sizes[i] && completion.immediate == i + 1, "%u bytes: %u, %x",
              sizes[i], completion.bytes, completion.immediate);
        tt_verbs_receive(end.queues[0], 1, &error);
    }
    CHECK_NO_ERROR(error);
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the echo ended with %x", status);
    end_close(&end);
    close(fds[0]);
}

/* --- what goes wrong ---------------------------------------------------------------------------- */

static void
test_late_receive(void)
{
    g_autoptr(GError) error = NULL;
    Pair pair;
    TtVerbsWrite write;
    TtVerbsCompletion arrived = { 0 };

    pair_open(&pair, 1, 16);
    write = write_of(&pair.a, &pair.from_b, 100, 5);
    CHECK(tt_verbs_write(pair.a.queues[0], &write, &error) == TT_VERBS_POSTED, "write");
    CHECK(stays_quiet(pair.b.verbs, 50 * MS), "no receive is offered");
    CHECK(stays_quiet(pair.a.verbs, 50 * MS), "no receive is offered");
    CHECK(tt_verbs_receive(pair.b.queues[0], 1, &error), "receive");
    CHECK(next_completion(pair.b.verbs, &arrived, &error), "arrives after all");
    CHECK_NO_ERROR(error);
    CHECK(arrived.immediate == 5, "%u", arrived.immediate);
    pair_close(&pair);
}

/* The peer's queue is gone: a sentence, once; the other queue is not concerned. */
static void
test_peer_gone(void)
{
    g_autoptr(GError) error = NULL;
    Pair pair;
    TtVerbsWrite write;
    TtVerbsCompletion completion = { 0 };

    pair_open(&pair, 2, 16);
    tt_verbs_queue_free(pair.b.queues[0]);
    pair.b.queues[0] = NULL;
    write = write_of(&pair.a, &pair.from_b, 100, 5);
    for (int i = 0; i < 3; i++)
        CHECK(tt_verbs_write(pair.a.queues[0], &write, &error) == TT_VERBS_POSTED, "write");
    CHECK(!next_completion(pair.a.verbs, &completion, &error), "there is nobody");
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_NETWORK,
                "rxe1: peer of rxe1, queue 0: the peer does not answer");
    CHECK(tt_verbs_write(pair.a.queues[0], &write, &error) == TT_VERBS_FAILED, "broken");
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM, "the connection is broken");

    CHECK(tt_verbs_receive(pair.b.queues[1], 1, &error), "receive");
    CHECK(tt_verbs_write(pair.a.queues[1], &write, &error) == TT_VERBS_POSTED, "write");
    CHECK(next_completion(pair.a.verbs, &completion, &error), "the other queue works");
    CHECK_NO_ERROR(error);
    CHECK(completion.queue == pair.a.queues[1], "and only it says something");
    pair_close(&pair);
}

/* A wrong key: both ends say so. */
static void
test_wrong_key(void)
{
    g_autoptr(GError) error = NULL;
    Pair pair;
    TtVerbsWrite write;
    TtVerbsCompletion completion = { 0 };

    pair_open(&pair, 1, 16);
    tt_verbs_receive(pair.b.queues[0], 4, &error);
    write = write_of(&pair.a, &pair.from_b, 100, 5);
    write.key ^= 0x5500;
    CHECK(tt_verbs_write(pair.a.queues[0], &write, &error) == TT_VERBS_POSTED, "write");
    CHECK(!next_completion(pair.a.verbs, &completion, &error), "refused");
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_NETWORK, "not registered for this write");
    CHECK(is_zero(pair.b.buffer, MOST_BYTES), "nothing was written");
    pair_close(&pair);

    pair_open(&pair, 1, 16); /* right key, past the end */
    tt_verbs_receive(pair.b.queues[0], 4, &error);
    write = write_of(&pair.a, &pair.from_b, 100, 5);
    write.to += MOST_BYTES;
    CHECK(tt_verbs_write(pair.a.queues[0], &write, &error) == TT_VERBS_POSTED, "write");
    CHECK(!next_completion(pair.a.verbs, &completion, &error), "refused");
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_NETWORK, "not registered for this write");
    CHECK(!next_completion(pair.b.verbs, &completion, &error), "the other end hears of it");
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_NETWORK, "rxe2: peer of rxe2, queue 0: ");
    pair_close(&pair);
}

static void
test_wrong_letter(void)
{
    g_autoptr(GError) error = NULL;
    Pair pair;
    TtVerbsAddress garbage;

    pair_open(&pair, 1, 16);
    garbage = pair.from_b.queues[0];
    garbage.version ^= 1;
    CHECK(!tt_verbs_connect(pair.a.queues[0], &garbage, &error), "another version");
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM, "another version of tutti");
    garbage = pair.from_b.queues[0];
    garbage.link_layer = 1;
    CHECK(!tt_verbs_connect(pair.a.queues[0], &garbage, &error), "another kind of network");
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                "this port is Ethernet, the peer's is InfiniBand");
    pair_close(&pair);
}

/* Without the right to lock as much as it likes, as users are. */
static int
register_too_much(void)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct rights[2] = { 0 };
    struct rlimit limit = { 64 << 10, 64 << 10 };
    g_autoptr(GError) error = NULL;
    g_autoptr(TtVerbs) verbs = tt_verbs_open(&(TtVerbsOptions){ .gid_index = -1 }, &error);
    g_autofree char *buffer = g_malloc0(MOST_BYTES);

    if (!verbs || setrlimit(RLIMIT_MEMLOCK, &limit) || syscall(SYS_capset, &header, rights))
        return 1;
    if (tt_verbs_register(verbs, buffer, MOST_BYTES, FALSE, &error))
        return 2;
    if (strcmp(error->message, "rxe1: locked memory: need 1.0 MiB, limit is 64 KiB (ulimit -l; "
                               "/etc/security/limits.conf: memlock)") == 0)
        return 0;
    fprintf(stderr, "%s\n", error->message);
    return 3;
}

static void
test_locked_memory(void)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0)
        _exit(register_too_much());
    CHECK(waitpid(child, &status, 0) == child && status == 0, "ended with %x", status);
}

/* Sleeping is cut short by what arrives, and not otherwise. */
static void
test_sleep(void)
{
    g_autoptr(GError) error = NULL;
    Pair pair;
    TtVerbsWrite write;
    TtVerbsCompletion completion;
    gint64 begin_us;

    pair_open(&pair, 1, 16);
    tt_verbs_receive(pair.b.queues[0], 1, &error);
    write = write_of(&pair.a, &pair.from_b, 8, 1);
    begin_us = g_get_monotonic_time();
    CHECK(tt_verbs_wait(pair.b.verbs, 30 * MS, &error), "quiet");
    CHECK(tt_verbs_poll(pair.b.verbs, &completion, 1, &error) == 0, "quiet");
    CHECK(g_get_monotonic_time() - begin_us >= 25000, "%d us",
          (int)(g_get_monotonic_time() - begin_us));
    CHECK(tt_verbs_arm(pair.b.verbs), "may sleep");
    CHECK(tt_verbs_write(pair.a.queues[0], &write, &error) == TT_VERBS_POSTED, "write");
    CHECK(tt_verbs_wait(pair.b.verbs, 60000 * MS, &error), "woken");
    CHECK(tt_verbs_poll(pair.b.verbs, &completion, 1, &error) == 1, "there it is");
    CHECK(g_get_monotonic_time() - begin_us < PATIENCE_US, "it slept through");
    CHECK_NO_ERROR(error);
    pair_close(&pair);
}

static CU_TestInfo without_cards[] = { { "codes as words", test_words }, CU_TEST_INFO_NULL };

static CU_TestInfo with_cards[] = {
    { "codes as words", test_words },
    { "what is not there is refused", test_refused },
    { "card, port and GID are chosen", test_chosen },
    { "0 bytes to 1 MiB arrive", test_sizes },
    { "inline writes need no memory", test_inline },
    { "many in flight on four queues", test_many },
    { "two processes", test_two_processes },
    { "sleeping until something arrives", test_sleep },
    { "a late receive", test_late_receive },
    { "a peer that is gone", test_peer_gone },
    { "a wrong key or address", test_wrong_key },
    { "a letter that is none", test_wrong_letter },
    { "too little locked memory", test_locked_memory },
    { "nothing is left behind", test_nothing_left },
    { "a port that is down", test_port_down },
    CU_TEST_INFO_NULL,
};

/* Neither card: says why, which is all there is to test. */
static int
skip(const GError *error)
{
    if (check_main("verbs", without_cards))
        return 1;
    if (!g_error_matches(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE) &&
        !strstr(error->message, "no RDMA device \"rxe")) {
        fprintf(stderr, "unexpected: %s\n", error->message);
        return 1;
    }
    printf("skipped: needs rxe1 and rxe2, as tests/labs/verbs-guest has them: %s\n",
           error->message);
    return SKIPPED;
}

int
main(void)
{
    static const char *const cards[] = { "rxe1", "rxe2" };

    for (guint i = 0; i < G_N_ELEMENTS(cards); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(TtVerbs) verbs =
            tt_verbs_open(&(TtVerbsOptions){ .device = cards[i], .gid_index = -1 }, &error);

        if (!verbs)
            return skip(error);
    }
    return check_main("verbs", with_cards);
}
