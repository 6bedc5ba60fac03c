/* single-switch - every NIC on one switch big enough for all of them.
 *
 *     node 0     node 1     node 2
 *      | |        | |        | |       a cable per NIC, both directions
 *     [          switch         ]      carries all its ports at full rate
 *
 * Contention is at the cables alone. Source NIC and destination NIC are the ranks' own.
 */
#include "topologies/fabric.h"

static const char *const no_keys[] = { NULL };

static gboolean
single_switch_init(TtNetwork *network, TtKeys *keys, GError **error)
{
    (void)keys, (void)error;
    network->n_links = 0;
    return TRUE;
}

static guint
single_switch_route(const TtNetwork *network, TtPort src, TtPort dst, guint32 *links)
{
    (void)network, (void)src, (void)dst, (void)links;
    return 0;
}

static double
single_switch_capacity(const TtNetwork *network, guint32 link)
{
    (void)network, (void)link;
    g_assert_not_reached();
}

static char *
single_switch_link_name(const TtNetwork *network, guint32 link)
{
    (void)network, (void)link;
    g_assert_not_reached();
}

static char *
single_switch_switch_name(const TtNetwork *network, TtPort port)
{
    (void)network, (void)port;
    return g_strdup("switch");
}

const TtFabric tt_fabric_single_switch = {
    .name = "single-switch",
    .summary = "every NIC on one switch",
    .keys = no_keys,
    .init = single_switch_init,
    .route = single_switch_route,
    .capacity_bytes_per_s = single_switch_capacity,
    .link_name = single_switch_link_name,
    .switch_name = single_switch_switch_name,
};
