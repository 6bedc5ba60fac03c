/* verbs_carry.c - what travels: filled slots one way, acknowledgements the other.
 */
#include "exec/verbs_wire.h"

/* What is written of a slot begins behind its sequence number. */
#define SKIPPED sizeof(guint64)

/* --- sending ------------------------------------------------------------------------------------- */

TtWireNews
tt_verbs_broke(TtWire *self, const TtVerbsPeer *peer)
{
    self->broken = peer ? peer->rank : TT_NO_RANK;
    return TT_WIRE_FAILED;
}

static TtSlotHead *
slot_of(const TtVerbsEnd *end, guint64 sequence)
{
    return (TtSlotHead *)(gpointer)(end->first +
                                    (sequence - 1) % end->end->n_slots * end->end->slot_stride);
}

gboolean
tt_verbs_is_filled(const TtVerbsEnd *end)
{
    return end->end->sends && atomic_load_explicit(&slot_of(end, end->next)->sequence,
                                                   memory_order_acquire) == end->next;
}

/* A long message of an end whose payloads are elsewhere, here or at the peer. */
static gboolean
is_apart(const TtVerbsEnd *end, guint64 info)
{
    return (end->end->payload || end->payload_there) && TT_INFO_END(info) > TT_SLOT_HEAD_BYTES;
}

/* What follows the sequence number in the write that tells of the message. */
static guint32
told_bytes(const TtVerbsEnd *end, guint64 info)
{
    return is_apart(end, info) ? sizeof info : (guint32)(TT_INFO_END(info) - SKIPPED);
}

static TtVerbsPosted
send_payload(TtWire *self, TtVerbsEnd *end, const TtSlotHead *head, TtVerbsQueue *queue)
{
    gsize slot = (gsize)((const guint8 *)head - end->first), behind = slot + TT_SLOT_HEAD_BYTES;
    TtVerbsWrite write = { .from = end->first + behind,
                           .memory = self->memory,
                           .bytes = (guint32)(TT_INFO_END(head->info) - TT_SLOT_HEAD_BYTES),
                           .to = end->first_there + behind,
                           .key = end->peer->key,
                           .silent = TRUE };
    TtVerbsPosted done;

    if (end->end->payload) {
        write.from = end->end->payload + slot;
        write.memory = self->payloads;
    }
    if (end->payload_there) {
        write.to = end->payload_there + slot;
        write.key = end->peer->payload_key;
    }
    done = tt_verbs_write(queue, &write, &self->error);
    end->is_halfway = done == TT_VERBS_POSTED;
    return done;
}

static TtVerbsPosted
send_message(TtWire *self, TtVerbsEnd *end)
{
    const TtSlotHead *head = slot_of(end, end->next);
    TtVerbsNote note = { .job = self->job, .end = end->index };
    gsize from = (gsize)((const guint8 *)head - end->first) + SKIPPED;
    TtVerbsWrite write = { .from = end->first + from,
                           .memory = self->memory,
                           .bytes = told_bytes(end, head->info),
                           .to = end->first_there + from,
                           .key = end->peer->key,
                           .immediate = tt_verbs_note_pack(&note),
                           .report = TRUE };
    TtVerbsQueue *queue = end->peer->queues[(end->next - 1) % self->options.streams];
    TtVerbsPosted done = TT_VERBS_POSTED;

    if (!end->is_halfway && is_apart(end, head->info))
        done = send_payload(self, end, head, queue);
    if (done == TT_VERBS_POSTED)
        done = tt_verbs_write(queue, &write, &self->error);
    if (done == TT_VERBS_POSTED) {
        end->next++;
        end->is_halfway = FALSE;
        self->unreported++;
    }
    return done;
}

/* Acknowledges at once what a sender may wait for: half of the slots. The rest when there is nothing else to
 * do. */
static TtVerbsPosted
send_credit(TtWire *self, TtVerbsEnd *end, gboolean all)
{
    guint64 consumed = atomic_load_explicit(end->ack, memory_order_relaxed);
    TtVerbsPosted done = TT_VERBS_POSTED;

    if (!all && 2 * (consumed - end->told) < end->end->n_slots)
        return TT_VERBS_POSTED;
    while (end->told < consumed && done == TT_VERBS_POSTED) {
        guint64 n = MIN(consumed - end->told, TT_VERBS_MOST_CREDITS);
        TtVerbsNote note = { .job = self->job, .credit = TRUE, .end = end->index, .n = (guint8)n };
        TtVerbsWrite write = { .to = end->first_there,
                               .key = end->peer->key,
                               .immediate = tt_verbs_note_pack(&note) };

        done = tt_verbs_write(end->peer->queues[0], &write, &self->error);
        if (done == TT_VERBS_POSTED)
            end->told += n;
    }
    return done;
}

gboolean
tt_verbs_send_all(TtWire *self, gboolean credits)
{
    for (guint i = 0; i < self->n_ends; i++) {
        TtVerbsEnd *end = &self->ends[i];
        TtVerbsPosted done = TT_VERBS_POSTED;

        if (end->peer->silent)
            continue;
        if (!end->end->sends)
            done = send_credit(self, end, credits);
        while (done == TT_VERBS_POSTED && tt_verbs_is_filled(end))
            done = send_message(self, end);
        if (done == TT_VERBS_FAILED) {
            tt_verbs_broke(self, end->peer);
            return FALSE;
        }
    }
    return TRUE;
}

/* --- receiving ----------------------------------------------------------------------------------- */

#define MOST_EVENTS 32 /* taken at a time */

/* Messages whose payload came to a device that must be asked to look. */
typedef struct {
    struct {
        TtSlotHead *head;
        guint64 sequence;
    } message[MOST_EVENTS];
    guint n;
} Unseen;

static gboolean
show(TtWire *self, const Unseen *unseen)
{
    if (unseen->n && !self->device.flush(self->device.context, &self->error))
        return FALSE;
    for (guint i = 0; i < unseen->n; i++)
        atomic_store_explicit(&unseen->message[i].head->sequence, unseen->message[i].sequence,
                              memory_order_release);
    return TRUE;
}

static guint
stream_of(const TtWire *self, const TtVerbsPeer *peer, const TtVerbsQueue *queue)
{
    for (guint s = 0; s < self->options.streams; s++)
        if (peer->queues[s] == queue)
            return s;
    g_assert_not_reached();
}

/* Offers receives again, many at a time. */
static gboolean
offer_again(TtWire *self, TtVerbsPeer *peer, guint stream)
{
    if (++peer->used[stream] < MAX(1, self->receive_depth / 4))
        return TRUE;
    if (!tt_verbs_receive(peer->queues[stream], peer->used[stream], &self->error))
        return FALSE;
    peer->used[stream] = 0;
    return TRUE;
}

/* A message: its sequence number, which hands it to the data path, comes last. FALSE if there can be none. */
static gboolean
take_message(TtWire *self, TtVerbsEnd *end, guint stream, guint32 bytes, Unseen *unseen)
{
    guint64 sequence = end->next_of[stream];
    TtSlotHead *head = slot_of(end, sequence);

    if (end->end->sends || told_bytes(end, head->info) != bytes ||
        TT_INFO_END(head->info) > end->end->slot_stride ||
        sequence > atomic_load_explicit(end->ack, memory_order_relaxed) + end->end->n_slots)
        return FALSE;
    end->next_of[stream] += self->options.streams;
    if (self->device.flush && end->end->payload && is_apart(end, head->info)) {
        unseen->message[unseen->n].head = head;
        unseen->message[unseen->n++].sequence = sequence;
    } else {
        atomic_store_explicit(&head->sequence, sequence, memory_order_release);
    }
    return TRUE;
}

static gboolean
take_credit(TtVerbsEnd *end, guint n)
{
    guint64 consumed = atomic_load_explicit(end->ack, memory_order_relaxed) + n;

    if (!end->end->sends || consumed >= end->next)
        return FALSE;
    atomic_store_explicit(end->ack, consumed, memory_order_release);
    return TRUE;
}

static TtWireNews
take_event(TtWire *self, const TtVerbsCompletion *event, Unseen *unseen)
{
    TtVerbsPeer *peer = event->user;
    guint stream = stream_of(self, peer, event->queue);
    TtVerbsNote note = tt_verbs_note_unpack(event->immediate);
    TtVerbsEnd *end = note.end < peer->ends->len ? g_ptr_array_index(peer->ends, note.end) : NULL;

    if (!offer_again(self, peer, stream))
        return tt_verbs_broke(self, peer);
    if (note.job != self->job || peer->silent) /* the last acknowledgements of an earlier job */
        return TT_WIRE_IDLE;
    if (end && (note.credit ? take_credit(end, note.n)
                            : take_message(self, end, stream, event->bytes, unseen)))
        return TT_WIRE_MOVED;
    g_set_error(&self->error, TT_EXEC_ERROR, TT_EXEC_ERROR_NETWORK,
                "what arrived is no message of this job");
    return tt_verbs_broke(self, peer);
}

TtWireNews
tt_verbs_receive_all(TtWire *self)
{
    TtVerbsCompletion events[MOST_EVENTS];
    TtWireNews news = TT_WIRE_IDLE;
    Unseen unseen;
    int n = tt_verbs_poll(self->verbs, events, G_N_ELEMENTS(events), &self->error);

    if (n < 0)
        return tt_verbs_broke(self, events[0].user);
    unseen.n = 0;
    for (int i = 0; i < n; i++) {
        TtWireNews one = TT_WIRE_IDLE;

        if (events[i].what == TT_VERBS_WRITTEN)
            self->unreported--;
        else
            one = take_event(self, &events[i], &unseen);
        if (one == TT_WIRE_FAILED)
            return one;
        if (one == TT_WIRE_MOVED)
            news = one;
    }
    return show(self, &unseen) ? news : tt_verbs_broke(self, NULL);
}
