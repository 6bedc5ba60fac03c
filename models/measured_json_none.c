/* Stand-in for measured_json.c where json-glib is missing. */
#include "models/measured_private.h"

gboolean
tt_measured_is_json(const char *text, gsize length)
{
    return length > 0 && text[0] == '{';
}

GPtrArray *
tt_measured_from_json(const char *origin, const char *text, gsize length, GError **error)
{
    (void)text;
    (void)length;
    g_set_error(error, TT_MEASURED_ERROR, TT_MEASURED_ERROR_FILE,
                "%s: reading JSON needs json-glib: install libjson-glib-dev and rebuild", origin);
    return NULL;
}
