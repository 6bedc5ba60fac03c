#include "topologies/nccl_tree.h"

GHashTable *
tt_nccl_gpus_by_bus_id(const TtNcclXml *xml)
{
    GHashTable *table = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    for (guint i = 0; i < xml->gpu->len; i++) {
        guint pci = g_array_index(xml->gpu, TtXmlGpu, i).pci;
        const char *bus_id = g_array_index(xml->pci, TtXmlPci, pci).bus_id;

        g_hash_table_insert(table, g_ascii_strdown(bus_id, -1), GUINT_TO_POINTER(i + 1));
    }
    return table;
}

static int
by_ends(gconstpointer x, gconstpointer y)
{
    const TtGpuPair *one = x, *two = y;

    if (one->a != two->a)
        return one->a < two->a ? -1 : 1;
    return one->b < two->b ? -1 : one->b > two->b;
}

GArray *
tt_nccl_pairs(const TtNcclXml *xml)
{
    GArray *pairs = g_array_new(FALSE, FALSE, sizeof(TtGpuPair));
    g_autoptr(GHashTable) gpus = tt_nccl_gpus_by_bus_id(xml);
    guint n = 0;

    for (guint i = 0; i < xml->nvlink->len; i++) {
        const TtXmlNvlink *link = &g_array_index(xml->nvlink, TtXmlNvlink, i);
        g_autofree char *target = g_ascii_strdown(link->target, -1);
        guint to = GPOINTER_TO_UINT(g_hash_table_lookup(gpus, target));
        TtGpuPair pair = { .a = link->gpu, .b = to - 1, .there = link->count };

        if (to == 0 || pair.a == pair.b)
            continue;
        if (pair.a > pair.b)
            pair = (TtGpuPair){ .a = pair.b, .b = pair.a, .back = link->count };
        g_array_append_val(pairs, pair);
    }
    g_array_sort(pairs, by_ends);
    for (guint i = 0; i < pairs->len; i++) { /* those of the same ends into one */
        TtGpuPair *last = n ? &g_array_index(pairs, TtGpuPair, n - 1) : NULL;
        TtGpuPair next = g_array_index(pairs, TtGpuPair, i);

        if (last && last->a == next.a && last->b == next.b) {
            last->there += next.there;
            last->back += next.back;
        } else {
            g_array_index(pairs, TtGpuPair, n++) = next;
        }
    }
    g_array_set_size(pairs, n);
    return pairs;
}

static void
mark(const TtNcclXml *xml, guint pci, gboolean *leads)
{
    for (; pci != TT_NO_INDEX && !leads[pci]; pci = g_array_index(xml->pci, TtXmlPci, pci).parent)
        leads[pci] = TRUE;
}

gboolean *
tt_nccl_leads(const TtNcclXml *xml)
{
    gboolean *leads = g_new0(gboolean, xml->pci->len + 1);

    for (guint i = 0; i < xml->gpu->len; i++)
        mark(xml, g_array_index(xml->gpu, TtXmlGpu, i).pci, leads);
    for (guint i = 0; i < xml->net->len; i++)
        mark(xml, g_array_index(xml->net, TtXmlNet, i).pci, leads);
    return leads;
}
