/* xml_reader where libxml2 is missing. */
#include "topologies/topology.h"
#include "topologies/xml_reader.h"

gboolean
tt_xml_read(const char *origin, const char *text, gsize length, TtXmlStart start, gpointer user,
            GError **error)
{
    (void)text, (void)length, (void)start, (void)user;
    g_set_error(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_FILE,
                "%s: this build reads no XML: install libxml2-dev and build again", origin);
    return FALSE;
}
