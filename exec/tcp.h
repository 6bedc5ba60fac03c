/* tcp.h - inside the tcp transport: links (one socket each), and how they come to be.
 *
 * Between two ranks there are as many links as the busier direction has connections, times `streams`.
 * Link k carries the k-th connection of either direction, in both directions: messages one way share the socket
 * with acknowledgements of the other. What travels is
 *
 *     sequence | info | payload ...        info: where it ends in a slot, TT_TCP_* bits, checksum
 *
 * The payload comes out of the slot or, if it is lent, out of a buffer, and goes into a slot or to where it is wanted.
 * An acknowledgement is such a head alone: its sequence is the number of messages consumed. The stream is
 * read through a small stage; what is left of a long message goes straight to its slot.
 */
#pragma once
#include "exec/shared.h"

#include <sys/socket.h>

/* In info, between the end and the checksum. */
#define TT_TCP_CREDIT      (G_GUINT64_CONSTANT(4) << TT_INFO_END_BITS)
#define TT_TCP_JOB_SHIFT   (TT_INFO_END_BITS + 3)
#define TT_TCP_JOB(info)   ((guint8)((info) >> TT_TCP_JOB_SHIFT))
#define TT_TCP_HEAD_BYTES  16
#define TT_TCP_STAGE_BYTES 16384
#define TT_TCP_MOST_SLOTS  16 /* one call sends */

/* One direction of a connection; shared by its streams. */
typedef struct {
    guint8 *first;
    _Atomic guint64 *ack;
    gsize stride;
    guint32 n_slots;
    guint32 n_streams;
    guint64 told;          /* receiver: consumed messages the sender knows of */
    _Atomic guint64 *sent; /* sender with one stream: messages the kernel has taken */
} TtTcpEnd;

typedef struct {
    int fd; /* -1: not there yet */
    guint32 peer, index;
    gboolean silent; /* a fault */
    gboolean full;   /* the socket took less than it was given: wants to hear when it takes more */
    gboolean wants_out;
    gboolean
        zerocopy; /* the kernel sends from our memory; until it says that it copied after all */
    guint32 zerocopy_pending; /* sends it has not yet reported */
    guint8 job;
    guint stream;
    TtTcpEnd *out, *in; /* NULL: none in this job */

    /* Sending: the next message of this stream, and what is left of what was begun. */
    guint64 next;
    struct iovec tx[2 * TT_TCP_MOST_SLOTS + 1];
    guint n_tx, tx_at;
    TtSlotHead credit;

    /* Receiving: what is missing of the message under way. */
    guint8 *rest;
    gsize rest_bytes;
    TtSlotHead *slot; /* its slot; NULL: between messages */
    TtSlotHead head;
    guint stage_first, stage_end;
    guint8 *stage; /* [TT_TCP_STAGE_BYTES] */
} TtTcpLink;

typedef enum { TT_TCP_QUIET, TT_TCP_NEWS, TT_TCP_BROKEN } TtTcpResult;

void tt_tcp_link_init(TtTcpLink *link, guint peer, guint index);
void tt_tcp_link_clear(TtTcpLink *link);
/* A new job: numbers start again. @stream: of out's and in's n_streams. */
void tt_tcp_link_begin(TtTcpLink *link, guint8 job, guint stream, TtTcpEnd *out, TtTcpEnd *in);

/* Lets the kernel send long messages without a copy, if it can. */
void tt_tcp_link_try_zerocopy(TtTcpLink *link);

/* Sends what is filled, and acknowledgements: those due, or, @all, any. */
TtTcpResult tt_tcp_link_send(TtTcpLink *link, gboolean all);
/* Receives what is there. */
TtTcpResult tt_tcp_link_receive(TtTcpLink *link);
gboolean tt_tcp_link_has_unsent(const TtTcpLink *link);

/* A TtAddress holds the sockaddr of where a rank listens. */
G_STATIC_ASSERT(sizeof(struct sockaddr_storage) == TT_ADDRESS_BYTES);

char *tt_tcp_address_text(const TtAddress *address); /* "10.0.0.2:4711", "[fd00::2]:4711" */

/* A listening socket on the interface asked for. -1 with an error: no such interface, and which there are. */
int tt_tcp_listen(const TtWireOptions *options, TtAddress *mine, GError **error);

/* Sockets for all @links that have none: calls those of higher ranks, is called by lower ones. Strangers are
 * turned away. */
gboolean tt_tcp_connect(const TtWireOptions *options, int listener, TtTcpLink *const *links,
                        guint n_links, GError **error);

/* A fault: what somebody might do who found the port. */
void tt_tcp_make_noise(const TtAddress *to);
