/* walk.cuh - thread 0's part: from step to step, waits for what each needs, hands over what it made.
 *
 * It prepares the next step as a Move for all threads; steps without elements are done with their wait. Counters
 * of connections and of finished steps live on from launch to launch, so nothing is to be reset in between.
 */
#pragma once
#include "exec/cuda/message.cuh"

/* A program as long as this is kept at hand: each step of a small message costs as much as reading it from afar. */
#define STEPS_AT_HAND 64
#define STEPS_UNTOLD  32 /* between writes to the host's status */

/* What a block shares. */
typedef struct {
    Move move;
    Watch watch;
    bool over; /* no more steps, or to leave */
    TtGpuLane lane;
    TtGpuShape shape;
    TtGpuStep steps[STEPS_AT_HAND];
} Block;

/* Where the lane stands, and what is recorded of the step. Of thread 0. */
typedef struct {
    const TtGpuProgram *program;
    const TtGpuLane *lane;
    const TtGpuStep *steps;
    TtGpuEnd *in, *out; /* of the step; NULL: none */
    uint64_t round, n_events;
    uint64_t base; /* steps finished in earlier launches, and of how many */
    uint64_t n_launches;
    uint32_t step;
    TtGpuEvent event;
    uint64_t longest_ns, carry_ns;
} Walk;

/* By all threads, before the walk: those of thread 0 are kept in @block. */
DEVICE void
bring_program(Block *block, const TtGpuProgram *program)
{
    const TtGpuLane *lane = &program->lanes[blockIdx.x];

    if (threadIdx.x == 0) {
        block->lane = *lane;
        block->shape = program->shapes[lane->shape];
    }
    for (uint32_t i = threadIdx.x; i < lane->n_steps && lane->n_steps <= STEPS_AT_HAND;
         i += blockDim.x)
        block->steps[i] = lane->steps[i];
}

OUT_OF_LINE void
begin_walk(Walk *walk, Block *block, const TtGpuProgram *program)
{
    const TtGpuLane *lane = &block->lane;
    uint64_t n_steps = lane->n_steps * block->shape.n_rounds;

    walk->program = program;
    walk->lane = lane;
    walk->steps = lane->n_steps <= STEPS_AT_HAND ? block->steps : lane->steps;
    walk->round = walk->n_events = 0;
    walk->step = 0;
    walk->base = lane->finished ? *lane->finished : 0;
    walk->n_launches = n_steps > 0 ? walk->base / n_steps : 0;
    walk->event.begin_ns = lane->events ? clock_ns() : 0;
    block->watch.abort = program->abort;
    block->watch.status = lane->status;
    block->watch.done = block->watch.left = block->watch.reported = 0;
    store_relaxed(&lane->status->done, 0);
    store_relaxed32(&lane->status->waits, 0);
}

/* --- waiting --------------------------------------------------------------------------------- */

/* Of the slot of the next message, from the first. */
DEVICE uint64_t
slot_offset(const TtGpuEnd *end)
{
    uint32_t n = end->n_slots;
    uint64_t slot = (n & (n - 1)) == 0 ? end->count & (n - 1) : end->count % n;

    return slot * end->stride;
}

DEVICE uint8_t *
slot_of(const TtGpuEnd *end)
{
    return end->memory + TT_GPU_ACK_BYTES + slot_offset(end);
}

/* Where a SIMPLE message of @bytes lies, in @slot or apart. */
DEVICE uint8_t *
payload_of(const TtGpuEnd *end, uint8_t *slot, uint64_t bytes)
{
    if (bytes <= TT_GPU_SMALL_BYTES)
        return slot + TT_GPU_SMALL_START;
    return end->payload ? end->payload + slot_offset(end) : slot + TT_GPU_HEAD_BYTES;
}

/* What thread 0 waits for. */
typedef struct {
    const uint64_t *word;
    uint64_t least;
    uint32_t what, peer;
    uint32_t end; /* TT_GPU_NO_END */
} Wait;

DEVICE bool
is_over(const Wait *wait)
{
    if (wait->what == TT_GPU_WAITS_LANE)
        return load_acquire_device(wait->word) >= wait->least;
    return load_acquire_system(wait->word) >= wait->least;
}

DEVICE void
record_wait(Walk *walk, uint64_t ns, uint32_t end)
{
    walk->event.wait_ns += ns;
    if (ns <= walk->longest_ns)
        return;
    walk->longest_ns = ns;
    walk->event.wait_end = end;
}

/* FALSE: leave. */
OUT_OF_LINE bool
wait_for(Walk *walk, Watch *watch, Wait wait)
{
    uint64_t begin_ns = 0;
    uint32_t looks = 0;

    if (is_over(&wait))
        return true;
    if (walk->lane->events)
        begin_ns = clock_ns();
    do {
        if (!keep_waiting(watch, &looks, wait.what, wait.peer))
            return false;
    } while (!is_over(&wait));
    stop_reporting(watch);
    if (walk->lane->events)
        record_wait(walk, clock_ns() - begin_ns, wait.end);
    return true;
}

DEVICE bool
wait_for_lane(Walk *walk, Watch *watch, const TtGpuStep *step)
{
    const TtGpuProgram *program = walk->program;
    const TtGpuLane *lane;
    uint64_t before;

    if (step->dep_lane == TT_GPU_NO_LANE)
        return true;
    lane = &program->lanes[step->dep_lane];
    before =
        (walk->n_launches * program->shapes[lane->shape].n_rounds + walk->round) * lane->n_steps;

    Wait wait = { lane->finished, before + step->dep_step + 1, TT_GPU_WAITS_LANE, TT_GPU_NO_LANE,
                  TT_GPU_NO_END };

    return wait_for(walk, watch, wait);
}

/* Flags of other protocols are waited for by who needs the words. */
DEVICE bool
wait_for_message(Walk *walk, Watch *watch, uint32_t number)
{
    const TtGpuEnd *in = walk->in;

    if (!in || in->protocol != TT_GPU_SIMPLE)
        return true;

    Wait wait = { (const uint64_t *)slot_of(in), in->count + 1, TT_GPU_WAITS_MESSAGE, in->peer,
                  number };

    return wait_for(walk, watch, wait);
}

DEVICE bool
wait_for_slot(Walk *walk, Watch *watch, uint32_t number)
{
    TtGpuEnd *out = walk->out;

    if (!out || out->count < out->limit)
        return true;

    const uint64_t *consumed = (const uint64_t *)out->memory;
    Wait wait = { consumed, out->count + 1 - out->n_slots, TT_GPU_WAITS_SLOT, out->peer, number };

    if (!wait_for(walk, watch, wait))
        return false;
    out->limit = load_acquire_system(consumed) + out->n_slots;
    return true;
}

/* --- a step ---------------------------------------------------------------------------------- */

/* The span of the step in this round: its pieces and bytes. */
DEVICE void
measure(Move *move, const TtGpuShape *shape, const Walk *walk, const TtGpuStep *step)
{
    Span span = { shape,       walk->round,   walk->lane->channel, walk->program->element_bytes,
                  step->chunk, step->n_chunks };

    move->span = span;
    move->bytes = move->first = 0;
    move->n_pieces = 0;
    if (step->op == TT_GPU_NOP)
        return;
    while (span.n_chunks > 0) {
        Range piece = next_piece(&span);

        if (piece.count == 0)
            continue;
        if (move->n_pieces++ == 0)
            move->first = piece.first * span.element_bytes;
        move->bytes += piece.count * span.element_bytes;
    }
}

/* Operands, as schedule.h lists them for each operation. */
DEVICE void
find_operands(Move *move, const Walk *walk, const TtGpuStep *step)
{
    uint8_t *src = walk->lane->vector[step->src], *dst = walk->lane->vector[step->dst];
    uint8_t op = step->op;

    move->redop = walk->program->redop;
    move->reduces = op == TT_GPU_REDUCE || op >= TT_GPU_RECV_REDUCE;
    move->a = op == TT_GPU_REDUCE                                ? dst
              : op == TT_GPU_RECV || op == TT_GPU_RECV_COPY_SEND ? NULL
                                                                 : src;
    move->b = op == TT_GPU_REDUCE ? src : NULL;
    move->dst = op == TT_GPU_SEND || op == TT_GPU_RECV_REDUCE_SEND ? NULL : dst;
}

DEVICE void
find_slots(Move *move, const Walk *walk)
{
    move->in = move->out = NULL;
    move->in_protocol = move->out_protocol = TT_GPU_SIMPLE;
    if (walk->in) {
        move->in = slot_of(walk->in);
        move->in_payload = payload_of(walk->in, move->in, move->bytes);
        move->in_number = walk->in->count + 1;
        move->in_protocol = walk->in->protocol;
        move->in_peer = walk->in->peer;
    }
    if (walk->out) {
        move->out = slot_of(walk->out);
        move->out_payload = payload_of(walk->out, move->out, move->bytes);
        move->out_number = walk->out->count + 1;
        move->out_protocol = walk->out->protocol;
    }
}

/* The step is done; the others know. */
DEVICE void
step_on(Walk *walk, Watch *watch)
{
    const TtGpuLane *lane = walk->lane;

    watch->done++;
    if (lane->finished)
        store_release_device(lane->finished, walk->base + watch->done);
    if (watch->done % STEPS_UNTOLD == 0)
        store_relaxed(&lane->status->done, watch->done);
    if (lane->events)
        walk->event.begin_ns = clock_ns();
    if (++walk->step < lane->n_steps)
        return;
    walk->step = 0;
    walk->round++;
}

DEVICE TtGpuEnd *
end_of(const Walk *walk, uint32_t number)
{
    return number == TT_GPU_NO_END ? NULL : &walk->program->ends[number];
}

/* The next step that moves something, with all it needs in place: FALSE if there is none, or to leave. */
OUT_OF_LINE bool
prepare(Walk *walk, Block *block)
{
    while (walk->lane->n_steps > 0 && walk->round < block->shape.n_rounds) {
        const TtGpuStep *step = &walk->steps[walk->step];

        walk->event.wait_ns = walk->longest_ns = 0;
        walk->event.wait_end = TT_GPU_NO_END;
        measure(&block->move, &block->shape, walk, step);
        if (!wait_for_lane(walk, &block->watch, step))
            return false;
        if (block->move.bytes == 0) {
            step_on(walk, &block->watch);
            continue;
        }
        walk->in = end_of(walk, step->recv);
        walk->out = end_of(walk, step->send);
        find_operands(&block->move, walk, step);
        find_slots(&block->move, walk);
        if (!wait_for_message(walk, &block->watch, step->recv) ||
            !wait_for_slot(walk, &block->watch, step->send))
            return false;
        walk->carry_ns = block->move.arrived_ns = walk->lane->events ? clock_ns() : 0;
        return true;
    }
    return false;
}

DEVICE void
record(Walk *walk, const Move *move, const TtGpuStep *step)
{
    TtGpuEvent *event = &walk->event;

    if (move->in_protocol != TT_GPU_SIMPLE)
        record_wait(walk, move->arrived_ns - walk->carry_ns, step->recv);
    event->end_ns = clock_ns();
    event->bytes = move->bytes;
    event->round = (uint32_t)walk->round;
    event->step = walk->step;
    event->pad = 0;
    walk->lane->events[walk->n_events++] = *event;
}

/* All threads have carried their part of the step. */
OUT_OF_LINE void
hand_over(Walk *walk, Block *block)
{
    const Move *move = &block->move;

    if (walk->out) {
        if (walk->out->protocol == TT_GPU_SIMPLE) {
            uint64_t *head = (uint64_t *)move->out;
            uint32_t start =
                move->bytes <= TT_GPU_SMALL_BYTES ? TT_GPU_SMALL_START : TT_GPU_HEAD_BYTES;

            head[1] = start + move->bytes;
            store_release_system(head, move->out_number);
        }
        walk->out->count++;
    }
    if (walk->in) {
        uint64_t *consumed = (uint64_t *)walk->in->memory;

        if (walk->in->protocol == TT_GPU_SIMPLE)
            store_release_system(consumed, move->in_number);
        else
            store_after_flags(consumed, move->in_number);
        walk->in->count++;
    }
    stop_reporting(&block->watch);
    if (walk->lane->events)
        record(walk, move, &walk->steps[walk->step]);
    step_on(walk, &block->watch);
}

DEVICE void
end_walk(const Walk *walk, const Watch *watch)
{
    store_relaxed(&walk->lane->status->done, watch->done);
    if (walk->lane->n_events)
        *walk->lane->n_events = walk->n_events;
}
