/* measured_nccl_columns.h - the columns of a table of nccl-tests, and a row in them. Private to
 * measured_nccl_*.c.
 *
 * Versions differ: "error" or "res" (a deviation) became "#wrong" (a count); the root's column came; the
 * reduction's goes where nothing is reduced; -C, -I, -S and rccl-tests add columns. So the heading says
 * where figures are; without one, the usual order is assumed.
 */
#pragma once
#include <glib.h>

#define TT_NCCL_MOST_COLUMNS 64

typedef enum {
    TT_COLUMN_OTHER,
    TT_COLUMN_TIME,
    TT_COLUMN_ALGBW,
    TT_COLUMN_BUSBW,
    TT_COLUMN_WRONG,     /* a count of elements */
    TT_COLUMN_DEVIATION, /* the largest difference */
    TT_COLUMN_MIN,
    TT_COLUMN_MAX
} TtNcclColumn;

typedef struct {
    gboolean known; /* a heading was seen */
    gboolean has_redop, has_root;
    gboolean in_place_only; /* the one group there is is in place */
    double unit_us;         /* of the times: 1, or 1000 for ms; 0: the heading does not say */
    guint n;                /* columns after type, reduction and root */
    guint8 kind[TT_NCCL_MOST_COLUMNS];
} TtNcclColumns;

typedef struct {
    guint64 bytes, count;
    char type[24], redop[24]; /* redop "" if there is none */
    int root;
    gboolean shifted;                   /* only the second group was printed */
    guint n;                            /* values so far */
    double value[TT_NCCL_MOST_COLUMNS]; /* NAN: N/A */
} TtNcclLine;

void tt_nccl_columns_init(TtNcclColumns *columns); /* the usual ones */

/* Whether @line is part of a heading; takes what it says. *names is set if it names columns, which
 * begins a table. */
gboolean tt_nccl_columns_read(TtNcclColumns *columns, const char *line, gboolean *names);

/* Whether @line starts a row: size, count and type, then as many values as there are on it. */
gboolean tt_nccl_line_read(const TtNcclColumns *columns, const char *line, TtNcclLine *row);

/* More groups of @row on a line of their own: TRUE if @line holds nothing else. */
gboolean tt_nccl_line_continue(const TtNcclColumns *columns, const char *line, TtNcclLine *row);
