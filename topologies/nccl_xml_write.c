/* nccl_xml_write - the file's text, in the order and spelling NCCL dumps it. */
#include "topologies/nccl_xml.h"

#include <math.h>

static void
add(GString *text, const char *name, const char *value)
{
    g_autofree char *escaped = value ? g_markup_escape_text(value, -1) : NULL;

    if (escaped)
        g_string_append_printf(text, " %s=\"%s\"", name, escaped);
}

/* Readable where that is exact. */
static void
add_double(GString *text, const char *name, double value, const char *unit)
{
    char buffer[G_ASCII_DTOSTR_BUF_SIZE];

    if (value == round(value) && value < 1e15)
        g_snprintf(buffer, sizeof buffer, unit ? "%.1f" : "%.0f", value);
    else
        g_ascii_dtostr(buffer, sizeof buffer, value);
    g_string_append_printf(text, " %s=\"%s%s\"", name, buffer, unit ? unit : "");
}

static void
indent(GString *text, guint depth)
{
    g_string_append_printf(text, "%*s", (int)(2 * depth), "");
}

static void
write_gpu(GString *text, const TtNcclXml *xml, guint index, guint depth)
{
    const TtXmlGpu *gpu = &g_array_index(xml->gpu, TtXmlGpu, index);

    indent(text, depth);
    g_string_append(text, "<gpu");
    if (gpu->dev >= 0)
        g_string_append_printf(text, " dev=\"%d\"", gpu->dev);
    g_string_append_printf(text, " sm=\"%u\"", gpu->sm);
    if (gpu->rank >= 0)
        g_string_append_printf(text, " rank=\"%d\"", gpu->rank);
    g_string_append_printf(text, " gdr=\"%d\">\n", gpu->gdr);
    for (guint i = 0; i < xml->nvlink->len; i++) {
        const TtXmlNvlink *link = &g_array_index(xml->nvlink, TtXmlNvlink, i);

        if (link->gpu != index)
            continue;
        indent(text, depth + 1);
        g_string_append(text, "<nvlink");
        add(text, "target", link->target);
        g_string_append_printf(text, " count=\"%u\" tclass=\"0x%06x\"/>\n", link->count,
                               link->target_class);
    }
    for (guint i = 0; i < xml->c2c->len; i++) {
        const TtXmlC2c *link = &g_array_index(xml->c2c, TtXmlC2c, i);

        if (link->gpu != index)
            continue;
        indent(text, depth + 1);
        g_string_append(text, "<c2c");
        add_double(text, "bw", link->mb_per_s, NULL);
        g_string_append_printf(text, " count=\"%u\"/>\n", link->count);
    }
    indent(text, depth);
    g_string_append(text, "</gpu>\n");
}

static void
write_net(GString *text, const TtXmlNet *net, guint depth)
{
    indent(text, depth);
    g_string_append(text, "<net");
    add(text, "name", net->name);
    g_string_append_printf(text, " dev=\"%u\" speed=\"%d\" port=\"%u\"", net->dev, net->speed_mbps,
                           net->port);
    add_double(text, "latency", net->latency_us, NULL);
    add(text, "guid", net->guid);
    g_string_append_printf(text, " maxconn=\"%u\" gdr=\"%d\"", net->max_conn, net->gdr);
    if (net->coll)
        g_string_append(text, " coll=\"1\"");
    if (!net->keep)
        g_string_append(text, " keep=\"0\"");
    g_string_append(text, "/>\n");
}

/* The nets of PCI device @pci, or those right below @cpu if that is TT_NO_INDEX, in one <nic>. */
static void
write_nic(GString *text, const TtNcclXml *xml, guint cpu, guint pci, guint depth)
{
    gboolean any = FALSE;

    for (guint i = 0; i < xml->net->len; i++) {
        const TtXmlNet *net = &g_array_index(xml->net, TtXmlNet, i);

        if (net->pci != pci || (pci == TT_NO_INDEX && net->cpu != cpu))
            continue;
        if (!any) {
            indent(text, depth);
            g_string_append(text, "<nic>\n");
        }
        any = TRUE;
        write_net(text, net, depth + 1);
    }
    if (any) {
        indent(text, depth);
        g_string_append(text, "</nic>\n");
    }
}

static void
write_pci_tag(GString *text, const TtXmlPci *pci, guint depth)
{
    indent(text, depth);
    g_string_append(text, "<pci");
    add(text, "busid", pci->bus_id);
    g_string_append_printf(text, " class=\"0x%06x\"", pci->class_id);
    add(text, "vendor", pci->vendor);
    add(text, "device", pci->device);
    add(text, "subsystem_vendor", pci->subsystem_vendor);
    add(text, "subsystem_device", pci->subsystem_device);
    if (pci->link_gts > 0)
        add_double(text, "link_speed", pci->link_gts, " GT/s PCIe");
    else
        g_string_append(text, " link_speed=\"\"");
    g_string_append_printf(text, " link_width=\"%u\">\n", pci->link_width);
}

/* The reader's depth limit bounds the recursion. */
static void
write_pci(GString *text, const TtNcclXml *xml, guint index, guint depth)
{
    const TtXmlPci *pci = &g_array_index(xml->pci, TtXmlPci, index);

    write_pci_tag(text, pci, depth);
    for (guint i = 0; i < xml->gpu->len; i++)
        if (g_array_index(xml->gpu, TtXmlGpu, i).pci == index)
            write_gpu(text, xml, i, depth + 1);
    for (guint i = 0; i < xml->pci_link->len; i++) {
        const TtXmlPciLink *link = &g_array_index(xml->pci_link, TtXmlPciLink, i);

        if (link->pci != index)
            continue;
        indent(text, depth + 1);
        g_string_append(text, "<pcilink");
        add(text, "target", link->target);
        g_string_append(text, "/>\n");
    }
    write_nic(text, xml, pci->cpu, index, depth + 1);
    for (guint i = index + 1; i < xml->pci->len; i++) /* children follow their parent */
        if (g_array_index(xml->pci, TtXmlPci, i).parent == index)
            write_pci(text, xml, i, depth + 1);
    indent(text, depth);
    g_string_append(text, "</pci>\n");
}

static void
write_cpu(GString *text, const TtNcclXml *xml, guint index)
{
    const TtXmlCpu *cpu = &g_array_index(xml->cpu, TtXmlCpu, index);

    indent(text, 1);
    g_string_append(text, "<cpu");
    add(text, "host_hash", cpu->host_hash);
    g_string_append_printf(text, " numaid=\"%d\"",
                           cpu->numa_id == TT_NO_INDEX ? -1 : (int)cpu->numa_id);
    add(text, "affinity", cpu->affinity);
    add(text, "arch", cpu->arch);
    add(text, "vendor", cpu->vendor);
    if (cpu->family >= 0)
        g_string_append_printf(text, " familyid=\"%d\"", cpu->family);
    if (cpu->model >= 0)
        g_string_append_printf(text, " modelid=\"%d\"", cpu->model);
    g_string_append(text, ">\n");
    for (guint i = 0; i < xml->pci->len; i++) {
        const TtXmlPci *pci = &g_array_index(xml->pci, TtXmlPci, i);

        if (pci->cpu == index && pci->parent == TT_NO_INDEX)
            write_pci(text, xml, i, 2);
    }
    write_nic(text, xml, index, TT_NO_INDEX, 2);
    indent(text, 1);
    g_string_append(text, "</cpu>\n");
}

char *
tt_nccl_xml_to_text(const TtNcclXml *xml)
{
    GString *text = g_string_new("<system version=\"1\">\n");

    for (guint i = 0; i < xml->cpu->len; i++)
        write_cpu(text, xml, i);
    g_string_append(text, "</system>\n");
    return g_string_free(text, FALSE);
}
