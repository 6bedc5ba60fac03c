#include "cli/crossovers.h"
#include "models/units.h"

#include <string.h>

static gboolean
same_call(const TtRow *a, const TtRow *b)
{
    return strcmp(a->type, b->type) == 0 && strcmp(a->redop, b->redop) == 0;
}

static void
append_reach(GString *text, const TtRow *last)
{
    g_autofree char *size = tt_format_bytes(last->bytes);

    g_string_append_printf(text, "%s%s %s %s", text->len ? ", " : "", last->algorithm,
                           text->len ? "to" : "up to", size);
}

char *
tt_crossovers(const TtReport *report)
{
    g_autoptr(GString) text = g_string_new(NULL);
    const TtRow *first = NULL, *last = NULL;

    for (guint i = 0; i < tt_report_n_rows(report); i++) {
        const TtRow *row = tt_report_row(report, i);

        if (!row->fastest || (first && !same_call(first, row)))
            continue;
        if (last && strcmp(last->algorithm, row->algorithm) != 0)
            append_reach(text, last);
        first = first ? first : row;
        last = row;
    }
    if (first == last)
        return NULL;
    g_string_append_printf(text, "%s%s %s", text->len ? ", " : "", last->algorithm,
                           text->len ? "above" : "at every size");
    return g_strdup(text->str);
}
