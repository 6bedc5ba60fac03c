/* The text that nccl-tests and rccl-tests print, in all the states in which logs reach us: other output in
 * between, launchers' prefixes, quoting, several runs in one file, cut off at either end.
 *
 * A line at a time. A row may come in pieces, because the program prints size and type before the run and
 * the figures after it; it is kept open until its figures are complete or something ends it.
 */
#include "models/measured_nccl_columns.h"
#include "models/measured_nccl_text.h"

#include <math.h>
#include <string.h>

#define LONGEST_LINE 8192u
#define MOST_TABLES  1024u

typedef struct {
    const char *origin;
    GPtrArray *tables; /* finished, of earlier runs */
    TtNcclRun *run;
    TtNcclRun *previous; /* NULL at first */
    GPtrArray *of_run;   /* tables of this run, without its facts yet */
    GPtrArray *open;     /* those of the current heading, borrowed: one per type and reduction */
    TtNcclColumns columns;
    gboolean in_table; /* after a heading or a row, before the footer */
    TtNcclLine row;    /* unfinished */
    guint row_line;    /* its line number, 0: none */
    guint line, n_headings, n_empty;
    GPtrArray *skipped; /* before there is a table to tell */
} Reader;

static void
skip_line(Reader *r, guint line, const char *why, const char *text)
{
    g_autofree char *quoted = tt_measured_quote(text, -1);

    if (r->of_run->len)
        tt_measured_skip(g_ptr_array_index(r->of_run, r->of_run->len - 1), "line %u: %s: %s", line,
                         why, quoted);
    else if (r->skipped->len < TT_MEASURED_MOST_NOTES)
        g_ptr_array_add(r->skipped, g_strdup_printf("line %u: %s: %s", line, why, quoted));
}

/* The table of the current heading for a row's type and reduction. */
static TtMeasured *
table_for(Reader *r, const TtNcclLine *line)
{
    g_autoptr(TtMeasured) probe = tt_measured_new("");
    TtMeasured *m;

    tt_measured_set_type(probe, line->type);
    for (guint i = 0; i < r->open->len; i++) {
        m = g_ptr_array_index(r->open, i);
        if (!strcmp(m->type, probe->type) && !g_strcmp0(m->redop, line->redop)) {
            m->root = m->root == line->root ? m->root : -1;
            return m;
        }
    }
    if (r->of_run->len >= MOST_TABLES)
        return NULL;
    m = tt_measured_new(r->origin);
    tt_measured_set_type(m, line->type);
    m->redop = g_strdup(line->redop);
    m->root = line->root;
    for (guint i = 0; i < r->skipped->len; i++)
        tt_measured_skip(m, "%s", (char *)g_ptr_array_index(r->skipped, i));
    g_ptr_array_set_size(r->skipped, 0);
    g_ptr_array_add(r->of_run, m);
    g_ptr_array_add(r->open, m);
    return m;
}

/* Figures from column @first up to the next time; returns where that is. */
static guint
read_group(const TtNcclColumns *columns, const TtNcclLine *line, guint first, TtMeasuredRow *row)
{
    guint i = first;

    tt_measured_row_init(row);
    row->bytes = line->bytes;
    row->count = line->count;
    for (; i < columns->n && (i == first || columns->kind[i] != TT_COLUMN_TIME); i++) {
        double value = i < line->n ? line->value[i] : NAN;

        switch (columns->kind[i]) {
        case TT_COLUMN_TIME: row->time_us = value; break;
        case TT_COLUMN_ALGBW: row->algbw_gbps = value; break;
        case TT_COLUMN_BUSBW: row->busbw_gbps = value; break;
        case TT_COLUMN_MIN: row->min_us = value; break;
        case TT_COLUMN_MAX: row->max_us = value; break;
        case TT_COLUMN_WRONG: row->wrong = value >= 0 && value < 9e18 ? (gint64)value : -1; break;
        case TT_COLUMN_DEVIATION: /* 2e-07 is rounding, 1 and more is wrong whatever the type */
            row->wrong = value >= 1 ? 1 : value >= 0 ? 0 : -1;
            break;
        default: break;
        }
    }
    return i;
}

static void
add_row(Reader *r, TtMeasured *m, gboolean in_place, const TtMeasuredRow *row)
{
    GArray *rows = in_place ? m->rows_in_place : m->rows;

    if (isnan(row->time_us) && isnan(row->busbw_gbps))
        return;
    if (row->wrong > 0)
        tt_measured_skip(m, "line %u: %" G_GUINT64_FORMAT " B%s: wrong results, left out",
                         r->row_line, row->bytes, in_place ? " in place" : "");
    else if (rows->len < TT_MEASURED_MOST_ROWS)
        g_array_append_val(rows, *row);
}

/* The open row is over: its complete groups count. */
static void
end_row(Reader *r)
{
    TtMeasured *m = r->row_line ? table_for(r, &r->row) : NULL;
    gboolean in_place = r->columns.in_place_only || r->row.shifted;
    guint n_groups = 0, i = 0;

    if (m && r->row.bytes == 0) {
        r->n_empty++;
    } else if (m) {
        for (; i + 3 <= r->row.n; n_groups++) {
            TtMeasuredRow row;

            i = read_group(&r->columns, &r->row, i, &row);
            add_row(r, m, in_place || n_groups > 0, &row);
        }
        if (n_groups == 0)
            tt_measured_skip(m, "line %u: a row of %" G_GUINT64_FORMAT " B without its figures",
                             r->row_line, r->row.bytes);
        else if (i < r->row.n)
            tt_measured_skip(m, "line %u: a row of %" G_GUINT64_FORMAT " B cut short", r->row_line,
                             r->row.bytes);
    }
    r->row_line = 0;
}

/* A heading, a footer or a new run ends what is open. */
static void
end_table(Reader *r)
{
    end_row(r);
    for (guint i = 0; i < r->open->len; i++) {
        TtMeasured *m = g_ptr_array_index(r->open, i);
        double unit = r->columns.unit_us > 0
                          ? r->columns.unit_us
                          : tt_nccl_unit_us(m->rows->len ? m->rows : m->rows_in_place);

        tt_nccl_scale(m->rows, unit);
        tt_nccl_scale(m->rows_in_place, unit);
        tt_nccl_merge_repeats(m->rows);
        tt_nccl_merge_repeats(m->rows_in_place);
        if (i == 0 && r->n_empty)
            tt_measured_skip(m, "%u rows of 0 bytes", r->n_empty);
    }
    r->n_empty = 0;
    g_ptr_array_set_size(r->open, 0);
}

static void
end_run(Reader *r)
{
    end_table(r);
    tt_nccl_run_finish(r->run, r->previous);
    for (guint i = 0; i < r->of_run->len; i++) {
        TtMeasured *m = g_ptr_array_index(r->of_run, i);

        tt_nccl_run_copy(r->run, m);
        if (!m->collective && (m->collective = g_strdup(tt_nccl_guess_collective(m))))
            tt_measured_skip(m, "the collective is not stated: %s, by name or bandwidths",
                             m->collective);
        tt_measured_finish(m);
        if (m->rows->len + m->rows_in_place->len && r->tables->len < MOST_TABLES)
            g_ptr_array_add(r->tables, g_steal_pointer(&r->of_run->pdata[i]));
        else
            tt_measured_free(g_steal_pointer(&r->of_run->pdata[i]));
    }
    g_ptr_array_set_size(r->of_run, 0);
    tt_nccl_run_free(r->previous);
    r->previous = r->run;
    r->run = tt_nccl_run_new(r->origin);
    r->in_table = FALSE;
}

static gboolean
is_footer(const char *line)
{
    return strstr(line, "Out of bounds values") || strstr(line, "Avg bus bandwidth") ||
           strstr(line, "Collective test concluded");
}

/* TRUE if @line belongs to a table. */
static gboolean
read_table_line(Reader *r, const char *line)
{
    TtNcclColumns columns = r->columns;
    TtNcclLine row;
    gboolean names;

    if (tt_nccl_line_read(&r->columns, line, &row)) {
        end_row(r);
        r->row = row;
        r->row_line = r->line;
        r->in_table = TRUE;
        if (row.n == r->columns.n)
            end_row(r);
        return TRUE;
    }
    if (tt_nccl_columns_read(&columns, line, &names)) {
        if (names || r->open->len == 0) {
            end_table(r);
            r->columns = columns;
        }
        r->n_headings += names;
        r->in_table = TRUE;
        return TRUE;
    }
    if (r->row_line && tt_nccl_line_continue(&r->columns, line, &r->row)) {
        if (r->row.n == r->columns.n)
            end_row(r);
        return TRUE;
    }
    return FALSE;
}

static void
read_line(Reader *r, const char *line)
{
    gboolean begins = tt_nccl_run_begins(line) ||
                      (!r->in_table && strstr(line, "_perf") && !strstr(line, "concluded"));

    if (begins && r->of_run->len)
        end_run(r);
    if (is_footer(line)) {
        end_table(r);
        r->in_table = FALSE;
        return;
    }
    if (read_table_line(r, line)) {
        if (strstr(line, "NCCL INFO")) /* run into the row */
            tt_nccl_run_read(r->run, strstr(line, "NCCL INFO"));
        return;
    }
    if (tt_nccl_run_read(r->run, line))
        return;
    while (*line == ' ')
        line++;
    if (r->in_table && *line && *line != '#' && strcmp(line, ">"))
        skip_line(r, r->line, "not a row", line);
}

/* A line without escapes that colour terminals, and with blanks for what is not printable. */
static void
clean(GString *out, const char *text, gsize n)
{
    g_string_set_size(out, 0);
    for (gsize i = 0; i < n; i++) {
        if (text[i] == '\033' && i + 1 < n && text[i + 1] == '[') {
            for (i += 2; i < n && !g_ascii_isalpha(text[i]); i++)
                ;
            continue;
        }
        g_string_append_c(out, (guchar)text[i] < 32 || text[i] == 127 ? ' ' : text[i]);
    }
}

static void
read_lines(Reader *r, const char *text, gsize length)
{
    g_autoptr(GString) line = g_string_new(NULL);

    for (gsize at = 0; at < length;) {
        const char *newline = memchr(text + at, '\n', length - at);
        gsize n = newline ? (gsize)(newline - (text + at)) : length - at;

        r->line++;
        clean(line, text + at, MIN(n, LONGEST_LINE));
        if (n > LONGEST_LINE && r->in_table)
            skip_line(r, r->line, "only the first 8192 characters were read", "");
        read_line(r, line->str);
        if (!newline && r->row_line == r->line && r->row.n > 0)
            r->row.n--; /* cut off, perhaps within a figure */
        at += n + 1;
    }
}

static void
fail(const Reader *r, GError **error)
{
    const char *what =
        r->n_headings ? "the heading of a table but no row with figures (the run ended before?)"
                      : "no table of nccl-tests or rccl-tests, and no measurement in JSON";

    g_set_error(error, TT_MEASURED_ERROR, TT_MEASURED_ERROR_FILE, "%s: %s in %u line%s", r->origin,
                what, r->line, r->line == 1 ? "" : "s");
}

GPtrArray *
tt_measured_from_nccl_text(const char *origin, const char *text, gsize length, GError **error)
{
    g_autoptr(GPtrArray) tables = g_ptr_array_new_with_free_func((GDestroyNotify)tt_measured_free);
    g_autoptr(GPtrArray) of_run = g_ptr_array_new(), open = g_ptr_array_new();
    g_autoptr(GPtrArray) skipped = g_ptr_array_new_with_free_func(g_free);
    Reader r = { .origin = origin,
                 .tables = tables,
                 .run = tt_nccl_run_new(origin),
                 .of_run = of_run,
                 .open = open,
                 .skipped = skipped };

    tt_nccl_columns_init(&r.columns);
    read_lines(&r, text, length);
    end_run(&r);
    tt_nccl_run_free(r.run);
    tt_nccl_run_free(r.previous);
    if (tables->len)
        return g_steal_pointer(&tables);
    fail(&r, error);
    return NULL;
}
