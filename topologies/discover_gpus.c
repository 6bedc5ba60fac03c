/* discover_gpus - a machine with GPUs as NCCL would detect it.
 *
 * The kernel's path of a device names every bridge; a PCIe switch is two of them, an upstream port and below it a
 * downstream port for each device. As in NCCL every second one stands for its switch:
 *
 *     pci0000:16 / 0000:16:01.0 / 0000:17:00.0 / 0000:18:00.0 / 0000:1b:00.0
 *     complex      root port      upstream port  downstream     GPU
 *     <cpu>                       <pci>                         <pci><gpu>
 *
 * Speeds are the lower of what device and port can do, since idle links go slow to save power; widths are those in
 * use, since a link that lost lanes does not get them back.
 */
#include "topologies/discover_gpus.h"
#include "topologies/nvml.h"
#include "topologies/sysfs.h"

#include <string.h>

#define GPU_CLASS       0x030000
#define NVSWITCH_CLASS  0x068000
#define NPU_CLASS       0x068001
#define IB_CONNECTIONS  131072 /* as NCCL's own network code says of itself */
#define TCP_CONNECTIONS 65536

/* A PCI device in use: a GPU, a NIC's, or a switch above one. */
typedef struct Place Place;
struct Place {
    char *bus_id;
    Place *parent; /* NULL: the CPU */
    guint numa;    /* TT_NO_INDEX: not known */
    const TtNvmlGpu *gpu;
    GArray *nets;  /* TtXmlNet */
    guint written; /* index in the result */
};

typedef struct {
    const char *root;
    GPtrArray *notes, *gpus;
    GHashTable *by_bus_id; /* bus id -> Place, owned */
    GArray *loose;         /* TtXmlNet of no PCI device */
    TtNcclXml *xml;
    gboolean gdr;
    guint n_nets;
} Finder;

static void
place_free(gpointer data)
{
    Place *place = data;

    g_free(place->bus_id);
    g_array_unref(place->nets); /* names were handed over */
    g_free(place);
}

/* --- places -------------------------------------------------------------------------------------- */

static Place *
place_at(Finder *f, const char *bus_id)
{
    Place *place = g_hash_table_lookup(f->by_bus_id, bus_id);
    gint64 numa;

    if (place)
        return place;
    place = g_new0(Place, 1);
    place->bus_id = g_strdup(bus_id);
    place->nets = g_array_new(FALSE, FALSE, sizeof(TtXmlNet));
    numa = tt_sysfs_number(-1, f->root, "/sys/bus/pci/devices/%s/numa_node", bus_id);
    place->numa = numa < 0 || numa >= G_MAXINT ? TT_NO_INDEX : (guint)numa;
    g_hash_table_insert(f->by_bus_id, place->bus_id, place);
    return place;
}

/* The device @path leads to, with the switches above it; NULL if it hangs on no PCI bus. */
static Place *
place_of(Finder *f, const char *path)
{
    g_auto(GStrv) way = tt_sysfs_pci_way(f->root, path);
    guint n = g_strv_length(way);
    Place *first = NULL, *below = NULL;

    for (guint i = n; i > 0; i = i > 2 ? i - 2 : 0) {
        Place *place;

        if (i == 1 && below) /* a root port */
            break;
        place = place_at(f, way[i - 1]);
        if (below)
            below->parent = place;
        else
            first = place;
        below = place;
    }
    return first;
}

/* --- GPUs ---------------------------------------------------------------------------------------- */

static void
place_gpus(Finder *f)
{
    for (guint i = 0; i < f->gpus->len; i++) {
        const TtNvmlGpu *gpu = f->gpus->pdata[i];
        g_autofree char *path = g_strconcat("/sys/bus/pci/devices/", gpu->bus_id, NULL);
        Place *place = place_of(f, path);

        if (!place) {
            g_ptr_array_add(f->notes,
                            g_strdup_printf("GPU %u (%s): the kernel shows no way to it (%s)",
                                            gpu->index, gpu->bus_id, path));
            place = place_at(f, gpu->bus_id);
        }
        if (gpu->mig)
            g_ptr_array_add(f->notes,
                            g_strdup_printf("GPU %u (%s) is in MIG mode: its instances have no "
                                            "NVLinks; it is shown as one GPU",
                                            gpu->index, gpu->bus_id));
        place->gpu = gpu;
    }
}

/* --- NICs ---------------------------------------------------------------------------------------- */

static void
add_net(Finder *f, const char *path, TtXmlNet net)
{
    Place *place = place_of(f, path);

    net.keep = TRUE;
    g_array_append_val(place ? place->nets : f->loose, net);
    f->n_nets++;
}

/* "b859:9f03:00aa:bbcc" as 0xb8599f0300aabbcc. */
static char *
guid_words(const char *text)
{
    g_auto(GStrv) parts = g_strsplit(text ? text : "", ":", -1);
    g_autofree char *joined = g_strjoinv("", parts);

    return joined[0] ? g_strconcat("0x", joined, NULL) : NULL;
}

static void
add_port(Finder *f, const char *device, const char *port)
{
    g_autofree char *path = g_strdup_printf("/sys/class/infiniband/%s", device);
    g_autofree char *state = tt_sysfs_read(f->root, "%s/ports/%s/state", path, port);
    g_autofree char *rate = tt_sysfs_read(f->root, "%s/ports/%s/rate", path, port);
    g_autofree char *guid = tt_sysfs_read(f->root, "%s/sys_image_guid", path);
    g_autofree char *to = g_strconcat(path, "/device", NULL);

    if (!state || !strstr(state, "ACTIVE"))
        return;
    add_net(f, to,
            (TtXmlNet){ .name = g_strdup(device),
                        .speed_mbps = rate ? (int)(g_ascii_strtod(rate, NULL) * 1000) : 0,
                        .port = (guint)g_ascii_strtoull(port, NULL, 10),
                        .guid = guid_words(guid),
                        .max_conn = IB_CONNECTIONS,
                        .gdr = f->gdr });
}

static void
find_rdma(Finder *f)
{
    g_auto(GStrv) devices = tt_sysfs_list(f->root, "/sys/class/infiniband");

    for (guint d = 0; devices[d]; d++) {
        g_autofree char *folder = g_strdup_printf("/sys/class/infiniband/%s/ports", devices[d]);
        g_auto(GStrv) ports = tt_sysfs_list(f->root, folder);
        guint before = f->n_nets;

        for (guint p = 0; ports[p]; p++)
            add_port(f, devices[d], ports[p]);
        if (f->n_nets == before)
            g_ptr_array_add(f->notes,
                            g_strdup_printf("%s is left out: no port of it is up", devices[d]));
    }
}

/* Where there is no RDMA: interfaces of hardware that are up. */
static void
find_ethernet(Finder *f)
{
    g_auto(GStrv) names = tt_sysfs_list(f->root, "/sys/class/net");

    for (guint i = 0; names[i]; i++) {
        g_autofree char *path = g_strdup_printf("/sys/class/net/%s/device", names[i]);
        g_autofree char *state = tt_sysfs_read(f->root, "/sys/class/net/%s/operstate", names[i]);
        gint64 mbps = tt_sysfs_number(-1, f->root, "/sys/class/net/%s/speed", names[i]);

        if (!tt_sysfs_exists(f->root, "%s", path) || g_strcmp0(state, "down") == 0)
            continue;
        add_net(f, path,
                (TtXmlNet){ .name = g_strdup(names[i]),
                            .speed_mbps = mbps > 0 && mbps < 10000000 ? (int)mbps : 0,
                            .port = 1,
                            .max_conn = TCP_CONNECTIONS });
    }
}

/* NICs reach GPU memory by nvidia_peermem, or by dma-buf, for which the kernel module is the open one (not marked P
 * for proprietary). */
static gboolean
has_gdr(const char *root)
{
    g_autofree char *taint = tt_sysfs_read(root, "/sys/module/nvidia/taint");

    return tt_sysfs_exists(root, "/sys/module/nvidia_peermem") ||
           tt_sysfs_exists(root, "/sys/module/nv_peer_mem") || (taint && !strchr(taint, 'P'));
}

/* --- CPUs ---------------------------------------------------------------------------------------- */

/* The first "key : value" of /proc/cpuinfo. Caller frees. */
static char *
cpuinfo(const char *text, const char *key)
{
    g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);

    for (guint i = 0; lines[i]; i++) {
        char *colon = strchr(lines[i], ':');

        if (!colon)
            continue;
        *colon = '\0';
        if (strcmp(g_strstrip(lines[i]), key) == 0)
            return g_strdup(g_strstrip(colon + 1));
    }
    return NULL;
}

static guint
add_cpu(Finder *f, guint numa)
{
    g_autofree char *info = tt_sysfs_read(f->root, "/proc/cpuinfo");
    g_autofree char *family = cpuinfo(info, "cpu family"), *model = cpuinfo(info, "model");
    TtXmlCpu cpu = { .numa_id = numa, .family = -1, .model = -1 };

    for (guint i = 0; i < f->xml->cpu->len; i++)
        if (tt_xml_cpu_at(f->xml, i)->numa_id == numa)
            return i;
    cpu.vendor = cpuinfo(info, "vendor_id");
    cpu.arch = g_strdup(cpu.vendor                                ? "x86_64"
                        : info && strstr(info, "CPU implementer") ? "arm64"
                                                                  : "ppc64");
    if (cpu.vendor && family && model) {
        cpu.family = (int)g_ascii_strtoull(family, NULL, 10);
        cpu.model = (int)g_ascii_strtoull(model, NULL, 10);
        if (cpu.family > 15) /* NCCL counts the extended family sixteenfold */
            cpu.family = 15 + ((cpu.family - 15) << 4);
    }
    if (numa != TT_NO_INDEX)
        cpu.affinity = tt_sysfs_read(f->root, "/sys/devices/system/node/node%u/cpumap", numa);
    g_array_append_val(f->xml->cpu, cpu);
    return f->xml->cpu->len - 1;
}

/* --- the result ---------------------------------------------------------------------------------- */

static void
write_links(Finder *f, guint index, const TtNvmlGpu *gpu)
{
    guint first = f->xml->nvlink->len;

    for (guint i = 0; i < gpu->links->len; i++) {
        const TtNvmlLink *link = &g_array_index(gpu->links, TtNvmlLink, i);
        guint32 class_id = link->peer == TT_NVLINK_SWITCH ? NVSWITCH_CLASS
                           : link->peer == TT_NVLINK_NPU  ? NPU_CLASS
                                                          : GPU_CLASS | 0x200;
        TtXmlNvlink made = { .gpu = index, .count = 1, .target_class = class_id };
        guint k;

        for (k = first; k < f->xml->nvlink->len; k++)
            if (strcmp(g_array_index(f->xml->nvlink, TtXmlNvlink, k).target, link->bus_id) == 0)
                break;
        if (k < f->xml->nvlink->len) {
            g_array_index(f->xml->nvlink, TtXmlNvlink, k).count++;
            continue;
        }
        made.target = g_strdup(link->bus_id);
        g_array_append_val(f->xml->nvlink, made);
    }
}

static void
write_nets(Finder *f, const GArray *nets, guint cpu, guint pci)
{
    for (guint i = 0; i < nets->len; i++) {
        TtXmlNet net = g_array_index(nets, TtXmlNet, i);

        net.cpu = cpu;
        net.pci = pci;
        g_array_append_val(f->xml->net, net);
    }
}

static double
speed_of(const Finder *f, const char *bus_id, const char *up)
{
    g_autofree char *text =
        tt_sysfs_read(f->root, "/sys/bus/pci/devices/%s/%smax_link_speed", bus_id, up);

    return text ? g_ascii_strtod(text, NULL) : 0; /* "Unknown" is 0 */
}

static guint
width_of(const Finder *f, const char *bus_id, const char *file)
{
    gint64 n = tt_sysfs_number(0, f->root, "/sys/bus/pci/devices/%s/%s", bus_id, file);

    return n > 0 && n <= 32 ? (guint)n : 0;
}

/* The lower of two figures, either of which may be 0: not known. */
#define LOWER(a, b) ((a) > 0 && (b) > 0 ? MIN(a, b) : MAX(a, b))

static void
write_place(Finder *f, Place *place, guint cpu)
{
    g_autofree char *class_text =
        tt_sysfs_read(f->root, "/sys/bus/pci/devices/%s/class", place->bus_id);
    const char *id = place->bus_id;
    TtXmlPci pci = { .cpu = cpu, .parent = place->parent ? place->parent->written : TT_NO_INDEX };
    guint most = LOWER(width_of(f, id, "max_link_width"), width_of(f, id, "../max_link_width"));

    pci.bus_id = g_strdup(id);
    pci.class_id = class_text   ? (guint32)g_ascii_strtoull(class_text, NULL, 16)
                   : place->gpu ? GPU_CLASS | 0x200
                                : 0x060400;
    pci.vendor = tt_sysfs_read(f->root, "/sys/bus/pci/devices/%s/vendor", id);
    pci.device = tt_sysfs_read(f->root, "/sys/bus/pci/devices/%s/device", id);
    pci.subsystem_vendor = tt_sysfs_read(f->root, "/sys/bus/pci/devices/%s/subsystem_vendor", id);
    pci.subsystem_device = tt_sysfs_read(f->root, "/sys/bus/pci/devices/%s/subsystem_device", id);
    pci.link_gts = LOWER(speed_of(f, id, ""), speed_of(f, id, "../"));
    pci.link_width = LOWER(most, width_of(f, id, "current_link_width"));
    place->written = f->xml->pci->len;
    g_array_append_val(f->xml->pci, pci);
    if (place->gpu) {
        TtXmlGpu gpu = { .pci = place->written,
                         .dev = (int)place->gpu->index,
                         .rank = -1,
                         .sm = place->gpu->sm,
                         .gdr = TRUE };

        write_links(f, f->xml->gpu->len, place->gpu);
        g_array_append_val(f->xml->gpu, gpu);
    }
    write_nets(f, place->nets, cpu, place->written);
}

/* Those below @parent, and what is below them; at most as deep as the kernel's paths are. */
static void
write_below(Finder *f, GPtrArray *places, const Place *parent, guint numa, guint cpu)
{
    for (guint i = 0; i < places->len; i++) {
        Place *place = places->pdata[i];

        if (place->parent != parent || (!parent && place->numa != numa))
            continue;
        write_place(f, place, cpu);
        write_below(f, places, place, numa, cpu);
    }
}

static int
by_numa_and_bus_id(gconstpointer a, gconstpointer b)
{
    const Place *one = *(const Place *const *)a, *two = *(const Place *const *)b;

    if (one->numa != two->numa)
        return one->numa < two->numa ? -1 : 1;
    return strcmp(one->bus_id, two->bus_id);
}

static void
number_nets(TtNcclXml *xml)
{
    g_autoptr(GPtrArray) nets = g_ptr_array_new();

    for (guint i = 0; i < xml->net->len; i++)
        g_ptr_array_add(nets, &g_array_index(xml->net, TtXmlNet, i));
    for (guint i = 0; i < nets->len; i++) { /* as the kernel's names are ordered */
        TtXmlNet *net = nets->pdata[i];

        for (guint k = 0; k < nets->len; k++) {
            const TtXmlNet *other = nets->pdata[k];
            int order = strverscmp(other->name, net->name);

            net->dev += order < 0 || (order == 0 && k < i);
        }
    }
}

static void
write_all(Finder *f)
{
    g_autoptr(GPtrArray) places = g_ptr_array_new();
    GHashTableIter iter;
    gpointer place;

    g_hash_table_iter_init(&iter, f->by_bus_id);
    while (g_hash_table_iter_next(&iter, NULL, &place))
        g_ptr_array_add(places, place);
    g_ptr_array_sort(places, by_numa_and_bus_id);
    for (guint i = 0; i < places->len; i++) {
        const Place *top = places->pdata[i];
        guint n = f->xml->cpu->len, cpu = top->parent ? 0 : add_cpu(f, top->numa);

        if (f->xml->cpu->len > n) /* a CPU for the first time: all of it */
            write_below(f, places, NULL, top->numa, cpu);
    }
    write_nets(f, f->loose, 0, TT_NO_INDEX);
    number_nets(f->xml);
}

TtNcclXml *
tt_discover_gpus(const TtDiscovery *where, GPtrArray *notes, GError **error)
{
    g_autoptr(GPtrArray) gpus = tt_nvml_gpus(where->library, notes, error);
    g_autoptr(GHashTable) by_bus_id = NULL;
    g_autoptr(GArray) loose = NULL;
    Finder f;

    if (!gpus)
        return NULL;
    by_bus_id = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, place_free);
    loose = g_array_new(FALSE, FALSE, sizeof(TtXmlNet));
    f = (Finder){ .root = where->root ? where->root : "",
                  .notes = notes,
                  .gpus = gpus,
                  .by_bus_id = by_bus_id,
                  .loose = loose,
                  .xml = tt_nccl_xml_new("this") };
    f.gdr = has_gdr(f.root);
    place_gpus(&f);
    find_rdma(&f);
    if (f.n_nets == 0)
        find_ethernet(&f);
    write_all(&f);
    return f.xml;
}
