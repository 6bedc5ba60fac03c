/* Files: of a size a log may have, and never a wait for a pipe nobody writes to. */
#include "models/measured_private.h"
#include "topologies/text_file.h"

GPtrArray *
tt_measured_read(const char *path, GError **error)
{
    g_autoptr(GError) why = NULL;
    g_autofree char *text = NULL;
    gsize length;

    if (g_file_test(path, G_FILE_TEST_IS_DIR)) {
        g_set_error(error, TT_MEASURED_ERROR, TT_MEASURED_ERROR_FILE,
                    "%s: a directory; name the files in it", path);
        return NULL;
    }
    text = tt_text_file_read(path, TT_MEASURED_MOST_BYTES, &length, &why);
    if (!text) {
        g_set_error_literal(error, TT_MEASURED_ERROR, TT_MEASURED_ERROR_FILE, why->message);
        return NULL;
    }
    return tt_measured_parse(path, text, length, error);
}
