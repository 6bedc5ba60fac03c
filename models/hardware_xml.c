/* One node as NCCL would have detected it: CPUs, PCI switches, GPUs and NICs where such machines have them.
 *
 * Slots are PCI switches, or CPUs where nothing stands between; GPUs and NICs are dealt out evenly over
 * them in order, which is how DGX and HGX machines, Polaris, ABCI and the cloud instances are laid out.
 */
#include "models/hardware.h"

#include <string.h>

#define NVSWITCH_BUS   "fffffff:ff:ff.0" /* as in NCCL's own dumps of switched systems */
#define NVSWITCH_CLASS 0x068000u
#define GPU_CLASS      0x030200u
#define SWITCH_CLASS   0x060400u
#define NIC_CLASS      0x020000u
#define BUSES_PER_SLOT 28 /* GPUs from 1, NICs from 14, the switch itself is 0 */
#define FIRST_NIC_BUS  14
#define MOST_PER_SLOT  13

typedef struct {
    guint n_cpus, n_switches;
} Layout;

typedef struct {
    const TtHardware *h;
    TtNcclXml *xml;
    Layout layout;
    guint host;                  /* which node of an NVLink domain */
    guint cpu[8], slot[8];       /* indices in the file; slot: of PCI switches */
    guint n_slots;               /* switches, or CPUs */
    guint n_in_slot[8][2];       /* GPUs, NICs so far */
    guint gpu[TT_NCCL_MAX_GPUS]; /* indices of this node's GPUs */
    char *bus[TT_NCCL_MAX_GPUS]; /* their bus ids, owned by the file */
} Maker;

/* Sources: vendors' user guides (DGX-1, DGX-2, DGX A100, DGX H100, DGX B200), the ABCI, Summit, Polaris,
 * Snellius and Alps documentation. */
static Layout
layout_of(const TtHardware *h)
{
    static const struct {
        const char *family;
        int intra; /* -1: any */
        guint board;
        Layout layout;
    } rows[] = {
        { "GH200", -1, 0, { 4, 0 } }, /* four modules, each CPU its GPU and NIC */
        { "GB200", -1, 0, { 2, 0 } }, /* two GPUs to a Grace */
        { "GB300", -1, 0, { 2, 0 } },
        { "GB10", -1, 0, { 1, 0 } },
        { "V100", TT_INTRA_NVSWITCH, 0, { 2, 8 } },    /* DGX-2: two GPUs to a switch */
        { "V100", TT_INTRA_NVLINK_MESH, 4, { 2, 2 } }, /* ABCI */
        { "V100", TT_INTRA_NVLINK_MESH, 6, { 2, 0 } }, /* Summit */
        { "V100", -1, 0, { 2, 4 } },                   /* DGX-1 */
        { "P100", -1, 0, { 2, 4 } },
        { "A100", TT_INTRA_NVLINK_MESH, 0, { 1, 0 } }, /* Polaris: root ports of one CPU */
        { "A100", -1, 0, { 2, 4 } }, /* DGX A100: two GPUs, two NICs to a switch */
        { "A800", -1, 0, { 2, 4 } },
        { "H100", TT_INTRA_NVLINK_MESH, 0, { 2, 4 } },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
        if (!strcmp(h->gpu->family, rows[i].family) &&
            (rows[i].intra < 0 || rows[i].intra == (int)h->intra) &&
            (!rows[i].board || rows[i].board == h->board_gpus))
            return rows[i].layout;
    if (h->gpu->n_links && (h->board_gpus == 8 || !h->gpu->nvidia))
        return (Layout){ 2, 8 };   /* DGX H100 and its like: one GPU to a switch */
    if (h->intra == TT_INTRA_PCIE) /* peers need a common switch */
        return h->gpus_per_node <= 4 ? (Layout){ 1, 1 } : (Layout){ 2, 2 };
    return h->gpus_per_node <= 2 && !h->nic_far ? (Layout){ 1, 0 } : (Layout){ 2, 0 };
}

/* GT/s of one lane: generation 3 has 8, and each doubles. */
static double
lane_gts(guint pcie_gen)
{
    return pcie_gen >= 3 ? 8.0 * (1 << (pcie_gen - 3)) : 5.0;
}

static guint
add_pci(Maker *k, guint slot, guint bus, guint32 class_id, double gts, guint width)
{
    gboolean below = class_id != SWITCH_CLASS && k->layout.n_switches;
    TtXmlPci pci = { .cpu = k->cpu[slot * k->layout.n_cpus / k->n_slots],
                     .parent = below ? k->slot[slot] : TT_NO_INDEX,
                     .bus_id = g_strdup_printf("%04x:%02x:00.0", k->host,
                                               slot * BUSES_PER_SLOT + bus + 1),
                     .class_id = class_id,
                     .link_gts = gts,
                     .link_width = width };

    g_array_append_val(k->xml->pci, pci);
    return k->xml->pci->len - 1;
}

static void
add_cpu(Maker *k, guint c)
{
    TtXmlCpu cpu = { .numa_id = k->host * k->layout.n_cpus + c,
                     .affinity = g_strdup("ffff"),
                     .arch = g_strdup(k->h->cpu_arch),
                     .vendor = g_strdup(k->h->cpu_vendor),
                     .family = k->h->cpu_family,
                     .model = k->h->cpu_model,
                     .host_hash = k->h->mnnvl ? g_strdup_printf("0x%x", k->host + 1) : NULL };

    k->cpu[c] = k->xml->cpu->len;
    g_array_append_val(k->xml->cpu, cpu);
}

static void
add_c2c(Maker *k, guint gpu)
{
    /* links and MB/s of each, from dumps of GB200/GB300 (5 of 44712) and GB10 (8 of 43125) posted
     * publicly; a GH200 has a CPU to itself and twice the links */
    gboolean gb10 = !strcmp(k->h->gpu->family, "GB10");
    TtXmlC2c c2c = { .gpu = gpu,
                     .mb_per_s = gb10 ? 43125 : 44712,
                     .count = gb10                                  ? 8
                              : !strcmp(k->h->gpu->family, "GH200") ? 10
                                                                    : 5 };

    if (!strcmp(k->h->cpu_arch, "arm64"))
        g_array_append_val(k->xml->c2c, c2c);
}

static void
add_gpu(Maker *k, guint g, guint slot)
{
    guint pci =
        add_pci(k, slot, 1 + k->n_in_slot[slot][0]++, GPU_CLASS, lane_gts(k->h->gpu->pcie_gen), 16);
    TtXmlGpu gpu = { .pci = pci,
                     .dev = (int)g,
                     .rank = (int)(k->host * k->h->gpus_per_node + g),
                     .sm = k->h->gpu->sm,
                     .gdr = k->h->gdr };

    k->gpu[g] = k->xml->gpu->len;
    k->bus[g] = g_array_index(k->xml->pci, TtXmlPci, pci).bus_id;
    g_array_append_val(k->xml->gpu, gpu);
    add_c2c(k, k->gpu[g]);
}

static void
add_nvlink(Maker *k, guint from, const char *target, guint count, guint32 target_class)
{
    TtXmlNvlink link = { .gpu = k->gpu[from],
                         .target = g_strdup(target),
                         .count = count,
                         .target_class = target_class };

    g_array_append_val(k->xml->nvlink, link);
}

/* One link to each other GPU of the board; the two halves of an MI250X have four between them and reach two
 * other modules; the partitions of an MI300X share its links. AMD's CDNA 2 and CDNA 3 white papers. */
static guint
links_of_xgmi(const TtHardware *h, guint a, guint b)
{
    guint apart = MAX(a, b) - MIN(a, b);

    if (!strcmp(h->gpu->family, "MI250X"))
        return a / 2 == b / 2 ? 4 : apart == 2 || apart == 6 ? 1 : 0;
    if (h->board_gpus > 8)
        return a / 8 == b / 8 ? h->gpu->n_links : 1;
    return 1;
}

/* Links between two GPUs of a board without a switch. */
static guint
links_between(const TtHardware *h, guint a, guint b)
{
    /* the hybrid cube mesh of DGX-1V; NVIDIA/nccl issue 671 has one as XML */
    static const guint8 cube[8][8] = {
        { 0, 1, 1, 2, 2, 0, 0, 0 }, { 1, 0, 2, 1, 0, 2, 0, 0 }, { 1, 2, 0, 2, 0, 0, 1, 0 },
        { 2, 1, 2, 0, 0, 0, 0, 1 }, { 2, 0, 0, 0, 0, 1, 1, 2 }, { 0, 2, 0, 0, 1, 0, 2, 1 },
        { 0, 0, 1, 0, 1, 2, 0, 2 }, { 0, 0, 0, 1, 2, 1, 2, 0 },
    };

    if (h->intra == TT_INTRA_NVLINK_PAIRS)
        return a / 2 == b / 2 ? h->gpu->n_links : 0;
    if (h->intra == TT_INTRA_XGMI)
        return links_of_xgmi(h, a, b);
    if (h->board_gpus ==
        6) /* Summit: two groups of three, two links to each other GPU and to the CPU */
        return a / 3 == b / 3 ? h->gpu->n_links / 3 : 0;
    if (h->board_gpus == 4)
        return h->gpu->n_links / 3;
    return a < 8 && b < 8 ? cube[a][b] * h->gpu->n_links / 6 : 0;
}

static void
add_nvlinks(Maker *k)
{
    const TtHardware *h = k->h;
    guint n = h->gpus_per_node;

    for (guint a = 0; a < n; a++) {
        if (h->intra == TT_INTRA_NVSWITCH)
            add_nvlink(k, a, NVSWITCH_BUS, h->gpu->n_links, NVSWITCH_CLASS);
        if (h->intra != TT_INTRA_NVLINK_MESH && h->intra != TT_INTRA_NVLINK_PAIRS &&
            h->intra != TT_INTRA_XGMI)
            continue;
        for (guint b = 0; b < n; b++)
            if (a != b && links_between(h, a, b))
                add_nvlink(k, a, k->bus[b], links_between(h, a, b), GPU_CLASS);
    }
}

/* One NCCL network device: a NIC, or several that the network plug-in drives as one. On AWS it does so
 * from p5 on, one group for each GPU (aws-ofi-nccl, multi-rail protocol). */
static guint
nics_per_device(const TtHardware *h)
{
    gboolean grouped = h->net == TT_NET_EFA && h->gpu->sm >= 90;

    return grouped ? MAX(h->nics_per_node / h->board_gpus, 1) : 1;
}

static void
add_nic(Maker *k, guint slot, guint dev, guint n_together)
{
    static const char *const prefixes[] = { "mlx5_", "mlx5_", "mlx5_", "mlx5_",
                                            "efa_",  "cxi",   "eth",   "eth" };
    double gbits = k->h->nic_gbits * n_together;
    gboolean gb10 = !strcmp(k->h->gpu->family, "GB10"); /* four lanes: posted topology dumps */
    guint gen = k->h->nic_gbits <= 100 ? 3 : k->h->nic_gbits <= 200 ? 4 : 5;
    guint pci;
    TtXmlNet net = { 0 };

    if (n_together > 1 ||
        gbits > 400) /* several NICs have several slots: do not let one narrow them */
        gen = gbits > 400 ? 6 : 5;
    pci = add_pci(k, slot, FIRST_NIC_BUS + k->n_in_slot[slot][1]++, NIC_CLASS,
                  lane_gts(gb10 ? 5 : gen), gb10 ? 4 : 16);
    net = (TtXmlNet){ .pci = pci,
                      .cpu = g_array_index(k->xml->pci, TtXmlPci, pci).cpu,
                      .name = g_strdup_printf("%s%u", prefixes[k->h->net], dev),
                      .dev = dev,
                      .speed_mbps = (int)(gbits * 1000),
                      .port = 1,
                      .latency_us = k->h->net_latency_us,
                      .guid = g_strdup_printf("0x%x", 0x1000 + dev),
                      .max_conn = 131072,
                      .keep = TRUE,
                      .gdr = k->h->gdr };
    g_array_append_val(k->xml->net, net);
}

static guint
n_devices(const Maker *k)
{
    guint n = MIN(k->h->nics_per_node / nics_per_device(k->h), k->n_slots * MOST_PER_SLOT);

    if (k->h->gpus_per_node == 1) /* of a bigger machine: the nearest only */
        return MAX(n / k->h->board_gpus, 1);
    return n;
}

static guint
slot_of_nic(const Maker *k, guint i)
{
    if (k->h->nic_far)
        return k->n_slots - 1;
    return k->h->gpus_per_node == 1 ? 0 : i * k->n_slots / n_devices(k);
}

static void
add_slot(Maker *k, guint slot)
{
    if (k->layout.n_switches)
        k->slot[slot] = add_pci(k, slot, 0, SWITCH_CLASS, lane_gts(k->h->gpu->pcie_gen), 16);
    for (guint g = 0; g < k->h->gpus_per_node; g++)
        if (g * k->n_slots / k->h->board_gpus == slot)
            add_gpu(k, g, slot);
    for (guint i = 0; i < n_devices(k); i++)
        if (slot_of_nic(k, i) == slot)
            add_nic(k, slot, k->xml->net->len, nics_per_device(k->h));
}

/* In the order in which a file has them. */
static void
add_node(Maker *k)
{
    for (guint c = 0; c < k->layout.n_cpus; c++) {
        add_cpu(k, c);
        for (guint slot = 0; slot < k->n_slots; slot++)
            if (slot * k->layout.n_cpus / k->n_slots == c)
                add_slot(k, slot);
    }
    add_nvlinks(k);
}

static gboolean
check(const TtHardware *h, GError **error)
{
    guint n = h->mnnvl ? h->gpus_per_node * h->domain_nodes : h->gpus_per_node;

    guint most = h->mnnvl ? TT_NCCL_MAX_GPUS : h->gpu->nvidia ? 16 : 64; /* 64: CPX partitions */

    if (n > most) {
        g_set_error(error, TT_HARDWARE_ERROR, TT_HARDWARE_ERROR_USAGE,
                    "%u GPUs in one node: at most %u", n, most);
        return FALSE;
    }
    return TRUE;
}

TtNcclXml *
tt_hardware_xml(const TtHardware *h, guint *n_nodes, GError **error)
{
    g_autoptr(TtNcclXml) xml = NULL;
    g_autofree char *origin = tt_hardware_text(h);

    if (!check(h, error))
        return NULL;
    xml = tt_nccl_xml_new(origin);
    for (guint host = 0; host < h->domain_nodes; host++) {
        Maker k = { .h = h, .xml = xml, .layout = layout_of(h), .host = host };

        k.n_slots = k.layout.n_switches ? k.layout.n_switches : k.layout.n_cpus;
        g_assert(k.layout.n_cpus <= 8 && k.n_slots <= 8);
        add_node(&k);
    }
    *n_nodes = (h->n_nodes + h->domain_nodes - 1) / h->domain_nodes;
    return g_steal_pointer(&xml);
}
