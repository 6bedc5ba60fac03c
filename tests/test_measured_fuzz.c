/* Mutated logs: whatever the text, an error of one line or sound tables, never a crash, leak or hang
 * (mutate.h).
 */
#include "models/hardware.h"
#include "models/measured_private.h"
#include "tests/mutate.h"

#include <math.h>

/* What tends to hurt readers of such files. */
static const char *const words[] = {
    "\n",
    "\r\n",
    "#",
    "-",
    " ",
    "0",
    "-1",
    "9",
    "1e999",
    "nan",
    "inf",
    "N/A",
    "%s%n",
    "\t",
    "18446744073709551616",
    "4294967296",
    "99999999999999999999999999",
    "\377",
    "\001",
    "\033[31m",
    "\033[",
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "null",
    "true",
    "float",
    "sum",
    "none",
    "root",
    "time",
    "algbw",
    "busbw",
    "#wrong",
    "(us)",
    "(ms)",
    "(GB/s)",
    "in-place",
    "out-of-place",
    "Rank 4294967295",
    "Rank  0 Group  0 Pid  1 on a device  0 [0x01] H100\n",
    "nThread 99999999 nGpus 99999999 ",
    "\n8 2 float sum -1 10.0 0.0 0.0 0 10.0 0.0 0.0 0\n",
    "\n10.0 0.0 0.0 0\n",
    "NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]",
    "NCCL_ALGO=Ring",
    " set by environment to ",
    "all_reduce_perf -b 8",
    "Avg bus bandwidth",
    "nccl-library=99999",
    "NCCL version ",
    "\"rows\": ",
    "\"bytes\": -1",
    "\"ngpus\": 1e30",
    "{\"results\": [{\"in_place\": {}}]}",
};

static gboolean
row_is_sound(const TtMeasuredRow *row)
{
    return row->bytes > 0 && row->time_us > 0 && isfinite(row->time_us) && row->n_repeats > 0 &&
           row->wrong <= 0;
}

static gboolean
is_sound(const TtMeasured *m)
{
    gboolean sound = m->id && m->machine && m->origin &&
                     m->gpus_per_node <= TT_MEASURED_MOST_RANKS &&
                     m->skipped->len <= TT_MEASURED_MOST_NOTES + 10;

    for (guint i = 0; i < m->rows->len; i++)
        sound = sound && row_is_sound(&g_array_index(m->rows, TtMeasuredRow, i));
    for (guint i = 0; i < m->rows_in_place->len; i++)
        sound = sound && row_is_sound(&g_array_index(m->rows_in_place, TtMeasuredRow, i));
    return sound;
}

/* The machine of a table that was accepted is known, or refused in one line. */
static void
try_hardware(const TtMeasured *m, const char *what)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(TtNcclXml) xml = NULL;
    TtHardware h;
    guint n_nodes;

    if (tt_hardware_of(m, &h, &error)) {
        g_autofree char *text = tt_hardware_text(&h), *class_name = tt_hardware_class(&h);

        CHECK(*text && *class_name, "%s", what);
        xml = tt_hardware_xml(&h, &n_nodes, &error);
    }
    CHECK((xml == NULL) == (error != NULL), "%s: neither machine nor error", what);
    CHECK(!error || is_one_line(error), "%s: %s", what, error->message);
}

/* Returns TRUE if it was accepted. */
static gboolean
try_text(const char *text, gsize length, const char *what)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) tables = tt_measured_parse("mutant", text, length, &error);

    CHECK((tables == NULL) == (error != NULL), "%s: neither tables nor error", what);
    CHECK(!error || is_one_line(error), "%s: %s", what, error->message);
    for (guint i = 0; tables && i < tables->len; i++) {
        CHECK(is_sound(tables->pdata[i]), "%s: table %u is not sound", what, i + 1);
        try_hardware(tables->pdata[i], what);
    }
    return tables != NULL;
}

/* Logs, and a few published measurements. */
static GPtrArray *
samples(void)
{
    static const char *const folders[] = { "tests/data/nccl-tests", "bench/measurements" };
    GPtrArray *texts = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);

    for (guint f = 0; f < G_N_ELEMENTS(folders); f++) {
        g_autofree char *folder = g_build_filename(g_getenv("TT_SOURCE_DIR"), folders[f], NULL);
        g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
        const char *name;

        while (dir && (name = g_dir_read_name(dir))) {
            g_autofree char *path = g_build_filename(folder, name, NULL);
            char *text;
            gsize length;

            if (f == 1 && g_str_hash(name) % 20)
                continue;
            if (g_file_get_contents(path, &text, &length, NULL))
                g_ptr_array_add(texts, g_bytes_new_take(text, length));
        }
    }
    return texts;
}

static gboolean
try_mutant(const char *text, gsize length, guint sample, GRand *rand, const char *what)
{
    (void)sample;
    (void)rand;
    return try_text(text, length, what);
}

static Fuzz fuzz = { .seed = 1,
                     .n_mutants = 6000,
                     .most_at_once = 6,
                     .least_accepted = 10,
                     .words = words,
                     .n_words = G_N_ELEMENTS(words) };

static void
mutants(void)
{
    g_autoptr(GPtrArray) texts = samples();

    CU_ASSERT_FATAL(texts->len > 10);
    check_mutants(&fuzz, texts, try_mutant);
}

/* A log cut anywhere holds what came before. */
static void
cut_at_every_byte(void)
{
    g_autoptr(GPtrArray) texts = samples();

    for (guint i = 0; i < texts->len; i++) {
        gsize size;
        const char *text = g_bytes_get_data(texts->pdata[i], &size);

        for (gsize length = 0; length < size; length += check_every(3) + length / 500) {
            g_autofree char *what = g_strdup_printf("sample %u cut after %zu bytes", i, length);

            try_text(text, length, what);
        }
    }
}

/* Long lines, many lines, many headings: time grows with size, not faster. */
static void
large_texts(void)
{
    static const char *const parts[] = {
        "8 2 float sum -1 10.0 0.0 0.0 0 10.0 0.0 0.0 0\n",
        "8 2 float sum -1 ",
        "# size count type redop root time algbw busbw #wrong\n8 2 float sum -1 1.0 0.0 0.0 0\n",
        "#  Rank  7 Group  0 Pid  1 on a device  0 [0x01] H100\n",
        "nThread 1 nGpus 8 minBytes\n8 2 half sum -1 1.0 0.0 0.0 0\n",
        "{",
        "\"",
        "x",
        "[0]",
        "NCCL_A=",
    };

    for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
        GString *text = g_string_new(NULL);
        gint64 start_us = g_get_monotonic_time();

        while (text->len < (4u << 20) / check_every(4))
            g_string_append(text, parts[i]);
        try_text(text->str, text->len, parts[i]);
        CHECK(g_get_monotonic_time() - start_us < 20000000, "megabytes of \"%s\" took too long",
              parts[i]);
        g_string_free(text, TRUE);
    }
}

int
main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        { "mutants", mutants },
        { "cut at every byte", cut_at_every_byte },
        { "large texts", large_texts },
        CU_TEST_INFO_NULL,
    };

    fuzz_arguments(&fuzz, argc, argv);
    return check_main("measured fuzz", tests);
}
