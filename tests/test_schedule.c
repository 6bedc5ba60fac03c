/* Chunk ranges and the registry: the pure functions everything else stands on. */
#include "algos/algo.h"
#include "tests/check.h"

#include <string.h>

/* Every element belongs to exactly one (chunk, channel, round), whatever does not divide. */
static void
ranges_tile_the_vector(void)
{
    static const guint64 counts[] = { 0, 1, 2, 7, 16, 17, 1000, 65537, 1000003 };
    static const struct { const char *name; guint n_ranks, channels; guint64 slot; TtType type; } rows[] = {
        { "one of everything", 1, 1, 0, TT_FLOAT32 },
        { "more ranks than elements", 33, 1, 0, TT_INT8 },
        { "channels", 5, 7, 0, TT_FLOAT16 },
        { "rounds", 3, 1, 256, TT_FLOAT64 },
        { "channels and rounds", 6, 4, 1000, TT_INT32 },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        for (guint c = 0; c < G_N_ELEMENTS(counts); c++) {
            TtPlanSpec spec = { .n_ranks = rows[r].n_ranks, .count = counts[c], .type = rows[r].type,
                                .n_channels = rows[r].channels, .slot_bytes = rows[r].slot };
            g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);
            guint64 next = 0, longest = 0;

            for (guint32 chunk = 0; chunk < plan->n_chunks; chunk++)
                for (guint ch = 0; ch < plan->spec.n_channels; ch++)
                    for (guint64 round = 0; round < plan->n_rounds; round++) {
                        TtRange range = tt_plan_range(plan, ch, round, chunk);

                        CHECK(range.count == 0 || range.first == next, "%s, count %lu", rows[r].name,
                              counts[c]);
                        next += range.count;
                        longest = MAX(longest, range.count);
                    }
            CHECK(next == counts[c], "%s: %lu of %lu", rows[r].name, next, counts[c]);
            CHECK(longest * tt_type_bytes(spec.type) <= tt_plan_max_message_bytes(plan),
                  "%s, count %lu: a message of %lu elements", rows[r].name, counts[c], longest);
            CHECK(spec.slot_bytes == 0 || tt_plan_max_message_bytes(plan) <= MAX(spec.slot_bytes, 64),
                  "%s, count %lu: %lu bytes", rows[r].name, counts[c], tt_plan_max_message_bytes(plan));
        }
    }
}

/* Ranks 2k and 2k + 1 of a group of 8 share one of 4 NICs: 4 channels must enter at four of them. */
static void
few_channels_reach_every_nic(void)
{
    TtPlanSpec spec = { .n_ranks = 16, .count = 64, .n_channels = 4, .group_size = 8 };
    g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);

    for (guint ch = 0; ch < 4; ch++) {
        CU_ASSERT_EQUAL(tt_ring_rank(plan, ch, 0), 2 * ch);
        CU_ASSERT_EQUAL(tt_ring_rank(plan, ch, 8), 8 + 2 * ch);
        for (guint rank = 0; rank < 16; rank++)
            CU_ASSERT_EQUAL(tt_ring_rank(plan, ch, tt_ring_position(plan, ch, rank)), rank);
    }
}

static void
rings_of_all_channels_are_rings(void)
{
    TtPlanSpec spec = { .n_ranks = 12, .count = 12, .n_channels = 4, .group_size = 4 };
    g_autoptr(TtPlan) plan = tt_plan_new("ring", &spec, NULL);

    for (guint ch = 0; ch < 4; ch++) {
        for (guint rank = 0; rank < 12; rank++) {
            CU_ASSERT_EQUAL(tt_ring_rank(plan, ch, tt_ring_position(plan, ch, rank)), rank);
            CU_ASSERT_EQUAL(tt_plan_peer(plan, tt_plan_peer(plan, rank, ch, 1), ch, 0), rank);
        }
        /* channel ch enters node 0 at local rank ch */
        CU_ASSERT_EQUAL(tt_ring_rank(plan, ch, 0), ch);
    }
}

static void
bad_requests_are_named(void)
{
    static const struct { const char *name; const char *algo; TtPlanSpec spec; const char *words; } rows[] = {
        { "unknown algorithm", "rong", { .n_ranks = 2 }, "one of:" },
        { "no ranks", "ring", { .n_ranks = 0 }, "1 .. 16777216" },
        { "root out of range", "ring", { .n_ranks = 2, .root = 2, .collective = TT_BROADCAST }, "root" },
        { "size overflow", "ring", { .n_ranks = 2, .count = 1ull << 61, .type = TT_FLOAT64 }, "overflow" },
        { "ragged groups", "ring", { .n_ranks = 10, .group_size = 4 }, "whole groups" },
        { "wrong collective", "tree", { .n_ranks = 4, .collective = TT_ALLGATHER }, "cannot do" },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(TtPlan) plan = tt_plan_new(rows[r].algo, &rows[r].spec, &error);

        CHECK_ROW(&rows[r], plan == NULL);
        CHECK_ERROR(error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE, rows[r].words);
    }
}

static void
registry_is_complete(void)
{
    CU_ASSERT(tt_algos[0] != NULL);
    for (guint i = 0; tt_algos[i]; i++) {
        const TtAlgo *a = tt_algos[i];

        CHECK(a->name && a->summary && a->source && a->collectives && a->init && a->n_steps && a->step &&
                  a->peer, "%s", a->name ? a->name : "(no name)");
        CHECK(tt_algo_find(a->name) == a, "%s", a->name);
        CHECK(i == 0 || strcmp(tt_algos[i - 1]->name, a->name) < 0, "%s is out of order", a->name);
    }
}

int
main(void)
{
    CU_TestInfo tests[] = { { "ranges tile the vector", ranges_tile_the_vector },
                            { "rings of all channels are rings", rings_of_all_channels_are_rings },
                            { "few channels reach every NIC", few_channels_reach_every_nic },
                            { "bad requests are named", bad_requests_are_named },
                            { "registry is complete", registry_is_complete },
                            CU_TEST_INFO_NULL };

    return check_main("schedule", tests);
}
