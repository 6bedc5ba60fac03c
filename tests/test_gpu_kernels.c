/* The GPU kernels, run on the CPU: every type, reduction and protocol, in plans of a few ranks on one pretend GPU. */
#include "exec/reduce.h"
#include "tests/gpu_bench.h"

#include <math.h>
#include <stdlib.h>

/* Types as kernels number them: those of algos/types.h, and 8-bit floats behind them. */
enum { E4M3 = TT_FLOAT64 + 1, E5M2, N_TYPES };

static const struct {
    const char *name;
    guint bytes, mantissa, bias; /* mantissa 0: no small float */
    TtType stands_for;           /* in plans, which know sizes only */
} types[N_TYPES] = {
    [TT_INT8] = { "int8", 1, 0, 0, TT_INT8 },
    [TT_INT32] = { "int32", 4, 0, 0, TT_INT32 },
    [TT_INT64] = { "int64", 8, 0, 0, TT_INT64 },
    [TT_FLOAT16] = { "half", 2, 10, 15, TT_FLOAT16 },
    [TT_BFLOAT16] = { "bfloat16", 2, 7, 127, TT_BFLOAT16 },
    [TT_FLOAT32] = { "float", 4, 23, 127, TT_FLOAT32 },
    [TT_FLOAT64] = { "double", 8, 52, 1023, TT_FLOAT64 },
    [E4M3] = { "e4m3", 1, 3, 7, TT_INT8 },
    [E5M2] = { "e5m2", 1, 2, 15, TT_INT8 },
};

static TtGpu *gpu;

/* --- numbers ----------------------------------------------------------------------------------- */

/* The code of a small integer, which all types hold exactly. */
static guint64
encode(guint type, gint64 value)
{
    guint m = types[type].mantissa, bits = 8 * types[type].bytes;
    int exponent;
    double fraction = frexp((double)ABS(value), &exponent);

    if (m == 0)
        return bits == 64 ? (guint64)value : (guint64)value & ((G_GUINT64_CONSTANT(1) << bits) - 1);
    if (value == 0)
        return 0;
    return (guint64)(value < 0) << (bits - 1) |
           (guint64)(exponent - 1 + (int)types[type].bias) << m |
           (guint64)((2 * fraction - 1) * (double)(G_GUINT64_CONSTANT(1) << m));
}

static guint64
read_code(const guint8 *from, guint bytes)
{
    guint64 code = 0;

    memcpy(&code, from, bytes); /* little-endian, as GPUs are */
    return code;
}

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
            guint64 code = encode(spec->type, contribution(seed, spec->spec.redop, r, i));

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
        wrong += read_code(data + begin + i * size, (guint)size) != encode(spec->type, want);
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
                  spec->algorithm, bench->n_ranks, types[spec->type].name,
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
                                  .type = types[type].stands_for,
                                  .redop = redop,
                                  .n_channels = 1,
                                  .n_slots = 2 },
                        .type = type,
                        .element_bytes = types[type].bytes,
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

    for (guint type = 0; type < N_TYPES; type++)
        for (guint redop = 0; redop < TT_AVG; redop++)
            for (guint protocol = 0; protocol <= TT_GPU_N_PROTOCOLS; protocol++, n++) {
                guint n_ranks = 2 + n % 3;
                guint64 count = MIN(n_ranks * some_bytes(n), 20000) / types[type].bytes;
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
                allreduce_of("ring", 2, type, TT_SUM, 2 * some_bytes(i) / types[type].bytes);

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
        guint type = (guint)g_rand_int_range(rand, 0, N_TYPES);
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

/* --- arithmetic, compared bit by bit ----------------------------------------------------------- */

/* dst = dst + src by a program of one step; data in device memory. */
static void
reduce_on_gpu(guint type, guint redop, guint8 *dst, guint8 *src, gsize count, guint n_threads)
{
    const TtGpuDriver *driver = &tt_gpu_driver_host;
    struct {
        TtGpuStep step;
        TtGpuShape shape;
        TtGpuLane lane;
        guint32 abort;
        TtGpuStatus status;
    } *at = driver->alloc(gpu, sizeof *at, NULL);
    TtGpuProgram program = { &at->lane, NULL, &at->shape, &at->abort,
                             1,         type, redop,      types[type].bytes };
    TtGpuLaunch launch = { &program, n_threads, FALSE };

    at->step = (TtGpuStep){ .op = TT_OP_REDUCE,
                            .src = TT_INPUT,
                            .dst = TT_OUTPUT,
                            .n_chunks = 1,
                            .recv = TT_GPU_NO_END,
                            .send = TT_GPU_NO_END,
                            .dep_lane = TT_GPU_NO_LANE };
    at->shape = (TtGpuShape){ count, 1, 1, 1 };
    at->lane = (TtGpuLane){
        .steps = &at->step, .n_steps = 1, .vector = { src, dst, dst }, .status = &at->status
    };
    driver->launch(gpu, &launch, NULL);
    while (driver->poll(gpu, NULL) == TT_GPU_RUNNING)
        g_usleep(50);
    driver->free(gpu, at);
}

static gboolean
is_nan(guint type, guint64 code)
{
    guint m = types[type].mantissa, bits = 8 * types[type].bytes;
    guint64 magnitude = code & ((G_GUINT64_CONSTANT(1) << (bits - 1)) - 1);

    if (m == 0)
        return FALSE;
    return type == E4M3 ? magnitude == 0x7f
                        : magnitude > ((G_GUINT64_CONSTANT(1) << (bits - 1 - m)) - 1) << m;
}

/* As the CPU's kernels do; 8-bit floats are checked elsewhere. NaNs are all the same. */
static void
random_bits_reduce_as_on_the_cpu(void)
{
    const TtReduceUnit *unit = tt_reduce_units()[0];
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    const TtGpuDriver *driver = &tt_gpu_driver_host;
    gsize room = 9000, n = 0;
    guint8 *a = driver->alloc(gpu, room, NULL), *b = driver->alloc(gpu, room, NULL);
    g_autofree guint8 *want = g_malloc(room);

    for (guint type = 0; type < TT_FLOAT64 + 1; type++)
        for (guint redop = 0; redop < TT_AVG; redop++, n++) {
            gsize size = types[type].bytes, at = n % 5 * size, count = (8000 - n * 13) / size;
            guint64 wrong = 0;

            for (gsize i = 0; i < room; i++) {
                a[i] = (guint8)g_rand_int(rand);
                b[i] = (guint8)g_rand_int(rand);
            }
            unit->reduce[type][redop](want, a + at, b + 16, count * size);
            reduce_on_gpu(type, redop, a + at, b + 16, count, 1 + n % 4);
            for (gsize i = 0; i < count; i++) {
                guint64 x = read_code(a + at + i * size, (guint)size);
                guint64 y = read_code(want + i * size, (guint)size);

                wrong += x != y && !(is_nan(type, x) && is_nan(type, y));
            }
            CHECK(wrong == 0, "%s %s: %" G_GUINT64_FORMAT " of %" G_GSIZE_FORMAT " differ",
                  types[type].name, tt_redop_name(redop), wrong, count);
        }
    driver->free(gpu, a);
    driver->free(gpu, b);
}

static double
value_of_8_bits(guint type, guint8 code)
{
    int m = (int)types[type].mantissa, exponent = (code & 0x7f) >> m;
    int fraction = code & ((1 << m) - 1);
    double magnitude;

    if (is_nan(type, code))
        return NAN;
    if (type == E5M2 && (code & 0x7f) == 0x7c)
        magnitude = INFINITY;
    else
        magnitude = exponent == 0
                        ? ldexp(fraction, 1 - (int)types[type].bias - m)
                        : ldexp((1 << m) + fraction, exponent - (int)types[type].bias - m);
    return code & 0x80 ? -magnitude : magnitude;
}

/* The nearest finite code, of two the even one. */
static guint8
nearest_8_bits(guint type, double x)
{
    guint8 sign = signbit(x) ? 0x80 : 0, best = 0;

    if (isnan(x))
        return 0x7f;
    x = fabs(x);
    for (guint8 code = 1; code < 0x80; code++) {
        double value = value_of_8_bits(type, code), apart = fabs(x - value);
        double least = fabs(x - value_of_8_bits(type, best));

        if (!isfinite(value))
            break;
        if (isinf(x) || apart < least || (apart == least && code % 2 == 0))
            best = code;
    }
    return sign | best;
}

static void
all_pairs_of_8_bit_floats(void)
{
    const TtGpuDriver *driver = &tt_gpu_driver_host;
    guint8 *a = driver->alloc(gpu, 65536, NULL), *b = driver->alloc(gpu, 65536, NULL);

    for (guint type = E4M3; type <= E5M2; type++)
        for (guint redop = 0; redop < TT_AVG; redop++) {
            guint64 wrong = 0;

            for (guint i = 0; i < 65536; i++) {
                a[i] = (guint8)i;
                b[i] = (guint8)(i >> 8);
            }
            reduce_on_gpu(type, redop, a, b, 65536, 1);
            for (guint i = 0; i < 65536; i++) {
                double x = value_of_8_bits(type, (guint8)i);
                double y = value_of_8_bits(type, (guint8)(i >> 8));
                double z = redop == TT_SUM    ? x + y
                           : redop == TT_PROD ? x * y
                           : redop == TT_MIN  ? (x < y ? x : y)
                                              : (x > y ? x : y);
                guint8 want = nearest_8_bits(type, z);

                wrong += a[i] != want && !(is_nan(type, a[i]) && is_nan(type, want));
            }
            CHECK(wrong == 0, "%s %s: %" G_GUINT64_FORMAT " of 65536 differ", types[type].name,
                  tt_redop_name(redop), wrong);
        }
    driver->free(gpu, a);
    driver->free(gpu, b);
}

static void
averages_divide_as_on_the_cpu(void)
{
    const TtReduceUnit *unit = tt_reduce_units()[0];
    g_autoptr(GRand) rand = g_rand_new_with_seed(8);
    const TtGpuDriver *driver = &tt_gpu_driver_host;
    guint8 *a = driver->alloc(gpu, 4096, NULL);
    g_autofree guint8 *want = g_malloc(4096);

    for (guint type = 0; type < N_TYPES; type++) {
        gsize size = types[type].bytes, count = 4096 / size;
        guint64 wrong = 0;

        for (gsize i = 0; i < 4096; i++)
            want[i] = a[i] = (guint8)g_rand_int(rand);
        if (type < E4M3)
            unit->scale[type](want, 7, 4096);
        for (gsize i = 0; type >= E4M3 && i < 4096; i++)
            want[i] = nearest_8_bits(type, (float)value_of_8_bits(type, want[i]) / 7.f);
        driver->scale(gpu, a, count, type, 7, NULL);
        while (driver->poll(gpu, NULL) == TT_GPU_RUNNING)
            g_usleep(50);
        for (gsize i = 0; i < count; i++) {
            guint64 x = read_code(a + i * size, (guint)size);
            guint64 y = read_code(want + i * size, (guint)size);

            wrong += x != y && !(is_nan(type, x) && is_nan(type, y));
        }
        CHECK(wrong == 0, "%s: %" G_GUINT64_FORMAT " differ", types[type].name, wrong);
    }
    driver->free(gpu, a);
}

static CU_TestInfo tests[] = {
    { "random bits reduce as on the CPU", random_bits_reduce_as_on_the_cpu },
    { "all pairs of 8-bit floats", all_pairs_of_8_bit_floats },
    { "averages divide as on the CPU", averages_divide_as_on_the_cpu },
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
    GError *error = NULL;
    int code;

    gpu = tt_gpu_driver_host.open(0, &error);
    if (!gpu)
        g_error("%s", error->message);
    code = check_main("gpu kernels", tests);
    tt_gpu_driver_host.close(gpu);
    return code;
}
