#include "sim/flows_private.h"

#include <math.h>
#include <string.h>

TtFlows *
tt_flows_new(const TtNetwork *net, TtEventQueue *queue, GArray *log)
{
    TtFlows *self = g_new0(TtFlows, 1);

    self->net = net;
    self->queue = queue;
    self->log = log;
    self->link_of = g_new0(guint32, MAX(1, net->n_links));
    self->maxmin = tt_maxmin_new();
    self->settlement = 1;
    self->announced_ps = -1;
    return self;
}

void
tt_flows_free(TtFlows *self)
{
    if (!self)
        return;
    for (guint32 l = 0; l < self->n_links; l++)
        if (self->links[l].room > 0)
            g_free(self->links[l].at);
    g_free(self->flows);
    g_free(self->flow_shares);
    g_free(self->hops);
    g_free(self->links);
    g_free(self->link_shares);
    g_free(self->link_of);
    g_free(self->started);
    g_free(self->dirty);
    g_clear_pointer(&self->buckets, g_array_unref);
    tt_maxmin_free(self->maxmin);
    g_free(self->member);
    g_free(self->first);
    g_free(self->route);
    g_free(self->weight);
    g_free(self->limit);
    g_free(self->rate);
    g_free(self->link_member);
    g_free(self->inside);
    g_free(self->checks);
    g_free(self->capacity);
    g_free(self->inside_load);
    g_free(self->heap);
    g_free(self);
}

void
tt_flows_rewind(TtFlows *self)
{
    g_assert(self->heap_n == 0 && self->n_started == 0);
    for (guint32 f = 0; f < self->n_flows; f++) {
        g_assert(self->flows[f].state == FLOW_IDLE);
        self->flows[f].carried_bytes = 0;
    }
    self->announced_ps = -1;
    if (self->buckets)
        tt_flows_fill_buckets(self);
}

/* --- connections and links ---------------------------------------------------------------------
 */

guint32
tt_flows_new_link(TtFlows *self, TtLink id, double capacity)
{
    TT_RESERVE(self->links, self->links_room, self->n_links + 1);
    TT_RESERVE(self->link_shares, self->link_shares_room, self->n_links + 1);
    self->links[self->n_links] = (Link){ .n = 0 };
    self->link_shares[self->n_links] = (LinkShare){ .capacity = capacity, .id = id };
    return self->n_links++;
}

static guint32
find_link(TtFlows *self, TtLink id, const TtLinkInfo *info)
{
    g_assert(id < self->net->n_links);
    if (self->link_of[id] == 0) {
        self->link_of[id] = tt_flows_new_link(self, id, info->capacity_bytes_per_s) + 1;
        if (info->burst_bytes > 0)
            tt_flows_add_bucket(self, self->link_of[id] - 1, info->burst_bytes);
    }
    return self->link_of[id] - 1;
}

guint32
tt_flows_add(TtFlows *self, guint src, guint dst)
{
    TtLink route[TT_MAX_ROUTE];
    guint n = self->net->route(self->net->context, src, dst, route);

    return tt_flows_add_route(self, route, n);
}

guint32
tt_flows_add_route(TtFlows *self, const TtLink *route, guint n)
{
    Flow flow = { .first_hop = self->n_hops, .heap_pos = TT_NOWHERE, .alone_rate = INFINITY };
    FlowShare share = { .limit = TT_NOWHERE };

    g_assert(n <= TT_MAX_ROUTE);
    TT_RESERVE(self->hops, self->hops_room, self->n_hops + TT_MAX_ROUTE);
    for (guint i = 0; i < n; i++) {
        TtLinkInfo info = self->net->link(self->net->context, route[i]);

        share.latency_ps += info.latency_ps;
        if (isinf(info.capacity_bytes_per_s))
            continue;
        flow.alone_rate = MIN(flow.alone_rate, info.capacity_bytes_per_s);
        self->hops[self->n_hops++] = (Hop){ .link = find_link(self, route[i], &info), .weight = 1 };
        flow.n_hops++;
    }
    flow.n_all = flow.n_hops;
    TT_RESERVE(self->flows, self->flows_room, self->n_flows + 1);
    TT_RESERVE(self->flow_shares, self->flow_shares_room, self->n_flows + 1);
    self->flows[self->n_flows] = flow;
    self->flow_shares[self->n_flows] = share;
    return self->n_flows++;
}

/* A link of its own. One that is no narrower than the route would never fill first. */
void
tt_flows_limit(TtFlows *self, double bytes_per_s)
{
    Flow *flow = &self->flows[self->n_flows - 1];

    if (bytes_per_s >= flow->alone_rate)
        return;
    flow->alone_rate = bytes_per_s;
    TT_RESERVE(self->hops, self->hops_room, self->n_hops + 1);
    self->hops[self->n_hops++] =
        (Hop){ .link = tt_flows_new_link(self, TT_NO_LINK, bytes_per_s), .weight = 1 };
    flow->n_all = ++flow->n_hops;
}

TtTime
tt_flows_latency_ps(const TtFlows *self, guint32 flow)
{
    return self->flow_shares[flow].latency_ps;
}

guint
tt_flows_links(const TtFlows *self, guint32 flow, TtLink *links)
{
    const Flow *f = &self->flows[flow];
    guint n = 0;

    for (guint i = 0; i < f->n_all; i++) {
        TtLink id = self->link_shares[self->hops[f->first_hop + i].link].id;

        if (id != TT_NO_LINK)
            links[n++] = id;
    }
    return n;
}

void
tt_flows_add_bytes(const TtFlows *self, double *bytes)
{
    for (guint32 f = 0; f < self->n_flows; f++) {
        const Flow *flow = &self->flows[f];

        for (guint32 h = flow->first_hop; h < flow->first_hop + flow->n_all; h++) {
            TtLink id = self->link_shares[self->hops[h].link].id;

            if (id != TT_NO_LINK)
                bytes[id] += (double)flow->carried_bytes * self->hops[h].weight;
        }
    }
}

void
tt_flows_mark_dirty(TtFlows *self, guint32 link)
{
    if (self->link_shares[link].dirty == self->settlement)
        return;
    self->link_shares[link].dirty = self->settlement;
    TT_RESERVE(self->dirty, self->dirty_room, self->n_dirty + 1);
    self->dirty[self->n_dirty++] = link;
}

void
tt_flows_log(TtFlows *self, guint32 flow, double rate)
{
    TtRateChange change = { self->queue->now_ps, flow, rate };

    if (self->log)
        g_array_append_val(self->log, change);
}

/* --- starts and ends ---------------------------------------------------------------------------
 */

static void
widen(Link *link)
{
    guint32 room = 4 * MAX(link->room, FEW_CROSSINGS);
    Crossing *at = g_new(Crossing, room);

    memcpy(at, tt_link_crossings(link), link->n * sizeof *at);
    if (link->room > 0)
        g_free(link->at);
    link->at = at;
    link->room = room;
}

static void
enter_links(TtFlows *self, guint32 flow)
{
    const Flow *f = &self->flows[flow];

    for (guint32 h = f->first_hop; h < f->first_hop + f->n_hops; h++) {
        Link *link = &self->links[self->hops[h].link];

        if (link->n == MAX(link->room, FEW_CROSSINGS))
            widen(link);
        self->hops[h].pos = link->n;
        tt_link_crossings(link)[link->n++] = (Crossing){ flow, h };
    }
}

/* Whoever stays behind may speed up. */
static void
leave_links(TtFlows *self, guint32 flow)
{
    Flow *f = &self->flows[flow];

    for (guint32 h = f->first_hop; h < f->first_hop + f->n_hops; h++) {
        Link *link = &self->links[self->hops[h].link];
        guint32 pos = self->hops[h].pos;

        link->n--;
        if (self->buckets && link->n == 0)
            tt_flows_bucket_rests(self, self->hops[h].link);
        if (link->n > 0) {
            Crossing *at = tt_link_crossings(link), last = at[link->n];

            at[pos] = last;
            self->hops[last.hop].pos = pos;
            tt_flows_mark_dirty(self, self->hops[h].link);
        }
        if (f->state == FLOW_SHARING) {
            LinkShare *share = &self->link_shares[self->hops[h].link];

            share->load = link->n > 0 ? share->load - f->rate * (double)self->hops[h].weight : 0;
        }
    }
    f->state = FLOW_IDLE;
    tt_flows_log(self, flow, 0);
}

void
tt_flows_start(TtFlows *self, guint32 flow, guint64 bytes)
{
    Flow *f = &self->flows[flow];

    g_assert(f->state == FLOW_IDLE);
    f->state = FLOW_STARTING;
    f->rate = 0;
    f->left_bytes = (double)bytes;
    f->since_ps = self->queue->now_ps;
    f->carried_bytes += bytes;
    if (self->buckets)
        f->left_bytes -= tt_flows_take_tokens(self, flow, f->left_bytes);
    enter_links(self, flow);
    TT_RESERVE(self->started, self->started_room, self->n_started + 1);
    self->started[self->n_started++] = flow;
}

gboolean
tt_flows_take(TtFlows *self, const TtSimEvent *event)
{
    Flow *f = &self->flows[event->index];
    guint32 generation = event->kind >> TT_KIND_BITS;

    if (f->state != FLOW_ALONE || generation != (f->generation & (G_MAXUINT32 >> TT_KIND_BITS)))
        return FALSE;
    f->generation++;
    leave_links(self, event->index);
    return TRUE;
}

guint32
tt_flows_take_shared(TtFlows *self)
{
    guint32 flow;

    if (self->announced_ps == self->queue->now_ps)
        self->announced_ps = -1;
    if (self->heap_n == 0 || self->heap[0].end_ps > self->queue->now_ps)
        return TT_NO_FLOW;
    flow = self->heap[0].flow;
    tt_flows_heap_pop(self);
    leave_links(self, flow);
    return flow;
}

/* --- settling an instant -----------------------------------------------------------------------
 */

static gboolean
is_alone(const TtFlows *self, const Flow *f)
{
    for (guint32 h = f->first_hop; h < f->first_hop + f->n_hops; h++)
        if (self->links[self->hops[h].link].n > 1)
            return FALSE;
    return TRUE;
}

static void
begin_alone(TtFlows *self, guint32 flow)
{
    Flow *f = &self->flows[flow];
    TtTime now_ps = self->queue->now_ps;
    TtTime takes_ps = tt_seconds_to_ps(f->left_bytes / f->alone_rate);

    f->state = FLOW_ALONE;
    f->rate = f->alone_rate;
    f->end_ps = takes_ps > TT_TIME_MAX - now_ps ? TT_TIME_MAX : now_ps + takes_ps;
    tt_event_queue_push(self->queue, f->end_ps, TT_FLOW_ENDS | f->generation << TT_KIND_BITS, flow);
    tt_flows_log(self, flow, f->rate);
}

/* Queues an event for the earliest end of a sharing flow, unless one is queued. A former one that
 * has become wrong finds nothing to end and does no harm. */
static void
announce(TtFlows *self)
{
    TtTime end_ps;

    if (self->heap_n == 0)
        return;
    end_ps = self->heap[0].end_ps;
    if (end_ps == self->announced_ps)
        return;
    self->announced_ps = end_ps;
    tt_event_queue_push(self->queue, end_ps, TT_FLOWS_SHARED_END, 0);
}

void
tt_flows_settle(TtFlows *self)
{
    for (guint32 i = 0; i < self->n_started; i++) {
        const Flow *f = &self->flows[self->started[i]];

        if (is_alone(self, f)) {
            begin_alone(self, self->started[i]);
            continue;
        }
        for (guint32 h = f->first_hop; h < f->first_hop + f->n_hops; h++)
            tt_flows_mark_dirty(self, self->hops[h].link);
    }
    self->n_started = 0;
    if (self->n_dirty > 0) {
        tt_flows_share(self);
        self->n_dirty = 0;
    }
    announce(self);
}
