/* ways - the routes through one node, found once: rank to rank, rank to network and back.
 *
 * GPUs, NICs and other holders of ranks do not forward, as the hardware does not: two GPUs of a
 * DGX-1 without a common NVLink meet over PCIe. The exception is NCCL's PXN: on its way out, data
 * may cross NVLink to a GPU that reaches the NIC without passing a CPU.
 */
#include "topologies/graph.h"

#include <string.h>

static gboolean
passes_cpu(const TtGraph *g, const TtWay *way)
{
    for (guint i = 0; i < way->n; i++)
        if (tt_template_kind_of(g->t, g->wire[way->wire[i]].to) == TT_DEVICE_CPU)
            return TRUE;
    return FALSE;
}

static gboolean
all_nvlink(const TtGraph *g, const TtWay *way)
{
    for (guint i = 0; i < way->n; i++) {
        guint16 bundle = g->wire[way->wire[i]].bundle;
        const char *kind = g_array_index(g->t->bundles, TtBundle, bundle).kind;

        if (strcmp(kind, "nvlink") != 0 && strcmp(kind, "xgmi") != 0)
            return FALSE;
    }
    return way->n > 0 && way->n != TT_NO_WAY;
}

/* The wire of NIC @nic's cable towards the network; the one back follows it. */
static guint16
cable_of(const TtTemplate *t, guint nic)
{
    return t->wires->len - 2 * (t->n_nics - nic);
}

/* --- the parts ---------------------------------------------------------------------------------
 */

/* Ranks to ranks, and to the network through each NIC without a peer's help. */
static void
ways_of_ranks(TtGraph *g, TtTemplate *t)
{
    for (guint r = 0; r < t->n_ranks; r++) {
        tt_graph_search(g, r);
        for (guint s = 0; s < t->n_ranks; s++)
            tt_graph_trace(g, r, s, &t->local[r * t->n_ranks + s]);
        for (guint nic = 0; nic < t->n_nics; nic++) {
            TtWay *way = &t->out[r * t->n_nics + nic];

            tt_graph_trace(g, r, t->first[TT_DEVICE_NIC] + nic, way);
            if (way->n >= TT_MAX_WAY)
                way->n = TT_NO_WAY;
            else
                way->wire[way->n++] = cable_of(t, nic);
        }
    }
}

static void
ways_of_nics(TtGraph *g, TtTemplate *t)
{
    for (guint nic = 0; nic < t->n_nics; nic++) {
        tt_graph_search(g, t->first[TT_DEVICE_NIC] + nic);
        for (guint r = 0; r < t->n_ranks; r++) {
            TtWay *way = &t->in[nic * t->n_ranks + r], inside;

            tt_graph_trace(g, t->first[TT_DEVICE_NIC] + nic, r, &inside);
            way->n = inside.n >= TT_MAX_WAY ? TT_NO_WAY : inside.n + 1;
            if (way->n == TT_NO_WAY)
                continue;
            way->wire[0] = cable_of(t, nic) + 1;
            memcpy(way->wire + 1, inside.wire, inside.n * sizeof *inside.wire);
        }
    }
}

/* The cheapest way from @rank over NVLink to a peer that reaches @nic without a CPU, if it is
 * cheaper than the direct way. Among equal peers the NIC's number decides. @direct: ways without a
 * peer's help, [R * N]; @near: those of them that pass no CPU. */
static void
try_peers(const TtGraph *g, const TtTemplate *t, guint rank, guint nic, const TtWay *direct,
          const guint8 *near, TtWay *out)
{
    gint64 direct_ps = tt_graph_cost_ps(g, &direct[rank * t->n_nics + nic]), best_ps = direct_ps;
    guint best[TT_MAX_RANKS_PER_NODE], n_best = 0;

    for (guint peer = 0; peer < t->n_ranks; peer++) {
        const TtWay *across = &t->local[rank * t->n_ranks + peer];
        const TtWay *rest = &direct[peer * t->n_nics + nic];
        gint64 cost_ps;

        if (peer == rank || !near[peer * t->n_nics + nic] || across->n + rest->n > TT_MAX_WAY ||
            !all_nvlink(g, across))
            continue;
        cost_ps = tt_graph_cost_ps(g, across) + tt_graph_cost_ps(g, rest);
        if (cost_ps < best_ps) {
            best_ps = cost_ps;
            n_best = 0;
        }
        if (cost_ps == best_ps && best_ps < direct_ps)
            best[n_best++] = peer;
    }
    if (n_best > 0) {
        guint peer = best[nic % n_best];
        const TtWay *across = &t->local[rank * t->n_ranks + peer];
        const TtWay *rest = &direct[peer * t->n_nics + nic];

        memcpy(out->wire, across->wire, across->n * sizeof *out->wire);
        memcpy(out->wire + across->n, rest->wire, rest->n * sizeof *out->wire);
        out->n = across->n + rest->n;
    }
}

static void
ways_through_peers(TtGraph *g, TtTemplate *t)
{
    gsize n = (gsize)t->n_ranks * t->n_nics;
    g_autofree TtWay *direct = g_new(TtWay, n);
    g_autofree guint8 *near = g_new(guint8, n);

    memcpy(direct, t->out, n * sizeof *direct);
    for (gsize i = 0; i < n; i++)
        near[i] = direct[i].n != TT_NO_WAY && !passes_cpu(g, &direct[i]);
    for (guint r = 0; r < t->n_ranks; r++) {
        for (guint nic = 0; nic < t->n_nics; nic++) {
            TtWay *way = &t->out[r * t->n_nics + nic];

            if (t->pxn)
                try_peers(g, t, r, nic, direct, near, way);
            t->on_rail[r * t->n_nics + nic] = way->n != TT_NO_WAY && !passes_cpu(g, way);
        }
    }
}

/* Numbers of the NICs as close to @rank as any, ascending; how many. */
static guint
closest_nics(const TtGraph *g, const TtTemplate *t, guint rank, guint8 *nics)
{
    gint64 best_ps = TT_UNREACHABLE;
    guint n = 0;

    for (guint nic = 0; nic < t->n_nics; nic++) {
        gint64 cost_ps = tt_graph_cost_ps(g, &t->out[rank * t->n_nics + nic]);

        if (cost_ps < best_ps) {
            best_ps = cost_ps;
            n = 0;
        }
        if (cost_ps == best_ps && cost_ps != TT_UNREACHABLE)
            nics[n++] = nic;
    }
    return n;
}

/* Ranks equally close to the same NICs divide them among themselves. */
static void
share_nics(const TtGraph *g, TtTemplate *t)
{
    guint N = t->n_nics;
    g_autofree guint8 *closest = g_new0(guint8, t->n_ranks * N);
    g_autofree guint *n_closest = g_new(guint, t->n_ranks);
    g_autofree guint *place = g_new0(guint, t->n_ranks), *sharers = g_new0(guint, t->n_ranks);

    for (guint r = 0; r < t->n_ranks; r++)
        n_closest[r] = closest_nics(g, t, r, closest + r * N);
    t->n_own = N;
    for (guint r = 0; r < t->n_ranks; r++) {
        for (guint s = 0; s < t->n_ranks; s++) {
            gboolean same = n_closest[s] == n_closest[r] &&
                            memcmp(closest + s * N, closest + r * N, n_closest[r]) == 0;

            sharers[r] += same;
            place[r] += s < r && same;
        }
        t->n_own = MIN(t->n_own, MAX(1, n_closest[r] / sharers[r]));
    }
    t->own = g_new0(guint8, t->n_ranks * t->n_own);
    for (guint r = 0; r < t->n_ranks; r++) {
        guint n = n_closest[r], each = MAX(1, n / sharers[r]);

        for (guint i = 0; n && i < t->n_own; i++)
            t->own[r * t->n_own + i] = closest[r * N + (place[r] * each + i) % n];
    }
}

/* --- all of it ---------------------------------------------------------------------------------
 */

static gboolean
check_local(const TtTemplate *t, const TtKeys *keys, GError **error)
{
    for (guint r = 0; r < t->n_ranks; r++) {
        for (guint s = 0; s < t->n_ranks; s++) {
            if (t->local[r * t->n_ranks + s].n != TT_NO_WAY)
                continue;

            g_autofree char *from = tt_template_device_name(t, r);
            g_autofree char *to = tt_template_device_name(t, s);

            tt_keys_error_whole(keys, error,
                                "%s cannot reach %s within %d links (GPUs, hosts and NICs "
                                "do not forward)",
                                from, to, TT_MAX_WAY);
            return FALSE;
        }
    }
    return TRUE;
}

static gboolean
check_network(const TtTemplate *t, const TtKeys *keys, GError **error)
{
    if (t->n_nics == 0) {
        tt_keys_error_whole(keys, error,
                            "a node without NICs stands alone: nics in [node] and a [nic] "
                            "section are needed for more than one node");
        return FALSE;
    }
    for (guint i = 0; i < t->n_ranks * t->n_own; i++) {
        guint r = i / t->n_own, nic = t->own[i];

        if (t->out[r * t->n_nics + nic].n == TT_NO_WAY ||
            t->in[nic * t->n_ranks + r].n == TT_NO_WAY) {
            g_autofree char *name = tt_template_device_name(t, r);

            tt_keys_error_whole(keys, error, "%s cannot reach a NIC within %d links", name,
                                TT_MAX_WAY - 1);
            return FALSE;
        }
    }
    return TRUE;
}

gboolean
tt_template_find_ways(TtTemplate *t, gboolean networked, const TtKeys *keys, GError **error)
{
    g_auto(TtGraph) g = { 0 };
    gsize n_pairs = (gsize)t->n_ranks * t->n_ranks, n_ports = (gsize)t->n_ranks * t->n_nics;

    tt_graph_init(&g, t);
    t->local = g_new0(TtWay, n_pairs);
    t->out = g_new0(TtWay, n_ports);
    t->in = g_new0(TtWay, n_ports);
    t->on_rail = g_new0(guint8, n_ports);
    ways_of_ranks(&g, t);
    if (!check_local(t, keys, error))
        return FALSE;
    if (networked && t->n_nics > 0) {
        ways_of_nics(&g, t);
        ways_through_peers(&g, t);
        share_nics(&g, t);
    }
    return !networked || check_network(t, keys, error);
}
