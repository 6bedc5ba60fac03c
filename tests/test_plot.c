/* Series from CSV, and plots drawn whole or not at all. */
#include "plots/plot.h"
#include "plots/series.h"
#include "tests/check.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

static char *folder;

static char *
in_folder(const char *name)
{
    return g_build_filename(folder, name, NULL);
}

static GPtrArray *
read_text(const char *text, GError **error)
{
    static const char *const columns[] = { "bytes", "time_us" };
    g_autofree char *path = in_folder("in.csv");
    GPtrArray *all;

    g_file_set_contents(path, text, -1, NULL);
    all = tt_series_read(path, columns, G_N_ELEMENTS(columns), error);
    g_unlink(path);
    return all;
}

static double
value(const GPtrArray *all, guint series, guint point, guint column)
{
    return g_array_index(((TtSeries *)all->pdata[series])->points, TtPoint, point).value[column];
}

/* Columns by name in any order, quotes, blank cells, sizes sorted. */
static void
reads_by_name(void)
{
    g_autoptr(GPtrArray) all = read_text("time_us,algorithm,limit,bytes\n"
                                         "4,ring,\"a, \"\"b\"\"\",16\n"
                                         "1,tree,,8\r\n"
                                         ",ring,x,8\n",
                                         NULL);

    CU_ASSERT_PTR_NOT_NULL_FATAL(all);
    CU_ASSERT_EQUAL_FATAL(all->len, 2);
    CU_ASSERT_STRING_EQUAL(((TtSeries *)all->pdata[0])->name, "ring");
    CU_ASSERT_EQUAL(value(all, 0, 0, 0), 8);
    CU_ASSERT_TRUE(isnan(value(all, 0, 0, 1)));
    CU_ASSERT_EQUAL(value(all, 0, 1, 1), 4);
    CU_ASSERT_EQUAL(value(all, 1, 0, 1), 1);
}

static void
bad_csv_is_named(void)
{
    static const struct {
        const char *name, *text, *words;
    } rows[] = {
        { "empty file", "", "no column" },
        { "missing column", "algorithm,bytes\nring,8\n", "no column \"time_us\"" },
        { "only a header", "algorithm,bytes,time_us\n", "no rows" },
        { "not a number", "algorithm,bytes,time_us\nring,8,1\nring,x8,1\n", "line 3" },
        { "short line", "algorithm,bytes,time_us\nring,8\n", "\"time_us\" is missing" },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GPtrArray) all = read_text(rows[r].text, &error);

        CHECK_ROW(&rows[r], all == NULL);
        CHECK_ERROR(error, TT_PLOT_ERROR, TT_PLOT_ERROR_FILE, rows[r].words);
    }
}

/* Protocols are lines of their own, and named only where they differ. */
static void
protocols_are_apart(void)
{
    g_autoptr(GPtrArray) all =
        read_text("algorithm,protocol,bytes,time_us\n"
                  "ring,ll,8,1\nring,simple,8,5\ntree,simple,8,2\nring,ll,16,3\n",
                  NULL);
    g_autoptr(GPtrArray) one = read_text("algorithm,protocol,bytes,time_us\n"
                                         "ring,simple,8,1\ntree,simple,8,5\n",
                                         NULL);

    CU_ASSERT_EQUAL_FATAL(all->len, 3);
    CU_ASSERT_STRING_EQUAL(((TtSeries *)all->pdata[0])->name, "ring ll");
    CU_ASSERT_EQUAL(((TtSeries *)all->pdata[0])->points->len, 2);
    CU_ASSERT_STRING_EQUAL(((TtSeries *)all->pdata[2])->name, "tree simple");
    CU_ASSERT_EQUAL_FATAL(one->len, 2);
    CU_ASSERT_STRING_EQUAL(((TtSeries *)one->pdata[1])->name, "tree");
}

/* The lower of both at every size, whoever has it. */
static void
lowest_is_the_envelope(void)
{
    g_autoptr(GPtrArray) all = read_text("algorithm,bytes,time_us\n"
                                         "a,8,1\na,16,5\nb,8,2\nb,16,3\nb,32,9\n",
                                         NULL);
    g_autoptr(TtSeries) lowest = tt_series_lowest(all, 1);

    CU_ASSERT_EQUAL_FATAL(lowest->points->len, 3);
    CU_ASSERT_EQUAL(g_array_index(lowest->points, TtPoint, 0).value[1], 1);
    CU_ASSERT_EQUAL(g_array_index(lowest->points, TtPoint, 1).value[1], 3);
    CU_ASSERT_EQUAL(g_array_index(lowest->points, TtPoint, 2).value[1], 9);
}

/* |-0.4|, 0.1, 0.2, 0.3: the median lies between 0.2 and 0.3, the 95th percentile at
 * place 0.95 * 3 = 2.85, so at 0.3 + 0.85 * 0.1. */
static void
magnitudes(void)
{
    g_autoptr(GPtrArray) all = read_text("algorithm,bytes,time_us\n"
                                         "a,8,-0.4\na,16,0.1\nb,8,0.2\nb,16,0.3\nb,32,\n",
                                         NULL);
    double median, p95;

    CU_ASSERT_EQUAL(tt_series_magnitudes(all, 1, &median, &p95), 4);
    CU_ASSERT_DOUBLE_EQUAL(median, 0.25, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(p95, 0.385, 1e-12);
}

static gboolean
begins_with(const char *name, const char *magic, gsize length)
{
    g_autofree char *path = in_folder(name), *text = NULL;
    gsize size;

    return g_file_get_contents(path, &text, &size, NULL) && size > 5000 &&
           memcmp(text, magic, length) == 0;
}

static guint
count_files(void)
{
    GDir *dir = g_dir_open(folder, 0, NULL);
    guint n = 0;

    while (g_dir_read_name(dir))
        n++;
    g_dir_close(dir);
    return n;
}

static void
draws_both_formats(void)
{
    g_autofree char *csv = in_folder("c.csv"), *prefix = in_folder("it's $a\"plot");
    g_autofree char *png = g_strdup_printf("%s.png", prefix),
                    *svg = g_strdup_printf("%s.svg", prefix);
    g_autoptr(GError) error = NULL;

    if (!tt_plot_available(NULL)) {
        printf("(no gnuplot: skipped) ");
        return;
    }
    g_file_set_contents(csv,
                        "algorithm,bytes,predicted_us,measured_us,error\n"
                        "ring,1024,2,2.5,-0.2\nring,1048576,200,180,0.111\ntree,1024,1,1,0\n",
                        -1, NULL);
    CU_ASSERT_TRUE(
        tt_plot_compare(csv, prefix, "a 'title' with \"quotes\"; `date` $(date)", &error));
    CHECK_NO_ERROR(error);
    CU_ASSERT_TRUE(begins_with("it's $a\"plot.png", "\x89PNG", 4));
    CU_ASSERT_TRUE(begins_with("it's $a\"plot.svg", "<?xml", 5));
    CU_ASSERT_EQUAL(count_files(), 3); /* and nothing temporary */
    g_file_set_contents(csv,
                        "algorithm,protocol,bytes,time_us,busbw_gbps\n"
                        "ring,ll,1024,2,0\nring,simple,1048576,200,10\n",
                        -1, NULL);
    CU_ASSERT_TRUE(tt_plot_predict(csv, prefix, "all", &error));
    CHECK_NO_ERROR(error);
    CU_ASSERT_TRUE(tt_plot_fastest(csv, prefix, "auto", &error));
    CHECK_NO_ERROR(error);
    CU_ASSERT_TRUE(tt_plot_nccl_choice(csv, prefix, "auto", &error));
    CHECK_NO_ERROR(error);
    CU_ASSERT_EQUAL(count_files(), 3);
    g_unlink(png);
    g_unlink(svg);
    g_unlink(csv);
}

static void
failure_leaves_nothing(void)
{
    g_autofree char *csv = in_folder("bad.csv"), *prefix = in_folder("none");
    g_autoptr(GError) error = NULL;

    if (!tt_plot_available(NULL))
        return;
    g_file_set_contents(csv, "algorithm,bytes\nring,1\n", -1, NULL);
    CU_ASSERT_FALSE(tt_plot_predict(csv, prefix, "t", &error));
    CHECK_ERROR(error, TT_PLOT_ERROR, TT_PLOT_ERROR_FILE, "time_us");
    CU_ASSERT_EQUAL(count_files(), 1);
    g_unlink(csv);
}

int
main(void)
{
    CU_TestInfo tests[] = {
        { "reads by name", reads_by_name },
        { "protocols are apart", protocols_are_apart },
        { "bad csv is named", bad_csv_is_named },
        { "lowest is the envelope", lowest_is_the_envelope },
        { "magnitudes", magnitudes },
        { "draws both formats", draws_both_formats },
        { "failure leaves nothing", failure_leaves_nothing },
        CU_TEST_INFO_NULL,
    };
    int code;

    folder = g_dir_make_tmp("tutti-plot-XXXXXX", NULL);
    code = check_main("plot", tests);
    g_rmdir(folder);
    g_free(folder);
    return code;
}
