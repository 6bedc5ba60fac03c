/* wiring.h - how channels thread through a node: plain data, the same for every node.
 *
 * A search of the topology finds, per channel, an order of the node's ranks in which neighbours are
 * near, beginning and ending where the network is. Ranks are named by their place in the node,
 * 0 .. ranks_per_node-1. Memory does not grow with the nodes.
 */
#pragma once
#include <glib.h>

/* Who in a node takes the messages of the tree's other nodes. The first of the chain always faces the
 * parent. The numbers are NCCL's. */
typedef enum {
    TT_TREE_BALANCED = 1, /* the second of the chain takes one child, the first the other */
    TT_TREE_SPLIT,        /* the second takes both */
    TT_TREE_FIRST         /* the first takes both */
} TtTreePattern;

/* Channels beyond n_channels begin again at 0. */
typedef struct {
    guint ranks_per_node, n_channels;
    const guint16 *ring;      /* [n_channels][ranks_per_node]: places in ring order */
    gboolean ring_alternates; /* odd nodes swap channels 0 and 1, 2 and 3, ... */
    const guint16
        *tree;          /* [n_channels][ranks_per_node]: places along the chain; NULL: the ring's */
    guint tree_pattern; /* TtTreePattern; 0: balanced */
    guint n_heads;      /* of in-switch reduction; 0: every rank is one */
    const guint16 *head; /* [n_heads]: places, each once */
} TtWiring;

/* NULL if @wiring can be that of nodes of @ranks_per_node, else what is wrong with it: a constant. */
const char *tt_wiring_fault(const TtWiring *wiring, guint ranks_per_node);

/* A copy in one piece, released by g_free(). */
TtWiring *tt_wiring_copy(const TtWiring *wiring);
