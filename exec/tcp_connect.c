/* tcp_connect.c - sockets for links: a rank calls those with higher numbers and is called by those with lower.
 *
 *     caller   hello: who, whom, which link, the team's token
 *     called   the same back; a hello that is not of this team gets none, and its socket closed
 */
#include "exec/net.h"
#include "exec/tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define MAGIC      G_GUINT64_CONSTANT(0x7470632d69747475) /* "utti-cpt" */
#define MOST_CALLS 64                                     /* callers that have not said hello yet */
#define HELLO_US   (2 * G_USEC_PER_SEC)
#define LOOK_MS    20

typedef struct {
    guint64 magic, token[2];
    guint32 from, to, index, pad;
} Hello;

/* A socket on its way to be a link's. */
typedef struct {
    int fd;                   /* -1: free */
    gboolean connected, said; /* a call of ours: it stands; hello is sent */
    Hello hello;
    gsize have;
    gint64 since_us;
} Call;

typedef struct {
    const TtWireOptions *options;
    int listener;
    TtTcpLink *const *links;
    guint n_links;
    Call *calls; /* [n_links], then those that called us [MOST_CALLS] */
} Setup;

static void
hang_up(Call *call)
{
    if (call->fd >= 0)
        close(call->fd);
    *call = (Call){ .fd = -1 };
}

/* The default of some systems, bbr, paces what need not be paced between ranks of one machine: it carries less
 * than half of what cubic does there. And where nothing leaves the machine, every send is a copy. */
static void
give_socket(TtTcpLink *link, int fd)
{
    TtNetAddress peer = { .bytes = sizeof peer.address };
    gboolean loopback;
    int one = 1;

    getpeername(fd, (struct sockaddr *)&peer.address, &peer.bytes);
    loopback = tt_net_is_loopback(&peer);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (loopback && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5) != 0)
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    link->fd = fd;
    if (!loopback)
        tt_tcp_link_try_zerocopy(link);
}

static gboolean
fail(const Setup *setup, const TtTcpLink *link, const char *what, int code, GError **error)
{
    g_autofree char *where =
        tt_tcp_address_text(setup->options->address(setup->options->context, link->peer));

    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_NETWORK, "rank %u %s rank %u at %s: %s",
                setup->options->rank, what, link->peer, where, g_strerror(code));
    return FALSE;
}

/* --- calling ------------------------------------------------------------------------------------- */

static gboolean
call_peer(Setup *setup, TtTcpLink *link, Call *call, GError **error)
{
    const TtAddress *to = setup->options->address(setup->options->context, link->peer);
    struct sockaddr_storage address;

    memcpy(&address, to->bytes, sizeof address);
    *call =
        (Call){ .fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0) };
    if (call->fd < 0)
        return fail(setup, link, "cannot call (see ulimit -n)", errno, error);
    if (connect(call->fd, (struct sockaddr *)&address,
                address.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                              : sizeof(struct sockaddr_in)) != 0 &&
        errno != EINPROGRESS)
        return fail(setup, link, "cannot reach", errno, error);
    return TRUE;
}

static Hello
hello_for(const Setup *setup, const TtTcpLink *link)
{
    const TtWireOptions *o = setup->options;

    return (Hello){ MAGIC, { o->token[0], o->token[1] }, o->rank, link->peer, link->index, 0 };
}

/* Reads what is there of a hello. FALSE if the other side has gone. */
static gboolean
read_hello(Call *call)
{
    ssize_t n = recv(call->fd, (guint8 *)&call->hello + call->have, sizeof call->hello - call->have,
                     MSG_DONTWAIT);

    if (n > 0)
        call->have += (gsize)n;
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static gboolean
go_on_calling(Setup *setup, TtTcpLink *link, Call *call, GError **error)
{
    Hello mine = hello_for(setup, link);
    int code = 0;
    socklen_t length = sizeof code;

    if (!call->said) {
        getsockopt(call->fd, SOL_SOCKET, SO_ERROR, &code, &length);
        if (code != 0)
            return fail(setup, link, "cannot reach", code, error);
        if (send(call->fd, &mine, sizeof mine, MSG_NOSIGNAL) != sizeof mine)
            return fail(setup, link, "cannot greet", errno, error);
        call->said = TRUE;
        return TRUE;
    }
    if (!read_hello(call))
        return fail(setup, link, "was turned away by", ECONNRESET, error);
    if (call->have < sizeof call->hello)
        return TRUE;
    if (memcmp(&call->hello, &mine, sizeof mine) != 0)
        return fail(setup, link, "does not understand", EPROTO, error);
    give_socket(link, call->fd);
    call->fd = -1;
    return TRUE;
}

/* --- being called -------------------------------------------------------------------------------- */

static void
answer_calls(Setup *setup)
{
    for (guint i = setup->n_links; i < setup->n_links + MOST_CALLS; i++) {
        Call *call = &setup->calls[i];

        if (call->fd >= 0)
            continue;
        *call = (Call){ .fd = accept4(setup->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC),
                        .since_us = g_get_monotonic_time() };
        if (call->fd < 0)
            return;
    }
}

static TtTcpLink *
find_called(const Setup *setup, const Hello *hello)
{
    const TtWireOptions *o = setup->options;

    if (hello->magic != MAGIC || hello->token[0] != o->token[0] || hello->token[1] != o->token[1] ||
        hello->to != o->rank)
        return NULL;
    for (guint i = 0; i < setup->n_links; i++)
        if (setup->links[i]->fd < 0 && setup->links[i]->peer == hello->from &&
            setup->links[i]->index == hello->index)
            return setup->links[i];
    return NULL;
}

static void
listen_to(Setup *setup, Call *call)
{
    TtTcpLink *link;

    if (!read_hello(call) ||
        (call->have < sizeof call->hello && g_get_monotonic_time() - call->since_us > HELLO_US)) {
        hang_up(call);
        return;
    }
    if (call->have < sizeof call->hello)
        return;
    link = find_called(setup, &call->hello);
    if (!link ||
        send(call->fd, &call->hello, sizeof call->hello, MSG_NOSIGNAL) != sizeof call->hello) {
        hang_up(call); /* a stranger */
        return;
    }
    give_socket(link, call->fd);
    call->fd = -1;
}

/* --- both ---------------------------------------------------------------------------------------- */

static const TtTcpLink *
find_missing(const Setup *setup)
{
    for (guint i = 0; i < setup->n_links; i++)
        if (setup->links[i]->fd < 0)
            return setup->links[i];
    return NULL;
}

static void
sleep_a_moment(const Setup *setup)
{
    guint n = setup->n_links + MOST_CALLS;
    g_autofree struct pollfd *fds = g_new(struct pollfd, n + 1);

    for (guint i = 0; i < n; i++)
        fds[i] = (struct pollfd){ .fd = setup->calls[i].fd,
                                  .events = i < setup->n_links && !setup->calls[i].said ? POLLOUT
                                                                                        : POLLIN };
    fds[n] = (struct pollfd){ .fd = setup->listener, .events = POLLIN };
    poll(fds, n + 1, LOOK_MS);
}

static gboolean
is_ready(int fd, short events)
{
    struct pollfd one = { .fd = fd, .events = events };

    return poll(&one, 1, 0) > 0;
}

static gboolean
go_on(Setup *setup, GError **error)
{
    for (guint i = 0; i < setup->n_links; i++) {
        Call *call = &setup->calls[i];

        if (call->fd >= 0 && is_ready(call->fd, call->said ? POLLIN : POLLOUT) &&
            !go_on_calling(setup, setup->links[i], call, error))
            return FALSE;
    }
    answer_calls(setup);
    for (guint i = setup->n_links; i < setup->n_links + MOST_CALLS; i++)
        if (setup->calls[i].fd >= 0)
            listen_to(setup, &setup->calls[i]);
    return TRUE;
}

static gboolean
set_up(Setup *setup, GError **error)
{
    gint64 end_us = g_get_monotonic_time() + (gint64)(setup->options->timeout_s * 1e6);
    const TtTcpLink *missing;

    for (guint i = 0; i < setup->n_links; i++)
        if (setup->links[i]->fd < 0 && setup->links[i]->peer > setup->options->rank &&
            !call_peer(setup, setup->links[i], &setup->calls[i], error))
            return FALSE;
    while ((missing = find_missing(setup))) {
        if (!go_on(setup, error))
            return FALSE;
        if (atomic_load(setup->options->aborted))
            return fail(setup, missing, "stopped waiting for", ECANCELED, error);
        if (g_get_monotonic_time() > end_us)
            return fail(setup, missing, "hears nothing from", ETIMEDOUT, error);
        if (find_missing(setup))
            sleep_a_moment(setup);
    }
    return TRUE;
}

gboolean
tt_tcp_connect(const TtWireOptions *options, int listener, TtTcpLink *const *links, guint n_links,
               GError **error)
{
    Setup setup = { options, listener, links, n_links, g_new0(Call, n_links + MOST_CALLS) };
    gboolean good;

    for (guint i = 0; i < n_links + MOST_CALLS; i++)
        setup.calls[i].fd = -1;
    good = set_up(&setup, error);
    for (guint i = 0; i < n_links + MOST_CALLS; i++)
        hang_up(&setup.calls[i]);
    g_free(setup.calls);
    return good;
}

/* --- on purpose ---------------------------------------------------------------------------------- */

/* As somebody who found the port: sends rubbish to one connection, nothing to another, and stays. */
void
tt_tcp_make_noise(const TtAddress *to)
{
    for (guint i = 0; i < 3; i++) {
        struct sockaddr_storage address;
        guint8 noise[512];
        int fd;

        memcpy(&address, to->bytes, sizeof address);
        fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        for (guint k = 0; k < sizeof noise; k++)
            noise[k] = (guint8)g_random_int();
        if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0 && i > 0 &&
            send(fd, noise, sizeof noise, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            close(fd);
    }
}
