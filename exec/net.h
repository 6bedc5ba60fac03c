/* net.h - addresses and stream sockets: resolve, listen, connect, tune.
 *
 * IPv4, IPv6 and abstract unix sockets alike. All descriptors are non-blocking and close on exec.
 * Deadlines are g_get_monotonic_time(). Knows no protocol.
 */
#pragma once
#include <glib.h>
#include <sys/socket.h>

typedef struct {
    struct sockaddr_storage address;
    socklen_t bytes;
} TtNetAddress;

/* All addresses of @host, in the system's order. Caller frees: GArray of TtNetAddress. */
GArray *tt_net_resolve(const char *host, guint port, GError **error);

/* Addresses of the interface called @name, or @name itself if it is an address of this machine. */
GArray *tt_net_interface(const char *name, guint port, GError **error);

/* "All interfaces": IPv6 with IPv4 where there is IPv6, else IPv4. */
GArray *tt_net_any(guint port);

/* The abstract unix socket @name. */
TtNetAddress tt_net_unix(const char *name);

gboolean tt_net_is_loopback(const TtNetAddress *address); /* unix sockets are, too */
gboolean tt_net_all_loopback(const GArray *addresses);
char *tt_net_text(const TtNetAddress *address, gboolean with_port); /* numeric; caller frees */

/* An address others can reach this machine at: of @interface if not NULL, else the first that is not
 * loopback; "127.0.0.1" if there is none. Caller frees. */
char *tt_net_own_host(const char *interface);

/* A listening descriptor, -1 with @error. */
int tt_net_listen(const TtNetAddress *address, GError **error);
guint tt_net_port(int fd); /* it is bound to */

/* A connected descriptor, or -1 with errno set: tries once, at most until @deadline_us. */
int tt_net_connect(const TtNetAddress *address, gint64 deadline_us);

/* Who is at the other end: an address, "process 123" for unix sockets. Caller frees. */
char *tt_net_peer_text(int fd);
gboolean tt_net_same_user(int fd); /* unix sockets: the other end is ours; TRUE for others */

/* Sends at once, and notices within about 10 s that the other host has died. */
void tt_net_tune(int fd);

/* Moves exactly @bytes, waiting until @deadline_us. FALSE: errno; 0 for an end of file. */
gboolean tt_net_write(int fd, gconstpointer data, gsize bytes, gint64 deadline_us);
gboolean tt_net_read(int fd, gpointer data, gsize bytes, gint64 deadline_us);
