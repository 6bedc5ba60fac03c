#include "topologies/template.h"

#include <string.h>

#define MAX_WIRES      60000u /* fits 16 bits; a full mesh of 240 devices */
#define MAX_PER_BUNDLE 1024u  /* links in one bundle */

static const struct {
    const char *name, *key; /* key NULL: not in files */
    guint max;
} kinds[TT_N_DEVICE_KINDS] = {
    [TT_DEVICE_GPU] = { "gpu", "gpus", TT_MAX_RANKS_PER_NODE },
    [TT_DEVICE_HOST] = { "host", "hosts", TT_MAX_RANKS_PER_NODE },
    [TT_DEVICE_PROCESS] = { "process", "processes", TT_MAX_RANKS_PER_NODE },
    [TT_DEVICE_CPU] = { "cpu", "cpus", TT_MAX_CPUS_PER_NODE },
    [TT_DEVICE_CACHE] = { "cache", "caches", 256 },
    [TT_DEVICE_MEMORY] = { "memory", "memories", 256 },
    [TT_DEVICE_PCIE_SWITCH] = { "pcie-switch", "pcie-switches", 256 },
    [TT_DEVICE_NVSWITCH] = { "nvswitch", "nvswitches", 64 },
    [TT_DEVICE_NIC] = { "nic", "nics", TT_MAX_NICS_PER_NODE },
    [TT_DEVICE_NETWORK] = { "network", NULL, 1 },
};

const char *const tt_node_keys[] = { "gpus",   "hosts",    "processes",     "cpus",
                                     "caches", "memories", "pcie-switches", "nvswitches",
                                     "nics",   "cores",    "pxn",           "sm",
                                     "gdr",    "cpu",      "trays",         "without-gdr",
                                     NULL };
const char *const tt_link_keys[] = { "from",      "to",         "pattern", "pairs", "width", "kind",
                                     "bandwidth", "efficiency", "latency", "pcie",  "burst", NULL };
const char *const tt_nic_keys[] = {
    "kind",   "bandwidth", "efficiency", "latency", "reported-latency", "sharp", "network",
    "slower", "degraded",  "burst",      NULL
};

static const char *const link_kinds[] = { "nvlink", "xgmi", "c2c",      "pcie", "cpu",
                                          "memory", "ib",   "ethernet", NULL };

const char *
tt_device_kind_name(TtDeviceKind kind)
{
    return kinds[kind].name;
}

TtDeviceKind
tt_template_kind_of(const TtTemplate *template, guint device)
{
    TtDeviceKind kind = TT_DEVICE_NETWORK;

    while (device < template->first[kind] ||
           device >= template->first[kind] + template->count[kind])
        kind--;
    return kind;
}

char *
tt_template_device_name(const TtTemplate *template, guint device)
{
    TtDeviceKind kind = tt_template_kind_of(template, device);

    if (kind == TT_DEVICE_NETWORK)
        return g_strdup(kinds[kind].name);
    return g_strdup_printf("%s %u", kinds[kind].name, device - template->first[kind]);
}

static void
bundle_clear(gpointer data)
{
    TtBundle *bundle = data;

    g_free(bundle->name);
    g_free(bundle->kind);
}

void
tt_template_free(TtTemplate *template)
{
    if (!template)
        return;
    g_array_unref(template->wires);
    g_array_unref(template->bundles);
    g_free(template->local);
    g_free(template->out);
    g_free(template->in);
    g_free(template->on_rail);
    g_free(template->own);
    g_free(template->without_gdr);
    g_free(template->nic_reported_bytes_per_s);
    g_free(template);
}

/* --- [node] ------------------------------------------------------------------------------------
 */

static gboolean
read_devices(TtTemplate *t, TtKeys *keys, GError **error)
{
    guint n_rank_kinds = 0;

    for (TtDeviceKind kind = 0; kind < TT_DEVICE_NETWORK; kind++) {
        gboolean holds_ranks = kind <= TT_DEVICE_PROCESS;

        if (!tt_keys_count(keys, "node", kinds[kind].key, FALSE, holds_ranks, kinds[kind].max,
                           &t->count[kind], error))
            return FALSE;
        if (holds_ranks && t->count[kind]) {
            t->rank_kind = kind;
            t->n_ranks = t->count[kind];
            n_rank_kinds++;
        }
        t->first[kind] = t->n_devices;
        t->n_devices += t->count[kind];
    }
    t->first[TT_DEVICE_NETWORK] = t->n_devices;
    t->count[TT_DEVICE_NETWORK] = 1;
    t->n_nics = t->count[TT_DEVICE_NIC];
    if (n_rank_kinds != 1) {
        tt_keys_error_whole(keys, error, "[node] needs exactly one of gpus, hosts and processes");
        return FALSE;
    }
    t->pxn = TRUE;
    return tt_keys_count(keys, "node", "cores", FALSE, 0, 65536, &t->cores, error) &&
           tt_keys_yes_no(keys, "node", "pxn", FALSE, &t->pxn, error);
}

/* --- [link NAME] -------------------------------------------------------------------------------
 */

/* One link of @width parallel ones: both directions. */
static gboolean
add_link(TtTemplate *t, guint from, guint to, guint width, const TtKeys *keys, const TtKey *key,
         GError **error)
{
    guint16 bundle = t->bundles->len - 1;
    const TtBundle *b = &g_array_index(t->bundles, TtBundle, bundle);
    TtWire there = { b->capacity_bytes_per_s * width, b->latency_ps, from, to, bundle };
    TtWire back = { b->capacity_bytes_per_s * width, b->latency_ps, to, from, bundle };

    if (t->wires->len + 2 > MAX_WIRES) {
        tt_keys_error(keys, key, error, "the node has more than %u links", MAX_WIRES / 2);
        return FALSE;
    }
    g_array_append_val(t->wires, there);
    g_array_append_val(t->wires, back);
    return TRUE;
}

/* "0-1 0-3x2": device numbers of the two kinds, and how many links run there. */
static gboolean
read_pair(TtTemplate *t, const char *text, guint width, const TtKeys *keys, const TtKey *key,
          GError **error)
{
    const TtBundle *b = &g_array_index(t->bundles, TtBundle, t->bundles->len - 1);
    g_auto(GStrv) ends = g_strsplit_set(text, "-x", -1);
    guint n = g_strv_length(ends);
    guint64 from, to, times = 1;
    const char *x = strchr(text, 'x'), *dash = strchr(text, '-');

    if (n < 2 || n > 3 || !dash || (n == 3) != (x != NULL) || (x && x < dash) ||
        !g_ascii_string_to_unsigned(ends[0], 10, 0, t->count[b->from] - 1, &from, NULL) ||
        !g_ascii_string_to_unsigned(ends[1], 10, 0, t->count[b->to] - 1, &to, NULL) ||
        (n == 3 && !g_ascii_string_to_unsigned(ends[2], 10, 1, MAX_PER_BUNDLE, &times, NULL)) ||
        (b->from == b->to && from == to)) {
        g_autofree char *quoted = tt_quote(text);

        tt_keys_error(keys, key, error,
                      "\"%s\" is not A-B or A-BxTIMES with A a %s 0..%u and B another %s 0..%u",
                      quoted, kinds[b->from].name, t->count[b->from] - 1, kinds[b->to].name,
                      t->count[b->to] - 1);
        return FALSE;
    }
    return add_link(t, t->first[b->from] + from, t->first[b->to] + to, width * times, keys, key,
                    error);
}

static gboolean
add_pairs(TtTemplate *t, const char *text, guint width, const TtKeys *keys, const TtKey *key,
          GError **error)
{
    g_auto(GStrv) pairs = g_strsplit_set(text, " \t,", -1);

    for (guint i = 0; pairs[i]; i++)
        if (*pairs[i] && !read_pair(t, pairs[i], width, keys, key, error))
            return FALSE;
    return TRUE;
}

/* Each of one kind to the one it stands at, in blocks: 8 GPUs on 4 switches are 2 on each. The kind
 * with more devices is spread over the other. */
static gboolean
add_own(TtTemplate *t, guint width, const TtKeys *keys, const TtKey *key, GError **error)
{
    const TtBundle *b = &g_array_index(t->bundles, TtBundle, t->bundles->len - 1);
    guint n_from = t->count[b->from], n_to = t->count[b->to], first = t->first[b->to];

    for (guint i = 0; i < n_from; i++)
        if (!add_link(t, t->first[b->from] + i, first + i * n_to / n_from, width, keys, key, error))
            return FALSE;
    return TRUE;
}

static gboolean
add_all(TtTemplate *t, guint width, const TtKeys *keys, const TtKey *key, GError **error)
{
    const TtBundle *b = &g_array_index(t->bundles, TtBundle, t->bundles->len - 1);
    TtDeviceKind from = b->from, to = b->to;

    for (guint i = 0; i < t->count[from]; i++)
        for (guint k = from == to ? i + 1 : 0; k < t->count[to]; k++)
            if (!add_link(t, t->first[from] + i, t->first[to] + k, width, keys, key, error))
                return FALSE;
    return TRUE;
}

/* *kind's count is 0 if [node] says outright that there are none: then the link is left out, so
 * that
 * `--set node.nics=0` is one setting and not three. */
static gboolean
read_kind(TtKeys *keys, const TtTemplate *t, const char *section, const char *name,
          TtDeviceKind *kind, GError **error)
{
    const char *text = NULL;
    g_autoptr(GString) allowed = g_string_new(NULL);

    if (!tt_keys_text(keys, section, name, TRUE, &text, error))
        return FALSE;
    for (TtDeviceKind k = 0; k < TT_DEVICE_NETWORK; k++) {
        if (t->count[k] == 0 && !tt_keys_find(keys, "node", kinds[k].key))
            continue;
        if (strcmp(text, kinds[k].name) == 0) {
            *kind = k;
            return TRUE;
        }
        g_string_append_printf(allowed, "%s%s", allowed->len ? ", " : "", kinds[k].name);
    }
    g_autofree char *quoted = tt_quote(text);

    tt_keys_error(keys, tt_keys_find(keys, section, name), error,
                  "the node has no \"%s\" (what it has: %s)", quoted, allowed->str);
    return FALSE;
}

/* Bandwidth, efficiency, latency and kind, as [link NAME] and [nic] both have them. */
static gboolean
read_bundle(TtKeys *keys, const char *section, TtBundle *bundle, GError **error)
{
    double bytes_per_s = 0, efficiency = 1;
    const char *kind = NULL;

    if (!tt_keys_text(keys, section, "kind", TRUE, &kind, error) ||
        !tt_keys_rate(keys, section, "bandwidth", TRUE, &bytes_per_s, error) ||
        !tt_keys_percent(keys, section, "efficiency", FALSE, &efficiency, error) ||
        !tt_keys_time(keys, section, "latency", TRUE, &bundle->latency_ps, error) ||
        !tt_keys_bytes(keys, section, "burst", FALSE, &bundle->burst_bytes, error))
        return FALSE;
    if (!g_strv_contains(link_kinds, kind)) {
        g_autofree char *allowed = g_strjoinv(", ", (char **)link_kinds);
        g_autofree char *quoted = tt_quote(kind);

        tt_keys_error(keys, tt_keys_find(keys, section, "kind"), error, "\"%s\" is not one of %s",
                      quoted, allowed);
        return FALSE;
    }
    bundle->kind = g_strdup(kind);
    bundle->bytes_per_s = bytes_per_s;
    bundle->capacity_bytes_per_s = bytes_per_s * efficiency;
    return TRUE;
}

static gboolean
add_pattern(TtTemplate *t, TtKeys *keys, const char *section, guint width, GError **error)
{
    const char *pattern = NULL, *pairs = NULL;

    if (!tt_keys_text(keys, section, "pattern", FALSE, &pattern, error) ||
        !tt_keys_text(keys, section, "pairs", FALSE, &pairs, error))
        return FALSE;
    if (!pattern == !pairs) {
        tt_keys_error_whole(keys, error, "[%s] needs either \"pattern\" or \"pairs\"", section);
        return FALSE;
    }

    const TtKey *key = tt_keys_find(keys, section, pattern ? "pattern" : "pairs");

    if (pairs)
        return add_pairs(t, pairs, width, keys, key, error);
    if (strcmp(pattern, "each-to-own") == 0)
        return add_own(t, width, keys, key, error);
    if (strcmp(pattern, "each-to-all") == 0)
        return add_all(t, width, keys, key, error);

    g_autofree char *quoted = tt_quote(pattern);

    tt_keys_error(keys, key, error, "\"%s\" is not one of each-to-own, each-to-all", quoted);
    return FALSE;
}

static gboolean
read_link(TtTemplate *t, TtKeys *keys, const char *section, GError **error)
{
    TtBundle bundle = { .name = g_strdup(section + strlen("link ")) };
    guint width = 1;

    if (!read_kind(keys, t, section, "from", &bundle.from, error) ||
        !read_kind(keys, t, section, "to", &bundle.to, error) ||
        !tt_keys_count(keys, section, "width", FALSE, 1, MAX_PER_BUNDLE, &width, error) ||
        !read_bundle(keys, section, &bundle, error) ||
        !tt_template_read_pcie(keys, section, &bundle, error)) {
        bundle_clear(&bundle);
        return FALSE;
    }
    g_array_append_val(t->bundles, bundle);
    if (t->count[bundle.from] == 0 || t->count[bundle.to] == 0)
        return TRUE;
    return add_pattern(t, keys, section, width, error);
}

/* --- [nic] -------------------------------------------------------------------------------------
 */

/* The cables. A NIC's own latency stands on its cable, once in each direction. */
static gboolean
read_nics(TtTemplate *t, TtKeys *keys, GError **error)
{
    TtBundle bundle = { .from = TT_DEVICE_NIC, .to = TT_DEVICE_NETWORK };

    if (t->n_nics == 0)
        return TRUE;
    if (!read_bundle(keys, "nic", &bundle, error)) {
        bundle_clear(&bundle);
        return FALSE;
    }
    bundle.name = g_strdup("nic");
    g_array_append_val(t->bundles, bundle);
    for (guint i = 0; i < t->n_nics; i++)
        if (!add_link(t, t->first[TT_DEVICE_NIC] + i, t->n_devices, 1, keys,
                      tt_keys_find(keys, "nic", "bandwidth"), error))
            return FALSE;
    return tt_template_read_slower(t, keys, error);
}

TtTemplate *
tt_template_new(TtKeys *keys, GError **error)
{
    g_autoptr(TtTemplate) t = g_new0(TtTemplate, 1);
    g_auto(GStrv) links = tt_keys_sections(keys, "link ");

    t->wires = g_array_new(FALSE, FALSE, sizeof(TtWire));
    t->bundles = g_array_new(FALSE, FALSE, sizeof(TtBundle));
    g_array_set_clear_func(t->bundles, bundle_clear);
    if (!read_devices(t, keys, error) || !tt_template_read_facts(t, keys, error))
        return NULL;
    for (guint i = 0; links[i]; i++)
        if (!read_link(t, keys, links[i], error))
            return NULL;
    if (!read_nics(t, keys, error))
        return NULL;
    return g_steal_pointer(&t);
}
