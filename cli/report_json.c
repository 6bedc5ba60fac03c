/* The design's JSON object; needs json-glib. */
#include "cli/report_fields.h"

#include <json-glib/json-glib.h>

gboolean
tt_report_can_json(GError **error)
{
    (void)error;
    return TRUE;
}

static void
add_text(JsonBuilder *b, const char *text)
{
    g_autofree char *valid = NULL;

    if (!text) {
        json_builder_add_null_value(b);
        return;
    }
    valid = g_utf8_make_valid(text, -1); /* file names are bytes */
    json_builder_add_string_value(b, valid);
}

static void
add_real(JsonBuilder *b, double value)
{
    if (isfinite(value))
        json_builder_add_double_value(b, value);
    else
        json_builder_add_null_value(b);
}

static void
add_json(JsonBuilder *b, const char *text)
{
    if (text)
        json_builder_add_value(b, json_from_string(text, NULL));
    else
        json_builder_add_null_value(b);
}

static void
add_cell(JsonBuilder *b, const TtRow *row, const TtField *f)
{
    gconstpointer cell = tt_field_of(row, f);

    json_builder_set_member_name(b, f->name);
    switch (f->kind) {
    case TT_CELL_TEXT: add_text(b, *(const char *const *)cell); break;
    case TT_CELL_COUNT: json_builder_add_int_value(b, (gint64) * (const guint64 *)cell); break;
    case TT_CELL_SIGNED:
        if (*(const gint64 *)cell == -1)
            json_builder_add_null_value(b);
        else
            json_builder_add_int_value(b, *(const gint64 *)cell);
        break;
    case TT_CELL_REAL: add_real(b, *(const double *)cell); break;
    case TT_CELL_FLAG: json_builder_add_boolean_value(b, *(const gboolean *)cell); break;
    case TT_CELL_JSON: add_json(b, *(const char *const *)cell); break;
    }
}

static void
add_row(JsonBuilder *b, guint fields, const TtRow *row)
{
    json_builder_begin_object(b);
    for (const TtField *f = tt_fields; f->name; f++)
        if (f->fields == 0 || (f->fields & fields))
            add_cell(b, row, f);
    json_builder_end_object(b);
}

static void
add_member(JsonBuilder *b, const char *name, const char *text)
{
    json_builder_set_member_name(b, name);
    add_text(b, text);
}

static void
add_topology(JsonBuilder *b, const TtReport *report)
{
    json_builder_set_member_name(b, "topology");
    json_builder_begin_object(b);
    add_member(b, "name", report->topology);
    json_builder_set_member_name(b, "ranks");
    json_builder_add_int_value(b, report->ranks);
    json_builder_set_member_name(b, "nodes");
    json_builder_add_int_value(b, report->nodes);
    json_builder_end_object(b);
}

static void
add_config(JsonBuilder *b, const TtReport *report)
{
    json_builder_set_member_name(b, "config");
    json_builder_begin_object(b);
    for (guint i = 0; i + 1 < report->config->len; i += 2) {
        const char *key = report->config->pdata[i], *value = report->config->pdata[i + 1];

        json_builder_set_member_name(b, key[0] == '#' ? key + 1 : key);
        if (key[0] != '#') {
            add_text(b, value);
        } else {
            double number = g_ascii_strtod(value, NULL);

            if (number == floor(number) && fabs(number) < 9e15)
                json_builder_add_int_value(b, (gint64)number);
            else
                add_real(b, number);
        }
    }
    json_builder_end_object(b);
}

char *
tt_report_to_json(const TtReport *report)
{
    g_autoptr(JsonBuilder) b = json_builder_new();
    g_autoptr(JsonGenerator) generator = json_generator_new();
    g_autoptr(JsonNode) root = NULL;
    g_autofree char *text = NULL;

    json_builder_begin_object(b);
    add_member(b, "schema", "tutti/1");
    add_member(b, "version", TT_VERSION);
    add_member(b, "command", report->options->line);
    json_builder_set_member_name(b, "seed");
    json_builder_add_int_value(b, 0); /* nothing is random yet */
    add_topology(b, report);
    add_config(b, report);
    json_builder_set_member_name(b, "warnings");
    json_builder_begin_array(b);
    for (guint i = 0; i < report->warnings->len; i++)
        add_text(b, report->warnings->pdata[i]);
    json_builder_end_array(b);
    if (report->extra_json) {
        json_builder_set_member_name(b, report->extra_name);
        json_builder_add_value(b, json_from_string(report->extra_json, NULL));
    }
    json_builder_set_member_name(b, "results");
    json_builder_begin_array(b);
    for (guint i = 0; i < report->rows->len; i++)
        add_row(b, report->fields, tt_report_row(report, i));
    json_builder_end_array(b);
    json_builder_end_object(b);

    root = json_builder_get_root(b);
    json_generator_set_root(generator, root);
    json_generator_set_pretty(generator, TRUE);
    text = json_generator_to_data(generator, NULL);
    return g_strconcat(text, "\n", NULL);
}
