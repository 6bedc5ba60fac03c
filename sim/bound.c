/* Lower bounds: no plan, however clever, is faster on this machine.
 *
 * S: bytes of the vector, P: ranks, M: nodes they sit on. A message carries one value per element
 * (a contribution or a partial result) and nobody but ranks computes. Counting, for one element,
 * the transfers between ranks:
 *
 *   reduce to one rank   P-1 at least: the transfers must connect P contributions to the result
 *   broadcast            P-1 at least: every rank but the root must receive it
 *   allreduce            2(P-1): order transfers by arrival. Until the first rank has the whole
 * sum, P-1 must have happened (as for reduce). The P-1 other ranks are not complete then, so each
 * still receives at least once. (Patarasuk & Yuan 2009) reduce-scatter       P-1, as each element
 * is reduced to one rank allgather            P-1, as each element is broadcast from one rank
 *
 * Seen from outside, a node is a rank too: its ranks pool what they know for nothing at best, so
 * the same counts hold for M nodes and transfers between nodes. Hence, with `out` the most a rank
 * (node) can send per second, time >= transfers * S / sum of out over all ranks (nodes); the same
 * for `in`. And for one rank (node) alone: what it contributes must leave, what it needs must come.
 *
 * Where a plan has switches that reduce and copy between the parties, the counts do not hold: one
 * message out may reach everybody, and what comes in may be the sum of all. What is left is the sum
 * of what each party must send and receive.
 *
 * A pod, the nodes that reach the others through the same leaf switches, is a party in the same
 * way; its `out` and `in` are the links between its leaves and the spines. Messages within a pod
 * that change rails in a spine only take from that.
 *
 *                        must leave a rank              must reach a rank
 *   allreduce            S                              S
 *   reduce-scatter       S - own part                   own part
 *   allgather            own part                       S - own part
 *   broadcast            S from the root                S to every other
 *   reduce               S from every other             S to the root
 *
 * Latency: a contribution that must get from i to j, over whatever relays, needs the shortest path
 * in the complete graph of routes; with many ranks, at least the cheapest way out of its rank and
 * of its node. The larger of latency and bandwidth bounds the time. (Their sum would not be sound:
 * relays overlap.)
 */
#include "sim/levels.h"

#include <math.h>

#define ALL_PAIRS_RANKS 64         /* up to here shortest paths between all ranks */
#define MAX_ROUTES      (1u << 22) /* beyond this only one rank's ways out are looked at */

/* --- switches that reduce ----------------------------------------------------------------------
 */

/* Does a switch of the plan stand between parties: ranks (any switch does), or nodes and pods (only the
 * network does)? */
static gboolean
has_switch(const TtPlan *plan, gboolean between_nodes)
{
    for (guint agent = plan->spec.n_ranks; agent < tt_plan_n_agents(plan); agent++)
        if (!between_nodes || tt_plan_switch(plan, agent).is_network)
            return TRUE;
    return FALSE;
}

static TtTime
switch_latency_ps(const TtNetwork *net, guint rank, gboolean towards)
{
    TtLink links[TT_MAX_ROUTE];
    guint n = net->switch_route
                  ? net->switch_route(net->context, rank, TT_NETWORK_SWITCH, towards, links)
                  : TT_NO_ROUTE;
    TtTime sum_ps = 0;

    for (guint i = 0; n != TT_NO_ROUTE && i < n; i++)
        sum_ps += net->link(net->context, links[i]).latency_ps;
    return sum_ps;
}

/* --- bandwidth ---------------------------------------------------------------------------------
 */

typedef struct {
    TtBound bound;
    const TtPlan *plan;
    double all_bytes;
} Search;

static void
consider(Search *search, double bytes, double bytes_per_s, const char *format, guint who)
{
    double seconds = bytes / bytes_per_s;

    if (!(seconds > search->bound.bandwidth_s))
        return;
    search->bound.bandwidth_s = seconds;
    g_free(search->bound.limit);
    search->bound.limit = g_strdup_printf(format, who); /* formats without %u ignore it */
}

/* What must leave and reach a party: a rank, a node or a pod, which owns @part bytes and may hold
 * the root. */
static void
duties(const Search *search, double part, gboolean is_root, double *out, double *in)
{
    double all = search->all_bytes;

    switch (search->plan->spec.collective) {
    case TT_REDUCE_SCATTER: *out = all - part, *in = part; break;
    case TT_ALLGATHER: *out = part, *in = all - part; break;
    case TT_BROADCAST: *out = is_root ? all : 0, *in = is_root ? 0 : all; break;
    case TT_REDUCE: *out = is_root ? 0 : all, *in = is_root ? all : 0; break;
    default: *out = *in = all; break;
    }
}

static double
part_bytes(const TtPlan *plan, guint first_rank, guint end_rank)
{
    guint buffer = plan->spec.collective == TT_REDUCE_SCATTER ? TT_OUTPUT : TT_INPUT;
    TtRange first = tt_plan_buffer_range(plan, first_rank, buffer);
    TtRange last = tt_plan_buffer_range(plan, end_rank - 1, buffer);

    return (double)(last.first + last.count - first.first) * tt_type_bytes(plan->spec.type);
}

/* The wording of one kind of party. */
typedef struct {
    const char *out, *in, *all_out, *all_in;
} Words;

static const Words rank_words = { "injection of rank %u", "ejection of rank %u",
                                  "injection of all ranks", "ejection of all ranks" };
static const Words node_words = { "NICs of node %u, outgoing", "NICs of node %u, incoming",
                                  "NICs of all nodes, outgoing", "NICs of all nodes, incoming" };
static const Words pod_words = { "uplinks of pod %u, outgoing", "uplinks of pod %u, incoming",
                                 "uplinks of all leaves, outgoing",
                                 "uplinks of all leaves, incoming" };

/* Holds @n parties of @size ranks each against what they can send and take. */
static void
consider_parties(Search *search, const TtNetwork *net, guint n, guint size, const Words *words,
                 double (*out_rate)(gconstpointer, guint), double (*in_rate)(gconstpointer, guint))
{
    const TtPlanSpec *spec = &search->plan->spec;
    gboolean switched = has_switch(search->plan, size >= net->ranks_per_node);
    double transfers = (spec->collective == TT_ALLREDUCE ? 2.0 : 1.0) * (n - 1);
    double all_out = transfers * search->all_bytes, all_in = all_out;
    double sum_out = 0, sum_in = 0, duties_out = 0, duties_in = 0;

    for (guint i = 0; i < n; i++) {
        guint first = i * size, end = MIN(first + size, spec->n_ranks);
        double out, in, out_bytes_per_s = out_rate(net->context, i);
        double in_bytes_per_s = in_rate(net->context, i);

        duties(search, part_bytes(search->plan, first, end),
               spec->root >= first && spec->root < end, &out, &in);
        consider(search, out, out_bytes_per_s, words->out, i);
        consider(search, in, in_bytes_per_s, words->in, i);
        sum_out += out_bytes_per_s;
        sum_in += in_bytes_per_s;
        duties_out += out;
        duties_in += in;
    }
    if (switched) {
        all_out = duties_out;
        all_in = duties_in;
    }
    consider(search, all_out, sum_out, words->all_out, 0);
    consider(search, all_in, sum_in, words->all_in, 0);
}

/* Ranks, nodes and pods in turn; what is alone has nobody to talk to. */
static void
consider_cuts(Search *search, const TtNetwork *net)
{
    guint P = search->plan->spec.n_ranks, per_node = net->ranks_per_node;
    guint64 per_pod = (guint64)per_node * net->nodes_per_pod;

    consider_parties(search, net, P, 1, &rank_words, net->rank_out, net->rank_in);
    if (P > per_node)
        consider_parties(search, net, (P - 1) / per_node + 1, per_node, &node_words, net->node_out,
                         net->node_in);
    /* a network that reduces is simulated as one switch behind the NICs: no uplinks */
    if (per_pod > 0 && P > per_pod && !has_switch(search->plan, TRUE))
        consider_parties(search, net, (P - 1) / (guint)per_pod + 1, (guint)per_pod, &pod_words,
                         net->pod_out, net->pod_in);
}

/* --- latency -----------------------------------------------------------------------------------
 */

/* FALSE where some parts are empty, so that not every pair has something to tell. */
static gboolean
everyone_matters(const TtPlan *plan)
{
    TtCollective c = plan->spec.collective;

    return (c != TT_REDUCE_SCATTER && c != TT_ALLGATHER) || plan->spec.count >= plan->spec.n_ranks;
}

/* Must something of @src reach @dst? */
static gboolean
must_reach(const TtPlan *plan, guint src, guint dst)
{
    switch (plan->spec.collective) {
    case TT_BROADCAST: return src == plan->spec.root;
    case TT_REDUCE: return dst == plan->spec.root;
    default: return TRUE;
    }
}

/* Of all ways channels take between two ranks. */
static TtTime
least_latency_ps(const TtPlan *plan, const TtNetwork *net, guint src, guint dst)
{
    TtTime least_ps = tt_network_latency_ps(net, src, dst);

    for (guint c = 0; net->channel_route && c < plan->spec.n_channels; c++) {
        TtLink links[TT_MAX_ROUTE];
        guint n = net->channel_route(net->channel_context, src, dst, c, links);
        TtTime sum_ps = 0;

        for (guint i = 0; i < n; i++)
            sum_ps += net->link(net->context, links[i]).latency_ps;
        least_ps = MIN(least_ps, sum_ps);
    }
    return least_ps;
}

/* Floyd & Warshall over the routes of few ranks. */
static TtTime
longest_shortest_path_ps(const TtPlan *plan, const TtNetwork *net)
{
    guint P = plan->spec.n_ranks;
    g_autofree TtTime *d = g_new(TtTime, P * P);
    TtTime longest_ps = 0;

    for (guint i = 0; i < P; i++)
        for (guint j = 0; j < P; j++)
            d[i * P + j] = i == j ? 0 : least_latency_ps(plan, net, i, j);
    for (guint k = 0; k < P; k++)
        for (guint i = 0; i < P; i++)
            for (guint j = 0; j < P; j++)
                d[i * P + j] = MIN(d[i * P + j], d[i * P + k] + d[k * P + j]);
    for (guint i = 0; i < P; i++)
        for (guint j = 0; j < P; j++)
            if (must_reach(plan, i, j))
                longest_ps = MAX(longest_ps, d[i * P + j]);
    return longest_ps;
}

/* The cheapest way between the ranks first..end-1 and the others, outwards or inwards. */
static TtTime
cheapest_crossing_ps(const TtPlan *plan, const TtNetwork *net, guint first, guint end,
                     gboolean inwards)
{
    TtTime least_ps = TT_TIME_MAX;

    for (guint i = first; i < end; i++) {
        for (guint j = 0; j < plan->spec.n_ranks; j++) {
            if (j >= first && j < end)
                continue;
            least_ps = MIN(least_ps, inwards ? least_latency_ps(plan, net, j, i)
                                             : least_latency_ps(plan, net, i, j));
        }
    }
    return least_ps == TT_TIME_MAX ? 0 : least_ps;
}

static TtTime
latency_bound_ps(const TtPlan *plan, const TtNetwork *net)
{
    guint P = plan->spec.n_ranks, root = plan->spec.root;
    guint per_node = net->ranks_per_node, first = root / per_node * per_node;
    guint64 n_routes = (guint64)P * (net->channel_route ? plan->spec.n_channels + 1 : 1);
    gboolean inwards = plan->spec.collective == TT_REDUCE;
    TtTime latency_ps;

    if (!everyone_matters(plan))
        return 0;
    if (has_switch(plan, TRUE)) { /* the way up to the switch and down again, wherever it stands */
        TtTime up_ps = TT_TIME_MAX, down_ps = TT_TIME_MAX;

        for (guint i = 0; i < P; i++) {
            up_ps = MIN(up_ps, switch_latency_ps(net, i, TRUE));
            down_ps = MIN(down_ps, switch_latency_ps(net, i, FALSE));
        }
        return MIN(up_ps + down_ps, cheapest_crossing_ps(plan, net, root, root + 1, inwards));
    }
    if (P <= ALL_PAIRS_RANKS)
        return longest_shortest_path_ps(plan, net);
    latency_ps = cheapest_crossing_ps(plan, net, root, root + 1, inwards);
    if (n_routes * per_node <= MAX_ROUTES)
        latency_ps = MAX(latency_ps,
                         cheapest_crossing_ps(plan, net, first, MIN(first + per_node, P), inwards));
    return latency_ps;
}

TtBound
tt_bound(const TtPlan *plan, const TtNetwork *net)
{
    Search search = { .plan = plan,
                      .all_bytes = (double)plan->spec.count * tt_type_bytes(plan->spec.type) };
    TtBound *bound = &search.bound;

    if (plan->spec.n_ranks > 1 && plan->spec.count > 0) {
        consider_cuts(&search, net);
        bound->latency_s = tt_ps_to_seconds(latency_bound_ps(plan, net));
    }
    if (bound->latency_s > bound->bandwidth_s) {
        g_free(bound->limit);
        bound->limit = g_strdup("latency");
    } else if (!bound->limit) {
        bound->limit = g_strdup("nothing to move");
    }
    return search.bound;
}
