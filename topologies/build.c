/* build - a topology from its keys: node, fabric, and which keys turned out to change nothing. */
#include "topologies/topology_private.h"

#include <string.h>

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
    tt_topology_sum_cuts(topo);
    topo->warnings = unused_keys(topo);
    return g_steal_pointer(&topo);
}
