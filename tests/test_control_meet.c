/* Meetings that fail, and strangers at the door. */
#include "exec/control_meet.h"
#include "tests/control_check.h"
#include <errno.h>
#include <sys/resource.h>

/* ---- meetings that fail: every row is who does what, and what each says ---- */

static int
missing_part(guint process, const TtLaunch *launch, Result *result)
{
    g_autoptr(TtControl) control = NULL;

    if (process == 2)
        return 0;
    control = open_here(launch, NULL, 0.5, result);
    return control ? __LINE__ : 0;
}

static int
same_rank_part(guint process, const TtLaunch *launch, Result *result)
{
    g_autoptr(TtControl) control = NULL;
    TtLaunch own = *launch;

    own.first_rank = MIN(process, 1);
    control = open_here(&own, NULL, 20, result);
    return control ? __LINE__ : 0;
}

static int
no_root_part(guint process, const TtLaunch *launch, Result *result)
{
    g_autoptr(TtControl) control = process ? open_here(launch, NULL, 0.3, result) : NULL;

    return control ? __LINE__ : 0;
}

static int
other_size_part(guint process, const TtLaunch *launch, Result *result)
{
    g_autoptr(TtControl) control = NULL;
    TtLaunch own = *launch;

    own.n_ranks += process;
    control = open_here(&own, NULL, 20, result);
    return control ? __LINE__ : 0;
}

static int
wrong_secret_part(guint process, const TtLaunch *launch, Result *result)
{
    g_autoptr(TtControl) control = open_here(launch, process ? "sesam" : "sesame", 0.7, result);

    return control ? __LINE__ : 0;
}

static int
no_secret_part(guint process, const TtLaunch *launch, Result *result)
{
    g_autoptr(TtControl) control = open_here(launch, process ? NULL : "sesame", 0.7, result);

    return control ? __LINE__ : 0;
}

static int
leaves_part(guint process, const TtLaunch *launch, Result *result)
{
    g_autoptr(TtControl) control = NULL;

    if (process == 2)
        return 0;
    if (process == 1)
        alarm(1); /* dies of it, long before rank 2 can come */
    control = open_here(launch, NULL, 20, result);
    return control ? __LINE__ : 0;
}

static void
test_failed_meetings(void)
{
    static const struct {
        const char *name;
        Where where;
        guint n;
        Part part;
        const char *root, *peer; /* words of the root's error, and of process 1's */
    } rows[] = {
        { "a rank does not come", UNIX, 3, missing_part, "rank 2 of 3 did not come within 0.5 s",
          "gave up: rank 2 of 3 did not come" },
        { "two processes for one rank", IPV4, 3, same_rank_part,
          "two processes run the same rank: rank 1 at 127.0.0.1, and rank 1 at 127.0.0.1",
          "two processes run the same rank" },
        { "the root does not come", IPV4, 2, no_root_part, "",
          "rank 0 was not to be met at 127.0.0.1:" },
        { "the root does not come, unix", UNIX, 2, no_root_part, "", "rank 0 was not to be met" },
        { "another number of ranks", UNIX, 2, other_size_part, "counts 3 ranks, the root 2",
          "counts 3 ranks, the root 2" },
        { "wrong secret", IPV4, 2, wrong_secret_part,
          "rank 1 at 127.0.0.1 does not know the secret",
          "refused: wrong secret (TUTTI_SECRET or --secret-file must be the same everywhere)" },
        { "no secret", UNIX, 2, no_secret_part, "does not know the secret",
          "refused: wrong secret" },
        { "one dies while others wait", IPV4, 3, leaves_part, "rank 1 at 127.0.0.1 left before all",
          "" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(TtLaunch) launch = launch_at(rows[i].where, rows[i].n);
        Result results[3];

        run_all(rows[i].n, &launch, rows[i].part, results);
        CHECK(results[0].line == 0, "%s: line %d", rows[i].name, results[0].line);
        CHECK(strstr(results[0].error, rows[i].root), "%s: root: %s", rows[i].name,
              results[0].error);
        CHECK(strstr(results[1].error, rows[i].peer), "%s: peer: %s", rows[i].name,
              results[1].error);
        CHECK(!strchr(results[0].error, '\n'), "%s: one line", rows[i].name);
    }
}

/* What needs no second process. */
static void
test_bad_options(void)
{
    static const struct {
        const char *name, *host, *interface;
        guint first;
        int code;
        const char *words;
    } rows[] = {
        { "no secret, peer", "192.0.2.1", NULL, 1, TT_EXEC_ERROR_USAGE, "need a secret" },
        { "no secret, root", "192.0.2.1", NULL, 0, TT_EXEC_ERROR_USAGE, "need a secret" },
        { "no such host", "no-such-host.invalid", NULL, 1, TT_EXEC_ERROR_SYSTEM,
          "host no-such-host.invalid does not resolve" },
        { "no such interface", "127.0.0.1", "tutti77", 0, TT_EXEC_ERROR_USAGE,
          "no interface or address tutti77" },
        { "an address of another", "127.0.0.1", "192.0.2.1", 0, TT_EXEC_ERROR_USAGE,
          "no interface or address 192.0.2.1" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        TtLaunch launch = { .source = "--meet",
                            .first_rank = rows[i].first,
                            .n_local = 1,
                            .n_ranks = 2,
                            .root_host = (char *)rows[i].host,
                            .root_port = 29400,
                            .pmi_fd = -1 };
        TtControlOptions options = { .interface = rows[i].interface, .timeout_s = 1 };
        g_autoptr(GError) error = NULL;

        CHECK(!tt_control_open(&launch, &options, &error), "%s", rows[i].name);
        CHECK_ERROR(error, TT_EXEC_ERROR, rows[i].code, rows[i].words);
    }
}

static void
test_port_in_use(void)
{
    g_auto(TtLaunch) launch = launch_at(IPV4, 2);
    g_autoptr(GArray) addresses = tt_net_resolve("127.0.0.1", launch.root_port, NULL);
    int fd = tt_net_listen(&g_array_index(addresses, TtNetAddress, 0), NULL);
    TtControlOptions options = { .timeout_s = 1 };
    GError *error = NULL;

    CHECK(fd >= 0, "listen");
    CHECK(!tt_control_open(&launch, &options, &error), "in use");
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM, "is in use");
    close(fd);
}

/* ---- strangers ---- */

static int
call_root(const TtLaunch *launch)
{
    gint64 deadline_us = g_get_monotonic_time() + 10 * G_USEC_PER_SEC;
    g_autoptr(GArray) addresses = tt_net_resolve(launch->root_host, launch->root_port, NULL);
    int fd;

    do {
        fd = tt_net_connect(&g_array_index(addresses, TtNetAddress, 0), deadline_us);
        if (fd < 0)
            g_usleep(5000);
    } while (fd < 0 && g_get_monotonic_time() < deadline_us);
    return fd;
}

static guint32 seed;

/* Process 1 waits until process 2, a crowd of strangers, has done its worst. */
static int
strangers_part(guint process, const TtLaunch *launch, Result *result)
{
    g_autoptr(TtControl) control = NULL;
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    struct rusage usage;
    int silent[40];

    if (process == 2) {
        for (guint i = 0; i < 200; i++) {
            guint8 junk[300];
            gsize n = (gsize)g_rand_int_range(rand, 0, sizeof junk);
            int fd = call_root(launch);

            MUST(fd >= 0);
            for (gsize k = 0; k < n; k++)
                junk[k] = (guint8)g_rand_int_range(rand, 0, 256);
            if (i % 2) /* begins well */
                memcpy(junk, TT_HELLO_MAGIC, 8);
            send(fd, junk, n, MSG_NOSIGNAL);
            close(fd);
        }
        for (guint i = 0; i < G_N_ELEMENTS(silent); i++)
            MUST((silent[i] = call_root(launch)) >= 0);
        g_usleep(300000);
        for (guint i = 0; i < G_N_ELEMENTS(silent); i++)
            close(silent[i]);
        return 0;
    }
    if (process == 1)
        g_usleep(400000);
    control = open_here(launch, "sesame", 30, result);
    MUST(control);
    if (process == 1)
        return 0;
    MUST(tt_control_n_strangers(control) >= 100);
    MUST(tt_control_n_strangers(control) == 0);
    getrusage(RUSAGE_SELF, &usage);
    MUST(usage.ru_maxrss < 1 << 20 || g_getenv("TT_SANITIZE"));
    return 0;
}

static void
test_strangers(void)
{
    g_auto(TtLaunch) launch = launch_at(IPV4, 2);
    Result results[3];

    seed = g_random_int();
    printf("seed %u ", seed);
    run_all(3, &launch, strangers_part, results);
    check_all(results, 3, "strangers");
}

/* A client made by hand, of another version or byte order. */
static const struct {
    const char *name;
    gboolean swapped;
    const char *version, *words;
} odd_peers[] = {
    { "another version", FALSE, "9.8.7",
      "runs Tutti 9.8.7 (protocol 2), this is Tutti " TT_VERSION },
    { "another byte order", TRUE, TT_VERSION, "byte order" },
};
static guint odd;

static int
odd_part(guint process, const TtLaunch *launch, Result *result)
{
    TtControlOptions options = { .timeout_s = 0.7 };
    TtHello hello, answer;
    g_autofree char *differs = NULL;
    gint64 deadline_us = g_get_monotonic_time() + 10 * G_USEC_PER_SEC;
    int fd;

    if (process == 0)
        return open_here(launch, NULL, 0.7, result) ? __LINE__ : 0;
    tt_hello_make(&hello, launch, &options);
    memset(hello.version, 0, sizeof hello.version);
    memcpy(hello.version, odd_peers[odd].version, strlen(odd_peers[odd].version));
    if (odd_peers[odd].swapped)
        hello.byte_order = GUINT32_SWAP_LE_BE(hello.byte_order);
    fd = call_root(launch);
    MUST(fd >= 0);
    MUST(tt_net_write(fd, &hello, sizeof hello, deadline_us));
    MUST(tt_net_read(fd, &answer, sizeof answer, deadline_us));
    differs = tt_hello_differs(&answer, &hello);
    g_strlcpy(result->error, differs ? differs : "", sizeof result->error);
    MUST(!tt_net_read(fd, &answer, 1, deadline_us) && errno == 0); /* and is shown out */
    close(fd);
    return 0;
}

static void
test_odd_peers(void)
{
    for (odd = 0; odd < G_N_ELEMENTS(odd_peers); odd++) {
        g_auto(TtLaunch) launch = launch_at(IPV4, 2);
        Result results[2];

        run_all(2, &launch, odd_part, results);
        check_all(results, 2, odd_peers[odd].name);
        CHECK(strstr(results[0].error, odd_peers[odd].words), "%s: root: %s", odd_peers[odd].name,
              results[0].error);
        CHECK(strstr(results[0].error, "rank 1 of 2 did not come"), "%s", results[0].error);
        CHECK(*results[1].error, "%s: the peer can say so, too", odd_peers[odd].name);
    }
}

/* Something else listens where the root should. */
static int
not_tutti_part(guint process, const TtLaunch *launch, Result *result)
{
    g_autoptr(GArray) addresses = tt_net_resolve(launch->root_host, launch->root_port, NULL);
    int fd, guest;

    if (process)
        return open_here(launch, NULL, 20, result) ? __LINE__ : 0;
    fd = tt_net_listen(&g_array_index(addresses, TtNetAddress, 0), NULL);
    MUST(fd >= 0);
    while ((guest = accept(fd, NULL, NULL)) < 0)
        g_usleep(1000);
    MUST(send(guest, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", 48, 0) == 48);
    return 0;
}

static void
test_not_tutti(void)
{
    g_auto(TtLaunch) launch = launch_at(IPV4, 2);
    Result results[2];

    run_all(2, &launch, not_tutti_part, results);
    check_all(results, 2, "not Tutti");
    CHECK(strstr(results[1].error, "is not Tutti"), "%s", results[1].error);
}

int
main(void)
{
    CU_TestInfo tests[] = { { "meetings that fail", test_failed_meetings },
                            { "bad options", test_bad_options },
                            { "port in use", test_port_in_use },
                            { "strangers", test_strangers },
                            { "another version, another byte order", test_odd_peers },
                            { "something else listens there", test_not_tutti },
                            CU_TEST_INFO_NULL };

    return check_main("control_meet", tests);
}
