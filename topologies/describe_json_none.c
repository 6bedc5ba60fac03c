/* Stand-in for describe_json.c where json-glib is missing. */
#include "topologies/nccl_lint.h"

static char *
sorry(void)
{
    return g_strdup(
        "{ \"error\": \"JSON needs json-glib: install libjson-glib-dev and rebuild\" }");
}

char *
tt_topology_to_json(const TtTopology *topo)
{
    (void)topo;
    return sorry();
}

char *
tt_lint_to_json(const char *name, const GPtrArray *findings)
{
    (void)name, (void)findings;
    return sorry();
}
