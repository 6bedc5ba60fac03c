/* output.h - files written whole or not at all. */
#pragma once
#include <glib.h>

/* Fails early, before minutes of work, if @path could not be written later. NULL is fine. */
gboolean tt_output_check(const char *option, const char *path, GError **error);

/* Replaces a regular file in one step (temporary file, rename); writes into a pipe or device. */
gboolean tt_output_write(const char *path, const char *text, GError **error);

/* Whether writing to both would leave one of them: the same regular file, there or yet to be made. */
gboolean tt_output_same(const char *one, const char *two);
