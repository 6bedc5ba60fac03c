/* nccl_system - from the elements of a topology file to devices and links.
 *
 * Order matters: NCCL looks for paths breadth first in the order of links, and ties go to the first. A
 * device's links are sorted by bandwidth, widest first; among equals those downwards come in the file's
 * order, the one upwards last (src/graph/topo.cc).
 */
#include "models/nccl_system.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NODES 8192 /* of all kinds */

typedef struct {
    TtNcclSystem *system;
    const TtNcclXml *xml;
    GArray *node;        /* TtSysNode */
    GArray *link;        /* TtSysLink in the order of connection, reverse not yet known */
    GHashTable *link_of; /* from, to and type -> place in @link plus one */
    guint *pci_node, *cpu_node, *gpu_node; /* of the file's elements; TT_NO_INDEX: none */
} Build;

/* GB/s per NVLink and direction: SMxx_NVLINK_BW of src/graph/topo.h; SM90 20.6 since 2.21, SM100 40.0
 * in 2.25 and 40.1 since 2.27, unknown before (then as SM90). AMD: RCCL's XGMI widths (topo.h): 24 up to
 * gfx908, 36 for gfx90a, 48 for gfx94x. */
static float
nvlink_bw(guint version, guint cc, gboolean amd)
{
    if (amd)
        return cc == 90 || cc == 910 ? 36.f : cc >= 94 ? 48.f : 24.f;
    if (cc >= 100 && version >= TT_NCCL_VERSION(2, 25, 0))
        return version >= TT_NCCL_VERSION(2, 27, 0) ? 40.1f : 40.f;
    if (cc >= 90)
        return version >= TT_NCCL_VERSION(2, 21, 0) ? 20.6f : 20.f;
    return cc == 86 ? 12.f : cc >= 70 ? 20.f : cc >= 60 ? 18.f : 20.f;
}

/* Lanes times speed; a lane's figure is 60 at 8 GT/s and in proportion, in units of 1/80 GB/s. */
static float
pci_bw(const TtXmlPci *pci)
{
    static const struct {
        double gts;
        int figure;
    } speeds[] = { { 2.5, 15 }, { 5, 30 }, { 8, 60 }, { 16, 120 }, { 32, 240 }, { 64, 480 } };
    int figure = 60; /* unknown: third generation */

    for (guint i = 0; i < G_N_ELEMENTS(speeds); i++)
        if (fabs(pci->link_gts - speeds[i].gts) < 0.05)
            figure = speeds[i].figure;
    return (float)((pci->link_width ? pci->link_width : 16) * figure / 80.0);
}

static TtSysArch
arch_of(const TtXmlCpu *cpu)
{
    if (!cpu->arch || g_str_equal(cpu->arch, "x86_64"))
        return TT_ARCH_X86;
    if (g_str_equal(cpu->arch, "arm64") || g_str_equal(cpu->arch, "aarch64"))
        return TT_ARCH_ARM;
    return g_str_has_prefix(cpu->arch, "ppc64") ? TT_ARCH_POWER : TT_ARCH_OTHER;
}

static TtSysVendor
vendor_of(const TtXmlCpu *cpu)
{
    if (!cpu->vendor)
        return TT_VENDOR_OTHER;
    if (g_str_equal(cpu->vendor, "GenuineIntel"))
        return TT_VENDOR_INTEL;
    if (g_str_equal(cpu->vendor, "AuthenticAMD"))
        return TT_VENDOR_AMD;
    return strstr(cpu->vendor, "Shanghai") || g_str_equal(cpu->vendor, "CentaurHauls")
               ? TT_VENDOR_ZHAOXIN
               : TT_VENDOR_OTHER;
}

/* Between sockets (src/graph/topo.h: QPI, ZPI, AMD, P9, ARM). */
static float
socket_bw(guint version, const TtXmlCpu *cpu, TtSysArch arch, TtSysVendor vendor)
{
    gboolean intel6 = cpu->family == 6;

    if (arch == TT_ARCH_POWER)
        return 32;
    if (arch == TT_ARCH_ARM)
        return 6;
    if (arch != TT_ARCH_X86)
        return TT_SYS_LOC_BW;
    if (vendor == TT_VENDOR_INTEL) {
        if (version >= TT_NCCL_VERSION(2, 26, 0) && intel6 && cpu->model >= 0x8f)
            return cpu->model >= 0xcf ? 40 : 22;
        return intel6 && cpu->model >= 0x55 ? 10 : 6;
    }
    if (vendor == TT_VENDOR_AMD)
        return version >= TT_NCCL_VERSION(2, 19, 0) ? 16 : TT_SYS_LOC_BW;
    if (vendor == TT_VENDOR_ZHAOXIN)
        return cpu->family == 7 && cpu->model == 0x5b ? 9 : 6;
    return TT_SYS_LOC_BW;
}

static guint
add_node(Build *b, TtSysType type, guint host)
{
    TtSysNode node = {
        .type = type, .index = b->system->n[type]++, .host = host, .dev = -1, .number = -1
    };

    g_array_append_val(b->node, node);
    return b->node->len - 1;
}

static TtSysNode *
node_at(Build *b, guint i)
{
    return &g_array_index(b->node, TtSysNode, i);
}

static gpointer
link_key(guint from, guint to, guint type)
{
    return GUINT_TO_POINTER((from * (MAX_NODES + 1) + to) * TT_N_PATHS + type + 1);
}

/* Links of one kind between the same two devices are one link of their summed bandwidth. */
static void
connect_to(Build *b, guint from, guint to, TtNcclPath type, float bw)
{
    TtSysLink link = { .type = type, .from = from, .to = to, .bw = bw };
    guint known = GPOINTER_TO_UINT(g_hash_table_lookup(b->link_of, link_key(from, to, type)));

    if (known) {
        g_array_index(b->link, TtSysLink, known - 1).bw += bw;
        return;
    }
    g_array_append_val(b->link, link);
    g_hash_table_insert(b->link_of, link_key(from, to, type), GUINT_TO_POINTER(b->link->len));
}

static void
connect_both(Build *b, guint one, guint other, TtNcclPath type, float bw)
{
    connect_to(b, one, other, type, bw);
    connect_to(b, other, one, type, bw);
}

static guint32
hex(const char *text)
{
    return text ? (guint32)strtoul(text, NULL, 16) : 0;
}

/* Broadcom's PEX switches show themselves as two levels that are one in truth; NCCL flattens them
 * (ncclTopoFlattenBcmSwitches). 0: none of them, else 4 or 5 for the generation. */
static guint
broadcom_generation(const TtXmlPci *pci, guint level)
{
    guint32 sub = hex(pci->subsystem_device) & 0xf000;

    if (hex(pci->vendor) != 0x1000 || hex(pci->subsystem_vendor) != 0x1000)
        return 0;
    if (hex(pci->device) == 0xc010 && sub == 0xa000)
        return 4;
    return hex(pci->device) == 0xc030 && sub == level * 0x1000 ? 5 : 0;
}

/* Functions of one NIC share its slot: all but the last hexadecimal digit of the bus id. */
static gboolean
same_slot(const char *a, const char *b)
{
    gsize n = a ? strlen(a) : 0;

    return n > 1 && b && strlen(b) == n && g_ascii_strncasecmp(a, b, n - 1) == 0;
}

static guint
host_of(Build *b, GPtrArray *hosts, guint cpu)
{
    const char *hash = g_array_index(b->xml->cpu, TtXmlCpu, cpu).host_hash;

    for (guint i = 0; i < hosts->len; i++)
        if (g_strcmp0(hash, g_ptr_array_index(hosts, i)) == 0)
            return i;
    g_ptr_array_add(hosts, (gpointer)hash);
    return hosts->len - 1;
}

static void
add_cpus(Build *b)
{
    g_autoptr(GPtrArray) hosts = g_ptr_array_new();

    for (guint i = 0; i < b->xml->cpu->len; i++) {
        const TtXmlCpu *cpu = &g_array_index(b->xml->cpu, TtXmlCpu, i);
        guint id = b->cpu_node[i] = add_node(b, TT_SYS_CPU, host_of(b, hosts, i));
        TtSysNode *node = node_at(b, id);

        node->arch = arch_of(cpu);
        node->vendor = vendor_of(cpu);
        node->socket_bw = socket_bw(b->system->version, cpu, node->arch, node->vendor);
    }
    b->system->n_hosts = MAX(hosts->len, 1);
}

/* One node per PCI device: a GPU that takes part, a NIC with ports, else a switch. NVSwitches hang on
 * PCI too, but only their NVLinks count. */
static void
add_pci_nodes(Build *b, const gboolean *is_nic)
{
    const GArray *pcis = b->xml->pci;

    for (guint i = 0; i < pcis->len; i++) {
        const TtXmlPci *pci = &g_array_index(pcis, TtXmlPci, i);
        guint host = node_at(b, b->cpu_node[pci->cpu])->host;

        if (b->pci_node[i] != TT_NO_INDEX) /* a GPU's place, marked by add_gpus() */
            continue;
        if (is_nic[i]) {
            for (guint j = 0; j < i && b->pci_node[i] == TT_NO_INDEX; j++)
                if (is_nic[j] && same_slot(pci->bus_id, g_array_index(pcis, TtXmlPci, j).bus_id))
                    b->pci_node[i] = b->pci_node[j];
            if (b->pci_node[i] == TT_NO_INDEX)
                b->pci_node[i] = add_node(b, TT_SYS_NIC, host);
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
            b->pci_node[i] = add_node(b, TT_SYS_PCI, host);
    }
}

static void
connect_pci(Build *b)
{
    const GArray *pcis = b->xml->pci;

    for (guint up = 0; up < 2; up++) /* all links downwards first, then those upwards */
        for (guint i = 0; i < pcis->len; i++) {
            const TtXmlPci *pci = &g_array_index(pcis, TtXmlPci, i);
            guint child = b->pci_node[i], parent = pci->parent == TT_NO_INDEX
                                                       ? b->cpu_node[pci->cpu]
                                                       : b->pci_node[pci->parent];
            gboolean first = TRUE;

            if (child == TT_NO_INDEX || parent == TT_NO_INDEX || child == parent)
                continue;
            for (guint j = 0; j < i && node_at(b, child)->type == TT_SYS_NIC; j++)
                first = first && b->pci_node[j] != child; /* functions of a NIC: one link */
            if (first)
                connect_to(b, up ? child : parent, up ? parent : child, TT_PATH_PIX, pci_bw(pci));
        }
}

static gboolean
add_gpus(Build *b, GError **error)
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
        b->gpu_node[i] = add_node(b, TT_SYS_GPU, node_at(b, b->cpu_node[pci->cpu])->host);
        if (b->pci_node[gpu->pci] == TT_NO_INDEX)
            b->pci_node[gpu->pci] = b->gpu_node[i];
        node = node_at(b, b->gpu_node[i]);
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

/* Ranks of the node in ascending order; without ranks the file's order. */
static void
number_places(Build *b)
{
    for (guint i = 0; i < b->node->len; i++) {
        TtSysNode *node = node_at(b, i);

        for (guint j = 0; j < b->node->len && node->type == TT_SYS_GPU; j++) {
            const TtSysNode *other = node_at(b, j);

            node->place +=
                other->type == TT_SYS_GPU && j != i &&
                (other->number < node->number || (other->number == node->number && j < i));
        }
    }
}

static gboolean
add_nets(Build *b, GError **error)
{
    guint loose_nic = TT_NO_INDEX;

    for (guint i = 0; i < b->xml->net->len; i++) {
        const TtXmlNet *net = &g_array_index(b->xml->net, TtXmlNet, i);
        guint nic, id, cpu = net->pci == TT_NO_INDEX ? net->cpu : 0;
        TtSysNode *node;

        if (b->system->n[TT_SYS_NET] == TT_SYS_MAX_NETS || net->dev > G_MAXINT16) {
            g_set_error(error, TT_NCCL_ERROR, TT_NCCL_ERROR_USAGE,
                        "%s: net dev %u: at most %d network ports in one node", b->xml->origin,
                        net->dev, TT_SYS_MAX_NETS);
            return FALSE;
        }
        nic = net->pci == TT_NO_INDEX ? loose_nic : b->pci_node[net->pci];
        if (nic == TT_NO_INDEX) { /* not on PCI: one NIC for all, close to the CPU */
            nic = loose_nic = add_node(b, TT_SYS_NIC, node_at(b, b->cpu_node[cpu])->host);
            connect_both(b, b->cpu_node[cpu], nic, TT_PATH_PIX, TT_SYS_LOC_BW);
        }
        id = add_node(b, TT_SYS_NET, node_at(b, nic)->host);
        node = node_at(b, id);
        node->number = (int)net->dev;
        node->asic = net->guid ? g_ascii_strtoull(net->guid, NULL, 0) : net->dev;
        node->port = net->port;
        node->bw = (float)((net->speed_mbps > 0 ? net->speed_mbps : 10000) / 8000.0);
        node->latency_us = net->latency_us;
        node->gdr = net->gdr;
        node->coll = net->coll;
        connect_both(b, nic, id, TT_PATH_NET, node->bw);
    }
    return TRUE;
}

static guint
gpu_by_bus_id(Build *b, const char *bus_id)
{
    for (guint i = 0; i < b->xml->gpu->len; i++) {
        guint pci = g_array_index(b->xml->gpu, TtXmlGpu, i).pci;

        if (bus_id && b->gpu_node[i] != TT_NO_INDEX &&
            g_ascii_strcasecmp(bus_id, g_array_index(b->xml->pci, TtXmlPci, pci).bus_id) == 0)
            return b->gpu_node[i];
    }
    return TT_NO_INDEX;
}

static void
add_nvlinks(Build *b)
{
    guint nvs = TT_NO_INDEX;

    for (guint i = 0; i < b->xml->nvlink->len; i++) {
        const TtXmlNvlink *link = &g_array_index(b->xml->nvlink, TtXmlNvlink, i);
        guint gpu = b->gpu_node[link->gpu], peer;
        const TtXmlPci *pci = &g_array_index(b->xml->pci, TtXmlPci,
                                             g_array_index(b->xml->gpu, TtXmlGpu, link->gpu).pci);
        float bw;

        if (gpu == TT_NO_INDEX || link->count == 0)
            continue;
        bw = link->count *
             nvlink_bw(b->system->version, node_at(b, gpu)->cc, hex(pci->vendor) == 0x1002);
        if (link->target_class >> 16 == 0x03) {
            peer = gpu_by_bus_id(b, link->target);
            if (peer != TT_NO_INDEX && peer != gpu)
                connect_to(b, gpu, peer, TT_PATH_NVL, bw);
            continue;
        }
        if (link->target_class == 0x068001) {
            peer = b->cpu_node[pci->cpu];
        } else {
            if (nvs == TT_NO_INDEX)
                nvs = add_node(b, TT_SYS_NVS, 0);
            peer = nvs;
        }
        connect_both(b, gpu, peer, TT_PATH_NVL, bw);
    }
}

/* GPU and CPU on one module: an NVLink to the CPU before 2.26, a kind of its own since. */
static void
add_c2c(Build *b)
{
    TtNcclPath type = b->system->version >= TT_NCCL_VERSION(2, 26, 0) ? TT_PATH_C2C : TT_PATH_NVL;

    for (guint i = 0; i < b->xml->c2c->len && b->system->version >= TT_NCCL_VERSION(2, 20, 0);
         i++) {
        const TtXmlC2c *c2c = &g_array_index(b->xml->c2c, TtXmlC2c, i);
        guint gpu = b->gpu_node[c2c->gpu], pci = g_array_index(b->xml->gpu, TtXmlGpu, c2c->gpu).pci,
              cpu = b->cpu_node[g_array_index(b->xml->pci, TtXmlPci, pci).cpu];

        if (gpu != TT_NO_INDEX && c2c->mb_per_s > 0 && c2c->count > 0)
            connect_both(b, gpu, cpu, type, (float)(c2c->mb_per_s * c2c->count / 1000.0));
    }
}

static void
add_switch_links(Build *b)
{
    for (guint i = 0; i < b->xml->pci_link->len; i++) {
        const TtXmlPciLink *link = &g_array_index(b->xml->pci_link, TtXmlPciLink, i);
        guint from = b->pci_node[link->pci];

        for (guint j = 0; j < b->xml->pci->len && link->target && from != TT_NO_INDEX; j++)
            if (b->pci_node[j] != TT_NO_INDEX && b->pci_node[j] != from &&
                node_at(b, b->pci_node[j])->type == TT_SYS_PCI &&
                g_ascii_strcasecmp(g_array_index(b->xml->pci, TtXmlPci, j).bus_id, link->target) ==
                    0)
                connect_to(b, from, b->pci_node[j], TT_PATH_LOC, TT_SYS_LOC_BW);
    }
}

static void
connect_cpus(Build *b)
{
    for (guint i = 0; i < b->xml->cpu->len; i++)
        for (guint j = 0; j < b->xml->cpu->len; j++) {
            const TtSysNode *cpu = node_at(b, b->cpu_node[i]);

            if (i != j && cpu->host == node_at(b, b->cpu_node[j])->host)
                connect_to(b, b->cpu_node[i], b->cpu_node[j], TT_PATH_SYS, cpu->socket_bw);
        }
}

/* Traffic of a tree goes both ways: a link stated at one end only gets its other half. */
static void
add_missing_reverses(Build *b)
{
    guint n = b->link->len;

    for (guint i = 0; i < n; i++) {
        TtSysLink link = g_array_index(b->link, TtSysLink, i);

        if (!g_hash_table_contains(b->link_of, link_key(link.to, link.from, link.type)))
            connect_to(b, link.to, link.from, link.type, link.bw);
    }
}

/* Links by device, widest first, in the order of connection among equals. */
static void
freeze(Build *b)
{
    TtNcclSystem *s = b->system;
    guint filled[TT_SYS_N_TYPES] = { 0 }, at = 0;

    s->n_nodes = b->node->len;
    s->n_links = b->link->len;
    s->link = g_new0(TtSysLink, MAX(s->n_links, 1));
    s->node = (TtSysNode *)(void *)g_array_free(b->node, FALSE);
    b->node = NULL;
    for (guint t = 0; t < TT_SYS_N_TYPES; t++)
        s->of[t] = g_new0(guint16, s->n[t] + 1);
    for (guint j = 0; j < s->n_links; j++)
        s->node[g_array_index(b->link, TtSysLink, j).from].first_link++; /* a count for now */
    for (guint i = 0; i < s->n_nodes; i++) {
        TtSysNode *node = &s->node[i];
        guint count = node->first_link;

        node->first_link = at;
        at += count;
        node->index = filled[node->type];
        s->of[node->type][filled[node->type]++] = i;
    }
    for (guint j = 0; j < s->n_links; j++) {
        TtSysLink link = g_array_index(b->link, TtSysLink, j);
        TtSysNode *node = &s->node[link.from];
        guint slot = node->first_link + node->n_links++;

        for (; slot > node->first_link && link.bw > s->link[slot - 1].bw; slot--)
            s->link[slot] = s->link[slot - 1];
        s->link[slot] = link;
    }
}

/* Upwards last (but for NVLinks, which are wider than PCI or come first anyway), then find reverses. */
static void
finish_links(TtNcclSystem *s)
{
    for (guint i = 0; i < s->n_nodes; i++) {
        const TtSysNode *node = &s->node[i];
        TtSysLink *link = s->link + node->first_link;

        for (guint l = 0; l + 1 < node->n_links && node->type != TT_SYS_CPU; l++) {
            const TtSysNode *to = &s->node[link[l].to];

            if (link[l].type == TT_PATH_PIX &&
                (to->type == TT_SYS_CPU ||
                 (to->type == TT_SYS_PCI && (link[l].to < i || node->type != TT_SYS_PCI)))) {
                TtSysLink up = link[l];

                memmove(&link[l], &link[l + 1], (node->n_links - l - 1) * sizeof *link);
                link[node->n_links - 1] = up;
                break;
            }
        }
    }
    for (guint i = 0; i < s->n_links; i++)
        for (guint l = 0; l < s->node[s->link[i].to].n_links; l++) {
            guint j = s->node[s->link[i].to].first_link + l;

            if (s->link[j].to == s->link[i].from && s->link[j].type == s->link[i].type)
                s->link[i].reverse = j;
        }
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
build(Build *b, gboolean with_nets, GError **error)
{
    g_autofree gboolean *is_nic = g_new0(gboolean, b->xml->pci->len + 1);

    if (b->xml->cpu->len + b->xml->pci->len + b->xml->gpu->len + b->xml->net->len >= MAX_NODES) {
        g_set_error(error, TT_NCCL_ERROR, TT_NCCL_ERROR_USAGE,
                    "%s: more than %d devices in one node", b->xml->origin, MAX_NODES);
        return FALSE;
    }
    add_cpus(b);
    if (!add_gpus(b, error))
        return FALSE;
    for (guint i = 0; i < b->xml->net->len && with_nets; i++) {
        const TtXmlNet *net = &g_array_index(b->xml->net, TtXmlNet, i);

        if (net->pci != TT_NO_INDEX)
            is_nic[net->pci] = TRUE;
    }
    add_pci_nodes(b, is_nic);
    number_places(b);
    if (with_nets && !add_nets(b, error))
        return FALSE;
    connect_pci(b);
    add_nvlinks(b);
    add_c2c(b);
    add_switch_links(b);
    connect_cpus(b);
    add_missing_reverses(b);
    if (b->link->len > G_MAXUINT16) {
        g_set_error(error, TT_NCCL_ERROR, TT_NCCL_ERROR_USAGE,
                    "%s: %u links between devices, at most %u", b->xml->origin, b->link->len,
                    G_MAXUINT16);
        return FALSE;
    }
    freeze(b);
    finish_links(b->system);
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
    Build b = { .system = system,
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
