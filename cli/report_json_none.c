/* Stands in for report_json.c where json-glib was not found. */
#include "cli/report_fields.h"

gboolean
tt_report_can_json(GError **error)
{
    g_set_error(
        error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
        "JSON output was not built in: install libjson-glib-dev and build again, or use --csv");
    return FALSE;
}

char *
tt_report_to_json(const TtReport *report)
{
    (void)report;
    return g_strdup("");
}
