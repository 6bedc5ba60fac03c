/* What lies between nodes: hops, spines, oversubscription, for every registered fabric. */
#include "tests/topology_check.h"
#include "topologies/fabric.h"

#include <math.h>
#include <stdlib.h>

static TtTopology *
open_with(const char *text, const char *const *settings)
{
    GError *error = NULL;
    TtTopology *topo = tt_topology_open(text, settings, &error);

    CHECK_NO_ERROR(error);
    if (!topo)
        exit(1);
    return topo;
}

/* Links and their total capacity whose name begins like this. */
static guint
count_links(const TtTopology *topo, const char *prefix, double *bytes_per_s)
{
    guint n = 0;

    *bytes_per_s = 0;
    for (TtLink link = 0; link < tt_topology_n_links(topo); link++) {
        g_autofree char *name = tt_topology_link_name(topo, link);

        if (g_str_has_prefix(name, prefix)) {
            n++;
            *bytes_per_s += tt_topology_link(topo, link).capacity_bytes_per_s;
        }
    }
    return n;
}

/* A pod's rates are those of the links between its leaves and the spines, as they are named. */
static void
pods_have_their_leaves_uplinks(void)
{
    static const struct {
        const char *topo, *type, *per_leaf;
        guint want_per_pod, n_rails; /* rails 0: leaves are not of rails */
    } rows[] = {
        { "dgx-h100:6", "fat-tree", "4", 4, 0 }, /* the second pod is half full */
        { "dgx-h100:6", "rail", "4", 4, 8 },
        { "dgx-h100:6", "rail", "9", 6, 8 }, /* one pod, whose rails still meet in the spines */
        { "dgx-h100:6", "single-switch", NULL, 0, 0 },
        { "dgx-h100:1", "fat-tree", "4", 0, 0 },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        g_autofree char *type = g_strdup_printf("fabric.type=%s", rows[r].type);
        g_autofree char *per_leaf =
            g_strdup_printf("fabric.nodes-per-leaf=%s", rows[r].per_leaf ? rows[r].per_leaf : "");
        const char *settings[] = { type, "fabric.oversubscription=3", per_leaf, NULL };
        const char *plain[] = { type, NULL };
        g_autoptr(TtTopology) topo = open_with(rows[r].topo, rows[r].per_leaf ? settings : plain);
        guint per_pod = tt_topology_nodes_per_pod(topo);

        CHECK(per_pod == rows[r].want_per_pod, "%s %s: %u", rows[r].type, rows[r].topo, per_pod);
        for (guint pod = 0; per_pod && pod * per_pod < tt_topology_n_nodes(topo); pod++) {
            double sum = 0, one, got = tt_topology_pod_out_bytes_per_s(topo, pod);

            for (guint rail = 0; rail < MAX(rows[r].n_rails, 1); rail++) {
                g_autofree char *prefix =
                    rows[r].n_rails ? g_strdup_printf("rail %u leaf %u -> spine", rail, pod)
                                    : g_strdup_printf("leaf %u -> spine", pod);

                CHECK(count_links(topo, prefix, &one) > 0, "%s", prefix);
                sum += one;
            }
            CHECK(fabs(got / sum - 1) < 1e-9, "%s, pod %u: %g, not %g", rows[r].type, pod, got,
                  sum);
            CU_ASSERT_EQUAL(tt_topology_pod_in_bytes_per_s(topo, pod), got);
        }
    }
}

/* 8 NICs of 400 Gbit/s * 98 % = 49 GB/s a node. What a leaf sends up is what its nodes can send it,
 * over the oversubscription; the number of spines follows at one NIC's rate each, rounded. */
static void
leaves_send_up_what_they_should(void)
{
    static const struct {
        const char *name, *topo, *type, *per_leaf, *over, *extra, *leaf;
        guint want_spines;
        double want_gbytes_per_s;
    } rows[] = {
        { "4 nodes, 32 ports", "dgx-h100:16", "fat-tree", "4", "1", "node.pxn=yes", "leaf 0 -> ",
          32, 1568 },
        { "2:1 halves it", "dgx-h100:16", "fat-tree", "4", "2", "node.pxn=yes", "leaf 3 -> ", 16,
          784 },
        { "3:1 is exact, too", "dgx-h100:16", "fat-tree", "4", "3:1", "node.pxn=yes", "leaf 0 -> ",
          11, 1568.0 / 3 },
        { "a leaf half full is as big", "dgx-h100:6", "fat-tree", "4", "1", "node.pxn=yes",
          "leaf 1 -> ", 32, 1568 },
        { "thicker cables, fewer spines", "dgx-h100:16", "fat-tree", "4", "1",
          "fabric.bandwidth=98 GB/s", "leaf 0 -> ", 16, 1568 },
        { "spines as asked", "dgx-h100:16", "fat-tree", "4", "1", "fabric.spines=4", "leaf 0 -> ",
          4, 1568 },
        { "a rail's leaf has one port per node", "dgx-h100:16", "rail", "4", "1", "node.pxn=yes",
          "rail 7 leaf 0 -> ", 4, 196 },
        { "2:1 halves a rail", "dgx-h100:16", "rail", "4", "2", "node.pxn=yes", "rail 0 leaf 3 -> ",
          2, 98 },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *type = g_strdup_printf("fabric.type=%s", rows[i].type);
        g_autofree char *leaf = g_strdup_printf("fabric.nodes-per-leaf=%s", rows[i].per_leaf);
        g_autofree char *over = g_strdup_printf("fabric.oversubscription=%s", rows[i].over);
        const char *settings[] = { type, leaf, over, rows[i].extra, NULL };
        g_autoptr(TtTopology) topo = open_with(rows[i].topo, settings);
        double up;
        guint n = count_links(topo, rows[i].leaf, &up);

        CHECK(n == rows[i].want_spines, "%s: %u spines", rows[i].name, n);
        CHECK(fabs(up / 1e9 - rows[i].want_gbytes_per_s) < 1e-6, "%s: %g GB/s", rows[i].name,
              up / 1e9);
    }
}

/* hosts: PCIe 250 ns, NIC 500 ns, switch 250 ns. One switch: 2 * 750 + 250 = 1750; leaf, spine,
 * leaf: 2 * 750 + 3 * 250 = 2250. The spine is the destination's port modulo their number. */
static void
hops_by_hand(void)
{
    static const struct {
        const char *name, *type, *per_leaf, *spines;
        guint src, dst;
        const char *want;
        TtTime want_ps;
    } rows[] = {
        { "one switch", "single-switch", "4", "4", 0, 7, "host 0 > nic 0 > switch > nic 0 > host 0",
          1750000 },
        { "one leaf", "fat-tree", "4", "4", 4, 7, "host 0 > nic 0 > leaf 1 > nic 0 > host 0",
          1750000 },
        { "two leaves", "fat-tree", "4", "4", 0, 6,
          "host 0 > nic 0 > leaf 0 > spine 2 > leaf 1 > nic 0 > host 0", 2250000 }, /* 6 mod 4 */
        { "the way back goes by another spine", "fat-tree", "4", "4", 6, 0,
          "host 0 > nic 0 > leaf 1 > spine 0 > leaf 0 > nic 0 > host 0", 2250000 },
        { "the last leaf is not full", "fat-tree", "3", "2", 0, 7,
          "host 0 > nic 0 > leaf 0 > spine 1 > leaf 2 > nic 0 > host 0",
          2250000 }, /* 7 / 3, 7 mod 2 */
        { "the one rail", "rail", "4", "4", 4, 7, "host 0 > nic 0 > rail 0 leaf 1 > nic 0 > host 0",
          1750000 },
        { "the one rail, two leaves", "rail", "4", "4", 0, 5,
          "host 0 > nic 0 > rail 0 leaf 0 > spine 1 > rail 0 leaf 1 > nic 0 > host 0", 2250000 },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *type = g_strdup_printf("fabric.type=%s", rows[i].type);
        g_autofree char *leaf = g_strdup_printf("fabric.nodes-per-leaf=%s", rows[i].per_leaf);
        g_autofree char *spines = g_strdup_printf("fabric.spines=%s", rows[i].spines);
        const char *settings[] = { type, leaf, spines, NULL };
        g_autoptr(TtTopology) topo = open_with("hosts:8", settings);
        g_autofree char *got = route_text(topo, rows[i].src, rows[i].dst);
        TtTime got_ps = tt_topology_route_latency_ps(topo, rows[i].src, rows[i].dst);

        CHECK(strcmp(got, rows[i].want) == 0, "%s: %s", rows[i].name, got);
        CHECK(got_ps == rows[i].want_ps, "%s: %" G_GINT64_FORMAT " ps", rows[i].name, got_ps);
    }
}

/* Whatever the fabric, nodes and leaves: no gap, no loop, nobody left out. */
static void
every_fabric_reaches_everybody(void)
{
    static const char *const topos[] = { "dgx-h100:5", "dgx1-v100:5", "pcie-8x4090:5", "hosts:13" };
    static const char *const leaves[] = { "1", "2", "3", "100" };

    for (guint f = 0; tt_fabrics[f]; f++) {
        CHECK(tt_fabrics[f]->name && tt_fabrics[f]->summary, "fabric %u", f);
        for (guint i = 0; i < G_N_ELEMENTS(topos) * G_N_ELEMENTS(leaves); i++) {
            const char *text = topos[i % G_N_ELEMENTS(topos)];
            g_autofree char *type = g_strdup_printf("fabric.type=%s", tt_fabrics[f]->name);
            g_autofree char *leaf = g_strdup_printf("fabric.nodes-per-leaf=%s", leaves[i / 4]);
            const char *settings[] = { type, leaf, "fabric.oversubscription=1.7", NULL };
            g_autoptr(TtTopology) topo = open_with(text, settings);
            const char *kind = strncmp(text, "hosts", 5) == 0 ? "host" : "gpu";
            guint n = tt_topology_n_ranks(topo);

            for (guint src = 0; src < n; src++)
                for (guint dst = 0; dst < n; dst += 1 + src % 2)
                    CHECK(route_is_sound(topo, src, dst, kind), "%s, %s, %s: %u to %u", text, type,
                          leaf, src, dst);
        }
    }
}

/* With as many spines as ports below, every rank sending @shift ranks further crosses no link
 * between switches twice: D-mod-k's promise. A wrong modulus breaks it. */
static void
shifts_do_not_collide(void)
{
    static const char *const types[] = { "fabric.type=fat-tree", "fabric.type=rail" };

    for (guint t = 0; t < G_N_ELEMENTS(types); t++) {
        const char *settings[] = { types[t], "fabric.nodes-per-leaf=4", NULL };
        g_autoptr(TtTopology) topo = open_with("dgx-h100:16", settings);
        guint n = tt_topology_n_ranks(topo), n_links = tt_topology_n_links(topo), crossed = 0;
        double unused;
        guint n_inside = n_links - count_links(topo, "leaf", &unused) -
                         count_links(topo, "rail", &unused) - count_links(topo, "spine", &unused);
        g_autofree guint *flows = g_new(guint, n_links);

        for (guint shift = 8; shift < n; shift += 8) {
            memset(flows, 0, n_links * sizeof *flows);
            for (guint src = 0; src < n; src++) {
                TtLink links[TT_MAX_ROUTE];
                guint hops = tt_topology_route(topo, src, (src + shift) % n, links);

                for (guint i = 0; i < hops; i++)
                    flows[links[i]]++;
            }
            for (TtLink link = n_inside; link < n_links; link++) {
                CHECK(flows[link] <= 1, "%s, shift %u: link %u carries %u", types[t], shift, link,
                      flows[link]);
                crossed += flows[link];
            }
        }
        CHECK(crossed > 0, "%s: no link between switches was used", types[t]);
    }
}

/* The links between switches come last, named and of the NICs' kind. */
static void
links_between_switches(void)
{
    const char *settings[] = { "fabric.type=fat-tree", "fabric.nodes-per-leaf=2", "fabric.spines=3",
                               NULL };
    g_autoptr(TtTopology) topo = open_with("hosts:5", settings);
    guint n = tt_topology_n_links(topo);
    g_autofree char *up = tt_topology_link_name(topo, n - 2),
                    *down = tt_topology_link_name(topo, n - 1);

    /* 5 nodes * 4 links (PCIe and cable, both ways); 3 leaves * 3 spines, both ways */
    CHECK(n == 5 * 4 + 3 * 3 * 2, "%u links", n);
    CHECK(strcmp(up, "leaf 2 -> spine 2") == 0, "%s", up);
    CHECK(strcmp(down, "spine 2 -> leaf 2") == 0, "%s", down);
    CHECK(strcmp(tt_topology_link(topo, n - 1).kind, "ethernet") == 0, "kind");
    CHECK(tt_topology_link(topo, n - 1).latency_ps == 250000, "one switch");
}

/* Rails: between any two GPUs of one leaf's nodes there is one switch, and the sender crosses to
 * the receiver's rail inside its node. */
static void
rails_are_kept(void)
{
    g_autoptr(TtTopology) topo = must_open("dgx-h100:4", "fabric.nodes-per-leaf=4");
    guint n_switch_hops = 0;

    for (guint src = 0; src < 8; src++) {
        for (guint dst = 8; dst < 32; dst++) {
            g_autofree char *got = route_text(topo, src, dst);
            g_autofree char *rail =
                g_strdup_printf("> nic %u > rail %u leaf 0 > nic %u >", dst % 8, dst % 8, dst % 8);

            CHECK(strstr(got, rail), "%u to %u: %s", src, dst, got);
            CHECK(!strstr(got, "spine"), "%u to %u: %s", src, dst, got);
            CHECK((strstr(got, "nvswitch") != NULL) == (src != dst % 8), "%u to %u: %s", src, dst,
                  got);
            n_switch_hops++;
        }
    }
    CHECK(n_switch_hops == 8 * 24, "all pairs were looked at");
}

int
main(void)
{
    CU_TestInfo tests[] = {
        { "pods have their leaves' uplinks", pods_have_their_leaves_uplinks },
        { "leaves send up what they should", leaves_send_up_what_they_should },
        { "hops by hand", hops_by_hand },
        { "every fabric reaches everybody", every_fabric_reaches_everybody },
        { "shifts do not collide", shifts_do_not_collide },
        { "links between switches", links_between_switches },
        { "rails are kept", rails_are_kept },
        CU_TEST_INFO_NULL,
    };

    return check_main("fabric", tests);
}
