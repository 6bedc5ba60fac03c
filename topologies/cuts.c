/* cuts - what ranks and nodes can send and take at most, for lower bounds. */
#include "topologies/graph.h"
#include "topologies/topology_private.h"

#include <string.h>

static void
mark(guint8 *used, const TtWay *way, gboolean first)
{
    if (way->n > 0)
        used[way->wire[first ? 0 : way->n - 1]] = TRUE;
}

static double
sum_used(const TtTemplate *t, const guint8 *used)
{
    double sum = 0;

    for (guint w = 0; w < t->wires->len; w++)
        if (used[w])
            sum += g_array_index(t->wires, TtWire, w).capacity_bytes_per_s;
    return sum;
}

/* May data of place @r leave through @nic on any route? @any_nic: by whatever NICs are asked for. */
static gboolean
leaves_through(const TtTopology *topo, gboolean any_nic, guint r, guint nic)
{
    const TtTemplate *t = topo->node;

    if (any_nic)
        return t->out[r * t->n_nics + nic].n != TT_NO_WAY;
    if (topo->network.fabric->keeps_rail && t->on_rail[r * t->n_nics + nic] &&
        memchr(t->own, nic, t->n_ranks * t->n_own))
        return TRUE; /* it is somebody's rail */
    return memchr(t->own + r * t->n_own, nic, t->n_own) != NULL;
}

/* May data for place @r enter through @nic? */
static gboolean
enters_through(const TtTopology *topo, gboolean any_nic, guint r, guint nic)
{
    const TtTemplate *t = topo->node;

    if (any_nic)
        return t->in[nic * t->n_ranks + r].n != TT_NO_WAY;
    return memchr(t->own + r * t->n_own, nic, t->n_own) != NULL;
}

/* A rank's share in the cut around it: the first (last) wires of all its routes. Wires no route
 * uses do not count, so the bound is as tight as static routes allow. */
static void
sum_rank_cuts(const TtTopology *topo, gboolean any_nic, TtCuts *cuts)
{
    const TtTemplate *t = topo->node;
    guint R = t->n_ranks, n_nics = topo->n_nodes > 1 ? t->n_nics : 0;
    g_autofree guint8 *out = g_new(guint8, t->wires->len + 1),
                      *in = g_new(guint8, t->wires->len + 1);

    cuts->rank_out_bytes_per_s = g_new(double, R);
    cuts->rank_in_bytes_per_s = g_new(double, R);
    for (guint r = 0; r < R; r++) {
        memset(out, 0, t->wires->len);
        memset(in, 0, t->wires->len);
        for (guint s = 0; s < R; s++) {
            mark(out, &t->local[r * R + s], TRUE);
            mark(in, &t->local[s * R + r], FALSE);
        }
        for (guint nic = 0; nic < n_nics; nic++) {
            if (leaves_through(topo, any_nic, r, nic))
                mark(out, &t->out[r * n_nics + nic], TRUE);
            if (enters_through(topo, any_nic, r, nic))
                mark(in, &t->in[nic * R + r], FALSE);
        }
        cuts->rank_out_bytes_per_s[r] = sum_used(t, out);
        cuts->rank_in_bytes_per_s[r] = sum_used(t, in);
    }
}

/* Through one NIC: its cable, or the wires between it and the node where those are slower. */
static double
nic_cut(const TtTemplate *t, guint nic, gboolean out)
{
    guint device = t->first[TT_DEVICE_NIC] + nic;
    double inside = 0, cable = 0;

    for (guint w = 0; w < t->wires->len; w++) {
        const TtWire *wire = &g_array_index(t->wires, TtWire, w);

        if ((out ? wire->to : wire->from) == device &&
            (out ? wire->from : wire->to) != t->n_devices)
            inside += wire->capacity_bytes_per_s;
        if ((out ? wire->from : wire->to) == device &&
            (out ? wire->to : wire->from) == t->n_devices)
            cable = wire->capacity_bytes_per_s;
    }
    return MIN(inside, cable);
}

/* NICs no route uses do not count. */
static void
sum_node_cuts(const TtTopology *topo, gboolean any_nic, TtCuts *cuts)
{
    const TtTemplate *t = topo->node;

    for (guint nic = 0; topo->n_nodes > 1 && nic < t->n_nics; nic++) {
        gboolean leaves = FALSE, enters = FALSE;

        for (guint r = 0; r < t->n_ranks; r++) {
            leaves |= leaves_through(topo, any_nic, r, nic);
            enters |= enters_through(topo, any_nic, r, nic);
        }
        cuts->node_out_bytes_per_s += leaves ? nic_cut(t, nic, TRUE) : 0;
        cuts->node_in_bytes_per_s += enters ? nic_cut(t, nic, FALSE) : 0;
    }
}

void
tt_topology_sum_cuts(TtTopology *topo)
{
    sum_rank_cuts(topo, FALSE, &topo->own_nics);
    sum_node_cuts(topo, FALSE, &topo->own_nics);
    sum_rank_cuts(topo, TRUE, &topo->any_nic);
    sum_node_cuts(topo, TRUE, &topo->any_nic);
}

static void
cuts_clear(TtCuts *cuts)
{
    g_free(cuts->rank_out_bytes_per_s);
    g_free(cuts->rank_in_bytes_per_s);
}

void
tt_topology_free_cuts(TtTopology *topo)
{
    cuts_clear(&topo->own_nics);
    cuts_clear(&topo->any_nic);
}

double
tt_topology_rank_out_bytes_per_s(const TtTopology *topo, guint rank)
{
    return topo->own_nics.rank_out_bytes_per_s[rank % topo->node->n_ranks];
}

double
tt_topology_rank_in_bytes_per_s(const TtTopology *topo, guint rank)
{
    return topo->own_nics.rank_in_bytes_per_s[rank % topo->node->n_ranks];
}

double
tt_topology_node_out_bytes_per_s(const TtTopology *topo, guint node)
{
    (void)node;
    return topo->own_nics.node_out_bytes_per_s;
}

double
tt_topology_node_in_bytes_per_s(const TtTopology *topo, guint node)
{
    (void)node;
    return topo->own_nics.node_in_bytes_per_s;
}

double
tt_topology_any_nic_rank_out_bytes_per_s(const TtTopology *topo, guint rank)
{
    return topo->any_nic.rank_out_bytes_per_s[rank % topo->node->n_ranks];
}

double
tt_topology_any_nic_rank_in_bytes_per_s(const TtTopology *topo, guint rank)
{
    return topo->any_nic.rank_in_bytes_per_s[rank % topo->node->n_ranks];
}

double
tt_topology_any_nic_node_out_bytes_per_s(const TtTopology *topo, guint node)
{
    (void)node;
    return topo->any_nic.node_out_bytes_per_s;
}

double
tt_topology_any_nic_node_in_bytes_per_s(const TtTopology *topo, guint node)
{
    (void)node;
    return topo->any_nic.node_in_bytes_per_s;
}
