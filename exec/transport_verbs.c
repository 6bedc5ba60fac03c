/* transport_verbs.c - connections over RDMA cards: slots written from memory to memory, pumped by the rank.
 *
 * verbs_wire.h says what travels, docs/verbs.md which card and address are taken.
 */
#include "exec/verbs_wire.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* Pumped so often in vain, acknowledgements that were not due go out as well; and so often, a look at the
 * sockets shows who has gone. */
#define PATIENCE   32
#define LOOK_AFTER 1024

/* Writes and events in flight over all queues, shared out among them: software RoCE can hold 32767. */
#define MOST_IN_FLIGHT 24000
#define LEAST_DEPTH    16
#define MOST_DEPTH     256

/* --- opening ------------------------------------------------------------------------------------- */

static void
free_peer(gpointer data)
{
    TtVerbsPeer *peer = data;

    tt_tcp_link_clear(&peer->link); /* the queues are freed with the card */
    g_ptr_array_unref(peer->ends);
    g_free(peer->queues);
    g_free(peer->used);
    g_free(peer);
}

static void
clear_ends(TtWire *self)
{
    for (guint i = 0; i < self->n_ends; i++)
        g_free(self->ends[i].next_of);
    g_clear_pointer(&self->ends, g_free);
    self->n_ends = 0;
}

static void
verbs_close(TtWire *self)
{
    if (!self)
        return;
    clear_ends(self);
    tt_verbs_close(self->verbs);
    g_ptr_array_unref(self->peers);
    g_ptr_array_unref(self->active);
    if (self->listener >= 0)
        close(self->listener);
    g_clear_error(&self->error);
    g_free(self->fds);
    g_free(self);
}

/* "mlx5_0", "mlx5_0:1", or several of them with commas: rank r takes the r-th, in turn. */
static gboolean
choose_device(const TtWireOptions *options, char **device, guint *port, GError **error)
{
    g_auto(GStrv) all = g_strsplit(options->device ? options->device : "", ",", -1);
    guint n = g_strv_length(all);
    char *colon;
    guint64 number = 0;

    *device = n ? g_strdup(all[options->rank % n]) : NULL;
    *port = 0;
    colon = *device ? strchr(*device, ':') : NULL;
    if (!colon)
        return TRUE;
    *colon = '\0';
    if (g_ascii_string_to_unsigned(colon + 1, 10, 1, 255, &number, NULL)) {
        *port = (guint)number;
        return TRUE;
    }
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                "device \"%s:%s\": the port is a number from 1 to 255", *device, colon + 1);
    return FALSE;
}

static TtVerbs *
open_card(TtWire *self, GError **error)
{
    const TtWireOptions *o = &self->options;
    guint n_queues = MAX(1, (o->n_ranks - 1) * o->streams);
    guint depth = CLAMP(MOST_IN_FLIGHT / n_queues / 3, LEAST_DEPTH, MOST_DEPTH);
    g_autofree char *device = NULL;
    TtVerbsOptions options = { .gid_index = o->gid_index,
                               .n_queues = n_queues,
                               .send_depth = depth,
                               .receive_depth = 2 * depth };
    TtVerbs *verbs;

    if (!choose_device(o, &device, &options.port, error))
        return NULL;
    options.device = device;
    verbs = tt_verbs_open(&options, error);
    if (verbs)
        self->receive_depth = tt_verbs_info(verbs)->receive_depth;
    return verbs;
}

static TtWire *
verbs_open(const TtWireOptions *options, TtAddress *mine, GError **error)
{
    TtWire *self = g_new0(TtWire, 1);

    self->options = *options;
    self->peers = g_ptr_array_new_with_free_func(free_peer);
    self->active = g_ptr_array_new();
    self->verbs = open_card(self, error);
    self->listener = self->verbs ? tt_tcp_listen(options, mine, error) : -1;
    if (self->listener < 0)
        g_clear_pointer(&self, verbs_close);
    return self;
}

/* --- a job --------------------------------------------------------------------------------------- */

static TtVerbsPeer *
new_peer(TtWire *self, guint rank, GError **error)
{
    TtVerbsPeer *peer = g_new0(TtVerbsPeer, 1);

    peer->rank = rank;
    tt_tcp_link_init(&peer->link, rank, 0);
    peer->queues = g_new0(TtVerbsQueue *, self->options.streams);
    peer->used = g_new0(guint, self->options.streams);
    peer->ends = g_ptr_array_new();
    g_ptr_array_add(self->peers, peer);
    for (guint i = 0; i < self->options.streams; i++) {
        g_autofree char *name = g_strdup_printf("rank %u", rank);

        peer->queues[i] = tt_verbs_queue_new(self->verbs, name, peer, error);
        if (!peer->queues[i] || !tt_verbs_receive(peer->queues[i], self->receive_depth, error))
            return NULL;
    }
    return peer;
}

static TtVerbsPeer *
find_peer(TtWire *self, guint rank, GError **error)
{
    for (guint i = 0; i < self->peers->len; i++) {
        TtVerbsPeer *peer = g_ptr_array_index(self->peers, i);

        if (peer->rank == rank)
            return peer;
    }
    return new_peer(self, rank, error);
}

static void
open_end(TtWire *self, TtVerbsEnd *end, const TtWireEnd *given, TtVerbsPeer *peer)
{
    *end = (TtVerbsEnd){ .end = given,
                         .peer = peer,
                         .index = peer->ends->len,
                         .first = given->memory + TT_PAIR_BYTES,
                         .ack = (_Atomic guint64 *)(gpointer)given->memory,
                         .next = 1,
                         .next_of = g_new(guint64, self->options.streams) };
    for (guint s = 0; s < self->options.streams; s++)
        end->next_of[s] = s + 1;
    if (peer->ends->len == 0)
        g_ptr_array_add(self->active, peer);
    g_ptr_array_add(peer->ends, end);
}

static gboolean
open_ends(TtWire *self, const TtWireJob *job, GError **error)
{
    clear_ends(self);
    g_ptr_array_set_size(self->active, 0);
    for (guint i = 0; i < self->peers->len; i++)
        g_ptr_array_set_size(((TtVerbsPeer *)g_ptr_array_index(self->peers, i))->ends, 0);
    if (job->n_ends > TT_VERBS_MOST_ENDS) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "rank %u has %u connections: at most %u over verbs", self->options.rank,
                    job->n_ends, TT_VERBS_MOST_ENDS);
        return FALSE;
    }
    self->ends = g_new0(TtVerbsEnd, MAX(1, job->n_ends));
    for (guint i = 0; i < job->n_ends; i++) {
        TtVerbsPeer *peer = find_peer(self, job->ends[i].peer, error);

        if (!peer)
            return FALSE;
        open_end(self, &self->ends[self->n_ends++], &job->ends[i], peer);
    }
    return TRUE;
}

/* The same memory is registered once. */
static gboolean
register_memory(TtWire *self, const TtWireJob *job, GError **error)
{
    if (self->memory && self->start == job->memory && self->bytes == job->memory_bytes)
        return TRUE;
    tt_verbs_unregister(self->memory);
    self->memory = tt_verbs_register(self->verbs, job->memory, job->memory_bytes, FALSE, error);
    self->start = job->memory;
    self->bytes = job->memory_bytes;
    return self->memory != NULL;
}

static gboolean
connect_sockets(TtWire *self, GError **error)
{
    guint n = self->active->len;
    g_autofree TtTcpLink **links = g_new0(TtTcpLink *, MAX(1, n));
    int card[2];

    for (guint i = 0; i < n; i++)
        links[i] = &((TtVerbsPeer *)g_ptr_array_index(self->active, i))->link;
    if (!tt_tcp_connect(&self->options, self->listener, links, n, error))
        return FALSE;
    g_free(self->fds);
    self->fds = g_new0(struct pollfd, n + 2);
    tt_verbs_descriptors(self->verbs, card);
    for (guint i = 0; i < 2; i++)
        self->fds[i] = (struct pollfd){ .fd = card[i], .events = POLLIN };
    for (guint i = 0; i < n; i++) /* letters of the next job are no reason to wake up */
        self->fds[2 + i] = (struct pollfd){ .fd = links[i]->fd, .events = POLLRDHUP };
    return TRUE;
}

static gboolean
verbs_begin(TtWire *self, const TtWireJob *job, GError **error)
{
    self->job = job->job & 63;
    self->quiet = 0;
    return open_ends(self, job, error) && register_memory(self, job, error) &&
           connect_sockets(self, error) && tt_verbs_exchange(self, job, error);
}

static gboolean
verbs_reach_device(TtWire *self, const TtWireDevice *device, GError **error)
{
    g_clear_pointer(&self->payloads, tt_verbs_unregister);
    self->device = (TtWireDevice){ .dma_buf = -1 };
    if (!device)
        return TRUE;
    self->payloads = tt_verbs_register_device(self->verbs, device->memory, device->bytes,
                                              device->dma_buf, device->dma_buf_offset, error);
    if (self->payloads)
        self->device = *device;
    return self->payloads != NULL;
}

/* --- running ------------------------------------------------------------------------------------- */

/* A socket that was closed: the peer has gone, whatever the card says later. */
static void
find_gone(TtWire *self)
{
    for (guint i = 0; i < self->active->len; i++) {
        TtVerbsPeer *peer = g_ptr_array_index(self->active, i);

        if (peer->silent || !self->fds[2 + i].revents || self->error)
            continue;
        g_set_error(&self->error, TT_EXEC_ERROR, TT_EXEC_ERROR_NETWORK, "closed by the other side");
        tt_verbs_broke(self, peer);
    }
}

static gboolean
has_bad_news(TtWire *self)
{
    if (!tt_verbs_woken(self->verbs, &self->error))
        tt_verbs_broke(self, NULL);
    else if (poll(self->fds + 2, self->active->len, 0) > 0)
        find_gone(self);
    return self->error != NULL;
}

static TtWireNews
verbs_pump(TtWire *self)
{
    TtWireNews news;

    if (self->error || !tt_verbs_send_all(self, self->quiet > PATIENCE))
        return TT_WIRE_FAILED;
    news = tt_verbs_receive_all(self);
    self->quiet = news == TT_WIRE_MOVED ? 0 : self->quiet + 1;
    if (news == TT_WIRE_IDLE && self->quiet % LOOK_AFTER == 0 && has_bad_news(self))
        news = TT_WIRE_FAILED;
    return news;
}

/* Written is not enough: the memory may be used for something else afterwards. */
static gboolean
verbs_is_flushed(const TtWire *self)
{
    for (guint i = 0; i < self->n_ends; i++)
        if (!self->ends[i].peer->silent && tt_verbs_is_filled(&self->ends[i]))
            return FALSE;
    return self->unreported == 0;
}

static void
verbs_sleep(TtWire *self, int timeout_ms)
{
    if (self->error || !tt_verbs_send_all(self, TRUE) || !tt_verbs_arm(self->verbs))
        return;
    if (poll(self->fds, self->active->len + 2, timeout_ms) <= 0)
        return;
    if (tt_verbs_woken(self->verbs, &self->error))
        find_gone(self);
    else
        tt_verbs_broke(self, NULL);
}

static void
verbs_explain(const TtWire *self, guint *peer, GError **error)
{
    const TtVerbsInfo *info = tt_verbs_info(self->verbs);

    *peer = self->broken;
    if (self->broken == TT_NO_RANK)
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_NETWORK,
                    "the RDMA card of rank %u failed: %s", self->options.rank,
                    self->error->message);
    else
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_NETWORK,
                    "the connection between rank %u and rank %u (from %s on %s) broke: %s",
                    self->options.rank, self->broken, info->address, info->device,
                    self->error->message);
}

static void
verbs_harm(TtWire *self, guint rank, TtHarm how)
{
    if (how == TT_HARM_NOISE)
        tt_tcp_make_noise(self->options.address(self->options.context, rank));
    for (guint i = 0; i < self->peers->len && how != TT_HARM_NOISE; i++) {
        TtVerbsPeer *peer = g_ptr_array_index(self->peers, i);

        if (peer->rank != rank)
            continue;
        for (guint s = 0; s < self->options.streams && how == TT_HARM_CUT; s++)
            tt_verbs_queue_break(peer->queues[s]);
        if (how == TT_HARM_CUT)
            shutdown(peer->link.fd, SHUT_RDWR);
        peer->silent |= how == TT_HARM_SILENT;
    }
}

const TtTransport tt_transport_verbs = {
    .name = "verbs",
    .summary = "RDMA writes over InfiniBand or RoCE",
    .open = verbs_open,
    .close = verbs_close,
    .reach_device = verbs_reach_device,
    .begin = verbs_begin,
    .pump = verbs_pump,
    .is_flushed = verbs_is_flushed,
    .sleep = verbs_sleep,
    .explain = verbs_explain,
    .harm = verbs_harm,
};
