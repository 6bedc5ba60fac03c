/* New rates after a change, for as few flows as possible.
 *
 * Rates are max-min fair if and only if every flow has a limit: a full link on which nobody is
 * faster (Bertsekas & Gallager). That can be checked link by link, so a change need not be carried
 * further than it reaches:
 *
 *     region = the flows on links that gained or lost a flow
 *     repeat
 *         solve the region in what the flows outside leave of their links
 *         look at the links where something changed and flows outside remain:
 *             everybody limited there must still be on a full link with nobody faster
 *         where that fails, take the link's other flows into the region
 *
 * When no check fails, every flow has a limit, so the rates are those of the whole network. In the
 * worst case the region grows to all flows connected through shared links.
 */
#include "sim/flows_private.h"

#include <math.h>
#include <string.h>

#define SAME_RATE                                                                                  \
    1e-12 /* a new rate this close to the old one is the old one: its end need not move */
#define FULL       1e-9 /* a link is full, and a flow as fast as another, within this */
#define MAX_ROUNDS 6    /* then the rest of the connected flows comes in at once */

static void
add_member(TtFlows *self, guint32 flow)
{
    FlowShare *share = &self->flow_shares[flow];

    if (share->visit == self->settlement)
        return;
    share->visit = self->settlement;
    share->local = self->n_member;
    TT_RESERVE(self->member, self->member_room, self->n_member + 1);
    self->member[self->n_member++] = flow;
}

static void
add_flows_of(TtFlows *self, guint32 link)
{
    Link *l = &self->links[link];
    const Crossing *at = tt_link_crossings(l);

    for (guint32 c = 0; c < l->n; c++)
        add_member(self, at[c].flow);
}

/* Gives a link a local number; it starts with nobody inside. */
static void
visit_link(TtFlows *self, guint32 link)
{
    LinkShare *share = &self->link_shares[link];
    guint32 need = self->n_link_member + 1;

    if (share->visit == self->settlement)
        return;
    share->visit = self->settlement;
    share->local = self->n_link_member;
    TT_RESERVE(self->link_member, self->link_member_room, need);
    TT_RESERVE(self->inside, self->inside_room, need);
    TT_RESERVE(self->capacity, self->capacity_room, need);
    TT_RESERVE(self->inside_load, self->inside_load_room, need);
    self->inside[share->local] = 0;
    self->inside_load[share->local] = 0;
    self->link_member[self->n_link_member++] = link;
}

/* Routes of the members from @from on, in local numbers. */
static void
describe_members(TtFlows *self, guint32 from)
{
    TT_RESERVE(self->first, self->first_room, self->n_member + 1);
    TT_RESERVE(self->rate, self->rate_room, self->n_member);
    TT_RESERVE(self->limit, self->limit_room, self->n_member);
    self->first[0] = 0;
    for (guint32 i = from; i < self->n_member; i++) {
        const Flow *f = &self->flows[self->member[i]];
        guint32 n = self->first[i];

        TT_RESERVE(self->route, self->route_room, n + f->n_hops);
        TT_RESERVE(self->weight, self->weight_room, n + f->n_hops);
        for (guint32 h = f->first_hop; h < f->first_hop + f->n_hops; h++) {
            guint32 local;

            visit_link(self, self->hops[h].link);
            local = self->link_shares[self->hops[h].link].local;
            self->inside[local]++;
            if (f->state == FLOW_SHARING)
                self->inside_load[local] += f->rate * self->hops[h].weight;
            self->weight[n] = self->hops[h].weight;
            self->route[n++] = local;
        }
        self->first[i + 1] = n;
    }
}

static inline gboolean
is_inside(const TtFlows *self, guint32 local)
{
    return self->inside[local] == self->links[self->link_member[local]].n;
}

static void
solve(TtFlows *self)
{
    TtFlowRoutes routes = { self->n_member, self->first, self->route, self->weight };

    for (guint32 l = 0; l < self->n_link_member; l++) {
        const LinkShare *share = &self->link_shares[self->link_member[l]];
        double outside = is_inside(self, l) ? 0 : share->load - self->inside_load[l];

        self->capacity[l] = MAX(0, share->capacity - outside);
    }
    tt_maxmin_share(self->maxmin, self->n_link_member, self->capacity, &routes, self->rate,
                    self->limit);
}

static inline gboolean
is_changed(const TtFlows *self, guint32 i)
{
    double old = self->flows[self->member[i]].rate;

    return fabs(self->rate[i] - old) > SAME_RATE * old;
}

static void
add_check(TtFlows *self, guint32 link)
{
    LinkShare *share = &self->link_shares[link];

    if (share->check == self->check || is_inside(self, share->local))
        return;
    share->check = self->check;
    TT_RESERVE(self->checks, self->checks_room, self->n_checks + 1);
    self->checks[self->n_checks++] = link;
}

/* Links where flows outside remain and something is different: a rate, or whom it limits. */
static void
list_checks(TtFlows *self)
{
    self->check++;
    self->n_checks = 0;
    for (guint32 i = 0; i < self->n_member; i++) {
        const Flow *f = &self->flows[self->member[i]];
        guint32 limit = self->link_member[self->limit[i]];

        if (is_changed(self, i)) {
            for (guint32 h = f->first_hop; h < f->first_hop + f->n_hops; h++)
                add_check(self, self->hops[h].link);
        } else if (f->state != FLOW_SHARING || limit != self->flow_shares[self->member[i]].limit) {
            add_check(self, limit);
        }
    }
}

/* Is everybody whom this link limits still rightly limited by it? Of the members, the first
 * @n_solved have new rates; those that came in since have not. */
static gboolean
limits_rightly(TtFlows *self, guint32 link, guint32 n_solved)
{
    Link *l = &self->links[link];
    const Crossing *at = tt_link_crossings(l);
    double sum = 0, fastest = 0, slowest_limited = INFINITY;

    for (guint32 c = 0; c < l->n; c++) {
        const FlowShare *share = &self->flow_shares[at[c].flow];
        gboolean member = share->visit == self->settlement && share->local < n_solved;
        double rate = member ? self->rate[share->local] : self->flows[at[c].flow].rate;
        guint32 limit = member ? self->link_member[self->limit[share->local]] : share->limit;

        sum += rate * self->hops[at[c].hop].weight;
        fastest = MAX(fastest, rate);
        if (limit == link)
            slowest_limited = MIN(slowest_limited, rate);
    }
    return isinf(slowest_limited) || (sum >= self->link_shares[link].capacity * (1 - FULL) &&
                                      slowest_limited >= fastest * (1 - FULL));
}

/* TRUE if the region had to grow. */
static gboolean
grow(TtFlows *self, guint round)
{
    guint32 before = self->n_member;

    list_checks(self);
    for (guint32 i = 0; i < self->n_checks; i++)
        if (!limits_rightly(self, self->checks[i], before))
            add_flows_of(self, self->checks[i]);
    if (self->n_member == before)
        return FALSE;
    describe_members(self, before);
    if (round < MAX_ROUNDS)
        return TRUE;
    for (guint32 l = 0; l < self->n_link_member; l++) { /* n_link_member grows meanwhile */
        before = self->n_member;
        add_flows_of(self, self->link_member[l]);
        describe_members(self, before);
    }
    return TRUE;
}

/* --- taking the new rates over -----------------------------------------------------------------
 */

/* Saturates: an end beyond the end of time is the end of time. */
static TtTime
end_after(TtTime now_ps, double bytes, double rate)
{
    TtTime takes_ps = tt_seconds_to_ps(bytes / rate);

    return takes_ps > TT_TIME_MAX - now_ps ? TT_TIME_MAX : now_ps + takes_ps;
}

/* TRUE if the flow's place in the heap must be found anew. */
static gboolean
take_over(TtFlows *self, guint32 i)
{
    guint32 flow = self->member[i];
    Flow *f = &self->flows[flow];
    TtTime now_ps = self->queue->now_ps;
    double rate = is_changed(self, i) ? self->rate[i] : f->rate;
    double already = f->state == FLOW_SHARING ? f->rate : 0; /* in the links' loads */
    gboolean moves = f->state != FLOW_SHARING || rate != f->rate;

    self->flow_shares[flow].limit = self->link_member[self->limit[i]];
    for (guint32 h = f->first_hop; rate != already && h < f->first_hop + f->n_hops; h++)
        self->link_shares[self->hops[h].link].load += (rate - already) * self->hops[h].weight;
    if (f->state == FLOW_ALONE) /* its own event no longer holds */
        f->generation++;
    if (rate != f->rate) {
        f->left_bytes = MAX(0, f->left_bytes - f->rate * tt_ps_to_seconds(now_ps - f->since_ps));
        f->since_ps = now_ps;
        f->rate = rate;
        f->end_ps = end_after(now_ps, f->left_bytes, rate);
        tt_flows_log(self, flow, rate);
    }
    f->state = FLOW_SHARING;
    return moves;
}

void
tt_flows_share(TtFlows *self)
{
    guint32 n_moved = 0;

    self->n_member = self->n_link_member = 0;
    for (guint32 i = 0; i < self->n_dirty; i++)
        add_flows_of(self, self->dirty[i]);
    describe_members(self, 0);
    for (guint round = 1;; round++) {
        solve(self);
        if (!grow(self, round))
            break;
    }
    for (guint32 l = 0; l < self->n_link_member; l++) /* sums start afresh where they can */
        if (is_inside(self, l))
            self->link_shares[self->link_member[l]].load = self->inside_load[l];
    for (guint32 i = 0; i < self->n_member; i++)
        if (take_over(self, i))
            self->member[n_moved++] = self->member[i];
    tt_flows_heap_update(self, self->member, n_moved);
    self->settlement++;
}
