/* test_nccl - names and versions of NCCL. */
#include "check.h"
#include "models/nccl.h"
#include <string.h>

static const struct {
    const char *name, *warning;
    guint want;
} versions[] = {
    { "2.27.7", NULL, 22707 },
    { "nccl-2.27.7", NULL, 22707 },
    { "NCCL 2.27.7", NULL, 22707 },
    { "v2.21.5-1", NULL, 22105 },
    { "2.26.2+cuda12.2", NULL, 22602 },
    { "2.27", NULL, 22707 },
    { "nccl-2.18", NULL, 21805 },
    { "22809", NULL, 22809 },
    { "2.18.3", "not among those read: taken as 2.18.5", 21805 },
    { "2.18.2", "taken as 2.18.1", 21801 },
    { "2.20.5", "taken as 2.20.3", 22003 },
    { "2.29.3", "taken as 2.29.2", 22902 },
    { "2.29.5", "taken as 2.29.7", 22907 },
    { "2.7.8", "older than what is known: taken as 2.18.1", 21801 },
    { "2.17", "older than what is known: taken as 2.18.1", 21801 },
    { "2.31", "newer than what is known: taken as 2.30.7", 23007 },
    { "2.30.9", "newer than what is known: taken as 2.30.7", 23007 },
    { "3.0.1", "newer than what is known: taken as 2.30.7", 23007 },
};

static void
versions_are_understood(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(versions); i++) {
        g_autofree char *warning = NULL;
        g_autoptr(GError) error = NULL;
        guint got = tt_nccl_version_parse(versions[i].name, &warning, &error);

        CHECK_NO_ERROR(error);
        CHECK(got == versions[i].want, "%s: got %u", versions[i].name, got);
        CHECK((warning == NULL) == (versions[i].warning == NULL) &&
                  (!warning || strstr(warning, versions[i].warning)),
              "%s: warning %s", versions[i].name, warning ? warning : "none");
    }
}

static void
rubbish_is_refused(void)
{
    static const char *const rubbish[] = { "",      "nccl",      "2",       "x",
                                           "2.",    "2.27.",     "2.27.7x", "-2.27",
                                           "2.100", "2.27.1000", "2..7",    "99999999999999.1" };

    for (guint i = 0; i < G_N_ELEMENTS(rubbish); i++) {
        GError *error = NULL;

        CHECK(tt_nccl_version_parse(rubbish[i], NULL, &error) == 0, "%s", rubbish[i]);
        CHECK_ERROR(error, TT_NCCL_ERROR, TT_NCCL_ERROR_USAGE, "is no NCCL version");
    }
}

static void
every_known_version_reads_back(void)
{
    for (guint i = 0; tt_nccl_versions[i]; i++) {
        g_autofree char *name = tt_nccl_version_name(tt_nccl_versions[i]), *warning = NULL;

        CHECK(tt_nccl_version_parse(name, &warning, NULL) == tt_nccl_versions[i] && !warning, "%s",
              name);
        CHECK(i == 0 || tt_nccl_versions[i - 1] < tt_nccl_versions[i], "%s", name);
    }
}

static void
names_are_those_of_the_logs(void)
{
    CHECK(g_str_equal(tt_nccl_algo_name(TT_NCCL_PAT), "PAT"), "PAT");
    CHECK(g_str_equal(tt_nccl_algo_name(TT_NCCL_NVLS), "NVLS"), "NVLS");
    CHECK(g_str_equal(tt_nccl_proto_name(TT_NCCL_SIMPLE), "Simple"), "Simple");
    CHECK(g_str_equal(tt_nccl_func_name(TT_NCCL_ALLREDUCE), "AllReduce"), "AllReduce");
    CHECK(g_str_equal(tt_nccl_path_name(TT_PATH_PXN), "PXN"), "PXN");
    CHECK(g_str_equal(tt_nccl_path_name(TT_PATH_DIS), "DIS"), "DIS");
    CHECK(g_str_equal(tt_nccl_pattern_name(TT_PATTERN_BALANCED_TREE), "BALANCED_TREE"), "tree");
    CHECK(g_str_equal(tt_nccl_pattern_name(0), "unknown"), "0");
    CHECK(g_str_equal(tt_nccl_path_name(99), "unknown"), "99");
}

int
main(void)
{
    CU_TestInfo tests[] = {
        { "versions are understood", versions_are_understood },
        { "rubbish is refused", rubbish_is_refused },
        { "every known version reads back", every_known_version_reads_back },
        { "names are those of the logs", names_are_those_of_the_logs },
        CU_TEST_INFO_NULL,
    };

    return check_main("nccl", tests);
}
