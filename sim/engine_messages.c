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

/* Behind the message being injected and those that wait already. */
void
tt_connection_queue(TtEngine *self, guint32 connection, guint64 bytes)
{
    TtConnection *c = &self->connections[connection];
    guint32 node = new_posted(self);

    self->posted[node] = (TtPosted){ bytes, TT_NONE };
    if (c->first == TT_NONE)
        c->first = node;
    else
        self->posted[c->last].next = node;
    c->last = node;
}

/* The last byte of the connection's oldest message has left: the next one starts. */
void
tt_connection_injected(TtEngine *self, guint32 connection)
{
    TtConnection *c = &self->connections[connection];
    guint32 node = c->first;

    if (c->latency_ps > 0)
        tt_engine_schedule(self, c->latency_ps, TT_EVENT_ARRIVES, connection);
    else
        tt_connection_arrived(self, connection);
    if (node == TT_NONE) {
        c->first = TT_IDLE;
    } else {
        c->first = self->posted[node].next;
        tt_flows_start(self->flows, connection, self->posted[node].bytes);
        self->posted[node].next = self->free_posted;
        self->free_posted = node;
    }
    if (self->profile->lane_pushes) {
        TtLane *writer = &self->lanes[c->writer];

        g_assert(writer->state == TT_LANE_PUSH && writer->send == connection);
        tt_lane_end_step(self, writer);
        tt_lane_make_ready(self, writer);
    }
}
