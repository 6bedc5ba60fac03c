/* nccl_xml_to_ini - an NCCL topology file in the words of our own format, so that routes, fabrics and
 * what-ifs work on it as on any other node.
 *
 * A PCI device with one GPU or NIC on it and nothing below becomes that GPU or NIC; any other that leads
 * to one becomes a PCIe switch; the rest falls away, as in NCCL. All NVSwitches of a node are one.
 * Latencies are not in such files: they are the presets' ones.
 */
#include "topologies/keys.h"
#include "topologies/nccl_ini_private.h"
#include "topologies/template.h"

#include <string.h>

/* --- what is in use ----------------------------------------------------------------------------
 */

static int
by_rank(gconstpointer a, gconstpointer b, gpointer user)
{
    const TtIniWriter *w = user;
    const TtXmlGpu *one = tt_xml_gpu_at(w->xml, *(const guint *)a),
                   *two = tt_xml_gpu_at(w->xml, *(const guint *)b);

    if (one->rank != two->rank)
        return one->rank < two->rank ? -1 : 1;
    return one->dev < two->dev ? -1 : one->dev > two->dev;
}

static int
by_dev(gconstpointer a, gconstpointer b, gpointer user)
{
    const TtIniWriter *w = user;
    guint one = tt_xml_net_at(w->xml, *(const guint *)a)->dev,
          two = tt_xml_net_at(w->xml, *(const guint *)b)->dev;

    return one < two ? -1 : one > two;
}

/* GPUs without a rank are not part of the communicator, unless none has one. */
static gboolean
choose_devices(TtIniWriter *w, GError **error)
{
    gboolean any_rank = FALSE;

    for (guint i = 0; i < w->xml->gpu->len; i++)
        any_rank |= tt_xml_gpu_at(w->xml, i)->rank >= 0;
    for (guint i = 0; i < w->xml->gpu->len; i++)
        if (tt_xml_gpu_at(w->xml, i)->rank >= 0 || !any_rank)
            g_array_append_val(w->gpus, i);
    for (guint i = 0; i < w->xml->net->len; i++)
        if (tt_xml_net_at(w->xml, i)->keep)
            g_array_append_val(w->nets, i);
    g_array_sort_with_data(w->gpus, by_rank, w);
    g_array_sort_with_data(w->nets, by_dev, w);
    if (w->gpus->len >= 1 && w->gpus->len <= TT_MAX_RANKS_PER_NODE &&
        w->nets->len <= TT_MAX_NICS_PER_NODE && w->xml->cpu->len <= TT_MAX_CPUS_PER_NODE)
        return TRUE;

    g_autofree char *origin = tt_quote(w->xml->origin);

    if (w->gpus->len == 0)
        g_set_error(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_FILE,
                    "%s: no <gpu> in it: let NCCL write the file (NCCL_TOPO_DUMP_FILE)", origin);
    else
        g_set_error(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_FILE,
                    "%s: %u GPUs, %u NICs and %u CPUs; a node has %u, %u and %u at most", origin,
                    w->gpus->len, w->nets->len, w->xml->cpu->len, TT_MAX_RANKS_PER_NODE,
                    TT_MAX_NICS_PER_NODE, TT_MAX_CPUS_PER_NODE);
    return FALSE;
}

static void
note(TtIniWriter *w, guint pci)
{
    if (pci == TT_NO_INDEX)
        return;
    w->holds[pci]++;
    for (; pci != TT_NO_INDEX && !w->leads[pci]; pci = tt_xml_pci_at(w->xml, pci)->parent) {
        w->leads[pci] = TRUE;
        if (tt_xml_pci_at(w->xml, pci)->parent != TT_NO_INDEX)
            w->above[tt_xml_pci_at(w->xml, pci)->parent] = TRUE;
    }
}

static void
number_devices(TtIniWriter *w)
{
    for (guint i = 0; i < w->xml->gpu->len; i++)
        w->gpu_number[i] = TT_INI_NO_NUMBER;
    for (guint i = 0; i < w->gpus->len; i++) {
        guint gpu = g_array_index(w->gpus, guint, i);

        w->gpu_number[gpu] = i;
        note(w, tt_xml_gpu_at(w->xml, gpu)->pci);
    }
    for (guint i = 0; i < w->nets->len; i++)
        note(w, tt_xml_net_at(w->xml, g_array_index(w->nets, guint, i))->pci);
    for (guint i = 0; i < w->xml->pci->len; i++)
        if (tt_ini_is_switch(w, i))
            w->switch_number[i] = w->n_switches++;
}

/* --- sections ----------------------------------------------------------------------------------
 */

static void
write_cpu(TtIniWriter *w)
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
count_trays(const TtIniWriter *w)
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

/* One fact for all, or who goes without. */
static void
write_gdr(TtIniWriter *w)
{
    g_autoptr(GString) without = g_string_new(NULL);
    guint n = 0;

    for (guint i = 0; i < w->gpus->len; i++) {
        if (tt_xml_gpu_at(w->xml, g_array_index(w->gpus, guint, i))->gdr)
            continue;
        g_string_append_printf(without, " gpu-%u", i);
        n++;
    }
    for (guint i = 0; i < w->nets->len; i++) {
        if (tt_xml_net_at(w->xml, g_array_index(w->nets, guint, i))->gdr)
            continue;
        g_string_append_printf(without, " nic-%u", i);
        n++;
    }
    if (n == w->gpus->len + w->nets->len)
        g_string_append(w->text, "gdr = no ; spec: the file's\n");
    else if (n > 0)
        g_string_append_printf(w->text, "without-gdr =%s ; spec: the file's\n", without->str);
}

static void
write_slower_nics(TtIniWriter *w)
{
    const char *before = "slower = ";

    for (guint i = 0; i < w->nets->len; i++) {
        guint mbps = tt_ini_mbps_of(tt_xml_net_at(w->xml, g_array_index(w->nets, guint, i)));

        if (mbps >= w->nic_mbps)
            continue;
        g_string_append_printf(w->text, "%s%u: %.10g Gbit/s", before, i, mbps / 1000.0);
        before = ", ";
    }
    if (before[0] == ',')
        g_string_append(w->text, " ; spec: the file's speeds\n");
}

static void
write_node(TtIniWriter *w, gboolean nvswitch)
{
    const TtXmlGpu *first = tt_xml_gpu_at(w->xml, g_array_index(w->gpus, guint, 0));
    guint trays = count_trays(w);

    g_string_append_printf(w->text, "[node]\ngpus = %u\ncpus = %u\npcie-switches = %u\n",
                           w->gpus->len, w->xml->cpu->len, w->n_switches);
    if (nvswitch)
        g_string_append(w->text, "nvswitches = 1\n");
    g_string_append_printf(w->text, "nics = %u\n", w->nets->len);
    if (first->sm >= 10)
        g_string_append_printf(w->text, "sm = %u ; spec: the file's\n", first->sm);
    write_cpu(w);
    write_gdr(w);
    if (trays > 1)
        g_string_append_printf(w->text, "trays = %u ; spec: the file's\n", trays);
}

static void
write_nics(TtIniWriter *w)
{
    double latency_us = 0;
    gboolean sharp = FALSE, ib;
    const char *network;

    if (w->nets->len == 0)
        return;
    ib = g_str_has_prefix(tt_xml_net_at(w->xml, g_array_index(w->nets, guint, 0))->name, "mlx");
    for (guint i = 0; i < w->nets->len; i++) {
        const TtXmlNet *net = tt_xml_net_at(w->xml, g_array_index(w->nets, guint, i));

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
    write_slower_nics(w);
    if (latency_us > 0)
        g_string_append_printf(w->text, "reported-latency = %.10g us ; spec: the file's\n",
                               MIN(latency_us, 1e6));
    network = tt_template_network_of(tt_xml_net_at(w->xml, g_array_index(w->nets, guint, 0))->name);
    if (network)
        g_string_append_printf(w->text, "network = %s ; spec: the name of the NICs\n", network);
    if (sharp)
        g_string_append(w->text, "sharp = yes ; spec: the file's\n");
    g_string_append_printf(w->text,
                           "\n[fabric]\ntype = %s ; assumed: a network that never limits\n"
                           "latency = 0.25 us ; assumed: switch port to port and cable\n",
                           w->nets->len > 1 ? "rail" : "single-switch");
}

static void
write_all(TtIniWriter *w)
{
    g_autofree char *base = g_path_get_basename(w->xml->origin), *name = tt_quote(base);
    gboolean nvswitch;

    for (guint i = 0; i < w->nets->len; i++)
        w->nic_mbps = MAX(w->nic_mbps,
                          tt_ini_mbps_of(tt_xml_net_at(w->xml, g_array_index(w->nets, guint, i))));
    nvswitch = tt_ini_collect_links(w);
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
    TtIniWriter w = { .xml = xml,
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
