/* The verbs layer: which card, port and address it takes, what it refuses, and that it leaves nothing behind. Without
 * cards it checks what it says then, and counts as skipped (exit code 77). */
#include "tests/verbs_ends.h"

#include <dirent.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- without a card ----------------------------------------------------------------------------- */

static void
test_words(void)
{
    gboolean harmless;

    for (int i = 0; i < 24; i++)
        CHECK(strlen(tt_verbs_status_words(i)) >= 4, "status %d", i);
    for (int i = 0; i < 20; i++)
        CHECK(strlen(tt_verbs_event_words(i, &harmless)) >= 10, "event %d", i);
    CHECK(strstr(tt_verbs_status_words(24), "unknown"), "%s", tt_verbs_status_words(24));
    CHECK(strstr(tt_verbs_status_words(-1), "unknown"), "%s", tt_verbs_status_words(-1));
    CHECK(strstr(tt_verbs_event_words(99, &harmless), "unknown"), "an event of the future");
    CHECK(harmless, "an event of the future");
}

/* --- opening ------------------------------------------------------------------------------------ */

static void
test_refused(void)
{
    static const struct {
        const char *name;
        TtVerbsOptions options;
        TtExecError code;
        const char *words;
    } rows[] = {
        { "a name that is not there lists those that are",
          { .device = "mlx5_9", .gid_index = -1 },
          TT_EXEC_ERROR_USAGE,
          "no RDMA device \"mlx5_9\": this machine has rxe1, rxe2" },
        { "a port that is not there",
          { .device = "rxe1", .port = 2, .gid_index = -1 },
          TT_EXEC_ERROR_USAGE,
          "rxe1: no port 2: ports are 1 to 1" },
        { "a GID index beyond the table",
          { .device = "rxe1", .gid_index = 100000 },
          TT_EXEC_ERROR_USAGE,
          "10.77.0.1 (RoCE v2)" },
        { "a GID index of an empty entry",
          { .device = "rxe1", .gid_index = 200 },
          TT_EXEC_ERROR_USAGE,
          "no GID index 200: it has 0 " },
        { "more in flight than the card takes",
          { .device = "rxe1", .gid_index = -1, .n_queues = 1000, .send_depth = 4096 },
          TT_EXEC_ERROR_USAGE,
          "1000 queues with 4096 writes" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(TtVerbs) verbs = tt_verbs_open(&rows[i].options, &error);

        CHECK_ROW(&rows[i], verbs == NULL);
        CHECK_ERROR(error, TT_EXEC_ERROR, rows[i].code, rows[i].words);
    }
}

static void
test_chosen(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(TtVerbs) any = tt_verbs_open(&(TtVerbsOptions){ .gid_index = -1 }, &error);
    g_autoptr(TtVerbs) second = NULL;

    CHECK_NO_ERROR(error);
    second = tt_verbs_open(&(TtVerbsOptions){ .device = "rxe2", .gid_index = 0 }, &error);
    CHECK_NO_ERROR(error);
    if (!any || !second)
        return;
    CHECK(strcmp(tt_verbs_info(any)->device, "rxe1") == 0, "%s", tt_verbs_info(any)->device);
    CHECK(tt_verbs_info(any)->port == 1, "%u", tt_verbs_info(any)->port);
    CHECK(strcmp(tt_verbs_info(any)->address, "10.77.0.1 (RoCE v2)") == 0, "%s",
          tt_verbs_info(any)->address);
    CHECK(tt_verbs_info(any)->mtu_bytes == 4096, "%u", tt_verbs_info(any)->mtu_bytes);
    CHECK(tt_verbs_info(second)->gid_index == 0, "%d", tt_verbs_info(second)->gid_index);
    CHECK(g_str_has_prefix(tt_verbs_info(second)->address, "fe80::"), "%s",
          tt_verbs_info(second)->address);
}

/* Takes the link h1 down, which is under rxe1 in the guest only. */
static void
test_port_down(void)
{
    g_autofree char *link = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(TtVerbs) named = NULL, any = NULL;

    if (!g_file_get_contents("/sys/class/infiniband/rxe1/parent", &link, NULL, NULL) ||
        strcmp(g_strstrip(link), "h1") != 0 || system("ip link set h1 down") != 0)
        return;
    named = tt_verbs_open(&(TtVerbsOptions){ .device = "rxe1", .gid_index = -1 }, &error);
    CHECK(named == NULL, "opened");
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HARDWARE,
                "no active RDMA port: rxe1 port 1 is ");
    any = tt_verbs_open(&(TtVerbsOptions){ .gid_index = -1 }, &error);
    CHECK_NO_ERROR(error);
    CHECK(any && strcmp(tt_verbs_info(any)->device, "rxe2") == 0, "took another card");
    /* What hangs on the link's state goes with it: the routes are the guest's, kept in its script. */
    CHECK(system("ip link set h1 up && ip route replace local 10.77.0.1 dev h1 table 1 && "
                 "ip route replace 10.77.0.0/24 dev h1 src 10.77.0.1 table 1 && "
                 "ip route del local 10.77.0.1 dev h1 table local") == 0,
          "h1 is up again");
}

static guint
n_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    guint n = 0;

    while (folder && readdir(folder))
        n++;
    closedir(folder);
    return n;
}

static void
test_nothing_left(void)
{
    guint before = 0;

    for (int i = 0; i < 30; i++) {
        Pair pair;

        pair_open(&pair, 2, 16);
        if (i % 2) { /* close frees what is left */
            tt_verbs_close(pair.a.verbs);
            g_free(pair.a.buffer);
            end_close(&pair.b);
        } else {
            pair_close(&pair);
        }
        if (i == 0)
            before = n_descriptors();
    }
    CHECK(n_descriptors() == before, "%u descriptors became %u", before, n_descriptors());
}

static void
test_wrong_letter(void)
{
    g_autoptr(GError) error = NULL;
    Pair pair;
    TtVerbsAddress garbage;

    pair_open(&pair, 1, 16);
    garbage = pair.from_b.queues[0];
    garbage.version ^= 1;
    CHECK(!tt_verbs_connect(pair.a.queues[0], &garbage, &error), "another version");
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM, "another version of tutti");
    garbage = pair.from_b.queues[0];
    garbage.link_layer = 1;
    CHECK(!tt_verbs_connect(pair.a.queues[0], &garbage, &error), "another kind of network");
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                "this port is Ethernet, the peer's is InfiniBand");
    pair_close(&pair);
}

/* Without the right to lock as much as it likes, as users are. */
static int
register_too_much(void)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct rights[2] = { 0 };
    struct rlimit limit = { 64 << 10, 64 << 10 };
    g_autoptr(GError) error = NULL;
    g_autoptr(TtVerbs) verbs = tt_verbs_open(&(TtVerbsOptions){ .gid_index = -1 }, &error);
    g_autofree char *buffer = g_malloc0(MOST_BYTES);

    if (!verbs || setrlimit(RLIMIT_MEMLOCK, &limit) || syscall(SYS_capset, &header, rights))
        return 1;
    if (tt_verbs_register(verbs, buffer, MOST_BYTES, FALSE, &error))
        return 2;
    if (strcmp(error->message, "rxe1: locked memory: need 1.0 MiB, limit is 64 KiB (ulimit -l; "
                               "/etc/security/limits.conf: memlock)") == 0)
        return 0;
    fprintf(stderr, "%s\n", error->message);
    return 3;
}

static void
test_locked_memory(void)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0)
        _exit(register_too_much());
    CHECK(waitpid(child, &status, 0) == child && status == 0, "ended with %x", status);
}

int
main(void)
{
    CU_TestInfo without_cards[] = { { "codes as words", test_words }, CU_TEST_INFO_NULL };
    CU_TestInfo with_cards[] = {
        { "codes as words", test_words },
        { "what is not there is refused", test_refused },
        { "card, port and GID are chosen", test_chosen },
        { "a letter that is none", test_wrong_letter },
        { "too little locked memory", test_locked_memory },
        { "nothing is left behind", test_nothing_left },
        { "a port that is down", test_port_down },
        CU_TEST_INFO_NULL,
    };

    return verbs_main("verbs", with_cards, without_cards);
}
