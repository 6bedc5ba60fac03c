/* The "host" driver of GPUs: what it promises in exec/gpu.h, but for the kernels. */
#include "exec/gpu.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern const TtGpuDriver tt_gpu_driver_host;
static const TtGpuDriver *const driver = &tt_gpu_driver_host;

static void
there_are_as_many_as_asked_for(void)
{
    GError *error = NULL;
    guint n = 0;
    TtGpu *gpu;

    CHECK(driver->count(&n, NULL) && n == 1, "%u", n);
    g_setenv("TUTTI_HOST_GPUS", "3", TRUE);
    CHECK(driver->count(&n, NULL) && n == 3, "%u", n);
    g_setenv("TUTTI_HOST_GPUS", "many", TRUE);
    CHECK(!driver->count(&n, &error), "%u", n);
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE, "\"many\" is not a number of GPUs");
    g_unsetenv("TUTTI_HOST_GPUS");
    tt_gpu_host_set(2, 1);
    CHECK(driver->count(&n, NULL) && n == 2, "%u", n);
    gpu = driver->open(2, &error);
    CHECK(gpu == NULL, "a third");
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE, "host GPU 2: there are 2 (0 .. 1)");
    tt_gpu_host_set(0, 0);
}

static void
gpus_are_told_apart(void)
{
    TtGpuFacts a, b;
    TtGpu *first, *second;

    tt_gpu_host_set(2, 1);
    first = driver->open(0, NULL);
    second = driver->open(1, NULL);
    driver->facts(first, &a);
    driver->facts(second, &b);
    CHECK(strcmp(a.bus_id, b.bus_id) != 0, "%s", a.bus_id);
    CHECK(a.memory_bytes > 0 && a.n_sms > 0, "no memory or processors");
    CHECK(driver->reach(first, second), "peers by default");
    g_setenv("TUTTI_HOST_PEER", "0", TRUE);
    CHECK(!driver->reach(first, second), "no peers if asked so");
    CHECK(driver->reach(first, first), "itself always");
    g_unsetenv("TUTTI_HOST_PEER");
    driver->close(first);
    driver->close(second);
    driver->close(NULL);
    tt_gpu_host_set(0, 0);
}

/* Attaches in a process of its own and writes there. */
static int
write_from_elsewhere(const guint8 *handle)
{
    TtGpu *gpu = driver->open(0, NULL);
    char *memory = gpu ? driver->attach(gpu, handle, NULL) : NULL;

    if (!memory || strcmp(memory, "from here") != 0)
        return 1;
    strcpy(memory, "from there");
    driver->detach(gpu, memory);
    driver->close(gpu);
    return 0;
}

static void
memory_is_shared_with_another_process(void)
{
    TtGpu *gpu = driver->open(0, NULL);
    guint8 handle[TT_GPU_HANDLE_BYTES];
    GError *error = NULL;
    char *memory = driver->alloc(gpu, 10000, NULL);
    int status = 1;
    pid_t child;

    CHECK(memory[0] == 0 && memory[9999] == 0, "not zeroed");
    driver->copy(gpu, memory, "from here", 10, NULL);
    CHECK(driver->share(gpu, memory, handle, NULL), "own memory");
    child = fork();
    if (child == 0)
        _exit(write_from_elsewhere(handle));
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the other process");
    CHECK(strcmp(memory, "from there") == 0, "%.20s", memory);
    CHECK(!driver->share(gpu, memory + 1, handle, &error), "not what alloc() gave");
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM, "only memory of its own");
    driver->free(gpu, memory);
    CHECK(driver->attach(gpu, handle, &error) == NULL, "freed memory");
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM, "cannot attach");
    CHECK(driver->alloc(gpu, (gsize)1 << 62, &error) == NULL, "too much memory");
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM, "cannot get");
    driver->close(gpu);
}

static void
blocks_have_a_limit(void)
{
    TtGpu *gpu = driver->open(0, NULL);
    TtGpuProgram program = { .type = TT_FLOAT32, .n_lanes = 33 };
    TtGpuLaunch launch = { &program, 32, FALSE };
    GError *error = NULL;
    guint most = 0;

    CHECK(driver->most_blocks(gpu, &launch, &most, NULL) && most == 32, "%u", most);
    CHECK(!driver->launch(gpu, &launch, &error), "33 blocks");
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                "33 blocks of 32 threads are too many");
    launch.n_threads = 0;
    CHECK(driver->most_blocks(gpu, &launch, &most, NULL) && most == 1024, "%u", most);
    driver->close(gpu);
}

static void
times_are_taken(void)
{
    TtGpu *gpu = driver->open(0, NULL);
    gsize n = 100000, bytes = n * sizeof(float);
    float *to = driver->alloc(gpu, bytes, NULL), *from = driver->alloc(gpu, bytes, NULL);
    double s = 0;

    CHECK(driver->time_launch(gpu, 10, &s, NULL) && s > 0, "%g", s);
    for (gsize i = 0; i < n; i++)
        from[i] = (float)i;
    for (guint n_blocks = 0; n_blocks < 4; n_blocks++) {
        driver->zero(gpu, to, bytes, NULL);
        CHECK(driver->time_copy(gpu, to, from, bytes, n_blocks, FALSE, &s, NULL) && s > 0, "%g", s);
        CHECK(memcmp(to, from, bytes) == 0, "%u blocks", n_blocks);
        driver->zero(gpu, to, bytes, NULL);
        CHECK(driver->time_copy(gpu, to, from, bytes, n_blocks, TRUE, &s, NULL) && s > 0, "%g", s);
        CHECK(to[n - 1] > 0 && to[3] / from[3] == to[1] / from[1], "%u blocks", n_blocks);
    }
    driver->free(gpu, to);
    driver->free(gpu, from);
    driver->close(gpu);
}

static void
flags_have_a_latency(void)
{
    TtGpu *gpus[2];

    tt_gpu_host_set(2, 1);
    for (guint g = 0; g < 2; g++)
        gpus[g] = driver->open(g, NULL);
    for (guint g = 0; g < 4; g++) {
        g_autoptr(GError) error = NULL;
        double s = 0;

        CHECK(driver->time_flag(gpus[g % 2], gpus[g / 2], &s, &error) && s > 0 && s < 0.1, "%u: %g",
              g, s);
        CHECK_NO_ERROR(error);
    }
    for (guint g = 0; g < 2; g++)
        driver->close(gpus[g]);
    tt_gpu_host_set(0, 0);
}

static CU_TestInfo tests[] = {
    { "there are as many as asked for", there_are_as_many_as_asked_for },
    { "GPUs are told apart", gpus_are_told_apart },
    { "memory is shared with another process", memory_is_shared_with_another_process },
    { "blocks have a limit", blocks_have_a_limit },
    { "times are taken", times_are_taken },
    { "flags have a latency", flags_have_a_latency },
    CU_TEST_INFO_NULL,
};

int
main(void)
{
    return check_main("gpu host driver", tests);
}
