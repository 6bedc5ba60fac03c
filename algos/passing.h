/* passing.h - which messages between ranks that see each other's buffers need no copy in a slot.
 *
 *   slot     the sender copies the message into a slot of the connection, the receiver reads it there.
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
 * The executor does as is said here, and the simulator charges for what is left to do. Knows steps and
 * buffers; no addresses, no ports.
 */
#pragma once
#include "algos/schedule.h"

typedef enum { TT_PASS_SLOT, TT_PASS_LENT, TT_PASS_PLACED } TtPass;

/* Shorter messages are cheaper to copy than to wait for at the end, above all where the core must go
 * round: with more ranks than cores. */
#define TT_PASS_LEAST_BYTES         1024
#define TT_PASS_LEAST_BYTES_CROWDED 8192

/* Finding out takes the square of the steps of a lane: those with more use slots. */
#define TT_PASS_MOST_STEPS 4096

/* One step of a lane with its peers resolved. Connections: any numbers, equal at both ends of one. */
typedef struct {
    TtStep step;                  /* dep_lane counts as the lanes of TtPassing do */
    guint32 recv_peer, send_peer; /* TT_NO_RANK if none */
    guint32 recv_connection, send_connection;
} TtPassStep;

typedef struct {
    TtPassStep *steps; /* of one round */
    guint32 n_steps;
} TtPassLane;

/* A plan as its ranks run it. */
typedef struct {
    const TtPassLane *lanes; /* [rank * n_lanes + lane] */
    guint n_lanes;
    guint first_lane, lanes_per_channel; /* of the plan, among n_lanes that may be of several */
    gboolean in_place;
} TtPassing;

/* How the message goes out that step @i of one round of @lane of @rank sends. @in_memory: both ends see each
 * other's buffers; else it can only be lent, to a wire. *buffer: of the receiver's, if placed. */
TtPass tt_passing_choose(const TtPassing *self, guint rank, guint lane, guint32 i,
                         gboolean in_memory, guint *buffer);

/* Which step of which rank, in the same lane, sends what step @i receives. FALSE: none. */
gboolean tt_passing_sender(const TtPassing *self, guint rank, guint lane, guint32 i, guint *peer,
                           guint32 *step);

/* Nothing this rank does later in the iteration, nor the receiver of what the step sends, reads or changes
 * what it stores: it may go past the caches. */
gboolean tt_passing_is_final(const TtPassing *self, guint rank, guint lane, guint32 i);

/* What of a step's passes over data is left: as if it were that other step. NOP: none at all. */
TtOp tt_passing_work(TtOp op, TtPass in, TtPass out);

/* The same for a whole plan, all of whose messages are in memory: [rank][lane][step of a round], one after the
 * other; the decisions only, not the lengths. NULL if finding out takes too long. */
typedef struct {
    guint8 out; /* TtPass */
    guint8 in;
} TtPassed;
TtPassed *tt_passing_of_plan(const TtPlan *plan, guint ranks_per_node, gboolean in_place);

/* A message of this span goes in one piece and so can do without a slot. */
gboolean tt_passing_is_whole(const TtPlan *plan, guint32 n_chunks);
