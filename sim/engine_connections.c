/* Connections: who writes to whom, over which links, at which cost. */
#include "sim/engine.h"

static guint32 *
hash_place(TtEngine *self, guint32 writer, guint32 reader)
{
    guint64 key = ((guint64)writer << 32 | reader) * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);
    guint32 mask = self->by_peers_room - 1, i = (guint32)(key >> 32) & mask;

    for (;; i = (i + 1) & mask) {
        const TtConnection *c;

        if (self->by_peers[i] == 0)
            return &self->by_peers[i];
        c = &self->connections[self->by_peers[i] - 1];
        if (c->writer == writer && c->reader == reader)
            return &self->by_peers[i];
    }
}

static gboolean
has_paces(const TtEngine *self)
{
    for (guint hop = 0; hop < TT_N_HOPS; hop++)
        if (self->hop_gap_ps[hop] > 0 || self->wire_factor[hop] != 1)
            return TRUE;
    return FALSE;
}

static void
grow_connections(TtEngine *self)
{
    self->connections_room = MAX(64, 2 * self->connections_room);
    self->connections = g_renew(TtConnection, self->connections, self->connections_room);
    if (has_paces(self))
        self->paces = g_renew(TtPace, self->paces, self->connections_room);
    if (self->passed)
        self->lent = g_renew(TtLent, self->lent, self->connections_room);
    g_free(self->by_peers);
    self->by_peers_room = 2 * self->connections_room;
    self->by_peers = g_new0(guint32, self->by_peers_room);
    for (guint32 c = 0; c < self->n_connections; c++)
        *hash_place(self, self->connections[c].writer, self->connections[c].reader) = c + 1;
}

/* --- routes ------------------------------------------------------------------------------------
 */

/* Between a rank and a switch; two switches of a plan that talk to each other are one box. */
static guint
switch_route(const TtEngine *self, guint src, guint dst, TtLink *links, TtHop *hop)
{
    guint P = self->plan->spec.n_ranks;
    gboolean towards = src < P;
    TtSwitchPlace place = tt_plan_switch(self->plan, towards ? dst : src);
    guint n;

    *hop = place.is_network ? TT_HOP_NET : TT_HOP_LOCAL;
    if (src >= P && dst >= P)
        return 0;
    n = self->net->switch_route(self->net->context, towards ? src : dst,
                                place.is_network ? TT_NETWORK_SWITCH : place.node, towards, links);
    g_assert(n <= TT_MAX_ROUTE); /* tt_engine_init() has asked whether the switch is there */
    return n;
}

static guint32
add_flow(TtEngine *self, guint src, guint dst, guint channel, TtHop *hop)
{
    TtLink links[TT_MAX_ROUTE];
    guint32 flow;

    if (MAX(src, dst) >= self->plan->spec.n_ranks) {
        guint n = switch_route(self, src, dst, links, hop);

        flow = tt_flows_add_route(self->flows, links, n);
    } else {
        *hop = self->has_hops ? tt_network_hop(self->net, src, dst) : TT_HOP_LOCAL;
        if (self->net->channel_route) {
            guint n =
                self->net->channel_route(self->net->channel_context, src, dst, channel, links);

            flow = tt_flows_add_route(self->flows, links, n);
        } else {
            flow = tt_flows_add(self->flows, src, dst);
        }
    }
    if (self->profile->hop_bytes_per_s[*hop] > 0)
        tt_flows_limit(self->flows, self->profile->hop_bytes_per_s[*hop] * self->wire_factor[*hop]);
    return flow;
}

/* --- finding them ------------------------------------------------------------------------------
 */

static guint32
find_connection(TtEngine *self, guint32 writer, guint32 reader)
{
    guint32 *place, flow;
    TtHop hop;

    if (self->n_connections == self->connections_room)
        grow_connections(self);
    place = hash_place(self, writer, reader);
    if (*place > 0)
        return *place;
    flow = add_flow(self, writer / self->n_lanes, reader / self->n_lanes,
                    tt_plan_channel(self->plan, writer % self->n_lanes), &hop);
    g_assert(flow == self->n_connections);
    self->connections[flow] =
        (TtConnection){ .writer = writer,
                        .reader = reader,
                        .free_slots = self->plan->spec.n_slots,
                        .first = TT_IDLE,
                        .last = TT_NONE,
                        .latency_ps = tt_flows_latency_ps(self->flows, flow) + self->latency_ps +
                                      self->hop_latency_ps[hop] };
    if (self->paces)
        self->paces[flow] =
            (TtPace){ .gap_ps = self->hop_gap_ps[hop], .wire_factor = self->wire_factor[hop] };
    if (self->lent)
        self->lent[flow] = (TtLent){ 0 };
    return *place = ++self->n_connections;
}

guint32
tt_engine_connect(TtEngine *self, guint32 lane_index, guint role, gboolean receiving)
{
    guint32 *known =
        &self->by_role[((gsize)lane_index * self->n_roles + role) * 2 + (receiving ? 1 : 0)];
    guint lane = lane_index % self->n_lanes, peer;
    guint32 other;

    if (self->is_folded) /* all that are used are known */
        return TT_NONE;
    peer = tt_plan_peer(self->plan, lane_index / self->n_lanes, lane, role);
    if (peer >= self->n_agents)
        return TT_NONE;
    other = peer * self->n_lanes + lane;
    *known = receiving ? find_connection(self, other, lane_index)
                       : find_connection(self, lane_index, other);
    return *known - 1;
}
