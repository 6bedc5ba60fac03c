/* nccl_xml_parse - what NCCL_TOPO_DUMP_FILE writes and NCCL_TOPO_FILE reads. Elements and their places:
 * NCCL src/graph/xml.cc; what absent attributes mean: src/graph/topo.cc. Elements and attributes not
 * known here are passed over, as NCCL does.
 */
#include "topologies/keys.h"
#include "topologies/nccl_xml.h"
#include "topologies/text_file.h"
#include "topologies/xml_reader.h"

#include <string.h>

#define MAX_CPUS      4096u /* a whole NVLink domain's dump holds its machines' CPUs */
#define MAX_OF_A_KIND 2048u
#define MAX_LINKS     8192u

typedef enum {
    E_NONE,
    E_SYSTEM,
    E_CPU,
    E_PCI,
    E_GPU,
    E_NVLINK,
    E_C2C,
    E_NIC,
    E_NET,
    E_PCILINK
} Kind;

typedef struct {
    TtNcclXml *xml;
    GHashTable *bus_ids;           /* "host bus id" -> line: each stands once on a machine */
    guint kind[TT_XML_MAX_DEPTH];  /* Kind of the elements around */
    guint index[TT_XML_MAX_DEPTH]; /* into the kind's array; a NIC has its PCI device's */
} Parse;

static const TtXmlRule elements[] = {
    { "system", "nothing: it is the whole file", E_SYSTEM, 1u << E_NONE },
    { "cpu", "<system>", E_CPU, 1u << E_SYSTEM },
    { "pci", "<cpu> or <pci>", E_PCI, 1u << E_CPU | 1u << E_PCI },
    { "gpu", "<pci>", E_GPU, 1u << E_PCI },
    { "nvlink", "<gpu>", E_NVLINK, 1u << E_GPU },
    { "xgmi", "<gpu>", E_NVLINK, 1u << E_GPU }, /* RCCL */
    { "c2c", "<gpu>", E_C2C, 1u << E_GPU },
    { "nic", "<pci> or <cpu>", E_NIC, 1u << E_PCI | 1u << E_CPU },
    { "net", "<nic>", E_NET, 1u << E_NIC },
    { "pcilink", "<pci>", E_PCILINK, 1u << E_PCI },
};

static char *
copy_of(const TtXmlElement *e, const char *name)
{
    return g_strdup(tt_xml_text(e, name));
}

/* Absent and empty are the same: "not stated". */
static char *
copy_if_any(const TtXmlElement *e, const char *name)
{
    const char *text = tt_xml_text(e, name);

    return text && *text ? g_strdup(text) : NULL;
}

static gboolean
has_room(const TtXmlElement *e, const GArray *array, guint max, GError **error)
{
    if (array->len < max)
        return TRUE;
    tt_xml_error(e, error, "more than %u of them", max);
    return FALSE;
}

/* --- system, cpu -------------------------------------------------------------------------------
 */

static gboolean
read_system(const TtXmlElement *e, GError **error)
{
    int version = 0; /* RCCL writes 2 */

    return tt_xml_int(e, "version", TRUE, 1, 2, &version, error);
}

static gboolean
read_cpu(Parse *p, const TtXmlElement *e, GError **error)
{
    TtXmlCpu cpu = { .family = -1, .model = -1 };
    int numa = -1;

    if (!has_room(e, p->xml->cpu, MAX_CPUS, error) ||
        !tt_xml_int(e, "numaid", TRUE, -1, G_MAXUINT16, &numa, error) ||
        !tt_xml_int(e, "familyid", FALSE, -1, G_MAXUINT16, &cpu.family, error) ||
        !tt_xml_int(e, "modelid", FALSE, -1, G_MAXUINT16, &cpu.model, error))
        return FALSE;
    cpu.numa_id = numa < 0 ? TT_NO_INDEX : (guint)numa; /* virtual machines often know none */
    cpu.affinity = copy_of(e, "affinity");
    cpu.arch = copy_if_any(e, "arch");
    cpu.vendor = copy_if_any(e, "vendor");
    cpu.host_hash = copy_if_any(e, "host_hash");
    p->index[e->depth] = p->xml->cpu->len;
    g_array_append_val(p->xml->cpu, cpu);
    return TRUE;
}

/* --- pci ---------------------------------------------------------------------------------------
 */

/* "16.0 GT/s PCIe", "8 GT/s", "2.5GT/s". Anything else says nothing: "", "Unknown", "Unknown speed". */
static double
parse_link_speed(const char *text)
{
    char *rest = NULL;
    double gts = text && g_ascii_isdigit(*text) ? g_ascii_strtod(text, &rest) : 0;

    if (!rest || gts < 1 || gts > 1000)
        return 0;
    return g_str_has_prefix(rest + strspn(rest, " "), "GT/s") ? gts : 0;
}

/* 0, "" and what the kernel writes for "unknown" (255) are not stated. */
static gboolean
read_link_width(const TtXmlElement *e, guint *width, GError **error)
{
    const char *text = tt_xml_text(e, "link_width");

    *width = 0;
    if (!text || !*text || g_ascii_strncasecmp(text, "unknown", 7) == 0)
        return TRUE;
    if (!tt_xml_count(e, "link_width", FALSE, 255, width, error))
        return FALSE;
    if (*width == 255)
        *width = 0;
    if (*width > 32 || (*width & (*width - 1) && *width != 12)) {
        tt_xml_error(e, error,
                     "link_width=\"%u\" is not one of 0 (unknown), 1, 2, 4, 8, 12, 16, 32", *width);
        return FALSE;
    }
    return TRUE;
}

static gboolean
is_new(Parse *p, const TtXmlElement *e, guint cpu, const char *bus_id, GError **error)
{
    const char *host = g_array_index(p->xml->cpu, TtXmlCpu, cpu).host_hash;
    char *key = g_strdup_printf("%s %s", host ? host : "", bus_id);
    guint earlier = GPOINTER_TO_UINT(g_hash_table_lookup(p->bus_ids, key));

    if (earlier) {
        g_autofree char *quoted = tt_quote(bus_id);

        tt_xml_error(e, error, "busid=\"%s\" stands already in line %u; each device has its own",
                     quoted, earlier);
        g_free(key);
        return FALSE;
    }
    g_hash_table_insert(p->bus_ids, key, GUINT_TO_POINTER(e->line));
    return TRUE;
}

static gboolean
read_pci(Parse *p, const TtXmlElement *e, GError **error)
{
    gboolean below_cpu = p->kind[e->depth - 1] == E_CPU;
    guint above = p->index[e->depth - 1], width = 0;
    TtXmlPci pci = { .cpu = above, .parent = TT_NO_INDEX };
    const char *bus_id = NULL;
    guint64 class_id = 0;

    if (!below_cpu) {
        pci.cpu = g_array_index(p->xml->pci, TtXmlPci, above).cpu;
        pci.parent = above;
    }
    if (!has_room(e, p->xml->pci, MAX_OF_A_KIND, error) ||
        !tt_xml_required(e, "busid", &bus_id, error) || !is_new(p, e, pci.cpu, bus_id, error) ||
        !tt_xml_hex(e, "class", FALSE, 0xffffff, &class_id, error) ||
        !read_link_width(e, &width, error))
        return FALSE;
    pci.bus_id = g_strdup(bus_id);
    pci.class_id = (guint32)class_id; /* 0: see deduce_classes() */
    pci.vendor = copy_if_any(e, "vendor");
    pci.device = copy_if_any(e, "device");
    pci.subsystem_vendor = copy_if_any(e, "subsystem_vendor");
    pci.subsystem_device = copy_if_any(e, "subsystem_device");
    pci.link_gts = parse_link_speed(tt_xml_text(e, "link_speed"));
    pci.link_width = width;
    p->index[e->depth] = p->xml->pci->len;
    g_array_append_val(p->xml->pci, pci);
    return TRUE;
}

static gboolean
read_pci_link(Parse *p, const TtXmlElement *e, GError **error)
{
    TtXmlPciLink link = { .pci = p->index[e->depth - 1] };
    const char *target = NULL;

    if (!has_room(e, p->xml->pci_link, MAX_LINKS, error) ||
        !tt_xml_required(e, "target", &target, error))
        return FALSE;
    link.target = g_strdup(target);
    g_array_append_val(p->xml->pci_link, link);
    return TRUE;
}

/* --- gpu ---------------------------------------------------------------------------------------
 */

/* rank and gdr absent: NCCL fills them in when it loads the file. */
static gboolean
read_gpu(Parse *p, const TtXmlElement *e, GError **error)
{
    TtXmlGpu gpu = { .pci = p->index[e->depth - 1], .dev = -1, .rank = -1, .gdr = TRUE };

    if (!has_room(e, p->xml->gpu, MAX_OF_A_KIND, error) ||
        !tt_xml_int(e, "dev", FALSE, -1, G_MAXUINT16, &gpu.dev, error) ||
        !tt_xml_int(e, "rank", FALSE, -1, G_MAXINT32, &gpu.rank, error) ||
        !tt_xml_count(e, "sm", TRUE, 999, &gpu.sm, error) ||
        !tt_xml_flag(e, "gdr", &gpu.gdr, error))
        return FALSE;
    p->index[e->depth] = p->xml->gpu->len;
    g_array_append_val(p->xml->gpu, gpu);
    return TRUE;
}

static gboolean
read_nvlink(Parse *p, const TtXmlElement *e, GError **error)
{
    TtXmlNvlink link = { .gpu = p->index[e->depth - 1], .count = 1 };
    const char *target = NULL;
    guint64 class_id = 0;

    if (!has_room(e, p->xml->nvlink, MAX_LINKS, error) ||
        !tt_xml_required(e, "target", &target, error) ||
        !tt_xml_count(e, "count", TRUE, 1024, &link.count, error) ||
        !tt_xml_hex(e, "tclass", FALSE, 0xffffff, &class_id, error))
        return FALSE;
    link.target = g_strdup(target);
    link.target_class = (guint32)class_id;
    g_array_append_val(p->xml->nvlink, link);
    return TRUE;
}

static gboolean
read_c2c(Parse *p, const TtXmlElement *e, GError **error)
{
    TtXmlC2c link = { .gpu = p->index[e->depth - 1], .count = 1 };

    if (!has_room(e, p->xml->c2c, MAX_LINKS, error) ||
        !tt_xml_number(e, "bw", TRUE, 1e9, &link.mb_per_s, error) ||
        !tt_xml_count(e, "count", TRUE, 1024, &link.count, error))
        return FALSE;
    g_array_append_val(p->xml->c2c, link);
    return TRUE;
}

/* --- nic ---------------------------------------------------------------------------------------
 */

static void
read_nic(Parse *p, const TtXmlElement *e)
{
    p->index[e->depth] = p->index[e->depth - 1];
}

static gboolean
read_net(Parse *p, const TtXmlElement *e, GError **error)
{
    gboolean below_cpu = p->kind[e->depth - 2] == E_CPU;
    guint above = p->index[e->depth - 1];
    TtXmlNet net = { .pci = TT_NO_INDEX, .cpu = above, .gdr = TRUE, .keep = TRUE };

    if (!below_cpu) {
        net.pci = above;
        net.cpu = g_array_index(p->xml->pci, TtXmlPci, above).cpu;
    }
    if (!has_room(e, p->xml->net, MAX_OF_A_KIND, error) ||
        !tt_xml_count(e, "dev", FALSE, G_MAXUINT16, &net.dev, error) ||
        !tt_xml_int(e, "speed", TRUE, -1, 100000000, &net.speed_mbps, error) ||
        !tt_xml_count(e, "port", FALSE, G_MAXUINT16, &net.port, error) ||
        !tt_xml_number(e, "latency", FALSE, 1e6, &net.latency_us, error) ||
        !tt_xml_count(e, "maxconn", FALSE, G_MAXINT32, &net.max_conn, error) ||
        !tt_xml_flag(e, "gdr", &net.gdr, error) || !tt_xml_flag(e, "coll", &net.coll, error) ||
        !tt_xml_flag(e, "keep", &net.keep, error))
        return FALSE;
    net.name = copy_if_any(e, "name");
    if (!net.name)
        net.name = g_strdup_printf("net%u", net.dev);
    net.guid = copy_if_any(e, "guid");
    g_array_append_val(p->xml->net, net);
    return TRUE;
}

/* --- all of it ---------------------------------------------------------------------------------
 */

static gboolean
read_element(Parse *p, const TtXmlElement *e, Kind kind, GError **error)
{
    switch (kind) {
    case E_SYSTEM: return read_system(e, error);
    case E_CPU: return read_cpu(p, e, error);
    case E_PCI: return read_pci(p, e, error);
    case E_GPU: return read_gpu(p, e, error);
    case E_NVLINK: return read_nvlink(p, e, error);
    case E_C2C: return read_c2c(p, e, error);
    case E_NIC: read_nic(p, e); return TRUE;
    case E_NET: return read_net(p, e, error);
    case E_PCILINK: return read_pci_link(p, e, error);
    case E_NONE: break;
    }
    g_assert_not_reached();
}

static TtXmlVerdict
on_element(gpointer user, const TtXmlElement *e, GError **error)
{
    Parse *p = user;
    GError *misplaced = NULL;
    const TtXmlRule *rule =
        tt_xml_place(e, elements, G_N_ELEMENTS(elements), "an NCCL topology", p->kind, &misplaced);

    if (rule)
        return read_element(p, e, rule->kind, error) ? TT_XML_ENTER : TT_XML_FAILED;
    if (!misplaced)
        return TT_XML_SKIP;
    g_propagate_error(error, misplaced);
    return TT_XML_FAILED;
}

/* NCCL asks the kernel for a class that is not stated; what hangs below tells as much. */
static void
deduce_classes(TtNcclXml *xml)
{
    for (guint i = 0; i < xml->gpu->len; i++) {
        guint pci = g_array_index(xml->gpu, TtXmlGpu, i).pci;
        guint32 *class_id = &g_array_index(xml->pci, TtXmlPci, pci).class_id;

        *class_id = *class_id ? *class_id : 0x030200;
    }
    for (guint i = 0; i < xml->net->len; i++) {
        guint pci = g_array_index(xml->net, TtXmlNet, i).pci;

        if (pci != TT_NO_INDEX && !g_array_index(xml->pci, TtXmlPci, pci).class_id)
            g_array_index(xml->pci, TtXmlPci, pci).class_id = 0x020000;
    }
    for (guint i = 0; i < xml->pci->len; i++) {
        guint32 *class_id = &g_array_index(xml->pci, TtXmlPci, i).class_id;

        *class_id = *class_id ? *class_id : 0x060400;
    }
}

/* A target that is no GPU of the file is a switch; in virtual machines it has no real bus id. */
static void
deduce_targets(TtNcclXml *xml)
{
    for (guint i = 0; i < xml->nvlink->len; i++) {
        TtXmlNvlink *link = &g_array_index(xml->nvlink, TtXmlNvlink, i);

        if (link->target_class)
            continue;
        link->target_class = 0x068000;
        for (guint k = 0; k < xml->pci->len; k++) {
            const TtXmlPci *pci = &g_array_index(xml->pci, TtXmlPci, k);

            if (g_ascii_strcasecmp(pci->bus_id, link->target) == 0)
                link->target_class = pci->class_id;
        }
    }
}

TtNcclXml *
tt_nccl_xml_parse(const char *origin, const char *text, gsize length, GError **error)
{
    g_autoptr(TtNcclXml) xml = tt_nccl_xml_new(origin);
    g_autoptr(GHashTable) bus_ids = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    Parse parse = { .xml = xml, .bus_ids = bus_ids };

    if (!tt_xml_read(origin, text, length, on_element, &parse, error))
        return NULL;
    deduce_classes(xml);
    deduce_targets(xml);
    return g_steal_pointer(&xml);
}

TtNcclXml *
tt_nccl_xml_load(const char *path, GError **error)
{
    gsize length = 0;
    g_autofree char *text = tt_text_file_read(path, TT_XML_MAX_BYTES, &length, error);

    return text ? tt_nccl_xml_parse(path, text, length, error) : NULL;
}
