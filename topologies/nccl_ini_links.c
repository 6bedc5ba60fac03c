/* nccl_ini_links - the [link] sections of an NCCL topology: devices of one kind and speed in one. */
#include "topologies/nccl_figures.h"
#include "topologies/nccl_ini_private.h"
#include "topologies/nccl_tree.h"

/* Adds a pair to the link section that @head (everything but the pairs) begins. Takes @head over. */
static void
add_pair(TtIniWriter *w, char *head, guint from, guint to, guint times)
{
    GString *pairs = g_hash_table_lookup(w->links, head);

    if (!pairs) {
        pairs = g_string_new(NULL);
        g_hash_table_insert(w->links, head, pairs);
        g_ptr_array_add(w->order, head);
    } else {
        g_free(head);
    }
    g_string_append_printf(pairs, " %u-%u", from, to);
    if (times > 1)
        g_string_append_printf(pairs, "x%u", times);
}

static char *
pcie_head(const char *from, const char *to, const TtXmlPci *pci)
{
    gboolean stated = pci->link_gts > 0 && pci->link_width > 0;
    double gts = pci->link_gts > 0 ? pci->link_gts : 8;
    guint width = pci->link_width > 0 ? pci->link_width : 16;
    g_autofree char *reported = g_strdup_printf("%g GT/s x%u", gts, width);

    return g_strdup_printf(
        "[link pcie-%s-%s-%gx%u%s]\nfrom = %s\nto = %s\nkind = pcie\n"
        "bandwidth = %.6g GB/s ; %s %g GT/s x%u\n"
        "efficiency = 76.2 %% ; fitted: NCCL counts 12 GB/s for 8 GT/s x16\n"
        "latency = " TT_INI_PCIE_LATENCY "\n"
        "pcie = %s ; spec: the file's\n",
        from, to, gts, width, stated ? "" : "-assumed", from, to, tt_pcie_gbytes_per_s(gts, width),
        stated ? "spec: the file's" : "assumed: NCCL's where the file says none,", gts, width,
        pci->link_gts > 0 || pci->link_width > 0 ? reported : "unknown");
}

/* Where the PCI device itself is nothing of ours: two ports, or no PCI device at all. */
static char *
local_head(const char *from, const char *to)
{
    return g_strdup_printf("[link local-%s-%s]\nfrom = %s\nto = %s\nkind = pcie\n"
                           "bandwidth = 5000 GB/s ; fitted: NCCL counts 5000 GB/s inside a device\n"
                           "latency = 0 us ; assumed: part of the links beside it\n",
                           from, to, from, to);
}

/* The wire from @kind @number on PCI device @pci (TT_NO_INDEX: right below @cpu) upwards. */
static void
add_device(TtIniWriter *w, const char *kind, guint number, guint pci, guint cpu)
{
    gboolean to_cpu = pci == TT_NO_INDEX;
    guint to = cpu;
    char *head;

    if (!to_cpu && tt_ini_is_switch(w, pci)) {
        to = w->switch_number[pci];
        head = local_head(kind, "pcie-switch");
    } else {
        const TtXmlPci *own = to_cpu ? NULL : tt_xml_pci_at(w->xml, pci);

        to_cpu = !own || own->parent == TT_NO_INDEX;
        to = to_cpu ? cpu : w->switch_number[own->parent];
        head = own ? pcie_head(kind, to_cpu ? "cpu" : "pcie-switch", own) : local_head(kind, "cpu");
    }
    add_pair(w, head, number, to, 1);
}

static void
add_devices(TtIniWriter *w)
{
    for (guint i = 0; i < w->gpus->len; i++) {
        guint pci = tt_xml_gpu_at(w->xml, g_array_index(w->gpus, guint, i))->pci;

        add_device(w, "gpu", i, pci, tt_xml_pci_at(w->xml, pci)->cpu);
    }
    for (guint i = 0; i < w->nets->len; i++) {
        const TtXmlNet *net = tt_xml_net_at(w->xml, g_array_index(w->nets, guint, i));

        add_device(w, "nic", i, net->pci, net->cpu);
    }
    for (guint i = 0; i < w->xml->pci->len; i++) {
        const TtXmlPci *pci = tt_xml_pci_at(w->xml, i);
        gboolean to_cpu = pci->parent == TT_NO_INDEX;

        if (tt_ini_is_switch(w, i))
            add_pair(w, pcie_head("pcie-switch", to_cpu ? "cpu" : "pcie-switch", pci),
                     w->switch_number[i], to_cpu ? pci->cpu : w->switch_number[pci->parent], 1);
    }
}

static guint
pci_with_bus_id(const TtIniWriter *w, const char *bus_id)
{
    for (guint i = 0; i < w->xml->pci->len; i++)
        if (g_ascii_strcasecmp(tt_xml_pci_at(w->xml, i)->bus_id, bus_id) == 0)
            return i;
    return TT_NO_INDEX;
}

static void
add_pci_links(TtIniWriter *w)
{
    for (guint i = 0; i < w->xml->pci_link->len; i++) {
        const TtXmlPciLink *link = &g_array_index(w->xml->pci_link, TtXmlPciLink, i);
        guint target = pci_with_bus_id(w, link->target);
        guint one, two;

        if (target == TT_NO_INDEX || !tt_ini_is_switch(w, link->pci) ||
            !tt_ini_is_switch(w, target))
            continue;
        one = w->switch_number[link->pci];
        two = w->switch_number[target];
        if (one < two) /* both ends name it */
            add_pair(w, pcie_head("pcie-switch", "pcie-switch", tt_xml_pci_at(w->xml, link->pci)),
                     one, two, 1);
    }
}

static char *
nvlink_head(const TtIniWriter *w, guint gpu, guint32 target_class, const char *to)
{
    TtNvlinkSpeed speed = tt_nvlink_speed(tt_xml_gpu_at(w->xml, gpu)->sm);
    const char *kind = target_class == 0x038000 ? "xgmi" : "nvlink";
    gboolean direct = strcmp(to, "nvswitch") != 0;

    return g_strdup_printf("[link %s-%s-sm%u]\nfrom = gpu\nto = %s\nkind = %s\n"
                           "bandwidth = %g GB/s ; spec: one link of this generation\n"
                           "efficiency = %.4g %% ; fitted: NCCL counts %g GB/s per link\n"
                           "latency = %s us ; fitted: NCCL's 0.6 us per NVLink hop with LL\n",
                           kind, to, speed.sm, to, kind, speed.wire_gbytes_per_s,
                           100 * speed.nccl_gbytes_per_s / speed.wire_gbytes_per_s,
                           speed.nccl_gbytes_per_s, direct ? "0.6" : "0.3");
}

/* What the two ends say, the smaller where both say something. */
static void
add_nvlinks_between(TtIniWriter *w)
{
    g_autoptr(GArray) pairs = tt_nccl_pairs(w->xml);

    for (guint i = 0; i < pairs->len; i++) {
        const TtGpuPair *pair = &g_array_index(pairs, TtGpuPair, i);
        guint a = w->gpu_number[pair->a], b = w->gpu_number[pair->b];
        guint n =
            pair->there && pair->back ? MIN(pair->there, pair->back) : MAX(pair->there, pair->back);
        guint32 target_class = tt_xml_pci_at(w->xml, tt_xml_gpu_at(w->xml, pair->b)->pci)->class_id;

        if (n && a != TT_INI_NO_NUMBER && b != TT_INI_NO_NUMBER)
            add_pair(w, nvlink_head(w, pair->a, target_class, "gpu"), a, b, n);
    }
}

static gboolean
add_nvlinks_to_others(TtIniWriter *w)
{
    gboolean any_switch = FALSE;

    for (guint i = 0; i < w->gpus->len; i++) {
        guint gpu = g_array_index(w->gpus, guint, i), to_switch = 0, to_cpu = 0;

        for (guint k = 0; k < w->xml->nvlink->len; k++) {
            const TtXmlNvlink *link = &g_array_index(w->xml->nvlink, TtXmlNvlink, k);

            if (link->gpu != gpu)
                continue;
            to_switch += link->target_class == 0x068000 ? link->count : 0;
            to_cpu += link->target_class == 0x068001 ? link->count : 0;
        }
        if (to_switch)
            add_pair(w, nvlink_head(w, gpu, 0x068000, "nvswitch"), i, 0, to_switch);
        if (to_cpu)
            add_pair(w, nvlink_head(w, gpu, 0x068001, "cpu"), i,
                     tt_xml_pci_at(w->xml, tt_xml_gpu_at(w->xml, gpu)->pci)->cpu, to_cpu);
        any_switch |= to_switch > 0;
    }
    return any_switch;
}

static void
add_c2c(TtIniWriter *w)
{
    for (guint i = 0; i < w->xml->c2c->len; i++) {
        const TtXmlC2c *link = &g_array_index(w->xml->c2c, TtXmlC2c, i);

        if (w->gpu_number[link->gpu] == TT_INI_NO_NUMBER || link->count == 0 || link->mb_per_s < 1)
            continue;
        add_pair(w,
                 g_strdup_printf("[link c2c-%.0f]\nfrom = gpu\nto = cpu\nkind = c2c\n"
                                 "bandwidth = %.0f MB/s ; spec: the file's\n"
                                 "latency = 0.3 us ; assumed: as half an NVLink hop\n",
                                 link->mb_per_s, link->mb_per_s),
                 w->gpu_number[link->gpu],
                 tt_xml_pci_at(w->xml, tt_xml_gpu_at(w->xml, link->gpu)->pci)->cpu, link->count);
    }
}

/* NCCL ranks ways between sockets by a sixth of what their links carry: 6, 10, 22 GB/s for QPI (2 x 19.2), UPI
 * (3 x 20.8; 4 x 32), 16 for xGMI (3 x 36). Flows share the links themselves. */
#define SOCKET_LINKS_PER_FIGURE 6

/* Every socket to every other of the same machine. */
static void
add_sockets(TtIniWriter *w)
{
    for (guint a = 0; a < w->xml->cpu->len; a++) {
        for (guint b = a + 1; b < w->xml->cpu->len; b++) {
            const TtXmlCpu *one = &g_array_index(w->xml->cpu, TtXmlCpu, a);
            const TtXmlCpu *two = &g_array_index(w->xml->cpu, TtXmlCpu, b);
            double rate = MIN(tt_cpu_to_cpu_gbytes_per_s(one), tt_cpu_to_cpu_gbytes_per_s(two));

            if (g_strcmp0(one->host_hash, two->host_hash) != 0)
                continue;
            add_pair(
                w,
                g_strdup_printf("[link socket-%g]\nfrom = cpu\nto = cpu\nkind = cpu\n"
                                "bandwidth = %g GB/s ; %s\n"
                                "latency = 0.2 us ; assumed: one socket hop for device traffic\n",
                                rate, rate ? SOCKET_LINKS_PER_FIGURE * rate : 10,
                                rate ? "spec: QPI, UPI or xGMI links of these CPUs, rounded"
                                     : "assumed: NCCL has no figure for these CPUs"),
                a, b, 1);
        }
    }
}

gboolean
tt_ini_collect_links(TtIniWriter *w)
{
    gboolean any_switch = add_nvlinks_to_others(w);

    add_nvlinks_between(w);
    add_devices(w);
    add_pci_links(w);
    add_c2c(w);
    add_sockets(w);
    return any_switch;
}
