/* Mutated presets: whatever the text, an error or a sound topology, never a crash, leak or hang
 * (mutate.h).
 */
#include "tests/mutate.h"
#include "tests/topology_check.h"
#include "topologies/topology_private.h"

/* What tends to hurt parsers of such files. */
static const char *const words[] = {
    "\n",
    "=",
    "[",
    "]",
    ";",
    ":",
    "#",
    "-",
    " ",
    "0",
    "1",
    "-1",
    "9",
    "512",
    "1e999",
    "nan",
    "inf",
    "%",
    "18446744073709551616",
    "4294967296",
    "GB/s",
    "us",
    "\303\251",
    "\377",
    "\001",
    "0-0",
    "0-1x1024",
    "gpu",
    "nic",
    "nvswitch",
    "cpu",
    "pairs",
    "pattern = each-to-all",
    "pattern = each-to-own",
    "width = 1024",
    "\n[node]\n",
    "\n[link nvlink]\n",
    "\n[fabric]\n",
    "\nnics = 64\n",
    "\npcie-switches = 64\n",
    "\ngpus = 100\n",
    "; spec: x",
    "rail",
    "fat-tree",
    "single-switch",
    "yes",
    "no",
    "\npxn = no\n",
    "\nspines = 65536\n",
    "\nnodes-per-leaf = 1\n",
    "\noversubscription = 1000\n",
    "\nslower = 0: 1 GB/s, 1: 100 Gbit/s\n",
    "\ndegraded = 0: 1 kB/s\n",
    "\nwithout-gdr = gpu-0 nic-0\n",
    "\npcie = 8 GT/s x8\n",
    "\npcie = unknown\n",
};

/* A mutant that is accepted must still be a topology. */
static gboolean
is_sound(const TtTopology *topo, GRand *rand)
{
    const char *kind = tt_device_kind_name(topo->node->rank_kind);
    guint n = tt_topology_n_ranks(topo);
    g_autofree char *text = tt_topology_describe(topo), *json = tt_topology_to_json(topo);
    gboolean sound = n > 0 && *text && *json && tt_topology_rank_out_bytes_per_s(topo, 0) >= 0;

    for (guint i = 0; i < 20 && sound; i++)
        sound = route_is_sound(topo, below(rand, n), below(rand, n), kind);
    for (guint i = 0; i < 20 && sound && tt_topology_n_links(topo); i++) {
        TtLinkInfo info = tt_topology_link(topo, below(rand, tt_topology_n_links(topo)));

        sound = info.capacity_bytes_per_s > 0 && info.latency_ps >= 0;
    }
    return sound;
}

/* Returns TRUE if it was accepted. */
static gboolean
try_text(const char *text, gsize length, guint n_nodes, GRand *rand, const char *what)
{
    GError *error = NULL;
    g_autoptr(TtTopology) topo = tt_topology_parse(text, length, "mutant", n_nodes, NULL, &error);

    CHECK((topo == NULL) == (error != NULL), "%s: neither topology nor error", what);
    if (topo)
        CHECK(is_sound(topo, rand), "%s: accepted, but not sound:\n%s", what, text);
    else
        CHECK(is_one_line(error), "%s: %s", what, error ? error->message : "");
    g_clear_error(&error);
    return topo != NULL;
}

static gboolean
try_mutant(const char *text, gsize length, guint sample, GRand *rand, const char *what)
{
    (void)sample;
    return try_text(text, length, 1 + 4 * below(rand, 2), rand, what);
}

static Fuzz fuzz = { .seed = 1,
                     .n_mutants = 4000,
                     .most_at_once = 3,
                     .least_accepted = 100,
                     .words = words,
                     .n_words = G_N_ELEMENTS(words) };

static void
mutants(void)
{
    g_autoptr(GPtrArray) presets = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);

    for (const TtPreset *p = tt_presets; p->name; p++)
        g_ptr_array_add(presets, g_bytes_new_static(p->text, strlen(p->text)));
    check_mutants(&fuzz, presets, try_mutant);
}

/* Cut anywhere but at the end of a line, a preset is refused; cut at one it may still be whole. */
static void
cut_at_every_byte(void)
{
    GRand *rand = g_rand_new_with_seed(fuzz.seed);

    for (const TtPreset *p = tt_presets; p->name; p++) {
        for (gsize length = 0; length < strlen(p->text); length += check_every(3)) {
            g_autofree char *text = g_strndup(p->text, length);
            g_autofree char *what = g_strdup_printf("%s cut after %zu bytes", p->name, length);
            gboolean accepted = try_text(text, length, 3, rand, what);

            CHECK(!accepted, "%s: accepted", what);
        }
    }
    g_rand_free(rand);
}

int
main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        { "mutants", mutants },
        { "cut at every byte", cut_at_every_byte },
        CU_TEST_INFO_NULL,
    };

    fuzz_arguments(&fuzz, argc, argv);
    return check_main("topology fuzz", tests);
}
