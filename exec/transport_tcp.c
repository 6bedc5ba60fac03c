/* transport_tcp.c - connections over TCP: non-blocking sockets, pumped by the rank.
 */
#include "exec/tcp.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Up to so many sockets it is quicker to read them all than to ask which have something. */
#define READ_ALL 3

/* Pumped so often in vain, acknowledgements that were not due go out as well. */
#define PATIENCE 32

struct TtWire {
    TtWireOptions options;
    int listener, poller;
    GPtrArray *links;  /* TtTcpLink, kept from job to job */
    GPtrArray *active; /* those of this job; borrowed */
    TtTcpEnd *ends;    /* [n_ends] */
    guint quiet;       /* pumped in vain so often in a row */
    const TtTcpLink *broken;
    int code; /* errno of it */
};

/* --- opening ------------------------------------------------------------------------------------- */

static void
free_link(gpointer data)
{
    tt_tcp_link_clear(data);
    g_free(data);
}

static void
tcp_close(TtWire *self)
{
    if (!self)
        return;
    g_ptr_array_unref(self->links);
    g_ptr_array_unref(self->active);
    if (self->listener >= 0)
        close(self->listener);
    if (self->poller >= 0)
        close(self->poller);
    g_free(self->ends);
    g_free(self);
}

static TtWire *
tcp_open(const TtWireOptions *options, TtAddress *mine, GError **error)
{
    TtWire *self = g_new0(TtWire, 1);

    self->options = *options;
    self->links = g_ptr_array_new_with_free_func(free_link);
    self->active = g_ptr_array_new();
    self->poller = epoll_create1(EPOLL_CLOEXEC);
    self->listener = self->poller < 0 ? -1 : tt_tcp_listen(options, mine, error);
    if (self->poller < 0)
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM, "epoll: %s (see ulimit -n)",
                    g_strerror(errno));
    if (self->listener < 0)
        g_clear_pointer(&self, tcp_close);
    return self;
}

/* --- a job --------------------------------------------------------------------------------------- */

static TtTcpLink *
find_link(TtWire *self, guint peer, guint index)
{
    TtTcpLink *link;

    for (guint i = 0; i < self->links->len; i++) {
        link = g_ptr_array_index(self->links, i);
        if (link->peer == peer && link->index == index)
            return link;
    }
    link = g_new(TtTcpLink, 1);
    tt_tcp_link_init(link, peer, index);
    g_ptr_array_add(self->links, link);
    return link;
}

static TtTcpEnd
open_end(const TtWireEnd *end, guint n_streams)
{
    return (TtTcpEnd){ .first = end->memory + TT_PAIR_BYTES,
                       .ack = (_Atomic guint64 *)(gpointer)end->memory,
                       .stride = end->slot_stride,
                       .n_slots = end->n_slots,
                       .n_streams = n_streams };
}

/* The k-th end of each direction with @peer goes over links k * streams .. . */
static void
begin_links(TtWire *self, const TtWireJob *job, guint peer)
{
    guint n[2] = { 0, 0 }, streams = self->options.streams;

    for (guint i = 0; i < job->n_ends; i++) {
        const TtWireEnd *end = &job->ends[i];

        if (end->peer != peer)
            continue;
        self->ends[i] = open_end(end, streams);
        for (guint s = 0; s < streams; s++) {
            guint index = n[end->sends] * streams + s;
            TtTcpLink *link = find_link(self, peer, index);
            gboolean used = g_ptr_array_find(self->active, link, NULL);

            if (!used)
                g_ptr_array_add(self->active, link);
            tt_tcp_link_begin(link, (guint8)job->job, s,
                              end->sends ? &self->ends[i] : (used ? link->out : NULL),
                              end->sends ? (used ? link->in : NULL) : &self->ends[i]);
        }
        n[end->sends]++;
    }
}

static gboolean
is_first_with_peer(const TtWireJob *job, guint i)
{
    for (guint k = 0; k < i; k++)
        if (job->ends[k].peer == job->ends[i].peer)
            return FALSE;
    return TRUE;
}

/* All links are asked about what arrives; those that were not there before, from now on. */
static gboolean
watch_links(TtWire *self, const gboolean *is_new, GError **error)
{
    for (guint i = 0; i < self->active->len; i++) {
        TtTcpLink *link = g_ptr_array_index(self->active, i);
        struct epoll_event event = { .events = EPOLLIN, .data.ptr = link };

        if (is_new[i] && epoll_ctl(self->poller, EPOLL_CTL_ADD, link->fd, &event) != 0) {
            g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM, "epoll: %s", g_strerror(errno));
            return FALSE;
        }
    }
    return TRUE;
}

static gboolean
tcp_begin(TtWire *self, const TtWireJob *job, GError **error)
{
    g_autofree gboolean *is_new = NULL;

    g_ptr_array_set_size(self->active, 0);
    g_free(self->ends);
    self->ends = g_new0(TtTcpEnd, MAX(1, job->n_ends));
    self->quiet = 0;
    for (guint i = 0; i < self->links->len; i++)
        tt_tcp_link_begin(g_ptr_array_index(self->links, i), (guint8)job->job, 0, NULL, NULL);
    for (guint i = 0; i < job->n_ends; i++)
        if (is_first_with_peer(job, i))
            begin_links(self, job, job->ends[i].peer);
    is_new = g_new0(gboolean, MAX(1, self->active->len));
    for (guint i = 0; i < self->active->len; i++)
        is_new[i] = ((TtTcpLink *)g_ptr_array_index(self->active, i))->fd < 0;
    return tt_tcp_connect(&self->options, self->listener, (TtTcpLink *const *)self->active->pdata,
                          self->active->len, error) &&
           watch_links(self, is_new, error);
}

/* --- running ------------------------------------------------------------------------------------- */

static TtWireNews
broke(TtWire *self, const TtTcpLink *link)
{
    self->broken = link;
    self->code = errno;
    return TT_WIRE_FAILED;
}

/* Level-triggered: a full socket is asked about until it takes more. */
static void
want_out(TtWire *self, TtTcpLink *link)
{
    struct epoll_event event = { .events = EPOLLIN | (link->full ? EPOLLOUT : 0),
                                 .data.ptr = link };

    if (link->wants_out == link->full)
        return;
    link->wants_out = link->full;
    epoll_ctl(self->poller, EPOLL_CTL_MOD, link->fd, &event);
}

static gboolean
send_all(TtWire *self, gboolean credits)
{
    for (guint i = 0; i < self->active->len; i++) {
        TtTcpLink *link = g_ptr_array_index(self->active, i);

        if (link->silent)
            continue;
        if (tt_tcp_link_send(link, credits) == TT_TCP_BROKEN) {
            broke(self, link);
            return FALSE;
        }
        want_out(self, link);
    }
    return TRUE;
}

static TtWireNews
receive_from(TtWire *self, TtTcpLink *link, TtWireNews news)
{
    if (link->silent)
        return news;
    switch (tt_tcp_link_receive(link)) {
    case TT_TCP_NEWS: return TT_WIRE_MOVED;
    case TT_TCP_BROKEN: return broke(self, link);
    default: return news;
    }
}

static TtWireNews
receive_all(TtWire *self)
{
    TtWireNews news = TT_WIRE_IDLE;
    struct epoll_event events[32];
    int n;

    if (self->active->len <= READ_ALL) {
        for (guint i = 0; i < self->active->len && news != TT_WIRE_FAILED; i++)
            news = receive_from(self, g_ptr_array_index(self->active, i), news);
        return news;
    }
    n = epoll_wait(self->poller, events, G_N_ELEMENTS(events), 0);
    for (int i = 0; i < n && news != TT_WIRE_FAILED; i++)
        if (events[i].events & ~(guint32)EPOLLOUT)
            news = receive_from(self, events[i].data.ptr, news);
    return news;
}

static TtWireNews
tcp_pump(TtWire *self)
{
    TtWireNews news;

    if (!send_all(self, self->quiet > PATIENCE))
        return TT_WIRE_FAILED;
    news = receive_all(self);
    self->quiet = news == TT_WIRE_MOVED ? 0 : self->quiet + 1;
    return news;
}

static gboolean
tcp_is_flushed(const TtWire *self)
{
    for (guint i = 0; i < self->active->len; i++) {
        const TtTcpLink *link = g_ptr_array_index(self->active, i);

        if (!link->silent && tt_tcp_link_has_unsent(link))
            return FALSE;
    }
    return TRUE;
}

static void
tcp_sleep(TtWire *self, int timeout_ms)
{
    struct epoll_event event;

    if (send_all(self, TRUE))
        epoll_wait(self->poller, &event, 1, timeout_ms);
}

static void
tcp_explain(const TtWire *self, guint *peer, GError **error)
{
    const TtTcpLink *link = self->broken;
    g_autofree char *where =
        tt_tcp_address_text(self->options.address(self->options.context, link->peer));

    *peer = link->peer;
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_NETWORK,
                "the connection between rank %u and rank %u (%s) broke: %s", self->options.rank,
                link->peer, where,
                self->code == 0        ? "closed by the other side"
                : self->code == EPROTO ? "what arrived is no message of this job"
                                       : g_strerror(self->code));
}

/* --- on purpose ---------------------------------------------------------------------------------- */

static void
tcp_harm(TtWire *self, guint peer, TtHarm how)
{
    if (how == TT_HARM_NOISE)
        tt_tcp_make_noise(self->options.address(self->options.context, peer));
    for (guint i = 0; i < self->links->len && how != TT_HARM_NOISE; i++) {
        TtTcpLink *link = g_ptr_array_index(self->links, i);

        if (link->peer != peer)
            continue;
        if (how == TT_HARM_CUT)
            shutdown(link->fd, SHUT_RDWR);
        else if (!link->silent)
            epoll_ctl(self->poller, EPOLL_CTL_DEL, link->fd, NULL);
        link->silent |= how == TT_HARM_SILENT;
    }
}

const TtTransport tt_transport_tcp = {
    .name = "tcp",
    .summary = "TCP sockets, IPv4 or IPv6",
    .open = tcp_open,
    .close = tcp_close,
    .begin = tcp_begin,
    .pump = tcp_pump,
    .is_flushed = tcp_is_flushed,
    .sleep = tcp_sleep,
    .explain = tcp_explain,
    .harm = tcp_harm,
};
