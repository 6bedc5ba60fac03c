#include "exec/pmi.h"
#include "exec/exec.h"
#include "tests/check.h"
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* All answers of a process manager lie ready; what was asked is compared afterwards. */
static const struct {
    const char *name, *mine, *answers, *asked, *want; /* want: "!words of the error" */
} rows[] = {
    { "rank 0", "h,7",
      "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\ncmd=my_kvsname kvsname=k_0\n"
      "cmd=put_result rc=0\ncmd=barrier_out\ncmd=get_result rc=0 value=h,7\ncmd=finalize_ack\n",
      "cmd=init pmi_version=1 pmi_subversion=1\ncmd=get_my_kvsname\n"
      "cmd=put kvsname=k_0 key=tutti-root value=h,7\ncmd=barrier_in\n"
      "cmd=get kvsname=k_0 key=tutti-root\ncmd=finalize\n",
      "h,7" },
    { "another rank", NULL,
      "cmd=response_to_init\ncmd=my_kvsname kvsname=k_0\ncmd=barrier_out\n"
      "cmd=get_result rc=0 value=h,7\ncmd=finalize_ack\n",
      "cmd=init pmi_version=1 pmi_subversion=1\ncmd=get_my_kvsname\ncmd=barrier_in\n"
      "cmd=get kvsname=k_0 key=tutti-root\ncmd=finalize\n",
      "h,7" },
    { "nothing there", NULL,
      "cmd=response_to_init\ncmd=my_kvsname kvsname=k\ncmd=barrier_out\n"
      "cmd=get_result rc=-1 msg=unknown\ncmd=finalize_ack\n",
      NULL, "!does not know where rank 0 is" },
    { "another answer", NULL, "cmd=abort\n", NULL,
      "!did not answer \"response_to_init\" (cmd=abort)" },
    { "no answer in time", NULL, "cmd=resp", NULL, "!did not answer \"response_to_init\"" },
};

static void
test_exchange(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        gint64 deadline_us = g_get_monotonic_time() + 200000;
        g_autoptr(GError) error = NULL;
        g_autofree char *got = NULL;
        char asked[1000] = "";
        gssize bytes = (gssize)strlen(rows[i].answers);
        int ends[2];

        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
        CHECK(write(ends[1], rows[i].answers, (gsize)bytes) == bytes, "%s", rows[i].name);
        got = tt_pmi_exchange(ends[0], rows[i].mine, deadline_us, &error);
        CHECK(read(ends[1], asked, sizeof asked - 1) > 0, "%s", rows[i].name);
        if (rows[i].asked)
            CHECK(g_str_equal(asked, rows[i].asked), "%s: asked %s", rows[i].name, asked);
        if (*rows[i].want == '!')
            CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM, rows[i].want + 1);
        else
            CHECK(!g_strcmp0(got, rows[i].want), "%s: %s", rows[i].name, got);
        close(ends[0]);
        close(ends[1]);
    }
}

int
main(void)
{
    CU_TestInfo tests[] = { { "exchange", test_exchange }, CU_TEST_INFO_NULL };

    return check_main("pmi", tests);
}
