/* Messages of a connection: posted, injected one after the other, arrived; and its slots. */
#include "sim/engine_private.h"

static guint32
new_posted(TtEngine *self)
{
    guint32 node = self->free_posted;

    if (node != TT_NONE) {
        self->free_posted = self->posted[node].next;
        return node;
    }
    if (self->n_posted == self->posted_room) {
        self->posted_room = MAX(64, 2 * self->posted_room);
        self->posted = g_renew(TtPosted, self->posted, self->posted_room);
    }
    return self->n_posted++;
}

static void
wait_for_gap(TtEngine *self, guint32 connection)
{
    tt_engine_schedule(self, self->paces[connection].next_ps - tt_engine_now_ps(self),
                       TT_EVENT_PACED, connection);
}

/* Behind the message being injected and those that wait already; where none is being injected, the
 * connection's gap holds it up. */
void
tt_connection_queue(TtEngine *self, guint32 connection, guint64 bytes)
{
    TtConnection *c = &self->connections[connection];
    guint32 node = new_posted(self);

    self->posted[node] = (TtPosted){ bytes, TT_NONE };
    if (c->first == TT_IDLE) {
        c->first = node;
        wait_for_gap(self, connection);
    } else if (c->first == TT_NONE)
        c->first = node;
    else
        self->posted[c->last].next = node;
    c->last = node;
}

static void
start_next(TtEngine *self, guint32 connection)
{
    TtConnection *c = &self->connections[connection];
    guint32 node = c->first;

    c->first = self->posted[node].next;
    tt_connection_start(self, connection, self->posted[node].bytes);
    self->posted[node].next = self->free_posted;
    self->free_posted = node;
}

void
tt_connection_paced(TtEngine *self, guint32 connection)
{
    start_next(self, connection);
}

/* The last byte of the connection's oldest message has left: the next one starts. */
void
tt_connection_injected(TtEngine *self, guint32 connection)
{
    TtConnection *c = &self->connections[connection];

    if (c->latency_ps > 0)
        tt_engine_schedule(self, c->latency_ps, TT_EVENT_ARRIVES, connection);
    else
        tt_connection_arrived(self, connection);
    if (c->first == TT_NONE)
        c->first = TT_IDLE;
    else if (tt_connection_may_start(self, connection))
        start_next(self, connection);
    else
        wait_for_gap(self, connection);
    if (self->profile->lane_pushes) {
        TtLane *writer = &self->lanes[c->writer];

        g_assert(writer->state == TT_LANE_PUSH && writer->send == connection);
        tt_lane_end_step(self, writer);
        tt_lane_make_ready(self, writer);
    }
}

/* --- lent messages -----------------------------------------------------------------------------
 */

void
tt_lent_count(TtEngine *self, const TtLane *lane)
{
    TtLent *lent = &self->lent[lane->send];

    lent->sent++;
    if (!lane->lends)
        return;
    if (lent->until <= lent->freed)
        self->n_unread[tt_lane_index(self, lane)]++;
    lent->until = lent->sent;
}

void
tt_lent_is_read(TtEngine *self, guint32 connection)
{
    TtLent *lent = &self->lent[connection];
    guint32 writer = self->connections[connection].writer;

    if (++lent->freed != lent->until)
        return;
    if (--self->n_unread[writer] == 0 && self->lanes[writer].state == TT_LANE_RETURNS)
        tt_lane_make_ready(self, &self->lanes[writer]);
}
