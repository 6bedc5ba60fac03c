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
    guint64 lent;         /* sender: count after the last message that was lent; 0: none */
    _Atomic guint64 *ack; /* messages the receiver is done with */
    guint32 n_slots, peer;
    gboolean in_memory; /* not over a wire */
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

/* The receiver is done with all that was lent. */
static inline gboolean
tt_port_has_returns(TtPort *out)
{
    if (out->lent + out->n_slots > out->limit)
        out->limit = atomic_load_explicit(out->ack, memory_order_acquire) + out->n_slots;
    return out->lent + out->n_slots <= out->limit;
}

static inline void
tt_port_next(TtPort *port)
{
    port->slot += port->stride;
    if (port->slot == port->end)
        port->slot = port->first;
}

/* Of a lent message: in the line of its sequence number. */
static inline const guint8 **
tt_port_lent_at(const TtPort *port)
{
    return (const guint8 **)(gpointer)(port->slot + TT_SLOT_SMALL_START);
}

/* @info: where the message ends, from the start of the slot; and what else TT_INFO_* says. */
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
