/* fat-tree - two levels of switches; all NICs of a node on one leaf.
 *
 *        spine 0   spine 1   ...
 *          |  \    /  |               leaf_spine.h
 *        leaf 0    leaf 1
 *        |    |    |    |
 *     node 0  1    2    3             nodes-per-leaf = 2; each line stands for all NICs of the node
 *
 * Within a leaf a route is NIC, leaf, NIC; else NIC, leaf, spine, leaf, NIC. Source and destination
 * NIC are the ranks' own.
 */
#include "topologies/leaf_spine.h"

static gboolean
fat_tree_init(TtNetwork *network, TtKeys *keys, GError **error)
{
    if (!tt_leaf_spine_nodes_per_leaf(network, keys, error))
        return FALSE;

    guint n_leaves = (network->n_nodes - 1) / network->nodes_per_leaf + 1;

    return tt_leaf_spine_init(network, n_leaves, network->nodes_per_leaf * network->n_nics, keys,
                              error);
}

static guint
fat_tree_route(const TtNetwork *network, TtPort src, TtPort dst, guint32 *links)
{
    return tt_leaf_spine_route(network, src.node / network->nodes_per_leaf,
                               dst.node / network->nodes_per_leaf,
                               dst.node * network->n_nics + dst.nic, links);
}

static char *
fat_tree_link_name(const TtNetwork *network, guint32 link)
{
    g_autofree char *leaf = g_strdup_printf("leaf %u", tt_leaf_spine_leaf_of(network, link));

    return tt_leaf_spine_link_name(network, link, leaf);
}

static char *
fat_tree_switch_name(const TtNetwork *network, TtPort port)
{
    return g_strdup_printf("leaf %u", port.node / network->nodes_per_leaf);
}

const TtFabric tt_fabric_fat_tree = {
    .name = "fat-tree",
    .summary = "two levels, leaf and spine; all NICs of a node on one leaf",
    .keys = tt_leaf_spine_keys,
    .init = fat_tree_init,
    .route = fat_tree_route,
    .capacity_bytes_per_s = tt_leaf_spine_capacity,
    .pod_bytes_per_s = tt_leaf_spine_pod_capacity,
    .link_name = fat_tree_link_name,
    .switch_name = fat_tree_switch_name,
};
