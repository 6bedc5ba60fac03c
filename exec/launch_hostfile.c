#include "exec/launch_hostfile.h"
#include "exec/net.h"
#include "exec/exec.h"
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#define MAX_SLOTS 65536

typedef struct {
    guint line, slots;
    char *host;
} HostLine;

static void bad_file(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* What stands in the file, not how it was asked for. */
static void
bad_file(GError **error, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    g_propagate_error(error,
                      g_error_new_valist(G_FILE_ERROR, G_FILE_ERROR_INVAL, format, arguments));
    va_end(arguments);
}

static void
host_line_clear(gpointer data)
{
    g_free(((HostLine *)data)->host);
}

static gboolean
slots_from(const char *text, guint *slots)
{
    guint64 n;

    if (!g_ascii_string_to_unsigned(text, 10, 1, MAX_SLOTS, &n, NULL))
        return FALSE;
    *slots = (guint)n;
    return TRUE;
}

/* "host", "host:4", "[fe80::1]:4", "fe80::1". */
static gboolean
split_host(const char *word, HostLine *line)
{
    const char *end = *word == '[' ? strchr(word, ']') : NULL, *colon = strchr(word, ':');

    line->slots = 1;
    if (end) {
        line->host = g_strndup(word + 1, (gsize)(end - word - 1));
        return !end[1] || (end[1] == ':' && slots_from(end + 2, &line->slots));
    }
    if (!colon || strchr(colon + 1, ':')) {
        line->host = g_strdup(word);
        return TRUE;
    }
    line->host = g_strndup(word, (gsize)(colon - word));
    return *line->host && slots_from(colon + 1, &line->slots);
}

/* Open MPI's hostfiles say how many slots there may be at most, too. */
static gboolean
is_for_others(const char *word)
{
    return g_str_has_prefix(word, "max_slots=") || g_str_has_prefix(word, "max-slots=");
}

static gboolean
parse_line(const char *path, guint number, char *text, GArray *lines, GError **error)
{
    HostLine line = { .line = number };
    g_auto(GStrv) words = NULL;
    gboolean good = TRUE, named = FALSE;

    text[strcspn(text, "#")] = 0;
    words = g_strsplit_set(text, " \t\r", -1);
    for (char **w = words; *w && good; w++) {
        if (!**w)
            continue;
        if (!named)
            good = split_host(*w, &line);
        else if (!is_for_others(*w))
            good = g_str_has_prefix(*w, "slots=") && slots_from(*w + 6, &line.slots);
        named = TRUE;
        if (!good) {
            g_autofree char *word = g_strescape(*w, NULL); /* may be anything */

            bad_file(error, "%s:%u: \"%.80s\" is not HOST, HOST:N or slots=N with N from 1 to %d",
                     path, number, word, MAX_SLOTS);
        }
    }
    if (named)
        g_array_append_val(lines, line);
    return good;
}

static gboolean
is_called(const char *const *names, const char *host)
{
    for (; *names; names++)
        if (!g_ascii_strcasecmp(*names, host))
            return TRUE;
    return FALSE;
}

/* Host name, short and in full, and all addresses. Caller frees with g_strfreev(). */
static char **
own_names(void)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    char host[256] = "", *dot;
    struct ifaddrs *list = NULL;

    gethostname(host, sizeof host - 1);
    g_ptr_array_add(names, g_strdup(host));
    dot = strchr(host, '.');
    if (dot)
        g_ptr_array_add(names, g_strndup(host, (gsize)(dot - host)));
    g_ptr_array_add(names, g_strdup("localhost"));
    if (getifaddrs(&list) < 0)
        list = NULL;
    for (struct ifaddrs *i = list; i; i = i->ifa_next) {
        int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
        TtNetAddress one = { .bytes = family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                         : sizeof(struct sockaddr_in) };

        if (family != AF_INET && family != AF_INET6)
            continue;
        memcpy(&one.address, i->ifa_addr, one.bytes);
        g_ptr_array_add(names, tt_net_text(&one, FALSE));
    }
    if (list)
        freeifaddrs(list);
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(g_steal_pointer(&names), FALSE);
}

/* A name that is not ours as written may still resolve to one of our addresses: node7.cluster, node7-ib. */
static gboolean
resolves_to_us(const char *const *names, const char *host)
{
    g_autoptr(GArray) addresses = tt_net_resolve(host, 0, NULL);

    for (guint i = 0; addresses && i < addresses->len; i++) {
        g_autofree char *text = tt_net_text(&g_array_index(addresses, TtNetAddress, i), FALSE);

        if (is_called(names, text))
            return TRUE;
    }
    return FALSE;
}

static gboolean
find_us(const char *path, const GArray *lines, const TtLaunchMachine *machine, guint *found,
        GError **error)
{
    g_auto(GStrv) asked = machine ? NULL : own_names();
    const char *const *names = machine ? machine->names : (const char *const *)asked;
    g_autofree char *list = g_strjoinv(", ", (char **)names);
    guint n = 0;

    for (int by_address = 0; by_address < 2 && !n; by_address++)
        for (guint i = 0; i < lines->len; i++) {
            const HostLine *line = &g_array_index(lines, HostLine, i);

            if (by_address ? machine || !resolves_to_us(names, line->host)
                           : !is_called(names, line->host))
                continue;
            if (n++) {
                bad_file(error, "%s: lines %u and %u are both this machine, which is called %s",
                         path, g_array_index(lines, HostLine, *found).line, line->line, list);
                return FALSE;
            }
            *found = i;
        }
    if (!n)
        bad_file(error, "%s: no line is this machine, which is called %s", path, list);
    return n > 0;
}

gboolean
tt_launch_from_hostfile(const char *path, const TtLaunchMachine *machine, TtLaunch *launch,
                        GError **error)
{
    g_autoptr(GArray) lines = g_array_new(FALSE, FALSE, sizeof(HostLine));
    g_autofree char *text = NULL;
    g_auto(GStrv) rows = NULL;
    guint own = 0;

    g_array_set_clear_func(lines, host_line_clear);
    if (!g_file_get_contents(path, &text, NULL, error))
        return FALSE;
    rows = g_strsplit(text, "\n", -1);
    for (guint i = 0; rows[i]; i++)
        if (!parse_line(path, i + 1, rows[i], lines, error))
            return FALSE;
    if (!lines->len) {
        bad_file(error, "%s: no hosts (a line for each: HOST slots=N)", path);
        return FALSE;
    }
    if (!find_us(path, lines, machine, &own, error))
        return FALSE;
    for (guint i = 0; i < lines->len; i++) {
        const HostLine *line = &g_array_index(lines, HostLine, i);

        if (i == own) {
            launch->first_rank = launch->n_ranks;
            launch->n_local = line->slots;
        }
        launch->n_ranks += line->slots;
    }
    launch->root_host = g_strdup(g_array_index(lines, HostLine, 0).host);
    launch->root_port = TT_LAUNCH_DEFAULT_PORT;
    return TRUE;
}
