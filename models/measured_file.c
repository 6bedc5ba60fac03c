/* Files: regular ones (or a pipe that ends), of a size a log may have. */
#include "models/measured_private.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <stdio.h>

static gboolean
read_all(FILE *file, const char *path, GByteArray *bytes, GError **error)
{
    guint8 part[65536];
    gsize n;

    while ((n = fread(part, 1, sizeof part, file)) > 0) {
        g_byte_array_append(bytes, part, (guint)n);
        if (bytes->len > TT_MEASURED_MOST_BYTES)
            break; /* refused by the parser, with the limit */
    }
    if (!ferror(file))
        return TRUE;
    g_set_error(error, TT_MEASURED_ERROR, TT_MEASURED_ERROR_FILE, "%s: %s", path,
                g_strerror(errno));
    return FALSE;
}

GPtrArray *
tt_measured_read(const char *path, GError **error)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    FILE *file;
    gboolean good;

    if (g_file_test(path, G_FILE_TEST_IS_DIR)) {
        g_set_error(error, TT_MEASURED_ERROR, TT_MEASURED_ERROR_FILE,
                    "%s: a directory; name the files in it", path);
        return NULL;
    }
    if (!(file = g_fopen(path, "rbe"))) {
        g_set_error(error, TT_MEASURED_ERROR, TT_MEASURED_ERROR_FILE, "%s: %s", path,
                    g_strerror(errno));
        return NULL;
    }
    good = read_all(file, path, bytes, error);
    fclose(file);
    return good ? tt_measured_parse(path, (const char *)bytes->data, bytes->len, error) : NULL;
}
