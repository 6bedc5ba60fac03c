/* test_nccl_search - graphs and channels against those NCCL's own search found (nccl-golden.tsv). */
#include "check.h"
#include "models/nccl_search.h"
#include "nccl_systems.h"
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

static char *
graph_text(const TtNcclGraph *g)
{
    return g_strdup_printf("%s\t%u\t%u\t%.2f\t%.2f\t%s\t%s\t%d", tt_nccl_pattern_name(g->pattern),
                           g->cross_nic, g->n_channels, g->bw_intra, g->bw_inter,
                           tt_nccl_path_name(g->type_intra), tt_nccl_path_name(g->type_inter),
                           g->same_channels);
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
golden_rows_are_met(void)
{
    g_autofree char *path =
        g_build_filename(g_getenv("TT_SOURCE_DIR") ? g_getenv("TT_SOURCE_DIR") : ".",
                         "tests/data/nccl-golden.tsv", NULL);
    g_autofree char *content = NULL, *last = NULL;
    g_autofree TtNcclComm *comm = g_new0(TtNcclComm, 1);
    g_autofree TtNcclGraph *unmerged = g_new0(TtNcclGraph, TT_N_GRAPHS);
    g_auto(GStrv) lines = NULL;
    guint met[128] = { 0 }, all[128] = { 0 };

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
            g_autoptr(TtNcclXml) xml = nccl_system_by_name(f[2]);
            g_autoptr(GError) error = NULL;

            tt_nccl_comm_init(comm, xml, (guint)atoi(f[3]), tt_nccl_version_parse(f[1], NULL, NULL),
                              NULL, unmerged, &error);
            CHECK_NO_ERROR(error);
            g_free(last);
            last = g_strdup(key);
        }
        ok = row_matches(f, comm, unmerged, &text);
        all[kind]++;
        met[kind] += ok;
        CHECK(ok, "\n  want %s\n  got  %s", lines[i], text);
    }
    printf("rows met: Y %u of %u, G %u of %u, C %u of %u ", met['Y'], all['Y'], met['G'], all['G'],
           met['C'], all['C']);
    CHECK(all['Y'] + all['G'] + all['C'] == 1672, "%u rows", all['Y'] + all['G'] + all['C']);
}

/* ---- what the graphs look like ---- */

typedef struct {
    TtNcclComm comm;
    TtNcclGraph graph[TT_N_GRAPHS]; /* before the merge */
} Found;

static Found *
find(const TtNcclXml *xml, guint n_nodes, const char *version, const TtNcclEnv *env)
{
    Found *found = g_new0(Found, 1);
    g_autoptr(GError) error = NULL;

    tt_nccl_comm_init(&found->comm, xml, n_nodes, tt_nccl_version_parse(version, NULL, NULL), env,
                      found->graph, &error);
    CHECK(!error, "%s x %u, %s: %s", xml->origin, n_nodes, version, error ? error->message : "");
    return found;
}

static char *
channel_text(const TtNcclGraph *g, guint c)
{
    GString *text = g_string_new(NULL);

    g_string_append_printf(text, "%d:", g->net[c][0]);
    for (guint i = 0; i < g->n_gpus; i++)
        g_string_append_printf(text, " %u", g->gpu[c][i]);
    g_string_append_printf(text, " :%d", g->net[c][1]);
    return g_string_free(text, FALSE);
}

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

/* ---- any machine has an answer ---- */

static gboolean
is_permutation(const TtNcclGraph *g, guint c)
{
    gboolean seen[TT_NCCL_MAX_GPUS] = { 0 };
    guint n = g->id == TT_GRAPH_NVLS ? 1 : g->n_gpus; /* NVLS: heads only */

    for (guint i = 0; i < n; i++) {
        if (g->gpu[c][i] >= g->n_gpus || seen[g->gpu[c][i]])
            return FALSE;
        seen[g->gpu[c][i]] = TRUE;
    }
    return TRUE;
}

static gboolean
is_net(const TtNcclXml *xml, int number)
{
    for (guint i = 0; i < xml->net->len; i++)
        if ((int)g_array_index(xml->net, TtXmlNet, i).dev == number)
            return TRUE;
    return FALSE;
}

static void
check_graph(const TtNcclXml *xml, const TtNcclComm *comm, const TtNcclGraph *g, const char *what)
{
    guint most = comm->version >= 22500 ? 32 : 16;

    if (g->id == TT_GRAPH_NVLS)
        most = 32;
    CHECK(g->n_channels <= most, "%s: %u channels", what, g->n_channels);
    if (g->id <= TT_GRAPH_TREE)
        CHECK(g->n_channels > 0 && g->bw_intra > 0 && g->bw_inter > 0, "%s: no channel", what);
    CHECK(g->n_gpus == comm->ranks_per_node, "%s: %u GPUs", what, g->n_gpus);
    CHECK(g->type_intra < TT_PATH_DIS && g->type_inter < TT_PATH_DIS, "%s: kinds", what);
    for (guint c = 0; c < g->n_channels; c++) {
        g_autofree char *text = channel_text(g, c);

        CHECK(is_permutation(g, c), "%s: %s", what, text);
        for (guint side = 0; side < 2; side++)
            CHECK(comm->n_nodes == 1 ? g->net[c][side] == -1 : is_net(xml, g->net[c][side]),
                  "%s: %s", what, text);
    }
}

static void
check_machine(const TtNcclXml *xml)
{
    static const char *const versions[] = { "2.18.1", "2.23.4", "2.30.7" };

    for (guint v = 0; v < G_N_ELEMENTS(versions); v++)
        for (guint n_nodes = 1; n_nodes <= (xml->net->len ? 2 : 1); n_nodes++) {
            g_autofree char *what =
                g_strdup_printf("%s x %u, %s", xml->origin, n_nodes, versions[v]);
            g_autofree Found *f = find(xml, n_nodes, versions[v], NULL);

            for (guint g = 0; g < TT_N_GRAPHS; g++)
                check_graph(xml, &f->comm, &f->graph[g], what);
            CHECK(f->comm.graph[TT_GRAPH_RING].n_channels ==
                      f->comm.graph[TT_GRAPH_TREE].n_channels,
                  "%s: merged", what);
            CHECK(f->comm.n_channels >= 1 && f->comm.n_channels <= TT_NCCL_MAX_CHANNELS, "%s: %u",
                  what, f->comm.n_channels);
        }
}

static TtNcclXml *
consumer_machine(void)
{
    TtNcclXml *xml = tt_nccl_xml_new("consumer");

    nccl_add_cpu(xml, "x86_64", "AuthenticAMD", 25, 33);
    for (guint g = 0; g < 4; g++)
        nccl_add_gpu(xml, 0, TT_NO_INDEX, 16, 89);
    nccl_add_nic(xml, 0, TT_NO_INDEX, 8, 10000);
    return xml;
}

/* A virtual machine shows everything below one CPU. */
static TtNcclXml *
virtual_machine(void)
{
    TtNcclXml *xml = tt_nccl_xml_new("virtual");

    nccl_add_cpu(xml, "x86_64", "GenuineIntel", 6, 106);
    for (guint g = 0; g < 8; g++)
        nccl_add_nvlink(xml, nccl_add_gpu(xml, 0, TT_NO_INDEX, 16, 80), TT_NO_INDEX, 12);
    for (guint n = 0; n < 8; n++)
        nccl_add_nic(xml, 0, TT_NO_INDEX, 16, 200000);
    return xml;
}

/* Four GH200: a CPU for each GPU, NVLinks between all. */
static TtNcclXml *
grace_hopper_machine(void)
{
    TtNcclXml *xml = tt_nccl_xml_new("grace-hopper");

    for (guint g = 0; g < 4; g++) {
        guint cpu = nccl_add_cpu(xml, "arm64", NULL, -1, -1);
        TtXmlC2c c2c = { nccl_add_gpu(xml, cpu, TT_NO_INDEX, 32, 90), 44712, 10 };

        g_array_append_val(xml->c2c, c2c);
        nccl_add_nic(xml, cpu, TT_NO_INDEX, 32, 200000);
    }
    for (guint g = 0; g < 4; g++)
        for (guint p = 0; p < 4; p++)
            if (g != p)
                nccl_add_nvlink(xml, g, p, 6);
    return xml;
}

/* Two sockets of switches with four GPUs and NICs of two ports each. */
static TtNcclXml *
two_port_machine(void)
{
    TtNcclXml *xml = tt_nccl_xml_new("two-port");

    for (guint s = 0; s < 2; s++) {
        guint cpu = nccl_add_cpu(xml, "x86_64", "GenuineIntel", 6, 106),
              pci = nccl_add_pci(xml, cpu, TT_NO_INDEX, 0x060400, 16);

        for (guint g = 0; g < 4; g++)
            nccl_add_gpu(xml, cpu, pci, 16, 80);
        for (guint port = 0; port < 2; port++) {
            TtXmlNet *net;

            nccl_add_nic(xml, cpu, pci, 16, 100000);
            net = &g_array_index(xml->net, TtXmlNet, xml->net->len - 1);
            net->port = port + 1;
            g_free(net->guid);
            net->guid = g_strdup_printf("0xa%u", s);
            if (port) { /* the second function of the same device */
                TtXmlPci *one = &g_array_index(xml->pci, TtXmlPci, net->pci - 1), *two = one + 1;

                g_free(two->bus_id);
                two->bus_id = g_strdup(one->bus_id);
                two->bus_id[strlen(two->bus_id) - 1] = '1';
            }
        }
    }
    return xml;
}

/* @n_hosts trays of four GPUs on one NVLink fabric. */
static TtNcclXml *
rack(guint n_hosts)
{
    TtNcclXml *xml = tt_nccl_xml_new("rack");

    for (guint c = 0; c < 2 * n_hosts; c++) {
        guint cpu = nccl_add_cpu(xml, "arm64", NULL, -1, -1);

        g_array_index(xml->cpu, TtXmlCpu, cpu).host_hash = g_strdup_printf("0x%x", c / 2 + 1);
        for (guint g = 0; g < 2; g++) {
            TtXmlC2c c2c = { nccl_add_gpu(xml, cpu, TT_NO_INDEX, 64, 100), 44712, 14 };

            g_array_append_val(xml->c2c, c2c);
            nccl_add_nvlink(xml, c2c.gpu, TT_NO_INDEX, 18);
            nccl_add_nic(xml, cpu, TT_NO_INDEX, 32, 400000);
        }
    }
    return xml;
}

static TtNcclXml *
nvl72(void)
{
    return rack(18);
}

static TtNcclXml *
lone_gpu(void)
{
    TtNcclXml *xml = tt_nccl_xml_new("lone");

    nccl_add_gpu(xml, nccl_add_cpu(xml, "x86_64", NULL, -1, -1), TT_NO_INDEX, 0, 75);
    return xml;
}

/* Figures no wire has: counts and widths a file may well claim. */
static TtNcclXml *
absurd_figures(void)
{
    TtNcclXml *xml = rack(2);

    for (guint i = 0; i < xml->nvlink->len; i++)
        g_array_index(xml->nvlink, TtXmlNvlink, i).count = G_MAXUINT;
    for (guint i = 0; i < xml->c2c->len; i++)
        g_array_index(xml->c2c, TtXmlC2c, i).mb_per_s = 1e300;
    for (guint i = 0; i < xml->pci->len; i++)
        g_array_index(xml->pci, TtXmlPci, i).link_width = G_MAXUINT;
    for (guint i = 0; i < xml->net->len; i++)
        g_array_index(xml->net, TtXmlNet, i).speed_mbps = G_MAXINT;
    for (guint i = 0; i < xml->gpu->len; i++)
        g_array_index(xml->gpu, TtXmlGpu, i).dev = G_MAXUINT16 - (int)i;
    return xml;
}

/* NICs that are not on PCI, as some plug-ins state them. */
static TtNcclXml *
loose_nics(void)
{
    TtNcclXml *xml = consumer_machine();

    for (guint i = 0; i < 2; i++) {
        TtXmlNet net = { .pci = TT_NO_INDEX,
                         .cpu = 0,
                         .name = g_strdup("eth"),
                         .dev = 5 + i,
                         .speed_mbps = 0,
                         .port = 0,
                         .keep = TRUE };

        g_array_append_val(xml->net, net);
    }
    return xml;
}

static void
any_machine_has_channels(void)
{
    TtNcclXml *(*const machines[])(
        void) = { consumer_machine, virtual_machine, grace_hopper_machine, two_port_machine, nvl72,
                  lone_gpu,         loose_nics,      absurd_figures };

    for (guint i = 0; i < G_N_ELEMENTS(machines); i++) {
        g_autoptr(TtNcclXml) xml = machines[i]();

        check_machine(xml);
    }
    for (guint i = 0; tt_presets[i].name; i++) {
        g_autoptr(TtTopology) topo = tt_topology_open(tt_presets[i].name, NULL, NULL);
        g_autoptr(TtNcclXml) xml = topo ? tt_nccl_xml_of_topology(topo, NULL) : NULL;

        if (xml) /* some are machines without GPUs */
            check_machine(xml);
    }
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

/* ---- what is refused ---- */

static void
check_refused(const TtNcclXml *xml, guint n_nodes, const char *words)
{
    g_autofree TtNcclComm *comm = g_new0(TtNcclComm, 1);
    GError *error = NULL;

    CHECK(!tt_nccl_comm_init(comm, xml, n_nodes, 22707, NULL, NULL, &error), "%s", words);
    CHECK_ERROR(error, TT_NCCL_ERROR, TT_NCCL_ERROR_USAGE, words);
}

static void
impossible_machines_are_refused(void)
{
    g_autoptr(TtNcclXml) none = tt_nccl_xml_new("none"), lone = lone_gpu(), many = rack(33),
                         fits = rack(32), nets = lone_gpu();
    g_autofree Found *found = NULL;

    nccl_add_cpu(none, "x86_64", NULL, -1, -1);
    check_refused(none, 1, "none: no GPU");
    check_refused(lone, 2, "lone: no network port, so 2 nodes cannot reach each other");
    check_refused(lone, 0, "0 nodes");
    check_refused(many, 1, "more than 128 GPUs");
    for (guint i = 0; i <= 256; i++)
        nccl_add_nic(nets, 0, TT_NO_INDEX, 8, 1000);
    check_refused(nets, 2, "at most 256 network ports");
    found = find(fits, 1, "2.27.7", NULL);
    CHECK(found->comm.n_ranks == 128, "%u", found->comm.n_ranks);
}

/* ---- machines nobody would build ---- */

static TtNcclXml *
random_machine(GRand *rand)
{
    static const guint sms[] = { 60, 70, 75, 80, 86, 89, 90, 94, 100, 120 };
    static const char *const vendors[] = { "GenuineIntel", "AuthenticAMD", NULL, "  Shanghai  " };
    static const char *const archs[] = { "x86_64", "arm64", "ppc64", "x86_64" };
    TtNcclXml *xml = tt_nccl_xml_new("random");
    guint sm = sms[g_rand_int_range(rand, 0, G_N_ELEMENTS(sms))],
          n_cpus = g_rand_int_range(rand, 1, 4), fabric = g_rand_int_range(rand, 0, 3);

    for (guint c = 0; c < n_cpus; c++) {
        guint a = g_rand_int_range(rand, 0, 4), n_switches = g_rand_int_range(rand, 0, 4), n_pci;

        nccl_add_cpu(xml, archs[a], vendors[g_rand_int_range(rand, 0, 4)], 6,
                     g_rand_int_range(rand, 0, 256));
        n_pci = xml->pci->len;
        for (guint w = 0; w < n_switches; w++)
            nccl_add_pci(xml, c,
                         w && g_rand_boolean(rand) ? n_pci + (guint)g_rand_int_range(rand, 0, w)
                                                   : TT_NO_INDEX,
                         0x060400, 1 << g_rand_int_range(rand, 1, 7));
        for (guint g = g_rand_int_range(rand, c == 0, 5); g > 0; g--) {
            guint parent = n_switches ? n_pci + (guint)g_rand_int_range(rand, 0, n_switches)
                                      : TT_NO_INDEX,
                  gpu = nccl_add_gpu(xml, c, parent, g_rand_int_range(rand, 0, 65), sm);

            g_array_index(xml->gpu, TtXmlGpu, gpu).gdr = g_rand_int_range(rand, 0, 5) > 0;
            if (fabric == 1)
                nccl_add_nvlink(xml, gpu, TT_NO_INDEX, g_rand_int_range(rand, 0, 19));
        }
        for (guint n = g_rand_int_range(rand, 0, 4); n > 0; n--)
            nccl_add_nic(xml, c,
                         n_switches ? n_pci + (guint)g_rand_int_range(rand, 0, n_switches)
                                    : TT_NO_INDEX,
                         16, g_rand_int_range(rand, 0, 9) * 50000 - 50000);
    }
    for (guint i = 0; fabric == 2 && i < 2 * xml->gpu->len; i++)
        nccl_add_nvlink(xml, g_rand_int_range(rand, 0, xml->gpu->len),
                        g_rand_int_range(rand, 0, xml->gpu->len), g_rand_int_range(rand, 0, 5));
    return xml;
}

static void
random_machines_have_channels_too(void)
{
    guint32 seed =
        g_getenv("TT_SEED") ? (guint32)atoi(g_getenv("TT_SEED")) : g_random_int() % 1000000;
    GRand *rand = g_rand_new_with_seed(seed);

    printf("seed %u ", seed);
    for (guint i = 0; i < 40; i++) {
        g_autoptr(TtNcclXml) xml = random_machine(rand);

        g_free(xml->origin);
        xml->origin = g_strdup_printf("random %u of seed %u", i, seed);
        check_machine(xml);
    }
    g_rand_free(rand);
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
        { "any machine has channels", any_machine_has_channels },
        { "more NICs than GPUs are all used", more_nics_than_gpus_are_all_used },
        { "impossible machines are refused", impossible_machines_are_refused },
        { "random machines have channels too", random_machines_have_channels_too },
        { "the same machine gives the same answer", the_same_machine_gives_the_same_answer },
        CU_TEST_INFO_NULL,
    };

    return check_main("nccl_search", tests);
}
