/* The facts in words become classes and numbers; what is missing is filled in by kind of machine. */
#include "models/hardware.h"

#include <string.h>

#define NVL72_TRAYS 18 /* of four GPUs in one NVLink domain: NVIDIA GB200 NVL72 */

GQuark
tt_hardware_error_quark(void)
{
    return g_quark_from_static_string("tt-hardware-error");
}

const char *
tt_intra_name(TtIntra intra)
{
    static const char *const names[] = { "one GPU", "NVSwitch",    "NVLink mesh", "NVLink pairs",
                                         "PCIe",    "host memory", "xGMI" };

    g_assert(intra < TT_N_INTRA);
    return names[intra];
}

const char *
tt_net_class_name(TtNetClass net)
{
    static const char *const names[] = { "no network", "unknown network", "InfiniBand", "RoCE",
                                         "EFA",        "Slingshot",       "TCPX",       "TCP" };

    g_assert(net < TT_N_NETS);
    return names[net];
}

static gboolean
has(const char *text, const char *word)
{
    g_autofree char *low = text ? g_ascii_strdown(text, -1) : NULL;

    return low && strstr(low, word);
}

static gboolean
is_one_of(const TtGpuModel *gpu, const char *families)
{
    g_auto(GStrv) list = g_strsplit(families, ",", 0);

    return g_strv_contains((const char *const *)list, gpu->family);
}

static gboolean
is_rack_scale(const TtGpuModel *gpu)
{
    return is_one_of(gpu, "GB200,GB300");
}

/* What GPUs of a kind are wired with where nobody says. */
static TtIntra
usual_intra(const TtGpuModel *gpu)
{
    if (!gpu->nvidia)
        return gpu->n_links ? TT_INTRA_XGMI : TT_INTRA_PCIE;
    if (!strcmp(gpu->name, "V100-SXM2") || is_one_of(gpu, "P100,GH200"))
        return TT_INTRA_NVLINK_MESH;
    if (is_one_of(gpu, "V100,A100,A800,H100,H200,H20,H800,B200,B300,GB200,GB300"))
        return TT_INTRA_NVSWITCH;
    return gpu->peer_access ? TT_INTRA_PCIE : TT_INTRA_SHM; /* bridges are rare */
}

static TtIntra
stated_intra(const TtMeasured *m, const TtGpuModel *gpu)
{
    static const char *const without_peers[] = { "no p2p", "without p2p", "shared memory",
                                                 "host memory" };

    if (has(m->intra, "nvswitch"))
        return TT_INTRA_NVSWITCH;
    if (has(m->intra, "bridge") || has(m->intra, "ring"))
        return TT_INTRA_NVLINK_PAIRS;
    if (has(m->intra, "nvlink"))
        return TT_INTRA_NVLINK_MESH;
    if (has(m->intra, "xgmi") || has(m->intra, "infinity fabric"))
        return TT_INTRA_XGMI;
    if (has(m->intra, "pci")) {
        for (guint i = 0; i < G_N_ELEMENTS(without_peers); i++)
            if (has(m->intra_detail, without_peers[i]))
                return TT_INTRA_SHM;
        /* Who describes the way and says nothing of missing peer access has it (4090s by a patched driver). */
        return gpu->peer_access || (m->intra_detail && m->intra_detail[0]) ? TT_INTRA_PCIE
                                                                           : TT_INTRA_SHM;
    }
    return TT_N_INTRA;
}

static void
fill_intra(TtHardware *h, const TtMeasured *m)
{
    TtIntra stated = h->gpus_per_node == 1 ? TT_INTRA_NONE : stated_intra(m, h->gpu);

    h->intra_assumed = stated == TT_N_INTRA;
    h->intra = h->intra_assumed ? usual_intra(h->gpu) : stated;
    h->domain_nodes = 1;
    h->mnnvl = h->n_nodes > 1 && is_rack_scale(h->gpu) &&
               (h->intra_assumed || has(m->intra, "multi-node") || has(m->intra, "nvl72"));
    if (h->mnnvl) { /* racks are taken as equally full */
        guint n_racks = (h->n_nodes + NVL72_TRAYS - 1) / NVL72_TRAYS;

        h->intra = TT_INTRA_NVSWITCH;
        h->domain_nodes = (h->n_nodes + n_racks - 1) / n_racks;
    }
}

/* How many GPUs a machine has of which this many take part. */
static guint
board_gpus(const TtHardware *h)
{
    guint n = h->gpus_per_node;

    if (is_rack_scale(h->gpu) || !strcmp(h->gpu->family, "GH200"))
        return MAX(n, 4);
    if (h->intra == TT_INTRA_NVLINK_MESH)
        return n <= 4 ? 4 : n <= 6 ? 6 : MAX(n, 8);
    if (h->intra == TT_INTRA_XGMI)
        return MAX(n, 8);
    if (!strcmp(h->gpu->name, "V100-SXM3"))
        return MAX(n, 16);
    if (h->intra == TT_INTRA_NVSWITCH ||
        (h->intra == TT_INTRA_NONE && usual_intra(h->gpu) != TT_INTRA_PCIE &&
         usual_intra(h->gpu) != TT_INTRA_SHM))
        return MAX(n, 8);
    return n;
}

static TtNetClass
stated_net(const TtMeasured *m)
{
    static const struct {
        const char *word;
        TtNetClass net;
    } words[] = {
        { "tcpx", TT_NET_TCPX },
        { "roce or tcp", TT_NET_UNKNOWN },
        { "tcp", TT_NET_TCP },
        { "socket", TT_NET_TCP },
        { "ib or roce", TT_NET_IB },
        { "infiniband", TT_NET_IB },
        { "roce", TT_NET_ROCE },
        { "efa", TT_NET_EFA },
        { "slingshot", TT_NET_SLINGSHOT },
    };

    for (guint i = 0; i < G_N_ELEMENTS(words); i++)
        if (has(m->inter, words[i].word))
            return words[i].net;
    return TT_NET_UNKNOWN;
}

/* NICs of a machine and their speed where nobody says: NVIDIA's own machines; one of 100 Gbit/s beside
 * cards. */
static void
usual_nics(const TtHardware *h, guint *n, double *gbits)
{
    static const struct {
        const char *families;
        guint n;
        double gbits;
    } rows[] = {
        { "P100,V100", 4, 100 },
        { "A100,A800", 8, 200 },
        { "H100,H200,H20,H800", 8, 400 },
        { "B200", 8, 400 },
        { "B300", 8, 800 },
        { "GH200", 4, 200 },
        { "GB200", 4, 400 },
        { "GB300", 4, 800 },
        { "GB10", 1, 200 },
        { "MI250X", 4, 200 },
        { "MI300X,MI300X CPX,MI325X,MI350X", 8, 400 },
    };

    *n = 1;
    *gbits = 100;
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
        if (is_one_of(h->gpu, rows[i].families)) {
            *n = rows[i].n;
            *gbits = rows[i].gbits;
        }
    if (!strcmp(h->gpu->name, "V100-SXM3"))
        *n = 8;
    if (h->net == TT_NET_EFA) { /* AWS: p3dn, p4d, p5, p5en, p6 */
        gboolean h100 = !strcmp(h->gpu->family, "H100"), h200 = !strcmp(h->gpu->family, "H200");

        *n = h->gpu->sm < 80 ? 1 : h100 ? 32 : h200 ? 16 : h->gpu->sm < 90 ? 4 : 8;
        *gbits = h200 ? 200 : h->gpu->sm >= 100 ? 400 : 100;
    }
}

/* What the AWS plug-in states for its platforms, which NCCL adds to its own latency: p3dn, p4d, p5 and p5e,
 * p5en and later; nothing for g4dn. aws-ofi-nccl, table of EC2 platforms; before 2023 it stated none. */
static double
plugin_latency_us(const TtHardware *h, const TtMeasured *m)
{
    gboolean old = m->version_number ? m->version_number < TT_NCCL_VERSION(2, 15, 0)
                                     : m->date && strcmp(m->date, "2023") < 0;

    if (h->net != TT_NET_EFA || old || h->gpu->sm == 75)
        return 0;
    if (h->gpu->sm < 80)
        return 150;
    return h->gpu->sm >= 100 || (h->gpu->sm == 90 && h->nics_per_node == 16) ? 35 : 75;
}

static void
fill_net(TtHardware *h, const TtMeasured *m)
{
    guint n;
    double gbits;

    h->net = stated_net(m);
    usual_nics(h, &n, &gbits);
    h->nics_assumed = !m->nics_per_node || m->nic_gbits <= 0;
    h->nics_per_node = m->nics_per_node ? m->nics_per_node : n;
    h->nic_gbits = m->nic_gbits > 0 ? m->nic_gbits : gbits;
    h->nic_far = has(m->inter_name, "another socket");
    h->net_assumed = h->net == TT_NET_UNKNOWN || has(m->inter, " or ");
    if (h->n_nodes == h->domain_nodes)
        h->net = TT_NET_NONE;
    /* GPUDirect: not over sockets, not on consumer boards, and not on AWS before p4d (EFA on T4, V100) */
    h->gdr =
        h->net != TT_NET_TCP && h->gpu->peer_access && !(h->net == TT_NET_EFA && h->gpu->sm < 80);
    h->net_latency_us = plugin_latency_us(h, m);
}

/* The CPUs such machines come with. First row that fits. */
static void
fill_cpu(TtHardware *h)
{
    enum { ANY = 99 };
    static const struct {
        const char *families; /* NULL: any */
        int intra, net;
        guint nics, board; /* 0: any */
        const char *arch, *vendor;
        int family, model;
    } rows[] = {
        { "GH200,GB200,GB300,GB10", ANY, ANY, 0, 0, "arm64", NULL, -1, -1 }, /* Grace */
        { NULL, TT_INTRA_SHM, ANY, 0, 0, "x86_64", "GenuineIntel", 6, 85 },  /* see below */
        { "V100", TT_INTRA_NVLINK_MESH, ANY, 0, 6, "ppc64", NULL, -1, -1 },  /* Summit */
        { "V100", TT_INTRA_NVLINK_MESH, TT_NET_EFA, 0, 8, "x86_64", "GenuineIntel", 6, 85 },
        { "P100,V100", TT_INTRA_NVLINK_MESH, ANY, 0, 8, "x86_64", "GenuineIntel", 6,
          79 }, /* DGX-1 */
        { "V100,V100 PCIe,T4,RTX 20,P100,P100 PCIe", ANY, ANY, 0, 0, "x86_64", "GenuineIntel", 6,
          85 },
        { "A100", ANY, TT_NET_EFA, 0, 0, "x86_64", "GenuineIntel", 6, 85 },           /* AWS p4d */
        { "A100", TT_INTRA_NVSWITCH, ANY, 4, 0, "x86_64", "GenuineIntel", 6, 106 },   /* ABCI 2.0 */
        { "A100", TT_INTRA_NVLINK_MESH, ANY, 0, 0, "x86_64", "AuthenticAMD", 25, 1 }, /* Polaris */
        { "H100", ANY, TT_NET_EFA, 32, 0, "x86_64", "AuthenticAMD", 25, 1 },          /* AWS p5 */
        { "H100", TT_INTRA_NVLINK_MESH, ANY, 0, 0, "x86_64", "AuthenticAMD", 25,
          17 },                                                            /* Snellius */
        { "B200,B300", ANY, ANY, 0, 0, "x86_64", "GenuineIntel", 6, 207 }, /* DGX B200 */
        { "H100,H200,H20,H800,H100 PCIe,H100 NVL,H200 NVL,L40", ANY, ANY, 0, 0, "x86_64",
          "GenuineIntel", 6, 143 }, /* DGX H100 */
        { "MI300X,MI300X CPX,MI325X,MI350X,RTX PRO,RTX 50,R9700", ANY, ANY, 0, 0, "x86_64",
          "AuthenticAMD", 25, 17 },
        { NULL, ANY, ANY, 0, 0, "x86_64", "AuthenticAMD", 23, 49 }, /* DGX A100 and its time */
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        if ((rows[i].families && !is_one_of(h->gpu, rows[i].families)) ||
            (rows[i].intra != ANY && rows[i].intra != (int)h->intra) ||
            (rows[i].net != ANY && rows[i].net != (int)h->net) ||
            (rows[i].nics && rows[i].nics != h->nics_per_node) ||
            (rows[i].board && rows[i].board != h->board_gpus))
            continue;
        h->cpu_arch = rows[i].arch;
        h->cpu_vendor = rows[i].vendor;
        h->cpu_family = rows[i].family;
        h->cpu_model = rows[i].model;
        return;
    }
}

/* Host memory: NCCL lets two GPUs below an AMD CPU talk directly whatever lies between, so a pair known to
 * go through memory is below an Intel one in the row above. */

static gboolean
fill_counts(TtHardware *h, const TtMeasured *m, GError **error)
{
    guint ngpus = m->ngpus;

    h->n_nodes = m->nnodes;
    h->gpus_per_node = m->gpus_per_node;
    if (!h->n_nodes && ngpus && h->gpus_per_node)
        h->n_nodes = (ngpus + h->gpus_per_node - 1) / h->gpus_per_node;
    if (!h->n_nodes && ngpus && ngpus <= 8) /* nothing says where they are: one machine */
        h->n_nodes = 1;
    if (!h->gpus_per_node && ngpus && h->n_nodes)
        h->gpus_per_node = (ngpus + h->n_nodes - 1) / h->n_nodes;
    if (!h->n_nodes || !h->gpus_per_node) {
        g_set_error(
            error, TT_HARDWARE_ERROR, TT_HARDWARE_ERROR_USAGE,
            "%s: the file does not say how many GPUs on how many nodes ran (%u GPUs, %u nodes "
            "known); give the machine with --topo",
            m->origin, ngpus, h->n_nodes);
        return FALSE;
    }
    if (ngpus > (guint64)h->n_nodes * h->gpus_per_node || ngpus < h->n_nodes) {
        if (!ngpus)
            return TRUE;
        g_set_error(error, TT_HARDWARE_ERROR, TT_HARDWARE_ERROR_USAGE,
                    "%s: %u GPUs do not fit %u nodes of %u", m->origin, ngpus, h->n_nodes,
                    h->gpus_per_node);
        return FALSE;
    }
    return TRUE;
}

gboolean
tt_hardware_of(const TtMeasured *m, TtHardware *hardware, GError **error)
{
    TtHardware h = { .gpu = m->gpu ? tt_gpu_find(m->gpu) : NULL };

    if (!h.gpu) {
        g_autofree char *known = tt_gpu_names();

        g_set_error(error, TT_HARDWARE_ERROR, TT_HARDWARE_ERROR_USAGE,
                    "%s: %s%s%s; give the machine with --topo, or name one of: %s", m->origin,
                    m->gpu ? "GPU \"" : "no GPU is named", m->gpu ? m->gpu : "",
                    m->gpu ? "\" is not known" : "", known);
        return FALSE;
    }
    if (!fill_counts(&h, m, error))
        return FALSE;
    fill_intra(&h, m);
    h.board_gpus = board_gpus(&h);
    fill_net(&h, m);
    fill_cpu(&h);
    *hardware = h;
    return TRUE;
}

char *
tt_hardware_class(const TtHardware *h)
{
    gboolean said = h->intra == TT_INTRA_PCIE && g_str_has_suffix(h->gpu->family, "PCIe");

    return g_strdup_printf("%s%s%s%s%s", h->gpu->family, said ? "" : " ",
                           said       ? ""
                           : h->mnnvl ? "NVLink domain"
                                      : tt_intra_name(h->intra),
                           h->net == TT_NET_NONE ? "" : " + ",
                           h->net == TT_NET_NONE ? "" : tt_net_class_name(h->net));
}

char *
tt_hardware_text(const TtHardware *h)
{
    g_autofree char *net =
        h->net == TT_NET_NONE
            ? g_strdup("")
            : g_strdup_printf(", %u x %g Gbit/s %s%s", h->nics_per_node, h->nic_gbits,
                              tt_net_class_name(h->net),
                              h->nics_assumed || h->net_assumed ? " (assumed)" : "");

    return g_strdup_printf("%u node%s x %u %s, %s%s%s%s", h->n_nodes, h->n_nodes == 1 ? "" : "s",
                           h->gpus_per_node, h->gpu->name, tt_intra_name(h->intra),
                           h->mnnvl ? " across nodes" : "", h->intra_assumed ? " (assumed)" : "",
                           net);
}
