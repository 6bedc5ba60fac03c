/* nccl_system - from the elements of a topology file to devices and links.
 *
 * Order matters: NCCL looks for paths breadth first in the order of links, and ties go to the first. A
 * device's links are sorted by bandwidth, widest first; among equals those downwards come in the file's
 * order, the one upwards last (src/graph/topo.cc).
 */
#include "models/nccl_system_build.h"
#include <stdlib.h>
#include <string.h>

guint
tt_system_add_node(TtSystemBuild *b, TtSysType type, guint host)
{
    TtSysNode node = {
        .type = type, .index = b->system->n[type]++, .host = host, .dev = -1, .number = -1
    };

    g_array_append_val(b->node, node);
    return b->node->len - 1;
}

/* Broadcom's PEX switches show themselves as two levels that are one in truth; NCCL flattens them
 * (ncclTopoFlattenBcmSwitches). 0: none of them, else 4 or 5 for the generation. */
static guint
broadcom_generation(const TtXmlPci *pci, guint level)
{
    guint32 sub = tt_system_hex(pci->subsystem_device) & 0xf000;

    if (tt_system_hex(pci->vendor) != 0x1000 || tt_system_hex(pci->subsystem_vendor) != 0x1000)
        return 0;
    if (tt_system_hex(pci->device) == 0xc010 && sub == 0xa000)
        return 4;
    return tt_system_hex(pci->device) == 0xc030 && sub == level * 0x1000 ? 5 : 0;
}

/* Functions of one NIC share its slot: all but the last hexadecimal digit of the bus id. */
static gboolean
same_slot(const char *a, const char *b)
{
    gsize n = a ? strlen(a) : 0;

    return n > 1 && b && strlen(b) == n && g_ascii_strncasecmp(a, b, n - 1) == 0;
}

static guint
host_of(TtSystemBuild *b, GPtrArray *hosts, guint cpu)
{
    const char *hash = g_array_index(b->xml->cpu, TtXmlCpu, cpu).host_hash;

    for (guint i = 0; i < hosts->len; i++)
        if (g_strcmp0(hash, g_ptr_array_index(hosts, i)) == 0)
            return i;
    g_ptr_array_add(hosts, (gpointer)hash);
    return hosts->len - 1;
}

static void
add_cpus(TtSystemBuild *b)
{
    g_autoptr(GPtrArray) hosts = g_ptr_array_new();

    for (guint i = 0; i < b->xml->cpu->len; i++) {
        const TtXmlCpu *cpu = &g_array_index(b->xml->cpu, TtXmlCpu, i);
        guint id = b->cpu_node[i] = tt_system_add_node(b, TT_SYS_CPU, host_of(b, hosts, i));
        TtSysNode *node = tt_system_node_at(b, id);

        node->arch = tt_nccl_cpu_arch(cpu);
        node->vendor = tt_nccl_cpu_vendor(cpu);
        node->socket_bw = tt_nccl_socket_bw(b->system->version, cpu, node->arch, node->vendor);
    }
    b->system->n_hosts = MAX(hosts->len, 1);
}

/* One node per PCI device: a GPU that takes part, a NIC with ports, else a switch. NVSwitches hang on
 * PCI too, but only their NVLinks count. */
static void
add_pci_nodes(TtSystemBuild *b, const gboolean *is_nic)
{
    const GArray *pcis = b->xml->pci;

    for (guint i = 0; i < pcis->len; i++) {
        const TtXmlPci *pci = &g_array_index(pcis, TtXmlPci, i);
        guint host = tt_system_node_at(b, b->cpu_node[pci->cpu])->host;

        if (b->pci_node[i] != TT_NO_INDEX) /* a GPU's place, marked by add_gpus() */
            continue;
        if (is_nic[i]) {
            for (guint j = 0; j < i && b->pci_node[i] == TT_NO_INDEX; j++)
                if (is_nic[j] && same_slot(pci->bus_id, g_array_index(pcis, TtXmlPci, j).bus_id))
                    b->pci_node[i] = b->pci_node[j];
            if (b->pci_node[i] == TT_NO_INDEX)
                b->pci_node[i] = tt_system_add_node(b, TT_SYS_NIC, host);
            continue;
        }
        if (pci->parent != TT_NO_INDEX) {
            const TtXmlPci *up = &g_array_index(pcis, TtXmlPci, pci->parent);
            guint generation = broadcom_generation(up, 0);

            if (generation && broadcom_generation(pci, 1) == generation) {
                b->pci_node[i] = b->pci_node[pci->parent];
                continue;
            }
        }
        if (pci->class_id >> 8 == 0x0604)
            b->pci_node[i] = tt_system_add_node(b, TT_SYS_PCI, host);
    }
}

static gboolean
add_gpus(TtSystemBuild *b, GError **error)
{
    const GArray *gpus = b->xml->gpu;
    gboolean ranked = FALSE;

    for (guint i = 0; i < gpus->len; i++)
        ranked = ranked || g_array_index(gpus, TtXmlGpu, i).rank >= 0;
    for (guint i = 0; i < gpus->len; i++) {
        const TtXmlGpu *gpu = &g_array_index(gpus, TtXmlGpu, i);
        const TtXmlPci *pci = &g_array_index(b->xml->pci, TtXmlPci, gpu->pci);
        TtSysNode *node;

        if (ranked && gpu->rank < 0)
            continue;
        if (b->system->n[TT_SYS_GPU] == TT_NCCL_MAX_GPUS) {
            g_set_error(error, TT_NCCL_ERROR, TT_NCCL_ERROR_USAGE,
                        "%s: more than %d GPUs in one node or NVLink domain", b->xml->origin,
                        TT_NCCL_MAX_GPUS);
            return FALSE;
        }
        b->gpu_node[i] =
            tt_system_add_node(b, TT_SYS_GPU, tt_system_node_at(b, b->cpu_node[pci->cpu])->host);
        if (b->pci_node[gpu->pci] == TT_NO_INDEX)
            b->pci_node[gpu->pci] = b->gpu_node[i];
        node = tt_system_node_at(b, b->gpu_node[i]);
        node->cc = gpu->sm;
        node->dev = gpu->dev >= 0 ? gpu->dev : node->index;
        node->gdr = gpu->gdr;
        node->number = gpu->rank;
    }
    if (b->system->n[TT_SYS_GPU] == 0) {
        g_set_error(error, TT_NCCL_ERROR, TT_NCCL_ERROR_USAGE,
                    "%s: no GPU, NCCL needs at least one", b->xml->origin);
        return FALSE;
    }
    return TRUE;
}

/* Ranks of the node in ascending order; without ranks that of CUDA's device numbers. */
static gboolean
has_lower_place(const TtSysNode *a, const TtSysNode *b)
{
    if (a->number != b->number)
        return a->number < b->number;
    return a->dev != b->dev ? a->dev < b->dev : a->index < b->index;
}

static void
number_places(TtSystemBuild *b)
{
    for (guint i = 0; i < b->node->len; i++)
        for (guint j = 0; j < b->node->len; j++) {
            TtSysNode *node = tt_system_node_at(b, i), *other = tt_system_node_at(b, j);

            if (node->type == TT_SYS_GPU && other->type == TT_SYS_GPU && i != j)
                node->place += has_lower_place(other, node);
        }
}

static gboolean
add_nets(TtSystemBuild *b, GError **error)
{
    guint loose_nic = TT_NO_INDEX;

    for (guint i = 0; i < b->xml->net->len; i++) {
        const TtXmlNet *net = &g_array_index(b->xml->net, TtXmlNet, i);
        guint nic, id, cpu = net->pci == TT_NO_INDEX ? net->cpu : 0;
        TtSysNode *node;

        if (b->any_kept && !net->keep)
            continue;
        if (b->system->n[TT_SYS_NET] == TT_SYS_MAX_NETS || net->dev > G_MAXINT16) {
            g_set_error(error, TT_NCCL_ERROR, TT_NCCL_ERROR_USAGE,
                        "%s: net dev=\"%u\": at most %d network ports, numbered up to %d",
                        b->xml->origin, net->dev, TT_SYS_MAX_NETS, G_MAXINT16);
            return FALSE;
        }
        nic = net->pci == TT_NO_INDEX ? loose_nic : b->pci_node[net->pci];
        if (nic == TT_NO_INDEX) { /* not on PCI: one NIC for all, close to the CPU */
            nic = loose_nic =
                tt_system_add_node(b, TT_SYS_NIC, tt_system_node_at(b, b->cpu_node[cpu])->host);
            tt_system_connect(b, b->cpu_node[cpu], nic, TT_PATH_PIX, TT_SYS_LOC_BW);
        }
        id = tt_system_add_node(b, TT_SYS_NET, tt_system_node_at(b, nic)->host);
        node = tt_system_node_at(b, id);
        node->number = (int)net->dev;
        node->asic = net->guid ? g_ascii_strtoull(net->guid, NULL, 0) : net->dev;
        node->port = net->port;
        node->bw = (float)((net->speed_mbps > 0 ? net->speed_mbps : 10000) / 8000.0);
        node->latency_us = net->latency_us;
        node->gdr = net->gdr;
        node->coll = net->coll;
        tt_system_connect(b, nic, id, TT_PATH_NET, node->bw);
    }
    return TRUE;
}

static void
find_capabilities(TtNcclSystem *s)
{
    s->min_cc = G_MAXUINT;
    for (guint g = 0; g < s->n[TT_SYS_GPU]; g++) {
        guint cc = tt_nccl_system_node(s, TT_SYS_GPU, g)->cc;

        s->min_cc = MIN(s->min_cc, cc);
        s->max_cc = MAX(s->max_cc, cc);
    }
}

static gboolean
build(TtSystemBuild *b, gboolean with_nets, GError **error)
{
    g_autofree gboolean *is_nic = g_new0(gboolean, b->xml->pci->len + 1);

    if (b->xml->cpu->len + b->xml->pci->len + b->xml->gpu->len + b->xml->net->len >=
        TT_SYS_MAX_NODES) {
        g_set_error(error, TT_NCCL_ERROR, TT_NCCL_ERROR_USAGE,
                    "%s: more than %d devices in one node", b->xml->origin, TT_SYS_MAX_NODES);
        return FALSE;
    }
    add_cpus(b);
    if (!add_gpus(b, error))
        return FALSE;
    for (guint i = 0; i < b->xml->net->len; i++) {
        const TtXmlNet *net = &g_array_index(b->xml->net, TtXmlNet, i);

        b->any_kept = b->any_kept || net->keep;
        if (net->pci != TT_NO_INDEX)
            is_nic[net->pci] = TRUE;
    }
    add_pci_nodes(b, is_nic);
    number_places(b);
    if (with_nets && !add_nets(b, error))
        return FALSE;
    if (!tt_system_add_links(b, error))
        return FALSE;
    tt_system_freeze(b);
    find_capabilities(b->system);
    return TRUE;
}

static guint *
no_indices(guint n)
{
    guint *index = g_new(guint, n + 1);

    memset(index, 0xff, (n + 1) * sizeof *index);
    return index;
}

TtNcclSystem *
tt_nccl_system_new(const TtNcclXml *xml, guint version, gboolean with_nets, GError **error)
{
    g_autoptr(TtNcclSystem) system = g_new0(TtNcclSystem, 1);
    TtSystemBuild b = { .system = system,
                        .xml = xml,
                        .node = g_array_new(FALSE, TRUE, sizeof(TtSysNode)),
                        .link = g_array_new(FALSE, TRUE, sizeof(TtSysLink)),
                        .link_of = g_hash_table_new(NULL, NULL),
                        .pci_node = no_indices(xml->pci->len),
                        .cpu_node = no_indices(xml->cpu->len),
                        .gpu_node = no_indices(xml->gpu->len) };
    gboolean ok;

    system->version = version;
    ok = build(&b, with_nets, error);
    if (b.node)
        g_array_free(b.node, TRUE);
    g_array_free(b.link, TRUE);
    g_hash_table_destroy(b.link_of);
    g_free(b.pci_node);
    g_free(b.cpu_node);
    g_free(b.gpu_node);
    return ok ? g_steal_pointer(&system) : NULL;
}

void
tt_nccl_system_free(TtNcclSystem *system)
{
    if (!system)
        return;
    for (guint t = 0; t < TT_SYS_N_TYPES; t++)
        g_free(system->of[t]);
    g_free(system->node);
    g_free(system->link);
    g_free(system);
}
