/* places.c - which rank stands where on a channel: rings, chains, heads, by the plan's wiring. */
#include "algos/algo.h"

/* An allreduce has no root, so channels may start at different ranks; the root's place is given. */
static gboolean
is_rotated(const TtPlan *plan)
{
    return plan->spec.collective == TT_ALLREDUCE;
}

guint
tt_virtual_rank(const TtPlan *plan, guint channel, guint rank)
{
    guint n = plan->spec.n_ranks, root = plan->spec.root;

    if (is_rotated(plan))
        return tt_ring_position(plan, channel, rank);
    return rank >= root ? rank - root : rank + n - root;
}

guint
tt_real_rank(const TtPlan *plan, guint channel, guint virtual_rank)
{
    guint n = plan->spec.n_ranks, rank = virtual_rank + plan->spec.root;

    if (is_rotated(plan))
        return tt_ring_rank(plan, channel, virtual_rank);
    return rank >= n ? rank - n : rank;
}

gboolean
tt_channels_differ(const TtPlan *plan)
{
    return plan->spec.n_channels > 1 &&
           (plan->spec.wiring || plan->spec.group_size < plan->spec.n_ranks);
}

/* Where in its groups a channel enters: spread evenly, since ranks that share a NIC are neighbours. */
static guint
entry_rank(const TtPlan *plan, guint channel)
{
    guint group = plan->spec.group_size, stride = MAX(1, group / plan->spec.n_channels);

    return channel % group * stride % group;
}

/* The places of a node in the order in which a channel passes them. */
static const guint16 *
wired_ring(const TtWiring *wiring, guint channel, guint node)
{
    guint c = channel % wiring->n_channels;

    if (wiring->ring_alternates && node % 2 == 1 && (c ^ 1) < wiring->n_channels)
        c ^= 1;
    return wiring->ring + (gsize)c * wiring->ranks_per_node;
}

/* Where @place stands in a list that has it. */
static guint
index_of(const guint16 *places, guint place)
{
    guint i = 0;

    while (places[i] != place)
        i++;
    return i;
}

guint
tt_ring_position(const TtPlan *plan, guint channel, guint rank)
{
    guint group = plan->spec.group_size, local = rank % group;

    if (plan->spec.wiring)
        return rank - local + index_of(wired_ring(plan->spec.wiring, channel, rank / group), local);
    if (group == plan->spec.n_ranks) /* one group: any start is as good as any other */
        return rank;
    return rank - local + (local + group - entry_rank(plan, channel)) % group;
}

guint
tt_ring_rank(const TtPlan *plan, guint channel, guint position)
{
    guint group = plan->spec.group_size, local = position % group;

    if (plan->spec.wiring)
        return position - local + wired_ring(plan->spec.wiring, channel, position / group)[local];
    if (group == plan->spec.n_ranks)
        return position;
    return position - local + (local + entry_rank(plan, channel)) % group;
}

static const guint16 *
wired_chain(const TtWiring *wiring, guint channel)
{
    const guint16 *rows = wiring->tree ? wiring->tree : wiring->ring;

    return rows + (gsize)(channel % wiring->n_channels) * wiring->ranks_per_node;
}

guint
tt_chain_position(const TtPlan *plan, guint channel, guint rank)
{
    if (plan->spec.wiring)
        return index_of(wired_chain(plan->spec.wiring, channel), rank % plan->spec.group_size);
    return tt_ring_position(plan, channel, rank) % plan->spec.group_size;
}

guint
tt_chain_rank(const TtPlan *plan, guint channel, guint node, guint position)
{
    guint first = node * plan->spec.group_size;

    if (plan->spec.wiring)
        return first + wired_chain(plan->spec.wiring, channel)[position];
    return tt_ring_rank(plan, channel, first + position);
}

guint
tt_n_heads(const TtPlan *plan)
{
    const TtWiring *wiring = plan->spec.wiring;

    return wiring && wiring->n_heads > 0 ? wiring->n_heads : plan->spec.group_size;
}

guint
tt_head_rank(const TtPlan *plan, guint node, guint head)
{
    const TtWiring *wiring = plan->spec.wiring;
    guint place = wiring && wiring->n_heads > 0 ? wiring->head[head] : head;

    return node * plan->spec.group_size + place;
}

guint
tt_head_of(const TtPlan *plan, guint rank)
{
    guint node = rank / plan->spec.group_size;

    for (guint head = 0; head < tt_n_heads(plan); head++)
        if (tt_head_rank(plan, node, head) == rank)
            return head;
    return TT_NO_HEAD;
}
