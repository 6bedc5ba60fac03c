/* tcp_listen.c - which address this rank can be reached at.
 */
#include "exec/tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

#define BACKLOG 1024

/* Bridges and tunnels of containers and virtual machines lead nowhere else. */
static const char *const passed_over[] = { "docker", "virbr", "veth", "br-", "cni", NULL };

static char *
numeric(const struct sockaddr *address, socklen_t length, gboolean port)
{
    char host[NI_MAXHOST], service[NI_MAXSERV];

    if (getnameinfo(address, length, host, sizeof host, service, sizeof service,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return g_strdup("?");
    if (!port)
        return g_strdup(host);
    return g_strdup_printf(strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, service);
}

char *
tt_tcp_address_text(const TtAddress *address)
{
    const struct sockaddr *a = (const struct sockaddr *)(gconstpointer)address->bytes;

    return numeric(
        a, a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in),
        TRUE);
}

/* --- choosing ------------------------------------------------------------------------------------ */

static gboolean
is_usable(const struct ifaddrs *i)
{
    return i->ifa_addr && (i->ifa_flags & IFF_UP) &&
           (i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6);
}

static socklen_t
length_of(const struct sockaddr *address)
{
    return address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                          : sizeof(struct sockaddr_in);
}

static gboolean
is_wanted(const struct ifaddrs *i, const char *wanted)
{
    g_autofree char *text = numeric(i->ifa_addr, length_of(i->ifa_addr), FALSE);

    return strcmp(i->ifa_name, wanted) == 0 || strcmp(text, wanted) == 0;
}

/* The higher the better; 0: not at all. IPv4 before IPv6, which before those of one link only. */
static guint
score(const struct ifaddrs *i, const char *wanted)
{
    gboolean v6 = i->ifa_addr->sa_family == AF_INET6;
    const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)(gconstpointer)i->ifa_addr;
    guint points = v6 ? (IN6_IS_ADDR_LINKLOCAL(&a6->sin6_addr) ? 1 : 2) : 3;

    if (wanted)
        return is_wanted(i, wanted) ? points : 0;
    if (!(i->ifa_flags & IFF_RUNNING))
        return 0;
    if (i->ifa_flags & IFF_LOOPBACK)
        return points;
    for (guint p = 0; passed_over[p]; p++)
        if (g_str_has_prefix(i->ifa_name, passed_over[p]))
            return points + 10;
    return points + 20;
}

static char *
list_interfaces(const struct ifaddrs *all)
{
    GString *text = g_string_new(NULL);

    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        g_autofree char *address = NULL;

        if (!is_usable(i))
            continue;
        address = numeric(i->ifa_addr, length_of(i->ifa_addr), FALSE);
        g_string_append_printf(text, "%s%s %s", text->len ? ", " : "", i->ifa_name, address);
    }
    return g_string_free(text, FALSE);
}

static gboolean
choose_address(const char *wanted, TtTcpAddress *chosen, GError **error)
{
    struct ifaddrs *all = NULL;
    const struct ifaddrs *best = NULL;
    guint best_score = 0;

    if (getifaddrs(&all) != 0) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM, "interfaces: %s",
                    g_strerror(errno));
        return FALSE;
    }
    for (const struct ifaddrs *i = all; i; i = i->ifa_next)
        if (is_usable(i) && score(i, wanted) > best_score) {
            best = i;
            best_score = score(i, wanted);
        }
    if (best) {
        chosen->length = length_of(best->ifa_addr);
        memcpy(&chosen->address, best->ifa_addr, chosen->length);
    } else {
        g_autofree char *there = list_interfaces(all);

        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "no interface \"%s\" is up here (there are: %s)", wanted ? wanted : "any",
                    there);
    }
    freeifaddrs(all);
    return best != NULL;
}

static void
set_port(TtTcpAddress *address, guint16 port)
{
    if (address->address.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&address->address)->sin6_port = port;
    else
        ((struct sockaddr_in *)&address->address)->sin_port = port;
}

int
tt_tcp_listen(const TtWireOptions *options, TtAddress *mine, GError **error)
{
    TtTcpAddress address = { 0 };
    int fd;

    if (!choose_address(options->interface, &address, error))
        return -1;
    set_port(&address, 0);
    fd = socket(address.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address.address, address.length) != 0 ||
        listen(fd, BACKLOG) != 0 ||
        getsockname(fd, (struct sockaddr *)&address.address, &address.length) != 0) {
        g_autofree char *text = numeric((struct sockaddr *)&address.address, address.length, FALSE);

        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                    "rank %u cannot listen on %s: %s (see ulimit -n)", options->rank, text,
                    g_strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    memset(mine->bytes, 0, sizeof mine->bytes);
    memcpy(mine->bytes, &address.address, address.length);
    return fd;
}
