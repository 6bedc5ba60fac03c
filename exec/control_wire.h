/* control_wire.h - one framed connection: whole messages in order, over a stream socket.
 *
 * A frame is 16 bytes (mark, kind, bytes of the body) and the body. Neither call blocks: what the
 * socket does not take is kept, what has not arrived yet is waited for by the caller's poll.
 */
#pragma once
#include <glib.h>

#define TT_WIRE_MAX_BYTES (256u << 20) /* of a frame's body; a larger one is a broken peer */

typedef struct {
    guint32 mark, kind;
    guint64 bytes;
} TtWireHeader;

TtWireHeader tt_wire_header(guint32 kind, gsize bytes);
gboolean tt_wire_header_good(const TtWireHeader *header);

typedef struct {
    int fd; /* -1: none, or gone */
    TtWireHeader header;
    gsize header_have, body_have;
    guint8 *body;
    GQueue out;     /* of GBytes, not sent yet */
    gsize out_sent; /* of the first */
    gboolean deaf;  /* the other end takes nothing more; what it sent before is still read */
} TtWire;

typedef struct {
    guint32 kind;
    guint8 *body; /* owned by who got it: g_free() */
    gsize bytes;
} TtWireFrame;

typedef enum { TT_WIRE_NOTHING, TT_WIRE_FRAME, TT_WIRE_GONE } TtWireResult;

void tt_wire_init(TtWire *self, int fd); /* takes @fd */
void tt_wire_clear(TtWire *self);

/* FALSE if nobody will get it. @bytes <= TT_WIRE_MAX_BYTES. */
gboolean tt_wire_send(TtWire *self, guint32 kind, gconstpointer data, gsize bytes);
void tt_wire_flush(TtWire *self);
gboolean tt_wire_has_output(const TtWire *self);

/* Reads what there is, up to one frame. */
TtWireResult tt_wire_read(TtWire *self, TtWireFrame *frame);
