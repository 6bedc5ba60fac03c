/* describe - a topology for people: what a node has, what every constant is and whence, some
 * routes. */
#include "topologies/topology_private.h"

#include <string.h>

/* What a constant is and whence, indented. */
static void
append_constants(GString *text, const TtTopology *topo, const char *section)
{
    for (guint i = 0; i < tt_keys_n(topo->keys); i++) {
        const TtKey *key = tt_keys_nth(topo->keys, i);
        gboolean is_number = g_ascii_isdigit(key->value[0]) && strcmp(key->key, "pairs") != 0 &&
                             strcmp(section, "node") != 0; /* counts need no source */

        if (strcmp(key->section, section) != 0 || !(is_number || key->basis))
            continue;
        g_string_append_printf(text, "    %s = %s", key->key, key->value);
        if (key->basis)
            g_string_append_printf(text, "  (%s: %s)", key->basis, key->source);
        else
            g_string_append(text, "  (source not stated)");
        g_string_append_c(text, '\n');
    }
}

static void
append_node(GString *text, const TtTopology *topo)
{
    const TtTemplate *t = topo->node;

    g_string_append(text, "\nnode:");
    for (TtDeviceKind kind = 0; kind < TT_DEVICE_NETWORK; kind++)
        if (t->count[kind])
            g_string_append_printf(text, " %u %s,", t->count[kind], tt_device_kind_name(kind));
    g_string_truncate(text, text->len - 1);
    if (t->cores)
        g_string_append_printf(text, "; %u cores", t->cores);
    g_string_append_c(text, '\n');
    append_constants(text, topo, "node");
}

static void
append_bundle(GString *text, const TtTopology *topo, guint bundle)
{
    const TtTemplate *t = topo->node;
    const TtBundle *b = &g_array_index(t->bundles, TtBundle, bundle);
    g_autofree char *latency = tt_format_seconds(tt_ps_to_seconds(b->latency_ps));
    gboolean is_cable = b->to == TT_DEVICE_NETWORK;
    g_autofree char *section = is_cable ? g_strdup("nic") : g_strdup_printf("link %s", b->name);
    double least = 0, most = 0;
    guint n = 0;

    for (guint w = 0; w < t->wires->len; w++) {
        const TtWire *wire = &g_array_index(t->wires, TtWire, w);

        if (wire->bundle != bundle)
            continue;
        least = n ? MIN(least, wire->capacity_bytes_per_s) : wire->capacity_bytes_per_s;
        most = MAX(most, wire->capacity_bytes_per_s);
        n++;
    }
    g_autofree char *low = tt_format_rate(least), *high = tt_format_rate(most);

    g_string_append_printf(text, "\n%s: %u x %s - %s, %s%s%s each way, %s, %s\n",
                           is_cable ? "NIC cables" : section, n / 2, tt_device_kind_name(b->from),
                           tt_device_kind_name(b->to), low, least < most ? " or " : "",
                           least < most ? high : "", latency, b->kind);
    append_constants(text, topo, section);
}

static void
append_network(GString *text, const TtTopology *topo)
{
    const TtNetwork *n = &topo->network;

    if (!n->fabric)
        return;
    g_string_append_printf(text, "\nfabric: %s, %s\n", n->fabric->name, n->fabric->summary);
    append_constants(text, topo, "fabric");
    if (n->n_links > 0) {
        g_autofree char *rate = tt_format_rate(n->spine_bytes_per_s);

        g_string_append_printf(text,
                               "    %u leaves, %u spines, %s each way between any two, %g:1\n",
                               n->n_leaves, n->n_spines, rate, n->oversubscription);
    }
}

static void
append_route(GString *text, const TtTopology *topo, guint src, guint dst)
{
    TtLink links[TT_MAX_ROUTE];
    guint n = tt_topology_route(topo, src, dst, links);
    g_autofree char *rate = tt_format_rate(tt_topology_route_bytes_per_s(topo, src, dst));
    g_autofree char *latency =
        tt_format_seconds(tt_ps_to_seconds(tt_topology_route_latency_ps(topo, src, dst)));

    g_string_append_printf(text, "    rank %u to rank %u: %s, %s", src, dst, rate, latency);
    for (guint i = 0; i < n; i++) {
        g_autofree char *name = tt_topology_link_name(topo, links[i]);
        const char *arrow = strstr(name, " -> ");

        if (i == 0) {
            const char *from = g_str_has_prefix(name, "node ") ? strchr(name, ':') + 2 : name;

            g_string_append_printf(text, "\n        %.*s", (int)(arrow - from), from);
        }
        g_string_append(text, arrow);
    }
    g_string_append_c(text, '\n');
}

/* A few that differ: next door, far inside the node, same place one node on, another place, far. */
static void
append_routes(GString *text, const TtTopology *topo)
{
    guint R = topo->node->n_ranks, n = tt_topology_n_ranks(topo);
    guint candidates[] = { 1, R - 1, R, R + 1, n - R, n - 1 };
    guint shown[G_N_ELEMENTS(candidates)], n_shown = 0;

    g_string_append(text, "\nroutes, for example:\n");
    for (guint i = 0; i < G_N_ELEMENTS(candidates); i++) {
        gboolean seen = candidates[i] == 0 || candidates[i] >= n;

        for (guint k = 0; k < n_shown; k++)
            seen |= shown[k] == candidates[i];
        if (seen)
            continue;
        shown[n_shown++] = candidates[i];
        append_route(text, topo, 0, candidates[i]);
    }
}

char *
tt_topology_describe(const TtTopology *topo)
{
    GString *text = g_string_new(topo->name);
    guint n_nodes = topo->n_nodes, n_ranks = topo->node->n_ranks;

    if (*topo->description)
        g_string_append_printf(text, ": %s", topo->description);
    g_string_append_printf(text, "\n%u rank%s on %u node%s (%u per node), %u links\n",
                           n_nodes * n_ranks, n_nodes * n_ranks > 1 ? "s" : "", n_nodes,
                           n_nodes > 1 ? "s" : "", n_ranks, topo->n_links);
    append_node(text, topo);
    for (guint b = 0; b < topo->node->bundles->len; b++)
        append_bundle(text, topo, b);
    append_network(text, topo);
    if (n_nodes * n_ranks > 1)
        append_routes(text, topo);
    for (char **warning = topo->warnings; *warning; warning++)
        g_string_append_printf(text, "\nwarning: %s", *warning);
    if (*topo->warnings)
        g_string_append_c(text, '\n');
    return g_string_free(text, FALSE);
}
