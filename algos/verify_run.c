#include "algos/verify_run.h"

#include <string.h>

#define MAX_STEPS (1u << 30) /* of one lane; more is a bug of the plan */

/* --- what a lane knows of its siblings: vector clocks over explicit dependencies -----------------
 */

static const guint32 *
known_at(const TtProof *run, const TtProofLane *lane, guint32 step)
{
    guint row = run->n_sub_lanes + 1, low = 0, high = lane->learnt->len / row;
    const guint32 *rows = (const guint32 *)lane->learnt->data;

    while (low < high) { /* the last row of a step <= @step */
        guint middle = (low + high) / 2;

        if (rows[middle * row] <= step)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? run->nothing_known : rows + (low - 1) * row + 1;
}

/* The dependency of the lane's step is fulfilled: it now knows what that lane knew then. */
static void
learn(TtProof *run, TtProofLane *lane)
{
    guint first = lane->rank * run->n_sub_lanes;
    guint other = lane->step.dep_lane - run->channel * run->n_sub_lanes;
    const guint32 *theirs;
    guint32 *known;

    if (run->n_sub_lanes == 1)
        return;
    g_array_append_val(lane->learnt, lane->at);
    g_array_set_size(lane->learnt, lane->learnt->len + run->n_sub_lanes);
    known = (guint32 *)lane->learnt->data + lane->learnt->len - run->n_sub_lanes;
    memset(known, 0, run->n_sub_lanes * sizeof *known);
    if (lane->learnt->len > run->n_sub_lanes + 1)
        memcpy(known, known - run->n_sub_lanes - 1, run->n_sub_lanes * sizeof *known);
    theirs = known_at(run, &run->lanes[first + other], lane->step.dep_step);
    for (guint i = 0; i < run->n_sub_lanes; i++)
        known[i] = MAX(known[i], theirs[i]);
    known[other] = MAX(known[other], lane->step.dep_step + 1);
}

/* --- performing a step -------------------------------------------------------------------------
 */

static gboolean
load(TtProof *run, const TtPlace *place, guint buffer, guint32 chunk, const guint32 *known,
     const guint64 **set, GError **error)
{
    guint64 *words = tt_cell_set(run->cells, tt_cell(run->cells, place->rank, buffer, chunk));

    if (!tt_cells_read(run->cells, place, buffer, chunk, known, error))
        return FALSE;
    *set = words;
    for (guint w = 0; w < run->cells->n_words; w++)
        if (words[w])
            return TRUE;
    return tt_place_error(place, chunk, error, "reads %s chunk %u, where nothing was stored yet",
                          tt_buffer_name(buffer), chunk);
}

static gboolean
combine(TtProof *run, const TtPlace *place, guint32 chunk, const guint64 *a, const guint64 *b,
        GError **error)
{
    guint twice = tt_set_common(a, b, run->cells->n_words);

    if (twice != TT_NO_RANK)
        return tt_place_error(place, chunk, error, "contribution of rank %u counted twice", twice);
    for (guint w = 0; w < run->cells->n_words; w++)
        run->result[w] = a[w] | b[w];
    return TRUE;
}

/* One chunk of a step: @in is what was received, @out what to send; NULL if the step does not. */
static gboolean
perform_chunk(TtProof *run, const TtPlace *place, guint32 chunk, const guint64 *in, guint64 *out,
              const guint32 *known, GError **error)
{
    gsize bytes = run->cells->n_words * sizeof(guint64);
    const TtStep *step = &place->what;
    const guint64 *local = NULL, *other = in;

    if (tt_op_loads(step->op) && !load(run, place, step->src, chunk, known, &local, error))
        return FALSE;
    if (step->op == TT_OP_REDUCE && !load(run, place, step->dst, chunk, known, &other, error))
        return FALSE;
    if (!tt_op_reduces(step->op))
        memcpy(run->result, in ? in : local, bytes);
    else if (tt_op_loads(step->op) && !combine(run, place, chunk, local, other, error))
        return FALSE;
    if (tt_op_stores(step->op)) {
        if (!tt_cells_write(run->cells, place, step->dst, chunk, known, error))
            return FALSE;
        memcpy(tt_cell_set(run->cells, tt_cell(run->cells, place->rank, step->dst, chunk)),
               run->result, bytes);
    }
    if (out)
        memcpy(out, run->result, bytes);
    return TRUE;
}

/* The message at the head of a connection must be what this step takes it for. */
static gboolean
check_message(const TtPlace *place, const TtWire *from, GError **error)
{
    const TtWireMessage *message = from->head;

    if (message->chunk == place->what.chunk && message->n_chunks == place->what.n_chunks)
        return TRUE;
    return tt_place_error(place, TT_WHOLE_SPAN, error,
                          "the message rank %u sent in step %u holds chunk %u (%u of them)",
                          from->src, message->step, message->chunk, message->n_chunks);
}

static void
wake(TtProof *run, guint32 rank, guint32 sub_lane)
{
    guint32 index = rank * run->n_sub_lanes + sub_lane;
    TtProofLane *lane = &run->lanes[index];

    if (lane->in_queue || lane->state == TT_PROOF_ENDED)
        return;
    lane->in_queue = TRUE;
    run->queue[run->n_queued++] = index;
}

static gboolean
perform(TtProof *run, TtProofLane *lane, GError **error)
{
    TtPlace place = tt_proof_place(run, lane);
    const TtStep *step = &lane->step;
    TtWire *from = lane->in == TT_NO_WIRE ? NULL : tt_wire(&run->wires, lane->in);
    TtWire *to = lane->out == TT_NO_WIRE ? NULL : tt_wire(&run->wires, lane->out);
    TtWireMessage *received = from ? from->head : NULL, *sent = NULL;
    const guint32 *known = known_at(run, lane, lane->at);
    guint64 bytes = 0;
    guint n_words = run->cells->n_words;

    if (received && !check_message(&place, from, error))
        return FALSE;
    if (from || to)
        bytes = run->bytes_before[step->chunk + step->n_chunks] - run->bytes_before[step->chunk];
    if (to) { /* queued at once, so that a failure below leaves it to tt_proof_clear() */
        sent = tt_wires_send(&run->wires, to, lane->at, step->chunk, step->n_chunks);
        to->bytes_sent += bytes;
        run->bytes += bytes;
        run->n_messages++;
        wake(run, to->dst, lane->sub_lane);
    }
    for (guint32 k = 0; k < step->n_chunks && step->op != TT_OP_NOP; k++)
        if (!perform_chunk(run, &place, step->chunk + k,
                           received ? received->sets + k * n_words : NULL,
                           sent ? sent->sets + k * n_words : NULL, known, error))
            return FALSE;
    if (received) {
        tt_wires_drop(&run->wires, from);
        from->bytes_received += bytes;
        wake(run, from->src, lane->sub_lane);
    }
    return TRUE;
}

/* --- lanes -------------------------------------------------------------------------------------
 */

static TtProofState
what_blocks(const TtProof *run, const TtProofLane *lane)
{
    const TtProofLane *siblings = run->lanes + lane->rank * run->n_sub_lanes;
    guint dep = lane->step.dep_lane;

    if (dep != TT_NO_LANE &&
        siblings[dep - run->channel * run->n_sub_lanes].at <= lane->step.dep_step)
        return TT_PROOF_WAITS_FOR_STEP;
    if (lane->in != TT_NO_WIRE && tt_wire(&run->wires, lane->in)->n_queued == 0)
        return TT_PROOF_WAITS_FOR_MESSAGE;
    if (lane->out != TT_NO_WIRE &&
        tt_wire(&run->wires, lane->out)->n_queued >= run->plan->spec.n_slots)
        return TT_PROOF_WAITS_FOR_SLOT;
    return TT_PROOF_GOES_ON;
}

static void
wake_siblings(TtProof *run, const TtProofLane *lane)
{
    for (guint i = 0; i < run->n_sub_lanes; i++)
        if (run->lanes[lane->rank * run->n_sub_lanes + i].state == TT_PROOF_WAITS_FOR_STEP)
            wake(run, lane->rank, i);
}

/* Runs a lane until it blocks or ends. */
static gboolean
advance(TtProof *run, TtProofLane *lane, GError **error)
{
    while ((lane->state = what_blocks(run, lane)) == TT_PROOF_GOES_ON) {
        if (lane->step.dep_lane != TT_NO_LANE)
            learn(run, lane);
        if (!perform(run, lane, error))
            return FALSE;
        run->n_steps++;
        lane->at++;
        if (run->n_sub_lanes > 1)
            wake_siblings(run, lane);
        if (lane->at == lane->n_steps) {
            lane->state = TT_PROOF_ENDED;
            return TRUE;
        }
        if (!tt_proof_fetch(run, lane, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
start_lanes(TtProof *run, guint channel, GError **error)
{
    run->channel = channel;
    for (guint i = 0; i < run->n_lanes; i++) {
        TtProofLane *lane = &run->lanes[i];

        lane->rank = i / run->n_sub_lanes;
        lane->sub_lane = i % run->n_sub_lanes;
        lane->at = 0;
        lane->in_queue = FALSE;
        lane->n_steps =
            tt_plan_n_steps(run->plan, lane->rank, channel * run->n_sub_lanes + lane->sub_lane);
        lane->state = lane->n_steps ? TT_PROOF_GOES_ON : TT_PROOF_ENDED;
        lane->step = tt_nop();
        g_array_set_size(lane->learnt, 0);
        if (lane->n_steps > MAX_STEPS) {
            TtPlace place = tt_proof_place(run, lane);

            return tt_place_error(&place, TT_WHOLE_SPAN, error, "%u steps, must be at most %u",
                                  lane->n_steps, MAX_STEPS);
        }
    }
    for (guint i = run->n_lanes;
         i-- > 0;) { /* dependencies look at the number of steps of others */
        TtProofLane *lane = &run->lanes[i];

        if (lane->state == TT_PROOF_ENDED)
            continue;
        if (!tt_proof_fetch(run, lane, error))
            return FALSE;
        wake(run, lane->rank, lane->sub_lane);
    }
    return TRUE;
}

static void
measure_chunks(TtProof *run, guint channel)
{
    const TtPlan *plan = run->plan;

    for (guint32 c = 0; c < plan->n_chunks; c++) {
        TtRange first = tt_plan_range(plan, channel, 0, c);
        TtRange last = tt_plan_range(plan, channel, plan->n_rounds - 1, c);

        run->bytes_before[c + 1] = run->bytes_before[c] + (last.first + last.count - first.first) *
                                                              tt_type_bytes(plan->spec.type);
    }
}

static gboolean
check_nothing_is_left(const TtProof *run, GError **error)
{
    for (guint i = 0; i < run->wires.wires->len; i++) {
        const TtWire *c = tt_wire(&run->wires, i);
        guint lane = run->channel * run->n_sub_lanes + c->sub_lane;
        TtPlace place = { c->src, lane, 0, tt_nop() };

        if (c->head) {
            place.step = c->head->step;
            place.what = tt_plan_step(run->plan, c->src, lane, place.step);
            return tt_place_error(&place, TT_WHOLE_SPAN, error,
                                  "rank %u never receives this message (%u left over)", c->dst,
                                  c->n_queued);
        }
        g_assert(c->bytes_sent == c->bytes_received); /* spans were compared one by one */
    }
    return TRUE;
}

gboolean
tt_proof_channel(TtProof *run, guint channel, GError **error)
{
    measure_chunks(run, channel);
    tt_cells_reset(run->cells);
    if (!start_lanes(run, channel, error))
        return FALSE;
    while (run->n_queued > 0) {
        TtProofLane *lane = &run->lanes[run->queue[--run->n_queued]];

        lane->in_queue = FALSE;
        if (!advance(run, lane, error))
            return FALSE;
    }
    for (guint i = 0; i < run->n_lanes; i++)
        if (run->lanes[i].state != TT_PROOF_ENDED)
            return tt_proof_explain_deadlock(run, error);
    return check_nothing_is_left(run, error);
}

void
tt_proof_init(TtProof *run, const TtPlan *plan, TtCells *cells)
{
    *run = (TtProof){ .plan = plan, .cells = cells, .n_sub_lanes = plan->lanes_per_channel };
    run->n_lanes = tt_plan_n_agents(plan) * run->n_sub_lanes;
    run->lanes = g_new0(TtProofLane, run->n_lanes);
    for (guint i = 0; i < run->n_lanes; i++)
        run->lanes[i].learnt = g_array_new(FALSE, FALSE, sizeof(guint32));
    run->queue = g_new(guint32, run->n_lanes);
    tt_wires_init(&run->wires, cells->n_words);
    run->bytes_before = g_new0(guint64, (gsize)plan->n_chunks + 1);
    run->nothing_known = g_new0(guint32, run->n_sub_lanes);
    run->result = g_new0(guint64, cells->n_words);
}

void
tt_proof_clear(TtProof *run)
{
    for (guint i = 0; i < run->n_lanes; i++)
        g_array_free(run->lanes[i].learnt, TRUE);
    tt_wires_clear(&run->wires);
    g_free(run->lanes);
    g_free(run->queue);
    g_free(run->bytes_before);
    g_free(run->nothing_known);
    g_free(run->result);
}
