#include "algos/algo.h"
#include "cli/library.h"
#include "cli/options_raw.h"
#include "cli/values.h"

#include <stdarg.h>
#include <string.h>

/* As many sizes, or rows of a table, as a person would read. */
#define MAX_SIZES 65536u

static gboolean fail(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

static gboolean
fail(GError **error, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list arguments;

    va_start(arguments, format);
    text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_set_error_literal(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE, text);
    return FALSE;
}

/* --- checking, a group each -------------------------------------------------------------------- */

static gboolean
unroll_sizes(TtOptions *options, guint64 begin, guint64 end, guint64 factor, guint64 step,
             GError **error)
{
    g_autoptr(GArray) sizes = g_array_new(FALSE, FALSE, sizeof(guint64));

    for (guint64 size = begin;;) {
        g_array_append_val(sizes, size);
        if (sizes->len > MAX_SIZES)
            return fail(error, "-b to -e are more than %u sizes; use a larger -f or -i", MAX_SIZES);
        if (size > end / (factor ? factor : 1) || (!factor && size > G_MAXUINT64 - step))
            break;
        size = factor ? size * factor : size + step;
        if (size > end || size == 0) /* zero times anything stays zero */
            break;
    }
    options->n_sizes = sizes->len;
    options->sizes = (guint64 *)(void *)g_array_free(g_steal_pointer(&sizes), FALSE);
    return TRUE;
}

static gboolean
check_sizes(TtOptions *options, GError **error)
{
    guint64 begin = 32 << 20, end = 32 << 20, step = 1 << 20, factor = 0;

    if (!tt_parse_size("-b", tt_raw.begin, &begin, error) ||
        !tt_parse_size("-e", tt_raw.end, &end, error) ||
        !tt_parse_size("-i", tt_raw.step, &step, error) ||
        !tt_parse_count("-f", tt_raw.factor, 2, 1u << 30, &factor, error))
        return FALSE;
    options->sizes_given = tt_raw.begin || tt_raw.end;
    if (!tt_raw.end)
        end = begin;
    if (!tt_raw.begin)
        begin = end;
    if (begin > end)
        return fail(error, "-b %s is above -e %s; the smallest size comes first", tt_raw.begin,
                    tt_raw.end);
    if (tt_raw.step && tt_raw.factor)
        return fail(error, "-f and -i exclude each other: sizes grow by a factor or by a step");
    if (step == 0)
        return fail(error, "-i \"%s\" must be above zero", tt_raw.step);
    if (begin == 0 && factor && end > 0)
        return fail(error, "-b 0 never grows by a factor; begin at 1 or use -i");
    return unroll_sizes(options, begin, end, factor, step, error);
}

static gboolean
check_types(TtOptions *options, GError **error)
{
    g_auto(GStrv) words = NULL;

    if (!tt_raw.types || strcmp(tt_raw.types, "all") == 0) {
        options->n_types = tt_raw.types ? TT_N_TYPES : 1;
        for (guint t = 0; t < TT_N_TYPES; t++)
            options->types[t] = tt_raw.types ? t : TT_FLOAT32;
        return TRUE;
    }
    words = tt_split_list("-d", tt_raw.types, error);
    if (!words)
        return FALSE;
    for (guint i = 0; words[i]; i++) {
        if (options->n_types == TT_N_TYPES)
            return fail(error, "-d names more than the %d types there are", TT_N_TYPES);
        if (!tt_type_parse(words[i], &options->types[options->n_types++], error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
check_redops(TtOptions *options, GError **error)
{
    g_auto(GStrv) words = NULL;

    options->n_redops = 1;
    if (!tt_raw.redops || !tt_collective_reduces(options->collective))
        return TRUE; /* sum; nccl-tests too ignores -o where nothing is reduced */
    if (strcmp(tt_raw.redops, "all") == 0) {
        options->n_redops = TT_N_REDOPS;
        for (guint r = 0; r < TT_N_REDOPS; r++)
            options->redops[r] = r;
        return TRUE;
    }
    words = tt_split_list("-o", tt_raw.redops, error);
    if (!words)
        return FALSE;
    options->n_redops = 0;
    for (guint i = 0; words[i]; i++) {
        if (options->n_redops == TT_N_REDOPS)
            return fail(error, "-o names more than the %d reductions there are", TT_N_REDOPS);
        if (!tt_redop_parse(words[i], &options->redops[options->n_redops++], error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
check_call(TtOptions *options, GError **error)
{
    if (tt_raw.collective && !tt_collective_parse(tt_raw.collective, &options->collective, error))
        return FALSE;
    return check_types(options, error) && check_redops(options, error) &&
           tt_parse_uint("-r", tt_raw.root, 0, G_MAXUINT32 - 1, &options->root, error);
}

static char **
all_algorithms(void)
{
    GPtrArray *names = g_ptr_array_new();

    for (guint i = 0; tt_algos[i]; i++)
        g_ptr_array_add(names, g_strdup(tt_algos[i]->name));
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(names, FALSE);
}

/* NCCL's names, with a protocol behind a colon if one is meant. */
static gboolean
check_pairs(const TtOptions *options, GError **error)
{
    for (guint i = 0; options->algorithms[i]; i++) {
        TtLibraryPair pair;

        if (!tt_library_pair_parse(options->algorithms[i], &pair, error))
            return FALSE;
    }
    return TRUE;
}

/* One, or for run several at once: "ring+tree". */
static gboolean
is_algorithm(const TtOptions *options, const char *text)
{
    g_auto(GStrv) names = g_strsplit(text, "+", -1);

    if (strcmp(options->command->name, "run") != 0)
        return tt_algo_find(text) != NULL;
    for (guint i = 0; names[i]; i++)
        if (!tt_algo_find(names[i]))
            return FALSE;
    return names[0] != NULL;
}

static gboolean
check_algorithms(TtOptions *options, GError **error)
{
    const char *text = tt_raw.algo ? tt_raw.algo : "auto";

    options->algo_given = tt_raw.algo != NULL;
    options->algo_all = strcmp(text, "all") == 0;
    options->algo_auto = strcmp(text, "auto") == 0;
    if (options->algo_all || options->algo_auto) {
        options->algorithms = all_algorithms();
        return TRUE;
    }
    options->algorithms = tt_split_list("--algo", text, error);
    if (!options->algorithms)
        return FALSE;
    if (options->nccl_version)
        return check_pairs(options, error);
    for (guint i = 0; options->algorithms[i]; i++) {
        g_autofree char *known = NULL;

        if (is_algorithm(options, options->algorithms[i]))
            continue;
        if (!strcmp(options->algorithms[i], "all") || !strcmp(options->algorithms[i], "auto"))
            return fail(error, "--algo %s: \"%s\" stands alone", text, options->algorithms[i]);
        g_auto(GStrv) names = all_algorithms();
        known = g_strjoinv(", ", names);
        return fail(error, "unknown algorithm \"%s\" (all, auto, or some of: %s)",
                    options->algorithms[i], known);
    }
    return TRUE;
}

static gboolean
check_plan(TtOptions *options, GError **error)
{
    if (tt_raw.chunk_bytes && strcmp(tt_raw.chunk_bytes, "auto") != 0 &&
        !tt_parse_size("--chunk-bytes", tt_raw.chunk_bytes, &options->chunk_bytes, error))
        return FALSE;
    return check_algorithms(options, error) &&
           tt_parse_uint("--channels", tt_raw.channels, 1, 1024, &options->channels, error) &&
           tt_parse_uint("--slots", tt_raw.slots, 1, 65536, &options->slots, error) &&
           tt_parse_uint("--group", tt_raw.group, 1, 1u << 24, &options->group, error);
}

static gboolean
check_topology(TtOptions *options, GError **error)
{
    options->topo = g_steal_pointer(&tt_raw.topo);
    options->settings = (const char *const *)g_steal_pointer(&tt_raw.set);
    for (guint i = 0; options->settings && options->settings[i]; i++)
        if (!strchr(options->settings[i], '='))
            return fail(error, "--set \"%s\" must be SECTION.KEY=VALUE", options->settings[i]);
    return TRUE;
}

static gboolean
check_launch(TtOptions *options, GError **error)
{
    static const char *const words[] = { "process-per-gpu", "one-process", "graph", NULL };
    g_autofree char *text = g_steal_pointer(&tt_raw.launch);

    options->launch = -1;
    for (int i = 0; text && words[i]; i++)
        if (!strcmp(text, words[i]))
            options->launch = i;
    return !text || options->launch >= 0 ||
           fail(error, "--launch \"%s\" must be process-per-gpu, one-process or graph", text);
}

/* "ideal" and "tutti" are what --profile calls so; NCCL is another matter. --constants and --launch also go
 * with logs of NCCL that compare reads without --library. */
static gboolean
check_library(TtOptions *options, GError **error)
{
    const char *library = options->library = g_steal_pointer(&tt_raw.library);
    gboolean nccl = library && g_ascii_strncasecmp(library, "nccl", 4) == 0;

    options->env = (const char *const *)g_steal_pointer(&tt_raw.env);
    options->constants = g_steal_pointer(&tt_raw.constants);
    if (!check_launch(options, error))
        return FALSE;
    if (nccl) {
        options->nccl_version = tt_library_nccl_version(library, &options->library_warning, error);
        return options->nccl_version != 0 && tt_library_check(options, error);
    }
    if (options->env)
        return fail(error, "--env \"%s\" goes with --library nccl: nothing else reads it",
                    options->env[0]);
    if ((options->constants || options->launch >= 0) &&
        strcmp(options->command->name, "compare") != 0)
        return fail(error, "--constants and --launch go with --library nccl");
    if (!library)
        return TRUE;
    if (strcmp(library, "ideal") != 0 && strcmp(library, "tutti") != 0)
        return fail(error,
                    "--library \"%s\" must be ideal, tutti, nccl or nccl-VERSION (nccl-2.27)",
                    library);
    if (options->profile && strcmp(options->profile, library) != 0)
        return fail(error, "--library %s is a profile, and --profile says %s", library,
                    options->profile);
    g_free((char *)options->profile);
    options->profile = g_strdup(library);
    return TRUE;
}

static gboolean
check_ranks(TtOptions *options, GError **error)
{
    g_autoptr(GArray) values = g_array_new(FALSE, FALSE, sizeof(guint64));

    if (!tt_parse_ranges("--ranks", tt_raw.ranks, 1, 1u << 24, values, error))
        return FALSE;
    options->n_ranks = values->len;
    options->ranks = g_new(guint, values->len);
    for (guint i = 0; i < values->len; i++)
        options->ranks[i] = (guint)g_array_index(values, guint64, i);
    return TRUE;
}

static gboolean
check_measure(TtOptions *options, GError **error)
{
    guint check = 1;

    if (!tt_parse_uint("-n", tt_raw.iterations, 1, 1000000000, &options->iterations, error) ||
        !tt_parse_uint("-w", tt_raw.warmup, 0, 1000000000, &options->warmup, error) ||
        !tt_parse_uint("-c", tt_raw.check, 0, 1, &check, error) ||
        !tt_parse_timeout("--timeout", tt_raw.timeout, &options->timeout_s, error))
        return FALSE;
    options->check = check != 0;
    options->pin = !tt_raw.no_pin;
    options->transport_given = tt_raw.transport != NULL;
    options->transport = tt_raw.transport ? g_steal_pointer(&tt_raw.transport) : g_strdup("shm");
    return TRUE;
}

/* "4": of consecutive ranks; "mod:4": by rank modulo 4. */
static gboolean
check_iterations(TtOptions *options, GError **error)
{
    const char *groups = tt_raw.groups;

    options->per_iteration = tt_raw.per_iteration;
    options->arrivals = tt_raw.arrivals;
    options->start_offset = g_steal_pointer(&tt_raw.start_offset);
    options->groups = 1;
    options->groups_interleaved = groups && g_str_has_prefix(groups, "mod:");
    if (options->groups_interleaved)
        groups += strlen("mod:");
    return tt_parse_uint("--in-flight", tt_raw.in_flight, 1, 256, &options->in_flight, error) &&
           tt_parse_uint("--groups", groups, 1, 1u << 16, &options->groups, error);
}

static gboolean
check_network(TtOptions *options, GError **error)
{
    guint gid_index = 0;

    options->gid_index = -1;
    options->streams = 1;
    if (!tt_parse_uint("--gid-index", tt_raw.gid_index, 0, 65535, &gid_index, error) ||
        !tt_parse_uint("--streams", tt_raw.streams, 1, 64, &options->streams, error))
        return FALSE;
    if (!tt_gpu_protocol_parse(tt_raw.protocol, &options->protocol, error) ||
        !tt_gpu_placement_parse(tt_raw.placement, &options->placement, error))
        return FALSE;
    options->gpus = g_steal_pointer(&tt_raw.gpus);
    if (tt_raw.gid_index)
        options->gid_index = (gint)gid_index;
    options->interface = g_steal_pointer(&tt_raw.interface);
    options->device = g_steal_pointer(&tt_raw.device);
    options->meet = g_steal_pointer(&tt_raw.meet);
    options->rank = g_steal_pointer(&tt_raw.rank);
    options->hostfile = g_steal_pointer(&tt_raw.hostfile);
    options->secret_file = g_steal_pointer(&tt_raw.secret_file);
    options->checksum = tt_raw.checksum;
    options->fault = g_steal_pointer(&tt_raw.fault);
    return TRUE;
}

static gboolean
check_output(TtOptions *options, GError **error)
{
    if (tt_raw.json && tt_raw.csv)
        return fail(error, "--json and --csv exclude each other: standard output holds one form");
    options->json = tt_raw.json;
    options->csv = tt_raw.csv;
    options->quiet = tt_raw.quiet;
    options->json_file = g_steal_pointer(&tt_raw.json_file);
    options->trace_file = g_steal_pointer(&tt_raw.trace);
    options->timeline_file = g_steal_pointer(&tt_raw.timeline);
    options->plot = g_steal_pointer(&tt_raw.plot);
    return TRUE;
}

/* What torchrun and others call the root is a place: --root 10.0.0.1:29400 is --meet. */
static void
tell_roots_apart(void)
{
    if (tt_raw.root && strchr(tt_raw.root, ':') && !tt_raw.meet)
        tt_raw.meet = g_steal_pointer(&tt_raw.root);
}

gboolean
tt_options_check(TtOptions *options, GError **error)
{
    tell_roots_apart();
    options->profile = g_steal_pointer(&tt_raw.profile);
    options->level_given = tt_raw.level != NULL;
    if (tt_raw.level && !tt_level_parse(tt_raw.level, &options->level, error))
        return FALSE;
    return check_library(options, error) && check_call(options, error) &&
           check_sizes(options, error) && check_plan(options, error) &&
           check_topology(options, error) && check_ranks(options, error) &&
           check_measure(options, error) && check_iterations(options, error) &&
           check_network(options, error) && check_output(options, error);
}
