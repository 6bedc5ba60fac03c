#include "exec/net.h"
#include "exec/exec.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* A thousand ranks may call one at once. */
#define BACKLOG 1024

int
tt_net_listen(const TtNetAddress *address, GError **error)
{
    int family = address->address.ss_family, on = 1, off = 0;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 && family != AF_UNIX) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (family == AF_INET6)
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    }
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address->address, address->bytes) < 0 ||
        listen(fd, BACKLOG) < 0) {
        int code = errno;
        g_autofree char *text = tt_net_text(address, TRUE);

        if (code == EADDRINUSE && family == AF_UNIX)
            g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                        "two processes on this machine run rank 0");
        else if (code == EADDRINUSE)
            g_set_error(
                error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                "port %s is in use, by another program or a second process for rank 0; choose "
                "another with --meet HOST:PORT",
                text);
        else
            g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM, "cannot listen at %s: %s%s",
                        text, g_strerror(code),
                        code == EADDRNOTAVAIL ? "; rank 0 must run on the host that --meet names"
                                              : "");
        if (fd >= 0)
            close(fd);
        return -1;
    }
    return fd;
}

guint
tt_net_port(int fd)
{
    TtNetAddress own = { .bytes = sizeof own.address };

    if (getsockname(fd, (struct sockaddr *)&own.address, &own.bytes) < 0)
        return 0;
    return ntohs(own.address.ss_family == AF_INET6
                     ? ((struct sockaddr_in6 *)&own.address)->sin6_port
                     : ((struct sockaddr_in *)&own.address)->sin_port);
}

/* 1 ready, 0 too late. */
static int
wait_for(int fd, short events, gint64 deadline_us)
{
    for (;;) {
        struct pollfd one = { fd, events, 0 };
        gint64 left_us = MAX(deadline_us - g_get_monotonic_time(), 0);
        int n = poll(&one, 1, (int)MIN((left_us + 999) / 1000, G_MAXINT));

        if (n > 0)
            return 1;
        if (n == 0 && g_get_monotonic_time() >= deadline_us)
            return 0;
    }
}

/* Connecting over and over to a port nobody listens on can meet itself, if the kernel picks that very
 * port for this end. */
static gboolean
is_self(int fd)
{
    TtNetAddress a = { .bytes = sizeof a.address }, b = { .bytes = sizeof b.address };

    return getsockname(fd, (struct sockaddr *)&a.address, &a.bytes) == 0 &&
           getpeername(fd, (struct sockaddr *)&b.address, &b.bytes) == 0 &&
           a.address.ss_family != AF_UNIX && a.bytes == b.bytes &&
           !memcmp(&a.address, &b.address, a.bytes);
}

int
tt_net_connect(const TtNetAddress *address, gint64 deadline_us)
{
    int fd = socket(address->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int code = 0;
    socklen_t bytes = sizeof code;

    if (fd < 0)
        return -1;
    if (connect(fd, (const struct sockaddr *)&address->address, address->bytes) < 0) {
        code = errno;
        if (code == EINPROGRESS || code == EINTR) {
            if (!wait_for(fd, POLLOUT, deadline_us))
                code = ETIMEDOUT;
            else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &bytes) < 0)
                code = errno;
        }
    }
    if (!code && is_self(fd))
        code = ECONNREFUSED;
    if (!code)
        return fd;
    close(fd);
    errno = code;
    return -1;
}

char *
tt_net_peer_text(int fd)
{
    TtNetAddress peer = { .bytes = sizeof peer.address };
    struct ucred who;
    socklen_t bytes = sizeof who;

    if (getpeername(fd, (struct sockaddr *)&peer.address, &peer.bytes) < 0)
        return g_strdup("unknown");
    if (peer.address.ss_family != AF_UNIX)
        return tt_net_text(&peer, FALSE);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) < 0)
        return g_strdup("this machine");
    return g_strdup_printf("process %d", (int)who.pid);
}

gboolean
tt_net_same_user(int fd)
{
    TtNetAddress own = { .bytes = sizeof own.address };
    struct ucred who;
    socklen_t bytes = sizeof who;

    if (getsockname(fd, (struct sockaddr *)&own.address, &own.bytes) < 0)
        return FALSE;
    if (own.address.ss_family != AF_UNIX)
        return TRUE;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0 && who.uid == geteuid();
}

void
tt_net_tune(int fd)
{
    int on = 1, idle_s = 4, interval_s = 2, probes = 3, unanswered_ms = 10000;

    /* meaningless on unix sockets, where each just fails */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_ms, sizeof unanswered_ms);
}

gboolean
tt_net_write(int fd, gconstpointer data, gsize bytes, gint64 deadline_us)
{
    const char *at = data;

    while (bytes) {
        ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n > 0) {
            at += n;
            bytes -= (gsize)n;
        } else if (errno != EAGAIN && errno != EINTR) {
            return FALSE;
        } else if (!wait_for(fd, POLLOUT, deadline_us)) {
            errno = ETIMEDOUT;
            return FALSE;
        }
    }
    return TRUE;
}

gboolean
tt_net_read(int fd, gpointer data, gsize bytes, gint64 deadline_us)
{
    char *at = data;

    while (bytes) {
        ssize_t n = recv(fd, at, bytes, MSG_DONTWAIT);

        if (n > 0) {
            at += n;
            bytes -= (gsize)n;
        } else if (n == 0) {
            errno = 0;
            return FALSE;
        } else if (errno != EAGAIN && errno != EINTR) {
            return FALSE;
        } else if (!wait_for(fd, POLLIN, deadline_us)) {
            errno = ETIMEDOUT;
            return FALSE;
        }
    }
    return TRUE;
}
