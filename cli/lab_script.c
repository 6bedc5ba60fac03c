#include "cli/lab.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Flows are told apart by the last bits of a host's number, so that a port needs no more classes. */
#define N_CLASSES 16u

#define LIMIT_BYTES (4 << 20) /* tbf asks for it; it is that of the queue which htb replaces */

static void
step_free(gpointer data)
{
    TtLabStep *step = data;

    g_free(step->namespace);
    g_free(step->words);
    g_free(step);
}

static void add(GPtrArray *script, const char *tool, const char *namespace, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

static void
add(GPtrArray *script, const char *tool, const char *namespace, const char *format, ...)
{
    TtLabStep *step = g_new0(TtLabStep, 1);
    va_list arguments;

    step->tool = tool;
    step->namespace = g_strdup(namespace);
    va_start(arguments, format);
    step->words = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_ptr_array_add(script, step);
}

/* --- one end of a cable ------------------------------------------------------------------------ */

/* The bucket, and in it a class for each peer, served in turn: flows in one queue do not share it
 * fairly by themselves. What has no class (ARP, neighbour discovery) goes first, and so do bare
 * acknowledgements (a TCP header with a time stamp, 32 bytes): behind the data that goes the same way they would come in
 * bunches, and a link that is busy both ways would stand still in between.
 * @self: a host whose own number is no peer's; n_hosts: none. */
static void
add_shaper(GPtrArray *script, const TtLab *lab, const char *namespace, const char *device,
           guint nic, double bits_per_s, guint self)
{
    gboolean host_side = self < lab->n_hosts;
    guint last_word_v4 = host_side ? 16 : 12, last_word_v6 = host_side ? 36 : 20;
    guint8 needed[N_CLASSES] = { 0 };

    for (guint h = 0; h < lab->n_hosts; h++)
        if (h != self)
            needed[(h + 1) % N_CLASSES] = TRUE;
    add(script, "tc", namespace,
        "qdisc add dev %s root handle 1: tbf rate %.0fbit burst %u limit %u", device, bits_per_s,
        tt_lab_burst_bytes(lab, nic, bits_per_s), LIMIT_BYTES);
    add(script, "tc", namespace, "qdisc add dev %s parent 1:1 handle 2: htb", device);
    add(script, "tc", namespace,
        "filter add dev %s parent 2: protocol ip prio 1 u32 match u16 52 0xffff at 2 flowid 2:0",
        device);
    add(script, "tc", namespace,
        "filter add dev %s parent 2: protocol ipv6 prio 2 u32 match u16 32 0xffff at 4 flowid 2:0",
        device);
    for (guint c = 0; c < N_CLASSES; c++) {
        if (!needed[c])
            continue;
        add(script, "tc", namespace,
            "class add dev %s parent 2: classid 2:%x htb rate 32gbit quantum %u", device, c + 16,
            tt_lab_gso_bytes(lab, nic));
        add(script, "tc", namespace,
            "filter add dev %s parent 2: protocol ip prio 1 u32 match u32 0x%x 0x%x at %u flowid "
            "2:%x",
            device, c, N_CLASSES - 1, last_word_v4, c + 16);
        add(script, "tc", namespace,
            "filter add dev %s parent 2: protocol ipv6 prio 2 u32 match u32 0x%x 0x%x at %u flowid "
            "2:%x",
            device, c, N_CLASSES - 1, last_word_v6, c + 16);
    }
}

/* --- namespaces, switches, hosts --------------------------------------------------------------- */

/* reno: always there, and without losses as good as any; the default may be one that paces (bbr).
 * No slow start again after a pause, nothing remembered from earlier connections. Windows as given,
 * which fit into the queues of 1000 pieces, so that nothing is dropped. Addresses answer only on
 * their own rail, and replies may take another one. */
#define HOST_SYSCTLS                                                                               \
    "net.ipv4.tcp_congestion_control=reno net.ipv4.tcp_slow_start_after_idle=0 "                   \
    "net.ipv4.tcp_no_metrics_save=1 net.ipv4.tcp_wmem=4096,65536,%u "                              \
    "net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 "                             \
    "net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2 "                             \
    "net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.default.disable_ipv6=0 "                       \
    "net.ipv6.conf.default.accept_ra=0 net.ipv6.conf.default.accept_dad=0"
static const char switch_sysctls[] = "net.ipv6.conf.default.disable_ipv6=1";

static void
add_namespaces(GPtrArray *script, const TtLab *lab)
{
    for (guint h = 0; h <= lab->n_hosts; h++) {
        g_autofree char *namespace = tt_lab_namespace(lab, h);

        add(script, "ip", NULL, "netns add %s", namespace);
    }
    for (guint h = 0; h <= lab->n_hosts; h++) {
        g_autofree char *namespace = tt_lab_namespace(lab, h);

        if (h < lab->n_hosts)
            add(script, "sysctl", namespace, HOST_SYSCTLS, tt_lab_window_bytes(lab));
        else
            add(script, "sysctl", namespace, "%s", switch_sysctls);
    }
}

/* Ways between switches are static, so nothing is learned there; what is for all goes by spine 0,
 * or it would run in circles. */
static void
add_trunk(GPtrArray *script, const TtLab *lab, const char *switches, const TtLabTrunk *trunk)
{
    guint n_leaves = lab->trunks->len ? g_array_index(lab->trunks, TtLabTrunk, 0).spine : 0;
    guint spine = trunk->spine - n_leaves;
    g_autofree char *up = g_strdup_printf("l%us%u", trunk->leaf, spine);
    g_autofree char *down = g_strdup_printf("s%ul%u", spine, trunk->leaf);
    const char *const ends[] = { up, down };
    const char *flood = spine ? " flood off mcast_flood off bcast_flood off" : "";

    add(script, "ip", switches,
        "link add name %s gso_max_size %u type veth peer name %s gso_max_size %u", up,
        tt_lab_gso_bytes(lab, 0), down, tt_lab_gso_bytes(lab, 0));
    for (guint end = 0; end < 2; end++) {
        const char *bridge = lab->bridges->pdata[end ? trunk->spine : trunk->leaf];

        add(script, "ip", switches, "link set dev %s master %s up", ends[end], bridge);
        add(script, "ip", switches, "link set dev %s type bridge_slave learning off%s", ends[end],
            flood);
    }
}

static char *
mac(guint host, guint nic)
{
    return g_strdup_printf("02:74:74:00:%02x:%02x", nic, host + 1);
}

static void
add_cable(GPtrArray *script, const TtLab *lab, const char *switches, guint host, guint nic)
{
    g_autofree char *namespace = tt_lab_namespace(lab, host);
    g_autofree char *address = mac(host, nic);

    add(script, "ip", switches,
        "link add name h%un%u gso_max_size %u type veth peer name nic%u address %s gso_max_size %u "
        "netns %s",
        host, nic, tt_lab_gso_bytes(lab, nic), nic, address, tt_lab_gso_bytes(lab, nic), namespace);
    add(script, "ip", switches, "link set dev h%un%u master %s up", host, nic,
        (char *)lab->bridges->pdata[lab->bridge_of[host * lab->n_nics + nic]]);
}

static void
add_switches(GPtrArray *script, const TtLab *lab)
{
    g_autofree char *switches = tt_lab_namespace(lab, lab->n_hosts);

    for (guint b = 0; b < lab->bridges->len; b++) {
        const char *bridge = lab->bridges->pdata[b];

        add(script, "ip", switches, "link add name %s type bridge stp_state 0 mcast_snooping 0",
            bridge);
        add(script, "ip", switches, "link set dev %s up", bridge);
    }
    for (guint i = 0; i < lab->trunks->len; i++)
        add_trunk(script, lab, switches, &g_array_index(lab->trunks, TtLabTrunk, i));
    for (guint h = 0; h < lab->n_hosts; h++)
        for (guint nic = 0; nic < lab->n_nics; nic++)
            add_cable(script, lab, switches, h, nic);
}

static void
add_ways(GPtrArray *script, const TtLab *lab)
{
    g_autofree char *switches = tt_lab_namespace(lab, lab->n_hosts);
    guint n_leaves = lab->trunks->len ? g_array_index(lab->trunks, TtLabTrunk, 0).spine : 0;

    for (guint i = 0; i < lab->ways->len; i++) {
        const TtLabWay *w = &g_array_index(lab->ways, TtLabWay, i);
        g_autofree char *address = mac(w->host, w->nic);
        gboolean up = w->bridge < n_leaves;

        add(script, "bridge", switches,
            up ? "fdb add %s dev l%us%u master static" : "fdb add %s dev s%ul%u master static",
            address, up ? w->bridge : w->bridge - n_leaves, up ? w->next - n_leaves : w->next);
    }
}

static void
add_host(GPtrArray *script, const TtLab *lab, guint host)
{
    g_autofree char *namespace = tt_lab_namespace(lab, host);

    add(script, "ip", namespace, "link set dev lo up");
    for (guint nic = 0; nic < lab->n_nics; nic++) {
        g_autofree char *v4 = tt_lab_ipv4(host, nic), *v6 = tt_lab_ipv6(host, nic);

        add(script, "ip", namespace, "link set dev nic%u up", nic);
        add(script, "ip", namespace, "addr add %s/24 dev nic%u", v4, nic);
        if (g_file_test("/proc/sys/net/ipv6", G_FILE_TEST_EXISTS))
            add(script, "ip", namespace, "addr add %s/64 dev nic%u nodad", v6, nic);
    }
    for (guint nic = 0; nic < lab->n_nics; nic++) {
        g_autofree char *device = g_strdup_printf("nic%u", nic);

        add_shaper(script, lab, namespace, device, nic, lab->nic_bits_per_s[nic], host);
    }
}

static void
add_switch_shapers(GPtrArray *script, const TtLab *lab)
{
    g_autofree char *switches = tt_lab_namespace(lab, lab->n_hosts);

    for (guint h = 0; h < lab->n_hosts; h++)
        for (guint nic = 0; nic < lab->n_nics; nic++) {
            g_autofree char *device = g_strdup_printf("h%un%u", h, nic);

            add_shaper(script, lab, switches, device, nic, lab->nic_bits_per_s[nic], lab->n_hosts);
        }
    for (guint i = 0; i < lab->trunks->len; i++) {
        const TtLabTrunk *t = &g_array_index(lab->trunks, TtLabTrunk, i);
        guint spine = t->spine - g_array_index(lab->trunks, TtLabTrunk, 0).spine;
        g_autofree char *up = g_strdup_printf("l%us%u", t->leaf, spine);
        g_autofree char *down = g_strdup_printf("s%ul%u", spine, t->leaf);

        add_shaper(script, lab, switches, up, 0, t->bits_per_s, lab->n_hosts);
        add_shaper(script, lab, switches, down, 0, t->bits_per_s, lab->n_hosts);
    }
}

GPtrArray *
tt_lab_script(const TtLab *lab)
{
    GPtrArray *script = g_ptr_array_new_with_free_func(step_free);

    add_namespaces(script, lab);
    add_switches(script, lab);
    add_ways(script, lab);
    for (guint h = 0; h < lab->n_hosts; h++)
        add_host(script, lab, h);
    add_switch_shapers(script, lab);
    return script;
}

char *
tt_lab_step_text(const TtLabStep *step)
{
    if (strcmp(step->tool, "sysctl") == 0) {
        g_autoptr(GString) words = g_string_new(step->words);

        g_string_replace(words, ",", "\\ ", 0);
        return g_strdup_printf("ip netns exec %s sysctl -qw %s", step->namespace, words->str);
    }
    return step->namespace
               ? g_strdup_printf("%s -n %s %s", step->tool, step->namespace, step->words)
               : g_strdup_printf("%s %s", step->tool, step->words);
}

/* --- running it -------------------------------------------------------------------------------- */

static void
stdin_from(gpointer data)
{
    dup2(GPOINTER_TO_INT(data), 0);
}

static int
text_as_file(const char *text)
{
    int fd = memfd_create("batch", MFD_CLOEXEC);
    gsize length = strlen(text);

    if (fd >= 0 && (write(fd, text, length) != (gssize)length || lseek(fd, 0, SEEK_SET) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* "Command failed -:3": the third of the batch. */
static void
explain(const char *const *argv, const char *complaint, const GPtrArray *batch, guint first,
        GError **error)
{
    const char *where = strstr(complaint, "Command failed -:");
    gboolean unknown = strstr(complaint, "qdisc kind is unknown") != NULL;
    g_autofree char *command = g_strjoinv(" ", (char **)argv);
    g_auto(GStrv) lines = g_strsplit(complaint, "\n", 2);

    if (where && batch) {
        guint64 line = g_ascii_strtoull(where + strlen("Command failed -:"), NULL, 10);

        if (line >= 1 && first + line - 1 < batch->len) {
            g_free(command);
            command = tt_lab_step_text(batch->pdata[first + line - 1]);
        }
    }
    tt_lab_error(error, unknown ? TT_CLI_ERROR_HARDWARE : TT_CLI_ERROR_FAILED, "%s: %s%s", command,
                 lines[0] && *lines[0] ? lines[0] : "failed without a word",
                 unknown ? " (the kernel needs tbf and htb)" : "");
}

gboolean
tt_lab_run_tool(const char *const *argv, const char *input, const GPtrArray *batch, guint first,
                GError **error)
{
    g_autofree char *complaint = NULL;
    int status, fd = text_as_file(input ? input : "");
    gboolean started;

    if (fd < 0) {
        tt_lab_error(error, TT_CLI_ERROR_FAILED, "cannot hold a batch for %s: %s", argv[0],
                     g_strerror(errno));
        return FALSE;
    }
    started =
        g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_STDOUT_TO_DEV_NULL,
                     stdin_from, GINT_TO_POINTER(fd), NULL, &complaint, &status, error);
    close(fd);
    if (!started)
        return FALSE;
    if (g_spawn_check_wait_status(status, NULL))
        return TRUE;
    explain(argv, complaint, batch, first, error);
    return FALSE;
}

static gboolean
same_batch(const TtLabStep *a, const TtLabStep *b)
{
    return strcmp(a->tool, b->tool) == 0 && g_strcmp0(a->namespace, b->namespace) == 0 &&
           strcmp(a->tool, "sysctl") != 0;
}

/* Steps of one tool in one namespace are one process. */
gboolean
tt_lab_run_script(const GPtrArray *script, GError **error)
{
    for (guint i = 0, end; i < script->len; i = end) {
        const TtLabStep *step = script->pdata[i];
        g_autoptr(GString) batch = g_string_new(NULL);
        const char *argv[] = { step->tool, "-n", step->namespace, "-batch", "-", NULL };
        const char *argv_here[] = { step->tool, "-batch", "-", NULL };

        for (end = i; end < script->len && (end == i || same_batch(step, script->pdata[end]));
             end++)
            g_string_append_printf(batch, "%s\n", ((TtLabStep *)script->pdata[end])->words);
        if (strcmp(step->tool, "sysctl") == 0) {
            if (!tt_lab_write_sysctls(step->namespace, step->words, error))
                return FALSE;
        } else if (!tt_lab_run_tool(step->namespace ? argv : argv_here, batch->str, script, i,
                                    error)) {
            return FALSE;
        }
    }
    return TRUE;
}
