/* The GPU kernels, run on the CPU: every type, reduction and protocol, in plans of a few ranks on one pretend GPU. */
#include "tests/gpu_bench.h"
#include "tests/gpu_numbers.h"

#include <stdlib.h>

static TtGpu *gpu;

/* --- numbers ----------------------------------------------------------------------------------- */

/* What rank contributes to element @i: few values, so that results are exact in any order. */
static gint64
contribution(guint seed, guint redop, guint rank, guint64 i)
{
    guint32 x = (guint32)(i * 2654435761u) ^ (rank * 40503u + seed) * 2246822519u;

    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    switch (redop) {
    case TT_SUM: return (gint64)(x % 3) - 1;
    case TT_PROD: return (const gint64[]){ 1, -1, 1, 2 }[x % 4];
    default: return (gint64)(x % 17) - 8;
    }
}

static gint64
combine(guint redop, gint64 a, gint64 b)
{
    return redop == TT_SUM    ? a + b
           : redop == TT_PROD ? a * b
           : redop == TT_MIN  ? MIN(a, b)
                              : MAX(a, b);
}

/* --- collectives ------------------------------------------------------------------------------- */

static void
fill(Bench *bench, guint seed)
{
    const BenchSpec *spec = bench->spec;
    gsize size = spec->element_bytes;
    g_autofree guint8 *data = g_malloc(bench->buffer_bytes);

    for (guint r = 0; r < bench->n_ranks; r++) {
        memset(data, 0x5a, bench->buffer_bytes);
        bench->driver->copy(bench->gpu, bench->buffers[TT_OUTPUT] + r * bench->buffer_bytes, data,
                            bench->buffer_bytes, NULL);
        for (guint64 i = 0; i < spec->spec.count; i++) {
            guint64 code = gpu_encode(spec->type, contribution(seed, spec->spec.redop, r, i));

            memcpy(data + (i + spec->skew) * size, &code, size);
        }
        bench->driver->copy(bench->gpu, bench->buffers[TT_INPUT] + r * bench->buffer_bytes, data,
                            bench->buffer_bytes, NULL);
    }
}

/* Wrong elements of one rank; bytes around the vector that changed count, too. */
static guint64
count_wrong(const Bench *bench, guint rank, guint seed)
{
    const BenchSpec *spec = bench->spec;
    gsize size = spec->element_bytes, begin = spec->skew * size;
    gsize end = begin + spec->spec.count * size;
    g_autofree guint8 *data = g_malloc(bench->buffer_bytes);
    guint64 wrong = 0;

    bench->driver->copy(bench->gpu, data, bench->buffers[TT_OUTPUT] + rank * bench->buffer_bytes,
                        bench->buffer_bytes, NULL);
    for (guint64 i = 0; i < spec->spec.count; i++) {
        gint64 want = contribution(seed, spec->spec.redop, 0, i);

        for (guint r = 1; r < bench->n_ranks; r++)
            want = combine(spec->spec.redop, want, contribution(seed, spec->spec.redop, r, i));
        wrong +=
            gpu_read_code(data + begin + i * size, (guint)size) != gpu_encode(spec->type, want);
    }
    for (gsize i = 0; i < bench->buffer_bytes; i++)
        wrong += (i < begin || i >= end) && data[i] != 0x5a;
    return wrong;
}

/* Several launches of an allreduce, each with other numbers. */
static void
check_allreduce(const BenchSpec *spec, guint n_launches, guint seed)
{
    g_autoptr(Bench) bench = bench_new(spec, gpu);

    for (guint launch = 0; launch < n_launches; launch++) {
        gboolean ended;

        fill(bench, seed + launch);
        ended = bench_run(bench);
        for (guint r = 0; r < bench->n_ranks; r++) {
            guint64 wrong = ended ? count_wrong(bench, r, seed + launch) : G_MAXUINT64;

            CHECK(wrong == 0,
                  "%s, %u ranks, %s %s, protocol %u, count %" G_GUINT64_FORMAT
                  ", %u threads, %u slots, %u channels, slots of %" G_GUINT64_FORMAT
                  ", skew %u, launch %u, seed %u: rank %u has %" G_GINT64_FORMAT " wrong",
                  spec->algorithm, bench->n_ranks, tt_type_name(spec->type),
                  tt_redop_name(spec->spec.redop), spec->protocol, spec->spec.count,
                  spec->n_threads, spec->spec.n_slots, spec->spec.n_channels, spec->spec.slot_bytes,
                  spec->skew, launch, seed, r, (gint64)wrong);
        }
        if (!ended)
            return;
    }
}

static BenchSpec
allreduce_of(const char *algorithm, guint n_ranks, guint type, guint redop, guint64 count)
{
    return (BenchSpec){ .algorithm = algorithm,
                        .spec = { .n_ranks = n_ranks,
                                  .count = count,
                                  .type = type,
                                  .redop = redop,
                                  .n_channels = 1,
                                  .n_slots = 2 },
                        .type = type,
                        .element_bytes = tt_type_bytes(type),
                        .n_threads = 1 };
}

/* Bytes around what protocols cut at: words, small messages, lines, units; @of: which. */
static guint64
some_bytes(guint of)
{
    static const guint64 bytes[] = { 1,   3,   8,   48,  49,  64,   119,   120,
                                     121, 240, 375, 480, 961, 4096, 65541, 0 };

    return bytes[of % G_N_ELEMENTS(bytes)];
}

static void
all_types_reductions_and_protocols(void)
{
    static const guint threads[] = { 1, 2, 32, 5 };
    guint n = 0, every = check_every(5);

    for (guint type = 0; type < TT_N_TYPES; type++)
        for (guint redop = 0; redop < TT_AVG; redop++)
            for (guint protocol = 0; protocol <= TT_GPU_N_PROTOCOLS; protocol++, n++) {
                guint n_ranks = 2 + n % 3;
                guint64 count = MIN(n_ranks * some_bytes(n), 20000) / tt_type_bytes(type);
                BenchSpec spec = allreduce_of("ring", n_ranks, type, redop, count);

                if (n % every != 0)
                    continue;
                spec.protocol = protocol;
                spec.n_threads = threads[(n / 5) % 4];
                spec.skew = n / 2 % 4;
                check_allreduce(&spec, 2, 1000 + n);
            }
}

static void
sizes_at_every_edge(void)
{
    for (guint i = 0; some_bytes(i) > 0; i++)
        for (guint protocol = 0; protocol <= TT_GPU_N_PROTOCOLS; protocol++) {
            guint type = i % 2 ? TT_INT8 : TT_BFLOAT16;
            BenchSpec spec =
                allreduce_of("ring", 2, type, TT_SUM, 2 * some_bytes(i) / tt_type_bytes(type));

            spec.protocol = protocol;
            spec.skew = i % 3;
            spec.n_threads = some_bytes(i) > 4096 ? 1 : (const guint[]){ 1, 3, 32 }[i % 3];
            check_allreduce(&spec, 1, 2000 + 10 * i + protocol);
        }
}

/* Whatever plans there are, with everything else drawn at random. */
static void
random_plans(void)
{
    static const char *const algorithms[] = { "ring",     "tree",
                                              "direct",   "halving-doubling",
                                              "two-shot", "double-tree",
                                              "binomial", "recursive-doubling" };
    static const guint threads[] = { 1, 1, 2, 3, 32 };
    const char *given = g_getenv("TT_SEED");
    guint first = given ? (guint)atoi(given) : 1, n = given ? 1 : 60 / check_every(3);

    for (guint seed = first; seed < first + n; seed++) {
        g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
        guint type = (guint)g_rand_int_range(rand, 0, TT_N_TYPES);
        guint algorithm = (guint)g_rand_int_range(rand, 0, G_N_ELEMENTS(algorithms));
        gboolean even = algorithm == 3 || algorithm == 7;
        guint n_ranks =
            even ? 1u << g_rand_int_range(rand, 1, 4) : (guint)g_rand_int_range(rand, 2, 9);
        BenchSpec spec = allreduce_of(algorithms[algorithm], n_ranks, type,
                                      (guint)g_rand_int_range(rand, 0, TT_AVG),
                                      (guint64)g_rand_int_range(rand, 0, 3000));

        spec.protocol = (guint)g_rand_int_range(rand, 0, TT_GPU_N_PROTOCOLS + 1);
        spec.skew = (guint)g_rand_int_range(rand, 0, 4);
        spec.n_threads = threads[g_rand_int_range(rand, 0, n_ranks > 4 ? 4 : 5)];
        spec.spec.n_slots = g_rand_boolean(rand) ? 2 : 4;
        spec.spec.n_channels = (guint)g_rand_int_range(rand, 1, 3);
        spec.spec.slot_bytes = g_rand_boolean(rand) ? 256 : 0;
        spec.events = g_rand_boolean(rand);
        check_allreduce(&spec, 3, seed);
    }
}

/* Message numbers need more than 32 bits, of which flags hold the low ones. */
static void
counters_go_beyond_32_bits(void)
{
    for (guint protocol = 0; protocol < TT_GPU_N_PROTOCOLS; protocol++) {
        BenchSpec spec = allreduce_of("ring", 2, TT_INT32, TT_SUM, 100);
        g_autoptr(Bench) bench = NULL;
        guint64 passed = G_GUINT64_CONSTANT(0xfffffffc);

        spec.protocol = protocol;
        bench = bench_new(&spec, gpu);
        for (guint i = 0; i < bench->ends->len; i++) {
            TtGpuEnd *end = &g_array_index(bench->ends, TtGpuEnd, i);

            end->count = passed;
            end->limit = passed + end->n_slots;
            bench->driver->copy(gpu, end->memory, &passed, sizeof passed, NULL);
        }
        bench->driver->copy(gpu, bench->program.ends, bench->ends->data,
                            bench->ends->len * sizeof(TtGpuEnd), NULL);
        for (guint launch = 0; launch < 3; launch++) {
            fill(bench, launch);
            CHECK(bench_run(bench), "protocol %u", protocol);
            CHECK(count_wrong(bench, 0, launch) == 0, "protocol %u, launch %u", protocol, launch);
        }
    }
}

/* --- what the host sees ---------------------------------------------------------------------- */

/* Rank 1's blocks are not launched: those of rank 0 wait, say so, and leave when told. */
static void
a_wait_is_reported_and_can_be_ended(void)
{
    static const guint threads[] = { 1, 7, 32 };

    for (guint protocol = 0; protocol < TT_GPU_N_PROTOCOLS; protocol++)
        for (guint t = 0; t < G_N_ELEMENTS(threads); t++) {
            BenchSpec spec = allreduce_of("ring", 2, TT_FLOAT32, TT_SUM, 3000);
            g_autoptr(Bench) bench = NULL;
            gint64 end_us;

            spec.protocol = protocol;
            spec.n_threads = threads[t];
            bench = bench_new(&spec, gpu);
            bench->program.n_lanes = bench->n_lanes;
            fill(bench, 1);
            bench_launch(bench);
            end_us = g_get_monotonic_time() + 20000000;
            while (__atomic_load_n(&bench->status->waits, __ATOMIC_RELAXED) == 0 &&
                   g_get_monotonic_time() < end_us)
                g_usleep(1000);
            CHECK(bench->driver->poll(gpu, NULL) == TT_GPU_RUNNING, "protocol %u", protocol);
            CHECK(__atomic_load_n(&bench->status->waits, __ATOMIC_RELAXED) ==
                      TT_GPU_WAITS_MESSAGE + 1,
                  "protocol %u, %u threads", protocol, threads[t]);
            CHECK(__atomic_load_n(&bench->status->peer, __ATOMIC_RELAXED) == 1, "protocol %u",
                  protocol);
            CHECK(__atomic_load_n(&bench->status->done, __ATOMIC_RELAXED) == 1, "protocol %u",
                  protocol);
            bench_abort(bench);
            CHECK(bench_wait(bench, 20000000), "protocol %u, %u threads: stays", protocol,
                  threads[t]);
        }
}

/* A sender without a receiver stops when its slots are full. */
static void
a_sender_waits_for_a_slot(void)
{
    BenchSpec spec = allreduce_of("tree", 2, TT_FLOAT32, TT_SUM, 3000);
    g_autoptr(Bench) bench = NULL;
    gint64 end_us = g_get_monotonic_time() + 20000000;
    gboolean found = FALSE;

    spec.spec.slot_bytes = 256;
    bench = bench_new(&spec, gpu);
    for (guint l = 0; l < bench->n_lanes; l++) /* rank 0, the root, does nothing */
        bench->lanes[l].n_steps = 0;
    bench->driver->copy(gpu, (gpointer)bench->program.lanes, bench->lanes,
                        bench->n_lanes * sizeof *bench->lanes, NULL);
    bench_launch(bench);
    while (!found && g_get_monotonic_time() < end_us) {
        for (guint l = bench->n_lanes; l < 2 * bench->n_lanes; l++)
            found |= __atomic_load_n(&bench->status[l].waits, __ATOMIC_RELAXED) ==
                         TT_GPU_WAITS_SLOT + 1 &&
                     __atomic_load_n(&bench->status[l].done, __ATOMIC_RELAXED) == 2;
        g_usleep(1000);
    }
    CHECK(found, "nobody waits for a slot after 2 messages");
    bench_abort(bench);
    CHECK(bench_wait(bench, 20000000), "stays");
}

static void
check_events_of(const Bench *bench, guint l, const TtGpuEvent *events, guint64 n)
{
    const TtGpuLane *lane = &bench->lanes[l];
    guint64 n_steps = lane->n_steps * bench->plan->n_rounds;

    CHECK(n == n_steps, "lane %u: %" G_GUINT64_FORMAT " events", l, n);
    for (guint64 i = 0; i < n; i++) {
        const TtGpuEvent *e = &events[i];
        guint64 waited = e->wait_ns;

        CHECK(e->begin_ns <= e->end_ns && waited <= e->end_ns - e->begin_ns, "lane %u", l);
        CHECK(i == 0 || e->begin_ns >= events[i - 1].end_ns, "lane %u", l);
        CHECK(e->round == i / lane->n_steps && e->step == i % lane->n_steps, "lane %u", l);
        CHECK(e->bytes > 0, "lane %u", l);
        CHECK(e->wait_end == TT_GPU_NO_END || e->wait_end < bench->ends->len, "lane %u", l);
    }
}

static void
steps_are_recorded(void)
{
    for (guint protocol = 0; protocol < TT_GPU_N_PROTOCOLS; protocol++) {
        BenchSpec spec = allreduce_of("ring", 3, TT_FLOAT32, TT_SUM, 3000);
        g_autoptr(Bench) bench = NULL;

        spec.protocol = protocol;
        spec.n_threads = 2;
        spec.events = TRUE;
        spec.spec.slot_bytes = 512;
        bench = bench_new(&spec, gpu);
        for (guint launch = 0; launch < 2; launch++) {
            fill(bench, launch);
            CHECK(bench_run(bench), "protocol %u", protocol);
            for (guint l = 0; l < bench->program.n_lanes; l++) {
                g_autofree TtGpuEvent *events = g_new(TtGpuEvent, bench->most_events);
                guint64 n;

                bench->driver->copy(gpu, &n, bench->lanes[l].n_events, sizeof n, NULL);
                bench->driver->copy(gpu, events, bench->lanes[l].events,
                                    bench->most_events * sizeof *events, NULL);
                check_events_of(bench, l, events, MIN(n, bench->most_events));
                CHECK(bench->status[l].done == n, "lane %u", l);
            }
        }
    }
}

static CU_TestInfo tests[] = {
    { "all types, reductions and protocols", all_types_reductions_and_protocols },
    { "sizes at every edge", sizes_at_every_edge },
    { "random plans", random_plans },
    { "counters go beyond 32 bits", counters_go_beyond_32_bits },
    { "a wait is reported and can be ended", a_wait_is_reported_and_can_be_ended },
    { "a sender waits for a slot", a_sender_waits_for_a_slot },
    { "steps are recorded", steps_are_recorded },
    CU_TEST_INFO_NULL,
};

int
main(void)
{
    return bench_main("gpu kernels", tests, &gpu);
}
