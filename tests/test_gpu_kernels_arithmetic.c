/* What GPU kernels compute, run on the CPU and compared bit by bit with the CPU's own loops (which test_reduce.c checks). */
#include "exec/reduce.h"
#include "tests/gpu_bench.h"
#include "tests/gpu_numbers.h"

static TtGpu *gpu;

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
                             1,         type, redop,      tt_type_bytes(type) };
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

/* Elements that are not the same. */
static guint64
count_differing(guint type, const guint8 *got, const guint8 *want, gsize count)
{
    guint size = tt_type_bytes(type);
    guint64 n = 0;

    for (gsize i = 0; i < count; i++) {
        guint64 x = gpu_read_code(got + i * size, size), y = gpu_read_code(want + i * size, size);

        n += x != y && !(gpu_is_nan(type, x) && gpu_is_nan(type, y));
    }
    return n;
}

/* Of every length, at every offset. */
static void
random_bits_reduce_as_on_the_cpu(void)
{
    const TtReduceUnit *unit = tt_reduce_units()[0];
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    const TtGpuDriver *driver = &tt_gpu_driver_host;
    gsize room = 9000, n = 0;
    guint8 *a = driver->alloc(gpu, room, NULL), *b = driver->alloc(gpu, room, NULL);
    g_autofree guint8 *want = g_malloc(room);

    for (guint type = 0; type < TT_N_TYPES; type++)
        for (guint redop = 0; redop < TT_AVG; redop++, n++) {
            gsize size = tt_type_bytes(type), at = n % 5 * size, count = (8000 - n * 13) / size;
            guint64 wrong;

            for (gsize i = 0; i < room; i++) {
                a[i] = (guint8)g_rand_int(rand);
                b[i] = (guint8)g_rand_int(rand);
            }
            unit->reduce[type][redop](want, a + at, b + 16, count * size);
            reduce_on_gpu(type, redop, a + at, b + 16, count, 1 + n % 4);
            wrong = count_differing(type, a + at, want, count);
            CHECK(wrong == 0, "%s %s: %" G_GUINT64_FORMAT " of %" G_GSIZE_FORMAT " differ",
                  tt_type_name(type), tt_redop_name(redop), wrong, count);
        }
    driver->free(gpu, a);
    driver->free(gpu, b);
}

static void
all_pairs_of_8_bit_floats(void)
{
    const TtReduceUnit *unit = tt_reduce_units()[0];
    const TtGpuDriver *driver = &tt_gpu_driver_host;
    guint8 *a = driver->alloc(gpu, 65536, NULL), *b = driver->alloc(gpu, 65536, NULL);
    g_autofree guint8 *want = g_malloc(65536);

    for (guint type = TT_FLOAT8E4M3; type <= TT_FLOAT8E5M2; type++)
        for (guint redop = 0; redop < TT_AVG; redop++) {
            guint64 wrong;

            for (guint i = 0; i < 65536; i++) {
                a[i] = (guint8)i;
                b[i] = (guint8)(i >> 8);
            }
            unit->reduce[type][redop](want, a, b, 65536);
            reduce_on_gpu(type, redop, a, b, 65536, 1);
            wrong = count_differing(type, a, want, 65536);
            CHECK(wrong == 0, "%s %s: %" G_GUINT64_FORMAT " of 65536 differ", tt_type_name(type),
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

    for (guint type = 0; type < TT_N_TYPES; type++) {
        gsize count = 4096 / tt_type_bytes(type);
        guint64 wrong;

        for (gsize i = 0; i < 4096; i++)
            want[i] = a[i] = (guint8)g_rand_int(rand);
        unit->scale[type](want, 7, 4096);
        driver->scale(gpu, a, count, type, 7, NULL);
        while (driver->poll(gpu, NULL) == TT_GPU_RUNNING)
            g_usleep(50);
        wrong = count_differing(type, a, want, count);
        CHECK(wrong == 0, "%s: %" G_GUINT64_FORMAT " differ", tt_type_name(type), wrong);
    }
    driver->free(gpu, a);
}

static CU_TestInfo tests[] = {
    { "random bits reduce as on the CPU", random_bits_reduce_as_on_the_cpu },
    { "all pairs of 8-bit floats", all_pairs_of_8_bit_floats },
    { "averages divide as on the CPU", averages_divide_as_on_the_cpu },
    CU_TEST_INFO_NULL,
};

int
main(void)
{
    return bench_main("gpu kernels, arithmetic", tests, &gpu);
}
