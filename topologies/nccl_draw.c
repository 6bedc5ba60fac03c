#include "topologies/keys.h"
#include "topologies/nccl_draw_private.h"
#include "topologies/nccl_figures.h"
#include "topologies/nccl_tree.h"

#include <math.h>
#include <string.h>

#define TOP         86 /* of the CPUs, below the title */
#define CPU_HEIGHT  46
#define SWITCH_STEP 74 /* from one level of bars to the next */
#define SWITCH_BAR  34
#define LEAF_GAP    8
#define BRANCH_GAP  16
#define CPU_GAP     84 /* room for the label of the link between them */

/* Where the next leaf goes, and how deep bars are nested. */
typedef struct {
    TtDraw draw;
    const gboolean *leads;
    guint cpu_shown; /* CPUs [0, cpu_shown) are those of the first machine */
    int cursor;
} Placer;

typedef struct {
    int from, to;
} Span;

static const TtXmlPci *
pci_at(const Placer *p, guint i)
{
    return &g_array_index(p->draw.xml->pci, TtXmlPci, i);
}

static int
middle(Span span)
{
    return (span.from + span.to) / 2;
}

/* --- links upwards -----------------------------------------------------------------------------
 */

/* "PCIe 5.0 x16"; a speed that is not stated says so. */
static char *
name_pcie(const TtXmlPci *pci)
{
    static const struct {
        double gts;
        const char *name;
    } generations[] = { { 2.5, "1.0" }, { 5, "2.0" },  { 8, "3.0" },
                        { 16, "4.0" },  { 32, "5.0" }, { 64, "6.0" } };

    for (gsize i = 0; i < G_N_ELEMENTS(generations); i++)
        if (fabs(generations[i].gts - pci->link_gts) < 0.01 && pci->link_width)
            return g_strdup_printf("PCIe %s x%u", generations[i].name, pci->link_width);
    return g_strdup("PCIe ?");
}

/* Wider lines for faster links: 1 to 5 pixels for 4 to 64 GB/s. */
static void
wire_up(Placer *p, int x, int from_y, int to_y, const TtXmlPci *pci)
{
    double gbytes_per_s = pci ? tt_pcie_gbytes_per_s(pci->link_gts, pci->link_width) : 4;
    int width = (int)CLAMP(round(log2(gbytes_per_s / 4) + 1), 1, 5);

    g_string_append_printf(p->draw.wires,
                           "<path d=\"M%d %dV%d\" class=\"pcie\" stroke-width=\"%d\"/>\n", x,
                           from_y, to_y, width);
}

static void
c2c_up(Placer *p, int x, int from_y, int to_y, double gbytes_per_s)
{
    g_string_append_printf(p->draw.wires,
                           "<path d=\"M%d %dV%d\" class=\"c2c\" stroke-width=\"7\"/>\n", x, from_y,
                           to_y);
    tt_draw_text(p->draw.wires, x + 8, (from_y + to_y) / 2 + 3, "label left", "C2C %.0f GB/s",
                 gbytes_per_s);
}

static double
c2c_of(const Placer *p, guint gpu)
{
    double sum = 0;

    for (guint i = 0; i < p->draw.xml->c2c->len; i++) {
        const TtXmlC2c *link = &g_array_index(p->draw.xml->c2c, TtXmlC2c, i);

        sum += link->gpu == gpu ? link->mb_per_s * link->count / 1000 : 0;
    }
    return sum;
}

/* --- leaves ------------------------------------------------------------------------------------
 */

static Span
next_leaf(Placer *p)
{
    Span span = { p->cursor, p->cursor + TT_LEAF_WIDTH };

    p->cursor = span.to + LEAF_GAP;
    return span;
}

static Span
place_gpu(Placer *p, guint index, int above_y)
{
    const TtXmlGpu *gpu = &g_array_index(p->draw.xml->gpu, TtXmlGpu, index);
    const TtXmlPci *pci = pci_at(p, gpu->pci);
    Span span = next_leaf(p);
    int x = middle(span), y = p->draw.leaf_y;
    double c2c = c2c_of(p, index);
    g_autofree char *pcie = name_pcie(pci), *quoted = tt_quote(pci->bus_id);

    tt_draw_box(p->draw.boxes, span.from, span.to, y, TT_LEAF_HEIGHT, "gpu", quoted);
    tt_draw_text(p->draw.boxes, x, y + 20, "name light", "GPU %d",
                 gpu->dev >= 0 ? gpu->dev : (int)index);
    tt_draw_text(p->draw.boxes, x, y + 37, "small light", "sm %u%s", gpu->sm,
                 gpu->gdr ? "" : ", no gdr");
    tt_draw_text(p->draw.boxes, x, y + 53, "small light", "%s", c2c > 0 ? quoted : pcie);
    if (c2c > 0)
        c2c_up(p, x, above_y, y, c2c);
    else
        wire_up(p, x, above_y, y, pci);
    p->draw.gpu_x[index] = x;
    return span;
}

static Span
place_net(Placer *p, guint index, int above_y)
{
    const TtXmlNet *net = &g_array_index(p->draw.xml->net, TtXmlNet, index);
    const TtXmlPci *pci = net->pci == TT_NO_INDEX ? NULL : pci_at(p, net->pci);
    Span span = next_leaf(p);
    int x = middle(span), y = p->draw.leaf_y;
    g_autofree char *pcie = pci ? name_pcie(pci) : g_strdup("no PCIe");
    g_autofree char *tip = tt_quote(pci ? pci->bus_id : net->name), *name = tt_quote(net->name);
    g_autofree char *speed = net->speed_mbps > 0
                                 ? g_strdup_printf("%g Gbit/s", net->speed_mbps / 1000.0)
                                 : g_strdup("unknown speed");

    tt_draw_box(p->draw.boxes, span.from, span.to, y, TT_LEAF_HEIGHT, "nic", tip);
    tt_draw_text(p->draw.boxes, x, y + 20, "name light", "%.10s", name);
    tt_draw_text(p->draw.boxes, x, y + 37, "small light", "%s%s", speed,
                 net->gdr ? "" : ", no gdr");
    tt_draw_text(p->draw.boxes, x, y + 53, "small light", "%s", pcie);
    wire_up(p, x, above_y, y, pci);
    return span;
}

/* --- bars --------------------------------------------------------------------------------------
 */

static gboolean
is_leaf(const Placer *p, guint pci)
{
    guint n = 0;

    for (guint i = 0; i < p->draw.xml->gpu->len; i++)
        n += g_array_index(p->draw.xml->gpu, TtXmlGpu, i).pci == pci;
    for (guint i = 0; i < p->draw.xml->net->len; i++)
        n += g_array_index(p->draw.xml->net, TtXmlNet, i).pci == pci;
    for (guint i = pci + 1; i < p->draw.xml->pci->len; i++)
        if (pci_at(p, i)->parent == pci && p->leads[i])
            return FALSE;
    return n == 1;
}

static void
widen(Span *span, Span part)
{
    span->from = span->from < 0 ? part.from : MIN(span->from, part.from);
    span->to = MAX(span->to, part.to);
}

static void
place_leaves(Placer *p, guint pci, int above_y, Span *span)
{
    for (guint i = 0; i < p->draw.xml->gpu->len; i++)
        if (g_array_index(p->draw.xml->gpu, TtXmlGpu, i).pci == pci)
            widen(span, place_gpu(p, i, above_y));
    for (guint i = 0; i < p->draw.xml->net->len; i++)
        if (g_array_index(p->draw.xml->net, TtXmlNet, i).pci == pci)
            widen(span, place_net(p, i, above_y));
}

static Span place_switch(Placer *p, guint pci, guint level, int above_y);

/* What hangs below PCI device @pci, or below @cpu if that is TT_NO_INDEX. */
static void
place_below(Placer *p, guint cpu, guint pci, guint level, int y, Span *span)
{
    for (guint i = 0; i < p->draw.xml->pci->len; i++) {
        const TtXmlPci *child = pci_at(p, i);

        if (child->cpu != cpu || child->parent != pci || !p->leads[i])
            continue;
        if (is_leaf(p, i))
            place_leaves(p, i, y, span);
        else
            widen(span, place_switch(p, i, level, y));
    }
}

static Span
place_switch(Placer *p, guint pci, guint level, int above_y)
{
    Span span = { -1, 0 };
    int y = TOP + CPU_HEIGHT + 40 + (int)level * SWITCH_STEP;
    const TtXmlPci *own = pci_at(p, pci);
    double rate = tt_pcie_gbytes_per_s(own->link_gts, own->link_width);
    g_autofree char *pcie = name_pcie(own), *quoted = tt_quote(own->bus_id);

    place_leaves(p, pci, y + SWITCH_BAR, &span);
    place_below(p, pci_at(p, pci)->cpu, pci, level + 1, y + SWITCH_BAR, &span);
    tt_draw_box(p->draw.boxes, span.from, span.to, y, SWITCH_BAR, "switch", quoted);
    if (span.to - span.from > 3 * TT_LEAF_WIDTH)
        tt_draw_text(p->draw.boxes, middle(span), y + 21, "small", "PCIe switch %s, %s, %.0f GB/s",
                     quoted, pcie, rate);
    else if (span.to - span.from > TT_LEAF_WIDTH)
        tt_draw_text(p->draw.boxes, middle(span), y + 21, "small", "switch, %s, %.0f GB/s", pcie,
                     rate);
    else
        tt_draw_text(p->draw.boxes, middle(span), y + 21, "small", "%s", pcie);
    wire_up(p, middle(span), above_y, y, pci_at(p, pci));
    p->cursor += BRANCH_GAP - LEAF_GAP;
    return span;
}

/* "Intel 6/143", "AMD 25/1", "Arm". */
static char *
name_maker(const TtXmlCpu *cpu)
{
    const char *maker = cpu->arch ? cpu->arch : "unknown maker";

    if (g_strcmp0(cpu->vendor, "GenuineIntel") == 0)
        maker = "Intel";
    else if (g_strcmp0(cpu->vendor, "AuthenticAMD") == 0)
        maker = "AMD";
    else if (g_strcmp0(cpu->arch, "arm64") == 0)
        maker = "Arm";
    if (cpu->model < 0)
        return tt_quote(maker);
    return g_strdup_printf("%s, family %d model %d", maker, cpu->family, cpu->model);
}

static Span
place_cpu(Placer *p, guint index)
{
    const TtXmlCpu *cpu = &g_array_index(p->draw.xml->cpu, TtXmlCpu, index);
    Span span = { -1, 0 };
    int bottom = TOP + CPU_HEIGHT;
    g_autofree char *maker = name_maker(cpu);

    place_below(p, index, TT_NO_INDEX, 0, bottom, &span);
    for (guint i = 0; i < p->draw.xml->net->len; i++) {
        const TtXmlNet *net = &g_array_index(p->draw.xml->net, TtXmlNet, i);

        if (net->pci == TT_NO_INDEX && net->cpu == index)
            widen(&span, place_net(p, i, bottom));
    }
    if (span.from < 0)
        span = next_leaf(p);
    while (span.to - span.from < 2 * TT_LEAF_WIDTH) { /* room for its name */
        span.to += TT_LEAF_WIDTH + LEAF_GAP;
        p->cursor = span.to + LEAF_GAP;
    }
    tt_draw_box(p->draw.boxes, span.from, span.to, TOP, CPU_HEIGHT, "cpu", maker);
    tt_draw_text(p->draw.boxes, middle(span), TOP + 20, "name light",
                 cpu->numa_id == TT_NO_INDEX ? "CPU" : "CPU %u", cpu->numa_id);
    tt_draw_text(p->draw.boxes, middle(span), TOP + 36, "small light", "%s", maker);
    p->draw.width = span.to;
    p->cursor = span.to + CPU_GAP;
    return span;
}

/* Neighbours are joined; with more than two, all are, which the label says. */
static void
join_cpus(Placer *p, Span left, Span right, guint index)
{
    const TtXmlCpu *cpu = &g_array_index(p->draw.xml->cpu, TtXmlCpu, index);
    double rate = tt_cpu_to_cpu_gbytes_per_s(cpu);
    int x = (left.to + right.from) / 2, y = TOP + CPU_HEIGHT / 2;

    g_string_append_printf(p->draw.wires,
                           "<path d=\"M%d %dH%d\" class=\"socket\" stroke-width=\"4\"/>\n", left.to,
                           y, right.from);
    if (rate > 0)
        tt_draw_text(p->draw.boxes, x, y - 8, "label", "NCCL: %g GB/s", rate);
    if (p->cpu_shown > 2)
        tt_draw_text(p->draw.boxes, x, y + 16, "label", "each to each");
}

/* --- all of it ---------------------------------------------------------------------------------
 */

/* How many bars lie over one another at most. */
static guint
levels_of(const Placer *p)
{
    guint most = 0;

    for (guint i = 0; i < p->draw.xml->pci->len; i++) {
        guint n = 0;

        if (!p->leads[i])
            continue;
        for (guint at = is_leaf(p, i) ? pci_at(p, i)->parent : i; at != TT_NO_INDEX;
             at = pci_at(p, at)->parent)
            n++;
        most = MAX(most, n);
    }
    return most;
}

static guint
cpus_of_first_host(const TtNcclXml *xml)
{
    guint n = 1;

    while (n < xml->cpu->len && g_strcmp0(g_array_index(xml->cpu, TtXmlCpu, 0).host_hash,
                                          g_array_index(xml->cpu, TtXmlCpu, n).host_hash) == 0)
        n++;
    return MIN(n, xml->cpu->len);
}

char *
tt_nccl_draw(const TtNcclXml *xml, const char *title)
{
    g_autofree gboolean *leads = tt_nccl_leads(xml);
    g_autofree int *gpu_x = g_new0(int, xml->gpu->len + 1);
    g_autoptr(GString) boxes = g_string_new(NULL), wires = g_string_new(NULL);
    Placer p = { .draw = { .xml = xml, .boxes = boxes, .wires = wires, .gpu_x = gpu_x },
                 .leads = leads,
                 .cpu_shown = cpus_of_first_host(xml),
                 .cursor = TT_DRAW_MARGIN };
    Span last = { 0, 0 };

    p.draw.leaf_y = TOP + CPU_HEIGHT + 44 + (int)levels_of(&p) * SWITCH_STEP;
    p.draw.bottom = p.draw.leaf_y + TT_LEAF_HEIGHT;
    for (guint i = 0; i < p.cpu_shown; i++) {
        Span span = place_cpu(&p, i);

        if (i > 0)
            join_cpus(&p, last, span, i);
        last = span;
    }
    tt_draw_nvlinks(&p.draw);
    return tt_draw_page(&p.draw, p.cpu_shown < xml->cpu->len, title);
}
