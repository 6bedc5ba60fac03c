/* Stand-in for describe_json.c where json-glib is missing. */
#include "topologies/topology.h"

char *
tt_topology_to_json(const TtTopology *topo)
{
    (void)topo;
    return g_strdup(
        "{ \"error\": \"JSON needs json-glib: install libjson-glib-dev and rebuild\" }");
}
