/* nccl_lint_nvlink - GPUs that have fewer NVLinks than the others. */
#include "topologies/nccl_lint_private.h"
#include "topologies/nccl_tree.h"

static guint
links_of(const TtLint *l, guint gpu)
{
    guint n = 0;

    for (guint i = 0; i < l->xml->nvlink->len; i++) {
        const TtXmlNvlink *link = &g_array_index(l->xml->nvlink, TtXmlNvlink, i);

        n += link->gpu == gpu ? link->count : 0;
    }
    return n;
}

static void
lint_pairs(TtLint *l)
{
    g_autoptr(GArray) pairs = tt_nccl_pairs(l->xml);

    for (guint i = 0; i < pairs->len; i++) {
        const TtGpuPair *pair = &g_array_index(pairs, TtGpuPair, i);
        g_autofree char *one = tt_lint_name_gpu(l, pair->a), *two = tt_lint_name_gpu(l, pair->b);

        if (pair->there != pair->back)
            tt_lint_add(l, TT_LINT_WARNING, "nvlink-asymmetric",
                        g_strdup_printf("%u NVLinks there, %u back", pair->there, pair->back),
                        g_strdup_printf("%s and %s", one, two), g_strdup("as many both ways"),
                        "rings through the pair get the smaller; look for links that are down "
                        "(nvidia-smi nvlink -s)");
    }
}

void
tt_lint_nvlink(TtLint *l)
{
    guint most = 0, least = G_MAXUINT;

    for (guint i = 0; i < l->xml->gpu->len; i++) {
        most = MAX(most, links_of(l, i));
        least = MIN(least, links_of(l, i));
    }
    for (guint i = 0; i < l->xml->gpu->len && most > least; i++) {
        guint n = links_of(l, i);

        if (n == 0)
            tt_lint_add(
                l, TT_LINT_ERROR, "nvlink-missing", g_strdup("no NVLink"), tt_lint_name_gpu(l, i),
                g_strdup_printf("%u, as its peers have", most),
                "every ring crosses PCIe or host memory to reach it: NVLink speed is lost for all");
        else if (n < most)
            tt_lint_add(
                l, TT_LINT_WARNING, "nvlink-fewer", g_strdup_printf("%u NVLinks", n),
                tt_lint_name_gpu(l, i), g_strdup_printf("%u, as its peers have", most),
                "rings get as many channels as the weakest GPU carries; look for links that are "
                "down (nvidia-smi nvlink -s)");
    }
    lint_pairs(l);
}
