/* verbs_ends.h - two ends of queue pairs between the cards rxe1 and rxe2, as tests/labs/verbs-guest has them.
 */
#pragma once
#include "exec/verbs.h"
#include "tests/check.h"

#include <string.h>

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

static inline void
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

static inline void
end_connect(End *end, const Letter *peer)
{
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < end->n_queues; i++) {
        tt_verbs_connect(end->queues[i], &peer->queues[i], &error);
        g_assert_no_error(error);
    }
}

static inline void
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

static inline void
pair_open(Pair *pair, guint n_queues, guint depth)
{
    end_open(&pair->a, "rxe1", n_queues, depth, &pair->from_a);
    end_open(&pair->b, "rxe2", n_queues, depth, &pair->from_b);
    end_connect(&pair->a, &pair->from_b);
    end_connect(&pair->b, &pair->from_a);
}

static inline void
pair_close(Pair *pair)
{
    end_close(&pair->a);
    end_close(&pair->b);
}

/* A write of @bytes to the same place behind the guard at the peer. */
static inline TtVerbsWrite
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
static inline gboolean
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
static inline gboolean
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

static inline void
fill(guint8 *bytes, gsize n, guint32 seed)
{
    for (gsize i = 0; i < n; i++)
        bytes[i] = (guint8)((i * 2654435761u + seed) >> 13);
}

static inline gboolean
is_filled(const guint8 *bytes, gsize n, guint32 seed)
{
    for (gsize i = 0; i < n; i++) {
        if (bytes[i] != (guint8)((i * 2654435761u + seed) >> 13))
            return FALSE;
    }
    return TRUE;
}

static inline gboolean
is_zero(const guint8 *bytes, gsize n)
{
    for (gsize i = 0; i < n; i++) {
        if (bytes[i])
            return FALSE;
    }
    return TRUE;
}

/* --- running ------------------------------------------------------------------------------------ */

/* Neither card: says why, and runs what needs none (NULL: nothing). */
static inline int
verbs_skip(const char *name, CU_TestInfo *without_cards, const GError *error)
{
    if (without_cards && check_main(name, without_cards))
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

/* What main() returns: with both cards @with_cards, else skipped (77). */
static inline int
verbs_main(const char *name, CU_TestInfo *with_cards, CU_TestInfo *without_cards)
{
    static const char *const cards[] = { "rxe1", "rxe2" };

    for (guint i = 0; i < G_N_ELEMENTS(cards); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(TtVerbs) verbs =
            tt_verbs_open(&(TtVerbsOptions){ .device = cards[i], .gid_index = -1 }, &error);

        if (!verbs)
            return verbs_skip(name, without_cards, error);
    }
    return check_main(name, with_cards);
}
