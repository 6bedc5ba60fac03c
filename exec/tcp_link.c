#include "exec/tcp.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

void
tt_tcp_link_init(TtTcpLink *link, guint peer, guint index)
{
    *link = (TtTcpLink){ .fd = -1, .peer = peer, .index = index };
    link->stage = g_malloc(TT_TCP_STAGE_BYTES);
}

void
tt_tcp_link_clear(TtTcpLink *link)
{
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
    g_clear_pointer(&link->stage, g_free);
}

void
tt_tcp_link_begin(TtTcpLink *link, guint8 job, guint stream, TtTcpEnd *out, TtTcpEnd *in)
{
    link->job = job;
    link->out = out;
    link->in = in;
    link->stream = stream;
    link->next = stream + 1;
    link->n_tx = link->tx_at = 0;
}

/* --- sending ------------------------------------------------------------------------------------- */

static TtSlotHead *
slot_of(const TtTcpEnd *end, guint64 sequence)
{
    return (TtSlotHead *)(gpointer)(end->first + (sequence - 1) % end->n_slots * end->stride);
}

static gboolean
is_filled(const TtTcpLink *link)
{
    return atomic_load_explicit(&slot_of(link->out, link->next)->sequence, memory_order_relaxed) ==
           link->next;
}

/* Of a message that ends at @end in its slot. */
static gsize
payload_start(gsize end)
{
    return end <= TT_SLOT_HEAD_BYTES ? TT_SLOT_SMALL_START : TT_SLOT_HEAD_BYTES;
}

/* The address that a slot holds instead of a message: of one that is lent, or of where one is wanted. */
static guint8 **
address_in(TtSlotHead *head)
{
    return (guint8 **)(gpointer)((guint8 *)head + TT_SLOT_SMALL_START);
}

static void
add_message(TtTcpLink *link)
{
    TtSlotHead *head = slot_of(link->out, link->next);
    gsize end = TT_INFO_END(head->info), start = payload_start(end);
    guint8 *payload = head->info & TT_INFO_LENT ? *address_in(head) : (guint8 *)head + start;

    head->info &= ~TT_INFO_LENT;
    head->info |= (guint64)link->job << TT_TCP_JOB_SHIFT;
    if (payload == (guint8 *)head + TT_TCP_HEAD_BYTES) {
        link->tx[link->n_tx++] = (struct iovec){ head, end };
    } else {
        link->tx[link->n_tx++] = (struct iovec){ head, TT_TCP_HEAD_BYTES };
        link->tx[link->n_tx++] = (struct iovec){ payload, end - start };
    }
    link->next += link->out->n_streams;
}

/* Acknowledges at once what a sender may wait for: half of the slots. The rest goes along with messages, or
 * when there is nothing else to do. */
static void
add_credit(TtTcpLink *link, gboolean all)
{
    TtTcpEnd *in = link->in;
    guint64 consumed = atomic_load_explicit(in->ack, memory_order_relaxed);

    if (consumed == in->told || (!all && 2 * (consumed - in->told) < in->n_slots))
        return;
    in->told = consumed;
    atomic_store_explicit(&link->credit.sequence, consumed, memory_order_relaxed);
    link->credit.info = TT_TCP_HEAD_BYTES | TT_TCP_CREDIT | (guint64)link->job << TT_TCP_JOB_SHIFT;
    link->tx[link->n_tx++] = (struct iovec){ &link->credit, TT_TCP_HEAD_BYTES };
}

static void
gather(TtTcpLink *link, gboolean all)
{
    link->n_tx = link->tx_at = 0;
    if (link->in && link->stream == 0) /* for all streams of the connection */
        add_credit(link, all || (link->out && is_filled(link)));
    while (link->out && link->n_tx < 2 * TT_TCP_MOST_SLOTS - 1 && is_filled(link))
        add_message(link);
}

/* --- without a copy ------------------------------------------------------------------------------ */

/* Shorter sends cost more to report than to copy. */
#define ZEROCOPY_LEAST_BYTES 65536

/* Reports take the kernel's memory until they are fetched. */
#define ZEROCOPY_MOST_PENDING 64

void
tt_tcp_link_try_zerocopy(TtTcpLink *link)
{
    int one = 1;

    link->zerocopy = setsockopt(link->fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one) == 0;
}

/* Fetches what the kernel has to say about sends without a copy. When it had to copy after all, as it does where
 * both ends are on one machine, asking for it only cost. */
static void
fetch_reports(TtTcpLink *link)
{
    while (link->zerocopy_pending > 0) {
        char space[CMSG_SPACE(sizeof(struct sock_extended_err)) + 64];
        struct msghdr message = { .msg_control = space, .msg_controllen = sizeof space };
        const struct sock_extended_err *report;
        const struct cmsghdr *part;

        if (recvmsg(link->fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
            return;
        part = CMSG_FIRSTHDR(&message);
        if (!part)
            continue;
        report = (const struct sock_extended_err *)(gconstpointer)CMSG_DATA(part);
        if (report->ee_origin != SO_EE_ORIGIN_ZEROCOPY)
            continue;
        link->zerocopy_pending -=
            MIN(link->zerocopy_pending, report->ee_data - report->ee_info + 1);
        if (report->ee_code & SO_EE_CODE_ZEROCOPY_COPIED)
            link->zerocopy = FALSE;
    }
}

static gsize
left_bytes(const TtTcpLink *link)
{
    gsize bytes = 0;

    for (guint i = link->tx_at; i < link->n_tx; i++)
        bytes += link->tx[i].iov_len;
    return bytes;
}

/* What the kernel may still read: with zerocopy, until the receiver has consumed it. */
static void
count_sent(TtTcpLink *link, guint64 sequence)
{
    if (link->out && link->out->sent &&
        sequence > atomic_load_explicit(link->out->sent, memory_order_relaxed))
        atomic_store_explicit(link->out->sent, sequence, memory_order_relaxed);
}

static int
send_flags(const TtTcpLink *link)
{
    if (link->zerocopy && link->zerocopy_pending < ZEROCOPY_MOST_PENDING &&
        left_bytes(link) >= ZEROCOPY_LEAST_BYTES)
        return MSG_DONTWAIT | MSG_NOSIGNAL | MSG_ZEROCOPY;
    return MSG_DONTWAIT | MSG_NOSIGNAL;
}

/* --- sending, the rest --------------------------------------------------------------------------- */

static void
advance(TtTcpLink *link, gsize sent)
{
    while (link->tx_at < link->n_tx && sent >= link->tx[link->tx_at].iov_len)
        sent -= link->tx[link->tx_at++].iov_len;
    if (sent > 0) {
        link->tx[link->tx_at].iov_base = (guint8 *)link->tx[link->tx_at].iov_base + sent;
        link->tx[link->tx_at].iov_len -= sent;
    }
}

TtTcpResult
tt_tcp_link_send(TtTcpLink *link, gboolean all)
{
    link->full = FALSE;
    if (link->zerocopy_pending > 0)
        fetch_reports(link);
    for (;;) {
        ssize_t sent;
        int flags;

        if (link->tx_at == link->n_tx)
            gather(link, all);
        if (link->n_tx == 0)
            return TT_TCP_QUIET;
        flags = send_flags(link);
        if (link->n_tx - link->tx_at == 1) {
            const struct iovec *one = &link->tx[link->tx_at];

            sent = send(link->fd, one->iov_base, one->iov_len, flags);
        } else {
            struct msghdr message = { .msg_iov = link->tx + link->tx_at,
                                      .msg_iovlen = link->n_tx - link->tx_at };

            sent = sendmsg(link->fd, &message, flags);
        }
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == ENOBUFS && (flags & MSG_ZEROCOPY)) { /* no room for reports */
            link->zerocopy = FALSE;
            continue;
        }
        if (sent >= 0 && (flags & MSG_ZEROCOPY))
            link->zerocopy_pending++;
        if (sent < 0 && errno != EAGAIN)
            return TT_TCP_BROKEN;
        advance(link, sent > 0 ? (gsize)sent : 0);
        if (link->tx_at < link->n_tx) {
            link->full = TRUE;
            return TT_TCP_QUIET;
        }
        if (link->zerocopy_pending == 0)
            count_sent(link, link->next - 1);
        if (!link->out || !is_filled(link)) {
            link->n_tx = link->tx_at = 0;
            return TT_TCP_QUIET;
        }
    }
}

gboolean
tt_tcp_link_has_unsent(const TtTcpLink *link)
{
    return link->tx_at < link->n_tx || (link->out && is_filled(link));
}

/* --- receiving ----------------------------------------------------------------------------------- */

/* The head of a message: is it one that can come now? */
static gboolean
begin_message(TtTcpLink *link)
{
    const TtTcpEnd *in = link->in;
    guint64 sequence = atomic_load_explicit(&link->head.sequence, memory_order_relaxed);
    gsize end = TT_INFO_END(link->head.info);
    guint64 consumed;

    if (!in || TT_TCP_JOB(link->head.info) != link->job || end < TT_TCP_HEAD_BYTES ||
        end > in->stride)
        return FALSE;
    consumed = atomic_load_explicit(in->ack, memory_order_relaxed);
    if (sequence <= consumed || sequence > consumed + in->n_slots)
        return FALSE;
    link->slot = slot_of(in, sequence);
    link->rest = (guint8 *)link->slot + payload_start(end);
    link->rest_bytes = end - payload_start(end);
    link->head.info &= ~TT_INFO_PLACED;
    if (end > TT_SLOT_HEAD_BYTES && link->slot->info == (TT_INFO_WANTED | end)) {
        link->rest = *address_in(link->slot);
        link->head.info |= TT_INFO_PLACED;
    }
    return TRUE;
}

static void
take_credit(TtTcpLink *link)
{
    guint64 consumed = atomic_load_explicit(&link->head.sequence, memory_order_relaxed);

    if (link->out && TT_TCP_JOB(link->head.info) == link->job &&
        consumed > atomic_load_explicit(link->out->ack, memory_order_relaxed)) {
        atomic_store_explicit(link->out->ack, consumed, memory_order_release);
        count_sent(link, consumed);
    }
}

static void
finish_message(TtTcpLink *link)
{
    link->slot->info = link->head.info;
    atomic_store_explicit(&link->slot->sequence,
                          atomic_load_explicit(&link->head.sequence, memory_order_relaxed),
                          memory_order_release);
    link->slot = NULL;
}

/* Takes what the stage holds. */
static TtTcpResult
take_stage(TtTcpLink *link, TtTcpResult result)
{
    for (;;) {
        gsize have = link->stage_end - link->stage_first, n = MIN(have, link->rest_bytes);

        if (link->slot) {
            memcpy(link->rest, link->stage + link->stage_first, n);
            link->stage_first += n;
            link->rest += n;
            link->rest_bytes -= n;
            if (link->rest_bytes > 0)
                return result;
            finish_message(link);
            result = TT_TCP_NEWS;
            continue;
        }
        if (have < TT_TCP_HEAD_BYTES)
            return result;
        memcpy(&link->head, link->stage + link->stage_first, TT_TCP_HEAD_BYTES);
        link->stage_first += TT_TCP_HEAD_BYTES;
        if (link->head.info & TT_TCP_CREDIT) {
            take_credit(link);
            result = TT_TCP_NEWS;
        } else if (!begin_message(link)) {
            errno = EPROTO;
            return TT_TCP_BROKEN;
        }
    }
}

TtTcpResult
tt_tcp_link_receive(TtTcpLink *link)
{
    TtTcpResult result = TT_TCP_QUIET;

    for (;;) {
        gsize room, direct = link->slot ? link->rest_bytes : 0;
        struct iovec parts[2];
        ssize_t n;

        memmove(link->stage, link->stage + link->stage_first, link->stage_end - link->stage_first);
        link->stage_end -= link->stage_first;
        link->stage_first = 0;
        room = TT_TCP_STAGE_BYTES - link->stage_end;
        if (direct > 0) {
            parts[0] = (struct iovec){ link->rest, direct };
            parts[1] = (struct iovec){ link->stage + link->stage_end, room };
            n = readv(link->fd, parts, 2);
        } else {
            n = recv(link->fd, link->stage + link->stage_end, room, MSG_DONTWAIT);
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return result;
        if (n <= 0) {
            errno = n == 0 ? 0 : errno;
            return TT_TCP_BROKEN;
        }
        if (direct > 0) {
            gsize taken = MIN((gsize)n, direct);

            link->rest += taken;
            link->rest_bytes -= taken;
            link->stage_end += (gsize)n - taken;
            if (link->rest_bytes == 0) {
                finish_message(link);
                result = TT_TCP_NEWS;
            }
        } else {
            link->stage_end += (gsize)n;
        }
        result = take_stage(link, result);
        if (result == TT_TCP_BROKEN || (gsize)n < direct + room)
            return result;
    }
}
