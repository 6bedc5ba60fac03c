/* Presets by hand: routes, rates, latencies, sources; what-if settings; size. */
#include "tests/topology_check.h"
#include "topologies/topology_private.h"

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
    CHECK(n_presets == 16, "%u presets", n_presets);
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
        { "nothing grows with nodes", nothing_grows_with_nodes },
        CU_TEST_INFO_NULL,
    };

    return check_main("topology", tests);
}
