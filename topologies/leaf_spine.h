/* leaf_spine.h - the two-level fat tree that several fabrics share: every leaf has a link to every
 * spine.
 *
 *        spine 0      spine 1     ...      S of them
 *          | \  ______/ |
 *          |  \/        |                  one link per leaf and spine, both directions, of
 *          |  /\        |                  (ports below * port rate) / (oversubscription * S)
 *        leaf 0       leaf 1
 *        | | | |      | | | |              the NICs' cables
 *
 * Leiserson, IEEE Trans. Computers C-34(10), 1985. The spine of a route is the destination port's
 * number modulo S (D-mod-k: Zahavi, "D-Mod-K Routing Providing Non-Blocking Traffic for Shift
 * Permutations on Real Life Fat Trees", 2010), so ports next to each other come down over different
 * spines.
 *
 * Links: 2 * (leaf * S + spine) goes up, the next one down.
 */
#pragma once
#include "topologies/fabric.h"

extern const char *const tt_leaf_spine_keys[];

/* Reads the keys; @ports_below: NICs on a full leaf. A single leaf has no spine. */
gboolean tt_leaf_spine_init(TtNetwork *network, guint n_leaves, guint ports_below, TtKeys *keys,
                            GError **error);

/* The two links from @leaf_src to @leaf_dst towards port number @port; none within one leaf. */
static inline guint
tt_leaf_spine_route(const TtNetwork *network, guint leaf_src, guint leaf_dst, guint port,
                    guint32 *links)
{
    guint spine;

    if (leaf_src == leaf_dst)
        return 0;
    spine = port % network->n_spines;
    links[0] = 2 * (leaf_src * network->n_spines + spine);
    links[1] = 2 * (leaf_dst * network->n_spines + spine) + 1;
    return 2;
}

double tt_leaf_spine_capacity(const TtNetwork *network, guint32 link);

/* All links between the spines and the leaves of one pod, one direction. A pod with fewer nodes has
 * as many. */
double tt_leaf_spine_pod_capacity(const TtNetwork *network);

/* "leaf 1 -> spine 0", given what @leaf is called. */
char *tt_leaf_spine_link_name(const TtNetwork *network, guint32 link, const char *leaf);
guint tt_leaf_spine_leaf_of(const TtNetwork *network, guint32 link);

/* Nodes on a leaf, read from the keys; all of them if the key is absent. */
gboolean tt_leaf_spine_nodes_per_leaf(TtNetwork *network, TtKeys *keys, GError **error);
