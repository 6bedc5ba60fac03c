/* The JSON that nccl-tests writes with -J (2.17.3 and later). */
#include "models/measured_nccl_json.h"
#include "models/measured_values.h"

#include <json-glib/json-glib.h>
#include <math.h>
#include <string.h>

gboolean
tt_measured_is_nccl_json(JsonObject *root)
{
    JsonArray *results = tt_json_array(root, "results");
    JsonObject *first =
        results && json_array_get_length(results) ? tt_json_element(results, 0) : NULL;

    if (results && !json_array_get_length(results)) /* a run that failed early */
        return tt_json_object(root, "config") || tt_json_object(root, "average_bus_bandwidth");
    return first && (tt_json_object(first, "out_of_place") || tt_json_object(first, "in_place"));
}

/* The program's name is the first argument, given as text or as a list. */
static void
read_arguments(TtMeasured *m, JsonObject *root)
{
    JsonArray *list = tt_json_array(root, "args");
    const char *all = tt_json_text(root, "args");

    if (list && json_array_get_length(list)) {
        JsonNode *node = json_array_get_element(list, 0);

        if (node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING)
            all = json_node_get_string(node);
    }
    if (all && strlen(all) < 4096) {
        g_auto(GStrv) words = g_strsplit(all, " ", 0);
        g_autofree char *base = words[0] ? g_path_get_basename(words[0]) : NULL;

        if (base)
            m->collective = g_strdup(tt_measured_collective_name(base));
    }
}

static void
read_env(TtMeasured *m, JsonObject *root)
{
    JsonArray *list = tt_json_array(root, "env");
    JsonObject *object = tt_json_object(root, "env");
    g_autoptr(GList) names = object ? json_object_get_members(object) : NULL;

    for (guint i = 0; list && i < MIN(json_array_get_length(list), 4096); i++) {
        JsonNode *node = json_array_get_element(list, i);
        const char *text =
            node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING
                ? json_node_get_string(node)
                : NULL;
        const char *equals = text ? strchr(text, '=') : NULL;
        g_autofree char *name = equals ? g_strndup(text, (gsize)(equals - text)) : NULL;

        if (name && g_str_has_prefix(name, "NCCL_"))
            tt_measured_set_env(m, name, equals + 1);
    }
    for (GList *l = names; l; l = l->next)
        if (g_str_has_prefix(l->data, "NCCL_") && tt_json_text(object, l->data))
            tt_measured_set_env(m, l->data, tt_json_text(object, l->data));
}

/* One entry a rank; from processes that drive several GPUs only the first of each (nccl-tests 2.17 and on
 * scans one line of each process's report). */
static void
read_devices(TtMeasured *m, JsonArray *devices, guint per_process)
{
    g_autoptr(GHashTable) per_host = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GHashTable) processes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    guint n = MIN(json_array_get_length(devices), 1u << 20);

    for (guint i = 0; i < n; i++) {
        JsonObject *device = tt_json_element(devices, i);
        const char *host = tt_json_text(device, "hostname"),
                   *info = tt_json_text(device, "device_info");
        guint here;

        if (info && !m->gpu)
            m->gpu = g_strdup(info);
        if (!host)
            continue;
        here = GPOINTER_TO_UINT(g_hash_table_lookup(per_host, host)) + 1;
        g_hash_table_insert(per_host, g_strdup(host), GUINT_TO_POINTER(here));
        g_hash_table_add(processes, g_strdup_printf("%s %g", host, tt_json_number(device, "pid")));
        m->gpus_per_node = MAX(m->gpus_per_node, here);
        if (here == 1 && m->hosts->len < 65536)
            g_ptr_array_add(m->hosts, g_strdup(host));
    }
    if (per_process > 1 && g_hash_table_size(processes) == n && per_process <= 1024) {
        n = (guint)MIN((guint64)n * per_process, TT_MEASURED_MOST_RANKS);
        m->gpus_per_node = (guint)MIN((guint64)m->gpus_per_node * per_process, n);
    }
    m->ngpus = n;
    m->nnodes = g_hash_table_size(per_host);
    if (g_hash_table_size(processes) && n)
        m->one_process = g_hash_table_size(processes) < n;
}

static void
read_place(TtMeasured *m, JsonObject *result, guint i, const char *name, GArray *rows)
{
    JsonObject *place = tt_json_object(result, name);
    g_autofree char *per_iteration = g_strconcat(name, "_per_iter", NULL);
    JsonObject *spread = tt_json_object(result, per_iteration);
    TtMeasuredRow row;
    double wrong = tt_json_number(place, "nwrong");

    if (!place)
        return;
    tt_measured_row_init(&row);
    row.bytes = tt_json_count(result, "size", G_MAXUINT64);
    row.count = tt_json_count(result, "count", G_MAXUINT64);
    row.time_us = tt_json_number(place, "time");
    if (isnan(row.time_us))
        row.time_us = tt_json_number(place, "cpu_time");
    row.algbw_gbps = tt_json_number(place, "alg_bw");
    row.busbw_gbps = tt_json_number(place, "bus_bw");
    row.min_us = tt_json_number(spread, "min_us");
    row.max_us = tt_json_number(spread, "max_us");
    row.median_us = tt_json_number(spread, "p50_us");
    row.wrong = isnan(wrong) || fabs(wrong) > 9e15 ? -1 : (gint64)wrong;
    if (!(row.time_us > 0))
        row.time_us = NAN;
    if (!row.bytes || (isnan(row.time_us) && isnan(row.busbw_gbps)))
        tt_measured_skip(m, "results[%u].%s: %s", i, name, row.bytes ? "no time" : "no size");
    else if (row.wrong > 0)
        tt_measured_skip(m, "results[%u].%s: %" G_GINT64_FORMAT " wrong elements", i, name,
                         row.wrong);
    else
        g_array_append_val(rows, row);
}

/* Types and reductions may vary within a file: one table for each pair. */
static TtMeasured *
table_for(GPtrArray *tables, const TtMeasured *head, JsonObject *result)
{
    const char *type = tt_json_text(result, "type"), *redop = tt_json_text(result, "redop");
    TtMeasured *m;

    for (guint i = 0; i < tables->len; i++) {
        g_autoptr(TtMeasured) probe = tt_measured_new("");

        m = g_ptr_array_index(tables, i);
        if (type)
            tt_measured_set_type(probe, type);
        if (!g_strcmp0(m->type, probe->type) && !g_strcmp0(m->redop, redop))
            return m;
    }
    if (tables->len >= 256)
        return NULL;
    m = tt_measured_new(head->origin);
    if (type)
        tt_measured_set_type(m, type);
    m->redop = g_strdup(redop);
    m->root =
        tt_json_text(result, "root") ? (int)CLAMP(tt_json_number(result, "root"), -1, 1e9) : -1;
    g_ptr_array_add(tables, m);
    return m;
}

static void
copy_head(TtMeasured *m, const TtMeasured *head)
{
    m->collective = g_strdup(head->collective);
    m->ngpus = head->ngpus;
    m->nnodes = head->nnodes;
    m->gpus_per_node = head->gpus_per_node;
    m->gpu = g_strdup(head->gpu);
    m->library = TT_LIBRARY_NCCL;
    m->version = g_strdup(head->version);
    m->version_number = head->version_number;
    m->tool = g_strdup("nccl-tests");
    m->one_process = head->one_process;
    m->n_iterations = head->n_iterations;
    m->graph = head->graph;
    m->date = g_strdup(head->date);
    for (guint i = 0; i < head->env->len; i++)
        tt_measured_set_env(m, g_array_index(head->env, TtMeasuredVar, i).name,
                            g_array_index(head->env, TtMeasuredVar, i).value);
    for (guint i = 0; i < head->hosts->len; i++)
        g_ptr_array_add(m->hosts, g_strdup(g_ptr_array_index(head->hosts, i)));
}

static void
read_head(TtMeasured *head, JsonObject *root)
{
    JsonObject *config = tt_json_object(root, "config");
    JsonArray *devices = tt_json_array(config, "devices");

    if (!devices)
        devices = tt_json_array(root, "devices");
    read_arguments(head, root);
    read_env(head, root);
    if (devices)
        read_devices(head, devices,
                     (guint)tt_json_count(config, "nthreads", 1024) *
                         (guint)tt_json_count(config, "ngpus", 1024));
    if (tt_json_text(root, "nccl_version"))
        tt_measured_set_version(head, tt_json_text(root, "nccl_version"));
    else
        tt_measured_set_code(head, (guint)tt_json_count(root, "nccl_version", 99999));
    head->date = g_strdup(tt_json_text(root, "start_time"));
    head->n_iterations = (guint)tt_json_count(config, "iterations", 1u << 30);
    head->graph = tt_json_number(config, "graph") > 0;
}

GPtrArray *
tt_measured_from_nccl_json(const char *origin, JsonObject *root, GError **error)
{
    g_autoptr(TtMeasured) head = tt_measured_new(origin);
    g_autoptr(GPtrArray) tables = g_ptr_array_new_with_free_func((GDestroyNotify)tt_measured_free);
    JsonArray *results = tt_json_array(root, "results");

    read_head(head, root);
    for (guint i = 0; i < MIN(json_array_get_length(results), TT_MEASURED_MOST_ROWS); i++) {
        JsonObject *result = tt_json_element(results, i);
        TtMeasured *m = result ? table_for(tables, head, result) : NULL;

        if (!m)
            continue;
        read_place(m, result, i, "out_of_place", m->rows);
        read_place(m, result, i, "in_place", m->rows_in_place);
    }
    for (guint i = tables->len; i-- > 0;) {
        TtMeasured *m = g_ptr_array_index(tables, i);

        copy_head(m, head);
        tt_measured_finish(m);
        if (m->rows->len + m->rows_in_place->len == 0)
            g_ptr_array_remove_index(tables, i);
    }
    if (tables->len)
        return g_steal_pointer(&tables);
    g_set_error(error, TT_MEASURED_ERROR, TT_MEASURED_ERROR_FILE,
                "%s: a -J file of nccl-tests without a single result that can be used", origin);
    return NULL;
}
