/* verify_wires.h - the verifier's connections: FIFOs of messages that carry sets of contributors.
 *
 * Knows no plan and no slots; connections appear when they are first asked for. Internal to
 * verify*.c.
 */
#pragma once
#include <glib.h>

/* A message under way: what was sent, and whose contributions are in it. */
typedef struct TtWireMessage TtWireMessage;
struct TtWireMessage {
    TtWireMessage *next;
    guint32 step; /* that sent it */
    guint32 chunk, n_chunks;
    guint32 size_class; /* room for 2^size_class chunks */
    guint64 sets[];     /* [n_chunks][n_words] */
};

/* The FIFO from one rank to another in one sub-lane. */
typedef struct {
    guint32 src, dst, sub_lane;
    guint32 n_queued;
    TtWireMessage *head, *tail;
    guint64 bytes_sent, bytes_received;
} TtWire;

#define TT_NO_WIRE G_MAXUINT32

typedef struct {
    guint n_words;            /* of one set */
    GArray *wires;            /* TtWire */
    guint32 *table;           /* open addressing: connection + 1, 0: free */
    guint32 table_size;       /* a power of two */
    TtWireMessage *spare[33]; /* by size class */
} TtWires;

void tt_wires_init(TtWires *wires, guint n_words);
void tt_wires_clear(TtWires *wires);

static inline TtWire *
tt_wire(const TtWires *wires, guint32 index)
{
    return &g_array_index(wires->wires, TtWire, index);
}

/* Index of a connection, made if need be. Pointers to others are invalid afterwards. */
guint32 tt_wires_find(TtWires *wires, guint32 src, guint32 dst, guint32 sub_lane);

/* Queues a message; its sets are for the caller to fill. */
TtWireMessage *tt_wires_send(TtWires *wires, TtWire *to, guint32 step, guint32 chunk,
                             guint32 n_chunks);

/* Takes the first message off; it stays readable until the next send. */
void tt_wires_drop(TtWires *wires, TtWire *from);
