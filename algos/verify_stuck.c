#include "algos/verify_run.h"

/* The lane that would have to act for this one to go on. */
static const TtProofLane *
waits_for(const TtProof *run, const TtProofLane *lane)
{
    guint rank = lane->rank, sub_lane = lane->sub_lane;

    if (lane->state == TT_PROOF_WAITS_FOR_STEP)
        sub_lane = lane->step.dep_lane - run->channel * run->n_sub_lanes;
    else if (lane->state == TT_PROOF_WAITS_FOR_MESSAGE)
        rank = tt_wire(&run->wires, lane->in)->src;
    else
        rank = tt_wire(&run->wires, lane->out)->dst;
    return &run->lanes[rank * run->n_sub_lanes + sub_lane];
}

/* "a message from rank 2, lane 0 (at step 3)" */
static void
append_wait(const TtProof *run, const TtProofLane *lane, GString *text)
{
    const TtProofLane *other = waits_for(run, lane);
    guint other_lane = run->channel * run->n_sub_lanes + other->sub_lane;

    if (lane->state == TT_PROOF_WAITS_FOR_STEP)
        g_string_append_printf(text, "waits for step %u of its lane %u", lane->step.dep_step,
                               other_lane);
    else if (lane->state == TT_PROOF_WAITS_FOR_MESSAGE)
        g_string_append_printf(text, "waits for a message from rank %u, lane %u", other->rank,
                               other_lane);
    else
        g_string_append_printf(text, "waits for a free slot (of %u) to rank %u, lane %u",
                               run->plan->spec.n_slots, other->rank, other_lane);
    if (other->state == TT_PROOF_ENDED)
        g_string_append(text, ", which has no steps left");
    else
        g_string_append_printf(text, ", which stands at step %u", other->at);
}

/* Walks the waits from a blocked lane until they close a cycle, or reach a lane that has ended: no
 * cycle then, somebody left. Returns a lane of the cycle, or the one that waits for the ended lane.
 */
static const TtProofLane *
find_culprit(const TtProof *run, const TtProofLane *lane, gboolean *is_cycle)
{
    for (guint i = 0; i < run->n_lanes; i++) { /* after so many moves we must be on the cycle */
        const TtProofLane *next = waits_for(run, lane);

        if (next->state == TT_PROOF_ENDED) {
            *is_cycle = FALSE;
            return lane;
        }
        lane = next;
    }
    *is_cycle = TRUE;
    return lane;
}

static const TtProofLane *
lowest_on_cycle(const TtProof *run, const TtProofLane *start)
{
    const TtProofLane *lowest = start;

    for (const TtProofLane *lane = waits_for(run, start); lane != start;
         lane = waits_for(run, lane))
        lowest = MIN(lowest, lane);
    return lowest;
}

gboolean
tt_proof_explain_deadlock(const TtProof *run, GError **error)
{
    g_autoptr(GString) text = g_string_new("deadlock: ");
    const TtProofLane *lane = run->lanes;
    gboolean is_cycle;
    TtPlace place;
    guint shown = 0;

    while (lane->state == TT_PROOF_ENDED)
        lane++;
    lane = find_culprit(run, lane, &is_cycle);
    if (is_cycle)
        lane = lowest_on_cycle(run, lane);
    append_wait(run, lane, text);
    for (const TtProofLane *next = waits_for(run, lane); is_cycle && next != lane;
         next = waits_for(run, next)) {
        if (shown++ == 8) { /* enough to see what it is; long rings repeat themselves */
            g_string_append(text, "; and so on");
            break;
        }
        g_string_append_printf(text, "; rank %u, lane %u, step %u (%s, chunk %u) ", next->rank,
                               run->channel * run->n_sub_lanes + next->sub_lane, next->at,
                               tt_op_name(next->step.op), next->step.chunk);
        append_wait(run, next, text);
    }
    if (is_cycle)
        g_string_append(text, ": a cycle");
    place = tt_proof_place(run, lane);
    return tt_place_error(&place, TT_WHOLE_SPAN, error, "%s", text->str);
}
