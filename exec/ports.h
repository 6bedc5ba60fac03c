/* ports.h - the two ends of a connection: look, hand over, acknowledge. The innermost words of the data path.
 */
#pragma once
#include "exec/shared.h"

/* One end of a connection, private to its rank. */
typedef struct {
    guint8 *slot; /* where message number `count` goes, or is expected */
    guint8 *first, *end;
    gsize stride;
    guint64 count;        /* messages passed */
    guint64 limit;        /* sender: may send while count < limit; from the last look at ack */
    _Atomic guint64 *ack; /* messages the receiver is done with */
    guint32 n_slots, peer;
} TtPort;

static inline TtSlotHead *
tt_port_head(const TtPort *port)
{
    return (TtSlotHead *)(gpointer)port->slot;
}

static inline gboolean
tt_port_has_message(const TtPort *in)
{
    return atomic_load_explicit(&tt_port_head(in)->sequence, memory_order_acquire) == in->count + 1;
}

/* Looks at the receiver's cache line only when the credit known of is spent. */
static inline gboolean
tt_port_has_slot(TtPort *out)
{
    if (G_LIKELY(out->count < out->limit))
        return TRUE;
    out->limit = atomic_load_explicit(out->ack, memory_order_acquire) + out->n_slots;
    return out->count < out->limit;
}

static inline void
tt_port_next(TtPort *port)
{
    port->slot += port->stride;
    if (port->slot == port->end)
        port->slot = port->first;
}

/* @info: where the message ends, from the start of the slot; and its checksum. */
static inline void
tt_port_hand_over(TtPort *out, guint64 info)
{
    tt_port_head(out)->info = info;
    atomic_store_explicit(&tt_port_head(out)->sequence, ++out->count, memory_order_release);
    tt_port_next(out);
}

static inline void
tt_port_acknowledge(TtPort *in)
{
    atomic_store_explicit(in->ack, ++in->count, memory_order_release);
    tt_port_next(in);
}
