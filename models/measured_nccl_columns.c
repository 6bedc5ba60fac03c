#include "models/measured_nccl_columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WORDS 128

void
tt_nccl_columns_init(TtNcclColumns *columns)
{
    static const guint8 group[] = { TT_COLUMN_TIME, TT_COLUMN_ALGBW, TT_COLUMN_BUSBW,
                                    TT_COLUMN_WRONG };

    *columns = (TtNcclColumns){ .n = 8 };
    for (guint i = 0; i < 8; i++)
        columns->kind[i] = group[i % 4];
}

/* Words of @line between blanks, as places in it. */
typedef struct {
    guint n;
    const char *at[MOST_WORDS];
    guint length[MOST_WORDS];
} Words;

static void
split(Words *words, const char *line)
{
    words->n = 0;
    for (const char *p = line; *p && words->n < MOST_WORDS;) {
        gsize n;

        p += strspn(p, " \t");
        n = strcspn(p, " \t");
        if (n) {
            words->at[words->n] = p;
            words->length[words->n++] = (guint)n;
        }
        p += n;
    }
}

static gboolean
is(const Words *words, guint i, const char *text)
{
    return i < words->n && strlen(text) == words->length[i] &&
           !g_ascii_strncasecmp(words->at[i], text, words->length[i]);
}

static gboolean
is_any(const Words *words, guint i, const char *const *texts)
{
    for (; *texts; texts++)
        if (is(words, i, *texts))
            return TRUE;
    return FALSE;
}

static TtNcclColumn
kind_of(const Words *words, guint i)
{
    static const struct {
        const char *name;
        TtNcclColumn kind;
    } kinds[] = {
        { "time", TT_COLUMN_TIME },       { "cputime", TT_COLUMN_TIME },
        { "algbw", TT_COLUMN_ALGBW },     { "busbw", TT_COLUMN_BUSBW },
        { "#wrong", TT_COLUMN_WRONG },    { "wrong", TT_COLUMN_WRONG },
        { "error", TT_COLUMN_DEVIATION }, { "res", TT_COLUMN_DEVIATION },
        { "min", TT_COLUMN_MIN },         { "max", TT_COLUMN_MAX },
        { "min_us", TT_COLUMN_MIN },      { "max_us", TT_COLUMN_MAX },
    };

    for (guint k = 0; k < G_N_ELEMENTS(kinds); k++)
        if (is(words, i, kinds[k].name))
            return kinds[k].kind;
    return TT_COLUMN_OTHER;
}

static void
read_names(TtNcclColumns *columns, const Words *words)
{
    static const char *const keys[] = { "size", "bytes", "count", "n", "type", NULL };
    gboolean in_place_only = columns->in_place_only, figures = FALSE;

    *columns = (TtNcclColumns){ .known = TRUE, .in_place_only = in_place_only };
    for (guint i = 0; i < words->n && columns->n < TT_NCCL_MOST_COLUMNS; i++) {
        TtNcclColumn kind = kind_of(words, i);

        figures |= kind == TT_COLUMN_TIME;
        if (is(words, i, "redop") || is(words, i, "op"))
            columns->has_redop = TRUE;
        else if (is(words, i, "root"))
            columns->has_root = TRUE;
        else if (figures && !is_any(words, i, keys))
            columns->kind[columns->n++] = (guint8)kind;
    }
}

gboolean
tt_nccl_columns_read(TtNcclColumns *columns, const char *line, gboolean *names)
{
    Words words;

    *names = FALSE;
    if (strstr(line, "algbw") && strstr(line, "busbw") && strstr(line, "time")) {
        split(&words, line);
        read_names(columns, &words);
        *names = TRUE;
        return columns->n > 0;
    }
    if (strstr(line, "(GB/s)") && (strstr(line, "(us)") || strstr(line, "(ms)"))) {
        columns->unit_us = strstr(line, "(us)") ? 1 : 1000;
        return TRUE;
    }
    if (strstr(line, "in-place")) {
        columns->in_place_only = !strstr(line, "out-of-place");
        return TRUE;
    }
    return FALSE;
}

/* Digits only, whatever a launcher put before: "[1,0]<stdout>:8", "0:8". */
static gboolean
read_count(const Words *words, guint i, gboolean prefixed, guint64 *value)
{
    const char *p = words->at[i], *end = p + words->length[i];

    if (prefixed)
        for (const char *q = p; q < end; q++)
            if (strchr(":>|`", *q))
                p = q + 1;
    if (p == end || end - p > 19)
        return FALSE;
    *value = 0;
    for (; p < end; p++) {
        if (!g_ascii_isdigit(*p))
            return FALSE;
        *value = *value * 10 + (guint64)(*p - '0');
    }
    return TRUE;
}

static gboolean
read_value(const Words *words, guint i, double *value)
{
    const char *p = words->at[i], *last = p + words->length[i];
    char *end;

    if (last > p && last[-1] == '`')
        last--;
    if (is(words, i, "N/A")) {
        *value = NAN;
        return TRUE;
    }
    if (!g_ascii_isdigit(*p) && *p != '-' && *p != '.')
        return FALSE;
    *value = g_ascii_strtod(p, &end);
    return end == last && isfinite(*value);
}

/* Values from word @i on. Where other output ran into the row, the rest of that group is lost: groups are
 * printed in one go. TRUE if nothing else came. */
static gboolean
read_values(const TtNcclColumns *columns, const Words *words, guint i, TtNcclLine *row)
{
    double value;

    for (; i < words->n && row->n < columns->n; i++) {
        if (!read_value(words, i, &value))
            break;
        row->value[row->n++] = value;
    }
    if (i == words->n)
        return TRUE;
    while (row->n > 0 && row->n < columns->n && columns->kind[row->n] != TT_COLUMN_TIME)
        row->value[row->n++] = NAN;
    return FALSE;
}

static guint
n_values_from(const Words *words, guint i)
{
    guint n = 0;
    double value;

    while (i + n < words->n && read_value(words, i + n, &value))
        n++;
    return n;
}

/* "-1", and also "-1" with a host's name run into it by another process's output. */
static gboolean
read_root(const Words *words, guint i, int *root)
{
    char *end;
    long value = strtol(words->at[i], &end, 10);

    if (end == words->at[i])
        return FALSE;
    *root = (int)CLAMP(value, -1, 1 << 30);
    if (words->at[i][0] == '-')
        *root = -1;
    return end == words->at[i] + words->length[i];
}

static void
copy_word(char to[24], const Words *words, guint i)
{
    guint n = MIN(words->length[i], 23);

    memcpy(to, words->at[i], n);
    to[n] = '\0';
}

static const char *const types[] = { "int8",   "uint8",    "char",     "int",      "int32",
                                     "uint32", "int64",    "uint64",   "half",     "float",
                                     "double", "bfloat16", "float16",  "float32",  "float64",
                                     "f8e4m3", "f8e5m2",   "fp8_e4m3", "fp8_e5m2", "bytes",
                                     NULL };

gboolean
tt_nccl_line_read(const TtNcclColumns *columns, const char *line, TtNcclLine *row)
{
    static const char *const redops[] = { "sum",  "prod",   "max",       "min", "avg",
                                          "none", "mulsum", "premulsum", NULL };
    Words words;
    guint t, i;
    gboolean root;

    split(&words, line);
    for (t = 2; t < words.n && !is_any(&words, t, types); t++)
        ;
    *row = (TtNcclLine){ .root = -1 };
    if (t >= words.n || !read_count(&words, t - 2, TRUE, &row->bytes) ||
        !read_count(&words, t - 1, FALSE, &row->count))
        return FALSE;
    copy_word(row->type, &words, t);
    i = t + 1;
    if (is_any(&words, i, redops))
        copy_word(row->redop, &words, i++);
    root = columns->known ? columns->has_root : n_values_from(&words, i) % 4 == 1;
    if (root && i < words.n) {
        if (!read_root(&words, i, &row->root))
            return TRUE; /* the rest of the line is somebody else's */
        i++;
    }
    /* a group's place left blank: 32 characters (nccl-tests 2.19) */
    row->shifted = i > 0 && i < words.n && columns->n >= 8 &&
                   words.at[i] - (words.at[i - 1] + words.length[i - 1]) >= 30;
    read_values(columns, &words, i, row);
    return TRUE;
}

gboolean
tt_nccl_line_continue(const TtNcclColumns *columns, const char *line, TtNcclLine *row)
{
    TtNcclLine longer = *row;
    Words words;

    split(&words, line);
    if (words.n < 3 || words.n > columns->n - row->n || columns->kind[row->n] != TT_COLUMN_TIME ||
        !read_values(columns, &words, 0, &longer))
        return FALSE;
    *row = longer;
    return TRUE;
}
