#include "cli/report_fields.h"
#include "cli/output.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FIELD(member, kind, fields)                                                                \
    {                                                                                              \
#member, kind, fields, G_STRUCT_OFFSET(TtRow, member)                                      \
    }

const TtField tt_fields[] = {
    FIELD(collective, TT_CELL_TEXT, 0),
    FIELD(algorithm, TT_CELL_TEXT, 0),
    FIELD(protocol, TT_CELL_TEXT, TT_FIELDS_PLAN),
    FIELD(channels, TT_CELL_COUNT, TT_FIELDS_PLAN),
    FIELD(rounds, TT_CELL_COUNT, TT_FIELDS_PLAN),
    FIELD(ranks, TT_CELL_COUNT, TT_FIELDS_CALL),
    FIELD(bytes, TT_CELL_COUNT, TT_FIELDS_CALL),
    FIELD(count, TT_CELL_COUNT, TT_FIELDS_CALL),
    FIELD(type, TT_CELL_TEXT, TT_FIELDS_CALL),
    FIELD(redop, TT_CELL_TEXT, TT_FIELDS_CALL),
    FIELD(root, TT_CELL_SIGNED, TT_FIELDS_CALL),
    FIELD(in_place, TT_CELL_FLAG, TT_FIELDS_WRONG | TT_FIELDS_MEASURED),
    FIELD(in_flight, TT_CELL_COUNT, TT_FIELDS_FLIGHT),
    FIELD(groups, TT_CELL_COUNT, TT_FIELDS_FLIGHT),
    FIELD(time_us, TT_CELL_REAL, TT_FIELDS_TIME),
    FIELD(predicted_us, TT_CELL_REAL, TT_FIELDS_COMPARE | TT_FIELDS_MEASURED),
    FIELD(measured_us, TT_CELL_REAL, TT_FIELDS_COMPARE | TT_FIELDS_MEASURED),
    FIELD(error, TT_CELL_REAL, TT_FIELDS_COMPARE | TT_FIELDS_MEASURED),
    FIELD(predicted_busbw_gbps, TT_CELL_REAL, TT_FIELDS_MEASURED),
    FIELD(measured_busbw_gbps, TT_CELL_REAL, TT_FIELDS_MEASURED),
    FIELD(file, TT_CELL_TEXT, TT_FIELDS_MEASURED),
    FIELD(table, TT_CELL_COUNT, TT_FIELDS_MEASURED),
    FIELD(flag_ns, TT_CELL_REAL, TT_FIELDS_COMPARE),
    FIELD(algbw_gbps, TT_CELL_REAL, TT_FIELDS_TIME),
    FIELD(busbw_gbps, TT_CELL_REAL, TT_FIELDS_TIME),
    FIELD(min_us, TT_CELL_REAL, TT_FIELDS_ITERATIONS),
    FIELD(p50_us, TT_CELL_REAL, TT_FIELDS_ITERATIONS),
    FIELD(p95_us, TT_CELL_REAL, TT_FIELDS_ITERATIONS),
    FIELD(p99_us, TT_CELL_REAL, TT_FIELDS_ITERATIONS),
    FIELD(max_us, TT_CELL_REAL, TT_FIELDS_ITERATIONS),
    FIELD(cv, TT_CELL_REAL, TT_FIELDS_ITERATIONS),
    FIELD(bound_us, TT_CELL_REAL, TT_FIELDS_BOUND),
    FIELD(limit, TT_CELL_TEXT, TT_FIELDS_BOUND),
    FIELD(bottleneck, TT_CELL_TEXT, TT_FIELDS_BOUND),
    FIELD(fastest, TT_CELL_FLAG, TT_FIELDS_FASTEST),
    FIELD(wrong, TT_CELL_SIGNED, TT_FIELDS_WRONG),
    FIELD(diverges, TT_CELL_TEXT, TT_FIELDS_COMPARE),
    FIELD(arrivals, TT_CELL_JSON, TT_FIELDS_ARRIVALS),
    FIELD(cases, TT_CELL_COUNT, TT_FIELDS_VERIFY),
    FIELD(steps, TT_CELL_COUNT, TT_FIELDS_VERIFY),
    FIELD(messages, TT_CELL_COUNT, TT_FIELDS_VERIFY),
    FIELD(seconds, TT_CELL_REAL, TT_FIELDS_VERIFY),
    FIELD(verdict, TT_CELL_TEXT, TT_FIELDS_VERIFY),
    FIELD(message, TT_CELL_TEXT, TT_FIELDS_VERIFY),
    { NULL },
};

/* --- rows -------------------------------------------------------------------------------------- */

TtRow
tt_row_for(const TtPlan *plan, const TtCase *c)
{
    TtCollective collective = plan->spec.collective;
    gboolean rooted = collective == TT_BROADCAST || collective == TT_REDUCE;

    return (TtRow){
        .collective = tt_collective_name(collective),
        .algorithm = plan->name,
        .protocol = "simple",
        .channels = plan->spec.n_channels,
        .ranks = plan->spec.n_ranks,
        .in_flight = 1,
        .groups = 1,
        .rounds = plan->n_rounds,
        .bytes = c->bytes,
        .count = c->count,
        .type = tt_type_name(c->type),
        .redop = tt_collective_reduces(collective) ? tt_redop_name(c->redop) : "none",
        .root = rooted ? (gint64)plan->spec.root : -1,
        .time_us = NAN,
        .algbw_gbps = NAN,
        .busbw_gbps = NAN,
        .min_us = NAN,
        .p50_us = NAN,
        .p95_us = NAN,
        .p99_us = NAN,
        .max_us = NAN,
        .cv = NAN,
        .bound_us = NAN,
        .wrong = -1,
        .predicted_us = NAN,
        .measured_us = NAN,
        .error = NAN,
        .flag_ns = NAN,
    };
}

void
tt_row_set_time(TtRow *row, TtCollective collective, double time_s)
{
    row->time_us = time_s * 1e6;
    row->algbw_gbps = row->bytes == 0 || time_s <= 0 ? 0 : row->bytes / time_s / 1e9;
    row->busbw_gbps = row->algbw_gbps * tt_collective_bus_factor(collective, row->ranks);
}

static gboolean
is_text(const TtField *f)
{
    return f->kind == TT_CELL_TEXT || f->kind == TT_CELL_JSON;
}

static void
row_free(gpointer data)
{
    TtRow *row = data;

    for (const TtField *f = tt_fields; f->name; f++)
        if (is_text(f))
            g_free(*(char **)tt_field_of(row, f));
    g_free(row);
}

static TtRow *
row_copy(const TtRow *row)
{
    TtRow *copy = g_memdup2(row, sizeof *row);

    for (const TtField *f = tt_fields; f->name; f++)
        if (is_text(f))
            *(char **)tt_field_of(copy, f) = g_strdup(*(char *const *)tt_field_of(row, f));
    return copy;
}

/* --- CSV --------------------------------------------------------------------------------------- */

static void
append_text_cell(GString *line, const char *text)
{
    if (!text)
        return;
    if (!strpbrk(text, ",\"\n\r")) {
        g_string_append(line, text);
        return;
    }
    g_string_append_c(line, '"');
    for (; *text; text++) {
        if (*text == '"')
            g_string_append_c(line, '"');
        g_string_append_c(line, *text);
    }
    g_string_append_c(line, '"');
}

static void
append_cell(GString *line, const TtRow *row, const TtField *f)
{
    gconstpointer cell = tt_field_of(row, f);
    char number[G_ASCII_DTOSTR_BUF_SIZE];

    switch (f->kind) {
    case TT_CELL_TEXT: append_text_cell(line, *(const char *const *)cell); break;
    case TT_CELL_COUNT:
        g_string_append_printf(line, "%" G_GUINT64_FORMAT, *(const guint64 *)cell);
        break;
    case TT_CELL_SIGNED:
        if (*(const gint64 *)cell != -1)
            g_string_append_printf(line, "%" G_GINT64_FORMAT, *(const gint64 *)cell);
        break;
    case TT_CELL_REAL:
        if (isfinite(*(const double *)cell))
            g_string_append(line, g_ascii_dtostr(number, sizeof number, *(const double *)cell));
        break;
    case TT_CELL_FLAG: g_string_append(line, *(const gboolean *)cell ? "true" : "false"); break;
    case TT_CELL_JSON: break;
    }
}

/* One line; the names if @row is NULL. */
static void
append_csv_line(GString *text, guint fields, const TtRow *row)
{
    gboolean first = TRUE;

    for (const TtField *f = tt_fields; f->name; f++) {
        if ((f->fields && !(f->fields & fields)) || f->kind == TT_CELL_JSON)
            continue;
        if (!first)
            g_string_append_c(text, ',');
        first = FALSE;
        if (row)
            append_cell(text, row, f);
        else
            g_string_append(text, f->name);
    }
    g_string_append_c(text, '\n');
}

char *
tt_report_to_csv(const TtReport *report)
{
    GString *text = g_string_new(NULL);

    append_csv_line(text, report->fields, NULL);
    for (guint i = 0; i < report->rows->len; i++)
        append_csv_line(text, report->fields, tt_report_row(report, i));
    return g_string_free(text, FALSE);
}

static void
print_csv_line(const TtReport *report, const TtRow *row)
{
    g_autoptr(GString) line = g_string_new(NULL);

    append_csv_line(line, report->fields, row);
    fputs(line->str, stdout);
}

/* --- the report -------------------------------------------------------------------------------- */

TtReport *
tt_report_new(const TtOptions *options, guint fields)
{
    TtReport *report = g_new0(TtReport, 1);

    report->options = options;
    report->fields = fields;
    report->config = g_ptr_array_new_with_free_func(g_free);
    report->warnings = g_ptr_array_new_with_free_func(g_free);
    report->rows = g_ptr_array_new_with_free_func(row_free);
    return report;
}

void
tt_report_free(TtReport *report)
{
    if (!report)
        return;
    g_free(report->topology);
    g_free(report->extra_name);
    g_free(report->extra_json);
    g_ptr_array_unref(report->config);
    g_ptr_array_unref(report->warnings);
    g_ptr_array_unref(report->rows);
    g_free(report);
}

gboolean
tt_report_is_table(const TtReport *report)
{
    return !report->options->json && !report->options->csv;
}

void
tt_report_set_topology(TtReport *report, const char *name, guint ranks, guint nodes)
{
    g_free(report->topology);
    report->topology = g_strdup(name);
    report->ranks = ranks;
    report->nodes = nodes;
}

void
tt_report_config(TtReport *report, const char *key, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    g_ptr_array_add(report->config, g_strdup(key));
    g_ptr_array_add(report->config, g_strdup_vprintf(format, arguments));
    va_end(arguments);
}

void
tt_report_config_number(TtReport *report, const char *key, double value)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];

    g_ptr_array_add(report->config, g_strdup_printf("#%s", key));
    g_ptr_array_add(report->config, g_strdup(g_ascii_dtostr(number, sizeof number, value)));
}

void
tt_report_warn(TtReport *report, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list arguments;

    va_start(arguments, format);
    text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    tt_one_line(text);
    for (guint i = 0; i < report->warnings->len; i++)
        if (strcmp(report->warnings->pdata[i], text) == 0)
            return;
    if (!report->options->quiet)
        fprintf(stderr, "tutti %s: note: %s\n", report->options->command->name, text);
    g_ptr_array_add(report->warnings, g_steal_pointer(&text));
}

void
tt_report_comment(const TtReport *report, const char *format, ...)
{
    va_list arguments;

    if (!tt_report_is_table(report))
        return;
    fputs("# ", stdout);
    va_start(arguments, format);
    vfprintf(stdout, format, arguments);
    va_end(arguments);
    fputc('\n', stdout);
}

void
tt_report_set_extra(TtReport *report, const char *name, const char *json)
{
    g_free(report->extra_name);
    g_free(report->extra_json);
    report->extra_name = g_strdup(name);
    report->extra_json = g_strdup(json);
}

void
tt_report_gap(const TtReport *report)
{
    if (tt_report_is_table(report))
        puts("#");
}

void
tt_report_add(TtReport *report, const TtRow *row)
{
    if (report->options->csv) {
        if (report->rows->len == 0)
            print_csv_line(report, NULL);
        print_csv_line(report, row);
    }
    g_ptr_array_add(report->rows, row_copy(row));
}

guint
tt_report_n_rows(const TtReport *report)
{
    return report->rows->len;
}

const TtRow *
tt_report_row(const TtReport *report, guint i)
{
    return report->rows->pdata[i];
}

gboolean
tt_report_finish(TtReport *report, GError **error)
{
    const TtOptions *options = report->options;
    g_autofree char *json = NULL;

    if (options->csv && report->rows->len == 0)
        print_csv_line(report, NULL);
    if (!options->json && !options->json_file)
        return TRUE;
    if (!tt_report_can_json(error))
        return FALSE;
    json = tt_report_to_json(report);
    if (options->json)
        fputs(json, stdout);
    return !options->json_file || tt_output_write(options->json_file, json, error);
}
