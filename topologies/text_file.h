/* text_file.h - a foreign text file, read whole and never more of it than makes sense. */
#pragma once
#include <glib.h>

/* The text, with a NUL behind it, and its length. At most @max_bytes + 1 bytes are read, so that a
 * device or a huge file costs nothing: a @length past @max_bytes means the file is longer.
 * TT_TOPOLOGY_ERROR_FILE with the path on failure. Caller frees. */
char *tt_text_file_read(const char *path, gsize max_bytes, gsize *length, GError **error);
