/* nccl_lint_nics - NICs: how far, how fast, and whether they reach GPU memory. */
#include "topologies/nccl_lint_private.h"

/* NCCL's path types between two PCI devices: one switch, several, through the CPU, across CPUs. */
typedef enum { PIX, PXB, PHB, SYS } Path;

static Path
path_between(const TtLint *l, guint gpu_pci, guint net_pci, guint net_cpu)
{
    guint a = gpu_pci, b = net_pci, hops = 0;

    if (tt_xml_pci_at(l->xml, gpu_pci)->cpu != net_cpu)
        return SYS;
    while (a != b && a != TT_NO_INDEX && b != TT_NO_INDEX) {
        if (l->depth[a] > l->depth[b])
            a = tt_xml_pci_at(l->xml, a)->parent;
        else
            b = tt_xml_pci_at(l->xml, b)->parent;
        hops++;
    }
    if (a != b || a == TT_NO_INDEX)
        return PHB;
    return hops <= 2 ? PIX : PXB;
}

static Path
nearest_gpu(const TtLint *l, guint net, guint *gpu)
{
    Path best = SYS;

    *gpu = 0;
    for (guint i = 0; i < l->xml->gpu->len; i++) {
        Path path = path_between(l, tt_xml_gpu_at(l->xml, i)->pci, tt_xml_net_at(l->xml, net)->pci,
                                 tt_xml_net_at(l->xml, net)->cpu);

        if (path < best) {
            best = path;
            *gpu = i;
        }
    }
    return best;
}

static Path
nearest_net(const TtLint *l, guint gpu)
{
    Path best = SYS;

    for (guint i = 0; i < l->xml->net->len; i++)
        best =
            MIN(best, path_between(l, tt_xml_gpu_at(l->xml, gpu)->pci,
                                   tt_xml_net_at(l->xml, i)->pci, tt_xml_net_at(l->xml, i)->cpu));
    return best;
}

static gboolean
has_c2c(const TtLint *l, guint gpu)
{
    for (guint i = 0; i < l->xml->c2c->len; i++)
        if (g_array_index(l->xml->c2c, TtXmlC2c, i).gpu == gpu)
            return TRUE;
    return FALSE;
}

static gboolean
has_nvlink(const TtLint *l, guint gpu)
{
    for (guint i = 0; i < l->xml->nvlink->len; i++)
        if (g_array_index(l->xml->nvlink, TtXmlNvlink, i).gpu == gpu)
            return TRUE;
    return FALSE;
}

static void
lint_far_gpu(TtLint *l, guint gpu, Path path)
{
    gboolean nvlink = has_nvlink(l, gpu);

    tt_lint_add(l, nvlink ? TT_LINT_NOTE : TT_LINT_WARNING, "gpu-nic-far",
                g_strdup(path == SYS ? "every NIC is across sockets (SYS)"
                                     : "every NIC is across the CPU (PHB)"),
                tt_lint_name_gpu(l, gpu), g_strdup("a NIC below the same PCIe switch"),
                nvlink ? "goes over NVLink to a GPU nearer a NIC (PXN), else without GPUDirect"
                       : "GPUDirect is off for it: farther than PXB; its network data crosses host "
                         "memory");
}

/* Over C2C the CPU is no detour (path type P2C, NCCL 2.27+). */
static void
lint_distance(TtLint *l)
{
    guint n_far = 0, n_gpus = l->xml->gpu->len;
    g_autofree Path *path = g_new0(Path, n_gpus + 1);

    if (l->xml->net->len == 0 || n_gpus == 0)
        return;
    for (guint i = 0; i < n_gpus; i++) {
        path[i] = has_c2c(l, i) ? PIX : nearest_net(l, i);
        n_far += path[i] >= PHB;
    }
    if (n_far == n_gpus) {
        tt_lint_add(l, TT_LINT_WARNING, "all-phb",
                    g_strdup("no GPU shares a PCIe switch with a NIC"), g_strdup("whole node"),
                    g_strdup("GPUs and NICs below common PCIe switches"),
                    "GPUDirect is off: PHB is farther than PXB. In a virtual machine the switches "
                    "are only hidden: give NCCL a file that shows them (NCCL_TOPO_FILE)");
        return;
    }
    for (guint i = 0; i < n_gpus; i++)
        if (path[i] >= PHB)
            lint_far_gpu(l, i, path[i]);
    for (guint i = 0; i < l->xml->net->len; i++) {
        guint gpu;

        if (nearest_gpu(l, i, &gpu) < PHB || has_c2c(l, gpu))
            continue;
        tt_lint_add(l, TT_LINT_NOTE, "nic-far", g_strdup("no GPU below the same PCIe switch"),
                    tt_lint_name_net(l, i), g_strdup("a GPU within PXB"),
                    "uses it last, without GPUDirect; a NIC for storage or management belongs out "
                    "of NCCL_IB_HCA");
    }
}

static gboolean
is_usual_speed(int mbps)
{
    static const int usual[] = { 1000,  2500,  5000,   10000,  20000,  25000,  40000, 50000,
                                 56000, 80000, 100000, 200000, 400000, 800000, 0 };

    for (const int *speed = usual; *speed; speed++)
        if (mbps == *speed)
            return TRUE;
    return FALSE;
}

static void
lint_speeds(TtLint *l)
{
    int most = 0;

    for (guint i = 0; i < l->xml->net->len; i++)
        most = MAX(most, tt_xml_net_at(l->xml, i)->speed_mbps);
    for (guint i = 0; i < l->xml->net->len; i++) {
        int speed = tt_xml_net_at(l->xml, i)->speed_mbps;

        if (speed <= 0)
            tt_lint_add(l, TT_LINT_WARNING, "nic-speed-unknown", g_strdup_printf("speed %d", speed),
                        tt_lint_name_net(l, i), g_strdup("its speed in Mbit/s"),
                        "takes it for 10 Gbit/s");
        else if (speed < most)
            tt_lint_add(
                l, TT_LINT_WARNING, "nic-speed", g_strdup_printf("%g Gbit/s", speed / 1000.0),
                tt_lint_name_net(l, i),
                g_strdup_printf("%g Gbit/s, as the fastest NIC", most / 1000.0),
                "a channel over it runs at its pace, so the search leaves it out where the others "
                "make faster ones, and loses a NIC; a link that came up slow, or a NIC that "
                "belongs "
                "out of NCCL_IB_HCA");
        else if (!is_usual_speed(speed))
            tt_lint_add(l, TT_LINT_NOTE, "nic-speed-odd",
                        g_strdup_printf("%g Gbit/s", speed / 1000.0), tt_lint_name_net(l, i),
                        g_strdup("a usual speed (100, 200, 400, 800 Gbit/s)"),
                        "plans with the figure as it stands");
    }
}

static void
lint_gdr(TtLint *l)
{
    guint n_gpus = 0, n_nets = 0;

    for (guint i = 0; i < l->xml->gpu->len; i++)
        n_gpus += !tt_xml_gpu_at(l->xml, i)->gdr;
    for (guint i = 0; i < l->xml->net->len; i++)
        n_nets += !tt_xml_net_at(l->xml, i)->gdr;
    if (n_gpus > 0 && l->xml->net->len > 0)
        tt_lint_add(l, TT_LINT_WARNING, "gpu-gdr", g_strdup("gdr=0"),
                    g_strdup_printf("%u of %u GPUs", n_gpus, l->xml->gpu->len), g_strdup("gdr=1"),
                    "GPUDirect is off: network data is staged in host memory (a driver without "
                    "nvidia-peermem or DMA-BUF, or a GPU that cannot)");
    if (n_nets > 0)
        tt_lint_add(
            l, TT_LINT_WARNING, "nic-gdr", g_strdup("gdr=0"),
            g_strdup_printf("%u of %u NICs", n_nets, l->xml->net->len), g_strdup("gdr=1"),
            "GPUDirect is off: network data is staged in host memory (sockets, or an IB driver "
            "without peer memory)");
    if (l->xml->net->len == 0)
        tt_lint_add(l, TT_LINT_NOTE, "no-nic", g_strdup("no NIC"), g_strdup("whole node"),
                    g_strdup("at least one for more than one node"), "");
}

void
tt_lint_nics(TtLint *l)
{
    lint_speeds(l);
    lint_distance(l);
    lint_gdr(l);
}
