#include "models/measured_private.h"

GPtrArray *
tt_measured_from_nccl_text(const char *origin, const char *text, gsize length, GError **error)
{
    (void)text;
    (void)length;
    g_set_error(error, TT_MEASURED_ERROR, TT_MEASURED_ERROR_FILE, "%s: not a log", origin);
    return NULL;
}
