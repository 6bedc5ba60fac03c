/* nccl_draw_links - NVLinks below the row of GPUs: a bar for the switches, curves from GPU to GPU. */
#include "topologies/nccl_draw_private.h"
#include "topologies/nccl_figures.h"
#include "topologies/nccl_tree.h"

#include <stdlib.h>

#define BAR_DROP   58 /* from the GPUs down to the bar */
#define BAR_HEIGHT 36

static double
rate_of_link(const TtDraw *d, guint gpu)
{
    return tt_nvlink_speed(g_array_index(d->xml->gpu, TtXmlGpu, gpu).sm).nccl_gbytes_per_s;
}

/* --- switches ----------------------------------------------------------------------------------
 */

static guint
links_to_switch(const TtDraw *d, guint gpu)
{
    guint n = 0;

    for (guint i = 0; i < d->xml->nvlink->len; i++) {
        const TtXmlNvlink *link = &g_array_index(d->xml->nvlink, TtXmlNvlink, i);

        n += link->gpu == gpu && link->target_class == 0x068000 ? link->count : 0;
    }
    return n;
}

static void
draw_switch(TtDraw *d)
{
    int y = d->bottom + BAR_DROP, from = G_MAXINT, to = 0;
    guint common = 0, first = 0;
    gboolean differ = FALSE;

    for (guint i = 0; i < d->xml->gpu->len; i++) {
        guint n = d->gpu_x[i] ? links_to_switch(d, i) : 0;

        if (n == 0)
            continue;
        from = MIN(from, d->gpu_x[i] - TT_LEAF_WIDTH / 2);
        to = MAX(d->width, d->gpu_x[i] + TT_LEAF_WIDTH / 2);
        differ |= common != 0 && common != n;
        first = common ? first : i;
        common = common ? common : n;
        g_string_append_printf(d->wires,
                               "<path d=\"M%d %dV%d\" class=\"nvlink\" stroke-width=\"9\"/>\n",
                               d->gpu_x[i], d->bottom, y);
        tt_draw_text(d->wires, d->gpu_x[i] + 9, d->bottom + BAR_DROP / 2 + 4, "label left",
                     "%u link%s", n, n == 1 ? "" : "s");
    }
    if (to == 0)
        return;
    g_string_append_printf(d->boxes,
                           "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\" "
                           "class=\"nvswitch\"/>\n",
                           from, y, to - from, BAR_HEIGHT);
    if (differ)
        tt_draw_text(d->boxes, (from + to) / 2, y + 23, "name",
                     "NVSwitch, NCCL counts %g GB/s per link each way", rate_of_link(d, first));
    else
        tt_draw_text(d->boxes, (from + to) / 2, y + 23, "name",
                     to - from > 5 * TT_LEAF_WIDTH
                         ? "NVSwitch, NCCL counts %g GB/s per GPU each way"
                         : "NVSwitch, NCCL: %g GB/s per GPU",
                     common * rate_of_link(d, first));
    d->bottom = y + BAR_HEIGHT;
}

/* --- GPU to GPU --------------------------------------------------------------------------------
 */

/* Curves that leave a GPU do not cross there: to the left the nearest first, then the farthest, then
 * to the right the farthest first. */
static int
offset_at(const TtDraw *d, const GArray *pairs, guint gpu, guint other)
{
    int x = d->gpu_x[gpu], to = d->gpu_x[other], before = 0, n = 0;

    for (guint i = 0; i < pairs->len; i++) {
        const TtGpuPair *pair = &g_array_index(pairs, TtGpuPair, i);
        int third;

        if ((pair->a != gpu && pair->b != gpu) || !d->gpu_x[pair->a] || !d->gpu_x[pair->b])
            continue;
        third = d->gpu_x[pair->a == gpu ? pair->b : pair->a];
        n++;
        if (to < x)
            before += third < x && third > to;
        else
            before += third < x || third > to;
    }
    return n > 1 ? before * 60 / (n - 1) - 30 : 0;
}

static int
curve(TtDraw *d, const GArray *pairs, const TtGpuPair *pair)
{
    int from = d->gpu_x[pair->a] + offset_at(d, pairs, pair->a, pair->b);
    int to = d->gpu_x[pair->b] + offset_at(d, pairs, pair->b, pair->a);
    int drop = 44 + abs(to - from) * 26 / 100;
    guint n = MAX(pair->there, pair->back);

    g_string_append_printf(d->wires,
                           "<path d=\"M%d %dC%d %d %d %d %d %d\" class=\"nvlink\" "
                           "stroke-width=\"%u\" opacity=\"%s\"><title>%u link%s</title></path>\n",
                           from, d->bottom, from, d->bottom + drop, to, d->bottom + drop, to,
                           d->bottom, MIN(2 * n, 9), n > 1 ? "0.9" : "0.55", n, n == 1 ? "" : "s");
    return drop * 3 / 4;
}

/* One line for every number of links between two GPUs. */
static void
draw_legend(TtDraw *d, const GArray *pairs, int x)
{
    gboolean seen[64] = { FALSE };

    for (guint i = 0; i < pairs->len; i++) {
        const TtGpuPair *pair = &g_array_index(pairs, TtGpuPair, i);
        guint n = MAX(pair->there, pair->back);

        if (n < G_N_ELEMENTS(seen) && d->gpu_x[pair->a])
            seen[n] = TRUE;
    }
    for (guint n = 1; n < G_N_ELEMENTS(seen); n++) {
        if (!seen[n])
            continue;
        d->bottom += 20;
        g_string_append_printf(d->wires,
                               "<path d=\"M%d %dh36\" class=\"nvlink\" stroke-width=\"%u\" "
                               "opacity=\"%s\"/>\n",
                               x, d->bottom, MIN(2 * n, 9), n > 1 ? "0.9" : "0.55");
        tt_draw_text(d->boxes, x + 44, d->bottom + 4, "label left",
                     "%u link%s, NCCL counts %g GB/s each way", n, n > 1 ? "s" : "",
                     n * rate_of_link(d, 0));
    }
}

static void
draw_mesh(TtDraw *d)
{
    g_autoptr(GArray) pairs = tt_nccl_pairs(d->xml);
    int deepest = 0, left = G_MAXINT;

    for (guint i = 0; i < pairs->len && i < 4096; i++) {
        const TtGpuPair *pair = &g_array_index(pairs, TtGpuPair, i);
        int drop;

        if (!d->gpu_x[pair->a] || !d->gpu_x[pair->b])
            continue;
        drop = curve(d, pairs, pair);
        deepest = MAX(deepest, drop);
        left = MIN(left, MIN(d->gpu_x[pair->a], d->gpu_x[pair->b]));
    }
    if (deepest == 0)
        return;
    d->bottom += deepest;
    draw_legend(d, pairs, left - TT_LEAF_WIDTH / 2);
}

void
tt_draw_nvlinks(TtDraw *d)
{
    draw_switch(d);
    draw_mesh(d);
}
