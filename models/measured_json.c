/* JSON measurements: told apart, and this project's own schema read (docs/measurements.md). */
#include "models/measured_nccl_json.h"
#include "models/measured_private.h"
#include "models/measured_values.h"

#include <json-glib/json-glib.h>
#include <math.h>
#include <string.h>

#define DEEPEST 64 /* json-glib recurses; the formats need six levels */

static JsonNode *
member(JsonObject *object, const char *name)
{
    JsonNode *node = object ? json_object_get_member(object, name) : NULL;

    return node && !JSON_NODE_HOLDS_NULL(node) ? node : NULL;
}

const char *
tt_json_text(JsonObject *object, const char *name)
{
    JsonNode *node = member(object, name);

    return node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING
               ? json_node_get_string(node)
               : NULL;
}

double
tt_json_number(JsonObject *object, const char *name)
{
    JsonNode *node = member(object, name);
    const char *text = tt_json_text(object, name);
    char *end;
    double value;

    if (text) {
        value = g_ascii_strtod(text, &end);
        return end != text && !*end && isfinite(value) ? value : NAN;
    }
    if (!node || !JSON_NODE_HOLDS_VALUE(node) ||
        (json_node_get_value_type(node) != G_TYPE_INT64 &&
         json_node_get_value_type(node) != G_TYPE_DOUBLE))
        return NAN;
    value = json_node_get_double(node);
    return isfinite(value) ? value : NAN;
}

guint64
tt_json_count(JsonObject *object, const char *name, guint64 most)
{
    double value = tt_json_number(object, name);

    if (!(value >= 0) || value > (double)most || value > 9e15 || value != floor(value))
        return 0;
    return (guint64)value;
}

gboolean
tt_json_true(JsonObject *object, const char *name)
{
    JsonNode *node = member(object, name);

    return node && JSON_NODE_HOLDS_VALUE(node) &&
           json_node_get_value_type(node) == G_TYPE_BOOLEAN && json_node_get_boolean(node);
}

JsonObject *
tt_json_object(JsonObject *object, const char *name)
{
    JsonNode *node = member(object, name);

    return node && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
}

JsonArray *
tt_json_array(JsonObject *object, const char *name)
{
    JsonNode *node = member(object, name);

    return node && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
}

JsonObject *
tt_json_element(JsonArray *array, guint i)
{
    JsonNode *node = json_array_get_element(array, i);

    return node && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
}

static int
ascending(gconstpointer a, gconstpointer b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* repeats_time_us holds the other runs of the same size; time_us stays what the file says. */
static void
read_repeats(JsonObject *object, TtMeasuredRow *row)
{
    JsonArray *others = tt_json_array(object, "repeats_time_us");
    g_autoptr(GArray) times = g_array_new(FALSE, FALSE, sizeof(double));

    if (!others || !(row->time_us > 0))
        return;
    g_array_append_val(times, row->time_us);
    for (guint i = 0; i < MIN(json_array_get_length(others), 10000); i++) {
        JsonNode *node = json_array_get_element(others, i);
        double t = node && JSON_NODE_HOLDS_VALUE(node) ? json_node_get_double(node) : 0;

        if (t > 0 && isfinite(t))
            g_array_append_val(times, t);
    }
    g_array_sort(times, ascending);
    row->n_repeats = times->len;
    row->min_us = g_array_index(times, double, 0);
    row->max_us = g_array_index(times, double, times->len - 1);
    row->median_us = (g_array_index(times, double, times->len / 2) +
                      g_array_index(times, double, (times->len - 1) / 2)) /
                     2;
}

static void
read_rows(TtMeasured *m, JsonObject *root, const char *name, GArray *rows)
{
    JsonArray *array = tt_json_array(root, name);
    guint n = array ? json_array_get_length(array) : 0;

    for (guint i = 0; i < MIN(n, TT_MEASURED_MOST_ROWS); i++) {
        JsonObject *object = tt_json_element(array, i);
        TtMeasuredRow row;

        tt_measured_row_init(&row);
        row.bytes = tt_json_count(object, "bytes", G_MAXUINT64);
        if (!object || !row.bytes) {
            tt_measured_skip(m, "%s[%u]: no size in bytes", name, i);
            continue;
        }
        if (!g_strcmp0(tt_json_text(object, "flag"), "wrong_results")) {
            tt_measured_skip(m, "%s[%u]: the tool counted wrong results", name, i);
            continue;
        }
        row.count = tt_json_count(object, "count", G_MAXUINT64);
        row.time_us = tt_json_number(object, "time_us");
        row.algbw_gbps = tt_json_number(object, "algbw_gbps");
        row.busbw_gbps = tt_json_number(object, "busbw_gbps");
        row.min_us = tt_json_number(object, "min_rank_us");
        row.max_us = tt_json_number(object, "max_rank_us");
        if (!(row.time_us > 0))
            row.time_us = NAN;
        read_repeats(object, &row);
        g_array_append_val(rows, row);
    }
}

static void
read_env(TtMeasured *m, JsonObject *env)
{
    g_autoptr(GList) names = env ? json_object_get_members(env) : NULL;

    for (GList *l = names; l; l = l->next)
        if (tt_json_text(env, l->data))
            tt_measured_set_env(m, l->data, tt_json_text(env, l->data));
}

static void
read_hardware(TtMeasured *m, JsonObject *root)
{
    JsonObject *intra = tt_json_object(root, "intra"), *inter = tt_json_object(root, "inter");

    m->ngpus = (guint)tt_json_count(root, "ngpus", TT_MEASURED_MOST_RANKS);
    m->nnodes = (guint)tt_json_count(root, "nnodes", TT_MEASURED_MOST_RANKS);
    m->gpus_per_node = (guint)tt_json_count(root, "gpus_per_node", TT_MEASURED_MOST_RANKS);
    m->gpu = g_strdup(tt_json_text(root, "gpu"));
    m->cpu = g_strdup(tt_json_text(root, "cpu"));
    m->intra = g_strdup(tt_json_text(intra, "kind"));
    m->intra_detail = g_strdup(tt_json_text(intra, "detail"));
    m->intra_gbps = tt_json_number(intra, "gbytes_per_s_per_dir_per_gpu");
    m->inter = g_strdup(tt_json_text(inter, "kind"));
    m->inter_name = g_strdup(tt_json_text(inter, "name"));
    m->nics_per_node = (guint)tt_json_count(inter, "nics_per_node", 1024);
    m->nic_gbits = tt_json_number(inter, "gbps_per_nic");
    if (!(m->nic_gbits > 0 && m->nic_gbits < 1e5))
        m->nic_gbits = 0;
}

static TtLibraryKind
library_of(const char *tool, const char *version)
{
    if (!tool)
        return TT_LIBRARY_UNKNOWN;
    if (strstr(tool, "rccl") || (version && strstr(version, "RCCL")))
        return TT_LIBRARY_RCCL;
    if (strstr(tool, "nccl") || strstr(tool, "torch"))
        return TT_LIBRARY_NCCL;
    if (strstr(tool, "osu") || strstr(tool, "mpi"))
        return TT_LIBRARY_MPI;
    return TT_LIBRARY_OTHER;
}

static void
read_library(TtMeasured *m, JsonObject *root)
{
    const char *version = tt_json_text(root, "nccl_version");

    m->tool = g_strdup(tt_json_text(root, "tool"));
    m->library = library_of(m->tool, version);
    if (version && !strstr(version, "ROCm")) /* RCCL's own number is not known then */
        tt_measured_set_version(m, version);
    m->net_plugin = g_strdup(tt_json_text(root, "net_plugin"));
    m->algo = g_strdup(tt_json_text(root, "algo"));
    m->proto = g_strdup(tt_json_text(root, "proto"));
    read_env(m, tt_json_object(root, "env"));
}

static void
read_words(TtMeasured *m, JsonObject *root)
{
    const char *quality = tt_json_text(root, "quality");

    m->id = g_strdup(tt_json_text(root, "id"));
    m->redop = g_strdup(tt_json_text(root, "op"));
    if (tt_json_text(root, "datatype"))
        tt_measured_set_type(m, tt_json_text(root, "datatype"));
    m->date = g_strdup(tt_json_text(root, "date"));
    m->quality = quality && strlen(quality) == 1 ? quality[0] : 0;
    m->anomalous = tt_json_true(root, "anomalous");
    m->headline = tt_json_true(root, "headline");
    m->anomaly = g_strdup(tt_json_text(root, "anomaly"));
    m->notes = g_strdup(tt_json_text(root, "notes"));
}

static GPtrArray *
from_schema(const char *origin, JsonObject *root, GError **error)
{
    g_autoptr(TtMeasured) m = tt_measured_new(origin);
    GPtrArray *tables;
    const char *collective = tt_json_text(root, "collective");

    if (!tt_json_array(root, "rows") && !tt_json_array(root, "rows_in_place")) {
        g_set_error(error, TT_MEASURED_ERROR, TT_MEASURED_ERROR_FILE,
                    "%s: a measurement without \"rows\" or \"rows_in_place\"", origin);
        return NULL;
    }
    m->collective = g_strdup(collective ? tt_measured_collective_name(collective) : NULL);
    read_words(m, root);
    read_hardware(m, root);
    read_library(m, root);
    read_rows(m, root, "rows", m->rows);
    read_rows(m, root, "rows_in_place", m->rows_in_place);
    tt_measured_finish(m);
    tables = g_ptr_array_new_with_free_func((GDestroyNotify)tt_measured_free);
    g_ptr_array_add(tables, g_steal_pointer(&m));
    return tables;
}

gboolean
tt_measured_is_json(const char *text, gsize length)
{
    gsize i = length >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;

    while (i < length && g_ascii_isspace(text[i]))
        i++;
    return i < length && text[i] == '{';
}

/* Depth of brackets outside strings; a parser that recurses must not be led deep. */
static gboolean
too_deep(const char *text, gsize length)
{
    guint depth = 0;
    gboolean quoted = FALSE;

    for (gsize i = 0; i < length; i++) {
        if (quoted && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        else if (!quoted && (text[i] == '{' || text[i] == '['))
            depth++;
        else if (!quoted && (text[i] == '}' || text[i] == ']'))
            depth -= depth > 0;
        if (depth > DEEPEST)
            return TRUE;
    }
    return FALSE;
}

static gboolean
load(JsonParser *parser, const char *origin, const char *text, gsize length, GError **error)
{
    g_autoptr(GError) why = NULL;
    const char *problem = NULL;

    if (length >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
        text += 3;
        length -= 3;
    }
    if (!g_utf8_validate(text, (gssize)length, NULL))
        problem = "not UTF-8 text";
    else if (too_deep(text, length))
        problem = "brackets more than 64 deep";
    else if (!json_parser_load_from_data(parser, text, (gssize)length, &why))
        problem = why->message;
    if (!problem)
        return TRUE;
    g_set_error(error, TT_MEASURED_ERROR, TT_MEASURED_ERROR_FILE, "%s: not JSON: %s", origin,
                problem);
    g_strdelimit((*error)->message, "\n\r", ' ');
    return FALSE;
}

GPtrArray *
tt_measured_from_json(const char *origin, const char *text, gsize length, GError **error)
{
    g_autoptr(JsonParser) parser = json_parser_new_immutable();
    JsonNode *node;
    JsonObject *root;
    const char *schema;

    if (!load(parser, origin, text, length, error))
        return NULL;
    node = json_parser_get_root(parser);
    root = node && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
    schema = tt_json_text(root, "schema");
    if (root && schema && g_str_has_prefix(schema, "collective-measurement/"))
        return from_schema(origin, root, error);
    if (root && tt_measured_is_nccl_json(root))
        return tt_measured_from_nccl_json(origin, root, error);
    g_set_error(
        error, TT_MEASURED_ERROR, TT_MEASURED_ERROR_FILE,
        "%s: JSON, but neither a measurement (\"schema\": \"collective-measurement/1\") nor a "
        "-J file of nccl-tests (\"config\" and \"results\")",
        origin);
    return NULL;
}
