#include "topologies/leaf_spine.h"

#include <math.h>

const char *const tt_leaf_spine_keys[] = { "nodes-per-leaf", "oversubscription", "spines",
                                           "bandwidth", NULL };

#define MAX_SPINES 65536u

gboolean
tt_leaf_spine_nodes_per_leaf(TtNetwork *network, TtKeys *keys, GError **error)
{
    network->nodes_per_leaf = network->n_nodes;
    return tt_keys_count(keys, "fabric", "nodes-per-leaf", FALSE, 1, 1000000,
                         &network->nodes_per_leaf, error);
}

gboolean
tt_leaf_spine_init(TtNetwork *network, guint n_leaves, guint ports_below, TtKeys *keys,
                   GError **error)
{
    double below_bytes_per_s = network->nic_bytes_per_s * ports_below;
    double cable_bytes_per_s = network->nic_bytes_per_s;
    guint64 n_links;

    network->oversubscription = 1;
    network->n_leaves = n_leaves;
    if (!tt_keys_ratio(keys, "fabric", "oversubscription", FALSE, &network->oversubscription,
                       error) ||
        !tt_keys_rate(keys, "fabric", "bandwidth", FALSE, &cable_bytes_per_s, error))
        return FALSE;

    /* As many spines as cables of this rate are needed; what does not come out even goes into the
     * rate of the links, so that the leaf's total is exact. */
    double up_bytes_per_s = below_bytes_per_s / network->oversubscription;

    network->n_spines = (guint)CLAMP(round(up_bytes_per_s / cable_bytes_per_s), 1, MAX_SPINES);
    if (!tt_keys_count(keys, "fabric", "spines", FALSE, 1, MAX_SPINES, &network->n_spines, error))
        return FALSE;
    network->spine_bytes_per_s = up_bytes_per_s / network->n_spines;
    n_links = n_leaves > 1 ? (guint64)2 * n_leaves * network->n_spines : 0;
    if (n_links >= G_MAXINT32) {
        g_set_error(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_USAGE,
                    "[fabric]: %u leaves with %u spines are too many links (2^31 at most)",
                    n_leaves, network->n_spines);
        return FALSE;
    }
    network->n_links = (guint32)n_links;
    return TRUE;
}

double
tt_leaf_spine_capacity(const TtNetwork *network, guint32 link)
{
    (void)link;
    return network->spine_bytes_per_s;
}

double
tt_leaf_spine_pod_capacity(const TtNetwork *network)
{
    guint n_pods = (network->n_nodes - 1) / network->nodes_per_leaf + 1;
    guint leaves_per_pod = network->n_leaves / n_pods; /* one, or one for each rail */

    return (double)leaves_per_pod * network->n_spines * network->spine_bytes_per_s;
}

guint
tt_leaf_spine_leaf_of(const TtNetwork *network, guint32 link)
{
    return link / 2 / network->n_spines;
}

char *
tt_leaf_spine_link_name(const TtNetwork *network, guint32 link, const char *leaf)
{
    guint spine = link / 2 % network->n_spines;

    return link % 2 ? g_strdup_printf("spine %u -> %s", spine, leaf)
                    : g_strdup_printf("%s -> spine %u", leaf, spine);
}
