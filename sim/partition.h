/* partition.h - which nodes of a graph look alike: the coarsest equitable partition.
 *
 * Nodes of one class have one colour and, by label, equally many edges to each class. Colour refinement,
 * as in Cardon & Crochemore, Theor. Comput. Sci. 19, 1982: a class is split by what its members see of
 * others; all parts but the largest get new numbers, and only those who see a new number look again.
 * What a node sees is compared as a 64-bit hash: two that differ are taken for alike once in 2^64.
 *
 * Knows nodes and edges as numbers; no ranks, no links.
 */
#pragma once
#include <glib.h>

typedef struct {
    guint32 node, label; /* what is at the other end, and as what */
} TtEdge;

/* Edges are listed at both ends, each with its own label. Borrowed. */
typedef struct {
    guint32 n_nodes;
    const guint32 *first;  /* [n_nodes + 1] into edge */
    const TtEdge *edge;    /* by node */
    const guint64 *colour; /* [n_nodes] what a node is by itself */
} TtLabelledGraph;

/* Writes the class of every node, 0 .. n-1 in order of their first members, and returns n. With about
 * n_nodes classes it takes O(edges * log n_nodes). */
guint32 tt_partition(const TtLabelledGraph *graph, guint32 *class_of);

/* A 64-bit hash of two. Steele, Lea & Flood, OOPSLA 2014 (splitmix64's finaliser). */
static inline guint64
tt_mix(guint64 a, guint64 b)
{
    guint64 x =
        a * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15) + b + G_GUINT64_CONSTANT(0x632be59bd9b4e019);

    x = (x ^ x >> 30) * G_GUINT64_CONSTANT(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * G_GUINT64_CONSTANT(0x94d049bb133111eb);
    return x ^ x >> 31;
}
