/* nccl_env - NCCL's environment variables, one row each.
 *
 * Sources: NCCL src/misc/param.cc (how a number is read: C syntax, any base), src/graph/paths.cc (levels),
 * src/graph/tuning.cc (the lists of NCCL_ALGO and NCCL_PROTO). NCCL takes its default where a number
 * cannot be read; here that is an error, for whoever writes it means something by it.
 */
#include "models/nccl_env.h"

#include <string.h>

#define V TT_NCCL_VERSION

typedef enum { TEXT, NUMBER, WIDE, LEVEL, DISABLES_P2P } Kind;

typedef struct {
    const char *name;
    Kind kind;
    gsize offset;
    gint64 min, max;
    const char *values;
} Variable;

#define AT(field) offsetof(TtNcclEnv, field)
#define BUFFER    1, G_GINT64_CONSTANT(1) << 40

static const Variable variables[] = {
    { "ALGO", TEXT, AT(algo), 0, 0, "a list of algorithms" },
    { "PROTO", TEXT, AT(proto), 0, 0, "a list of LL, LL128, Simple" },
    { "MIN_NCHANNELS", NUMBER, AT(min_channels), 0, 1024, "a number of channels" },
    { "MIN_CTAS", NUMBER, AT(min_channels), 0, 1024, "a number of channels" },
    { "MAX_NCHANNELS", NUMBER, AT(max_channels), 1, 1024, "a number of channels" },
    { "MAX_CTAS", NUMBER, AT(max_channels), 1, 1024, "a number of channels" },
    { "P2P_LEVEL", LEVEL, AT(p2p_level), 0, 0, "LOC, NVL, PIX, PXB, PHB, SYS or 0 to 5" },
    { "P2P_DISABLE", DISABLES_P2P, AT(p2p_level), 0, 1, "0 or 1" },
    { "NET_GDR_LEVEL", LEVEL, AT(gdr_level), 0, 0, "LOC, PIX, PXB, PHB, SYS or 0 to 5" },
    { "SHM_DISABLE", NUMBER, AT(shm_disable), 0, 1, "0 or 1" },
    { "NVLS_ENABLE", NUMBER, AT(nvls_enable), 0, 2, "0, 1 or 2 (2: where it can)" },
    { "COLLNET_ENABLE", NUMBER, AT(collnet_enable), 0, 1, "0 or 1" },
    { "PAT_ENABLE", NUMBER, AT(pat_enable), 0, 2, "0, 1 or 2 (2: one rank per node)" },
    { "CROSS_NIC", NUMBER, AT(cross_nic), 0, 2, "0, 1 or 2 (2: if better)" },
    { "PXN_DISABLE", NUMBER, AT(pxn_disable), 0, 1, "0 or 1" },
    { "NVB_DISABLE", NUMBER, AT(nvb_disable), 0, 1, "0 or 1" },
    { "MNNVL_ENABLE", NUMBER, AT(mnnvl_enable), 0, 2, "0, 1 or 2 (2: where it can)" },
    { "LL128_C2C", NUMBER, AT(ll128_c2c), 0, 1, "0 or 1" },
    { "BUFFSIZE", WIDE, AT(buff_size), BUFFER, "bytes" },
    { "LL_BUFFSIZE", WIDE, AT(ll_buff_size), BUFFER, "bytes" },
    { "LL128_BUFFSIZE", WIDE, AT(ll128_buff_size), BUFFER, "bytes" },
    { "NTHREADS", NUMBER, AT(n_threads), 1, 1024, "64 to 512, a multiple of 32" },
    { "LL128_NTHREADS", NUMBER, AT(ll128_n_threads), 1, 1024, "160 to 640, a multiple of 32" },
    { "NVLS_CHUNKSIZE", WIDE, AT(nvls_chunk_size), BUFFER, "bytes" },
    { "NVLSTREE_MAX_CHUNKSIZE", WIDE, AT(nvls_tree_max_chunk_size), BUFFER, "bytes" },
    { "NET_OVERHEAD", NUMBER, AT(net_overhead_ns), 0, 1000000000, "nanoseconds" },
    { "IB_DISABLE", NUMBER, AT(ib_disable), 0, 1, "0 or 1" },
    { "GRAPH_FILE", TEXT, AT(graph_file), 0, 0, "the path of a file to read" },
    { "GRAPH_DUMP_FILE", TEXT, AT(graph_dump_file), 0, 0, "the path of a file to write" },
};

const char *
tt_nccl_env_name(guint i)
{
    return i < G_N_ELEMENTS(variables) ? variables[i].name : NULL;
}

void
tt_nccl_env_init(TtNcclEnv *env)
{
    *env = (TtNcclEnv){ 0 };
    for (guint i = 0; i < G_N_ELEMENTS(variables); i++) {
        char *field = (char *)env + variables[i].offset;

        if (variables[i].kind == WIDE)
            *(gint64 *)field = TT_NCCL_UNSET;
        else if (variables[i].kind != TEXT)
            *(int *)field = TT_NCCL_UNSET;
    }
}

void
tt_nccl_env_clear(TtNcclEnv *env)
{
    g_clear_pointer(&env->algo, g_free);
    g_clear_pointer(&env->proto, g_free);
    g_clear_pointer(&env->graph_file, g_free);
    g_clear_pointer(&env->graph_dump_file, g_free);
}

static const Variable *
find_variable(const char *name)
{
    if (g_str_has_prefix(name, "NCCL_"))
        name += strlen("NCCL_");
    for (guint i = 0; i < G_N_ELEMENTS(variables); i++)
        if (strcmp(variables[i].name, name) == 0)
            return &variables[i];
    return NULL;
}

const char *
tt_nccl_env_values(const char *name)
{
    const Variable *variable = find_variable(name);

    return variable ? variable->values : NULL;
}

/* C syntax: 10, 0x10 and 010 are what NCCL takes. */
static gboolean
read_number(const char *text, gint64 min, gint64 max, gint64 *number)
{
    char *end;
    gint64 n = g_ascii_strtoll(text, &end, 0);

    if (end == text || *end != '\0' || n < min || n > max)
        return FALSE;
    *number = n;
    return TRUE;
}

/* Names as in NCCL's paths; the digits are those of a time before NVL had a place among them. */
static gboolean
read_level(const char *text, gint64 *level)
{
    static const TtNcclPath of_digit[] = { TT_PATH_LOC, TT_PATH_PIX, TT_PATH_PXB,
                                           TT_PATH_PHB, TT_PATH_SYS, TT_PATH_SYS };
    gint64 digit;

    for (guint path = TT_PATH_LOC; path < TT_PATH_NET; path++) {
        if (g_ascii_strcasecmp(text, tt_nccl_path_name(path)) == 0) {
            *level = path;
            return TRUE;
        }
    }
    if (!read_number(text, 0, G_N_ELEMENTS(of_digit) - 1, &digit))
        return FALSE;
    *level = of_digit[digit];
    return TRUE;
}

gboolean
tt_nccl_env_set(TtNcclEnv *env, const char *name, const char *value, gboolean *used, GError **error)
{
    const Variable *v = find_variable(name);
    char *field = (char *)env + (v ? v->offset : 0);
    gint64 number = 0;

    if (used)
        *used = v != NULL;
    if (!v)
        return TRUE;
    if (v->kind == TEXT) {
        g_free(*(char **)field);
        *(char **)field = g_strdup(value);
        return TRUE;
    }
    if (!(v->kind == LEVEL ? read_level(value, &number)
                           : read_number(value, v->min, v->max, &number))) {
        g_set_error(error, TT_NCCL_ERROR, TT_NCCL_ERROR_USAGE, "NCCL_%s=%s: must be %s", v->name,
                    value, v->values);
        return FALSE;
    }
    if (v->kind == WIDE)
        *(gint64 *)field = number;
    else if (v->kind == DISABLES_P2P)
        *(int *)field = number ? TT_PATH_LOC : *(int *)field;
    else
        *(int *)field = (int)number;
    return TRUE;
}

/* --- NCCL_ALGO and NCCL_PROTO ------------------------------------------------------------------ */

typedef const char *(*NameOf)(guint i);

/* What one of the two variables may hold. */
typedef struct {
    const char *variable, *what;
    NameOf name_of;
    guint n;
} Vocabulary;

static guint
n_algorithms(guint version)
{
    return version >= V(2, 23, 0) ? TT_NCCL_N_ALGOS : TT_NCCL_PAT;
}

static char *
all_names(const Vocabulary *words)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < words->n; i++)
        g_string_append_printf(text, "%s%s", i ? ", " : "", words->name_of(i));
    return g_string_free(text, FALSE);
}

static guint
find_name(NameOf name_of, guint n, const char *text)
{
    guint i = 0;

    while (i < n && g_ascii_strcasecmp(name_of(i), text) != 0)
        i++;
    return i;
}

/* "ring,tree" or "^ring". Names that are none are an error if @strict, nothing otherwise. */
static gboolean
read_names(const Vocabulary *words, const char *list, gboolean strict, gboolean *allowed,
           GError **error)
{
    gboolean exclude = *list == '^';
    g_auto(GStrv) names = g_strsplit(list + exclude, ",", -1);

    for (guint i = 0; i < words->n; i++)
        allowed[i] = exclude;
    for (guint i = 0; names[i]; i++) {
        guint found = find_name(words->name_of, words->n, names[i]);

        if (names[i][0] == '\0')
            continue;
        if (found < words->n) {
            allowed[found] = !exclude;
        } else if (strict) {
            g_autofree char *known = all_names(words);

            g_set_error(error, TT_NCCL_ERROR, TT_NCCL_ERROR_USAGE,
                        "%s: \"%s\" is no %s this NCCL knows (%s)", words->variable, names[i],
                        words->what, known);
            return FALSE;
        }
    }
    return TRUE;
}

/* 2.24 and later: "list;function:list;...", the first may lack its function and is for all. */
static gboolean
read_lists(const Vocabulary *words, const char *text, TtNcclFunc func, gboolean *allowed,
           GError **error)
{
    g_auto(GStrv) lists = g_strsplit(text, ";", -1);
    gboolean first = TRUE;

    for (guint i = 0; lists[i]; i++) {
        g_auto(GStrv) parts = g_strsplit(lists[i], ":", 3);
        gboolean unused[TT_NCCL_N_ALGOS];
        guint of = TT_NCCL_N_FUNCS;

        if (lists[i][0] == '\0')
            continue;
        if (parts[1] &&
            (of = find_name(tt_nccl_func_name, TT_NCCL_N_FUNCS, parts[0])) == TT_NCCL_N_FUNCS) {
            g_set_error(error, TT_NCCL_ERROR, TT_NCCL_ERROR_USAGE,
                        "%s: \"%s\" is no collective (Broadcast, Reduce, AllGather, "
                        "ReduceScatter, AllReduce)",
                        words->variable, parts[0]);
            return FALSE;
        }
        if (parts[1] && parts[1][0] == '\0') {
            g_set_error(error, TT_NCCL_ERROR, TT_NCCL_ERROR_USAGE, "%s: nothing after \"%s\"",
                        words->variable, lists[i]);
            return FALSE;
        }
        if (!parts[1] && !first) {
            g_set_error(error, TT_NCCL_ERROR, TT_NCCL_ERROR_USAGE,
                        "%s: \"%s\" must name its collective (only the first list may go without)",
                        words->variable, lists[i]);
            return FALSE;
        }
        first = FALSE;
        if (!read_names(words, parts[parts[1] ? 1 : 0], TRUE,
                        !parts[1] || of == func ? allowed : unused, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
read_filter(const Vocabulary *words, const char *text, guint version, TtNcclFunc func,
            gboolean *allowed, GError **error)
{
    if (version >= V(2, 24, 0))
        return read_lists(words, text, func, allowed, error);
    return read_names(words, text, FALSE, allowed, error);
}

gboolean
tt_nccl_env_filter(const TtNcclEnv *env, guint version, TtNcclFunc func, TtNcclFilter *filter,
                   GError **error)
{
    const Vocabulary algos = { "NCCL_ALGO", "algorithm", tt_nccl_algo_name, n_algorithms(version) };
    const Vocabulary protos = { "NCCL_PROTO", "protocol", tt_nccl_proto_name, TT_NCCL_N_PROTOS };
    TtNcclFilter f = { .algo_given = env && env->algo, .proto_given = env && env->proto };
    enum { UNTOUCHED = 2 }; /* true, and no list said so */

    for (guint i = 0; i < TT_NCCL_N_ALGOS; i++)
        f.algo[i] = i < algos.n ? UNTOUCHED : FALSE;
    for (guint i = 0; i < TT_NCCL_N_PROTOS; i++)
        f.proto[i] = UNTOUCHED;
    if (f.algo_given && !read_filter(&algos, env->algo, version, func, f.algo, error))
        return FALSE;
    if (f.proto_given && !read_filter(&protos, env->proto, version, func, f.proto, error))
        return FALSE;
    f.ll128_forced = f.proto[TT_NCCL_LL128] == TRUE;
    *filter = f;
    return TRUE;
}
