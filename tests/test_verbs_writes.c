/* Writes between two software RoCE cards: sizes, many in flight, two processes, and peers that are late, gone or wrong.
 * Skipped (exit code 77) where there are none. */
#include "tests/verbs_ends.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

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

int
main(void)
{
    CU_TestInfo with_cards[] = {
        { "0 bytes to 1 MiB arrive", test_sizes },
        { "inline writes need no memory", test_inline },
        { "many in flight on four queues", test_many },
        { "two processes", test_two_processes },
        { "sleeping until something arrives", test_sleep },
        { "a late receive", test_late_receive },
        { "a peer that is gone", test_peer_gone },
        { "a wrong key or address", test_wrong_key },
        CU_TEST_INFO_NULL,
    };

    return verbs_main("verbs writes", with_cards, NULL);
}
