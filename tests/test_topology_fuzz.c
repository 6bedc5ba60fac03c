/* Mutated presets: whatever the text, an error or a sound topology, never a crash, leak or hang.
 *
 *     test_topology_fuzz [SEED [MUTANTS]]
 *
 * The seed is printed; the same seed makes the same mutants. Run it under the asan preset, too.
 */
#include "tests/topology_check.h"
#include "topologies/topology_private.h"

#include <stdlib.h>

static guint32 seed = 1;
static guint n_mutants = 4000;

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
};

static guint
below(GRand *rand, gsize n)
{
    return n ? (guint)(g_rand_int(rand) % n) : 0;
}

static void
mutate(GString *text, GRand *rand)
{
    gsize at = below(rand, text->len + 1), length = below(rand, MIN(text->len - at, 60) + 1);

    switch (below(rand, 6)) {
    case 0: /* flip a bit */
        if (at < text->len)
            text->str[at] ^= 1 << below(rand, 8);
        break;
    case 1: g_string_erase(text, at, length); break;
    case 2: g_string_insert(text, at, words[below(rand, G_N_ELEMENTS(words))]); break;
    case 3: { /* replace a number */
        while (at < text->len && !g_ascii_isdigit(text->str[at]))
            at++;
        length = strspn(text->str + at, "0123456789");
        g_string_erase(text, at, length);
        g_string_insert(text, at, words[9 + below(rand, 11)]);
        break;
    }
    case 4: { /* say something twice */
        g_autofree char *copy = g_strndup(text->str + at, length);

        g_string_insert(text, below(rand, text->len + 1), copy);
        break;
    }
    default: g_string_truncate(text, at); g_string_append_c(text, '\n');
    }
}

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
        CHECK(error && !strpbrk(error->message, "\n\001") && strlen(error->message) < 1000,
              "%s: %s", what, error ? error->message : "");
    g_clear_error(&error);
    return topo != NULL;
}

static void
mutants(void)
{
    GRand *rand = g_rand_new_with_seed(seed);
    gint64 slowest_us = 0, begin_us = g_get_monotonic_time();
    guint n_presets = 0, n_accepted = 0;

    while (tt_presets[n_presets].name)
        n_presets++;
    for (guint i = 0; i < n_mutants; i++) {
        g_autoptr(GString) text = g_string_new(tt_presets[i % n_presets].text);
        g_autofree char *what = g_strdup_printf("seed %u, mutant %u", seed, i);
        gint64 start_us = g_get_monotonic_time();

        for (guint k = 0, n = 1 + below(rand, 3); k < n; k++)
            mutate(text, rand);
        n_accepted += try_text(text->str, text->len, 1 + 4 * below(rand, 2), rand, what);
        slowest_us = MAX(slowest_us, g_get_monotonic_time() - start_us);
    }
    printf("seed %u: %u mutants, %u accepted, %.1f s, slowest %.1f ms ", seed, n_mutants,
           n_accepted, (double)(g_get_monotonic_time() - begin_us) / 1e6, (double)slowest_us / 1e3);
    CHECK(n_accepted > n_mutants / 100 && n_accepted < n_mutants, "%u of %u accepted", n_accepted,
          n_mutants);
    CHECK(slowest_us < 5000000, "a mutant took %" G_GINT64_FORMAT " us", slowest_us);
    g_rand_free(rand);
}

/* Cut anywhere but at the end of a line, a preset is refused; cut at one it may still be whole. */
static void
cut_at_every_byte(void)
{
    GRand *rand = g_rand_new_with_seed(seed);

    for (const TtPreset *p = tt_presets; p->name; p++) {
        for (gsize length = 0; p->text[length]; length++) {
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

    if (argc > 1)
        seed = (guint32)strtoul(argv[1], NULL, 10);
    if (argc > 2)
        n_mutants = (guint)strtoul(argv[2], NULL, 10);
    return check_main("topology fuzz", tests);
}
