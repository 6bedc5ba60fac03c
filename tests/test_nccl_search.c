/* test_nccl_search - graphs and channels against those NCCL's own search found (nccl-golden.tsv). */
#include "check.h"
#include "nccl_found.h"
#include <math.h>
#include <stdlib.h>

static const struct {
    const char *name;
    TtNcclGraphId id;
} graph_names[] = { { "ring", TT_GRAPH_RING },
                    { "tree", TT_GRAPH_TREE },
                    { "nvls", TT_GRAPH_NVLS } };

/* Printed with two decimals; the reference promises 0.2 %. */
static gboolean
near(double got, const char *want_text)
{
    double want = g_ascii_strtod(want_text, NULL);

    return fabs(got - want) <= 0.002 * want + 0.005;
}

static gboolean
graph_matches(const TtNcclGraph *g, char **f)
{
    return g_str_equal(tt_nccl_pattern_name(g->pattern), f[6]) &&
           g->cross_nic == (guint)atoi(f[7]) && g->n_channels == (guint)atoi(f[8]) &&
           near(g->bw_intra, f[9]) && near(g->bw_inter, f[10]) &&
           g_str_equal(tt_nccl_path_name(g->type_intra), f[11]) &&
           g_str_equal(tt_nccl_path_name(g->type_inter), f[12]) && g->same_channels == atoi(f[13]);
}

/* One row of the file against one communicator; *text says what we got. */
static gboolean
row_matches(char **f, const TtNcclComm *comm, const TtNcclGraph *unmerged, char **text)
{
    if (f[0][0] == 'Y') {
        *text = g_strdup_printf("%.2f\t%.2f", comm->max_bw, comm->total_bw);
        return near(comm->max_bw, f[5]) && near(comm->total_bw, f[6]);
    }
    if (f[0][0] == 'C') {
        *text = g_strdup_printf("%u\t%u", comm->n_channels, comm->nvls_channels);
        return comm->n_channels == (guint)atoi(f[5]) && comm->nvls_channels == (guint)atoi(f[6]);
    }
    for (guint i = 0; i < G_N_ELEMENTS(graph_names); i++)
        if (g_str_equal(f[5], graph_names[i].name)) {
            *text = graph_text(&unmerged[graph_names[i].id]);
            return graph_matches(&unmerged[graph_names[i].id], f);
        }
    return FALSE;
}

static void
golden_comm(char **f, TtNcclComm *comm, TtNcclGraph *unmerged)
{
    g_autoptr(TtNcclXml) xml = nccl_system_by_name(f[2]);
    g_autoptr(GError) error = NULL;

    tt_nccl_comm_init(comm, xml, (guint)atoi(f[3]), tt_nccl_version_parse(f[1], NULL, NULL), NULL,
                      unmerged, &error);
    CHECK_NO_ERROR(error);
}

static void
golden_rows_are_met(void)
{
    g_autofree char *path =
        g_build_filename(g_getenv("TT_SOURCE_DIR") ? g_getenv("TT_SOURCE_DIR") : ".",
                         "tests/data/nccl-golden.tsv", NULL);
    g_autofree char *content = NULL, *last = NULL;
    g_autofree TtNcclComm *comm = g_new0(TtNcclComm, 1);
    g_autofree TtNcclGraph *unmerged = g_new0(TtNcclGraph, TT_N_GRAPHS);
    g_auto(GStrv) lines = NULL;
    guint met[128] = { 0 }, all[128] = { 0 }, n_comms = 0, n_left_out = 0;
    gboolean wanted = FALSE;

    if (!g_file_get_contents(path, &content, NULL, NULL)) {
        CHECK(FALSE, "%s: not there", path);
        return;
    }
    lines = g_strsplit(content, "\n", -1);
    for (guint i = 0; lines[i]; i++) {
        g_auto(GStrv) f = NULL;
        g_autofree char *key = NULL, *text = NULL;
        guint kind = (guchar)lines[i][0] % 128;
        gboolean ok;

        if (!strchr("YGC", lines[i][0]) || !lines[i][0])
            continue;
        f = g_strsplit(lines[i], "\t", -1);
        key = g_strjoin(" ", f[1], f[2], f[3], NULL);
        if (g_strcmp0(key, last) != 0) {
            wanted = n_comms++ % check_every(4) == 0;
            if (wanted)
                golden_comm(f, comm, unmerged);
            g_free(last);
            last = g_strdup(key);
        }
        if (!wanted) {
            n_left_out++;
            continue;
        }
        ok = row_matches(f, comm, unmerged, &text);
        all[kind]++;
        met[kind] += ok;
        CHECK(ok, "\n  want %s\n  got  %s", lines[i], text);
    }
    printf("rows met: Y %u of %u, G %u of %u, C %u of %u ", met['Y'], all['Y'], met['G'], all['G'],
           met['C'], all['C']);
    CHECK(all['Y'] + all['G'] + all['C'] + n_left_out == 1672, "%u rows, %u left out",
          all['Y'] + all['G'] + all['C'], n_left_out);
}

/* ---- what the graphs look like ---- */

static const struct {
    const char *name, *system, *version;
    guint n_nodes;
    TtNcclGraphId graph;
    guint channel;
    const char *want;
} orders[] = {
    /* As real machines of these kinds log them (Channel 00/.., NCCL_DEBUG=INFO). */
    { "DGX-1, ring 0", "dgx1v", "2.27.7", 1, TT_GRAPH_RING, 0, "-1: 0 3 2 1 5 6 7 4 :-1" },
    { "DGX-1, ring 2: the other way", "dgx1v", "2.27.7", 1, TT_GRAPH_RING, 2,
      "-1: 0 4 7 6 5 1 2 3 :-1" },
    { "DGX H100, one node: in order", "dgxh100", "2.27.7", 1, TT_GRAPH_RING, 11,
      "-1: 0 1 2 3 4 5 6 7 :-1" },
    { "DGX H100, rails swap by pairs", "dgxh100", "2.27.7", 2, TT_GRAPH_RING, 0,
      "0: 0 7 6 5 4 3 2 1 :1" },
    { "DGX H100, and back", "dgxh100", "2.27.7", 2, TT_GRAPH_RING, 1, "1: 1 2 3 4 5 6 7 0 :0" },
    { "DGX H100, the next pair", "dgxh100", "2.27.7", 2, TT_GRAPH_RING, 2,
      "2: 2 1 0 7 6 5 4 3 :3" },
    { "DGX H100, trees start at their NIC's GPU", "dgxh100", "2.27.7", 2, TT_GRAPH_TREE, 3,
      "3: 3 4 5 6 7 0 1 2 :3" },
    { "DGX A100, rings return to their switch", "dgxa100", "2.27.7", 4, TT_GRAPH_RING, 0,
      "0: 0 7 6 5 4 3 2 1 :0" },
    { "DGX A100, the switch's other NIC", "dgxa100", "2.27.7", 4, TT_GRAPH_RING, 1,
      "1: 1 2 3 4 5 6 7 0 :1" },
};

static void
channels_have_the_known_orders(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(orders); i++) {
        g_autoptr(TtNcclXml) xml = nccl_system_by_name(orders[i].system);
        g_autofree Found *found = find(xml, orders[i].n_nodes, orders[i].version, NULL);
        g_autofree char *got = channel_text(&found->graph[orders[i].graph], orders[i].channel);

        CHECK(g_str_equal(got, orders[i].want), "%s: %s, not %s", orders[i].name, got,
              orders[i].want);
    }
}

/* Six rings of 20 GB/s on a hybrid cube mesh: every hop has an NVLink of its own. */
static void
rings_of_a_cube_mesh_keep_to_nvlinks(void)
{
    g_autoptr(TtNcclXml) xml = nccl_system_by_name("dgx1v");
    g_autofree Found *found = find(xml, 1, "2.27.7", NULL);
    const TtNcclGraph *ring = &found->graph[TT_GRAPH_RING];
    guint used[8][8] = { { 0 } };

    CHECK(ring->n_channels == 6, "%u", ring->n_channels);
    for (guint c = 0; c < ring->n_channels; c++)
        for (guint i = 0; i < 8; i++)
            used[ring->gpu[c][i]][ring->gpu[c][(i + 1) % 8]]++;
    for (guint g = 0; g < 8; g++)
        for (guint p = 0; p < 8; p++)
            CHECK(used[g][p] <= nccl_cube_mesh[g][p], "%u -> %u: %u rings, %u links", g, p,
                  used[g][p], nccl_cube_mesh[g][p]);
}

/* Names and numbers in a file need not be in the order of its lines. */
static void
gpus_are_places_and_nets_are_numbers(void)
{
    g_autoptr(TtNcclXml) xml = nccl_system_by_name("dgxh100");
    g_autofree Found *found = NULL;
    g_autofree char *got = NULL;

    for (guint i = 0; i < 8; i++) {
        g_array_index(xml->gpu, TtXmlGpu, i).rank = 31 - (int)i; /* the fourth node's, backwards */
        g_array_index(xml->net, TtXmlNet, i).dev = 10 + i;
    }
    found = find(xml, 4, "2.27.7", NULL);
    got = channel_text(&found->graph[TT_GRAPH_TREE], 0);
    CHECK(g_str_equal(got, "10: 7 6 5 4 3 2 1 0 :10"), "%s", got);
}

/* ---- environment ---- */

static TtNcclEnv
unset_env(void)
{
    TtNcclEnv env;

    tt_nccl_env_init(&env);
    return env;
}

static void
environment_changes_the_search(void)
{
    g_autoptr(TtNcclXml) h100 = nccl_system_by_name("dgxh100"),
                         b200 = nccl_system_by_name("dgxb200"), v100 = nccl_system_by_name("dgx1v");
    TtNcclEnv env = unset_env();
    Found *f;

    env.cross_nic = 0;
    f = find(h100, 2, "2.27.7", &env);
    CHECK(f->graph[TT_GRAPH_RING].cross_nic == 0 &&
              f->graph[TT_GRAPH_RING].type_inter == TT_PATH_PXN,
          "CROSS_NIC=0: rings return to their rail through the rail's GPU");
    g_free(f);

    env.pxn_disable = 1;
    f = find(b200, 2, "2.27.7", &env);
    CHECK(f->graph[TT_GRAPH_RING].type_inter != TT_PATH_PXN, "PXN_DISABLE=1");
    g_free(f);

    env = unset_env();
    env.p2p_level = TT_PATH_LOC; /* P2P_DISABLE=1 */
    f = find(h100, 1, "2.27.7", &env);
    CHECK(f->graph[TT_GRAPH_RING].type_intra >= TT_PATH_PHB &&
              f->graph[TT_GRAPH_RING].n_channels <= 2,
          "P2P_DISABLE=1: through host memory, %s", tt_nccl_path_name(f->graph[0].type_intra));
    g_free(f);

    env = unset_env();
    env.nvls_enable = 0;
    f = find(h100, 1, "2.27.7", &env);
    CHECK(!f->comm.nvls && f->comm.nvls_channels == 0 && f->graph[TT_GRAPH_NVLS].n_channels == 0,
          "NVLS_ENABLE=0");
    g_free(f);

    env = unset_env();
    env.max_channels = 4;
    f = find(h100, 2, "2.28.9", &env);
    CHECK(f->comm.n_channels == 4 && f->graph[TT_GRAPH_RING].n_channels == 8, "MAX_NCHANNELS=4");
    g_free(f);

    env = unset_env();
    env.min_channels = 32;
    f = find(v100, 2, "2.27.7", &env);
    CHECK(f->comm.n_channels == 32, "MIN_NCHANNELS=32");
    g_free(f);

    env = unset_env();
    env.gdr_level = TT_PATH_LOC;
    f = find(h100, 2, "2.27.7", &env);
    CHECK(f->graph[TT_GRAPH_RING].type_inter >= TT_PATH_PHB, "NET_GDR_LEVEL=LOC: through the CPU");
    g_free(f);

    env = unset_env();
    env.ib_disable = 1;
    f = find(h100, 2, "2.27.7", &env);
    CHECK(f->graph[TT_GRAPH_RING].type_inter >= TT_PATH_PHB, "IB_DISABLE=1: sockets, no GPUDirect");
    g_free(f);

    env = unset_env();
    env.nvb_disable = 1;
    f = find(v100, 1, "2.27.7", &env);
    CHECK(f->graph[TT_GRAPH_RING].n_channels == 6,
          "NVB_DISABLE=1 costs rings of neighbours nothing");
    g_free(f);

    env = unset_env();
    env.collnet_enable = 1;
    f = find(h100, 2, "2.27.7", &env);
    CHECK(f->comm.collnet && f->graph[TT_GRAPH_COLLNET_CHAIN].n_channels > 0 &&
              f->graph[TT_GRAPH_COLLNET_DIRECT].n_channels > 0 &&
              f->graph[TT_GRAPH_COLLNET_DIRECT].pattern == TT_PATTERN_COLLNET_DIRECT,
          "COLLNET_ENABLE=1: chain %u, direct %u", f->graph[TT_GRAPH_COLLNET_CHAIN].n_channels,
          f->graph[TT_GRAPH_COLLNET_DIRECT].n_channels);
    g_free(f);
    f = find(h100, 1, "2.27.7", &env);
    CHECK(!f->comm.collnet, "COLLNET_ENABLE=1 means nothing in one node");
    g_free(f);
}

/* The OCI machine of the reference: a real dump's figures. Two NICs of 180 Gbit/s for each H100. */
static void
more_nics_than_gpus_are_all_used(void)
{
    g_autoptr(TtNcclXml) xml = tt_nccl_xml_new("oci-h100");
    g_autofree Found *f = NULL;
    g_autofree char *ring = NULL, *tree = NULL, *nvls = NULL;

    for (guint s = 0; s < 2; s++) {
        guint cpu = nccl_add_cpu(xml, "x86_64", "GenuineIntel", 6, 143);

        for (guint g = 0; g < 4; g++) {
            guint pci = nccl_add_pci(xml, cpu, TT_NO_INDEX, 0x060400, 32);

            nccl_add_nvlink(xml, nccl_add_gpu(xml, cpu, pci, 32, 90), TT_NO_INDEX, 18);
            nccl_add_nic(xml, cpu, pci, 32, 180000);
            nccl_add_nic(xml, cpu, pci, 32, 180000);
        }
    }
    f = find(xml, 4, "2.27.7", NULL);
    ring = graph_text(&f->graph[TT_GRAPH_RING]);
    tree = graph_text(&f->graph[TT_GRAPH_TREE]);
    nvls = graph_text(&f->graph[TT_GRAPH_NVLS]);
    CHECK(g_str_has_prefix(ring, "RING\t0\t16\t22.00\t22.00"), "%s", ring);
    CHECK(g_str_has_prefix(tree, "TREE\t0\t16\t24.00\t22.00"), "%s", tree);
    CHECK(g_str_has_prefix(nvls, "NVLS\t0\t8\t22.00\t22.00"), "%s", nvls);
    CHECK(f->comm.n_channels == 32, "%u", f->comm.n_channels);
}

/* A GPU and a NIC below each switch: from 2.21 to 2.28 GPUs before Hopper are allowed no way to a net beyond PXN,
 * but the second GPU of a balanced tree receives over the CPU, as PXN is for sending. */
static void
ampere_with_a_nic_each_has_no_tree(void)
{
    static const NcclSystem system = { "pairs", "GenuineIntel", 6, 143, 1, 2, 1, 1, 32, 80,
                                       6,       200000 };
    static const struct {
        const char *name, *no_pxn;
        guint n_channels;
        double bw_inter;
    } rows[] = { { "2.20.5", NULL, 2, 24 },
                 { "2.21.5", NULL, 1, 0.1 },
                 { "2.27.7", NULL, 1, 0.1 },
                 { "2.27.7", "without PXN", 2, 24 },
                 { "2.29.7", NULL, 2, 24 } };
    g_autoptr(TtNcclXml) xml = nccl_system_xml(&system);

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        TtNcclEnv env = unset_env();
        g_autofree Found *found = NULL;

        env.pxn_disable = rows[r].no_pxn ? 1 : TT_NCCL_UNSET;
        found = find(xml, 2, rows[r].name, &env);
        CHECK_ROW(&rows[r], found->comm.graph[TT_GRAPH_TREE].n_channels == rows[r].n_channels &&
                                found->comm.graph[TT_GRAPH_RING].n_channels == rows[r].n_channels);
        CHECK_ROW(&rows[r],
                  fabs(found->comm.graph[TT_GRAPH_TREE].bw_inter - rows[r].bw_inter) < 1e-3);
    }
}

static void
the_same_machine_gives_the_same_answer(void)
{
    g_autoptr(TtNcclXml) xml = nccl_system_by_name("dgx1v");
    g_autofree Found *one = find(xml, 2, "2.27.7", NULL), *two = find(xml, 2, "2.27.7", NULL);

    CHECK(memcmp(one, two, sizeof *one) == 0, "two runs differ");
}

int
main(void)
{
    CU_TestInfo tests[] = {
        { "golden rows are met", golden_rows_are_met },
        { "channels have the known orders", channels_have_the_known_orders },
        { "rings of a cube mesh keep to NVLinks", rings_of_a_cube_mesh_keep_to_nvlinks },
        { "GPUs are places and nets are numbers", gpus_are_places_and_nets_are_numbers },
        { "environment changes the search", environment_changes_the_search },
        { "more NICs than GPUs are all used", more_nics_than_gpus_are_all_used },
        { "Ampere with a NIC each has no tree", ampere_with_a_nic_each_has_no_tree },
        { "the same machine gives the same answer", the_same_machine_gives_the_same_answer },
        CU_TEST_INFO_NULL,
    };

    return check_main("nccl_search", tests);
}
