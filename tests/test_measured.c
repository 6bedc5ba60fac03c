/* Measurements: logs of all ages and states, -J files, this project's own; and the whole published folder. */
#include "models/measured_private.h"
#include "tests/check.h"

#include <math.h>
#include <string.h>

/* Without json-glib only text is read; what needs it is left out then. */
static gboolean
can_json(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) tables = tt_measured_parse("a.json", "{}", 2, &error);

    return !tables && !strstr(error->message, "json-glib");
}

static GPtrArray *
read_file(const char *folder, const char *name, GError **error)
{
    g_autofree char *path = g_build_filename(g_getenv("TT_SOURCE_DIR"), folder, name, NULL);

    return tt_measured_read(path, error);
}

/* --- samples ----------------------------------------------------------------------------------- */

typedef struct {
    const char *name;
    guint n_tables, table;
    const char *collective, *type, *gpu;
    guint ngpus, nnodes, gpus_per_node, version;
    int one_process;
    guint n_rows, n_in_place, row;
    guint64 bytes;
    double time_us, busbw_gbps; /* of that row */
    const char *skipped;        /* words one of the notes has; NULL: there is no note */
} Sample;

#define A100 "A100-SXM4-40GB"
static const Sample samples[] = {
    { "2016-nccl1.txt", 3, 2, "all_reduce", "int32", "Tesla P100-SXM2-16GB", 4, 1, 4, 0, -1, 1, 1,
      0, 10000000, 1611, 9.31, "collective is not stated" }, /* times were milliseconds then */
    { "2018-commented-ms.txt", 1, 0, "all_reduce", "float32", "GeForce RTX 2080 Ti", 2, 1, 2, 20400,
      1, 3, 3, 1, 524288, 102, 5.14, "2 rows of 0 bytes" },
    { "2019-error-quoted.txt", 1, 0, "all_reduce", "float32", "GeForce RTX 2080 Ti", 8, 1, 8, 0, 1,
      3, 3, 2, 32, 36.74, 0, NULL },
    { "2020-allgather-info.txt", 1, 0, "all_gather", "float32", A100, 8, 1, 8, 0, 1, 2, 2, 0, 32,
      35.03, 0, "2 rows of 0 bytes" },
    { "2023-mpi-prefix-efa.txt", 1, 0, "all_reduce", "float32", "NVIDIA " A100, 4, 2, 2, 21207, 0,
      3, 3, 0, 8, 87.96, 0, NULL },
    { "2023-two-runs.txt", 2, 0, "all_reduce", "float32", "NVIDIA " A100, 16, 2, 8, 21805, 0, 2, 2,
      1, 67108864, 1100, 114.39, "12 of 16 rank lines" },
    { "2023-two-runs.txt", 2, 1, "all_gather", "float32", "NVIDIA " A100, 16, 2, 8, 21805, 0, 2, 2,
      1, 67108864, 700, 89.88, NULL }, /* the second run repeats neither ranks nor version */
    { "2023-wrong-and-cut.txt", 1, 0, NULL, "float32", "NVIDIA GeForce RTX 4090", 2, 1, 2, 0, 1, 2,
      2, 1, 4096, 12.60, 0.33, "line 11: 2048 B: wrong results" },
    { "2023-wrong-and-cut.txt", 1, 0, NULL, "float32", "NVIDIA GeForce RTX 4090", 2, 1, 2, 0, 1, 2,
      2, 0, 1024, 12.03, 0.09, "4096 B cut short" },
    { "2024-interleaved.txt", 1, 0, "all_reduce", "float32", "NVIDIA GeForce RTX 4090", 2, 1, 2, 0,
      1, 4, 4, 1, 16, 16.82, 0, "line 17: not a row" },
    { "2024-repeats-types.txt", 2, 0, "broadcast", "float32", "Tesla T4", 4, 1, 4, 0, 1, 2, 2, 1,
      2048, 15, 0.14, NULL }, /* three cycles: the median */
    { "2024-repeats-types.txt", 2, 1, "broadcast", "float16", "Tesla T4", 4, 1, 4, 0, 1, 1, 1, 0,
      1024, 20, 0.05, NULL },
    { "2024-srun-no-ranks.txt", 1, 0, "all_reduce", "float32", NULL, 8, 0, 0, 22005, 0, 4, 4, 3,
      8388608, 280.4, 52.36, "8 by the ratio of busbw to algbw" },
    { "2025-rccl.txt", 1, 0, "all_reduce", "float32", "AMD Instinct MI350X", 2, 1, 2, 22707, 1, 2,
      2, 1, 2097152, 87.02, 24.10, NULL },
    { "2025-report.json", 1, 0, "all_reduce", "float32", "NVIDIA H100 80GB HBM3", 4, 2, 2, 22807, 0,
      1, 2, 0, 1048576, 60.5, 26.0, "results[1].out_of_place: 3 wrong" },
    { "2026-extra-columns.txt", 1, 0, "reduce_scatter", "float32", "NVIDIA H100 80GB HBM3", 2, 1, 2,
      23007, 0, 2, 2, 1, 2097152, 30.0, 34.95, NULL },
    { "2026-gh200.txt", 1, 0, "all_reduce", "float32", "NVIDIA GH200 120GB", 2, 2, 1, 23007, 0, 3,
      3, 2, 4194304, 476.28, 8.81, NULL }, /* with CRLF */
};

static void
check_sample(const Sample *s, const TtMeasured *m)
{
    const TtMeasuredRow *row;
    gboolean noted = FALSE;

    CHECK_ROW(s, g_strcmp0(m->collective, s->collective) == 0);
    CHECK_ROW(s, g_strcmp0(m->type, s->type) == 0);
    CHECK_ROW(s, g_strcmp0(m->gpu, s->gpu) == 0);
    CHECK(m->ngpus == s->ngpus && m->nnodes == s->nnodes && m->gpus_per_node == s->gpus_per_node,
          "%s: %u GPUs, %u x %u", s->name, m->ngpus, m->nnodes, m->gpus_per_node);
    CHECK(m->version_number == s->version, "%s: version %u", s->name, m->version_number);
    CHECK(m->one_process == s->one_process, "%s: one_process %d", s->name, m->one_process);
    CHECK(m->rows->len == s->n_rows && m->rows_in_place->len == s->n_in_place, "%s: %u and %u rows",
          s->name, m->rows->len, m->rows_in_place->len);
    if (s->row < m->rows->len) {
        row = &g_array_index(m->rows, TtMeasuredRow, s->row);
        CHECK(row->bytes == s->bytes && fabs(row->time_us - s->time_us) < 1e-6 &&
                  fabs(row->busbw_gbps - s->busbw_gbps) < 1e-6,
              "%s: %" G_GUINT64_FORMAT " B in %g us, %g GB/s", s->name, row->bytes, row->time_us,
              row->busbw_gbps);
    }
    for (guint i = 0; s->skipped && i < m->skipped->len; i++)
        noted |= strstr(m->skipped->pdata[i], s->skipped) != NULL;
    CHECK(s->skipped ? noted : m->skipped->len == 0, "%s: notes: %u, first: %s", s->name,
          m->skipped->len, m->skipped->len ? (char *)m->skipped->pdata[0] : "none");
}

static void
reads_samples(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(samples); i++) {
        const Sample *s = &samples[i];
        g_autoptr(GError) error = NULL;
        g_autoptr(GPtrArray) tables = NULL;

        if (g_str_has_suffix(s->name, ".json") && !can_json())
            continue;
        tables = read_file("tests/data/nccl-tests", s->name, &error);

        CHECK_NO_ERROR(error);
        CHECK(tables && tables->len == s->n_tables, "%s: %u tables", s->name,
              tables ? tables->len : 0);
        if (tables && s->table < tables->len) {
            const TtMeasured *m = tables->pdata[s->table];

            CHECK_ROW(s, m->table == s->table + 1);
            check_sample(s, m);
        }
    }
}

/* What is around the tables: environment, network, repeats, both places. */
static void
reads_what_is_around(void)
{
    g_autoptr(GPtrArray) efa = read_file("tests/data/nccl-tests", "2023-mpi-prefix-efa.txt", NULL);
    g_autoptr(GPtrArray) repeats =
        read_file("tests/data/nccl-tests", "2024-repeats-types.txt", NULL);
    g_autoptr(GPtrArray) roce = read_file("tests/data/nccl-tests", "2023-two-runs.txt", NULL);
    g_autoptr(GPtrArray) json = read_file("tests/data/nccl-tests", "2025-report.json", NULL);
    const TtMeasured *m = efa->pdata[0];
    const TtMeasuredRow *row;

    CU_ASSERT_STRING_EQUAL(m->proto, "simple");
    CU_ASSERT_STRING_EQUAL(tt_measured_env(m, "NCCL_NET_GDR_LEVEL"), "PHB");
    CU_ASSERT_STRING_EQUAL(m->inter, "EFA");
    CU_ASSERT_EQUAL(m->nics_per_node, 4);
    CU_ASSERT_EQUAL(m->n_iterations, 20);
    CU_ASSERT_EQUAL(m->hosts->len, 2);
    m = roce->pdata[1];
    CU_ASSERT_STRING_EQUAL(m->inter, "RoCE");
    CU_ASSERT_EQUAL(m->nics_per_node, 4);
    m = repeats->pdata[0];
    row = &g_array_index(m->rows, TtMeasuredRow, 0);
    CU_ASSERT_EQUAL(row->n_repeats, 3);
    CU_ASSERT_EQUAL(row->min_us, 12);
    CU_ASSERT_EQUAL(row->max_us, 16);
    CU_ASSERT_EQUAL(m->root, 0);
    if (!json)
        return;
    m = json->pdata[0];
    row = &g_array_index(m->rows, TtMeasuredRow, 0);
    CU_ASSERT_EQUAL(row->min_us, 55);
    CU_ASSERT_EQUAL(row->wrong, 0);
    CU_ASSERT_EQUAL(g_array_index(m->rows_in_place, TtMeasuredRow, 0).wrong,
                    -1); /* null: not checked */
    CU_ASSERT_STRING_EQUAL(m->algo, "Ring");
    CU_ASSERT_STRING_EQUAL(m->date, "2025-11-02 10:20:30");
}

/* --- small texts ------------------------------------------------------------------------------- */

#define ROW_8 "           8             2     float     sum      -1    10.00    0.00    0.00      0"
#define HEADER                                                                                     \
    "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"

static void
reads_odd_rows(void)
{
    static const struct {
        const char *name, *text;
        guint n_rows, n_in_place;
        guint64 bytes;
        double time_us;
    } rows[] = {
        { "no heading, with a root", ROW_8 "\n", 1, 0, 8, 10 },
        { "no heading, no root", "  16  4  float  sum  11.0 0.0 0.0 0  12.0 0.0 0.0 0\n", 1, 1, 16,
          11 },
        { "no newline at the end, complete", HEADER ROW_8, 1, 0, 8, 10 },
        { "a rank's prefix without a blank",
          "0:"
          "8 2 float sum -1 10.0 0.0 0.0 0\n",
          1, 0, 8, 10 },
        { "a host's prefix", "node-a: " ROW_8 "\n", 1, 0, 8, 10 },
        { "colours", "\033[32m" ROW_8 "\033[0m\n", 1, 0, 8, 10 },
        { "marked as code", ":mark:`8 2 float sum -1 10.0 0.0 0.0 0`\n", 1, 0, 8, 10 },
        { "N/A for wrong", "8 2 float sum -1 10.0 0.0 0.0 N/A\n", 1, 0, 8, 10 },
        { "only in place, the other left blank",
          "           8             2     float     sum      -1                                    "
          "10.00    "
          "0.00    0.00      0\n",
          0, 1, 8, 10 },
        { "bus bandwidth alone gives the time, one GPU by default",
          "1000000 250000 float none -1 N/A N/A 1.0 0\n", 1, 0, 1000000, 1000 },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GPtrArray) tables =
            tt_measured_parse("a.log", rows[i].text, strlen(rows[i].text), &error);
        const TtMeasured *m = tables ? tables->pdata[0] : NULL;
        const GArray *some = m ? (m->rows->len ? m->rows : m->rows_in_place) : NULL;

        CHECK(m && m->rows->len == rows[i].n_rows && m->rows_in_place->len == rows[i].n_in_place,
              "%s: %s", rows[i].name, error ? error->message : "other rows");
        CHECK_ROW(&rows[i], some && g_array_index(some, TtMeasuredRow, 0).bytes == rows[i].bytes);
        CHECK_ROW(&rows[i], some && fabs(g_array_index(some, TtMeasuredRow, 0).time_us -
                                         rows[i].time_us) < 1e-9);
    }
}

static void
refuses_what_is_none(void)
{
    static const struct {
        const char *name, *text, *words;
    } rows[] = {
        { "empty", "", "empty" },
        { "prose", "a letter\nof two lines\n", "no table of nccl-tests or rccl-tests" },
        { "a heading alone", HEADER, "no row with figures" },
        { "JSON cut off", "{ \"schema\": \"collective-measurement/1\", ", "not JSON" },
        { "JSON of something else", "{ \"a\": 1 }", "neither a measurement" },
        { "no rows", "{ \"schema\": \"collective-measurement/1\" }", "without \"rows\"" },
        { "not UTF-8", "{ \"\xff\": 1 }", "not UTF-8" },
        { "results that are none", "{ \"config\": {}, \"results\": [] }",
          "without a single result" },
    };

    for (guint i = 0; i < (can_json() ? G_N_ELEMENTS(rows) : 3); i++) {
        GError *error = NULL;
        g_autoptr(GPtrArray) tables =
            tt_measured_parse("a.log", rows[i].text, strlen(rows[i].text), &error);

        CHECK_ROW(&rows[i], tables == NULL);
        CHECK_ERROR(error, TT_MEASURED_ERROR, TT_MEASURED_ERROR_FILE, rows[i].words);
    }
}

static void
refuses_deep_json(void)
{
    GString *text = g_string_new("{ \"rows\": ");
    GError *error = NULL;
    g_autoptr(GPtrArray) tables = NULL;

    for (guint i = 0; can_json() && i < 200000; i++)
        g_string_append_c(text, '[');
    tables = tt_measured_parse("a.json", text->str, text->len, &error);
    CU_ASSERT_PTR_NULL(tables);
    CHECK_ERROR(error, TT_MEASURED_ERROR, TT_MEASURED_ERROR_FILE,
                can_json() ? "more than 64 deep" : "json-glib");
    g_string_free(text, TRUE);
}

/* --- names ------------------------------------------------------------------------------------- */

static void
knows_collectives(void)
{
    CU_ASSERT_STRING_EQUAL(tt_measured_collective_name("all_reduce_perf_mpi"), "all_reduce");
    CU_ASSERT_STRING_EQUAL(tt_measured_collective_name("AllGather"), "all_gather");
    CU_ASSERT_STRING_EQUAL(tt_measured_collective_name("reduce_scatter_perf"), "reduce_scatter");
    CU_ASSERT_STRING_EQUAL(tt_measured_collective_name("reduce_perf"), "reduce");
    CU_ASSERT_PTR_NULL(tt_measured_collective_name("latency"));
    CU_ASSERT_EQUAL(tt_measured_busbw_factor("all_reduce", 4), 1.5);
    CU_ASSERT_EQUAL(tt_measured_busbw_factor("all_gather", 4), 0.75);
    CU_ASSERT_EQUAL(tt_measured_busbw_factor("broadcast", 4), 1);
}

static void
knows_versions(void)
{
    static const struct {
        const char *name;
        guint want;
    } rows[] = {
        { "2.18.5+cuda12.2", 21805 },
        { "RCCL 2.22.3", 22203 },
        { "2.4", 20400 },
        { "2.30", 23000 },
        { "none", 0 },
        { "", 0 },
        { "999999999999.1.1", 9990101 },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(TtMeasured) m = tt_measured_new("a.log");

        tt_measured_set_version(m, rows[i].name);
        CHECK(m->version_number == rows[i].want, "%s: %u", rows[i].name, m->version_number);
    }
}

/* --- the published folder ---------------------------------------------------------------------- */

/* bench/measurements/README.md says how many there are: 156 files, 4650 rows. */
static void
reads_the_published_files(void)
{
    g_autofree char *folder =
        g_build_filename(g_getenv("TT_SOURCE_DIR"), "bench/measurements", NULL);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    guint n_files = 0, n_rows = 0, n_anomalous = 0;
    const char *name;

    while (dir && can_json() && (name = g_dir_read_name(dir))) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GPtrArray) tables = NULL;
        const TtMeasured *m;

        if (!g_str_has_suffix(name, ".json"))
            continue;
        tables = read_file("bench/measurements", name, &error);
        CHECK_NO_ERROR(error);
        CU_ASSERT_PTR_NOT_NULL_FATAL(tables);
        m = tables->pdata[0];
        n_files++;
        n_rows += m->rows->len + m->rows_in_place->len;
        n_anomalous += m->anomalous;
        CHECK(m->collective && m->machine && m->gpu && m->quality, "%s lacks facts", name);
        CHECK(m->ngpus == m->nnodes * m->gpus_per_node, "%s: %u GPUs", name, m->ngpus);
    }
    if (!can_json())
        return;
    CHECK(n_files == 156, "%u files", n_files);
    CHECK(n_rows == 4650 - 10, "%u rows", n_rows); /* 7 of wrong results, 3 of another tool */
    CHECK(n_anomalous == 11, "%u anomalous", n_anomalous);
}

int
main(void)
{
    CU_TestInfo tests[] = { { "samples of logs and reports", reads_samples },
                            { "environment, network, repeats", reads_what_is_around },
                            { "odd rows", reads_odd_rows },
                            { "what is none is refused", refuses_what_is_none },
                            { "deep JSON is refused", refuses_deep_json },
                            { "collectives", knows_collectives },
                            { "versions", knows_versions },
                            { "all published files", reads_the_published_files },
                            CU_TEST_INFO_NULL };

    return check_main("measured", tests);
}
