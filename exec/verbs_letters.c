/* verbs_letters.c - both ends of queue pairs introduce themselves over a socket.
 *
 *     head | address of each queue pair | place of each end
 *
 * Of the same length on both sides, in the order of the connections' numbers.
 */
#include "exec/verbs_wire.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#define MAGIC                                                                                      \
    G_GUINT64_CONSTANT(0x3276697474757474) /* "ttuttiv2"; other byte orders read it otherwise */
#define LOOK_MS 20

typedef struct {
    guint64 magic;
    guint32 job, n_ends, n_queues, unused;
    TtVerbsRemote remote, payloads; /* no payloads: zeros */
} Head;

typedef struct {
    guint32 connection, sends;
    guint64 offset;  /* of slot 0 in the memory */
    guint64 payload; /* its address; 0: in the slot */
} Place;

/* A letter to and one from a peer, under way. */
typedef struct {
    TtVerbsPeer *peer;
    gsize bytes, written, read;
    guint8 *mine, *theirs;
} Mail;

static gboolean
fail(const TtWireOptions *options, guint peer, const char *what, int code, GError **error)
{
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_NETWORK,
                "rank %u cannot agree with rank %u on queue pairs: %s%s%s", options->rank, peer,
                what, code ? ": " : "", code ? g_strerror(code) : "");
    return FALSE;
}

/* --- one letter --------------------------------------------------------------------------------- */

static Mail
write_letter(const TtWire *self, const TtWireJob *job, TtVerbsPeer *peer)
{
    const TtWireOptions *options = &self->options;
    Head head = {
        .magic = MAGIC, .job = job->job, .n_ends = peer->ends->len, .n_queues = options->streams
    };
    Mail mail = { .peer = peer,
                  .bytes = sizeof head + options->streams * sizeof(TtVerbsAddress) +
                           peer->ends->len * sizeof(Place) };
    guint8 *at;

    mail.mine = at = g_malloc0(mail.bytes);
    mail.theirs = g_malloc0(mail.bytes);
    tt_verbs_remote(self->memory, &head.remote);
    if (self->payloads)
        tt_verbs_remote(self->payloads, &head.payloads);
    memcpy(at, &head, sizeof head);
    at += sizeof head;
    for (guint i = 0; i < options->streams; i++, at += sizeof(TtVerbsAddress)) {
        TtVerbsAddress address;

        tt_verbs_address(peer->queues[i], &address);
        memcpy(at, &address, sizeof address);
    }
    for (guint i = 0; i < peer->ends->len; i++, at += sizeof(Place)) {
        const TtVerbsEnd *end = g_ptr_array_index(peer->ends, i);
        Place place = { .connection = end->end->connection,
                        .sends = end->end->sends,
                        .offset = (guint64)(end->first - (guint8 *)job->memory),
                        .payload = (guint64)(gsize)end->end->payload };

        memcpy(at, &place, sizeof place);
    }
    return mail;
}

static gboolean
connect_queues(const TtWireOptions *options, TtVerbsPeer *peer, const guint8 *at, GError **error)
{
    for (guint i = 0; i < options->streams && !peer->connected; i++, at += sizeof(TtVerbsAddress)) {
        TtVerbsAddress address;

        memcpy(&address, at, sizeof address);
        if (!tt_verbs_connect(peer->queues[i], &address, error))
            return FALSE;
    }
    peer->connected = TRUE;
    return TRUE;
}

static gboolean
read_letter(const TtWireOptions *options, const Mail *mail, GError **error)
{
    TtVerbsPeer *peer = mail->peer;
    const guint8 *at = mail->theirs;
    Head mine, head;

    memcpy(&mine, mail->mine, sizeof mine);
    memcpy(&head, at, sizeof head);
    if (head.magic != MAGIC)
        return fail(options, peer->rank, "another version or byte order", 0, error);
    if (head.job != mine.job || head.n_ends != mine.n_ends || head.n_queues != mine.n_queues)
        return fail(options, peer->rank, "it has other connections", 0, error);
    at += sizeof head;
    if (!connect_queues(options, peer, at, error))
        return FALSE;
    at += options->streams * sizeof(TtVerbsAddress);
    peer->key = GUINT32_FROM_BE(head.remote.key);
    peer->payload_key = GUINT32_FROM_BE(head.payloads.key);
    for (guint i = 0; i < head.n_ends; i++, at += sizeof(Place)) {
        TtVerbsEnd *end = g_ptr_array_index(peer->ends, i);
        Place place;

        memcpy(&place, at, sizeof place);
        if (place.connection != end->end->connection || place.sends == (guint32)end->end->sends)
            return fail(options, peer->rank, "it has other connections", 0, error);
        end->first_there = GUINT64_FROM_BE(head.remote.address) + place.offset;
        end->payload_there = place.payload;
    }
    return TRUE;
}

/* --- all of them -------------------------------------------------------------------------------- */

static gboolean
is_done(const Mail *mail)
{
    return mail->written == mail->bytes && mail->read == mail->bytes;
}

/* What goes now. FALSE if the peer has gone; errno says how. */
static gboolean
go_on(Mail *mail)
{
    int fd = mail->peer->link.fd;
    ssize_t n = 0;

    if (mail->written < mail->bytes) {
        n = send(fd, mail->mine + mail->written, mail->bytes - mail->written,
                 MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return FALSE;
        mail->written += (gsize)MAX(n, 0);
    }
    if (mail->read < mail->bytes) {
        n = recv(fd, mail->theirs + mail->read, mail->bytes - mail->read, MSG_DONTWAIT);
        if (n == 0)
            errno = ECONNRESET;
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return FALSE;
        mail->read += (gsize)MAX(n, 0);
    }
    return TRUE;
}

static Mail *
find_open(Mail *mails, guint n)
{
    for (guint i = 0; i < n; i++)
        if (!is_done(&mails[i]))
            return &mails[i];
    return NULL;
}

static void
sleep_a_moment(const Mail *mails, guint n)
{
    g_autofree struct pollfd *fds = g_new0(struct pollfd, n);

    for (guint i = 0; i < n; i++)
        fds[i] = (struct pollfd){
            .fd = is_done(&mails[i]) ? -1 : mails[i].peer->link.fd,
            .events = (short)(POLLIN | (mails[i].written < mails[i].bytes ? POLLOUT : 0))
        };
    poll(fds, n, LOOK_MS);
}

static gboolean
deliver(const TtWireOptions *options, Mail *mails, guint n, GError **error)
{
    gint64 end_us = g_get_monotonic_time() + (gint64)(options->timeout_s * 1e6);
    const Mail *open;

    while ((open = find_open(mails, n))) {
        for (guint i = 0; i < n; i++)
            if (!is_done(&mails[i]) && !go_on(&mails[i]))
                return fail(options, mails[i].peer->rank, "it has gone", errno, error);
        if (atomic_load(options->aborted))
            return fail(options, open->peer->rank, "stopped", ECANCELED, error);
        if (g_get_monotonic_time() > end_us)
            return fail(options, open->peer->rank, "no letter came", ETIMEDOUT, error);
        if (find_open(mails, n))
            sleep_a_moment(mails, n);
    }
    return TRUE;
}

gboolean
tt_verbs_exchange(TtWire *self, const TtWireJob *job, GError **error)
{
    const TtWireOptions *options = &self->options;
    guint n_peers = self->active->len;
    g_autofree Mail *mails = g_new0(Mail, MAX(1, n_peers));
    gboolean good;

    for (guint i = 0; i < n_peers; i++)
        mails[i] = write_letter(self, job, g_ptr_array_index(self->active, i));
    good = deliver(options, mails, n_peers, error);
    for (guint i = 0; i < n_peers; i++) {
        good = good && read_letter(options, &mails[i], error);
        g_free(mails[i].mine);
        g_free(mails[i].theirs);
    }
    return good;
}
