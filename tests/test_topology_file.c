/* What stands after --topo and in files: what is read, what is refused and how it is said. */
#include "tests/topology_check.h"
#include "topologies/topology_private.h"

#include <glib/gstdio.h>
#include <stdlib.h>

/* --- bad usage ---------------------------------------------------------------------------------
 */

static void
bad_usage(void)
{
    static const struct {
        const char *name, *topo, *setting, *words;
    } rows[] = {
        { "unknown preset", "dgx-h900", NULL,
          "one of a100-4, dgx-a100, dgx-b200, dgx-h100, dgx1-v100, dgx2" },
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
          "unknown key (allowed: type, latency, burst, nodes-per-leaf, oversubscription, spines, "
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
        { "no such NIC", "dgx-h100", "nic.slower=8: 100 Gbit/s",
          "\"8: 100 Gbit/s\" is not NUMBER: RATE with a NIC 0..7" },
        { "no rate", "dgx-h100", "nic.degraded=0: 100", "is not NUMBER: RATE" },
        { "no such GPU", "dgx-h100", "node.without-gdr=gpu-8", "is no GPU or NIC of the node" },
        { "neither GPU nor NIC", "dgx-h100", "node.without-gdr=cpu-0", "is no GPU or NIC" },
        { "no lanes", "dgx-h100", "link pcie.pcie=32 GT/s", "must be like \"32 GT/s x16\"" },
        { "not PCIe", "dgx-h100", "link nvlink.pcie=unknown", "links of kind pcie" },
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
    { "unknown CPU", "gpus = 2", "gpus = 2\ncpu = cray",
      "x.ini:5: [node] cpu: must be a vendor (intel, amd, zhaoxin, arm, power)" },
    { "half a CPU", "gpus = 2", "gpus = 2\ncpu = intel 6", "must be a vendor" },
    { "sm", "gpus = 2", "gpus = 2\nsm = 9.0", "must be a whole number from 10 to 999" },
    { "trays", "gpus = 2", "gpus = 2\ntrays = 0", "must be a whole number from 1 to 64" },
    { "gdr", "gpus = 2", "gpus = 2\ngdr = 1", "must be yes or no" },
    { "reported latency", "[nic]", "[nic]\nreported-latency = 75", "unit" },
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
      "\"string\" is not one of nvlink, xgmi, c2c, pcie" },
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

int
main(void)
{
    CU_TestInfo tests[] = {
        { "bad usage", bad_usage },
        { "bad files are refused", bad_files_are_refused },
        { "files are opened", files_are_opened },
        { "unused keys of files", unused_keys_of_files },
        { "example of the documentation", example_of_the_documentation },
        { "equal ways are spread", equal_ways_are_spread },
        CU_TEST_INFO_NULL,
    };

    return check_main("topology file", tests);
}
