#include "cli/crossovers.h"
#include "models/units.h"

#include <string.h>

static gboolean
same_call(const TtRow *a, const TtRow *b)
{
    return strcmp(a->type, b->type) == 0 && strcmp(a->redop, b->redop) == 0;
}

/* "ring", or with its protocol "ring ll". */
static void
append_name(GString *text, const TtRow *row, gboolean protocols)
{
    g_string_append_printf(text, "%s%s%s%s", text->len ? ", " : "", row->algorithm,
                           protocols ? " " : "", protocols ? row->protocol : "");
}

static void
append_reach(GString *text, const TtRow *last, gboolean protocols)
{
    g_autofree char *size = tt_format_bytes(last->bytes);
    gboolean first = text->len == 0;

    append_name(text, last, protocols);
    g_string_append_printf(text, " %s %s", first ? "up to" : "to", size);
}

static gboolean
same_way(const TtRow *a, const TtRow *b, gboolean protocols)
{
    return strcmp(a->algorithm, b->algorithm) == 0 &&
           (!protocols || strcmp(a->protocol, b->protocol) == 0);
}

char *
tt_crossovers(const TtReport *report, gboolean protocols)
{
    g_autoptr(GString) text = g_string_new(NULL);
    const TtRow *first = NULL, *last = NULL;

    for (guint i = 0; i < tt_report_n_rows(report); i++) {
        const TtRow *row = tt_report_row(report, i);

        if (!row->fastest || (first && !same_call(first, row)))
            continue;
        if (last && !same_way(last, row, protocols))
            append_reach(text, last, protocols);
        first = first ? first : row;
        last = row;
    }
    if (first == last)
        return NULL;
    if (text->len == 0) {
        append_name(text, last, protocols);
        g_string_append(text, " at every size");
    } else {
        append_name(text, last, protocols);
        g_string_append(text, " above");
    }
    return g_strdup(text->str);
}
