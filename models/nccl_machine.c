#include "models/nccl_machine.h"

#include <string.h>

/* --- a node ------------------------------------------------------------------------------------ */

static TtGpuGen
gen_of(guint cc)
{
    if (cc > 90 && cc < 100) /* AMD's GPUs are numbered so: 94 is gfx942 */
        return TT_GEN_CDNA;
    return cc >= 100  ? TT_GEN_BLACKWELL
           : cc >= 90 ? TT_GEN_HOPPER
           : cc >= 86 ? TT_GEN_ADA
           : cc >= 80 ? TT_GEN_AMPERE
           : cc >= 75 ? TT_GEN_TURING
                      : TT_GEN_VOLTA;
}

/* GB/s of one NVLink (xGMI for AMD) and direction, as sold: NVLink 1, 2 and 3, 4, 5. */
static double
nvlink_gbps(guint cc)
{
    if (gen_of(cc) == TT_GEN_CDNA)
        return 64;
    return cc >= 100 ? 50 : cc == 86 ? 14.1 : cc >= 70 ? 25 : 20;
}

static guint
links_of(const TtNcclXml *node, guint gpu)
{
    guint n = 0;

    for (guint i = 0; i < node->nvlink->len; i++) {
        const TtXmlNvlink *link = &g_array_index(node->nvlink, TtXmlNvlink, i);

        n += link->gpu == gpu ? link->count : 0;
    }
    return n;
}

/* What a GPU's slot carries, GB/s: NCCL's figures (src/graph/topo.h): 12 for 16 lanes of gen 3. */
static double
slot_gbps(const TtNcclXml *node)
{
    const TtXmlGpu *gpu = &g_array_index(node->gpu, TtXmlGpu, 0);
    const TtXmlPci *pci = &g_array_index(node->pci, TtXmlPci, gpu->pci);
    double gts = pci->link_gts > 0 ? pci->link_gts : 8;

    return 12 * gts / 8 * (pci->link_width ? pci->link_width : 16) / 16;
}

/* Kind by the names drivers give: mlx5_0, rdmap0s0 and efa_0, cxi0 and hsn0, eth0. */
static TtNicKind
nic_of(const TtNcclXml *node)
{
    static const struct {
        const char *start;
        TtNicKind kind;
    } names[] = { { "mlx", TT_NIC_IB },    { "ib", TT_NIC_IB },         { "rdmap", TT_NIC_EFA },
                  { "efa", TT_NIC_EFA },   { "cxi", TT_NIC_SLINGSHOT }, { "hsn", TT_NIC_SLINGSHOT },
                  { "roce", TT_NIC_ROCE }, { "bnxt", TT_NIC_ROCE },     { "eth", TT_NIC_TCP },
                  { "en", TT_NIC_TCP } };

    for (guint i = 0; node->net->len && i < G_N_ELEMENTS(names); i++) {
        const char *name = g_array_index(node->net, TtXmlNet, 0).name;

        if (name && g_str_has_prefix(name, names[i].start))
            return names[i].kind;
    }
    return TT_NIC_UNKNOWN;
}

/* NICs the rings enter and leave by, together; all of them where the rings do not say. */
static double
nics_gbps(const TtNcclXml *node, const TtNcclComm *comm)
{
    const TtNcclGraph *ring = &comm->graph[TT_GRAPH_RING];
    double used = 0, all = 0;

    for (guint i = 0; i < node->net->len; i++) {
        const TtXmlNet *net = &g_array_index(node->net, TtXmlNet, i);
        double gbps = (net->speed_mbps > 0 ? net->speed_mbps : 10000) / 8e3;
        gboolean taken = FALSE;

        for (guint c = 0; c < ring->n_channels && !taken; c++)
            taken = ring->net[c][0] == (int)net->dev || ring->net[c][1] == (int)net->dev;
        used += taken ? gbps : 0;
        all += gbps;
    }
    return used > 0 ? used : all;
}

/* EFA grew with the machines it is in: p4 (A100), p5 (H100), p5en (H200, NICs of 200 Gbit/s), p6 (B200). */
static guint
efa_generation(const TtNcclComm *comm)
{
    if (comm->min_cc >= 100)
        return 4;
    return comm->min_cc < 90 ? 1 : comm->nic_gbits == 200 ? 3 : 2;
}

static TtNcclWay
way_of(const TtNcclComm *comm)
{
    guint type = comm->graph[TT_GRAPH_RING].type_intra;

    if (type <= TT_PATH_NVB)
        return TT_WAY_NVLINK;
    return type <= TT_PATH_PXB ? TT_WAY_PCIE : TT_WAY_HOST;
}

void
tt_nccl_machine_of_node(TtNcclMachine *m, const TtNcclXml *node, const TtNcclComm *comm)
{
    const TtNcclGraph *nvls = &comm->graph[TT_GRAPH_NVLS];
    const TtNcclGraph *ring = &comm->graph[TT_GRAPH_RING], *tree = &comm->graph[TT_GRAPH_TREE];

    *m = (TtNcclMachine){
        .n_ranks = comm->n_ranks,
        .n_nodes = comm->n_nodes,
        .ranks_per_node = comm->ranks_per_node,
        .gen = gen_of(comm->min_cc),
        .way = way_of(comm),
        .nvlink_gbps = links_of(node, 0) * nvlink_gbps(comm->min_cc),
        .pcie_gbps = slot_gbps(node),
        .nic = nic_of(node),
        .efa_generation = efa_generation(comm),
        .nics_gbps = nics_gbps(node, comm),
        .nic_far = { ring->type_inter > TT_PATH_PXN, tree->type_inter > TT_PATH_PXN },
        .heads =
            nvls->n_channels ? MIN(nvls->n_channels, comm->ranks_per_node) : comm->ranks_per_node,
        .nvls_channels = comm->nvls_channels,
        .side_trees = tree->pattern<TT_PATTERN_TREE, .grace = node->c2c->len> 0,
    };
}

/* --- a measurement ----------------------------------------------------------------------------- */

static TtNicKind
nic_kind(const TtHardware *h)
{
    switch (h->net) {
    case TT_NET_IB: return TT_NIC_IB;
    case TT_NET_ROCE: return TT_NIC_ROCE;
    case TT_NET_EFA: return h->gdr ? TT_NIC_EFA : TT_NIC_BOUNCE;
    case TT_NET_SLINGSHOT: return TT_NIC_SLINGSHOT;
    case TT_NET_TCP:
    case TT_NET_TCPX: return TT_NIC_TCP;
    default: return TT_NIC_UNKNOWN;
    }
}

/* Published logs whose heading shows one process for all GPUs, which our files of them leave out: nThread 8 and
 * one pid (github.com/Panlichen/nccl-tests, test_scripts/4090_8card_para/nccl_all_reduce0.txt; the other folders
 * are by the same scripts), nGpus 12 (github.com/wohlbier/nccl-tests, README.md), -g2 (Anthony-Hoo.github.io,
 * AutoDL_Multi-GPU_Interconnection_Test.md). A log itself says so in its rank lines. */
static gboolean
heading_shows_one_process(const char *id)
{
    static const char *const ids[] = { "panl-", "dgx2-v100", "rtx2080ti-1x2", NULL };

    for (guint i = 0; ids[i]; i++)
        if (g_str_has_prefix(id, ids[i]))
            return TRUE;
    return FALSE;
}

void
tt_nccl_machine_refine(TtNcclMachine *m, const TtHardware *h, const TtMeasured *measured)
{
    gboolean one = measured->one_process == 1 || (measured->one_process < 0 && measured->id &&
                                                  heading_shows_one_process(measured->id));

    if (h->gpu) {
        if (!h->gpu->nvidia)
            m->gen = TT_GEN_CDNA;
        if (h->gpu->n_links)
            m->nvlink_gbps = h->gpu->n_links * h->gpu->link_gbps;
    }
    if (h->intra == TT_INTRA_PCIE)
        m->way = TT_WAY_PCIE;
    else if (h->intra == TT_INTRA_SHM)
        m->way = TT_WAY_HOST;
    if (h->net != TT_NET_NONE)
        m->nic = nic_kind(h);
    if (measured->inter_name && g_str_has_prefix(measured->inter_name, "EFA v"))
        m->efa_generation = (guint)g_ascii_digit_value(measured->inter_name[5]);
    if (measured->graph)
        m->launch = TT_LAUNCH_GRAPH;
    else if (one && m->n_nodes == 1)
        m->launch = TT_LAUNCH_ONE_PROCESS;
}
