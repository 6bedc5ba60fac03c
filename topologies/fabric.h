/* fabric.h - what lies between the NICs of the nodes. A fabric is one file
 * topologies/fabric_<name>.c that defines one const struct; the build lists them.
 *
 * A NIC's cable belongs to its node (template.h); a fabric owns the links between switches and
 * computes them from node and NIC numbers, so that nothing grows with the number of nodes. A
 * switch's latency stands on the link that leaves it.
 *
 * Knows nothing of what is inside a node.
 */
#pragma once
#include "topologies/keys.h"

typedef struct TtFabric TtFabric;

/* Sizes and constants of one fabric; open, because each fabric computes its own. */
typedef struct {
    const TtFabric *fabric;
    guint n_nodes, n_nics;  /* NICs per node */
    double nic_bytes_per_s; /* of one cable, one direction */
    char *kind;             /* TtLinkInfo.kind of its links; owned */
    TtTime hop_ps;          /* through one switch and down the cable behind it */
    double burst_bytes;     /* of links between switches: TtLinkInfo.burst_bytes */
    guint32 n_links;        /* between switches */
    guint nodes_per_leaf, n_leaves, n_spines;
    double spine_bytes_per_s; /* of one leaf-spine link, one direction */
    double oversubscription;  /* what enters the leaves from below over what leaves them upwards */
} TtNetwork;

typedef struct {
    guint node, nic;
} TtPort;

struct TtFabric {
    const char *name;        /* "fat-tree": [fabric] type */
    const char *summary;     /* one line */
    const char *const *keys; /* of [fabric] it uses beside type and latency; NULL-terminated */

    /* A sender leaves through the NIC with the receiver's number when its node offers a way to it.
     */
    gboolean keeps_rail;

    /* Reads its keys and sets n_links and what else it needs. */
    gboolean (*init)(TtNetwork *network, TtKeys *keys, GError **error);

    /* Writes the links between the switches of @src and @dst, two different ports; 2 at most. */
    guint (*route)(const TtNetwork *network, TtPort src, TtPort dst, guint32 *links);

    double (*capacity_bytes_per_s)(const TtNetwork *network, guint32 link);

    /* What the leaves above nodes_per_leaf nodes, a pod, carry to (and from) the spines together;
     * NULL where no spine is between any two nodes. */
    double (*pod_bytes_per_s)(const TtNetwork *network);

    char *(*link_name)(const TtNetwork *network, guint32 link);  /* "leaf 0 -> spine 1" */
    char *(*switch_name)(const TtNetwork *network, TtPort port); /* at a NIC's far end */
};

extern const TtFabric *const tt_fabrics[]; /* NULL-terminated, sorted by file name */

#define TT_MAX_FABRIC_LINKS 2

/* Every key any fabric uses, NULL-terminated; computed once. */
const char *const *tt_fabric_keys(void);

/* Reads [fabric] for @n_nodes nodes. A network of one node has no links. */
gboolean tt_network_init(TtNetwork *network, TtKeys *keys, GError **error);
void tt_network_clear(TtNetwork *network);
