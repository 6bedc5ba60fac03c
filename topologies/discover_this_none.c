/* Stand-in for discover_this.c where hwloc is missing. */
#include "topologies/topology_private.h"

char *
tt_discover_this(guint n_ranks, GError **error)
{
    (void)n_ranks;
    g_set_error_literal(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_USAGE,
                        "--topo this needs hwloc: install libhwloc-dev and rebuild");
    return NULL;
}
