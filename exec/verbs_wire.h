/* verbs_wire.h - inside the verbs transport: peers, the ends of a job, and the letters that introduce them.
 *
 * With each peer a rank keeps a socket (tcp.h: the team's token keeps strangers out) and `streams` queue pairs.
 * At the start of a job both ends write a letter over the socket: their queue pairs' addresses, the key of
 * their memory, where in it each connection's slots are. Later the socket only shows that the peer has gone.
 *
 * A message is one RDMA write from the sender's slot into the same slot of the receiver, all but the sequence
 * number: cards need not write the bytes of one message in order. The receiver stores that number when the
 * immediate tells that the rest is there. Acknowledgements are immediates without bytes.
 *
 * Where either end has its payloads apart, in memory of a device, a long message is two writes of one queue pair: the
 * payload, from and to wherever each end has it, then the head with the immediate. A device may have to be asked to
 * look at what came; that is done once for all that one pump finds, before their sequence numbers are stored.
 */
#pragma once
#include "exec/tcp.h"
#include "exec/verbs.h"

/* The immediate: which job, which connection of those with this peer, and what happened on it. */
#define TT_VERBS_MOST_ENDS    (1u << 17)
#define TT_VERBS_MOST_CREDITS 255u
typedef struct {
    guint8 job; /* the lowest 6 bits */
    gboolean credit;
    guint32 end;
    guint8 n; /* credits */
} TtVerbsNote;

static inline guint32
tt_verbs_note_pack(const TtVerbsNote *note)
{
    return (guint32)(note->job & 63) << 26 | (guint32)note->credit << 25 | note->end << 8 | note->n;
}

static inline TtVerbsNote
tt_verbs_note_unpack(guint32 immediate)
{
    return (TtVerbsNote){ .job = immediate >> 26,
                          .credit = immediate >> 25 & 1,
                          .end = immediate >> 8 & (TT_VERBS_MOST_ENDS - 1),
                          .n = immediate & 255 };
}

typedef struct TtVerbsPeer TtVerbsPeer;

/* One end of a connection in this job. */
typedef struct {
    const TtWireEnd *end;
    TtVerbsPeer *peer;
    guint32 index; /* among those with this peer: the same on both sides */
    guint8 *first;
    _Atomic guint64 *ack;
    guint64 next;          /* sender: the message to write next, from 1 */
    gboolean is_halfway;   /* sender: its payload, which is apart, is written */
    guint64 *next_of;      /* receiver: the next to come of each stream */
    guint64 told;          /* receiver: consumed messages the sender knows of */
    guint64 first_there;   /* address of slot 0 at the peer */
    guint64 payload_there; /* of the payload that belongs to it; 0: in the slot */
} TtVerbsEnd;

struct TtVerbsPeer {
    guint rank;
    TtTcpLink link;
    TtVerbsQueue **queues; /* [streams] */
    guint *used;           /* [streams] receives used up and not offered again */
    gboolean connected, silent;
    GPtrArray *ends; /* TtVerbsEnd of this job; borrowed */
    guint32 key;     /* of its memory */
    guint32 payload_key;
};

/* A rank's wire over its card. */
struct TtWire {
    TtWireOptions options;
    TtVerbs *verbs;
    int listener;
    guint receive_depth;
    gpointer start; /* what memory is registered */
    gsize bytes;
    TtVerbsMemory *memory;
    TtWireDevice device;     /* where payloads may be */
    TtVerbsMemory *payloads; /* its registration; NULL: none */
    GPtrArray *peers;        /* TtVerbsPeer, kept from job to job */
    GPtrArray *active;       /* those of this job; borrowed */
    TtVerbsEnd *ends;        /* [n_ends] */
    guint n_ends;
    guint8 job;
    guint unreported;   /* messages written, and not yet sure to be there */
    guint quiet;        /* pumped in vain so often in a row */
    struct pollfd *fds; /* [2 + active]: the card's two, then the sockets */
    GError *error;      /* once something broke */
    guint broken;       /* with whom */
};

/* Writes to and reads from all peers with ends, and connects the queues of new ones. */
gboolean tt_verbs_exchange(TtWire *self, const TtWireJob *job, GError **error);

/* verbs_carry.c. Writes what is filled, and acknowledgements: those due, or, @credits, any. FALSE: broke. */
gboolean tt_verbs_send_all(TtWire *self, gboolean credits);
TtWireNews tt_verbs_receive_all(TtWire *self);
gboolean tt_verbs_is_filled(const TtVerbsEnd *end); /* the next message to send is there */

/* Remembers with whom it broke (NULL: the card); the error is in self->error. */
TtWireNews tt_verbs_broke(TtWire *self, const TtVerbsPeer *peer);
