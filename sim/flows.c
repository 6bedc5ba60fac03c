#include "sim/flows.h"

#include "sim/maxmin.h"

#include <math.h>

/* A new rate this close to the old one is the old one: its end need not move. */
#define SAME_RATE 1e-12

#define NOWHERE G_MAXUINT32

typedef enum { IDLE, STARTING, ALONE, SHARING } FlowState;

typedef struct {
    double left_bytes; /* at since_ps */
    double rate;       /* bytes per second since then; 0: not yet known */
    TtTime since_ps, end_ps;
    guint32 first_hop;
    guint8 n_hops, state;
    guint32 generation; /* an event of an older one no longer holds */
    guint32 heap_pos;
    guint64 visit;      /* the last settlement that reached it */
    double alone_rate;  /* of the narrowest link */
    TtTime latency_ps;
    guint64 carried_bytes;
} Flow;

typedef struct {
    guint32 link; /* index into links */
    guint32 pos;  /* where this flow stands in the link's list */
} Hop;

typedef struct {
    guint32 flow, hop; /* hop: index into hops */
} Crossing;

typedef struct {
    double capacity;
    Crossing *at; /* flows on this link now, in no particular (but repeatable) order */
    guint32 n, room;
    guint64 visit, dirty; /* settlements that reached it, that list it as changed */
    guint32 local;        /* its index in the settlement that reached it */
    TtLink id;
} Link;

struct TtFlows {
    const TtNetwork *net;
    TtEventQueue *queue;
    GArray *log;

    Flow *flows;
    Hop *hops;
    Link *links;
    guint32 n_flows, flows_room, n_hops, hops_room, n_links, links_room;
    guint32 *link_of; /* [net->n_links] index into links + 1; 0: not used yet. Pages come as touched. */

    guint32 *started, *dirty; /* since the last settlement */
    guint32 n_started, started_room, n_dirty, dirty_room;
    guint64 settlement;

    /* Scratch of one settlement: the component and its routes in local numbers. */
    TtMaxmin *maxmin;
    guint32 *member, *link_member, *first, *route;
    double *capacity, *rate;
    guint32 n_member, n_link_member, member_room, link_member_room, route_room;

    guint32 *heap; /* sharing flows, earliest end on top, ties by index */
    guint32 heap_n, heap_room;
    TtTime announced_ps; /* an event for the top of the heap is queued for this time; -1: none */
};

/* Grows an array to hold @need elements. */
#define RESERVE(array, room, need)                                                                 \
    do {                                                                                           \
        if (G_UNLIKELY((need) > (room))) {                                                         \
            (room) = MAX(64, 2 * (need));                                                          \
            (array) = g_realloc_n((array), (room), sizeof *(array));                               \
        }                                                                                          \
    } while (0)

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
        g_free(self->links[l].at);
    g_free(self->flows);
    g_free(self->hops);
    g_free(self->links);
    g_free(self->link_of);
    g_free(self->started);
    g_free(self->dirty);
    tt_maxmin_free(self->maxmin);
    g_free(self->member);
    g_free(self->link_member);
    g_free(self->first);
    g_free(self->route);
    g_free(self->capacity);
    g_free(self->rate);
    g_free(self->heap);
    g_free(self);
}

/* --- connections and links --------------------------------------------------------------------- */

static guint32
find_link(TtFlows *self, TtLink id, double capacity)
{
    g_assert(id < self->net->n_links);
    if (self->link_of[id] == 0) {
        RESERVE(self->links, self->links_room, self->n_links + 1);
        self->links[self->n_links] = (Link){ .capacity = capacity, .id = id };
        self->link_of[id] = ++self->n_links;
    }
    return self->link_of[id] - 1;
}

guint32
tt_flows_add(TtFlows *self, guint src, guint dst)
{
    TtLink route[TT_MAX_ROUTE];
    guint n = self->net->route(self->net->context, src, dst, route);
    Flow flow = { .first_hop = self->n_hops, .heap_pos = NOWHERE, .alone_rate = INFINITY };

    g_assert(n <= TT_MAX_ROUTE);
    RESERVE(self->hops, self->hops_room, self->n_hops + TT_MAX_ROUTE);
    for (guint i = 0; i < n; i++) {
        TtLinkInfo info = self->net->link(self->net->context, route[i]);

        flow.latency_ps += info.latency_ps;
        if (isinf(info.capacity_bytes_per_s))
            continue;
        flow.alone_rate = MIN(flow.alone_rate, info.capacity_bytes_per_s);
        self->hops[self->n_hops++].link = find_link(self, route[i], info.capacity_bytes_per_s);
        flow.n_hops++;
    }
    RESERVE(self->flows, self->flows_room, self->n_flows + 1);
    self->flows[self->n_flows] = flow;
    return self->n_flows++;
}

TtTime
tt_flows_latency_ps(const TtFlows *self, guint32 flow)
{
    return self->flows[flow].latency_ps;
}

guint
tt_flows_links(const TtFlows *self, guint32 flow, TtLink *links)
{
    const Flow *f = &self->flows[flow];

    for (guint i = 0; i < f->n_hops; i++)
        links[i] = self->links[self->hops[f->first_hop + i].link].id;
    return f->n_hops;
}

void
tt_flows_add_bytes(const TtFlows *self, double *bytes)
{
    for (guint32 f = 0; f < self->n_flows; f++)
        for (guint i = 0; i < self->flows[f].n_hops; i++)
            bytes[self->links[self->hops[self->flows[f].first_hop + i].link].id] +=
                (double)self->flows[f].carried_bytes;
}

static void
mark_dirty(TtFlows *self, Link *link)
{
    if (link->dirty == self->settlement)
        return;
    link->dirty = self->settlement;
    RESERVE(self->dirty, self->dirty_room, self->n_dirty + 1);
    self->dirty[self->n_dirty++] = (guint32)(link - self->links);
}

static void
log_rate(TtFlows *self, guint32 flow, double rate)
{
    TtRateChange change = { self->queue->now_ps, flow, rate };

    if (self->log)
        g_array_append_val(self->log, change);
}

void
tt_flows_start(TtFlows *self, guint32 flow, guint64 bytes)
{
    Flow *f = &self->flows[flow];

    g_assert(f->state == IDLE);
    f->state = STARTING;
    f->rate = 0;
    f->left_bytes = (double)bytes;
    f->since_ps = self->queue->now_ps;
    f->carried_bytes += bytes;
    for (guint32 h = f->first_hop; h < f->first_hop + f->n_hops; h++) {
        Link *link = &self->links[self->hops[h].link];

        RESERVE(link->at, link->room, link->n + 1);
        self->hops[h].pos = link->n;
        link->at[link->n++] = (Crossing){ flow, h };
    }
    RESERVE(self->started, self->started_room, self->n_started + 1);
    self->started[self->n_started++] = flow;
}

/* Takes a flow off its links; whoever stays behind may speed up. */
static void
leave(TtFlows *self, guint32 flow)
{
    Flow *f = &self->flows[flow];

    for (guint32 h = f->first_hop; h < f->first_hop + f->n_hops; h++) {
        Link *link = &self->links[self->hops[h].link];
        guint32 pos = self->hops[h].pos;
        Crossing last = link->at[--link->n];

        link->at[pos] = last;
        self->hops[last.hop].pos = pos;
        if (link->n > 0)
            mark_dirty(self, link);
    }
    f->state = IDLE;
    log_rate(self, flow, 0);
}

/* --- the heap of sharing flows ----------------------------------------------------------------- */

static inline gboolean
earlier(const TtFlows *self, guint32 a, guint32 b)
{
    TtTime x = self->flows[a].end_ps, y = self->flows[b].end_ps;

    return x != y ? x < y : a < b;
}

static inline void
heap_put(TtFlows *self, guint32 pos, guint32 flow)
{
    self->heap[pos] = flow;
    self->flows[flow].heap_pos = pos;
}

static void
heap_down(TtFlows *self, guint32 pos)
{
    guint32 moving = self->heap[pos];

    for (;;) {
        guint32 best = 4 * pos + 1, end = MIN(best + 4, self->heap_n);

        if (best >= self->heap_n)
            break;
        for (guint32 child = best + 1; child < end; child++)
            if (earlier(self, self->heap[child], self->heap[best]))
                best = child;
        if (!earlier(self, self->heap[best], moving))
            break;
        heap_put(self, pos, self->heap[best]);
        pos = best;
    }
    heap_put(self, pos, moving);
}

static void
heap_up(TtFlows *self, guint32 pos)
{
    guint32 moving = self->heap[pos];

    while (pos > 0 && earlier(self, moving, self->heap[(pos - 1) / 4])) {
        heap_put(self, pos, self->heap[(pos - 1) / 4]);
        pos = (pos - 1) / 4;
    }
    heap_put(self, pos, moving);
}

static void
heap_pop(TtFlows *self)
{
    self->flows[self->heap[0]].heap_pos = NOWHERE;
    self->heap_n--;
    if (self->heap_n > 0) {
        heap_put(self, 0, self->heap[self->heap_n]);
        heap_down(self, 0);
    }
}

/* After the ends of the component's flows moved: put them in order again, all at once if they are many. */
static void
heap_update(TtFlows *self, const guint32 *changed, guint32 n_changed)
{
    guint32 old_n = self->heap_n;

    RESERVE(self->heap, self->heap_room, self->heap_n + n_changed);
    for (guint32 i = 0; i < n_changed; i++)
        if (self->flows[changed[i]].heap_pos == NOWHERE)
            heap_put(self, self->heap_n++, changed[i]);
    if (n_changed > self->heap_n / 8) {
        for (guint32 pos = self->heap_n / 4 + 1; pos-- > 0;)
            if (pos < self->heap_n)
                heap_down(self, pos);
        return;
    }
    for (guint32 pos = old_n; pos < self->heap_n; pos++)
        heap_up(self, pos);
    for (guint32 i = 0; i < n_changed; i++) {
        heap_up(self, self->flows[changed[i]].heap_pos);
        heap_down(self, self->flows[changed[i]].heap_pos);
    }
}

/* --- settling an instant ----------------------------------------------------------------------- */

/* Saturates: an end beyond the end of time is the end of time. */
static inline TtTime
end_after(TtTime now_ps, double bytes, double rate)
{
    TtTime takes_ps = isinf(rate) ? 0 : tt_seconds_to_ps(bytes / rate);

    return takes_ps > TT_TIME_MAX - now_ps ? TT_TIME_MAX : now_ps + takes_ps;
}

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

    f->state = ALONE;
    f->rate = f->alone_rate;
    f->end_ps = end_after(self->queue->now_ps, f->left_bytes, f->rate);
    tt_event_queue_push(self->queue, f->end_ps, TT_FLOW_ENDS | f->generation << TT_KIND_BITS, flow);
    log_rate(self, flow, f->rate);
}

static void
visit_link(TtFlows *self, Link *link)
{
    if (link->visit == self->settlement)
        return;
    link->visit = self->settlement;
    link->local = self->n_link_member;
    self->link_member[self->n_link_member++] = (guint32)(link - self->links);
}

/* Everything connected to the dirty links through shared links. Flows in the order of discovery, which
 * depends on the past only. */
static void
collect_component(TtFlows *self)
{
    guint32 n_crossings = 0;

    self->n_member = self->n_link_member = 0;
    if (self->link_member_room < self->n_links) {
        self->link_member_room = self->links_room;
        self->link_member = g_renew(guint32, self->link_member, self->links_room);
        self->capacity = g_renew(double, self->capacity, self->links_room);
    }
    if (self->member_room < self->n_flows) {
        self->member_room = self->flows_room;
        self->member = g_renew(guint32, self->member, self->flows_room);
        self->first = g_renew(guint32, self->first, self->flows_room + 1);
        self->rate = g_renew(double, self->rate, self->flows_room);
    }
    RESERVE(self->route, self->route_room, self->n_hops);

    for (guint32 i = 0; i < self->n_dirty; i++)
        visit_link(self, &self->links[self->dirty[i]]);
    for (guint32 i = 0; i < self->n_link_member; i++) {
        const Link *link = &self->links[self->link_member[i]];

        self->capacity[i] = link->capacity;
        for (guint32 c = 0; c < link->n; c++) {
            Flow *f = &self->flows[link->at[c].flow];

            if (f->visit == self->settlement)
                continue;
            f->visit = self->settlement;
            self->first[self->n_member] = n_crossings;
            self->member[self->n_member++] = link->at[c].flow;
            for (guint32 h = f->first_hop; h < f->first_hop + f->n_hops; h++) {
                Link *next = &self->links[self->hops[h].link];

                visit_link(self, next);
                self->route[n_crossings++] = next->local;
            }
        }
    }
    self->first[self->n_member] = n_crossings;
}

/* Gives a flow its new rate; TRUE if its end moved. */
static gboolean
change_rate(TtFlows *self, guint32 flow, double rate)
{
    Flow *f = &self->flows[flow];
    TtTime now_ps = self->queue->now_ps;

    if (f->state != STARTING && fabs(rate - f->rate) <= SAME_RATE * f->rate)
        return FALSE;
    f->left_bytes -= f->rate * tt_ps_to_seconds(now_ps - f->since_ps);
    f->left_bytes = MAX(0, f->left_bytes);
    if (f->state == ALONE) /* its own event no longer holds */
        f->generation++;
    f->state = SHARING;
    f->rate = rate;
    f->since_ps = now_ps;
    f->end_ps = end_after(now_ps, f->left_bytes, rate);
    log_rate(self, flow, rate);
    return TRUE;
}

static void
share_component(TtFlows *self)
{
    TtFlowRoutes routes = { self->n_member, self->first, self->route };
    guint32 n_changed = 0;

    if (self->n_member == 1)
        self->rate[0] = self->flows[self->member[0]].alone_rate;
    else
        tt_maxmin_share(self->maxmin, self->n_link_member, self->capacity, &routes, self->rate);
    for (guint32 i = 0; i < self->n_member; i++)
        if (change_rate(self, self->member[i], self->rate[i]))
            self->member[n_changed++] = self->member[i];
    heap_update(self, self->member, n_changed);
}

/* Queues an event for the earliest end of a sharing flow, unless one is queued. A former one that has
 * become wrong finds nothing to end and does no harm. */
static void
announce(TtFlows *self)
{
    TtTime end_ps;

    if (self->heap_n == 0)
        return;
    end_ps = self->flows[self->heap[0]].end_ps;
    if (end_ps == self->announced_ps)
        return;
    self->announced_ps = end_ps;
    tt_event_queue_push(self->queue, end_ps, TT_FLOWS_SHARED_END, 0);
}

void
tt_flows_settle(TtFlows *self)
{
    for (guint32 i = 0; i < self->n_started; i++) {
        Flow *f = &self->flows[self->started[i]];

        if (is_alone(self, f)) {
            begin_alone(self, self->started[i]);
            continue;
        }
        for (guint32 h = f->first_hop; h < f->first_hop + f->n_hops; h++)
            mark_dirty(self, &self->links[self->hops[h].link]);
    }
    self->n_started = 0;
    if (self->n_dirty > 0) {
        collect_component(self);
        share_component(self);
        self->n_dirty = 0;
        self->settlement++;
    }
    announce(self);
}

gboolean
tt_flows_take(TtFlows *self, const TtSimEvent *event)
{
    Flow *f = &self->flows[event->index];
    guint32 generation = event->kind >> TT_KIND_BITS;

    if (f->state != ALONE || generation != (f->generation & (G_MAXUINT32 >> TT_KIND_BITS)))
        return FALSE;
    f->generation++;
    leave(self, event->index);
    return TRUE;
}

guint32
tt_flows_take_shared(TtFlows *self)
{
    guint32 flow;

    if (self->announced_ps == self->queue->now_ps)
        self->announced_ps = -1;
    if (self->heap_n == 0 || self->flows[self->heap[0]].end_ps > self->queue->now_ps)
        return TT_NO_FLOW;
    flow = self->heap[0];
    heap_pop(self);
    leave(self, flow);
    return flow;
}
