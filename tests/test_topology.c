/* Presets, routes inside a node, the file format and what it refuses. */
#include "tests/topology_check.h"
#include "topologies/topology_private.h"

#include <glib/gstdio.h>
#include <malloc.h>
#include <math.h>
#include <stdlib.h>

#define NS 1000
#define US 1000000

/* --- presets -----------------------------------------------------------------------------------
 */

/* Latencies: NVLink 300 ns a wire through a switch, 600 ns direct; PCIe 250 ns a wire; NIC 500 ns;
 * switch 250 ns; sockets 200 ns. Rates: what NCCL counts, see the presets. */
static const struct {
    const char *name, *topo;
    guint src, dst;
    const char *want;
    TtTime want_ps;
    double want_gbytes_per_s;
} routes[] = {
    { "two GPUs of a cube mesh face, one link", "dgx1-v100", 0, 1, "gpu 0 > gpu 1", 600 * NS, 20 },
    { "two links", "dgx1-v100", 0, 4, "gpu 0 > gpu 4", 600 * NS, 40 },
    /* 4 * 250 + 200 ns; QPI carries 6 GB/s */
    { "no link: over both sockets", "dgx1-v100", 0, 7,
      "gpu 0 > pcie-switch 0 > cpu 0 > cpu 1 > pcie-switch 3 > gpu 7", 1200 * NS, 6 },
    { "no link the other way", "dgx1-v100", 6, 1,
      "gpu 6 > pcie-switch 3 > cpu 1 > cpu 0 > pcie-switch 0 > gpu 1", 1200 * NS, 6 },
    { "any two of sixteen", "dgx2", 0, 15, "gpu 0 > nvswitch 0 > gpu 15", 600 * NS,
      120 },                                                                     /* 6 * 20 */
    { "A100", "dgx-a100", 3, 4, "gpu 3 > nvswitch 0 > gpu 4", 600 * NS, 240 },   /* 12 * 20 */
    { "H100", "dgx-h100", 7, 0, "gpu 7 > nvswitch 0 > gpu 0", 600 * NS, 370.8 }, /* 18 * 20.6 */
    { "H200", "hgx-h200", 1, 2, "gpu 1 > nvswitch 0 > gpu 2", 600 * NS, 370.8 },
    { "B200", "dgx-b200", 1, 2, "gpu 1 > nvswitch 0 > gpu 2", 600 * NS, 721.8 }, /* 18 * 40.1 */
    { "one root complex", "pcie-8x4090", 0, 3, "gpu 0 > cpu 0 > gpu 3", 1000 * NS, 24.009 },
    { "two root complexes", "pcie-8x4090", 0, 4, "gpu 0 > cpu 0 > cpu 1 > gpu 4", 1200 * NS, 16 },
    /* 2 * 250 (PCIe) + 2 * 500 (NICs) + 250 (switch); 12.5 * 97 % */
    { "two hosts", "hosts:2", 0, 1, "host 0 > nic 0 > switch > nic 0 > host 0", 1750 * NS, 12.125 },
    /* 4 * 250 (PCIe) + 2 * 500 + 250; 63.015 * 76.2 % = 48.017 is less than 50 * 98 % = 49 */
    { "same rail", "dgx-h100:2", 3, 11,
      "gpu 3 > pcie-switch 3 > nic 3 > rail 3 leaf 0 > nic 3 > pcie-switch 3 > gpu 3", 2250 * NS,
      48.017 },
    /* the same and NVLink's 600 ns */
    { "another rail: over the GPU beside its NIC", "dgx-h100:2", 3, 12,
      "gpu 3 > nvswitch 0 > gpu 4 > pcie-switch 4 > nic 4 > rail 4 leaf 0 > nic 4 > pcie-switch 4 "
      "> gpu 4",
      2850 * NS, 48.017 },
    { "two GPUs, two NICs, one PCIe switch: each its own", "dgx-a100:2", 1, 9,
      "gpu 1 > pcie-switch 0 > nic 1 > rail 1 leaf 0 > nic 1 > pcie-switch 0 > gpu 1", 2250 * NS,
      24.009 },
    /* 31.508 * 76.2 % = 24.009; 25 * 97 % = 24.25 */
    { "both NICs at hand: no peer needed", "dgx-a100:2", 0, 9,
      "gpu 0 > pcie-switch 0 > nic 1 > rail 1 leaf 0 > nic 1 > pcie-switch 0 > gpu 1", 2250 * NS,
      24.009 },
    { "a NIC for two GPUs", "dgx2:2", 2, 19,
      "gpu 2 > pcie-switch 1 > nic 1 > rail 1 leaf 0 > nic 1 > pcie-switch 1 > gpu 3", 2250 * NS,
      12.005 },
    /* cube mesh: GPU 0 has no NVLink to 6 or 7, whose NIC rail 3 is; so through the spine: one
     * switch more up and one more down */
    { "a rail no NVLink leads to", "dgx1-v100:2", 0, 15,
      "gpu 0 > pcie-switch 0 > nic 0 > rail 0 leaf 0 > spine 1 > rail 3 leaf 0 > nic 3 > "
      "pcie-switch 3 > gpu 7",
      2750 * NS, 12.005 },
    /* GPU 0 has NVLinks to 4, which shares a PCIe switch with NIC 2 */
    { "a rail NVLink leads to", "dgx1-v100:2", 0, 13,
      "gpu 0 > gpu 4 > pcie-switch 2 > nic 2 > rail 2 leaf 0 > nic 2 > pcie-switch 2 > gpu 5",
      2850 * NS, 12.005 },
};

static void
preset_routes_by_hand(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(routes); i++) {
        g_autoptr(TtTopology) topo = must_open(routes[i].topo, NULL);
        g_autofree char *got = route_text(topo, routes[i].src, routes[i].dst);
        TtTime got_ps = tt_topology_route_latency_ps(topo, routes[i].src, routes[i].dst);
        double rate = tt_topology_route_bytes_per_s(topo, routes[i].src, routes[i].dst);

        CHECK(strcmp(got, routes[i].want) == 0, "%s: %s", routes[i].name, got);
        CHECK(got_ps == routes[i].want_ps, "%s: %" G_GINT64_FORMAT " ps", routes[i].name, got_ps);
        CHECK(fabs(rate / (routes[i].want_gbytes_per_s * 1e9) - 1) < 1e-4, "%s: %g", routes[i].name,
              rate);
    }
}

static const char *
rank_kind_of(const char *preset)
{
    return strcmp(preset, "hosts") == 0 ? "host" : "gpu";
}

static void
every_pair_of_every_preset(void)
{
    guint n_presets = 0;

    for (const TtPreset *p = tt_presets; p->name; p++, n_presets++) {
        g_autofree char *text = g_strdup_printf("%s:3", p->name);
        g_autoptr(TtTopology) topo = must_open(text, NULL);
        guint n = tt_topology_n_ranks(topo);

        CHECK(*p->summary && strcmp(tt_topology_name(topo), text) == 0, "%s", p->name);
        CHECK(tt_topology_n_nodes(topo) == 3, "%s", text);
        CHECK(*tt_topology_warnings(topo) == NULL, "%s: %s", text, *tt_topology_warnings(topo));
        for (guint src = 0; src < n; src++)
            for (guint dst = 0; dst < n; dst++)
                CHECK(route_is_sound(topo, src, dst, rank_kind_of(p->name)), "%s: %u to %u", text,
                      src, dst);
        for (TtLink link = 0; link < tt_topology_n_links(topo); link++) {
            TtLinkInfo info = tt_topology_link(topo, link);

            CHECK(info.capacity_bytes_per_s > 0 && info.latency_ps >= 0 && info.kind, "%s: link %u",
                  text, link);
        }
    }
    CHECK(n_presets == 8, "%u presets", n_presets);
}

/* Every constant of a preset says whence it is, and says so in the description and the JSON. */
static void
every_constant_has_a_source(void)
{
    static const char *const quantities[] = { "bandwidth", "latency",          "efficiency",
                                              "width",     "oversubscription", "nodes-per-leaf",
                                              NULL };

    for (const TtPreset *p = tt_presets; p->name; p++) {
        g_autoptr(TtTopology) topo = must_open(p->name, NULL);
        g_autofree char *text = tt_topology_describe(topo), *json = tt_topology_to_json(topo);

        for (guint i = 0; i < tt_keys_n(topo->keys); i++) {
            const TtKey *key = tt_keys_nth(topo->keys, i);

            if (!g_strv_contains(quantities, key->key))
                continue;
            CHECK(key->basis && key->source, "%s: [%s] %s", p->name, key->section, key->key);
            CHECK(strstr(text, key->source), "%s: \"%s\" is not described", p->name, key->source);
            CHECK(strstr(json, key->section) || strstr(json, "needs json-glib"),
                  "%s: \"%s\" is not in the JSON", p->name, key->section);
        }
    }
}

static void
shapes_of_presets(void)
{
    static const struct {
        const char *name;
        guint ranks, nics, cores;
        double rank_out, node_out; /* GB/s */
    } rows[] = {
        /* 6 links * 20 + PCIe 15.754 * 76.2 % = 12.0045; 4 NICs * 12.0045 behind PCIe
           (cable 12.125) */
        { "dgx1-v100:2", 8, 4, 0, 132.0045, 48.018 },
        { "dgx2:2", 16, 8, 0, 132.0045, 96.036 },
        { "dgx-a100:2", 8, 8, 0, 264.0091, 192.0728 }, /* 240 + 24.0091; 8 * 24.0091 */
        { "dgx-h100:2", 8, 8, 0, 418.8174, 384.1394 }, /* 370.8 + 48.0174; 8 * 48.0174 */
        { "hgx-h200:2", 8, 8, 0, 418.8174, 384.1394 },
        { "dgx-b200:2", 8, 8, 0, 769.8174, 384.1394 }, /* 721.8 + 48.0174 */
        { "pcie-8x4090:2", 8, 1, 0, 24.0091, 12.125 },
        { "hosts:2", 1, 1, 16, 24.0091, 12.125 },
        /* alone: no route leaves by PCIe, and there is nowhere to leave to */
        { "dgx-h100", 8, 8, 0, 370.8, 0 },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(TtTopology) topo = must_open(rows[i].name, NULL);
        double out = tt_topology_rank_out_bytes_per_s(topo, 0) / 1e9;
        double node_out = tt_topology_node_out_bytes_per_s(topo, 0) / 1e9;

        CHECK_ROW(&rows[i], tt_topology_ranks_per_node(topo) == rows[i].ranks);
        CHECK_ROW(&rows[i], tt_topology_nics_per_node(topo) == rows[i].nics);
        CHECK_ROW(&rows[i], tt_topology_cores_per_node(topo) == rows[i].cores);
        CHECK(fabs(out - rows[i].rank_out) < 1e-3, "%s: %g GB/s", rows[i].name, out);
        CHECK(fabs(node_out - rows[i].node_out) < 2e-3, "%s: node %g GB/s", rows[i].name, node_out);
        CHECK_ROW(&rows[i], tt_topology_rank_in_bytes_per_s(topo, 0) / 1e9 == out);
        CHECK_ROW(&rows[i], tt_topology_node_in_bytes_per_s(topo, 0) / 1e9 == node_out);
    }
}

/* --- this machine ------------------------------------------------------------------------------
 */

static void
this_machine(void)
{
    GError *error = NULL;
    g_autoptr(TtTopology) plain = tt_topology_open("this", NULL, &error);

    if (!plain) { /* built without hwloc */
        CHECK_ERROR(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_USAGE, "install libhwloc-dev");
        return;
    }
    g_autoptr(TtTopology) seven = must_open("this:7", NULL);

    CHECK(tt_topology_cores_per_node(plain) >= 1, "no cores");
    CHECK(tt_topology_n_ranks(plain) == tt_topology_cores_per_node(plain), "one rank per core");
    CHECK(tt_topology_n_ranks(seven) == 7, "seven asked for");
    CHECK(tt_topology_n_nodes(seven) == 1, "one machine");
    CHECK(tt_topology_cores_per_node(seven) == tt_topology_cores_per_node(plain),
          "cores do not grow");
    for (guint src = 0; src < 7; src++)
        for (guint dst = 0; dst < 7; dst++)
            CHECK(route_is_sound(seven, src, dst, "process"), "%u to %u", src, dst);
    CHECK(strcmp(tt_topology_link(seven, 0).kind, "memory") == 0, "kind");
    CHECK(!tt_topology_open("this:0", NULL, &error), "no ranks");
    CHECK_ERROR(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_USAGE, "from 1 to 512");
}

/* --- what-if -----------------------------------------------------------------------------------
 */

static void
settings_change_what_they_say(void)
{
    {
        g_autoptr(TtTopology) topo = must_open("dgx-h100", "link nvlink.bandwidth=50 GB/s");

        /* 18 * 50 * 82.4 % */
        CHECK(fabs(tt_topology_route_bytes_per_s(topo, 0, 1) / 741.6e9 - 1) < 1e-9, "nvlink");
    }
    {
        g_autoptr(TtTopology) topo = must_open("dgx-h100:2", "node.nics=4");
        g_autofree char *own = route_text(topo, 2, 10), *other = route_text(topo, 1, 9);

        CHECK(tt_topology_nics_per_node(topo) == 4, "nics");
        /* NIC i stands at PCIe switch 2i; 4 * 48.0174 */
        CHECK(
            strcmp(
                own,
                "gpu 2 > pcie-switch 2 > nic 1 > rail 1 leaf 0 > nic 1 > pcie-switch 2 > gpu 2") ==
                0,
            "%s", own);
        /* GPUs 1, 3, 5, 7 have none beside them and share: GPU 1 is the first and gets NIC 0. Out
         * over GPU 0, in over the CPU, since only senders use peers. */
        CHECK(strcmp(other,
                     "gpu 1 > nvswitch 0 > gpu 0 > pcie-switch 0 > nic 0 > rail 0 leaf 0 > nic 0 > "
                     "pcie-switch 0 > cpu 0 > pcie-switch 1 > gpu 1") == 0,
              "%s", other);
        CHECK(fabs(tt_topology_node_out_bytes_per_s(topo, 0) / 192.0697e9 - 1) < 1e-5, "%g",
              tt_topology_node_out_bytes_per_s(topo, 0));
    }
    {
        g_autoptr(TtTopology) topo = must_open("dgx-h100:5", "node.nics=16");
        g_autofree char *to1 = route_text(topo, 0, 8), *to2 = route_text(topo, 0, 16);

        /* two NICs per GPU: the other node's number says which */
        CHECK(strstr(to1, "> nic 0 >") && !strstr(to1, "> nic 1 >"), "%s", to1);
        CHECK(strstr(to2, "> nic 0 >") && !strstr(to2, "> nic 1 >"), "%s", to2);
        g_autofree char *from1 = route_text(topo, 8, 16);
        CHECK(strstr(from1, "> nic 1 >") && !strstr(from1, "> nic 0 >"), "%s", from1);
        for (guint src = 0; src < 40; src++)
            for (guint dst = 0; dst < 40; dst++)
                CHECK(route_is_sound(topo, src, dst, "gpu"), "%u to %u", src, dst);
    }
    {
        g_autoptr(TtTopology) topo = must_open("dgx-h100:2", "node.pxn=no");
        g_autofree char *got = route_text(topo, 0, 9);

        /* rank 0's own NIC, the spine, the other rail */
        CHECK(
            strcmp(
                got,
                "gpu 0 > pcie-switch 0 > nic 0 > rail 0 leaf 0 > spine 1 > rail 1 leaf 0 > nic 1 > "
                "pcie-switch 1 > gpu 1") == 0,
            "%s", got);
    }
    {
        g_autoptr(TtTopology) topo = must_open("dgx-h100", "node.nics=0");

        CHECK(tt_topology_nics_per_node(topo) == 0, "no network");
        CHECK(tt_topology_n_links(topo) == 2 * (8 + 8 + 8 + 1), "%u", tt_topology_n_links(topo));
    }
}

static void
settings_that_change_nothing_are_told(void)
{
    static const struct {
        const char *name, *topo, *setting, *words;
    } rows[] = {
        { "oversubscription of one node", "dgx-h100", "fabric.oversubscription=2",
          "there is only one node" },
        { "oversubscription under one leaf", "dgx-h100:16", "fabric.oversubscription=2",
          "no route crosses a spine" },
        { "oversubscription of a single switch", "hosts:4", "fabric.oversubscription=2",
          "nothing uses it" },
        { "nodes said twice", "hosts:4", "topology.nodes=8", "nothing uses it" },
        { "a NIC's latency on one node", "dgx-h100", "nic.latency=1 us", "there is only one node" },
        { "it does matter", "dgx-h100:64", "fabric.oversubscription=2", NULL },
        { "it does matter without peers", "dgx-h100:16", "node.pxn=no", NULL },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(TtTopology) topo = must_open(rows[i].topo, rows[i].setting);
        const char *const *warnings = tt_topology_warnings(topo);

        if (!rows[i].words) {
            CHECK(!*warnings, "%s: %s", rows[i].name, *warnings);
            continue;
        }
        CHECK(*warnings && strstr(*warnings, rows[i].words), "%s: %s", rows[i].name,
              *warnings ? *warnings : "no warning");
        CHECK_ROW(&rows[i], !*warnings || strstr(*warnings, "--set "));
    }
}

/* --- bad usage ---------------------------------------------------------------------------------
 */

static void
bad_usage(void)
{
    static const struct {
        const char *name, *topo, *setting, *words;
    } rows[] = {
        { "unknown preset", "dgx-h900", NULL,
          "one of dgx-a100, dgx-b200, dgx-h100, dgx1-v100, dgx2" },
        { "empty", "", NULL, "no such preset" },
        { "no nodes", "dgx-h100:0", NULL, "a whole number from 1 to" },
        { "negative nodes", "dgx-h100:-1", NULL, "a whole number from 1 to" },
        { "nodes that are none", "dgx-h100:many", NULL, "a whole number from 1 to" },
        { "nothing after the colon", "dgx-h100:", NULL, "a whole number from 1 to" },
        { "overflow", "dgx-h100:99999999999999999999", NULL, "a whole number from 1 to" },
        { "too many ranks here", "this:513", NULL, "a whole number from 1 to 512" },
        { "too many spines", "dgx2:16777216", "fabric.spines=1000", "are too many links" },
        { "no value", "dgx-h100", "fabric.latency", "is not section.key=value" },
        { "no section", "dgx-h100", "latency=1 us", "is not section.key=value" },
        { "unknown section", "dgx-h100", "fabrics.latency=1 us",
          "--set fabrics.latency: unknown section (allowed: [topology], [node], [link NAME], "
          "[nic], [fabric])" },
        { "unknown key", "dgx-h100", "node.gpu=4",
          "--set node.gpu: unknown key (allowed: gpus, hosts," },
        { "unknown key of the fabric", "dgx-h100:2", "fabric.speed=2",
          "unknown key (allowed: type, latency, nodes-per-leaf, oversubscription, spines, "
          "bandwidth)" },
        { "unknown link", "dgx-h100", "link nvlik.bandwidth=1 GB/s",
          "there is: link nvlink, link pcie" },
        { "no unit", "dgx-h100", "link nvlink.bandwidth=25", "needs a unit" },
        { "no unit on a time", "dgx-h100", "nic.latency=1",
          "needs a unit (one of ps, ns, us, ms, s)" },
        { "negative", "dgx-h100", "link nvlink.bandwidth=-25 GB/s", "is negative" },
        { "zero", "dgx-h100", "nic.bandwidth=0 GB/s", "must be more than 0" },
        { "no GPUs", "dgx-h100", "node.gpus=0", "must be a whole number from 1 to 512, not \"0\"" },
        { "too many GPUs", "dgx-h100", "node.gpus=513", "from 1 to 512" },
        { "a fraction of a GPU", "dgx-h100", "node.gpus=1.5", "whole number" },
        { "unknown fabric", "dgx-h100:2", "fabric.type=mesh",
          "one of fat-tree, rail, single-switch" },
        { "less than one", "dgx-h100:64", "fabric.oversubscription=0.5", "a ratio from 1 to 1000" },
        { "no ratio", "dgx-h100:64", "fabric.oversubscription=2:3", "a ratio from 1 to 1000" },
        { "no percent", "dgx-h100", "link nvlink.efficiency=0.8", "must be 1 % to 100 %" },
        { "over 100 %", "dgx-h100", "link nvlink.efficiency=120 %", "must be 1 % to 100 %" },
        { "yes and no", "dgx-h100", "node.pxn=maybe", "must be yes or no" },
        { "an unknown basis", "dgx-h100", "nic.latency=1 us ; guess: me", "basis: source" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        const char *settings[] = { rows[i].setting, NULL };
        GError *error = NULL;
        g_autoptr(TtTopology) topo = tt_topology_open(rows[i].topo, settings, &error);

        CHECK_ROW(&rows[i], topo == NULL);
        CHECK_ROW(&rows[i], error && !strchr(error->message, '\n'));
        CHECK_ERROR(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_USAGE, rows[i].words);
    }
}

/* --- bad files ---------------------------------------------------------------------------------
 */

static const char good_node[] = "[topology]\n"            /* 1 */
                                "name = x\n"              /* 2 */
                                "[node]\n"                /* 3 */
                                "gpus = 2\n"              /* 4 */
                                "nvswitches = 1\n"        /* 5 */
                                "nics = 1\n"              /* 6 */
                                "[link a]\n"              /* 7 */
                                "from = gpu\n"            /* 8 */
                                "to = nvswitch\n"         /* 9 */
                                "pattern = each-to-all\n" /* 10 */
                                "kind = nvlink\n"         /* 11 */
                                "bandwidth = 1 GB/s\n"    /* 12 */
                                "latency = 1 us\n"        /* 13 */
                                "[link b]\n"              /* 14 */
                                "from = gpu\n"            /* 15 */
                                "to = nic\n"              /* 16 */
                                "pattern = each-to-own\n" /* 17 */
                                "kind = pcie\n"           /* 18 */
                                "bandwidth = 1 GB/s\n"    /* 19 */
                                "latency = 1 us\n"        /* 20 */
                                "[nic]\n"                 /* 21 */
                                "kind = ib\n"             /* 22 */
                                "bandwidth = 1 GB/s\n"    /* 23 */
                                "latency = 1 us\n"        /* 24 */
                                "[fabric]\n"              /* 25 */
                                "type = fat-tree\n"       /* 26 */
                                "latency = 1 us\n";       /* 27 */

/* Each row replaces one piece of the good file. */
static const struct {
    const char *name, *piece, *instead, *words;
} bad_files[] = {
    { "no unit", "bandwidth = 1 GB/s", "bandwidth = 1",
      "x.ini:12: [link a] bandwidth: \"1\" needs a unit" },
    { "bits of nothing", "bandwidth = 1 GB/s", "bandwidth = 1 GB",
      "unknown unit \"GB\" of a rate" },
    { "negative bandwidth", "bandwidth = 1 GB/s", "bandwidth = -1 GB/s",
      "x.ini:12: [link a] bandwidth: " },
    { "zero bandwidth", "bandwidth = 1 GB/s", "bandwidth = 0 GB/s", "must be more than 0" },
    { "NaN", "bandwidth = 1 GB/s", "bandwidth = nan GB/s", "does not start with a number" },
    { "infinite", "bandwidth = 1 GB/s", "bandwidth = inf GB/s", "does not start with a number" },
    { "beyond reason", "bandwidth = 1 GB/s", "bandwidth = 1e20 GB/s",
      "is not within 1 kB/s and 1 PB/s" },
    { "too slow to be true", "bandwidth = 1 GB/s", "bandwidth = 1 B/s",
      "is not within 1 kB/s and 1 PB/s" },
    { "negative latency", "latency = 1 us", "latency = -1 us",
      "x.ini:13: [link a] latency: \"-1 us\" is negative" },
    { "an hour", "latency = 1 us", "latency = 3600 s", "is more than 100 s" },
    { "unknown key", "gpus = 2", "gpu = 2",
      "x.ini:4: [node] gpu: unknown key (allowed: gpus, hosts, processes" },
    { "unknown section", "[fabric]", "[fabrics]", "unknown section (allowed: [topology], [node]" },
    { "an empty unknown section", "[fabric]", "[]\n[fabric]", "a section without a name" },
    { "unknown section without keys", "[topology]", "[bogus]\n[topology]",
      "[bogus]: unknown section" },
    { "section twice", "[fabric]", "[node]\n", "x.ini:25: this section stands already above" },
    { "key twice", "gpus = 2", "gpus = 2\ngpus = 3",
      "x.ini:5: [node] gpus: stands already in line 4" },
    { "no GPUs", "gpus = 2", "gpus = 0", "must be a whole number from 1 to 512" },
    { "too many GPUs", "gpus = 2", "gpus = 100000", "must be a whole number from 1 to 512" },
    { "overflow", "gpus = 2", "gpus = 99999999999999999999999",
      "must be a whole number from 1 to 512" },
    { "two kinds of ranks", "gpus = 2", "gpus = 2\nhosts = 2",
      "exactly one of gpus, hosts and processes" },
    { "no ranks", "gpus = 2\n", "", "exactly one of gpus, hosts and processes" },
    { "a device the node has not", "to = nvswitch", "to = cpu",
      "the node has no \"cpu\" (what it has: gpu, nvswitch, nic)" },
    { "unknown pattern", "each-to-all", "each-to-none",
      "x.ini:10: [link a] pattern: \"each-to-none\" is not one of each-to-own, each-to-all" },
    { "no pattern", "pattern = each-to-all\n", "",
      "[link a] needs either \"pattern\" or \"pairs\"" },
    { "both", "pattern = each-to-all", "pattern = each-to-all\npairs = 0-0",
      "[link a] needs either" },
    { "pair out of range", "pattern = each-to-all", "pairs = 0-0 2-0",
      "\"2-0\" is not A-B or A-BxTIMES with A a gpu 0..1" },
    { "half a pair", "pattern = each-to-all", "pairs = 0", "\"0\" is not A-B" },
    { "pair times zero", "pattern = each-to-all", "pairs = 0-0x0", "\"0-0x0\" is not A-B" },
    { "unreachable rank", "pattern = each-to-all", "pairs = 0-0", "gpu 0 cannot reach gpu 1" },
    { "no pairs at all", "pattern = each-to-all", "pairs = ,", "gpu 0 cannot reach gpu 1" },
    { "no way to a NIC", "from = gpu\nto = nic", "from = nic\nto = nic", "cannot reach a NIC" },
    { "unknown link kind", "kind = nvlink", "kind = string",
      "\"string\" is not one of nvlink, pcie" },
    { "missing latency", "latency = 1 us\n[link b]", "[link b]",
      "[link a] needs the key \"latency\"" },
    { "missing NIC", "[nic]\nkind = ib\nbandwidth = 1 GB/s\nlatency = 1 us\n", "",
      "[nic] needs the key \"kind\"" },
    { "missing fabric", "[fabric]\ntype = fat-tree\nlatency = 1 us\n", "",
      "[fabric] needs the key \"type\"" },
    { "unknown fabric", "type = fat-tree", "type = torus",
      "x.ini:26: [fabric] type: \"torus\" is not one of fat-tree" },
    { "NICs left out", "nics = 1", "nics = 0", "a node without NICs stands alone" },
    { "unknown basis", "gpus = 2", "gpus = 2 ; guess: me",
      "basis one of spec, measured, fitted, assumed" },
    { "a basis without a source", "gpus = 2", "gpus = 2 ; spec", "basis one of spec" },
    { "not a key", "gpus = 2", "gpus 2",
      "x.ini:4: neither a [section] nor \"key = value\": \"gpus 2\"" },
    { "no key", "gpus = 2", "= 2", "a value without a key" },
    { "key before the first section", "[topology]", "a = b\n[topology]",
      "x.ini:1: a key before the first [section]" },
    { "unclosed section", "[node]", "[node", "x.ini:3: a section is written [name]" },
    { "rubbish after a section", "[node]", "[node] gpus = 2", "a section is written [name]" },
    { "control character", "gpus = 2", "gpus = 2\001", "a control character" },
    { "not UTF-8", "name = x", "name = \377", "not a text in UTF-8" },
    { "truncated", "[fabric]\ntype = fat-tree\nlatency = 1 us\n", "[fabric]\ntype = fat-tr",
      "x.ini:26: the last line has no end: is the file truncated?" },
    { "cut at a line",
      "latency = 1 us\n[nic]\nkind = ib\nbandwidth = 1 GB/s\nlatency = 1 us\n[fabric]\ntype = "
      "fat-tree\nlatency = 1 us\n",
      "", "needs the key \"latency\"" },
    { "no nodes", "name = x", "nodes = 0",
      "x.ini:2: [topology] nodes: must be a whole number from 1 to" },
};

static char *
replace(const char *text, const char *piece, const char *instead)
{
    const char *at = strstr(text, piece);

    g_assert(at);
    return g_strdup_printf("%.*s%s%s", (int)(at - text), text, instead, at + strlen(piece));
}

static void
bad_files_are_refused(void)
{
    GError *error = NULL;
    g_autoptr(TtTopology) good =
        tt_topology_parse(good_node, strlen(good_node), "x.ini", 2, NULL, &error);

    CHECK_NO_ERROR(error);
    CHECK(good && tt_topology_n_ranks(good) == 4, "the file without a fault");
    for (guint i = 0; i < G_N_ELEMENTS(bad_files); i++) {
        g_autofree char *text = replace(good_node, bad_files[i].piece, bad_files[i].instead);
        g_autoptr(TtTopology) topo =
            tt_topology_parse(text, strlen(text), "x.ini", 2, NULL, &error);

        CHECK_ROW(&bad_files[i], topo == NULL);
        CHECK_ROW(&bad_files[i],
                  error && !strchr(error->message, '\n') && strlen(error->message) < 400);
        CHECK_ROW(&bad_files[i], error && g_str_has_prefix(error->message, "x.ini"));
        CHECK_ERROR(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_FILE, bad_files[i].words);
    }
}

static void
files_are_opened(void)
{
    g_autofree char *dir = g_dir_make_tmp("tt-topology-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "mine.ini", NULL);
    g_autofree char *counted = g_strdup_printf("%s:3", path);
    g_autofree char *missing = g_build_filename(dir, "none.ini", NULL);
    g_autofree char *six = replace(good_node, "name = x", "nodes = 6");
    GError *error = NULL;

    CHECK(g_file_set_contents(path, six, -1, NULL), "cannot write %s", path);
    {
        g_autoptr(TtTopology) own = tt_topology_open(path, NULL, &error);
        g_autoptr(TtTopology) three = tt_topology_open(counted, NULL, &error);

        CHECK_NO_ERROR(error);
        CHECK(own && tt_topology_n_nodes(own) == 6, "as the file says");
        CHECK(three && tt_topology_n_nodes(three) == 3, "as the user says");
        CHECK(three && *tt_topology_warnings(three) == NULL, "the file's number is a default");
        CHECK(three && strcmp(tt_topology_name(three), counted) == 0, "name");
    }
    CHECK(!tt_topology_open(missing, NULL, &error), "a file that is not there");
    CHECK_ERROR(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_FILE, "none.ini: No such file");
    CHECK(!tt_topology_open("/dev/zero", NULL, &error), "a file without end");
    CHECK_ERROR(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_FILE, "not a topology");
    g_autofree char *as_dir = g_strdup_printf("%s/", dir);
    CHECK(!tt_topology_open(as_dir, NULL, &error), "a directory");
    CHECK_ERROR(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_FILE, "directory");
    g_unlink(path);
    g_rmdir(dir);
}

/* Keys of a file that nothing uses are told, too, but only when they could have been. */
static void
unused_keys_of_files(void)
{
    g_autofree char *text =
        replace(good_node, "type = fat-tree\n", "type = single-switch\noversubscription = 4\n");
    g_autoptr(TtTopology) topo = tt_topology_parse(text, strlen(text), "x.ini", 2, NULL, NULL);
    const char *warning = topo ? *tt_topology_warnings(topo) : NULL;

    CHECK(warning && strstr(warning, "fabric.oversubscription = 4: nothing uses it"), "%s",
          warning ? warning : "no warning");
}

/* The example of the format's page is read by this, so it cannot go stale. */
static void
example_of_the_documentation(void)
{
    const char *top = g_getenv("TT_SOURCE_DIR");
    g_autofree char *path = g_build_filename(top ? top : ".", "docs", "topology-format.md", NULL);
    g_autofree char *page = NULL;
    GError *error = NULL;

    CHECK(g_file_get_contents(path, &page, NULL, &error), "%s", path);
    CHECK_NO_ERROR(error);
    if (!page)
        return;

    const char *begin = strstr(page, "```ini\n"), *end = begin ? strstr(begin, "\n```\n") : NULL;

    CHECK(end, "no ini block in %s", path);
    if (!end)
        return;
    begin += strlen("```ini\n");
    g_autoptr(TtTopology) topo =
        tt_topology_parse(begin, end + 1 - begin, "example", 0, NULL, &error);

    CHECK_NO_ERROR(error);
    CHECK(topo && tt_topology_n_ranks(topo) == 64, "16 nodes of 4");
    CHECK(topo && !*tt_topology_warnings(topo), "%s", topo ? *tt_topology_warnings(topo) : "");
    CHECK(topo && route_is_sound(topo, 0, 63, "gpu"), "from end to end");
}

/* --- parallel switches -------------------------------------------------------------------------
 */

/* Four switches side by side: pairs spread over them, (src + dst) mod 4, always the same way. */
static void
equal_ways_are_spread(void)
{
    g_autofree char *text = replace(good_node, "nvswitches = 1", "nvswitches = 4");
    g_autofree char *more = replace(text, "gpus = 2", "gpus = 4");
    g_autoptr(TtTopology) topo = tt_topology_parse(more, strlen(more), "x.ini", 1, NULL, NULL);

    for (guint dst = 1; dst < 4; dst++) {
        g_autofree char *got = route_text(topo, 0, dst);
        g_autofree char *want = g_strdup_printf("gpu 0 > nvswitch %u > gpu %u", dst % 4, dst);

        CHECK(strcmp(got, want) == 0, "%s", got);
    }
}

/* --- memory and speed --------------------------------------------------------------------------
 */

static void
nothing_grows_with_nodes(void)
{
    gint64 begin_us = g_get_monotonic_time();
    size_t before = mallinfo2().uordblks, one, many;
    g_autoptr(TtTopology) small = must_open("dgx-h100:2", NULL);
    one = mallinfo2().uordblks - before;

    g_autoptr(TtTopology) big = must_open("dgx-h100:100000", NULL);
    many = mallinfo2().uordblks - before - one;

    CHECK(tt_topology_n_ranks(big) == 800000, "%u", tt_topology_n_ranks(big));
    CHECK(many < one + 4096, "%zu bytes for 2 nodes, %zu for 100000", one, many);
    CHECK(g_get_monotonic_time() - begin_us < 2000000, "not at once");
    CHECK(route_is_sound(big, 0, 799999, "gpu"), "from end to end");
    CHECK(route_is_sound(big, 799999, 7, "gpu"), "and back");
}

int
main(void)
{
    CU_TestInfo tests[] = {
        { "preset routes by hand", preset_routes_by_hand },
        { "every pair of every preset", every_pair_of_every_preset },
        { "every constant has a source", every_constant_has_a_source },
        { "shapes of presets", shapes_of_presets },
        { "this machine", this_machine },
        { "settings change what they say", settings_change_what_they_say },
        { "settings that change nothing are told", settings_that_change_nothing_are_told },
        { "bad usage", bad_usage },
        { "bad files are refused", bad_files_are_refused },
        { "files are opened", files_are_opened },
        { "unused keys of files", unused_keys_of_files },
        { "example of the documentation", example_of_the_documentation },
        { "equal ways are spread", equal_ways_are_spread },
        { "nothing grows with nodes", nothing_grows_with_nodes },
        CU_TEST_INFO_NULL,
    };

    return check_main("topology", tests);
}
