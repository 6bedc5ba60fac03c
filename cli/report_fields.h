/* report_fields.h - the fields of a row by name, for the writers of CSV and JSON. Private to
 * report*.c. */
#pragma once
#include "cli/report.h"

typedef enum {
    TT_CELL_TEXT,
    TT_CELL_COUNT,
    TT_CELL_SIGNED,
    TT_CELL_REAL,
    TT_CELL_FLAG,
    TT_CELL_JSON
} TtCellKind; /* JSON: text in its syntax, not in CSV */

typedef struct {
    const char *name;
    TtCellKind kind;
    guint fields; /* 0: in every row */
    gsize offset; /* in TtRow */
} TtField;

extern const TtField tt_fields[]; /* ends with name NULL */

struct TtReport {
    const TtOptions *options; /* borrowed */
    guint fields;
    char *topology;
    guint ranks, nodes;
    GPtrArray *config;   /* key, value pairs: text, or number if the key begins with '#' */
    GPtrArray *warnings; /* char * */
    GPtrArray *rows;     /* TtRow *, owned with their text */
    char *extra_name, *extra_json; /* NULL: nothing further */
};

static inline gconstpointer
tt_field_of(const TtRow *row, const TtField *field)
{
    return (const char *)row + field->offset;
}

/* report_json.c, or report_json_none.c where json-glib is missing. */
gboolean tt_report_can_json(GError **error);
char *tt_report_to_json(const TtReport *report);
