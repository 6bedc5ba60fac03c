/* Quantities as people write them: what is read, what is refused, what is printed. */
#include "models/units.h"
#include "tests/check.h"

#include <locale.h>
#include <math.h>
#include <string.h>

static void
rates_are_read(void)
{
    static const struct {
        const char *name;
        double want_bytes_per_s;
    } rows[] = {
        { "400 Gbit/s", 50e9 }, /* / 8 */
        { "400 Gb/s", 50e9 },
        { "400Gbps", 50e9 },
        { "25 GB/s", 25e9 },
        { "  25   GB/s ", 25e9 },
        { "1 GiB/s", 1073741824.0 },
        { "1 Gibit/s", 134217728.0 }, /* 2^30 / 8 */
        { "100 Mbit/s", 12.5e6 },
        { "8 kbit/s", 1000 },
        { "8 Kb/s", 1000 },
        { "3.2 TB/s", 3.2e12 },
        { ".5 GB/s", 0.5e9 },
        { "1e3 MB/s", 1e9 },
        { "7 B/s", 7 },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        double got = 0;

        CHECK_ROW(&rows[i], tt_parse_rate(rows[i].name, &got, &error));
        CHECK_NO_ERROR(error);
        CHECK(fabs(got / rows[i].want_bytes_per_s - 1) < 1e-15, "%s: %.17g", rows[i].name, got);
    }
}

static void
times_and_sizes_are_read(void)
{
    static const struct {
        const char *name;
        TtTime want_ps;
    } times[] = {
        { "0 s", 0 },          { "1.5 us", 1500000 },    { "300 ns", 300000 },       { "1 ps", 1 },
        { "2ms", 2000000000 }, { "1 s", 1000000000000 }, { "4 \302\265s", 4000000 },
    };
    static const struct {
        const char *name;
        guint64 want_bytes;
    } sizes[] = {
        { "0 B", 0 },
        { "64 KiB", 65536 },
        { "64 KB", 64000 },
        { "1.5 KiB", 1536 },
        { "16777217 B", 16777217 }, /* would not survive a float */
        { "18446744073709551615 B", G_MAXUINT64 },
        { "2 MiB", 2097152 },
        { "1 TB", 1000000000000 },
    };
    GError *error = NULL;

    for (guint i = 0; i < G_N_ELEMENTS(times); i++) {
        double seconds = -1;

        CHECK_ROW(&times[i], tt_parse_seconds(times[i].name, &seconds, &error));
        CHECK_NO_ERROR(error);
        CHECK_ROW(&times[i], tt_seconds_to_ps(seconds) == times[i].want_ps);
    }
    for (guint i = 0; i < G_N_ELEMENTS(sizes); i++) {
        guint64 bytes = 1;

        CHECK_ROW(&sizes[i], tt_parse_bytes(sizes[i].name, &bytes, &error));
        CHECK_NO_ERROR(error);
        CHECK_ROW(&sizes[i], bytes == sizes[i].want_bytes);
    }
}

static void
cli_sizes_follow_nccl_tests(void)
{
    static const struct {
        const char *name;
        guint64 want_bytes;
    } rows[] = {
        { "8", 8 },           { "0", 0 },
        { "8B", 8 },          { "1K", 1024 },
        { "1k", 1024 },       { "1KB", 1024 },
        { "1KiB", 1024 },     { "64M", 67108864 },
        { "8G", 8589934592 }, { "1T", 1099511627776 },
        { "1.5M", 1572864 },  { "15E", 17293822569102704640u }, /* 15 * 2^60 */
    };
    static const char *const refused[] = { "",
                                           "K",
                                           "-1",
                                           "1X",
                                           "1KK",
                                           "1 iB",
                                           "1Ki",
                                           "1e99",
                                           "16E",
                                           "0x10",
                                           "nan",
                                           "inf",
                                           "1.3",
                                           "1K 2",
                                           "18446744073709551616",
                                           "99999999999999999999G" };
    GError *error = NULL;

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        guint64 bytes = 1;

        CHECK_ROW(&rows[i], tt_parse_cli_size(rows[i].name, &bytes, &error));
        CHECK_NO_ERROR(error);
        CHECK(bytes == rows[i].want_bytes, "%s: %" G_GUINT64_FORMAT, rows[i].name, bytes);
    }
    for (guint i = 0; i < G_N_ELEMENTS(refused); i++) {
        guint64 bytes = 42;

        CHECK(!tt_parse_cli_size(refused[i], &bytes, &error), "\"%s\"", refused[i]);
        CHECK_ERROR(error, TT_UNITS_ERROR, TT_UNITS_ERROR_PARSE, refused[i]);
        CHECK(bytes == 42, "\"%s\": written on failure", refused[i]);
    }
}

typedef enum { RATE, SECONDS, BYTES } What;

static gboolean
parse(What what, const char *text, GError **error)
{
    double value;
    guint64 bytes;

    return what == RATE      ? tt_parse_rate(text, &value, error)
           : what == SECONDS ? tt_parse_seconds(text, &value, error)
                             : tt_parse_bytes(text, &bytes, error);
}

static void
rubbish_is_refused(void)
{
    static const struct {
        const char *name;
        What what;
        const char *words;
    } rows[] = {
        { "400", RATE, "needs a unit (one of bit/s" },
        { "1.5", SECONDS, "needs a unit (one of ps, ns, us, ms, s)" },
        { "64", BYTES, "needs a unit (one of B, KB" },
        { "400 Gbit", RATE, "unknown unit \"Gbit\" of a rate" },
        { "400 GBps", RATE, "unknown unit" },
        { "400 furlong", RATE, "unknown unit \"furlong\"" },
        { "400 s", RATE, "unknown unit" },
        { "1 GB/s", SECONDS, "unknown unit" },
        { "1 m s", SECONDS, "unknown unit" },
        { "1 us 2", SECONDS, "unknown unit" },
        { "1 KiBit", BYTES, "unknown unit" },
        { "1,5 us", SECONDS, "unknown unit" }, /* the other half of the world's comma */
        { "-1 us", SECONDS, "is negative" },
        { "-400 Gbit/s", RATE, "is negative" },
        { "0 GB/s", RATE, "must be more than 0" },
        { "nan us", SECONDS, "does not start with a number" },
        { "inf GB/s", RATE, "does not start with a number" },
        { "infinity s", SECONDS, "does not start with a number" },
        { "+1 us", SECONDS, "does not start with a number" },
        { "0x10 us", SECONDS, "does not start with a number" },
        { "", RATE, "does not start with a number" },
        { "   ", RATE, "does not start with a number" },
        { ". us", SECONDS, "does not start with a number" },
        { "GB/s", RATE, "does not start with a number" },
        { "1e999 s", SECONDS, "is too large" },
        { "1e308 PB/s", RATE, "is too large" },
        { "0.3 B", BYTES, "is not a whole number of bytes" },
        { "18446744073709551616 B", BYTES, "is too large" },
        { "17179869184 GiB", BYTES, "is too large" }, /* 2^34 * 2^30 = 2^64 */
        { "1e30 TB", BYTES, "is too large" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;

        CHECK_ROW(&rows[i], !parse(rows[i].what, rows[i].name, &error));
        CHECK_ERROR(error, TT_UNITS_ERROR, TT_UNITS_ERROR_PARSE, rows[i].words);
    }
}

static void
messages_stay_short(void)
{
    g_autofree char *long_text = g_strnfill(100000, 'z');
    GError *error = NULL;

    memcpy(long_text, "1 \n\033[2J", 7);
    CHECK(!tt_parse_rate(long_text, &(double){ 0 }, &error), "accepted");
    CHECK(strlen(error->message) < 400, "%zu bytes", strlen(error->message));
    CHECK(!strpbrk(error->message, "\n\033"), "control characters in a message");
    g_clear_error(&error);
}

#define CHECK_TEXT(expression, want)                                                               \
    do {                                                                                           \
        g_autofree char *got = expression;                                                         \
        CHECK(strcmp(got, want) == 0, "wanted \"%s\", got \"%s\"", want, got);                     \
    } while (0)

static void
printed_as_people_write(void)
{
    CHECK_TEXT(tt_format_bytes(0), "0 B");
    CHECK_TEXT(tt_format_bytes(12), "12 B");
    CHECK_TEXT(tt_format_bytes(1023), "1023 B");
    CHECK_TEXT(tt_format_bytes(1536), "1.5 KiB");
    CHECK_TEXT(tt_format_bytes(1048576), "1 MiB");
    CHECK_TEXT(tt_format_bytes(1000000), "976.56 KiB"); /* 1e6 / 1024 = 976.5625 */
    CHECK_TEXT(tt_format_bytes(G_MAXUINT64), "16 EiB");
    CHECK_TEXT(tt_format_rate(25e9), "25 GB/s");
    CHECK_TEXT(tt_format_rate(370.8e9), "371 GB/s");
    CHECK_TEXT(tt_format_rate(12.125e9), "12.1 GB/s");
    CHECK_TEXT(tt_format_rate(999.6e6), "1 GB/s");
    CHECK_TEXT(tt_format_rate(999.4e6), "999 MB/s");
    CHECK_TEXT(tt_format_rate(0), "0 B/s");
    CHECK_TEXT(tt_format_rate(INFINITY), "inf");
    CHECK_TEXT(tt_format_seconds(0), "0 s");
    CHECK_TEXT(tt_format_seconds(1.5e-6), "1.5 us");
    CHECK_TEXT(tt_format_seconds(12.34e-3), "12.3 ms");
    CHECK_TEXT(tt_format_seconds(1e-12), "1 ps");
    CHECK_TEXT(tt_format_seconds(0.9996e-6), "1 us");
    CHECK_TEXT(tt_format_seconds(7200), "7200 s");
}

/* What is printed with three digits reads back within half of the last one: 0.5 %. */
static void
round_trips(void)
{
    for (double value = 1e-11; value < 1e4; value *= 1.37) {
        g_autofree char *time = tt_format_seconds(value), *rate = tt_format_rate(value * 1e12);
        double seconds = 0, bytes_per_s = 0;

        CHECK(tt_parse_seconds(time, &seconds, NULL), "%s", time);
        CHECK(fabs(seconds / value - 1) < 0.00501, "%g -> %s", value, time);
        CHECK(tt_parse_rate(rate, &bytes_per_s, NULL), "%s", rate);
        CHECK(fabs(bytes_per_s / (value * 1e12) - 1) < 0.00501, "%g -> %s", value, rate);
    }
    for (guint shift = 0; shift < 60; shift++) {
        guint64 bytes = (guint64)1 << shift, back = 0;
        g_autofree char *text = tt_format_bytes(bytes);

        if (shift < 50) /* the parser stops at PiB */
            CHECK(tt_parse_bytes(text, &back, NULL) && back == bytes, "%s", text);
        CHECK(tt_parse_cli_size(text, &back, NULL) == FALSE || back == bytes, "%s", text);
    }
}

/* A comma locale must change neither side. Skipped where none is installed. */
static void
locale_does_not_matter(void)
{
    double seconds = 0;

    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8"))
        return;
    CHECK(tt_parse_seconds("1.5 us", &seconds, NULL) && seconds == 1.5e-6, "%g", seconds);
    CHECK_TEXT(tt_format_seconds(1.5e-6), "1.5 us");
    setlocale(LC_ALL, "C");
}

static void
picoseconds_round_and_saturate(void)
{
    CHECK(tt_seconds_to_ps(1.4e-12) == 1, "down");
    CHECK(tt_seconds_to_ps(1.6e-12) == 2, "up");
    CHECK(tt_seconds_to_ps(1e9) == TT_TIME_MAX, "saturates");
    CHECK(tt_transfer_ps(1000000, 50e9) == 20000000, "1 MB at 50 GB/s = 20 us");
    CHECK(tt_transfer_ps(1000000, INFINITY) == 0, "infinite rate");
}

int
main(void)
{
    CU_TestInfo tests[] = {
        { "rates are read", rates_are_read },
        { "times and sizes are read", times_and_sizes_are_read },
        { "cli sizes follow nccl-tests", cli_sizes_follow_nccl_tests },
        { "rubbish is refused", rubbish_is_refused },
        { "messages stay short", messages_stay_short },
        { "printed as people write", printed_as_people_write },
        { "round trips", round_trips },
        { "locale does not matter", locale_does_not_matter },
        { "picoseconds round and saturate", picoseconds_round_and_saturate },
        CU_TEST_INFO_NULL,
    };

    return check_main("units", tests);
}
