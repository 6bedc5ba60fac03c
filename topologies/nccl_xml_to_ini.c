/* nccl_xml_to_ini - an NCCL topology file in the words of our own format, so that routes, fabrics and
 * what-ifs work on it as on any other node.
 *
 * A PCI device with one GPU or NIC on it and nothing below becomes that GPU or NIC; any other that leads
 * to one becomes a PCIe switch; the rest falls away, as in NCCL. All NVSwitches of a node are one.
 * Latencies are not in such files: they are the presets' ones.
 */
#include "topologies/keys.h"
#include "topologies/nccl_figures.h"
#include "topologies/template.h"

#include <math.h>
#include <string.h>

#define PCIE_LATENCY                                                                               \
    "0.25 us ; fitted: a quarter of NCCL's 1.0 us per PCI hop with LL, over four links"
#define NO_NUMBER G_MAXUINT

typedef struct {
    const TtNcclXml *xml;
    GArray *gpus, *nets; /* indices in use, in order of our numbers */
    guint *gpu_number;   /* [xml->gpu->len], NO_NUMBER: not in use */
    guint *holds;        /* [xml->pci->len] GPUs and NICs right on it */
    gboolean *leads,
        *above; /* [xml->pci->len] to a GPU or NIC, itself included; to another such PCI */
    guint *switch_number; /* [xml->pci->len] */
    guint n_switches, nic_mbps;
    GString *text;
    GHashTable *links; /* "link NAME ..." -> GString of pairs */
    GPtrArray *order;  /* of its keys */
} Writer;

static const TtXmlGpu *
gpu_at(const Writer *w, guint i)
{
    return &g_array_index(w->xml->gpu, TtXmlGpu, i);
}

static const TtXmlNet *
net_at(const Writer *w, guint i)
{
    return &g_array_index(w->xml->net, TtXmlNet, i);
}

static const TtXmlPci *
pci_at(const Writer *w, guint i)
{
    return &g_array_index(w->xml->pci, TtXmlPci, i);
}

/* --- what is in use ----------------------------------------------------------------------------
 */

static int
by_rank(gconstpointer a, gconstpointer b, gpointer user)
{
    const Writer *w = user;
    const TtXmlGpu *one = gpu_at(w, *(const guint *)a), *two = gpu_at(w, *(const guint *)b);

    if (one->rank != two->rank)
        return one->rank < two->rank ? -1 : 1;
    return one->dev < two->dev ? -1 : one->dev > two->dev;
}

static int
by_dev(gconstpointer a, gconstpointer b, gpointer user)
{
    const Writer *w = user;
    guint one = net_at(w, *(const guint *)a)->dev, two = net_at(w, *(const guint *)b)->dev;

    return one < two ? -1 : one > two;
}

/* GPUs without a rank are not part of the communicator, unless none has one. */
static gboolean
choose_devices(Writer *w, GError **error)
{
    gboolean any_rank = FALSE;

    for (guint i = 0; i < w->xml->gpu->len; i++)
        any_rank |= gpu_at(w, i)->rank >= 0;
    for (guint i = 0; i < w->xml->gpu->len; i++)
        if (gpu_at(w, i)->rank >= 0 || !any_rank)
            g_array_append_val(w->gpus, i);
    for (guint i = 0; i < w->xml->net->len; i++)
        if (net_at(w, i)->keep)
            g_array_append_val(w->nets, i);
    g_array_sort_with_data(w->gpus, by_rank, w);
    g_array_sort_with_data(w->nets, by_dev, w);
    if (w->gpus->len >= 1 && w->gpus->len <= TT_MAX_RANKS_PER_NODE &&
        w->nets->len <= TT_MAX_NICS_PER_NODE)
        return TRUE;

    g_autofree char *origin = tt_quote(w->xml->origin);

    g_set_error(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_FILE,
                w->gpus->len ? "%s: %u GPUs and %u NICs (at most %u and %u of a node)"
                             : "%s: no <gpu> in it: let NCCL write the file (NCCL_TOPO_DUMP_FILE)",
                origin, w->gpus->len, w->nets->len, TT_MAX_RANKS_PER_NODE, TT_MAX_NICS_PER_NODE);
    return FALSE;
}

static void
note(Writer *w, guint pci)
{
    if (pci == TT_NO_INDEX)
        return;
    w->holds[pci]++;
    for (; pci != TT_NO_INDEX && !w->leads[pci]; pci = pci_at(w, pci)->parent) {
        w->leads[pci] = TRUE;
        if (pci_at(w, pci)->parent != TT_NO_INDEX)
            w->above[pci_at(w, pci)->parent] = TRUE;
    }
}

static gboolean
is_switch(const Writer *w, guint pci)
{
    return w->leads[pci] && (w->above[pci] || w->holds[pci] > 1);
}

static void
number_devices(Writer *w)
{
    for (guint i = 0; i < w->xml->gpu->len; i++)
        w->gpu_number[i] = NO_NUMBER;
    for (guint i = 0; i < w->gpus->len; i++) {
        guint gpu = g_array_index(w->gpus, guint, i);

        w->gpu_number[gpu] = i;
        note(w, gpu_at(w, gpu)->pci);
    }
    for (guint i = 0; i < w->nets->len; i++)
        note(w, net_at(w, g_array_index(w->nets, guint, i))->pci);
    for (guint i = 0; i < w->xml->pci->len; i++)
        if (is_switch(w, i))
            w->switch_number[i] = w->n_switches++;
}

/* --- links -------------------------------------------------------------------------------------
 */

/* Adds a pair to the link section that @head (everything but the pairs) begins. Takes @head over. */
static void
add_pair(Writer *w, char *head, guint from, guint to, guint times)
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

    return g_strdup_printf(
        "[link pcie-%s-%s-%gx%u%s]\nfrom = %s\nto = %s\nkind = pcie\n"
        "bandwidth = %.6g GB/s ; %s %g GT/s x%u\n"
        "efficiency = 76.2 %% ; fitted: NCCL counts 12 GB/s for 8 GT/s x16\n"
        "latency = " PCIE_LATENCY "\n",
        from, to, gts, width, stated ? "" : "-assumed", from, to, tt_pcie_gbytes_per_s(gts, width),
        stated ? "spec: the file's" : "assumed: NCCL's where the file says none,", gts, width);
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

/* A NIC slower than the fastest: [nic] is one speed, so its own stands here. */
static char *
slow_nic_head(const char *to, guint mbps)
{
    return g_strdup_printf("[link slow-nic-%s-%u]\nfrom = nic\nto = %s\nkind = pcie\n"
                           "bandwidth = %g Gbit/s ; spec: the file's speed of this NIC\n"
                           "efficiency = 97 %% ; assumed: as other NICs\n"
                           "latency = " PCIE_LATENCY "\n",
                           to, mbps, to, mbps / 1000.0);
}

static guint
mbps_of(const TtXmlNet *net)
{
    return net->speed_mbps > 0 ? (guint)net->speed_mbps : 10000; /* as NCCL */
}

/* The wire from @kind @number on PCI device @pci (TT_NO_INDEX: right below @cpu) upwards. */
static void
add_device(Writer *w, const char *kind, guint number, guint pci, guint cpu, guint slow_mbps)
{
    gboolean to_cpu = pci == TT_NO_INDEX;
    guint to = cpu;
    char *head;

    if (!to_cpu && is_switch(w, pci)) {
        to = w->switch_number[pci];
        head =
            slow_mbps ? slow_nic_head("pcie-switch", slow_mbps) : local_head(kind, "pcie-switch");
    } else {
        const TtXmlPci *own = to_cpu ? NULL : pci_at(w, pci);

        to_cpu = !own || own->parent == TT_NO_INDEX;
        to = to_cpu ? cpu : w->switch_number[own->parent];
        if (slow_mbps)
            head = slow_nic_head(to_cpu ? "cpu" : "pcie-switch", slow_mbps);
        else if (own)
            head = pcie_head(kind, to_cpu ? "cpu" : "pcie-switch", own);
        else
            head = local_head(kind, "cpu");
    }
    add_pair(w, head, number, to, 1);
}

static void
add_devices(Writer *w)
{
    for (guint i = 0; i < w->gpus->len; i++) {
        guint pci = gpu_at(w, g_array_index(w->gpus, guint, i))->pci;

        add_device(w, "gpu", i, pci, pci_at(w, pci)->cpu, 0);
    }
    for (guint i = 0; i < w->nets->len; i++) {
        const TtXmlNet *net = net_at(w, g_array_index(w->nets, guint, i));
        guint mbps = mbps_of(net);

        add_device(w, "nic", i, net->pci, net->cpu, mbps < w->nic_mbps ? mbps : 0);
    }
    for (guint i = 0; i < w->xml->pci->len; i++) {
        const TtXmlPci *pci = pci_at(w, i);
        gboolean to_cpu = pci->parent == TT_NO_INDEX;

        if (is_switch(w, i))
            add_pair(w, pcie_head("pcie-switch", to_cpu ? "cpu" : "pcie-switch", pci),
                     w->switch_number[i], to_cpu ? pci->cpu : w->switch_number[pci->parent], 1);
    }
}

static guint
pci_with_bus_id(const Writer *w, const char *bus_id)
{
    for (guint i = 0; i < w->xml->pci->len; i++)
        if (g_ascii_strcasecmp(pci_at(w, i)->bus_id, bus_id) == 0)
            return i;
    return TT_NO_INDEX;
}

static void
add_pci_links(Writer *w)
{
    for (guint i = 0; i < w->xml->pci_link->len; i++) {
        const TtXmlPciLink *link = &g_array_index(w->xml->pci_link, TtXmlPciLink, i);
        guint target = pci_with_bus_id(w, link->target);
        guint one, two;

        if (target == TT_NO_INDEX || !is_switch(w, link->pci) || !is_switch(w, target))
            continue;
        one = w->switch_number[link->pci];
        two = w->switch_number[target];
        if (one < two) /* both ends name it */
            add_pair(w, pcie_head("pcie-switch", "pcie-switch", pci_at(w, link->pci)), one, two, 1);
    }
}

static char *
nvlink_head(const Writer *w, guint gpu, guint32 target_class, const char *to)
{
    TtNvlinkSpeed speed = tt_nvlink_speed(gpu_at(w, gpu)->sm);
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

/* Links from GPU @from's entry to GPU @to. */
static guint
count_between(const Writer *w, guint from, guint to)
{
    const char *bus_id = pci_at(w, gpu_at(w, to)->pci)->bus_id;
    guint n = 0;

    for (guint i = 0; i < w->xml->nvlink->len; i++) {
        const TtXmlNvlink *link = &g_array_index(w->xml->nvlink, TtXmlNvlink, i);

        if (link->gpu == from && g_ascii_strcasecmp(link->target, bus_id) == 0)
            n += link->count;
    }
    return n;
}

/* What the two ends say, the smaller where both say something. */
static void
add_nvlinks_between(Writer *w)
{
    for (guint a = 0; a < w->gpus->len; a++) {
        for (guint b = a + 1; b < w->gpus->len; b++) {
            guint one = g_array_index(w->gpus, guint, a), two = g_array_index(w->gpus, guint, b);
            guint there = count_between(w, one, two), back = count_between(w, two, one);
            guint n = there && back ? MIN(there, back) : MAX(there, back);
            guint32 target_class = pci_at(w, gpu_at(w, two)->pci)->class_id;

            if (n)
                add_pair(w, nvlink_head(w, one, target_class, "gpu"), a, b, n);
        }
    }
}

static gboolean
add_nvlinks_to_others(Writer *w)
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
                     pci_at(w, gpu_at(w, gpu)->pci)->cpu, to_cpu);
        any_switch |= to_switch > 0;
    }
    return any_switch;
}

static void
add_c2c(Writer *w)
{
    for (guint i = 0; i < w->xml->c2c->len; i++) {
        const TtXmlC2c *link = &g_array_index(w->xml->c2c, TtXmlC2c, i);

        if (w->gpu_number[link->gpu] == NO_NUMBER || link->count == 0 || link->mb_per_s < 1)
            continue;
        add_pair(w,
                 g_strdup_printf("[link c2c-%.0f]\nfrom = gpu\nto = cpu\nkind = c2c\n"
                                 "bandwidth = %.0f MB/s ; spec: the file's\n"
                                 "latency = 0.3 us ; assumed: as half an NVLink hop\n",
                                 link->mb_per_s, link->mb_per_s),
                 w->gpu_number[link->gpu], pci_at(w, gpu_at(w, link->gpu)->pci)->cpu, link->count);
    }
}

/* Every socket to every other of the same machine. */
static void
add_sockets(Writer *w)
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
                                rate, rate ? rate : 10,
                                rate ? "fitted: NCCL's figure for these CPUs"
                                     : "assumed: NCCL has no figure for these CPUs"),
                a, b, 1);
        }
    }
}

/* --- sections ----------------------------------------------------------------------------------
 */

static void
write_cpu(Writer *w)
{
    const TtXmlCpu *cpu;
    const char *name = NULL;

    if (w->xml->cpu->len == 0)
        return;
    cpu = &g_array_index(w->xml->cpu, TtXmlCpu, 0);
    if (g_strcmp0(cpu->vendor, "GenuineIntel") == 0)
        name = "intel";
    else if (g_strcmp0(cpu->vendor, "AuthenticAMD") == 0 || g_strcmp0(cpu->vendor, "AMD") == 0)
        name = "amd";
    else if (cpu->vendor)
        name = "zhaoxin";
    else if (g_strcmp0(cpu->arch, "arm64") == 0)
        name = "arm";
    else if (g_strcmp0(cpu->arch, "ppc64") == 0)
        name = "power";
    if (!name)
        return;
    g_string_append_printf(w->text, "cpu = %s", name);
    if (cpu->family >= 0 && cpu->model >= 0)
        g_string_append_printf(w->text, " %d %d", cpu->family, cpu->model);
    g_string_append(w->text, " ; spec: the file's\n");
}

/* Machines of an NVLink domain: they stand one after the other, equally large, or are not told. */
static guint
count_trays(const Writer *w)
{
    g_autoptr(GHashTable) hosts = g_hash_table_new(g_str_hash, g_str_equal);
    guint n;

    for (guint i = 0; i < w->xml->cpu->len; i++) {
        const char *host = g_array_index(w->xml->cpu, TtXmlCpu, i).host_hash;

        g_hash_table_add(hosts, (gpointer)(host ? host : ""));
    }
    n = g_hash_table_size(hosts);
    return n > 1 && n <= 64 && w->xml->cpu->len % n == 0 ? n : 1;
}

static void
write_node(Writer *w, gboolean nvswitch)
{
    const TtXmlGpu *first = gpu_at(w, g_array_index(w->gpus, guint, 0));
    guint trays = count_trays(w);
    gboolean gdr = FALSE;

    g_string_append_printf(w->text, "[node]\ngpus = %u\ncpus = %u\npcie-switches = %u\n",
                           w->gpus->len, w->xml->cpu->len, w->n_switches);
    if (nvswitch)
        g_string_append(w->text, "nvswitches = 1\n");
    g_string_append_printf(w->text, "nics = %u\n", w->nets->len);
    if (first->sm >= 10)
        g_string_append_printf(w->text, "sm = %u ; spec: the file's\n", first->sm);
    write_cpu(w);
    for (guint i = 0; i < w->gpus->len; i++)
        gdr |= gpu_at(w, g_array_index(w->gpus, guint, i))->gdr;
    if (!gdr)
        g_string_append(w->text, "gdr = no ; spec: the file's\n");
    if (trays > 1)
        g_string_append_printf(w->text, "trays = %u ; spec: the file's\n", trays);
}

static void
write_nics(Writer *w)
{
    double latency_us = 0;
    gboolean sharp = FALSE, ib;

    if (w->nets->len == 0)
        return;
    ib = g_str_has_prefix(net_at(w, g_array_index(w->nets, guint, 0))->name, "mlx");
    for (guint i = 0; i < w->nets->len; i++) {
        const TtXmlNet *net = net_at(w, g_array_index(w->nets, guint, i));

        latency_us = MAX(latency_us, net->latency_us);
        sharp |= net->coll;
    }
    g_string_append_printf(w->text,
                           "\n[nic]\nkind = %s\nbandwidth = %g Gbit/s ; spec: the file's speed\n"
                           "efficiency = %s %% ; assumed: as NICs of the presets\n"
                           "latency = 0.5 us ; assumed: one NIC's share of about 1 us for a small "
                           "write through one switch\n",
                           ib ? "ib" : "ethernet", w->nic_mbps / 1000.0,
                           w->nic_mbps >= 400000 ? "98" : "97");
    if (latency_us > 0)
        g_string_append_printf(w->text, "reported-latency = %.10g us ; spec: the file's\n",
                               MIN(latency_us, 1e6));
    if (sharp)
        g_string_append(w->text, "sharp = yes ; spec: the file's\n");
    g_string_append_printf(w->text,
                           "\n[fabric]\ntype = %s ; assumed: a network that never limits\n"
                           "latency = 0.25 us ; assumed: switch port to port and cable\n",
                           w->nets->len > 1 ? "rail" : "single-switch");
}

static void
write_all(Writer *w)
{
    g_autofree char *base = g_path_get_basename(w->xml->origin), *name = tt_quote(base);
    gboolean nvswitch;

    for (guint i = 0; i < w->nets->len; i++)
        w->nic_mbps = MAX(w->nic_mbps, mbps_of(net_at(w, g_array_index(w->nets, guint, i))));
    nvswitch = add_nvlinks_to_others(w);
    add_nvlinks_between(w);
    add_devices(w);
    add_pci_links(w);
    add_c2c(w);
    add_sockets(w);
    g_string_append_printf(w->text,
                           "[topology]\nname = %s\ndescription = a node as NCCL sees it\n\n", name);
    write_node(w, nvswitch);
    for (guint i = 0; i < w->order->len; i++) {
        const GString *pairs = g_hash_table_lookup(w->links, w->order->pdata[i]);

        g_string_append_printf(w->text, "\n%spairs =%s\n", (const char *)w->order->pdata[i],
                               pairs->str);
    }
    write_nics(w);
}

static void
string_free(gpointer string)
{
    g_string_free(string, TRUE);
}

char *
tt_nccl_xml_to_ini(const TtNcclXml *xml, GError **error)
{
    guint n_pci = xml->pci->len + 1, n_gpus = xml->gpu->len + 1;
    g_autoptr(GArray) gpus = g_array_new(FALSE, FALSE, sizeof(guint));
    g_autoptr(GArray) nets = g_array_new(FALSE, FALSE, sizeof(guint));
    g_autofree guint *gpu_number = g_new0(guint, n_gpus), *holds = g_new0(guint, n_pci),
                     *switch_number = g_new0(guint, n_pci);
    g_autofree gboolean *leads = g_new0(gboolean, n_pci), *above = g_new0(gboolean, n_pci);
    g_autoptr(GHashTable) links =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, string_free);
    g_autoptr(GPtrArray) order = g_ptr_array_new();
    g_autoptr(GString) text = g_string_new(NULL);
    Writer w = { .xml = xml,
                 .gpus = gpus,
                 .nets = nets,
                 .gpu_number = gpu_number,
                 .holds = holds,
                 .leads = leads,
                 .above = above,
                 .switch_number = switch_number,
                 .text = text,
                 .links = links,
                 .order = order };

    if (!choose_devices(&w, error))
        return NULL;
    number_devices(&w);
    write_all(&w);
    return g_strdup(text->str);
}
