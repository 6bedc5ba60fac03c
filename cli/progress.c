#include "cli/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define PATIENCE_US 1000000
#define INTERVAL_US 100000

TtProgress
tt_progress_begin(gboolean quiet)
{
    return (TtProgress){ .on = !quiet && isatty(STDERR_FILENO),
                         .begin_us = g_get_monotonic_time() };
}

void
tt_progress_show(TtProgress *progress, const char *format, ...)
{
    gint64 now_us = g_get_monotonic_time();
    va_list arguments;

    if (!progress->on || now_us < progress->begin_us + PATIENCE_US ||
        now_us < progress->shown_us + INTERVAL_US)
        return;
    progress->shown_us = now_us;
    fputs("\r\033[K", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fflush(stderr);
}

void
tt_progress_wipe(TtProgress *progress)
{
    if (progress->shown_us)
        fputs("\r\033[K", stderr);
    progress->shown_us = 0;
}
