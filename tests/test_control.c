/* Processes that have met talk and leave; over a unix socket, 127.0.0.1 and ::1. */
#include "tests/control_check.h"
#include <poll.h>
#include <signal.h>

#define BIG (9u << 20) /* more than sockets take */

static int
gather_part(guint process, const TtLaunch *launch, Result *result)
{
    g_autoptr(TtControl) control = NULL;
    guint first, n;

    if (process == 0)
        g_usleep(100000); /* the others come first and call again */
    control = open_here(launch, "sesame", 20, result);
    MUST(control);
    MUST(tt_control_process(control) == process);
    MUST(tt_control_n_processes(control) == 4);
    tt_control_ranks(control, 3, &first, &n);
    MUST(first == 3 && n == 1 && tt_control_process_of(control, 2) == 2);
    MUST(g_str_has_prefix(tt_control_name(control, 3), "rank 3"));
    for (guint round = 0; round < 20; round++) {
        gsize bytes = round == 3 ? BIG / 8 : round * process;
        g_autofree guint8 *data = g_malloc(bytes + 1);
        g_autoptr(GBytes) mine = NULL;
        g_autoptr(GPtrArray) all = NULL;

        memset(data, (int)(round + process), bytes + 1);
        mine = g_bytes_new(data, bytes);
        all = tt_control_gather(control, mine, 20, NULL);
        MUST(all && all->len == 4);
        for (guint i = 0; i < 4; i++) {
            gsize size;
            const guint8 *blob = g_bytes_get_data(all->pdata[i], &size);

            MUST(size == (round == 3 ? BIG / 8 : round * i));
            MUST(!size || (blob[0] == round + i && blob[size - 1] == round + i));
            MUST(((gsize)blob & 15) == 0);
        }
    }
    return 0;
}

static void
test_gather(void)
{
    for (Where where = UNIX; where <= (has_ipv6() ? IPV6 : IPV4); where++) {
        g_auto(TtLaunch) launch = launch_at(where, 4);
        Result results[4];

        run_all(4, &launch, gather_part, results);
        check_all(results, 4, where_names[where]);
    }
}

/* Everyone sends more than the sockets hold before anyone receives. */
static int
big_part(guint process, const TtLaunch *launch, Result *result)
{
    g_autoptr(TtControl) control = open_here(launch, NULL, 20, result);
    g_autofree guint8 *data = g_malloc(BIG);
    guint n_others = process ? 1 : 2;
    TtControlMessage message;

    MUST(control);
    memset(data, (int)process + 1, BIG);
    for (guint i = 0; i < 3; i++)
        for (guint to = process ? 0 : 1; to <= (process ? 0 : n_others); to++)
            MUST(tt_control_send(control, to, 100 + i, data, i == 1 ? 0 : BIG));
    for (guint i = 0, kinds[3] = { 0 }; i < 3 * n_others; i++) {
        struct pollfd one = { tt_control_fd(control), POLLIN, 0 };

        while (!tt_control_receive(control, 0, &message)) /* as one does that polls others too */
            MUST(poll(&one, 1, 20000) == 1);
        MUST(message.kind == 100 + kinds[message.process]++);
        MUST(message.bytes == (message.kind == 101 ? 0 : BIG));
        MUST(((gsize)message.data & 15) == 0);
        MUST(!message.bytes || (message.data[0] == message.process + 1 &&
                                message.data[BIG - 1] == message.process + 1));
    }
    /* the last to leave is the root; what it kept arrives all the same */
    if (process == 0)
        MUST(tt_control_send(control, 1, 7, data, BIG) &&
             tt_control_send(control, 2, 7, data, BIG));
    while (process) {
        MUST(tt_control_receive(control, 20000, &message));
        if (message.kind == TT_CONTROL_LOST)
            break;
        MUST(message.kind == 7 && message.bytes == BIG);
        n_others = 0;
    }
    MUST(!process || n_others == 0);
    return 0;
}

static void
test_big(void)
{
    for (Where where = UNIX; where <= IPV4; where++) {
        g_auto(TtLaunch) launch = launch_at(where, 3);
        Result results[3];

        run_all(3, &launch, big_part, results);
        check_all(results, 3, where_names[where]);
    }
}

/* A range of ranks per process, in any order. */
static int
ranges_part(guint process, const TtLaunch *launch, Result *result)
{
    static const guint firsts[] = { 0, 6, 2 }, ns[] = { 2, 1, 4 }, order[] = { 0, 2, 1 };
    g_autoptr(TtControl) control = NULL;
    TtLaunch own = *launch;

    own.first_rank = firsts[process];
    own.n_local = ns[process];
    control = open_here(&own, NULL, 20, result);
    MUST(control);
    MUST(tt_control_process(control) == order[process] && tt_control_n_processes(control) == 3);
    MUST(tt_control_process_of(control, 5) == 1 && tt_control_process_of(control, 6) == 2);
    return 0;
}

static void
test_ranges(void)
{
    g_auto(TtLaunch) launch = launch_at(UNIX, 7);
    Result results[3];

    run_all(3, &launch, ranges_part, results);
    check_all(results, 3, "ranges");
}

/* ---- those who leave ---- */

static int
lost_part(guint process, const TtLaunch *launch, Result *result)
{
    g_autoptr(TtControl) control = open_here(launch, NULL, 20, result);
    TtControlMessage message;
    guint n_lost = 0, n_words = 0;

    MUST(control);
    if (process == 2) { /* says something and dies */
        MUST(tt_control_send(control, 0, 5, "last words", 10));
        raise(SIGKILL);
    }
    if (process == 1) { /* stays until the root leaves */
        MUST(tt_control_receive(control, 20000, &message));
        MUST(message.kind == TT_CONTROL_LOST && message.process == 0);
        MUST(!tt_control_send(control, 0, 1, "x", 1));
        MUST(!tt_control_receive(control, 50, &message));
        return 0;
    }
    while (!n_lost) {
        MUST(tt_control_receive(control, 20000, &message));
        MUST(message.process == 2);
        if (message.kind == TT_CONTROL_LOST)
            n_lost++;
        else
            n_words += message.bytes == 10 && !memcmp(message.data, "last words", 10);
    }
    MUST(n_words == 1);
    MUST(!tt_control_receive(control, 50, &message)); /* said once */
    MUST(!tt_control_send(control, 2, 1, "x", 1));
    return 0;
}

static void
test_lost(void)
{
    for (Where where = UNIX; where <= IPV4; where++) {
        g_auto(TtLaunch) launch = launch_at(where, 3);
        Result results[3];

        run_all(3, &launch, lost_part, results);
        check_all(results, 2, where_names[where]);
        CHECK(results[2].line == -1, "process 2 is dead");
    }
}

static int
lost_in_gather_part(guint process, const TtLaunch *launch, Result *result)
{
    g_autoptr(TtControl) control = open_here(launch, NULL, 20, result);
    g_autoptr(GBytes) mine = g_bytes_new("x", 1);
    g_autoptr(GPtrArray) all = NULL;
    g_autoptr(GError) error = NULL;

    MUST(control);
    if (process == 2)
        return 0;
    all = tt_control_gather(control, mine, 20, &error);
    MUST(!all && error && error->code == TT_EXEC_ERROR_DEAD);
    MUST(strstr(error->message, "rank 2"));
    return 0;
}

static void
test_lost_in_gather(void)
{
    g_auto(TtLaunch) launch = launch_at(UNIX, 3);
    Result results[3];

    run_all(3, &launch, lost_in_gather_part, results);
    check_all(results, 3, "gather");
}

static void
test_alone(void)
{
    TtLaunch launch = { .source = "fork", .n_local = 4, .n_ranks = 4, .pmi_fd = -1 };
    TtControlOptions options = { 0 };
    g_autoptr(TtControl) control = tt_control_open(&launch, &options, NULL);
    g_autoptr(GBytes) mine = g_bytes_new_static("x", 1);
    g_autoptr(GPtrArray) all = NULL;
    TtControlMessage message;
    g_autofree char *id = tt_control_host_id(), *again = tt_control_host_id();

    CHECK(control && tt_control_n_processes(control) == 1, "one process meets nobody");
    all = tt_control_gather(control, mine, 1, NULL);
    CHECK(all && all->len == 1, "its own");
    CHECK(!tt_control_receive(control, 0, &message), "and hears nothing");
    CHECK(*id && g_str_equal(id, again) && !strchr(id, '\n'), "%s", id);
}

int
main(void)
{
    CU_TestInfo tests[] = { { "one process", test_alone },
                            { "gather", test_gather },
                            { "big messages all ways at once", test_big },
                            { "ranges of ranks", test_ranges },
                            { "a process dies", test_lost },
                            { "a process leaves in a gather", test_lost_in_gather },
                            CU_TEST_INFO_NULL };

    return check_main("control", tests);
}
