/* Flows and links of a kind taken together: one of each class, weighted by how many cross. */
#include "sim/flows_private.h"
#include "sim/partition.h"

#include <math.h>
#include <string.h>

guint32
tt_flows_n_links(const TtFlows *self)
{
    return self->n_links;
}

double
tt_flows_link_capacity(const TtFlows *self, guint32 link)
{
    return self->link_shares[link].capacity;
}

guint
tt_flows_hops(const TtFlows *self, guint32 flow, guint32 *links)
{
    const Flow *f = &self->flows[flow];

    for (guint i = 0; i < f->n_hops; i++)
        links[i] = self->hops[f->first_hop + i].link;
    return f->n_hops;
}

static Hop *
find_hop(TtFlows *self, const Flow *flow, guint32 link)
{
    for (guint32 h = flow->first_hop; h < flow->first_hop + flow->n_hops; h++)
        if (self->hops[h].link == link)
            return &self->hops[h];
    return NULL;
}

/* The flow's way over classes of links, each once, not yet weighted. */
static void
add_class(TtFlows *self, const TtFlows *full, guint32 flow, const guint32 *link_class)
{
    const Flow *f = &full->flows[flow];
    Flow folded = { .first_hop = self->n_hops, .heap_pos = TT_NOWHERE, .alone_rate = INFINITY };
    FlowShare share = { .limit = TT_NOWHERE, .latency_ps = full->flow_shares[flow].latency_ps };

    TT_RESERVE(self->hops, self->hops_room, self->n_hops + f->n_hops);
    for (guint32 h = f->first_hop; h < f->first_hop + f->n_hops; h++) {
        guint32 link = link_class[full->hops[h].link];

        if (find_hop(self, &folded, link))
            continue;
        self->hops[self->n_hops++] = (Hop){ .link = link };
        folded.n_hops++;
    }
    folded.n_all = folded.n_hops;
    TT_RESERVE(self->flows, self->flows_room, self->n_flows + 1);
    TT_RESERVE(self->flow_shares, self->flow_shares_room, self->n_flows + 1);
    self->flows[self->n_flows] = folded;
    self->flow_shares[self->n_flows++] = share;
}

/* How often each class of flows crosses a link, counted on one link of each class. */
static void
weigh(TtFlows *self, const TtFlows *full, const guint32 *flow_class, const guint32 *link_class,
      const guint32 *first)
{
    for (guint32 f = 0; f < full->n_flows; f++) {
        const Flow *flow = &full->flows[f];

        for (guint32 h = flow->first_hop; h < flow->first_hop + flow->n_hops; h++) {
            guint32 link = full->hops[h].link;

            if (first[link_class[link]] == link)
                find_hop(self, &self->flows[flow_class[f]], link_class[link])->weight +=
                    full->hops[h].weight;
        }
    }
    for (guint32 f = 0; f < self->n_flows; f++) {
        Flow *flow = &self->flows[f];

        for (guint32 h = flow->first_hop; h < flow->first_hop + flow->n_hops; h++)
            flow->alone_rate =
                MIN(flow->alone_rate,
                    self->link_shares[self->hops[h].link].capacity / self->hops[h].weight);
    }
}

TtFlows *
tt_flows_fold(const TtFlows *full, const guint32 *flow_class, guint32 n_flow_classes,
              const guint32 *link_class, guint32 n_link_classes)
{
    TtFlows *self = tt_flows_new(full->net, full->queue, full->log);
    g_autofree guint32 *first = g_new(guint32, MAX(1, n_link_classes)); /* [class] a member */

    for (guint32 l = 0; l < full->n_links; l++) {
        const LinkShare *share = &full->link_shares[l];

        if (link_class[l] == self->n_links) {
            tt_flows_new_link(self, share->id, share->capacity);
            first[link_class[l]] = l;
        }
        /* the first of its kind, as reports name the first of those that are equally busy */
        self->link_shares[link_class[l]].id = MIN(self->link_shares[link_class[l]].id, share->id);
    }
    g_assert(self->n_links == n_link_classes);
    for (guint32 f = 0; f < full->n_flows; f++)
        if (flow_class[f] == self->n_flows)
            add_class(self, full, f, link_class);
    g_assert(self->n_flows == n_flow_classes);
    weigh(self, full, flow_class, link_class, first);
    return self;
}

/* --- links that never fill ---------------------------------------------------------------------
 */

/* Marks links too wide for all flows over them together, each as fast as it is alone, and not the
 * narrowest of any. */
static gboolean *
find_wide(const TtFlows *self)
{
    g_autofree double *sum = g_new0(double, MAX(1, self->n_links));
    gboolean *wide = g_new(gboolean, MAX(1, self->n_links));

    for (guint32 l = 0; l < self->n_links; l++)
        wide[l] = TRUE;
    for (guint32 f = 0; f < self->n_flows; f++) {
        const Flow *flow = &self->flows[f];

        for (guint32 h = flow->first_hop; h < flow->first_hop + flow->n_hops; h++) {
            const Hop *hop = &self->hops[h];

            sum[hop->link] += flow->alone_rate * hop->weight;
            if (self->link_shares[hop->link].capacity <= flow->alone_rate * hop->weight)
                wide[hop->link] = FALSE;
        }
    }
    for (guint32 l = 0; l < self->n_links; l++)
        wide[l] = wide[l] && sum[l] <= self->link_shares[l].capacity;
    return wide;
}

void
tt_flows_prune(TtFlows *self)
{
    g_autofree gboolean *wide = find_wide(self);

    for (guint32 f = 0; f < self->n_flows; f++) {
        Flow *flow = &self->flows[f];

        for (guint i = 0; i < flow->n_hops;) {
            Hop *hop = &self->hops[flow->first_hop + i], *last;

            if (!wide[hop->link]) {
                i++;
                continue;
            }
            last = &self->hops[flow->first_hop + --flow->n_hops];
            Hop moved = *hop;

            *hop = *last;
            *last = moved;
        }
    }
}

/* --- for leaping -------------------------------------------------------------------------------
 */

static guint64
bits_of(double value)
{
    guint64 bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

guint64
tt_flows_state(const TtFlows *self, guint32 flow)
{
    const Flow *f = &self->flows[flow];
    TtTime now_ps = self->queue->now_ps;
    guint64 look = tt_mix(f->state, 0);

    if (f->state == FLOW_IDLE)
        return look;
    look = tt_mix(look, (guint64)(f->end_ps - now_ps));
    look = tt_mix(look, (guint64)(now_ps - f->since_ps));
    look = tt_mix(look, bits_of(f->left_bytes));
    return tt_mix(look, bits_of(f->rate));
}

TtTime
tt_flows_left_ps(const TtFlows *self, guint32 flow)
{
    const Flow *f = &self->flows[flow];

    return f->state == FLOW_IDLE ? -1 : f->end_ps - self->queue->now_ps;
}

guint64
tt_flows_carried(const TtFlows *self, guint32 flow)
{
    return self->flows[flow].carried_bytes;
}

void
tt_flows_add_carried(TtFlows *self, guint32 flow, guint64 bytes)
{
    self->flows[flow].carried_bytes += bytes;
}
