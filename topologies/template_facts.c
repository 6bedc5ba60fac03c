/* template_facts - what of a node no wire tells, but NCCL asks for: generations, makers, abilities. */
#include "topologies/template.h"

#include <string.h>

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

gboolean
tt_template_read_facts(TtTemplate *t, TtKeys *keys, GError **error)
{
    TtTime reported_ps = 0;

    t->trays = 1;
    t->gdr = TRUE;
    if (!tt_keys_count(keys, "node", "sm", FALSE, 10, 999, &t->sm, error) ||
        !tt_keys_yes_no(keys, "node", "gdr", FALSE, &t->gdr, error) ||
        !tt_keys_count(keys, "node", "trays", FALSE, 1, 64, &t->trays, error) ||
        !read_cpu_model(t, keys, error) ||
        !tt_keys_time(keys, "nic", "reported-latency", FALSE, &reported_ps, error) ||
        !tt_keys_yes_no(keys, "nic", "sharp", FALSE, &t->sharp, error) ||
        !read_network(t, keys, error))
        return FALSE;
    t->nic_reported_latency_s = tt_ps_to_seconds(reported_ps);
    return TRUE;
}
