/* nccl_xml_of_topology - a node drawn in our own words, as NCCL's detection would have found it.
 *
 * The PCI tree is what the links of kind "pcie" make it, seen from the CPUs. Bus ids are counted.
 * A PCIe link's generation is the one whose speed is nearest to its bandwidth.
 */
#include "topologies/nccl_figures.h"
#include "topologies/topology_private.h"

#include <math.h>
#include <string.h>

#define NO_DEVICE G_MAXUINT

typedef struct {
    const TtTemplate *t;
    TtNcclXml *xml;
    guint *parent; /* [n_devices] in the PCI tree; NO_DEVICE: not in it */
    guint *uplink; /* [n_devices] wire to the parent */
    guint *pci;    /* [n_devices] index in xml->pci, TT_NO_INDEX: none */
    guint next_bus;
} Maker;

static const TtWire *
wire_at(const TtTemplate *t, guint w)
{
    return &g_array_index(t->wires, TtWire, w);
}

static const TtBundle *
bundle_of(const TtTemplate *t, guint w)
{
    return &g_array_index(t->bundles, TtBundle, wire_at(t, w)->bundle);
}

static gboolean
is_kind(const TtTemplate *t, guint w, const char *kind)
{
    return strcmp(bundle_of(t, w)->kind, kind) == 0;
}

/* How many parallel links a wire stands for. */
static guint
links_of(const TtTemplate *t, guint w)
{
    return (guint)round(wire_at(t, w)->capacity_bytes_per_s /
                        bundle_of(t, w)->capacity_bytes_per_s);
}

static guint
device_number(const TtTemplate *t, guint device)
{
    return device - t->first[tt_template_kind_of(t, device)];
}

/* --- the PCI tree ------------------------------------------------------------------------------
 */

/* Breadth first from all CPUs: everyone's parent is the neighbour nearest to one. */
static void
find_parents(Maker *m)
{
    const TtTemplate *t = m->t;
    g_autofree guint *queue = g_new(guint, t->n_devices + 1);
    guint n = 0;

    for (guint d = 0; d < t->n_devices; d++)
        m->parent[d] = NO_DEVICE;
    for (guint i = 0; i < t->count[TT_DEVICE_CPU]; i++) {
        guint cpu = t->first[TT_DEVICE_CPU] + i;

        m->parent[cpu] = cpu;
        queue[n++] = cpu;
    }
    for (guint head = 0; head < n; head++) {
        for (guint w = 0; w < t->wires->len; w++) {
            const TtWire *wire = wire_at(t, w); /* from the child to its parent */

            if (wire->to != queue[head] || wire->from >= t->n_devices || !is_kind(t, w, "pcie") ||
                m->parent[wire->from] != NO_DEVICE)
                continue;
            m->parent[wire->from] = wire->to;
            m->uplink[wire->from] = w;
            queue[n++] = wire->from;
        }
    }
}

static char *
next_bus_id(Maker *m)
{
    guint bus = m->next_bus++;

    return g_strdup_printf("%04x:%02x:00.0", bus >> 8, bus & 0xff);
}

static guint
add_pci(Maker *m, guint device, guint cpu, guint parent)
{
    TtXmlPci pci = { .cpu = cpu, .parent = parent, .bus_id = next_bus_id(m) };

    switch (tt_template_kind_of(m->t, device)) {
    case TT_DEVICE_GPU: pci.class_id = 0x030200; break;
    case TT_DEVICE_NIC: pci.class_id = 0x020700; break;
    default: pci.class_id = 0x060400; break;
    }
    if (m->parent[device] != NO_DEVICE && links_of(m->t, m->uplink[device]) > 1) {
        tt_pcie_nearest(bundle_of(m->t, m->uplink[device])->bytes_per_s *
                            links_of(m->t, m->uplink[device]),
                        &pci.link_gts, &pci.link_width);
    } else if (m->parent[device] != NO_DEVICE) {
        pci.link_gts = bundle_of(m->t, m->uplink[device])->pcie_gts;
        pci.link_width = bundle_of(m->t, m->uplink[device])->pcie_width;
    }
    m->pci[device] = m->xml->pci->len;
    g_array_append_val(m->xml->pci, pci);
    return m->pci[device];
}

static void
add_gpu(Maker *m, guint device, guint pci)
{
    TtXmlGpu gpu = { .pci = pci,
                     .dev = (int)device_number(m->t, device),
                     .rank = (int)device_number(m->t, device),
                     .sm = m->t->sm,
                     .gdr = m->t->gdr && !m->t->without_gdr[device] };

    g_array_append_val(m->xml->gpu, gpu);
}

static void
add_net(Maker *m, guint device, guint pci, guint cpu)
{
    const TtTemplate *t = m->t;
    const TtBundle *cable = &g_array_index(t->bundles, TtBundle, t->bundles->len - 1);
    guint number = device_number(t, device);
    gboolean is_ib = strcmp(cable->kind, "ib") == 0;
    TtXmlNet net = { .pci = pci,
                     .cpu = cpu,
                     .name = g_strdup_printf("%s%u",
                                             t->nic_prefix ? t->nic_prefix
                                             : is_ib       ? "mlx5_"
                                                           : "net",
                                             number),
                     .dev = number,
                     .speed_mbps =
                         (int)round(MIN(t->nic_reported_bytes_per_s[number] * 8e-6, G_MAXINT32)),
                     .port = 1,
                     .latency_us = t->nic_reported_latency_s * 1e6,
                     .guid = g_strdup_printf("0x%x", 0x1001 + number),
                     .max_conn = 131072,
                     .gdr = t->gdr && !t->without_gdr[device],
                     .coll = t->sharp,
                     .keep = TRUE };

    g_array_append_val(m->xml->net, net);
}

/* Links faster than any PCIe are no links. */
static gboolean
is_inside_device(const Maker *m, guint device)
{
    return bundle_of(m->t, m->uplink[device])->bytes_per_s >= 1e12;
}

/* @device's children in the tree, and theirs. @pci: its own, TT_NO_INDEX for a CPU. */
static void
add_below(Maker *m, guint device, guint cpu, guint pci)
{
    const TtTemplate *t = m->t;

    for (guint d = 0; d < t->n_devices; d++) {
        TtDeviceKind kind = tt_template_kind_of(t, d);
        guint own;

        if (m->parent[d] != device || d == device)
            continue;
        if (kind == TT_DEVICE_NIC && is_inside_device(m, d)) { /* a port of what is above */
            if (pci != TT_NO_INDEX)
                g_array_index(m->xml->pci, TtXmlPci, pci).class_id = 0x020700;
            add_net(m, d, pci, cpu);
            continue;
        }
        own = add_pci(m, d, cpu, pci);
        if (kind == TT_DEVICE_GPU)
            add_gpu(m, d, own);
        else if (kind == TT_DEVICE_NIC)
            add_net(m, d, own, cpu);
        else
            add_below(m, d, cpu, own);
    }
}

/* --- what no PCIe link leads to ----------------------------------------------------------------
 */

/* The CPU a C2C link leads to, else the one whose turn it is: blocks, as "each-to-own" has them. */
static guint
cpu_without_pcie(const TtTemplate *t, guint device)
{
    TtDeviceKind kind = tt_template_kind_of(t, device);

    for (guint w = 0; w < t->wires->len; w++)
        if (wire_at(t, w)->from == device && wire_at(t, w)->to < t->n_devices &&
            tt_template_kind_of(t, wire_at(t, w)->to) == TT_DEVICE_CPU)
            return device_number(t, wire_at(t, w)->to);
    return (device - t->first[kind]) * MAX(t->count[TT_DEVICE_CPU], 1) / t->count[kind];
}

static void
add_stray(Maker *m, guint cpu)
{
    const TtTemplate *t = m->t;

    for (guint d = 0; d < t->n_devices; d++) {
        TtDeviceKind kind = tt_template_kind_of(t, d);

        if (m->parent[d] != NO_DEVICE || (kind != TT_DEVICE_GPU && kind != TT_DEVICE_NIC) ||
            cpu_without_pcie(t, d) != cpu)
            continue;
        if (kind == TT_DEVICE_GPU)
            add_gpu(m, d, add_pci(m, d, cpu, TT_NO_INDEX));
        else
            add_net(m, d, TT_NO_INDEX, cpu);
    }
}

/* --- links -------------------------------------------------------------------------------------
 */

static guint
gpu_index(const Maker *m, guint device)
{
    guint i = 0;

    while (g_array_index(m->xml->gpu, TtXmlGpu, i).pci != m->pci[device])
        i++;
    return i;
}

static char *
bus_id_of(const Maker *m, guint device)
{
    if (m->pci[device] == TT_NO_INDEX) /* NVSwitches stand behind all the rest */
        return g_strdup_printf("ffff:%02x:00.0", device_number(m->t, device));
    return g_strdup(g_array_index(m->xml->pci, TtXmlPci, m->pci[device]).bus_id);
}

static void
add_nvlink(Maker *m, guint w, guint gpu)
{
    const TtWire *wire = wire_at(m->t, w);
    TtXmlNvlink link = { .gpu = gpu, .target = bus_id_of(m, wire->to), .count = links_of(m->t, w) };

    switch (tt_template_kind_of(m->t, wire->to)) {
    case TT_DEVICE_GPU: link.target_class = 0x030200; break;
    case TT_DEVICE_CPU: link.target_class = 0x068001; break;
    default: link.target_class = 0x068000; break;
    }
    g_array_append_val(m->xml->nvlink, link);
}

static void
add_links(Maker *m)
{
    const TtTemplate *t = m->t;

    for (guint i = 0; i < t->count[TT_DEVICE_GPU]; i++) {
        guint gpu = gpu_index(m, i);

        for (guint w = 0; w < t->wires->len; w++) {
            if (wire_at(t, w)->from != i)
                continue;
            if (is_kind(t, w, "nvlink") || is_kind(t, w, "xgmi")) {
                add_nvlink(m, w, gpu);
            } else if (is_kind(t, w, "c2c")) {
                TtXmlC2c link = { .gpu = gpu,
                                  .mb_per_s = round(bundle_of(t, w)->capacity_bytes_per_s / 1e6),
                                  .count = links_of(t, w) };

                g_array_append_val(m->xml->c2c, link);
            }
        }
    }
    for (guint w = 0; w < t->wires->len; w++) { /* switch to switch, outside of the tree */
        const TtWire *wire = wire_at(t, w);
        TtXmlPciLink link = { 0 };

        if (!is_kind(t, w, "pcie") || wire->to >= t->n_devices ||
            tt_template_kind_of(t, wire->from) != TT_DEVICE_PCIE_SWITCH ||
            tt_template_kind_of(t, wire->to) != TT_DEVICE_PCIE_SWITCH ||
            m->parent[wire->from] == wire->to || m->parent[wire->to] == wire->from ||
            m->pci[wire->from] == TT_NO_INDEX || m->pci[wire->to] == TT_NO_INDEX)
            continue;
        link.pci = m->pci[wire->from];
        link.target = bus_id_of(m, wire->to);
        g_array_append_val(m->xml->pci_link, link);
    }
}

static int
by_gpu(gconstpointer a, gconstpointer b)
{
    guint first = ((const TtXmlNvlink *)a)->gpu, second = ((const TtXmlNvlink *)b)->gpu;

    return first < second ? -1 : first > second;
}

/* --- all of it ---------------------------------------------------------------------------------
 */

static void
add_cpus(Maker *m)
{
    const TtTemplate *t = m->t;
    guint n = MAX(t->count[TT_DEVICE_CPU], 1);

    for (guint i = 0; i < n; i++) {
        guint tray = i * t->trays / n, first = (tray * n + t->trays - 1) / t->trays;
        TtXmlCpu cpu = { .numa_id = i - MIN(first, i),
                         .arch = g_strdup(t->cpu_arch),
                         .vendor = g_strdup(t->cpu_vendor),
                         .family = t->cpu_family,
                         .model = t->cpu_model };

        if (t->trays > 1)
            cpu.host_hash = g_strdup_printf("0x%x", tray + 1);
        g_array_append_val(m->xml->cpu, cpu);
        if (i < t->count[TT_DEVICE_CPU])
            add_below(m, t->first[TT_DEVICE_CPU] + i, i, TT_NO_INDEX);
        add_stray(m, i);
    }
}

static gboolean
check(const TtTopology *topo, GError **error)
{
    const TtTemplate *t = topo->node;

    if (t->count[TT_DEVICE_GPU] && t->sm)
        return TRUE;
    g_set_error(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_USAGE,
                t->count[TT_DEVICE_GPU]
                    ? "%s: NCCL's view of it needs the GPUs' generation: sm = 90 (H100) in [node]"
                    : "%s: has no GPUs, which NCCL is about",
                topo->name);
    return FALSE;
}

TtNcclXml *
tt_nccl_xml_of_topology(const TtTopology *topo, GError **error)
{
    const TtTemplate *t = topo->node;
    g_autofree guint *parent = g_new(guint, t->n_devices), *uplink = g_new0(guint, t->n_devices),
                     *pci = g_new(guint, t->n_devices);
    Maker m = { .t = t, .parent = parent, .uplink = uplink, .pci = pci, .next_bus = 1 };

    if (topo->nccl_xml) {
        g_autofree char *text = tt_nccl_xml_to_text(topo->nccl_xml);

        return tt_nccl_xml_parse(topo->nccl_xml->origin, text, strlen(text), error);
    }
    if (!check(topo, error))
        return NULL;
    m.xml = tt_nccl_xml_new(topo->name);
    for (guint d = 0; d < t->n_devices; d++)
        pci[d] = TT_NO_INDEX;
    find_parents(&m);
    add_cpus(&m);
    add_links(&m);
    g_array_sort(m.xml->nvlink, by_gpu); /* document order */
    return m.xml;
}
