#include "models/replay.h"

#include <string.h>

GQuark
tt_replay_error_quark(void)
{
    return g_quark_from_static_string("tt-replay-error");
}

static void note(TtReplay *r, const char *format, ...) G_GNUC_PRINTF(2, 3);

static void
note(TtReplay *r, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    g_ptr_array_add(r->notes, g_strdup_vprintf(format, arguments));
    va_end(arguments);
}

/* What people ran at a date: releases take a season to arrive. github.com/NVIDIA/nccl, releases. */
static guint
version_at(const char *date)
{
    static const struct {
        const char *until, *version;
    } rows[] = {
        { "2023-09", "2.18" }, { "2024-02", "2.19" }, { "2024-06", "2.20" },
        { "2024-09", "2.21" }, { "2024-12", "2.22" }, { "2025-03", "2.23" },
        { "2025-08", "2.26" }, { "2025-12", "2.27" }, { "2026-04", "2.28" },
    };
    const char *version = "2.29";

    if (!date)
        return tt_nccl_version_parse("2.23", NULL, NULL); /* the middle of those known */
    for (guint i = G_N_ELEMENTS(rows); i-- > 0;)
        if (strcmp(date, rows[i].until) < 0)
            version = rows[i].version;
    return tt_nccl_version_parse(version, NULL, NULL);
}

static gboolean
find_version(TtReplay *r, const TtReplayOptions *options, GError **error)
{
    const TtMeasured *m = r->measured;
    g_autofree char *warning = NULL, *name = NULL;

    gboolean blackwell = r->hardware.gpu && r->hardware.gpu->nvidia && r->hardware.gpu->sm >= 100;

    r->version_assumed = !options->version && !m->version;
    if (options->version)
        r->version = options->version;
    else if (m->version)
        r->version = tt_nccl_version_parse(m->version, &warning, error);
    else /* whoever had Blackwell GPUs had a version that knows them */
        r->version =
            MAX(version_at(m->date), blackwell ? tt_nccl_version_parse("2.27", NULL, NULL) : 0);
    if (!r->version)
        return FALSE;
    if (warning)
        note(r, "%s", warning);
    name = tt_nccl_version_name(r->version);
    if (r->version_assumed)
        note(r, "the version of NCCL is not stated: %staken as %s%s",
             m->date ? "" : "no date in the file: ", name, m->date ? ", by date" : "");
    return TRUE;
}

/* 2.4 brought trees and LL128, and with them all that is modelled. Before 2.5 there was no model to choose by: rings, but on many nodes. NCCL_COLLNET_ENABLE asks for SHARP,
 * which only InfiniBand has. */
static void
mind_history(TtReplay *r)
{
    const TtMeasured *m = r->measured;
    gboolean ancient = m->version_number ? m->version_number < TT_NCCL_VERSION(2, 4, 0)
                                         : m->date && strcmp(m->date, "2019-01") < 0;
    gboolean old = m->version_number ? m->version_number < TT_NCCL_VERSION(2, 5, 0)
                                     : m->date && strcmp(m->date, "2019-10") < 0;

    if (ancient)
        note(r,
             "NCCL before 2.4 is not modelled (other protocols and searches): expect large errors");
    if (old && !r->env.algo) {
        r->env.algo = g_strdup("Ring");
        note(r, "before NCCL 2.5: taken as rings");
    }
    if (r->env.collnet_enable == 1 && r->hardware.net != TT_NET_IB)
        r->env.collnet_enable = 0;
}

/* Where it ran, not here. */
static gboolean
is_path(const char *name)
{
    return !strcmp(name, "NCCL_GRAPH_FILE") || !strcmp(name, "NCCL_GRAPH_DUMP_FILE");
}

/* The file's variables; those NCCL would not take are told and left out. */
static void
set_environment(TtReplay *r, const char *const *more)
{
    const TtMeasured *m = r->measured;

    for (guint i = 0; i < m->env->len; i++) {
        const TtMeasuredVar *var = &g_array_index(m->env, TtMeasuredVar, i);
        g_autoptr(GError) why = NULL;
        gboolean used;

        if (is_path(var->name))
            note(r, "left out: %s names a file of the machine that was measured", var->name);
        else if (g_str_has_prefix(var->name, "NCCL_") &&
                 !tt_nccl_env_set(&r->env, var->name, var->value, &used, &why))
            note(r, "left out: %s", why->message);
    }
    if (m->algo && !tt_measured_env(m, "NCCL_ALGO"))
        tt_nccl_env_set(&r->env, "NCCL_ALGO", m->algo, NULL, NULL);
    if (m->proto && !tt_measured_env(m, "NCCL_PROTO"))
        tt_nccl_env_set(&r->env, "NCCL_PROTO", m->proto, NULL, NULL);
    for (; more && *more; more++) {
        g_auto(GStrv) parts = g_strsplit(*more, "=", 2);

        if (parts[0] && parts[1]) /* checked by whoever took them */
            tt_nccl_env_set(&r->env, parts[0], parts[1], NULL, NULL);
    }
    if (r->env.graph_dump_file)
        note(r, "NCCL_GRAPH_DUMP_FILE is not written for measurements: tutti predict writes it");
}

/* What the AWS plug-in sets on its platforms unless it is set: aws-ofi-nccl, table of EC2 platforms. */
static void
set_platform(TtReplay *r)
{
    static const struct {
        const char *name, *value;
        guint min_sm, from_version, before_version; /* 0: none */
    } rows[] = {
        { "NCCL_NVLS_ENABLE", "0", 90, 0, TT_NCCL_VERSION(2, 18, 5) },
        { "NCCL_NVLS_CHUNKSIZE", "524288", 90, TT_NCCL_VERSION(2, 20, 3), 0 },
        { "NCCL_NVLSTREE_MAX_CHUNKSIZE", "524288", 90, TT_NCCL_VERSION(2, 20, 3), 0 },
        { "NCCL_BUFFSIZE", "8388608", 80, TT_NCCL_VERSION(2, 26, 2), 0 },
    };

    if (r->hardware.net != TT_NET_EFA)
        return;
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
        if (r->hardware.gpu->sm >= rows[i].min_sm && r->version >= rows[i].from_version &&
            (!rows[i].before_version || r->version < rows[i].before_version) &&
            !tt_measured_env(r->measured, rows[i].name))
            tt_nccl_env_set(&r->env, rows[i].name, rows[i].value, NULL, NULL);
}

static gboolean
find_collective(TtReplay *r, const TtReplayOptions *options, GError **error)
{
    const TtMeasured *m = r->measured;
    TtMeasured other = { .collective = (char *)options->collective };
    int func = m->collective ? tt_measured_func(m) : tt_measured_func(&other);

    if (func < 0) {
        g_set_error(error, TT_REPLAY_ERROR, TT_REPLAY_ERROR_USAGE, "%s: %s%s", m->origin,
                    m->collective ? "NCCL has no algorithms to choose from for "
                                  : "the collective is "
                                    "not stated",
                    m->collective ? m->collective : "");
        return FALSE;
    }
    if (!m->collective)
        note(r, "the collective is not stated: taken as %s", options->collective);
    r->func = (TtNcclFunc)func;
    r->type_bytes = m->type_bytes ? m->type_bytes : 4;
    return TRUE;
}

static guint
n_gpus(const TtNcclXml *node)
{
    return node->gpu->len;
}

static gboolean
check_counts(const TtMeasured *m, const TtReplayOptions *options, GError **error)
{
    guint64 has = (guint64)n_gpus(options->node) * options->n_nodes;

    if (!m->ngpus || m->ngpus == has)
        return TRUE;
    g_set_error(error, TT_REPLAY_ERROR, TT_REPLAY_ERROR_USAGE,
                "%s: %u GPUs took part, and %s has %" G_GUINT64_FORMAT " (%u x %u)", m->origin,
                m->ngpus, options->topology ? options->topology : "the topology", has,
                options->n_nodes, n_gpus(options->node));
    return FALSE;
}

/* With a topology the file's own hardware is good to know, not needed. */
static gboolean
find_hardware(TtReplay *r, const TtReplayOptions *options, GError **error)
{
    if (!options->node)
        return tt_hardware_of(r->measured, &r->hardware, error);
    if (!tt_hardware_of(r->measured, &r->hardware, NULL))
        r->hardware =
            (TtHardware){ .n_nodes = options->n_nodes, .gpus_per_node = n_gpus(options->node) };
    return check_counts(r->measured, options, error);
}

static gboolean
search(TtReplay *r, const TtReplayOptions *options, GError **error)
{
    g_autoptr(TtNcclXml) found = NULL;
    const TtNcclXml *node = options->node;
    guint n_nodes = options->n_nodes;

    if (!node && !(node = found = tt_hardware_xml(&r->hardware, &n_nodes, error)))
        return FALSE;
    mind_history(r);
    if (!tt_nccl_comm_init(&r->comm, node, n_nodes, r->version, &r->env, NULL, error) ||
        !tt_nccl_table(&r->comm, r->func, &r->env, &r->table, error))
        return FALSE;
    tt_nccl_machine_of_node(&r->machine, node, &r->comm);
    tt_nccl_machine_refine(&r->machine, &r->hardware, r->measured);
    if (options->launch)
        r->machine.launch = (TtNcclLaunch)(options->launch - 1);
    return TRUE;
}

TtReplay *
tt_replay_new(const TtMeasured *m, const TtReplayOptions *options, GError **error)
{
    static const TtReplayOptions nothing = { 0 };
    g_autoptr(TtReplay) r = g_new0(TtReplay, 1);

    r->measured = m;
    r->notes = g_ptr_array_new_with_free_func(g_free);
    tt_nccl_env_init(&r->env);
    options = options ? options : &nothing;
    r->costs = options->costs ? options->costs : tt_nccl_costs_built_in();
    if (m->library == TT_LIBRARY_MPI || m->library == TT_LIBRARY_OTHER) {
        g_set_error(error, TT_REPLAY_ERROR, TT_REPLAY_ERROR_USAGE, "%s: measured with %s, not NCCL",
                    m->origin, m->tool ? m->tool : "another library");
        return NULL;
    }
    if (m->library == TT_LIBRARY_RCCL)
        note(r, "measured with RCCL: its choices are taken to be NCCL's");
    if (!find_hardware(r, options, error) || !find_version(r, options, error) ||
        !find_collective(r, options, error))
        return NULL;
    set_platform(r);
    set_environment(r, options->env);
    if (!search(r, options, error))
        return NULL;
    return g_steal_pointer(&r);
}

void
tt_replay_free(TtReplay *r)
{
    if (!r)
        return;
    tt_nccl_env_clear(&r->env);
    g_ptr_array_unref(r->notes);
    g_free(r);
}

TtNcclOp
tt_replay_op(const TtReplay *r, const TtMeasuredRow *row)
{
    const char *type = r->measured->type, *redop = r->measured->redop;

    return (TtNcclOp){
        .func = r->func,
        .bytes = row->bytes,
        .type_bytes = r->type_bytes,
        .is_float = !type || strstr(type, "float"),
        .is_fp8 = type && g_str_has_prefix(type, "float8"),
        .op_is_sum = !redop || !redop[0] || !strcmp(redop, "sum") || !strcmp(redop, "none"),
        .op_is_min_max = !g_strcmp0(redop, "min") || !g_strcmp0(redop, "max"),
        .op_is_avg = !g_strcmp0(redop, "avg"),
    };
}

gboolean
tt_replay_choose(const TtReplay *r, const TtMeasuredRow *row, TtNcclChoice *choice, GError **error)
{
    TtNcclOp op = tt_replay_op(r, row);

    return tt_nccl_choose(&r->comm, &r->table, &r->env, &op, choice, error);
}

double
tt_replay_time_us(const TtReplay *replay, const TtMeasuredRow *row, const TtNcclChoice *choice)
{
    TtNcclOp op = tt_replay_op(replay, row);

    return tt_nccl_model_us(replay->costs->value, &tt_no_effects, &replay->machine, &op, choice);
}

const char *
tt_replay_time_source(void)
{
    return "times by the closed form of NCCL's schedules, constants fitted on published "
           "measurements (docs/accuracy.md)";
}

double
tt_time_by_nccl(const TtReplay *replay, const TtMeasuredRow *row, const TtNcclChoice *choice,
                gpointer data)
{
    (void)replay;
    (void)row;
    (void)data;
    return choice->time_us;
}
