/* nccl_system_links - links of a node: PCI, NVLinks, C2C, between CPUs. See nccl_system.h. */
#include "models/nccl_system_build.h"
#include <string.h>

#define MOST_BW 1e6f /* GB/s: files may claim anything, the search counts in whole MB/s */

static gpointer
link_key(guint from, guint to, guint type)
{
    return GUINT_TO_POINTER((from * (TT_SYS_MAX_NODES + 1) + to) * TT_N_PATHS + type + 1);
}

/* Links of one kind between the same two devices are one link of their summed bandwidth. */
static void
connect_to(TtSystemBuild *b, guint from, guint to, TtNcclPath type, float bw)
{
    TtSysLink link = { .type = type, .from = from, .to = to, .bw = MIN(bw, MOST_BW) };
    guint known = GPOINTER_TO_UINT(g_hash_table_lookup(b->link_of, link_key(from, to, type)));

    if (known) {
        TtSysLink *old = &g_array_index(b->link, TtSysLink, known - 1);

        old->bw = MIN(old->bw + bw, MOST_BW);
        return;
    }
    g_array_append_val(b->link, link);
    g_hash_table_insert(b->link_of, link_key(from, to, type), GUINT_TO_POINTER(b->link->len));
}

void
tt_system_connect(TtSystemBuild *b, guint one, guint other, TtNcclPath type, float bw)
{
    connect_to(b, one, other, type, bw);
    connect_to(b, other, one, type, bw);
}

static void
connect_pci(TtSystemBuild *b)
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
            for (guint j = 0; j < i && tt_system_node_at(b, child)->type == TT_SYS_NIC; j++)
                first = first && b->pci_node[j] != child; /* functions of a NIC: one link */
            if (first)
                connect_to(b, up ? child : parent, up ? parent : child, TT_PATH_PIX,
                           tt_nccl_pci_bw(pci));
        }
}

static guint
gpu_by_bus_id(TtSystemBuild *b, const char *bus_id)
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
add_nvlinks(TtSystemBuild *b)
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
        bw = link->count * tt_nccl_nvlink_bw(b->system->version, tt_system_node_at(b, gpu)->cc,
                                             tt_system_hex(pci->vendor) == 0x1002);
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
                nvs = tt_system_add_node(b, TT_SYS_NVS, 0);
            peer = nvs;
        }
        tt_system_connect(b, gpu, peer, TT_PATH_NVL, bw);
    }
}

/* GPU and CPU on one module: an NVLink to the CPU before 2.26, a kind of its own since. */
static void
add_c2c(TtSystemBuild *b)
{
    TtNcclPath type = b->system->version >= TT_NCCL_VERSION(2, 26, 0) ? TT_PATH_C2C : TT_PATH_NVL;

    for (guint i = 0; i < b->xml->c2c->len && b->system->version >= TT_NCCL_VERSION(2, 20, 0);
         i++) {
        const TtXmlC2c *c2c = &g_array_index(b->xml->c2c, TtXmlC2c, i);
        guint gpu = b->gpu_node[c2c->gpu], pci = g_array_index(b->xml->gpu, TtXmlGpu, c2c->gpu).pci,
              cpu = b->cpu_node[g_array_index(b->xml->pci, TtXmlPci, pci).cpu];

        if (gpu != TT_NO_INDEX && c2c->mb_per_s > 0 && c2c->count > 0)
            tt_system_connect(b, gpu, cpu, type, (float)(c2c->mb_per_s * c2c->count / 1000.0));
    }
}

static void
add_switch_links(TtSystemBuild *b)
{
    for (guint i = 0; i < b->xml->pci_link->len; i++) {
        const TtXmlPciLink *link = &g_array_index(b->xml->pci_link, TtXmlPciLink, i);
        guint from = b->pci_node[link->pci];

        for (guint j = 0; j < b->xml->pci->len && link->target && from != TT_NO_INDEX; j++)
            if (b->pci_node[j] != TT_NO_INDEX && b->pci_node[j] != from &&
                tt_system_node_at(b, b->pci_node[j])->type == TT_SYS_PCI &&
                g_ascii_strcasecmp(g_array_index(b->xml->pci, TtXmlPci, j).bus_id, link->target) ==
                    0)
                connect_to(b, from, b->pci_node[j], TT_PATH_LOC, TT_SYS_LOC_BW);
    }
}

static void
connect_cpus(TtSystemBuild *b)
{
    for (guint i = 0; i < b->xml->cpu->len; i++)
        for (guint j = 0; j < b->xml->cpu->len; j++) {
            const TtSysNode *cpu = tt_system_node_at(b, b->cpu_node[i]);

            if (i != j && cpu->host == tt_system_node_at(b, b->cpu_node[j])->host)
                connect_to(b, b->cpu_node[i], b->cpu_node[j], TT_PATH_SYS, cpu->socket_bw);
        }
}

/* Traffic of a tree goes both ways: a link stated at one end only gets its other half. */
static void
add_missing_reverses(TtSystemBuild *b)
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
sort_links(TtSystemBuild *b)
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

gboolean
tt_system_add_links(TtSystemBuild *b, GError **error)
{
    connect_pci(b);
    add_nvlinks(b);
    add_c2c(b);
    add_switch_links(b);
    connect_cpus(b);
    add_missing_reverses(b);
    if (b->link->len <= G_MAXUINT16)
        return TRUE;
    g_set_error(error, TT_NCCL_ERROR, TT_NCCL_ERROR_USAGE,
                "%s: %u links between devices, at most %u", b->xml->origin, b->link->len,
                G_MAXUINT16);
    return FALSE;
}

void
tt_system_freeze(TtSystemBuild *b)
{
    sort_links(b);
    finish_links(b->system);
}
