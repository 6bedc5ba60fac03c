#include "algos/passing.h"

#define NONE G_MAXUINT32

static const TtPassLane *
lane_of(const TtPassing *self, guint rank, guint lane)
{
    return &self->lanes[(gsize)rank * self->n_lanes + lane];
}

/* The lanes that work on the same share of the vector: *n, from the one returned on. */
static guint
beside(const TtPassing *self, guint lane, guint *n)
{
    *n = self->lanes_per_channel;
    return self->first_lane + (lane - self->first_lane) / *n * *n;
}

/* --- who touches what ---------------------------------------------------------------------------- */

static gboolean
share_memory(const TtPassing *self, guint a, guint b)
{
    return a == b || (self->in_place && a != TT_SCRATCH && b != TT_SCRATCH);
}

static gboolean
overlap(const TtStep *a, const TtStep *b)
{
    return a->chunk < b->chunk + b->n_chunks && b->chunk < a->chunk + a->n_chunks;
}

static gboolean
same_span(const TtStep *a, const TtStep *b)
{
    return a->chunk == b->chunk && a->n_chunks == b->n_chunks;
}

static gboolean
stores_to(const TtPassing *self, const TtStep *s, guint buffer, const TtStep *span)
{
    return tt_op_stores(s->op) && share_memory(self, s->dst, buffer) && overlap(s, span);
}

static gboolean
touches(const TtPassing *self, const TtStep *s, guint buffer, const TtStep *span)
{
    return stores_to(self, s, buffer, span) ||
           (tt_op_loads(s->op) && share_memory(self, s->src, buffer) && overlap(s, span));
}

/* --- who comes after whom ------------------------------------------------------------------------ */

/* Which message of its connection, counted in this round, a step sends or receives. */
static guint32
message_number(const TtPassLane *lane, guint32 i, gboolean sends)
{
    guint32 connection = sends ? lane->steps[i].send_connection : lane->steps[i].recv_connection;
    guint32 n = 0;

    for (guint32 k = 0; k < i; k++) {
        const TtPassStep *s = &lane->steps[k];

        n += sends ? s->send_peer != TT_NO_RANK && s->send_connection == connection
                   : s->recv_peer != TT_NO_RANK && s->recv_connection == connection;
    }
    return n;
}

/* The step that receives (@sends: sends) message @number of a connection; NONE if the lane has none. */
static guint32
find_message(const TtPassLane *lane, guint32 connection, guint32 number, gboolean sends)
{
    for (guint32 k = 0; k < lane->n_steps; k++) {
        const TtPassStep *s = &lane->steps[k];
        gboolean is = sends ? s->send_peer != TT_NO_RANK && s->send_connection == connection
                            : s->recv_peer != TT_NO_RANK && s->recv_connection == connection;

        if (is && number-- == 0)
            return k;
    }
    return NONE;
}

/* The step of the other side that a step's message comes from, or goes to. */
static guint32
other_end(const TtPassing *self, guint rank, guint lane, guint32 i, gboolean sends)
{
    const TtPassLane *mine = lane_of(self, rank, lane);
    const TtPassStep *s = &mine->steps[i];
    const TtPassLane *other = lane_of(self, sends ? s->send_peer : s->recv_peer, lane);

    return find_message(other, sends ? s->send_connection : s->recv_connection,
                        message_number(mine, i, sends), !sends);
}

/* Step @w of lane @other has finished before step @i of @lane begins, as that lane's dependencies say. */
static gboolean
is_ordered_before(const TtPassLane *lane, guint32 i, guint other, guint32 w)
{
    for (guint32 k = 0; k <= i; k++)
        if (lane->steps[k].step.dep_lane == other && lane->steps[k].step.dep_step >= w)
            return TRUE;
    return FALSE;
}

/* --- lending ------------------------------------------------------------------------------------- */

/* The buffer a lent message is in: what the step read, else what it stored. */
static TtBuffer
lent_buffer(const TtStep *step)
{
    return tt_op_receives(step->op) ? step->dst : step->src;
}

/* What step @w stores was received from the rank that step @i lent to, and sent when it had read that. */
static gboolean
comes_back(const TtPassing *self, guint rank, guint lane, guint32 i, guint32 w)
{
    const TtPassLane *mine = lane_of(self, rank, lane);
    guint32 read, sent;

    if (mine->steps[w].recv_peer != mine->steps[i].send_peer)
        return FALSE;
    read = other_end(self, rank, lane, i, TRUE);
    sent = other_end(self, rank, lane, w, FALSE);
    return read != NONE && sent != NONE && read <= sent;
}

/* Other lanes that work on the same share of the vector. */
static gboolean
other_lanes_leave_alone(const TtPassing *self, guint rank, guint lane, guint32 i, guint buffer)
{
    const TtPassLane *mine = lane_of(self, rank, lane);
    guint n, first = beside(self, lane, &n);

    for (guint l = first; l < first + n; l++) {
        const TtPassLane *other = lane_of(self, rank, l);

        for (guint32 w = 0; l != lane && w < other->n_steps; w++)
            if (stores_to(self, &other->steps[w].step, buffer, &mine->steps[i].step) &&
                !is_ordered_before(mine, i, l, w))
                return FALSE;
    }
    return TRUE;
}

static gboolean
may_lend(const TtPassing *self, guint rank, guint lane, guint32 i)
{
    const TtPassLane *mine = lane_of(self, rank, lane);
    const TtStep *step = &mine->steps[i].step;
    guint buffer = lent_buffer(step);
    guint32 there;

    if (step->op == TT_OP_RECV_REDUCE_SEND) /* the sum is in no buffer */
        return FALSE;
    there = other_end(self, rank, lane, i, TRUE);
    if (there == NONE ||
        !same_span(step, &lane_of(self, mine->steps[i].send_peer, lane)->steps[there].step))
        return FALSE;
    for (guint32 w = i + 1; w < mine->n_steps; w++)
        if (stores_to(self, &mine->steps[w].step, buffer, step) &&
            !comes_back(self, rank, lane, i, w))
            return FALSE;
    return other_lanes_leave_alone(self, rank, lane, i, buffer);
}

/* --- placing ------------------------------------------------------------------------------------- */

/* The last step of @peer that sent to @rank a message which is read by step @i or before; NONE if none. */
static guint32
last_heard_of(const TtPassing *self, guint rank, guint lane, guint32 i, guint peer)
{
    const TtPassLane *mine = lane_of(self, rank, lane);

    for (guint32 k = i + 1; k-- > 0;)
        if (mine->steps[k].recv_peer == peer)
            return other_end(self, rank, lane, k, FALSE);
    return NONE;
}

/* By step @i the rank has read a message of this iteration from @peer: *done is how many steps of the same
 * lane @peer had then finished. The message may have come to another lane that step @i waits for. */
static gboolean
has_begun(const TtPassing *self, guint rank, guint lane, guint32 i, guint peer, guint32 *done)
{
    const TtPassLane *mine = lane_of(self, rank, lane);
    guint32 heard = last_heard_of(self, rank, lane, i, peer);

    *done = heard == NONE ? 0 : heard + 1;
    for (guint32 k = 0; heard == NONE && k <= i; k++) {
        const TtStep *s = &mine->steps[k].step;

        if (s->dep_lane != TT_NO_LANE)
            heard = last_heard_of(self, rank, s->dep_lane, s->dep_step, peer);
    }
    return heard != NONE;
}

static gboolean
may_place(const TtPassing *self, guint rank, guint lane, guint32 i, guint *buffer)
{
    const TtPassStep *mine = &lane_of(self, rank, lane)->steps[i];
    guint peer = mine->send_peer, n, first = beside(self, lane, &n);
    const TtPassLane *other = lane_of(self, peer, lane);
    guint32 there = other_end(self, rank, lane, i, TRUE);
    const TtStep *place;
    guint32 done;

    if (there == NONE || !has_begun(self, rank, lane, i, peer, &done) || done > there)
        return FALSE;
    place = &other->steps[there].step;
    if ((place->op != TT_OP_RECV && place->op != TT_OP_RECV_COPY_SEND) ||
        !same_span(place, &mine->step))
        return FALSE;
    *buffer = place->dst;
    for (guint32 k = done; k < there; k++)
        if (touches(self, &other->steps[k].step, place->dst, place))
            return FALSE;
    for (guint l = first; l < first + n; l++) {
        const TtPassLane *next = lane_of(self, peer, l);

        for (guint32 k = 0; l != lane && k < next->n_steps; k++)
            if (touches(self, &next->steps[k].step, place->dst, place))
                return FALSE;
    }
    return TRUE;
}

/* Placing is quicker than lending: what is sent was stored in this iteration, and if nobody else reads it, its
 * lines stay in the cache of the core that stores them again in the next, as do those of the place. */
static gboolean
should_place(const TtPassing *self, guint rank, guint lane, guint32 i)
{
    const TtPassLane *mine = lane_of(self, rank, lane);
    const TtStep *step = &mine->steps[i].step;

    return step->op != TT_OP_COPY_SEND && (tt_op_stores(step->op) || step->src != TT_INPUT);
}

TtPass
tt_passing_choose(const TtPassing *self, guint rank, guint lane, guint32 i, gboolean in_memory,
                  guint *buffer)
{
    if (in_memory && should_place(self, rank, lane, i) && may_place(self, rank, lane, i, buffer))
        return TT_PASS_PLACED;
    return may_lend(self, rank, lane, i) ? TT_PASS_LENT : TT_PASS_SLOT;
}

gboolean
tt_passing_sender(const TtPassing *self, guint rank, guint lane, guint32 i, guint *peer,
                  guint32 *step)
{
    *peer = lane_of(self, rank, lane)->steps[i].recv_peer;
    *step = other_end(self, rank, lane, i, FALSE);
    return *step != NONE;
}

/* --- last touches -------------------------------------------------------------------------------- */

static gboolean
is_last_touch(const TtPassing *self, const TtPassLane *lane, guint32 i)
{
    const TtStep *step = &lane->steps[i].step;

    for (guint32 k = i + 1; k < lane->n_steps; k++)
        if (touches(self, &lane->steps[k].step, step->dst, step))
            return FALSE;
    return TRUE;
}

gboolean
tt_passing_is_final(const TtPassing *self, guint rank, guint lane, guint32 i)
{
    const TtPassLane *mine = lane_of(self, rank, lane);
    const TtPassStep *s = &mine->steps[i];
    guint32 there;

    if (tt_op_stores(s->step.op) && !is_last_touch(self, mine, i))
        return FALSE;
    if (tt_op_stores(s->step.op) && tt_op_loads(s->step.op) &&
        share_memory(self, s->step.src, s->step.dst))
        return FALSE; /* it is in the caches */
    if (s->send_peer == TT_NO_RANK)
        return TRUE;
    there = other_end(self, rank, lane, i, TRUE);
    return there != NONE && lane_of(self, s->send_peer, lane)->steps[there].step.op == TT_OP_RECV &&
           is_last_touch(self, lane_of(self, s->send_peer, lane), there);
}

/* --- what is left to do -------------------------------------------------------------------------- */

TtOp
tt_passing_work(TtOp op, TtPass in, TtPass out)
{
    if (in == TT_PASS_PLACED) /* it is where it is to be */
        return op == TT_OP_RECV || out == TT_PASS_LENT ? TT_OP_NOP : TT_OP_SEND;
    if (out != TT_PASS_LENT)
        return op;
    switch (op) {
    case TT_OP_SEND: return TT_OP_NOP;
    case TT_OP_COPY_SEND: return TT_OP_COPY;
    case TT_OP_RECV_COPY_SEND: return TT_OP_RECV;
    case TT_OP_RECV_REDUCE_COPY_SEND: return TT_OP_RECV_REDUCE;
    default: return op;
    }
}
