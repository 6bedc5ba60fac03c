/* Profiles: the cost curve, files out and in again, and files that are wrong. */
#include "models/profile.h"
#include "algos/schedule.h"
#include "models/profile_file.h"
#include "tests/check.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

/* 1 MB: 10 us + 100 ps a byte; 4 MB: 20 us + 300 ps; 2 MB is halfway in the logarithm. */
static void
costs_are_linear_in_the_logarithm(void)
{
    static const struct {
        const char *name;
        double footprint;
        guint64 bytes;
        double want_s;
    } rows[] = {
        { "at the first point", 1e6, 1000, 10e-6 + 1000 * 100e-12 },
        { "flat below it", 1, 1000, 10e-6 + 1000 * 100e-12 },
        { "halfway", 2e6, 1000, 15e-6 + 1000 * 200e-12 },
        { "a quarter of the way", 1e6 * M_SQRT2, 0, 12.5e-6 },
        { "at a middle point", 4e6, 1000, 20e-6 + 1000 * 300e-12 },
        { "flat beyond the last", 1e12, 1000, 20e-6 + 1000 * 500e-12 },
        { "no footprint", 0, 0, 10e-6 },
    };
    g_autoptr(TtProfile) profile = tt_profile_ideal();

    profile->op[3] = (TtOpCost){ .n = 3,
                                 .footprint_bytes = { 1e6, 4e6, 16e6 },
                                 .fixed_s = { 10e-6, 20e-6, 20e-6 },
                                 .per_byte_s = { 100e-12, 300e-12, 500e-12 } };
    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        double got_s = tt_profile_op_s(profile, 3, rows[r].bytes, rows[r].footprint);

        CHECK(fabs(got_s - rows[r].want_s) < 1e-15, "%s: %g", rows[r].name, got_s);
    }
    CU_ASSERT_EQUAL(tt_profile_op_s(profile, 2, 1 << 30, 1e9), 0); /* no points: free */
}

/* 1 KiB messages in one round were measured at a footprint of 2 KiB, whatever the buffers are. */
static void
short_messages_are_looked_up_by_length(void)
{
    TtProfile profile = { .uncut_bytes = 4096 };

    CU_ASSERT_EQUAL(tt_profile_footprint(&profile, 1e6, 1, 1024), 2048);
    CU_ASSERT_EQUAL(tt_profile_footprint(&profile, 1500, 1, 1024), 1500);
    CU_ASSERT_EQUAL(tt_profile_footprint(&profile, 1e6, 2, 1024), 1e6);
    CU_ASSERT_EQUAL(tt_profile_footprint(&profile, 1e6, 1, 4097), 1e6);
}

/* models/ may not see algos/, so the names of the steps stand twice. */
static void
steps_are_called_as_in_plans(void)
{
    for (guint op = 0; op < TT_N_OPS; op++)
        CU_ASSERT_STRING_EQUAL(tt_profile_op_names[op], tt_op_name(op));
}

/* The state is told by its flag latency, within a factor of 1.5. */
static void
states_are_told_by_their_flag(void)
{
    TtProfile far = { .latency_s = 200e-9 }, near = { .latency_s = 50e-9, .next = &far };

    CU_ASSERT_PTR_EQUAL(tt_profile_state(&near, 60e-9), &near);
    CU_ASSERT_PTR_EQUAL(tt_profile_state(&near, 150e-9), &far);
    CU_ASSERT_PTR_NULL(tt_profile_state(&near, 100e-9));
    CU_ASSERT_PTR_NULL(tt_profile_state(&near, 0));
}

static gboolean
same(const TtProfile *a, const TtProfile *b)
{
    gboolean good = a->covers_memory == b->covers_memory && a->lane_pushes == b->lane_pushes &&
                    a->workers_per_rank == b->workers_per_rank && a->cores == b->cores &&
                    a->uncut_bytes == b->uncut_bytes && a->direct_bytes == b->direct_bytes &&
                    a->direct_crowded_bytes == b->direct_crowded_bytes &&
                    fabs(a->latency_s - b->latency_s) <= 1e-13 * a->latency_s &&
                    fabs(a->credit_s - b->credit_s) <= 1e-13 * a->credit_s &&
                    fabs(a->start_s - b->start_s) <= 1e-13 * a->start_s &&
                    fabs(a->switch_s - b->switch_s) <= 1e-13 * a->switch_s;

    if (a->next || b->next)
        good = good && a->next && b->next && same(a->next, b->next);
    for (guint op = 0; op < TT_PROFILE_OPS; op++) {
        good = good && a->op[op].n == b->op[op].n;
        for (guint i = 0; good && i < a->op[op].n; i++)
            good =
                a->op[op].footprint_bytes[i] == b->op[op].footprint_bytes[i] &&
                fabs(a->op[op].fixed_s[i] - b->op[op].fixed_s[i]) <= 1e-13 * a->op[op].fixed_s[i] &&
                fabs(a->op[op].per_byte_s[i] - b->op[op].per_byte_s[i]) <=
                    1e-13 * a->op[op].per_byte_s[i];
    }
    return good;
}

static void
what_is_saved_is_read_again(void)
{
    g_autoptr(TtProfile) profile = tt_profile_open("tutti", NULL), again = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *dir = g_dir_make_tmp("tutti-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "mine.ini", NULL), *text = NULL;

    CU_ASSERT_PTR_NOT_NULL_FATAL(profile);
    CU_ASSERT(profile->lane_pushes && profile->covers_memory && profile->op[9].n == 3);
    CU_ASSERT(fabs(profile->latency_s - 150e-9) < 1e-20);
    profile->machine = g_strdup("a box; with [odd] = name\nand lines"); /* comes back on one line */
    profile->measured_at = g_strdup("2025-01-31");
    profile->conditions = g_strdup("8 ranks");
    profile->uncut_bytes = 131072;
    profile->direct_bytes = 2048;
    profile->direct_crowded_bytes = 4096;
    profile->latency_s = 1.0 / 3 * 1e-7; /* not a round number */
    profile->op[9].per_byte_s[1] = 1.0 / 7 * 1e-9;
    profile->cores = 12;
    profile->next = tt_profile_new_state(profile);
    profile->next->latency_s = 4 * profile->latency_s;
    profile->next->op[3] = profile->op[4];
    text = tt_profile_to_text(profile);
    CU_ASSERT_TRUE(g_file_set_contents(path, text, -1, &error));
    CHECK_NO_ERROR(error);
    again = tt_profile_open(path, &error);
    CHECK_NO_ERROR(error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(again);
    CU_ASSERT_TRUE(same(profile, again));
    CU_ASSERT_STRING_EQUAL(again->name, path);
    CU_ASSERT_STRING_EQUAL(again->machine, "a box; with [odd] = name and lines");
    CU_ASSERT_STRING_EQUAL(again->measured_at, "2025-01-31");
    CU_ASSERT_STRING_EQUAL(again->conditions, "8 ranks");
    g_remove(path);
    g_rmdir(dir);
}

#define OP "[profile]\n[op send]\nfootprint = 1 MiB; 2 MiB\n"

static void
wrong_files_are_named(void)
{
    static const struct {
        const char *name, *text, *words;
    } rows[] = {
        { "empty", "", "[profile]: is missing" },
        { "not an ini file",
          "\x7f"
          "ELF\x01\x02",
          "p.ini: " },
        { "key before any group", "latency = 1 us\n", "p.ini: " },
        { "unknown group", "[profile]\n[lanse]\n",
          "[lanse]: unknown group (one of: profile, lanes" },
        { "unknown key", "[profile]\n[times]\nlatancy = 1 us\n",
          "[times] latancy: unknown key (one of: latency" },
        { "no unit", "[profile]\n[times]\nlatency = 1\n", "[times] latency: " },
        { "negative", "[profile]\n[times]\nstart = -1 us\n", "[times] start: " },
        { "not a flag", "[profile]\n[lanes]\npush = 1\n", "[lanes] push: \"1\" must be yes or no" },
        { "not a count", "[profile]\n[lanes]\ncores = many\n",
          "must be a whole number, 0 .. 65535" },
        { "too many cores", "[profile]\n[lanes]\ncores = 65536\n",
          "must be a whole number, 0 .. 65535" },
        { "unknown kind", "[profile]\nkind = guessed\n",
          "must be spec, measured, fitted or assumed" },
        { "unknown step", "[profile]\n[op sned]\n", "[op sned]: unknown step (one of: nop, copy" },
        { "cut short", OP "fixed = 1 us; 2 us\n", "[op send] per_byte: is missing" },
        { "one value too few", OP "fixed = 1 us\n",
          "[op send] fixed: has 1 values, footprint has 2" },
        { "per byte of what", OP "fixed = 1 us; 1 us\nper_byte = 1 ps; 1 ps/B\n", "like 50 ps/B" },
        { "falling footprints",
          "[profile]\n[op send]\nfootprint = 2 MiB; 1 MiB\nfixed = 1 us; 1 us\nper_byte = 1 ps/B; "
          "1 ps/B\n",
          "[op send] footprint: value 2 must be larger" },
        { "zero footprint",
          "[profile]\n[op send]\nfootprint = 0 B\nfixed = 1 us\nper_byte = 1 ps/B\n",
          "[op send] footprint: value 1 must be larger" },
        { "too many points",
          "[profile]\n[op send]\nfootprint = "
          "1B;2B;3B;4B;5B;6B;7B;8B;9B;10B;11B;12B;13B;14B;15B;16B;17B;18B;"
          "19B;20B;21B;22B;23B;24B;25B;26B;27B;28B;29B;30B;31B;32B;33B;"
          "34B;35B;36B;37B;38B;39B;40B;41B;42B;43B;44B;45B;46B;47B;48B;"
          "49B;50B;51B;52B;53B;54B;55B;56B;57B;58B;59B;60B;61B;62B;63B;64B;65B\n",
          "has 65 values, at most 64" },
        { "a state that comes too early", "[profile]\n[state 3 times]\nlatency = 1 us\n",
          "state 2 comes before" },
        { "a state without a number", "[profile]\n[state times]\nlatency = 1 us\n",
          "numbered 2 .. 4" },
        { "a state with lanes", "[profile]\n[state 2 lanes]\ncores = 1\n", "only times and op" },
    };
    g_autofree char *dir = g_dir_make_tmp("tutti-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "p.ini", NULL);

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        g_autoptr(GError) error = NULL;

        CU_ASSERT_TRUE_FATAL(g_file_set_contents(path, rows[r].text, -1, NULL));
        CHECK_ROW(&rows[r], tt_profile_open(path, &error) == NULL);
        CHECK_ROW(&rows[r], !error || !strchr(error->message, '\n')); /* one line */
        CHECK_ERROR(error, TT_PROFILE_ERROR, TT_PROFILE_ERROR_FILE, rows[r].words);
    }
    g_remove(path);
    g_rmdir(dir);
}

static void
what_is_no_profile_is_refused(void)
{
    g_autoptr(GError) error = NULL;

    CU_ASSERT_PTR_NULL(tt_profile_open("titti", &error));
    CHECK_ERROR(error, TT_PROFILE_ERROR, TT_PROFILE_ERROR_USAGE, "one of: ideal, tutti, or a file");
    CU_ASSERT_PTR_NULL(tt_profile_open("./nothing-here.ini", &error));
    CHECK_ERROR(error, TT_PROFILE_ERROR, TT_PROFILE_ERROR_FILE, "nothing-here.ini");
    CU_ASSERT_PTR_NULL(tt_profile_open("/dev/zero", &error)); /* would never end */
    CHECK_ERROR(error, TT_PROFILE_ERROR, TT_PROFILE_ERROR_FILE, "regular file");
}

int
main(void)
{
    CU_TestInfo tests[] = {
        { "costs are linear in the logarithm", costs_are_linear_in_the_logarithm },
        { "short messages are looked up by length", short_messages_are_looked_up_by_length },
        { "steps are called as in plans", steps_are_called_as_in_plans },
        { "states are told by their flag", states_are_told_by_their_flag },
        { "what is saved is read again", what_is_saved_is_read_again },
        { "wrong files are named", wrong_files_are_named },
        { "what is no profile is refused", what_is_no_profile_is_refused },
        CU_TEST_INFO_NULL
    };

    return check_main("profile", tests);
}
