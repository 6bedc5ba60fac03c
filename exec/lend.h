/* lend.h - which messages between ranks that see each other's buffers need no copy in a slot.
 *
 *   lent     the sender hands over where the message is, in a buffer of its own; the receiver reads it
 *            there. The acknowledgement then also says that the buffer may change.
 *   placed   the sender writes the message where the receiver wants it, in a buffer of the receiver.
 *
 * Decided before the run, from the plan alone, such that nobody ever waits for more than slots:
 *
 *   lent     if no later step of this iteration overwrites it, or only what is received from the very rank it
 *            was lent to, sent when that had read it. At the end of an iteration a rank waits until all
 *            it has lent is acknowledged: then the buffers are the caller's again.
 *   placed   if the sender has by then read a message of this iteration from the receiver, and after sending
 *            that the receiver does not touch the place.
 *
 * Rounds and channels work on parts of the vector of their own, so one round of one channel says all.
 * Knows steps and buffers; no addresses, no ports.
 */
#pragma once
#include "exec/shared.h"

/* Step @i of one round of @lane of @rank, which sends to a rank of this region. */
gboolean tt_may_lend(const TtJob *job, guint rank, guint lane, guint32 i);

/* ... and stores (tt_op_stores) or sends what it got; *buffer: of the receiver's. */
gboolean tt_may_place(const TtJob *job, guint rank, guint lane, guint32 i, guint *buffer);

/* Nothing this rank does later in the iteration, nor the receiver of what the step sends, reads or changes
 * what it stores: it may go past the caches. */
gboolean tt_is_final(const TtJob *job, guint rank, guint lane, guint32 i);
