/* verify_run.h - one round of a plan on one channel, executed on sets of contributors.
 *
 * Internal to verify*.c. Lanes run until they block, in any order: a lane blocks only on FIFOs and
 * on steps of other lanes, so the outcome does not depend on the order.
 */
#pragma once
#include "algos/verify_cells.h"
#include "algos/verify_wires.h"

typedef enum {
    TT_PROOF_GOES_ON, /* to go on */
    TT_PROOF_ENDED,
    TT_PROOF_WAITS_FOR_STEP,
    TT_PROOF_WAITS_FOR_MESSAGE,
    TT_PROOF_WAITS_FOR_SLOT
} TtProofState;

typedef struct {
    guint32 rank, sub_lane;
    guint32 n_steps, at; /* at: the step it is in or before, = number of steps finished */
    TtStep step;
    guint32 in, out;   /* connections of that step */
    guint8 state;      /* TtProofState */
    gboolean in_queue; /* about to be looked at */
    GArray *learnt;    /* guint32 rows [step, known[n_sub_lanes]], one per step with a dependency */
} TtProofLane;

typedef struct {
    const TtPlan *plan;
    TtCells *cells;
    guint channel, n_sub_lanes, n_lanes; /* n_lanes = agents * sub-lanes */
    TtProofLane *lanes;                  /* [rank][sub-lane] */
    TtWires wires;
    guint32 *queue; /* lanes that may be able to go on, a stack */
    guint n_queued;
    guint64
        *bytes_before; /* bytes of chunks 0 .. c-1 on this channel, all rounds: [n_chunks + 1] */
    guint32 *nothing_known; /* [n_sub_lanes] zeros */
    guint64 *result;        /* [n_words] */
    guint64 n_steps, n_messages, bytes;
} TtProof;

void tt_proof_init(TtProof *run, const TtPlan *plan, TtCells *cells);
void tt_proof_clear(TtProof *run);

/* Runs @channel from the start and checks all but the outputs. */
gboolean tt_proof_channel(TtProof *run, guint channel, GError **error);

/* Reads the step @lane stands before, checks its form and finds its connections (verify_form.c). */
gboolean tt_proof_fetch(TtProof *run, TtProofLane *lane, GError **error);

/* Why no lane can go on (verify_stuck.c). Sets the error, returns FALSE. */
gboolean tt_proof_explain_deadlock(const TtProof *run, GError **error);

static inline TtPlace
tt_proof_place(const TtProof *run, const TtProofLane *lane)
{
    return (TtPlace){ lane->rank, run->channel * run->n_sub_lanes + lane->sub_lane, lane->at,
                      lane->step };
}
