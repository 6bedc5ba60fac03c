#include "cli/library.h"
#include "cli/output.h"
#include "cli/values.h"
#include "models/nccl_graph_file.h"

#include <math.h>
#include <string.h>

/* --- names ------------------------------------------------------------------------------------- */

static const char *const algo_words[] = { "tree",          "ring", "collnet-direct",
                                          "collnet-chain", "nvls", "nvls-tree",
                                          "pat",           NULL };
static const char *const proto_words[] = { "ll", "ll128", "simple", NULL };

const char *
tt_library_algo_word(guint algo)
{
    g_assert(algo < TT_NCCL_N_ALGOS);
    return algo_words[algo];
}

const char *
tt_library_proto_word(guint proto)
{
    g_assert(proto < TT_NCCL_N_PROTOS);
    return proto_words[proto];
}

/* NCCL's own spelling ("NVLSTree") is ours without the hyphen. */
static int
find_word(const char *const *words, const char *text)
{
    for (int i = 0; words[i]; i++) {
        g_auto(GStrv) parts = g_strsplit(words[i], "-", -1);
        g_autofree char *joined = g_strjoinv("", parts);

        if (g_ascii_strcasecmp(text, words[i]) == 0 || g_ascii_strcasecmp(text, joined) == 0)
            return i;
    }
    return -1;
}

gboolean
tt_library_pair_parse(const char *text, TtLibraryPair *pair, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(text, ":", 2);
    int algo = find_word(algo_words, parts[0] ? parts[0] : "");
    int proto = parts[0] && parts[1] ? find_word(proto_words, parts[1]) : -1;

    if (algo < 0 || (parts[1] && proto < 0)) {
        g_autofree char *algos = g_strjoinv(", ", (char **)algo_words);

        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "NCCL has no algorithm \"%s\" (all, auto, or some of: %s; each may be "
                    "followed by :ll, :ll128 or :simple)",
                    text, algos);
        return FALSE;
    }
    if (proto >= 0 && proto != TT_NCCL_SIMPLE && algo != TT_NCCL_TREE && algo != TT_NCCL_RING) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "--algo \"%s\": NCCL has %s by simple only", text, algo_words[algo]);
        return FALSE;
    }
    *pair = (TtLibraryPair){ .algo = (TtNcclAlgo)algo, .proto = proto };
    return TRUE;
}

guint
tt_library_nccl_version(const char *library, char **warning, GError **error)
{
    guint newest = 0;

    if (g_ascii_strcasecmp(library, "nccl") != 0)
        return tt_nccl_version_parse(library, warning, error);
    for (guint i = 0; tt_nccl_versions[i]; i++)
        newest = tt_nccl_versions[i];
    *warning = NULL;
    return newest;
}

/* --- variables --------------------------------------------------------------------------------- */

static gboolean
set_variable(TtNcclEnv *env, const char *text, gboolean *used, GError **error)
{
    const char *equals = strchr(text, '=');
    g_autofree char *name = NULL;

    if (!equals || equals == text) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "--env \"%s\" must be NAME=VALUE, as in NCCL_ALGO=Ring", text);
        return FALSE;
    }
    name = g_strndup(text, (gsize)(equals - text));
    return tt_nccl_env_set(env, name, equals + 1, used, error);
}

/* What was probably meant, for the note about a variable that means nothing here. */
static void
warn_unused(TtReport *report, const char *text)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *name = g_strndup(text, strcspn(text, "="));
    const char *meant;

    for (guint i = 0; tt_nccl_env_name(i); i++)
        g_ptr_array_add(names, g_strdup_printf("NCCL_%s", tt_nccl_env_name(i)));
    g_ptr_array_add(names, NULL);
    meant = tt_nearest_word(name, (const char *const *)names->pdata);
    tt_report_warn(report, "--env %s changes nothing here%s%s%s", name,
                   meant ? " (did you mean " : "", meant ? meant : "", meant ? "?)" : "");
}

gboolean
tt_library_check(const TtOptions *options, GError **error)
{
    TtNcclEnv env;
    gboolean good = TRUE;

    if (options->profile) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "--profile %s and --library %s exclude each other", options->profile,
                    options->library);
        return FALSE;
    }
    tt_nccl_env_init(&env);
    for (guint i = 0; good && options->env && options->env[i]; i++)
        good = set_variable(&env, options->env[i], NULL, error);
    tt_nccl_env_clear(&env);
    return good;
}

static gboolean
read_variables(TtLibrary *library, const TtOptions *options, TtReport *report, GError **error)
{
    for (guint i = 0; options->env && options->env[i]; i++) {
        gboolean used;
        const char *equals;
        g_autofree char *key = NULL;

        if (!set_variable(&library->env, options->env[i], &used, error))
            return FALSE;
        if (!used)
            warn_unused(report, options->env[i]);
        equals = strchr(options->env[i], '=');
        key = g_strdup_printf("env %.*s", (int)(equals - options->env[i]), options->env[i]);
        tt_report_config(report, key, "%s", equals + 1);
    }
    return TRUE;
}

/* --- opening ----------------------------------------------------------------------------------- */

static gboolean
count_nodes(const TtOptions *options, const TtTopology *topo, guint *n_nodes, GError **error)
{
    guint per_node = tt_topology_ranks_per_node(topo), all = tt_topology_n_ranks(topo);
    guint n = options->n_ranks ? options->ranks[0] : all;

    if (options->n_ranks > 1 || n > all || n % per_node != 0) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "--ranks must be one number, whole nodes of %u, up to %u: what %s has",
                    per_node, all, tt_topology_name(topo));
        return FALSE;
    }
    *n_nodes = n / per_node;
    return TRUE;
}

static void
describe(const TtLibrary *library, const TtOptions *options, TtReport *report)
{
    g_autofree char *version = tt_nccl_version_name(library->version);

    tt_report_set_topology(report, library->topology, library->comm.n_ranks, library->comm.n_nodes);
    tt_report_config(report, "library", "nccl");
    tt_report_config(report, "nccl_version", "%s", version);
    tt_report_config_number(report, "channels", library->comm.n_channels);
    tt_report_config_number(report, "nvls_channels", library->comm.nvls_channels);
    for (guint i = 0; options->settings && options->settings[i]; i++) {
        const char *equals = strchr(options->settings[i], '=');
        g_autofree char *key =
            g_strdup_printf("set %.*s", (int)(equals - options->settings[i]), options->settings[i]);

        tt_report_config(report, key, "%s", equals + 1);
    }
    if (options->channels || options->slots || options->group ||
        options->chunk_bytes != TT_CHUNK_AUTO)
        tt_report_warn(report,
                       "--channels, --slots, --chunk-bytes and --group say nothing to NCCL: it "
                       "has NCCL_MAX_NCHANNELS and NCCL_BUFFSIZE (--env)");
}

static TtNcclFunc
func_of(TtCollective collective)
{
    static const TtNcclFunc funcs[TT_N_COLLECTIVES] = {
        [TT_ALLREDUCE] = TT_NCCL_ALLREDUCE, [TT_REDUCE_SCATTER] = TT_NCCL_REDUCE_SCATTER,
        [TT_ALLGATHER] = TT_NCCL_ALLGATHER, [TT_BROADCAST] = TT_NCCL_BROADCAST,
        [TT_REDUCE] = TT_NCCL_REDUCE,
    };

    return funcs[collective];
}

/* NCCL_GRAPH_DUMP_FILE: what one node found, as NCCL would write it. */
static gboolean
write_graphs(const TtLibrary *library, const TtNcclXml *node, guint n_nodes, GError **error)
{
    g_autofree char *text = NULL;

    if (!library->env.graph_dump_file)
        return TRUE;
    text = tt_nccl_graph_file_text(library->unmerged, node, n_nodes, library->version, error);
    return text && tt_output_write(library->env.graph_dump_file, text, error);
}

static gboolean
search(TtLibrary *library, const TtOptions *options, TtReport *report, GError **error)
{
    g_autoptr(TtTopology) topo = NULL;
    g_autoptr(TtNcclXml) node = NULL;
    const char *const *warnings;
    guint n_nodes;

    if (!options->topo) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "--topo is needed: PRESET[:NODES], FILE.ini or FILE.xml (see tutti topo list)");
        return FALSE;
    }
    topo = tt_topology_open(options->topo, options->settings, error);
    if (!topo || !count_nodes(options, topo, &n_nodes, error))
        return FALSE;
    node = tt_nccl_xml_of_topology(topo, error);
    if (!node || !tt_nccl_comm_init(&library->comm, node, n_nodes, library->version, &library->env,
                                    library->unmerged, error))
        return FALSE;
    if (!write_graphs(library, node, n_nodes, error))
        return FALSE;
    tt_nccl_machine_of_node(&library->machine, node, &library->comm);
    if (options->launch >= 0)
        library->machine.launch = (TtNcclLaunch)options->launch;
    library->topology = g_strdup(tt_topology_name(topo));
    warnings = tt_topology_warnings(topo);
    for (guint i = 0; warnings && warnings[i]; i++)
        tt_report_warn(report, "%s", warnings[i]);
    library->topo = g_steal_pointer(&topo);
    library->node = g_steal_pointer(&node);
    return TRUE;
}

TtLibrary *
tt_library_open(const TtOptions *options, TtReport *report, GError **error)
{
    g_autoptr(TtLibrary) library = g_new0(TtLibrary, 1);

    library->version = options->nccl_version;
    library->func = func_of(options->collective);
    tt_nccl_env_init(&library->env);
    if (options->constants && !(library->costs = tt_nccl_costs_load(options->constants, error)))
        return NULL;
    if (!read_variables(library, options, report, error) ||
        !search(library, options, report, error) ||
        !tt_nccl_table(&library->comm, library->func, &library->env, &library->table, error))
        return NULL;
    if (options->library_warning)
        tt_report_warn(report, "%s", options->library_warning);
    describe(library, options, report);
    return g_steal_pointer(&library);
}

void
tt_library_free(TtLibrary *library)
{
    if (!library)
        return;
    tt_nccl_env_clear(&library->env);
    tt_topology_free(library->topo);
    tt_nccl_xml_free(library->node);
    tt_nccl_costs_free(library->costs);
    g_free(library->topology);
    g_free(library);
}

/* --- choosing ---------------------------------------------------------------------------------- */

TtNcclOp
tt_library_op(const TtLibrary *library, const TtCase *c)
{
    return (TtNcclOp){
        .func = library->func,
        .bytes = c->bytes,
        .type_bytes = tt_type_bytes(c->type),
        .is_float = c->type != TT_INT8 && c->type != TT_INT32 && c->type != TT_INT64,
        .is_fp8 = c->type == TT_FLOAT8E4M3 || c->type == TT_FLOAT8E5M2,
        .op_is_sum = c->redop == TT_SUM,
        .op_is_min_max = c->redop == TT_MIN || c->redop == TT_MAX,
        .op_is_avg = c->redop == TT_AVG,
    };
}

GArray *
tt_library_pairs(const TtLibrary *library, const TtOptions *options)
{
    GArray *pairs = g_array_new(FALSE, FALSE, sizeof(TtLibraryPair));

    if (options->algo_auto)
        return pairs;
    for (guint i = 0; !options->algo_all && options->algorithms[i]; i++) {
        TtLibraryPair pair = { 0 };

        if (tt_library_pair_parse(options->algorithms[i], &pair, NULL)) /* checked before */
            g_array_append_val(pairs, pair);
    }
    for (guint a = 0; options->algo_all && a < TT_NCCL_N_ALGOS; a++) {
        for (int proto = 0; proto < TT_NCCL_N_PROTOS; proto++) {
            TtLibraryPair pair = { .algo = a, .proto = proto };

            if (library->table.cell[a][proto].enabled)
                g_array_append_val(pairs, pair);
        }
    }
    return pairs;
}

static gboolean
choose_pair(const TtLibrary *l, const TtNcclOp *op, const TtLibraryPair *pair, TtNcclChoice *choice,
            GError **error)
{
    guint first = pair->proto < 0 ? TT_NCCL_LL : (guint)pair->proto, best = TT_NCCL_N_PROTOS;
    guint last = pair->proto < 0 ? TT_NCCL_SIMPLE : (guint)pair->proto;
    double best_us = INFINITY;

    for (guint p = first; p <= last; p++) {
        double us = tt_nccl_time_us(&l->comm, &l->table, op, pair->algo, p);

        if (us < best_us)
            best_us = us, best = p;
    }
    if (best == TT_NCCL_N_PROTOS) {
        g_set_error(error, TT_NCCL_ERROR, TT_NCCL_ERROR_USAGE, "%s%s%s is off for %s: %s",
                    algo_words[pair->algo], pair->proto < 0 ? "" : ":",
                    pair->proto < 0 ? "" : proto_words[pair->proto], tt_nccl_func_name(op->func),
                    tt_nccl_why_not(&l->comm, &l->table, op, pair->algo, last));
        return FALSE;
    }
    tt_nccl_shape(&l->comm, &l->table, &l->env, op, pair->algo, best, choice);
    return TRUE;
}

gboolean
tt_library_choose(const TtLibrary *library, const TtNcclOp *op, const TtLibraryPair *pair,
                  TtNcclChoice *choice, GError **error)
{
    if (pair)
        return choose_pair(library, op, pair, choice, error);
    return tt_nccl_choose(&library->comm, &library->table, &library->env, op, choice, error);
}

TtRow
tt_library_row(const TtLibrary *library, const TtCase *c, const TtNcclChoice *choice,
               const TtLibraryTime *time)
{
    static const char *const names[TT_NCCL_N_FUNCS] = { "broadcast", "reduce", "allgather",
                                                        "reduce-scatter", "allreduce" };
    static const TtCollective collectives[TT_NCCL_N_FUNCS] = { TT_BROADCAST, TT_REDUCE,
                                                               TT_ALLGATHER, TT_REDUCE_SCATTER,
                                                               TT_ALLREDUCE };
    TtCollective collective = collectives[library->func];
    TtRow row = {
        .collective = names[library->func],
        .algorithm = algo_words[choice->algo],
        .protocol = proto_words[choice->proto],
        .channels = choice->used_channels,
        .rounds = choice->n_loops,
        .ranks = library->comm.n_ranks,
        .bytes = c->bytes,
        .count = c->count,
        .type = tt_type_name(c->type),
        .redop = tt_collective_reduces(collective) ? tt_redop_name(c->redop) : "none",
        .root = -1,
        .bound_us = time->bound_us,
        .limit = time->limit,
        .bottleneck = time->bottleneck,
        .wrong = -1,
        .predicted_us = NAN,
        .measured_us = NAN,
        .error = NAN,
        .flag_ns = NAN,
    };

    tt_row_set_time(&row, collective, time->time_us / 1e6);
    return row;
}
