#include "topologies/graph.h"

#include <string.h>

#define REFERENCE_BYTES (1u << 20)

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
    next = g_new(guint, t->n_devices + 1);
    memcpy(next, first, (t->n_devices + 1) * sizeof *first);
    for (guint w = 0; w < t->wires->len; w++)
        if (place_of(t, w, by_from) != G_MAXUINT)
            sorted[next[place_of(t, w, by_from)]++] = w;
}

/* A degraded cable is chosen as if it were whole, for the system does not know. */
static double
believed_bytes_per_s(const TtTemplate *t, guint w)
{
    const TtWire *wire = &g_array_index(t->wires, TtWire, w);
    const TtBundle *b = &g_array_index(t->bundles, TtBundle, wire->bundle);
    guint first_cable = t->wires->len - 2 * t->n_nics;

    if (w < first_cable)
        return wire->capacity_bytes_per_s;
    return b->capacity_bytes_per_s *
           (t->nic_reported_bytes_per_s[(w - first_cable) / 2] / b->bytes_per_s);
}

void
tt_graph_init(TtGraph *g, const TtTemplate *t)
{
    guint n = t->wires->len;

    g->t = t;
    g->wire = (const TtWire *)(void *)t->wires->data;
    g->cost_ps = g_new(gint64, n + 1);
    for (guint w = 0; w < n; w++) {
        TtTime move_ps = tt_transfer_ps(REFERENCE_BYTES, believed_bytes_per_s(t, w));

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

void
tt_graph_clear(TtGraph *g)
{
    g_free(g->cost_ps);
    g_free(g->out_first);
    g_free(g->in_first);
    g_free(g->out_wire);
    g_free(g->in_wire);
    g_free(g->dist_ps);
    g_free(g->done);
}

static void
relax(TtGraph *g, guint device)
{
    for (guint i = g->out_first[device]; i < g->out_first[device + 1]; i++) {
        guint16 w = g->out_wire[i];
        guint to = g->wire[w].to;

        g->dist_ps[to] = MIN(g->dist_ps[to], g->dist_ps[device] + g->cost_ps[w]);
    }
}

void
tt_graph_search(TtGraph *g, guint src)
{
    const TtTemplate *t = g->t;
    guint begin = t->first[TT_DEVICE_CPU], end = t->first[TT_DEVICE_NIC];

    for (guint d = 0; d <= t->n_devices; d++) {
        g->dist_ps[d] = TT_UNREACHABLE;
        g->done[d] = FALSE;
    }
    g->dist_ps[src] = 0;
    relax(g, src);
    for (;;) {
        guint next = end;

        for (guint d = begin; d < end; d++)
            if (!g->done[d] && g->dist_ps[d] != TT_UNREACHABLE &&
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
last_steps(const TtGraph *g, guint src, guint at, guint16 *best, guint max)
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

        if (g->dist_ps[from] != TT_UNREACHABLE &&
            g->dist_ps[from] + g->cost_ps[w] == g->dist_ps[at])
            best[n++] = w;
    }
    g_assert(n > 0);
    return n;
}

void
tt_graph_trace(const TtGraph *g, guint src, guint dst, TtWay *way)
{
    guint16 backwards[TT_MAX_WAY];
    guint n = 0;

    way->n = TT_NO_WAY;
    if (g->dist_ps[dst] == TT_UNREACHABLE)
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

gint64
tt_graph_cost_ps(const TtGraph *g, const TtWay *way)
{
    gint64 sum = 0;

    if (way->n == TT_NO_WAY)
        return TT_UNREACHABLE;
    for (guint i = 0; i < way->n; i++)
        sum += g->cost_ps[way->wire[i]];
    return sum;
}
