/* Addresses: of names, of interfaces, as text. Sockets are in net.c. */
#include "exec/net.h"
#include "exec/exec.h"
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

static void
set_port(TtNetAddress *address, guint port)
{
    if (address->address.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&address->address)->sin6_port = htons((guint16)port);
    else
        ((struct sockaddr_in *)&address->address)->sin_port = htons((guint16)port);
}

static void
append(GArray *addresses, const struct sockaddr *address, socklen_t bytes, guint port)
{
    TtNetAddress one = { .bytes = bytes };

    memcpy(&one.address, address, bytes);
    set_port(&one, port);
    g_array_append_val(addresses, one);
}

static GArray *
lookup(const char *host, guint port, int flags, int *code)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = flags }, *list = NULL;
    GArray *addresses;

    *code = getaddrinfo(host, NULL, &hints, &list);
    if (*code)
        return NULL;
    addresses = g_array_new(FALSE, FALSE, sizeof(TtNetAddress));
    for (struct addrinfo *a = list; a; a = a->ai_next)
        if (a->ai_family == AF_INET || a->ai_family == AF_INET6)
            append(addresses, a->ai_addr, a->ai_addrlen, port);
    freeaddrinfo(list);
    return addresses;
}

GArray *
tt_net_resolve(const char *host, guint port, GError **error)
{
    int code;
    GArray *addresses = lookup(host, port, 0, &code);

    if (!addresses || !addresses->len) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM, "host %s does not resolve: %s",
                    host, code ? gai_strerror(code) : "no address");
        g_clear_pointer(&addresses, g_array_unref);
    }
    return addresses;
}

/* Text of all interfaces that are up, for the error. */
static char *
interface_names(const struct ifaddrs *list)
{
    GString *names = g_string_new(NULL);

    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        g_autofree char *item = g_strdup_printf(", %s,", i->ifa_name);
        g_autofree char *seen = g_strdup_printf(", %s,", names->str);

        if ((i->ifa_flags & IFF_UP) && !strstr(seen, item))
            g_string_append_printf(names, "%s%s", names->len ? ", " : "", i->ifa_name);
    }
    return g_string_free(names, FALSE);
}

static gboolean
same_host(const struct sockaddr *a, const TtNetAddress *b)
{
    if (a->sa_family != b->address.ss_family)
        return FALSE;
    if (a->sa_family == AF_INET6)
        return !memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
                       &((const struct sockaddr_in6 *)&b->address)->sin6_addr, 16);
    return !memcmp(&((const struct sockaddr_in *)a)->sin_addr,
                   &((const struct sockaddr_in *)&b->address)->sin_addr, 4);
}

GArray *
tt_net_interface(const char *name, guint port, GError **error)
{
    int code;
    g_autoptr(GArray) literal = lookup(name, port, AI_NUMERICHOST, &code);
    g_autoptr(GArray) addresses = g_array_new(FALSE, FALSE, sizeof(TtNetAddress));
    g_autofree char *names = NULL;
    gboolean known = FALSE;
    struct ifaddrs *list = NULL;

    if (getifaddrs(&list) < 0)
        list = NULL;
    for (struct ifaddrs *i = list; i; i = i->ifa_next) {
        int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
        gboolean wanted =
            literal
                ? i->ifa_addr && same_host(i->ifa_addr, &g_array_index(literal, TtNetAddress, 0))
                : g_str_equal(i->ifa_name, name);

        known |= wanted;
        if (wanted && (family == AF_INET || family == AF_INET6))
            append(addresses, i->ifa_addr,
                   family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in),
                   port);
    }
    names = interface_names(list);
    if (list)
        freeifaddrs(list);
    if (addresses->len)
        return g_steal_pointer(&addresses);
    if (known)
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE, "interface %s has no IP address",
                    name);
    else
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "this machine has no interface or address %s; interfaces up: %s", name, names);
    return NULL;
}

GArray *
tt_net_any(guint port)
{
    GArray *addresses = g_array_new(FALSE, FALSE, sizeof(TtNetAddress));
    struct sockaddr_in6 any6 = { .sin6_family = AF_INET6, .sin6_addr = in6addr_any };
    struct sockaddr_in any4 = { .sin_family = AF_INET };
    int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    /* without IPv6 the socket may exist and yet have nothing to bind to */
    if (probe >= 0 && bind(probe, (struct sockaddr *)&any6, sizeof any6) == 0)
        append(addresses, (struct sockaddr *)&any6, sizeof any6, port);
    else
        append(addresses, (struct sockaddr *)&any4, sizeof any4, port);
    if (probe >= 0)
        close(probe);
    return addresses;
}

TtNetAddress
tt_net_unix(const char *name)
{
    TtNetAddress one = { 0 };
    struct sockaddr_un *un = (struct sockaddr_un *)&one.address;
    gsize length = MIN(strlen(name), sizeof un->sun_path - 1);

    un->sun_family = AF_UNIX;
    memcpy(un->sun_path + 1, name, length); /* a leading zero byte: no file */
    one.bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
    return one;
}

gboolean
tt_net_is_loopback(const TtNetAddress *address)
{
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address->address;
    const struct sockaddr_in *in4 = (const struct sockaddr_in *)&address->address;

    switch (address->address.ss_family) {
    case AF_INET: return ntohl(in4->sin_addr.s_addr) >> 24 == 127;
    case AF_INET6:
        return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr) ||
               (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr) && in6->sin6_addr.s6_addr[12] == 127);
    default: return TRUE;
    }
}

gboolean
tt_net_all_loopback(const GArray *addresses)
{
    for (guint i = 0; i < addresses->len; i++)
        if (!tt_net_is_loopback(&g_array_index(addresses, TtNetAddress, i)))
            return FALSE;
    return TRUE;
}

char *
tt_net_text(const TtNetAddress *address, gboolean with_port)
{
    char host[NI_MAXHOST], port[NI_MAXSERV];
    const char *text = host;

    if (address->address.ss_family == AF_UNIX)
        return g_strdup("this machine");
    if (getnameinfo((const struct sockaddr *)&address->address, address->bytes, host, sizeof host,
                    port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV))
        return g_strdup("unknown");
    if (g_str_has_prefix(host, "::ffff:") && strchr(host, '.'))
        text = host + 7; /* IPv4 on a socket for both */
    if (!with_port)
        return g_strdup(text);
    return g_strdup_printf(strchr(text, ':') ? "[%s]:%s" : "%s:%s", text, port);
}

/* Bridges and cables of containers and virtual machines lead nowhere else. */
static gboolean
leads_nowhere(const char *name)
{
    static const char *const prefixes[] = { "docker", "virbr", "veth", "br-", "cni", NULL };

    for (guint i = 0; prefixes[i]; i++)
        if (g_str_has_prefix(name, prefixes[i]))
            return TRUE;
    return FALSE;
}

char *
tt_net_own_host(const char *interface)
{
    g_autoptr(GArray) addresses = interface ? tt_net_interface(interface, 0, NULL) : NULL;
    g_autofree char *best = NULL;
    gboolean best4 = FALSE;
    struct ifaddrs *list = NULL;

    if (addresses)
        return tt_net_text(&g_array_index(addresses, TtNetAddress, 0), FALSE);
    if (getifaddrs(&list) < 0)
        return g_strdup("127.0.0.1");
    for (struct ifaddrs *i = list; i; i = i->ifa_next) {
        int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
        gboolean is4 = family == AF_INET;

        if (!(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK) || best4 ||
            leads_nowhere(i->ifa_name) || (!is4 && (family != AF_INET6 || best)))
            continue;
        if (!is4 && IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr))
            continue;
        g_autoptr(GArray) one = g_array_new(FALSE, FALSE, sizeof(TtNetAddress));

        append(one, i->ifa_addr, is4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6), 0);
        g_free(best);
        best = tt_net_text(&g_array_index(one, TtNetAddress, 0), FALSE);
        best4 = is4;
    }
    freeifaddrs(list);
    return best ? g_steal_pointer(&best) : g_strdup("127.0.0.1");
}
