/* tcp_listen.c - which address this rank can be reached at.
 */
#include "exec/net.h"
#include "exec/tcp.h"

#include <netinet/in.h>
#include <string.h>

char *
tt_tcp_address_text(const TtAddress *address)
{
    TtNetAddress net = { .bytes = sizeof(struct sockaddr_in) };

    memcpy(&net.address, address->bytes, sizeof net.address);
    if (net.address.ss_family == AF_INET6)
        net.bytes = sizeof(struct sockaddr_in6);
    return tt_net_text(&net, TRUE);
}

/* IPv4 before IPv6, which before what only one link knows. */
static guint
preference(const TtNetAddress *address)
{
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address->address;

    if (address->address.ss_family == AF_INET)
        return 2;
    return IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) ? 0 : 1;
}

static gboolean
choose_address(const char *interface, TtNetAddress *chosen, GError **error)
{
    g_autofree char *own = interface ? NULL : tt_net_own_host(NULL);
    g_autoptr(GArray) all =
        interface ? tt_net_interface(interface, 0, error) : tt_net_resolve(own, 0, error);
    guint best = 0;

    if (!all)
        return FALSE;
    for (guint i = 1; i < all->len; i++)
        if (preference(&g_array_index(all, TtNetAddress, i)) >
            preference(&g_array_index(all, TtNetAddress, best)))
            best = i;
    *chosen = g_array_index(all, TtNetAddress, best);
    return TRUE;
}

static void
set_port(TtNetAddress *address, guint port)
{
    if (address->address.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&address->address)->sin6_port = htons((guint16)port);
    else
        ((struct sockaddr_in *)&address->address)->sin_port = htons((guint16)port);
}

int
tt_tcp_listen(const TtWireOptions *options, TtAddress *mine, GError **error)
{
    TtNetAddress address;
    int fd;

    if (!choose_address(options->interface, &address, error))
        return -1;
    fd = tt_net_listen(&address, error);
    if (fd < 0) {
        g_prefix_error(error, "rank %u: ", options->rank);
        return -1;
    }
    set_port(&address, tt_net_port(fd));
    memset(mine->bytes, 0, sizeof mine->bytes);
    memcpy(mine->bytes, &address.address, address.bytes);
    return fd;
}
