/* scoreboard.h - errors of predictions, gathered by class of hardware and size.
 */
#pragma once
#include <glib.h>

/* Up to 16 KiB, up to 1 MiB, up to 64 MiB, larger. */
#define TT_N_SIZE_CLASSES 4
guint tt_size_class(guint64 bytes);
const char *tt_size_class_name(guint size_class); /* "up to 16 KiB" */

typedef struct {
    guint n;
    double median_abs, p95_abs, max_abs; /* of |error| */
    double median, mean;                 /* signed */
} TtErrorStats;

/* Errors: (predicted - measured) / measured. Sorts a copy. n = 0: the rest is NAN. */
TtErrorStats tt_error_stats(const double *errors, guint n);

typedef struct TtScoreboard TtScoreboard;
TtScoreboard *tt_scoreboard_new(void);
void tt_scoreboard_free(TtScoreboard *board);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtScoreboard, tt_scoreboard_free)

void tt_scoreboard_add(TtScoreboard *board, const char *row, guint64 bytes, double error);

/* Rows in order of first appearance. */
guint tt_scoreboard_n_rows(const TtScoreboard *board);
const char *tt_scoreboard_row(const TtScoreboard *board, guint row);

/* @row TT_ALL_ROWS: all of them; @size_class TT_N_SIZE_CLASSES: all sizes. */
#define TT_ALL_ROWS G_MAXUINT
TtErrorStats tt_scoreboard_stats(const TtScoreboard *board, guint row, guint size_class);
