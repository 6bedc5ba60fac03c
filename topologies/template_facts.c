/* template_facts - what of a node no wire tells, but NCCL asks for: generations, makers, abilities. */
#include "topologies/nccl_figures.h"
#include "topologies/template.h"

#include <math.h>
#include <string.h>

#define SAME_RATE 0.02 /* bandwidths this close, relatively, are of one PCIe link */

/* The words of NCCL's topology files (src/graph/topo.cc). Only Intel's figures depend on the model. */
static const struct {
    const char *name, *arch, *vendor;
} cpu_vendors[] = {
    { "intel", "x86_64", "GenuineIntel" },
    { "amd", "x86_64", "AuthenticAMD" },
    { "zhaoxin", "x86_64", "CentaurHauls" },
    { "arm", "arm64", NULL },
    { "power", "ppc64", NULL },
};

/* "intel 6 143", "amd 25 1", "arm". */
static gboolean
read_cpu_model(TtTemplate *t, TtKeys *keys, GError **error)
{
    const char *text = NULL;
    g_auto(GStrv) words = NULL;
    guint64 family = 0, model = 0;
    gboolean numbers;

    t->cpu_family = t->cpu_model = -1;
    if (!tt_keys_text(keys, "node", "cpu", FALSE, &text, error))
        return FALSE;
    if (!text)
        return TRUE;
    words = g_strsplit(text, " ", -1);
    numbers = g_strv_length(words) == 3 &&
              g_ascii_string_to_unsigned(words[1], 10, 0, G_MAXUINT16, &family, NULL) &&
              g_ascii_string_to_unsigned(words[2], 10, 0, G_MAXUINT16, &model, NULL);
    for (gsize i = 0; (numbers || g_strv_length(words) == 1) && i < G_N_ELEMENTS(cpu_vendors);
         i++) {
        if (strcmp(words[0], cpu_vendors[i].name) != 0)
            continue;
        t->cpu_arch = cpu_vendors[i].arch;
        t->cpu_vendor = cpu_vendors[i].vendor;
        t->cpu_family = numbers ? (int)family : -1;
        t->cpu_model = numbers ? (int)model : -1;
        return TRUE;
    }
    tt_keys_error(keys, tt_keys_find(keys, "node", "cpu"), error,
                  "must be a vendor (intel, amd, zhaoxin, arm, power) and maybe family and model "
                  "(\"intel 6 143\")");
    return FALSE;
}

static const struct {
    const char *network, *prefix;
} networks[] = { { "infiniband", "mlx5_" },
                 { "roce", "roce" },
                 { "efa", "rdmap" },
                 { "slingshot", "cxi" },
                 { "tcp", "eth" } };

/* NCCL's files know networks by the names of their NICs. */
static gboolean
read_network(TtTemplate *t, TtKeys *keys, GError **error)
{
    const char *text = NULL;

    if (!tt_keys_text(keys, "nic", "network", FALSE, &text, error))
        return FALSE;
    if (!text)
        return TRUE;
    for (guint i = 0; i < G_N_ELEMENTS(networks); i++)
        if (!strcmp(text, networks[i].network))
            t->nic_prefix = networks[i].prefix;
    if (t->nic_prefix)
        return TRUE;
    tt_keys_error(keys, tt_keys_find(keys, "nic", "network"), error,
                  "must be infiniband, roce, efa, slingshot or tcp");
    return FALSE;
}

/* The key that stands for NICs of this name; NULL if none does. */
const char *
tt_template_network_of(const char *nic_name)
{
    for (guint i = 0; i < G_N_ELEMENTS(networks); i++)
        if (g_str_has_prefix(nic_name, networks[i].prefix))
            return networks[i].network;
    return NULL;
}

/* "gpu-0 nic-3". */
static gboolean
read_without_gdr(TtTemplate *t, TtKeys *keys, GError **error)
{
    const char *text = NULL;
    g_auto(GStrv) words = NULL;

    t->without_gdr = g_new0(guint8, t->n_devices + 1);
    if (!tt_keys_text(keys, "node", "without-gdr", FALSE, &text, error))
        return FALSE;
    words = g_strsplit_set(text ? text : "", " \t,", -1);
    for (guint i = 0; words[i]; i++) {
        TtDeviceKind kind = g_str_has_prefix(words[i], "gpu-") ? TT_DEVICE_GPU : TT_DEVICE_NIC;
        guint64 number = 0;

        if (!*words[i])
            continue;
        if ((kind == TT_DEVICE_NIC && !g_str_has_prefix(words[i], "nic-")) || !t->count[kind] ||
            !g_ascii_string_to_unsigned(words[i] + 4, 10, 0, t->count[kind] - 1, &number, NULL)) {
            g_autofree char *quoted = tt_quote(words[i]);

            tt_keys_error(keys, tt_keys_find(keys, "node", "without-gdr"), error,
                          "\"%s\" is no GPU or NIC of the node (\"gpu-0 nic-3\")", quoted);
            return FALSE;
        }
        t->without_gdr[t->first[kind] + number] = TRUE;
    }
    return TRUE;
}

/* "32 GT/s x16" */
static gboolean
parse_pcie(const char *text, double *gts, guint *width)
{
    char *rest;
    guint64 lanes;

    if (!g_ascii_isdigit(*text))
        return FALSE;
    *gts = g_ascii_strtod(text, &rest);
    if (!(*gts > 0 && *gts <= 1000) || !g_str_has_prefix(rest, " GT/s x") ||
        !g_ascii_string_to_unsigned(rest + strlen(" GT/s x"), 10, 1, 32, &lanes, NULL))
        return FALSE;
    *width = (guint)lanes;
    return TRUE;
}

gboolean
tt_template_read_pcie(TtKeys *keys, const char *section, TtBundle *bundle, GError **error)
{
    const char *text = NULL;
    double gts = 0;
    guint width = 0;

    if (strcmp(bundle->kind, "pcie") == 0)
        tt_pcie_nearest(bundle->bytes_per_s, &bundle->pcie_gts, &bundle->pcie_width);
    if (!tt_keys_text(keys, section, "pcie", FALSE, &text, error))
        return FALSE;
    if (!text)
        return TRUE;
    if (strcmp(bundle->kind, "pcie") != 0 ||
        (strcmp(text, "unknown") != 0 && !parse_pcie(text, &gts, &width))) {
        tt_keys_error(keys, tt_keys_find(keys, section, "pcie"), error,
                      "must be like \"32 GT/s x16\", or unknown, and stands on links of kind pcie");
        return FALSE;
    }
    if (fabs(log(bundle->bytes_per_s / 1e9 / tt_pcie_gbytes_per_s(gts, width))) > SAME_RATE)
        return TRUE;
    bundle->pcie_gts = gts;
    bundle->pcie_width = width;
    return TRUE;
}

/* One "NUMBER: RATE". Cables are the last wires. */
static gboolean
slow_down(TtTemplate *t, const char *text, gboolean noticed)
{
    g_auto(GStrv) sides = g_strsplit(text, ":", 2);
    const TtBundle *b = &g_array_index(t->bundles, TtBundle, t->bundles->len - 1);
    guint64 nic;
    double bytes_per_s;
    TtWire *cable;

    if (g_strv_length(sides) != 2 ||
        !g_ascii_string_to_unsigned(g_strstrip(sides[0]), 10, 0, t->n_nics - 1, &nic, NULL) ||
        !tt_parse_rate(g_strstrip(sides[1]), &bytes_per_s, NULL) || !(bytes_per_s >= 1e3))
        return FALSE;
    cable = &g_array_index(t->wires, TtWire, t->wires->len - 2 * (t->n_nics - nic));
    for (guint side = 0; side < 2; side++)
        cable[side].capacity_bytes_per_s =
            MIN(cable[side].capacity_bytes_per_s,
                b->capacity_bytes_per_s * (bytes_per_s / b->bytes_per_s));
    if (noticed)
        t->nic_reported_bytes_per_s[nic] = MIN(t->nic_reported_bytes_per_s[nic], bytes_per_s);
    return TRUE;
}

static gboolean
read_slow_nics(TtTemplate *t, TtKeys *keys, const char *name, gboolean noticed, GError **error)
{
    const char *text = NULL;
    g_auto(GStrv) items = NULL;

    if (!tt_keys_text(keys, "nic", name, FALSE, &text, error))
        return FALSE;
    items = g_strsplit(text ? text : "", ",", -1);
    for (guint i = 0; items[i]; i++) {
        g_autofree char *quoted = tt_quote(items[i]);

        if (slow_down(t, items[i], noticed))
            continue;
        tt_keys_error(
            keys, tt_keys_find(keys, "nic", name), error,
            "\"%s\" is not NUMBER: RATE with a NIC 0..%u (\"1: 100 Gbit/s, 3: 25 Gbit/s\")", quoted,
            t->n_nics - 1);
        return FALSE;
    }
    return TRUE;
}

gboolean
tt_template_read_slower(TtTemplate *t, TtKeys *keys, GError **error)
{
    t->nic_reported_bytes_per_s = g_new(double, t->n_nics);
    for (guint nic = 0; nic < t->n_nics; nic++)
        t->nic_reported_bytes_per_s[nic] =
            g_array_index(t->bundles, TtBundle, t->bundles->len - 1).bytes_per_s;
    return read_slow_nics(t, keys, "slower", TRUE, error) &&
           read_slow_nics(t, keys, "degraded", FALSE, error);
}

gboolean
tt_template_read_facts(TtTemplate *t, TtKeys *keys, GError **error)
{
    TtTime reported_ps = 0;

    t->trays = 1;
    t->gdr = TRUE;
    if (!tt_keys_count(keys, "node", "sm", FALSE, 10, 999, &t->sm, error) ||
        !tt_keys_yes_no(keys, "node", "gdr", FALSE, &t->gdr, error) ||
        !tt_keys_count(keys, "node", "trays", FALSE, 1, 64, &t->trays, error) ||
        !read_cpu_model(t, keys, error) || !read_without_gdr(t, keys, error) ||
        !tt_keys_time(keys, "nic", "reported-latency", FALSE, &reported_ps, error) ||
        !tt_keys_yes_no(keys, "nic", "sharp", FALSE, &t->sharp, error) ||
        !read_network(t, keys, error))
        return FALSE;
    t->nic_reported_latency_s = tt_ps_to_seconds(reported_ps);
    return TRUE;
}
