/* What is said of CUDA's errors: a sentence for each that matters, with figures, and of the right class. */
#include "tests/check.h"
#include "exec/cuda/driver_words.h"

#include <string.h>

static void
test_rows(void)
{
    static const struct {
        const char *name;
        int code;
        TtCudaTrouble trouble;
        TtExecError class;
        gboolean fatal;
        const char *words[4];
    } rows[] = {
        { "no driver at all",
          35,
          { .runtime = 13000 },
          TT_EXEC_ERROR_HARDWARE,
          FALSE,
          { "no NVIDIA driver", "install", "--gpus host" } },
        { "a driver older than the toolkit",
          35,
          { .driver = 12040, .runtime = 13000 },
          TT_EXEC_ERROR_HARDWARE,
          FALSE,
          { "too old", "CUDA 12.4", "needs 13.0" } },
        { "a driver, no GPU",
          100,
          { .driver = 13000 },
          TT_EXEC_ERROR_HARDWARE,
          FALSE,
          { "no GPU", "nvidia-smi -L", "--gpus all" } },
        { "GPUs hidden by the environment",
          100,
          { .driver = 13000, .visible = "7" },
          TT_EXEC_ERROR_HARDWARE,
          FALSE,
          { "CUDA_VISIBLE_DEVICES is \"7\"" } },
        { "a GPU this build is not for",
          209,
          { .major = 7, .minor = 5, .built_for = "sm_80 compute_80" },
          TT_EXEC_ERROR_HARDWARE,
          FALSE,
          { "compute capability 7.5", "sm_80 compute_80", "-DTT_CUDA_ARCHITECTURES=75" } },
        { "a GPU of no known capability",
          209,
          { 0 },
          TT_EXEC_ERROR_HARDWARE,
          FALSE,
          { "no kernels for it" } },
        { "memory, with how much",
          2,
          { .doing = "GPU 1 (X): cannot allocate memory",
            .asked_bytes = (guint64)12 << 30,
            .free_bytes = (guint64)512 << 20,
            .memory_bytes = (guint64)80 << 30 },
          TT_EXEC_ERROR_SYSTEM,
          FALSE,
          { "GPU 1 (X): cannot allocate memory: out of memory: 12.0 GiB wanted, 512.0 MiB of 80.0 "
            "GiB",
            "smaller size" } },
        { "memory, free unknown",
          2,
          { .asked_bytes = 4096 },
          TT_EXEC_ERROR_SYSTEM,
          FALSE,
          { "no 4096 bytes to be had" } },
        { "memory, nothing known", 2, { 0 }, TT_EXEC_ERROR_SYSTEM, FALSE, { "out of memory (" } },
        { "operating system", 304, { 0 }, TT_EXEC_ERROR_SYSTEM, FALSE, { "ulimit" } },
        { "too many blocks",
          720,
          { 0 },
          TT_EXEC_ERROR_HARDWARE,
          FALSE,
          { "fewer channels", "fewer ranks" } },
        { "no peer access", 217, { 0 }, TT_EXEC_ERROR_HARDWARE, FALSE, { "--placement host" } },
        { "ECC in flight", 214, { 0 }, TT_EXEC_ERROR_HARDWARE, TRUE, { "ECC", "Xid" } },
        { "NVLink in flight", 220, { 0 }, TT_EXEC_ERROR_HARDWARE, TRUE, { "NVLink" } },
        { "illegal address",
          700,
          { 0 },
          TT_EXEC_ERROR_HARDWARE,
          TRUE,
          { "memory that is not there" } },
        { "time-out of a display", 702, { 0 }, TT_EXEC_ERROR_HARDWARE, TRUE, { "display" } },
        { "hardware stack", 714, { 0 }, TT_EXEC_ERROR_HARDWARE, TRUE, { "stack", "Xid" } },
        { "launch failure", 719, { 0 }, TT_EXEC_ERROR_HARDWARE, TRUE, { "Xid" } },
        { "fabric manager", 802, { 0 }, TT_EXEC_ERROR_HARDWARE, FALSE, { "fabric manager" } },
        { "library and module differ", 803, { 0 }, TT_EXEC_ERROR_HARDWARE, FALSE, { "reboot" } },
        { "another has the GPU, or it is gone",
          46,
          { 0 },
          TT_EXEC_ERROR_HARDWARE,
          TRUE,
          { "busy", "fell off the bus" } },
        { "unknown", 999, { 0 }, TT_EXEC_ERROR_HARDWARE, TRUE, { "off the bus" } },
        { "MIG without an instance", 101, { 0 }, TT_EXEC_ERROR_HARDWARE, FALSE, { "MIG" } },
        { "one that is not known yet",
          4711,
          { .own = "something new" },
          TT_EXEC_ERROR_HARDWARE,
          FALSE,
          { "CUDA reports an error (CUDA error 4711: something new)" } },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;

        tt_cuda_error(&error, rows[i].code, &rows[i].trouble);
        CHECK_ROW(&rows[i], g_error_matches(error, TT_EXEC_ERROR, rows[i].class));
        CHECK_ROW(&rows[i], tt_cuda_is_fatal(rows[i].code) == rows[i].fatal);
        for (guint k = 0; error && k < 4 && rows[i].words[k]; k++)
            CHECK(strstr(error->message, rows[i].words[k]), "%s: \"%s\" not in: %s", rows[i].name,
                  rows[i].words[k], error->message);
    }
}

/* Every code there is or may come to be: one line that names its number. */
static void
test_any_code(void)
{
    for (int code = -1; code < 1100; code++) {
        g_autofree char *number = g_strdup_printf("CUDA error %d", code);
        g_autoptr(GError) error = NULL;

        tt_cuda_error(&error, code, &(TtCudaTrouble){ .doing = "x" });
        CHECK(error && g_str_has_prefix(error->message, "x: ") && strstr(error->message, number) &&
                  !strchr(error->message, '\n') && strlen(error->message) < 300,
              "code %d: %s", code, error ? error->message : "none");
    }
}

static void
test_blocks(void)
{
    g_autoptr(GError) error = NULL;

    tt_cuda_blocks_error(&error, "GPU 0 (X)", 512, 256, 396);
    CHECK(error && strstr(error->message, "GPU 0 (X): 512 blocks of 256 threads") &&
              strstr(error->message, "396 can: use fewer channels, or fewer ranks"),
          "%s", error ? error->message : "none");
}

int
main(void)
{
    CU_TestInfo tests[] = {
        { "a sentence for each error", test_rows },
        { "one line for any code", test_any_code },
        { "blocks that do not fit", test_blocks },
        CU_TEST_INFO_NULL,
    };

    return check_main("words of CUDA errors", tests);
}
