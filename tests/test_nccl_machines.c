/* test_nccl_machines - any machine has graphs and channels, or is refused in a line. */
#include "nccl_found.h"

#include <stdlib.h>
#include <string.h>

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
    static const char *const versions[] = { "2.18.1", "2.30.7", "2.23.4" };

    for (guint v = 0; v < G_N_ELEMENTS(versions); v += check_every(2))
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
    guint32 seed = g_getenv("TT_SEED") ? (guint32)atoi(g_getenv("TT_SEED")) : 1;
    GRand *rand = g_rand_new_with_seed(seed);

    printf("seed %u ", seed);
    for (guint i = 0; i < 40 / check_every(4); i++) {
        g_autoptr(TtNcclXml) xml = random_machine(rand);

        g_free(xml->origin);
        xml->origin = g_strdup_printf("random %u of seed %u", i, seed);
        check_machine(xml);
    }
    g_rand_free(rand);
}

int
main(void)
{
    CU_TestInfo tests[] = {
        { "any machine has channels", any_machine_has_channels },
        { "impossible machines are refused", impossible_machines_are_refused },
        { "random machines have channels too", random_machines_have_channels_too },
        CU_TEST_INFO_NULL,
    };

    return check_main("nccl_machines", tests);
}
