/* build - a topology from its keys: node, fabric, what ranks and nodes can send and take at most,
 * and which keys turned out to change nothing.
 */
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

static gboolean
join_nodes(TtTopology *topo, GError **error)
{
    const TtTemplate *t = topo->node;
    guint64 n_links;

    topo->links_per_node = t->wires->len;
    /* One node alone has no use for [fabric], but what stands there is read and checked. */
    if (t->n_nics > 0 && (topo->n_nodes > 1 || tt_keys_has_section(topo->keys, "fabric"))) {
        topo->network.n_nodes = topo->n_nodes;
        topo->network.n_nics = t->n_nics;
        topo->network.nic_bytes_per_s =
            g_array_index(t->bundles, TtBundle, t->bundles->len - 1).capacity_bytes_per_s;
        if (!tt_network_init(&topo->network, topo->keys, error))
            return FALSE;
        if (topo->n_nodes == 1)
            topo->network.n_links = 0;
    }
    n_links = (guint64)topo->n_nodes * topo->links_per_node + topo->network.n_links;
    if (n_links >= TT_NO_LINK || (guint64)topo->n_nodes * t->n_ranks > G_MAXINT32) {
        g_set_error(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_USAGE,
                    "%s: %u nodes are too many (2^31 ranks and 2^32 links at most)", topo->name,
                    topo->n_nodes);
        return FALSE;
    }
    topo->n_links = (guint32)n_links;
    return TRUE;
}

/* Does any route leave its leaf? With rails kept inside the nodes one needs more nodes than a leaf
 * has. */
static gboolean
crosses_spine(const TtTopology *topo)
{
    const TtTemplate *t = topo->node;
    const TtNetwork *network = &topo->network;

    if (network->n_links == 0)
        return FALSE;
    return topo->n_nodes > network->nodes_per_leaf || !network->fabric->keeps_rail ||
           memchr(t->on_rail, FALSE, t->n_ranks * t->n_nics) != NULL;
}

/* Why what this key says changes nothing here; NULL if it does. */
static const char *
why_unused(const TtTopology *topo, const TtKey *key)
{
    static const char *const of_spines[] = { "oversubscription", "spines", "bandwidth", NULL };
    gboolean in_fabric = strcmp(key->section, "fabric") == 0;

    if (!key->used)
        return "nothing uses it";
    if (key->line > 0) /* files may well be made for more nodes than are asked for now */
        return NULL;
    if (topo->n_nodes == 1 && (in_fabric || strcmp(key->section, "nic") == 0))
        return "nothing uses it: there is only one node";
    if (in_fabric && g_strv_contains(of_spines, key->key) && !crosses_spine(topo))
        return "nothing uses it: no route crosses a spine, the nodes fit under one leaf";
    return NULL;
}

static char **
unused_keys(const TtTopology *topo)
{
    GPtrArray *warnings = g_ptr_array_new();

    for (guint i = 0; i < tt_keys_n(topo->keys); i++) {
        const TtKey *key = tt_keys_nth(topo->keys, i);
        const char *why = why_unused(topo, key);

        if (why)
            g_ptr_array_add(warnings, g_strdup_printf("%s%s.%s = %s: %s", key->line ? "" : "--set ",
                                                      key->section, key->key, key->value, why));
    }
    g_ptr_array_add(warnings, NULL);
    return (char **)g_ptr_array_free(warnings, FALSE);
}

TtTopology *
tt_topology_new(TtKeys *keys, const char *name, guint n_nodes, GError **error)
{
    g_autoptr(TtTopology) topo = g_new0(TtTopology, 1);
    const char *description = "";

    topo->keys = keys;
    topo->name = g_strdup(name);
    topo->n_nodes = n_nodes;
    if (!tt_keys_text(keys, "topology", "description", FALSE, &description, error))
        return NULL;
    topo->description = g_strdup(description);
    topo->node = tt_template_new(keys, error);
    if (!topo->node || !tt_template_find_ways(topo->node, n_nodes > 1, keys, error) ||
        !join_nodes(topo, error))
        return NULL;
    sum_rank_cuts(topo, FALSE, &topo->own_nics);
    sum_node_cuts(topo, FALSE, &topo->own_nics);
    sum_rank_cuts(topo, TRUE, &topo->any_nic);
    sum_node_cuts(topo, TRUE, &topo->any_nic);
    topo->warnings = unused_keys(topo);
    return g_steal_pointer(&topo);
}
