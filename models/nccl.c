/* nccl - the names NCCL gives things in its logs and files, and its versions.
 *
 * The versions listed are those whose sources were read for this model; names are those of
 * src/graph/topo.cc, src/graph/search.cc and src/include/device.h, unchanged from 2.18 to 2.30.
 */
#include "models/nccl.h"

G_DEFINE_QUARK(tt - nccl - error - quark, tt_nccl_error)

#define V TT_NCCL_VERSION

const guint tt_nccl_versions[] = {
    V(2, 18, 1), V(2, 18, 5), V(2, 19, 3), V(2, 20, 3), V(2, 21, 5), V(2, 22, 3), V(2, 23, 4),
    V(2, 24, 3), V(2, 25, 1), V(2, 26, 2), V(2, 27, 3), V(2, 27, 5), V(2, 27, 7), V(2, 28, 3),
    V(2, 28, 7), V(2, 28, 9), V(2, 29, 2), V(2, 29, 7), V(2, 30, 3), V(2, 30, 7), 0,
};

static const char *
name_in(const char *const *names, guint n, guint i)
{
    return i < n && names[i] ? names[i] : "unknown";
}

const char *
tt_nccl_algo_name(guint algo)
{
    static const char *const names[] = { "Tree",         "Ring", "CollNetDirect",
                                         "CollNetChain", "NVLS", "NVLSTree",
                                         "PAT" };

    return name_in(names, G_N_ELEMENTS(names), algo);
}

const char *
tt_nccl_proto_name(guint proto)
{
    static const char *const names[] = { "LL", "LL128", "Simple" };

    return name_in(names, G_N_ELEMENTS(names), proto);
}

const char *
tt_nccl_func_name(guint func)
{
    static const char *const names[] = { "Broadcast", "Reduce", "AllGather", "ReduceScatter",
                                         "AllReduce" };

    return name_in(names, G_N_ELEMENTS(names), func);
}

const char *
tt_nccl_path_name(guint path)
{
    static const char *const names[] = { "LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                         "P2C", "PXN", "PHB", "SYS", "NET", "DIS" };

    return name_in(names, G_N_ELEMENTS(names), path);
}

const char *
tt_nccl_pattern_name(guint pattern)
{
    static const char *const names[] = { NULL,   "BALANCED_TREE", "SPLIT_TREE",    "TREE",
                                         "RING", "NVLS",          "COLLNET_DIRECT" };

    return name_in(names, G_N_ELEMENTS(names), pattern);
}

char *
tt_nccl_version_name(guint version)
{
    return g_strdup_printf("%u.%u.%u", version / 10000, version / 100 % 100, version % 100);
}

/* The known release closest to @version: of the same minor if there is one, else the next older minor;
 * between two equally close patches the newer (2.18.3 has the figures of 2.18.5, not those of 2.18.1). */
static guint
closest_known(guint version)
{
    guint best = tt_nccl_versions[0];

    for (guint i = 0; tt_nccl_versions[i]; i++) {
        guint known = tt_nccl_versions[i];

        if (known / 100 == version / 100) {
            if (best / 100 != known / 100 ||
                ABS((int)known - (int)version) <= ABS((int)best - (int)version))
                best = known;
        } else if (known < version) {
            best = known;
        }
    }
    return best;
}

static guint
newest_of_minor(guint minor_code)
{
    guint newest = 0;

    for (guint i = 0; tt_nccl_versions[i]; i++)
        if (tt_nccl_versions[i] / 100 == minor_code)
            newest = tt_nccl_versions[i];
    return newest;
}

/* "2.27.7", "2.27", "2.27.7-1+cuda12.4": up to three numbers; returns how many, 0 if it is no version. */
static guint
read_numbers(const char *text, guint numbers[3])
{
    guint n = 0;

    while (n < 3) {
        guint value = 0, digits = 0;

        for (; g_ascii_isdigit(*text) && digits < 6; text++, digits++)
            value = value * 10 + (guint)(*text - '0');
        if (digits == 0)
            return 0;
        numbers[n++] = value;
        if (*text != '.' || n == 3)
            break;
        text++;
    }
    return *text == '\0' || *text == '-' || *text == '+' ? n : 0;
}

static void
say(char **warning, const char *text, guint version, const char *why)
{
    if (warning) {
        g_autofree char *taken = tt_nccl_version_name(version);

        *warning = g_strdup_printf("NCCL %s is %s: taken as %s", text, why, taken);
    }
}

guint
tt_nccl_version_parse(const char *text, char **warning, GError **error)
{
    const char *digits = text;
    guint numbers[3] = { 0 }, n, version, known, last = 0, first = tt_nccl_versions[0];

    if (warning)
        *warning = NULL;
    if (g_ascii_strncasecmp(digits, "nccl", 4) == 0)
        digits += digits[4] == '-' || digits[4] == ' ' ? 5 : 4;
    if (*digits == 'v' || *digits == 'V')
        digits++;
    for (guint i = 0; tt_nccl_versions[i]; i++)
        last = tt_nccl_versions[i];
    n = read_numbers(digits, numbers);
    if (n == 1 && numbers[0] >= 20000) { /* as ncclGetVersion() returns it */
        guint code = numbers[0];

        numbers[0] = code / 10000, numbers[1] = code / 100 % 100, numbers[2] = code % 100, n = 3;
    }
    if (n < 2 || numbers[1] > 99 || numbers[2] > 99 || numbers[0] > 99) {
        g_autofree char *from = tt_nccl_version_name(first), *to = tt_nccl_version_name(last);

        g_set_error(error, TT_NCCL_ERROR, TT_NCCL_ERROR_USAGE,
                    "\"%s\" is no NCCL version: a number from %s to %s, such as 2.27.7 or 2.27",
                    text, from, to);
        return 0;
    }
    version = V(numbers[0], numbers[1], numbers[2]);
    if (n == 2 && (known = newest_of_minor(version / 100)) != 0)
        return known;
    known = closest_known(version);
    if (version < first)
        say(warning, digits, known, "older than what is known");
    else if (version > last)
        say(warning, digits, known, "newer than what is known");
    else if (known != version)
        say(warning, digits, known, "not among those read");
    return known;
}

const TtNcclGraph *
tt_nccl_graph_of(const TtNcclComm *comm, guint algo)
{
    static const guint graphs[TT_NCCL_N_ALGOS] = {
        [TT_NCCL_TREE] = TT_GRAPH_TREE,
        [TT_NCCL_RING] = TT_GRAPH_RING,
        [TT_NCCL_COLLNET_DIRECT] = TT_GRAPH_COLLNET_DIRECT,
        [TT_NCCL_COLLNET_CHAIN] = TT_GRAPH_COLLNET_CHAIN,
        [TT_NCCL_NVLS] = TT_GRAPH_NVLS,
        [TT_NCCL_NVLS_TREE] = TT_GRAPH_NVLS,
        [TT_NCCL_PAT] = TT_GRAPH_TREE,
    };

    return &comm->graph[graphs[algo]];
}
