/* rail - rail-optimised: NIC i of every node on the leaves of rail i.
 *
 *              spine 0     spine 1    ...               leaf_spine.h: every leaf, every spine
 *     rail 0               rail 1
 *     leaf 0   leaf 1      leaf 0   leaf 1
 *      |  |     |  |        |  |     |  |
 *      0  1     2  3        0  1     2  3               nodes; nodes-per-leaf = 2
 *
 * A sender leaves through the NIC on its receiver's rail where its node offers a way there, over
 * NVLink and the GPU next to that NIC (NCCL's PXN); then two nodes of one leaf are one switch apart
 * whatever the ranks. Without such a way the route leaves by the sender's own NIC and changes rails
 * in the spine. NVIDIA DGX SuperPOD reference architectures; NVIDIA blog "Doubling all2all
 * performance with NCCL 2.12".
 */
#include "topologies/leaf_spine.h"

static gboolean
rail_init(TtNetwork *network, TtKeys *keys, GError **error)
{
    if (!tt_leaf_spine_nodes_per_leaf(network, keys, error))
        return FALSE;

    guint leaves_per_rail = (network->n_nodes - 1) / network->nodes_per_leaf + 1;

    return tt_leaf_spine_init(network, network->n_nics * leaves_per_rail, network->nodes_per_leaf,
                              keys, error);
}

static guint
leaf_of(const TtNetwork *network, TtPort port)
{
    return port.node / network->nodes_per_leaf * network->n_nics + port.nic;
}

static guint
rail_route(const TtNetwork *network, TtPort src, TtPort dst, guint32 *links)
{
    /* The destination's number within its leaf spreads a rail over all spines. */
    return tt_leaf_spine_route(network, leaf_of(network, src), leaf_of(network, dst), dst.node,
                               links);
}

static char *
leaf_name(const TtNetwork *network, guint leaf)
{
    return g_strdup_printf("rail %u leaf %u", leaf % network->n_nics, leaf / network->n_nics);
}

static char *
rail_link_name(const TtNetwork *network, guint32 link)
{
    g_autofree char *leaf = leaf_name(network, tt_leaf_spine_leaf_of(network, link));

    return tt_leaf_spine_link_name(network, link, leaf);
}

static char *
rail_switch_name(const TtNetwork *network, TtPort port)
{
    return leaf_name(network, leaf_of(network, port));
}

const TtFabric tt_fabric_rail = {
    .name = "rail",
    .summary = "rail-optimised: NIC i of every node on the leaves of rail i, spines above",
    .keys = tt_leaf_spine_keys,
    .keeps_rail = TRUE,
    .init = rail_init,
    .route = rail_route,
    .capacity_bytes_per_s = tt_leaf_spine_capacity,
    .pod_bytes_per_s = tt_leaf_spine_pod_capacity,
    .link_name = rail_link_name,
    .switch_name = rail_switch_name,
};
