/* What the executor picks where nothing was asked for: algorithms and shapes, by size, ranks and transport. */
#include "exec/defaults.h"
#include "tests/check.h"

#define KIB 1024ull
#define MIB (1024 * KIB)

static TtPlanSpec
allreduce(guint n_ranks, guint64 bytes)
{
    return (TtPlanSpec){ .n_ranks = n_ranks, .count = bytes / sizeof(float), .type = TT_FLOAT32 };
}

static void
algorithms_by_size_and_transport(void)
{
    static const struct {
        const char *transport;
        guint n_ranks;
        guint64 bytes;
        const char *want;
    } cases[] = {
        { NULL, 2, 8, "direct" },
        { NULL, 2, 16 * KIB, "direct" },
        { NULL, 2, 32 * KIB, "ring" },
        { "shm", 4, 8, "direct" },
        { "shm", 4, 32 * KIB, "two-shot" },
        { "shm", 4, 256 * MIB, "two-shot" },
        { "shm", 32, 1 * MIB, "ring" },
        { "threads", 4, 256 * MIB, "two-shot" },
        { "cuda", 8, 256 * MIB, "two-shot" },
        /* Messages cost over a network, and ranks that listen to all. */
        { "tcp", 2, 8, "direct" },
        { "tcp", 3, 8, "direct" },
        { "tcp", 4, 8, "recursive-doubling" },
        { "verbs", 8, 64 * KIB, "recursive-doubling" },
        { "shm,tcp", 4, 64 * KIB, "recursive-doubling" },
        { "tcp", 4, 128 * KIB, "two-shot" },
        { "tcp", 4, 8 * MIB, "ring" },
        { "tcp", 8, 8 * MIB, "two-shot" },
        { "tcp", 8, 16 * MIB, "ring" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        TtPlanSpec spec = allreduce(cases[i].n_ranks, cases[i].bytes);
        const char *got = tt_exec_choose(&spec, cases[i].transport);

        CHECK(g_str_equal(got, cases[i].want),
              "%s, %u ranks, %" G_GUINT64_FORMAT " bytes: %s, not %s", cases[i].transport,
              cases[i].n_ranks, cases[i].bytes, got, cases[i].want);
    }
}

static void
slots_of_rings_over_a_network_stay_in_the_cache(void)
{
    TtPlanSpec two = allreduce(2, 256 * MIB), four = allreduce(4, 256 * MIB);
    TtPlanSpec small = allreduce(4, 1 * MIB), asked = allreduce(4, 256 * MIB);

    tt_exec_defaults_over(&two, "ring", "tcp");
    tt_exec_defaults_over(&four, "ring", "tcp");
    tt_exec_defaults_over(&small, "ring", "tcp");
    asked.slot_bytes = 4 * MIB;
    asked.n_slots = 3;
    tt_exec_defaults_over(&asked, "ring", "tcp");
    CU_ASSERT_EQUAL(two.slot_bytes, 1 * MIB);
    CU_ASSERT_EQUAL(four.slot_bytes, 256 * KIB);
    CU_ASSERT_EQUAL(small.slot_bytes, 64 * KIB);
    CU_ASSERT(asked.slot_bytes == 4 * MIB && asked.n_slots == 3);
}

/* Whatever is chosen, it can be planned. */
static void
every_choice_is_a_plan(void)
{
    static const char *const transports[] = { "shm",     "tcp",  "shm,tcp",
                                              "threads", "cuda", "cuda,verbs" };
    static const guint64 bytes[] = { 0, 4, 4 * KIB, 64 * KIB, 256 * KIB, 8 * MIB, 256 * MIB };

    for (guint t = 0; t < G_N_ELEMENTS(transports); t++)
        for (guint collective = 0; collective < TT_N_COLLECTIVES; collective++)
            for (guint n = 1; n <= 33; n++)
                for (guint b = 0; b < G_N_ELEMENTS(bytes); b++) {
                    TtPlanSpec spec = allreduce(n, bytes[b]);
                    g_autoptr(GError) error = NULL;
                    g_autoptr(TtPlan) plan = NULL;
                    const char *algorithm;

                    spec.collective = collective;
                    spec.count = spec.count / n * n;
                    algorithm = tt_exec_choose(&spec, transports[t]);
                    tt_exec_defaults_over(&spec, algorithm, transports[t]);
                    plan = tt_plan_new(algorithm, &spec, &error);
                    CHECK(plan != NULL, "%s, %s of %u ranks, %" G_GUINT64_FORMAT " bytes, %s: %s",
                          transports[t], tt_collective_name(collective), n, bytes[b], algorithm,
                          error ? error->message : "");
                }
}

static CU_TestInfo tests[] = {
    { "algorithms by size and transport", algorithms_by_size_and_transport },
    { "slots of rings over a network stay in the cache",
      slots_of_rings_over_a_network_stay_in_the_cache },
    { "every choice is a plan", every_choice_is_a_plan },
    CU_TEST_INFO_NULL,
};

int
main(void)
{
    return check_main("defaults", tests);
}
