/* ways - the routes through one node, found once: rank to rank, rank to network and back.
 *
 * Shortest paths (Dijkstra, Numerische Mathematik 1, 1959) where a wire costs what a message of 1
 * MiB would take on it, latency included: big enough to prefer NVLink over PCIe, small enough to
 * prefer fewer hops at equal speed. Costs are integer picoseconds, so equal is equal on every
 * machine; among equals the sum of the end points' numbers decides, which spreads pairs over
 * parallel switches.
 *
 * GPUs, NICs and other holders of ranks do not forward, as the hardware does not: two GPUs of a
 * DGX-1 without a common NVLink meet over PCIe. The exception is NCCL's PXN: on its way out, data
 * may cross NVLink to a GPU that reaches the NIC without passing a CPU.
 */
#include "topologies/template.h"

#include <string.h>

#define REFERENCE_BYTES (1u << 20)
#define UNREACHABLE     G_MAXINT64
#define NO_WAY          G_MAXUINT16 /* TtWay.n where there is none */

/* The wires by the device they leave, and those that leave a forwarding device by the one they
 * enter: of a switch's hundreds of wires a way's last step can only come from the source or from
 * there. */
typedef struct {
    const TtTemplate *t;
    const TtWire *wire;
    gint64 *cost_ps;             /* [n_wires] */
    guint *out_first, *in_first; /* [n_devices + 2] */
    guint16 *out_wire, *in_wire; /* [n_wires] */
    gint64 *dist_ps;             /* [n_devices + 1], of the last search */
    gboolean *done;
} Graph;

/* Devices that forward stand together, between the holders of ranks and the NICs. */
static gboolean
forwards(const TtTemplate *t, guint device)
{
    return device >= t->first[TT_DEVICE_CPU] && device < t->first[TT_DEVICE_NIC];
}

/* Where a wire is listed: G_MAXUINT for nowhere. */
static guint
place_of(const TtTemplate *t, guint w, gboolean by_from)
{
    const TtWire *wire = &g_array_index(t->wires, TtWire, w);

    return by_from ? wire->from : forwards(t, wire->from) ? wire->to : G_MAXUINT;
}

/* Counting sort of wire numbers by device. */
static void
sort_wires(const TtTemplate *t, gboolean by_from, guint *first, guint16 *sorted)
{
    g_autofree guint *next = NULL;

    for (guint w = 0; w < t->wires->len; w++)
        if (place_of(t, w, by_from) != G_MAXUINT)
            first[place_of(t, w, by_from) + 1]++;
    for (guint d = 0; d <= t->n_devices; d++)
        first[d + 1] += first[d];
    next = g_memdup2(first, (t->n_devices + 1) * sizeof *first);
    for (guint w = 0; w < t->wires->len; w++)
        if (place_of(t, w, by_from) != G_MAXUINT)
            sorted[next[place_of(t, w, by_from)]++] = w;
}

static void
graph_init(Graph *g, const TtTemplate *t)
{
    guint n = t->wires->len;

    g->t = t;
    g->wire = (const TtWire *)(void *)t->wires->data;
    g->cost_ps = g_new(gint64, n + 1);
    for (guint w = 0; w < n; w++) {
        TtTime move_ps = tt_transfer_ps(REFERENCE_BYTES, g->wire[w].capacity_bytes_per_s);

        g->cost_ps[w] = g->wire[w].latency_ps + MAX(1, move_ps); /* never 0: no cycles */
    }
    g->out_first = g_new0(guint, t->n_devices + 2);
    g->in_first = g_new0(guint, t->n_devices + 2);
    g->out_wire = g_new(guint16, n + 1);
    g->in_wire = g_new(guint16, n + 1);
    g->dist_ps = g_new(gint64, t->n_devices + 1);
    g->done = g_new(gboolean, t->n_devices + 1);
    sort_wires(t, TRUE, g->out_first, g->out_wire);
    sort_wires(t, FALSE, g->in_first, g->in_wire);
}

static void
graph_clear(Graph *g)
{
    g_free(g->cost_ps);
    g_free(g->out_first);
    g_free(g->in_first);
    g_free(g->out_wire);
    g_free(g->in_wire);
    g_free(g->dist_ps);
    g_free(g->done);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Graph, graph_clear)

static void
relax(Graph *g, guint device)
{
    for (guint i = g->out_first[device]; i < g->out_first[device + 1]; i++) {
        guint16 w = g->out_wire[i];
        guint to = g->wire[w].to;

        g->dist_ps[to] = MIN(g->dist_ps[to], g->dist_ps[device] + g->cost_ps[w]);
    }
}

/* Distances from @src to every device. O(forwarding devices squared + wires). */
static void
search(Graph *g, guint src)
{
    const TtTemplate *t = g->t;
    guint begin = t->first[TT_DEVICE_CPU], end = t->first[TT_DEVICE_NIC];

    for (guint d = 0; d <= t->n_devices; d++) {
        g->dist_ps[d] = UNREACHABLE;
        g->done[d] = FALSE;
    }
    g->dist_ps[src] = 0;
    relax(g, src);
    for (;;) {
        guint next = end;

        for (guint d = begin; d < end; d++)
            if (!g->done[d] && g->dist_ps[d] != UNREACHABLE &&
                (next == end || g->dist_ps[d] < g->dist_ps[next]))
                next = d;
        if (next == end)
            return;
        g->done[next] = TRUE;
        relax(g, next);
    }
}

/* The wires by which a shortest way from @src enters @at; returns how many, 1 at least. */
static guint
last_steps(const Graph *g, guint src, guint at, guint16 *best, guint max)
{
    guint n = 0;

    for (guint i = g->out_first[src]; i < g->out_first[src + 1] && n < max; i++) {
        guint16 w = g->out_wire[i];

        if (g->wire[w].to == at && g->cost_ps[w] == g->dist_ps[at])
            best[n++] = w;
    }
    for (guint i = g->in_first[at]; i < g->in_first[at + 1] && n < max; i++) {
        guint16 w = g->in_wire[i];
        guint from = g->wire[w].from;

        if (g->dist_ps[from] != UNREACHABLE && g->dist_ps[from] + g->cost_ps[w] == g->dist_ps[at])
            best[n++] = w;
    }
    g_assert(n > 0);
    return n;
}

/* Writes the way from the search's @src to @dst. n is NO_WAY if there is none within TT_MAX_WAY. */
static void
trace(const Graph *g, guint src, guint dst, TtWay *way)
{
    guint16 backwards[TT_MAX_WAY];
    guint n = 0;

    way->n = NO_WAY;
    if (g->dist_ps[dst] == UNREACHABLE)
        return;
    for (guint at = dst; at != src; at = g->wire[backwards[n - 1]].from) {
        guint16 best[64];
        guint n_best;

        if (n == TT_MAX_WAY)
            return;
        n_best = last_steps(g, src, at, best, G_N_ELEMENTS(best));
        backwards[n++] = best[(src + dst) % n_best];
    }
    for (guint i = 0; i < n; i++)
        way->wire[i] = backwards[n - 1 - i];
    way->n = n;
}

static gint64
way_cost_ps(const Graph *g, const TtWay *way)
{
    gint64 sum = 0;

    if (way->n == NO_WAY)
        return UNREACHABLE;
    for (guint i = 0; i < way->n; i++)
        sum += g->cost_ps[way->wire[i]];
    return sum;
}

static gboolean
passes_cpu(const Graph *g, const TtWay *way)
{
    for (guint i = 0; i < way->n; i++)
        if (tt_template_kind_of(g->t, g->wire[way->wire[i]].to) == TT_DEVICE_CPU)
            return TRUE;
    return FALSE;
}

static gboolean
all_nvlink(const Graph *g, const TtWay *way)
{
    for (guint i = 0; i < way->n; i++) {
        guint16 bundle = g->wire[way->wire[i]].bundle;

        if (strcmp(g_array_index(g->t->bundles, TtBundle, bundle).kind, "nvlink") != 0)
            return FALSE;
    }
    return way->n > 0 && way->n != NO_WAY;
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
ways_of_ranks(Graph *g, TtTemplate *t)
{
    for (guint r = 0; r < t->n_ranks; r++) {
        search(g, r);
        for (guint s = 0; s < t->n_ranks; s++)
            trace(g, r, s, &t->local[r * t->n_ranks + s]);
        for (guint nic = 0; nic < t->n_nics; nic++) {
            TtWay *way = &t->out[r * t->n_nics + nic];

            trace(g, r, t->first[TT_DEVICE_NIC] + nic, way);
            if (way->n >= TT_MAX_WAY)
                way->n = NO_WAY;
            else
                way->wire[way->n++] = cable_of(t, nic);
        }
    }
}

static void
ways_of_nics(Graph *g, TtTemplate *t)
{
    for (guint nic = 0; nic < t->n_nics; nic++) {
        search(g, t->first[TT_DEVICE_NIC] + nic);
        for (guint r = 0; r < t->n_ranks; r++) {
            TtWay *way = &t->in[nic * t->n_ranks + r], inside;

            trace(g, t->first[TT_DEVICE_NIC] + nic, r, &inside);
            way->n = inside.n >= TT_MAX_WAY ? NO_WAY : inside.n + 1;
            if (way->n == NO_WAY)
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
try_peers(const Graph *g, const TtTemplate *t, guint rank, guint nic, const TtWay *direct,
          const guint8 *near, TtWay *out)
{
    gint64 direct_ps = way_cost_ps(g, &direct[rank * t->n_nics + nic]), best_ps = direct_ps;
    guint best[TT_MAX_RANKS_PER_NODE], n_best = 0;

    for (guint peer = 0; peer < t->n_ranks; peer++) {
        const TtWay *across = &t->local[rank * t->n_ranks + peer];
        const TtWay *rest = &direct[peer * t->n_nics + nic];
        gint64 cost_ps;

        if (peer == rank || !near[peer * t->n_nics + nic] || across->n + rest->n > TT_MAX_WAY ||
            !all_nvlink(g, across))
            continue;
        cost_ps = way_cost_ps(g, across) + way_cost_ps(g, rest);
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
ways_through_peers(Graph *g, TtTemplate *t)
{
    gsize n = (gsize)t->n_ranks * t->n_nics;
    g_autofree TtWay *direct = g_memdup2(t->out, n * sizeof *t->out);
    g_autofree guint8 *near = g_new(guint8, n);

    for (gsize i = 0; i < n; i++)
        near[i] = direct[i].n != NO_WAY && !passes_cpu(g, &direct[i]);
    for (guint r = 0; r < t->n_ranks; r++) {
        for (guint nic = 0; nic < t->n_nics; nic++) {
            TtWay *way = &t->out[r * t->n_nics + nic];

            if (t->pxn)
                try_peers(g, t, r, nic, direct, near, way);
            t->on_rail[r * t->n_nics + nic] = way->n != NO_WAY && !passes_cpu(g, way);
        }
    }
}

/* Bit n: NIC n is as close to @rank as any. */
static guint64
closest_nics(const Graph *g, const TtTemplate *t, guint rank)
{
    gint64 best_ps = UNREACHABLE;
    guint64 set = 0;

    for (guint nic = 0; nic < t->n_nics; nic++) {
        gint64 cost_ps = way_cost_ps(g, &t->out[rank * t->n_nics + nic]);

        if (cost_ps < best_ps) {
            best_ps = cost_ps;
            set = 0;
        }
        if (cost_ps == best_ps && cost_ps != UNREACHABLE)
            set |= (guint64)1 << nic;
    }
    return set;
}

static guint
count_bits(guint64 set)
{
    return __builtin_popcountll(set);
}

/* The @i-th NIC of a set. */
static guint8
nth_nic(guint64 set, guint i)
{
    while (i-- > 0)
        set &= set - 1;
    return __builtin_ctzll(set);
}

/* Ranks equally close to the same NICs divide them among themselves. */
static void
share_nics(const Graph *g, TtTemplate *t)
{
    g_autofree guint64 *closest = g_new(guint64, t->n_ranks);
    g_autofree guint *place = g_new0(guint, t->n_ranks), *sharers = g_new0(guint, t->n_ranks);

    for (guint r = 0; r < t->n_ranks; r++)
        closest[r] = closest_nics(g, t, r);
    t->n_own = t->n_nics;
    for (guint r = 0; r < t->n_ranks; r++) {
        for (guint s = 0; s < t->n_ranks; s++) {
            sharers[r] += closest[s] == closest[r];
            place[r] += s < r && closest[s] == closest[r];
        }
        t->n_own = MIN(t->n_own, MAX(1, count_bits(closest[r]) / sharers[r]));
    }
    t->own = g_new0(guint8, t->n_ranks * t->n_own);
    for (guint r = 0; r < t->n_ranks; r++) {
        guint n = count_bits(closest[r]), each = MAX(1, n / sharers[r]);

        for (guint i = 0; n && i < t->n_own; i++)
            t->own[r * t->n_own + i] = nth_nic(closest[r], (place[r] * each + i) % n);
    }
}

/* --- all of it ---------------------------------------------------------------------------------
 */

static gboolean
check_local(const TtTemplate *t, const TtKeys *keys, GError **error)
{
    for (guint r = 0; r < t->n_ranks; r++) {
        for (guint s = 0; s < t->n_ranks; s++) {
            if (t->local[r * t->n_ranks + s].n != NO_WAY)
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

        if (t->out[r * t->n_nics + nic].n == NO_WAY || t->in[nic * t->n_ranks + r].n == NO_WAY) {
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
    g_auto(Graph) g = { 0 };
    gsize n_pairs = (gsize)t->n_ranks * t->n_ranks, n_ports = (gsize)t->n_ranks * t->n_nics;

    graph_init(&g, t);
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
