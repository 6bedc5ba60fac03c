#include "exec/control_wire.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define MARK 0x66727431u /* "frt1" */

TtWireHeader
tt_wire_header(guint32 kind, gsize bytes)
{
    return (TtWireHeader){ MARK, kind, bytes };
}

gboolean
tt_wire_header_good(const TtWireHeader *header)
{
    return header->mark == MARK && header->bytes <= TT_WIRE_MAX_BYTES;
}

void
tt_wire_init(TtWire *self, int fd)
{
    memset(self, 0, sizeof *self);
    self->fd = fd;
    g_queue_init(&self->out);
}

static void
drop_output(TtWire *self)
{
    g_queue_clear_full(&self->out, (GDestroyNotify)g_bytes_unref);
    self->out_sent = 0;
}

void
tt_wire_clear(TtWire *self)
{
    if (self->fd >= 0)
        close(self->fd);
    self->fd = -1;
    drop_output(self);
    g_clear_pointer(&self->body, g_free);
}

gboolean
tt_wire_has_output(const TtWire *self)
{
    return self->fd >= 0 && self->out.length > 0;
}

/* Bytes taken, 0 if the socket is full; closed for output it becomes deaf. */
static gsize
push(TtWire *self, const struct iovec *parts, gsize n_parts)
{
    struct msghdr message = { .msg_iov = (struct iovec *)parts, .msg_iovlen = n_parts };
    ssize_t n;

    do
        n = sendmsg(self->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno != EAGAIN && errno != ENOBUFS) {
        self->deaf = TRUE;
        drop_output(self);
    }
    return n > 0 ? (gsize)n : 0;
}

static void
keep(TtWire *self, const guint8 *data, gsize bytes, gsize sent)
{
    if (sent < bytes)
        g_queue_push_tail(&self->out, g_bytes_new(data + sent, bytes - sent));
}

gboolean
tt_wire_send(TtWire *self, guint32 kind, gconstpointer data, gsize bytes)
{
    TtWireHeader header = tt_wire_header(kind, bytes);
    struct iovec parts[2] = { { &header, sizeof header }, { (void *)data, bytes } };
    gsize sent = 0;

    g_assert(bytes <= TT_WIRE_MAX_BYTES);
    if (self->fd < 0 || self->deaf)
        return FALSE;
    if (!self->out.length)
        sent = push(self, parts, bytes ? 2 : 1);
    if (self->deaf)
        return FALSE;
    keep(self, (const guint8 *)&header, sizeof header, MIN(sent, sizeof header));
    keep(self, data, bytes, sent - MIN(sent, sizeof header));
    return TRUE;
}

void
tt_wire_flush(TtWire *self)
{
    while (tt_wire_has_output(self)) {
        GBytes *first = g_queue_peek_head(&self->out);
        gsize bytes;
        const guint8 *data = g_bytes_get_data(first, &bytes);
        struct iovec part = { (void *)(data + self->out_sent), bytes - self->out_sent };
        gsize sent = push(self, &part, 1);

        if (!sent)
            return;
        self->out_sent += sent;
        if (self->out_sent == bytes) {
            g_bytes_unref(g_queue_pop_head(&self->out));
            self->out_sent = 0;
        }
    }
}

/* TT_WIRE_FRAME: all of @bytes are there. */
static TtWireResult
fill(int fd, guint8 *to, gsize *have, gsize bytes)
{
    while (*have < bytes) {
        ssize_t n = recv(fd, to + *have, bytes - *have, MSG_DONTWAIT);

        if (n > 0)
            *have += (gsize)n;
        else if (n < 0 && errno == EAGAIN)
            return TT_WIRE_NOTHING;
        else if (n == 0 || errno != EINTR)
            return TT_WIRE_GONE;
    }
    return TT_WIRE_FRAME;
}

TtWireResult
tt_wire_read(TtWire *self, TtWireFrame *frame)
{
    TtWireResult result;

    if (self->fd < 0)
        return TT_WIRE_GONE;
    result = fill(self->fd, (guint8 *)&self->header, &self->header_have, sizeof self->header);
    if (result != TT_WIRE_FRAME)
        return result;
    if (!tt_wire_header_good(&self->header))
        return TT_WIRE_GONE;
    if (!self->body) {
        self->body = g_try_malloc(MAX(self->header.bytes, 16)); /* malloc aligns to 16 */
        self->body_have = 0;
        if (!self->body)
            return TT_WIRE_GONE;
    }
    result = fill(self->fd, self->body, &self->body_have, self->header.bytes);
    if (result != TT_WIRE_FRAME)
        return result;
    *frame = (TtWireFrame){ self->header.kind, g_steal_pointer(&self->body), self->header.bytes };
    self->header_have = 0;
    return TT_WIRE_FRAME;
}
