#include "algos/wiring.h"

#include <string.h>

/* Each of @n places below @limit, none twice. */
static gboolean
all_different(const guint16 *places, guint n, guint limit)
{
    g_autofree guint8 *seen = g_malloc0(limit);

    for (guint i = 0; i < n; i++)
        if (places[i] >= limit || seen[places[i]]++)
            return FALSE;
    return TRUE;
}

const char *
tt_wiring_fault(const TtWiring *wiring, guint ranks_per_node)
{
    guint n = wiring->ranks_per_node;

    if (n != ranks_per_node)
        return "the wiring must be of nodes as large as the groups";
    if (wiring->n_channels < 1 || !wiring->ring)
        return "the wiring must have a channel";
    if (wiring->tree_pattern > TT_TREE_FIRST)
        return "the wiring's tree pattern must be 0 .. 3";
    for (guint c = 0; c < wiring->n_channels; c++)
        if (!all_different(wiring->ring + (gsize)c * n, n, n) ||
            (wiring->tree && !all_different(wiring->tree + (gsize)c * n, n, n)))
            return "every channel of the wiring must visit each rank of a node once";
    if (wiring->n_heads > n || (wiring->n_heads > 0 && !wiring->head) ||
        !all_different(wiring->head, wiring->n_heads, n))
        return "the wiring's heads must be different ranks of a node";
    return NULL;
}

static const guint16 *
append(guint16 **end, const guint16 *places, gsize n)
{
    const guint16 *copy = *end;

    if (!places)
        return NULL;
    memcpy(*end, places, n * sizeof *places);
    *end += n;
    return copy;
}

TtWiring *
tt_wiring_copy(const TtWiring *wiring)
{
    gsize n = (gsize)wiring->n_channels * wiring->ranks_per_node;
    TtWiring *copy = g_malloc(sizeof *copy + (2 * n + wiring->n_heads) * sizeof(guint16));
    guint16 *end = (guint16 *)(copy + 1);

    *copy = *wiring;
    copy->ring = append(&end, wiring->ring, n);
    copy->tree = append(&end, wiring->tree, n);
    copy->head = append(&end, wiring->head, wiring->n_heads);
    return copy;
}
