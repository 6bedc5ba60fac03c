/* progress.h - one line on a terminal's standard error for work that lasts. */
#pragma once
#include <glib.h>

typedef struct {
    gboolean on;     /* standard error is a terminal, not --quiet */
    gint64 begin_us; /* the line appears after a second */
    gint64 shown_us;
} TtProgress;

TtProgress tt_progress_begin(gboolean quiet);
void tt_progress_show(TtProgress *progress, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Wipes the line: call before printing a row, and at the end. */
void tt_progress_wipe(TtProgress *progress);
