/* topology_check.h - routes as text, and what every route must be. */
#pragma once
#include "tests/check.h"
#include "topologies/topology.h"

#include <string.h>

static inline TtTopology *
must_open(const char *text, const char *setting)
{
    const char *settings[] = { setting, NULL };
    GError *error = NULL;
    TtTopology *topo = tt_topology_open(text, settings, &error);

    CHECK_NO_ERROR(error);
    if (!topo) {
        fprintf(stderr, "cannot go on without %s\n", text);
        exit(1);
    }
    return topo;
}

/* "node 3: gpu 0 -> nvswitch 0" into its ends; switches of the fabric have no node. */
static inline void
split_link_name(const char *name, char **from, char **to)
{
    const char *arrow = strstr(name, " -> "), *colon = strchr(name, ':');
    g_autofree char *node = colon ? g_strndup(name, colon - name) : g_strdup("");
    const char *start = colon ? colon + 2 : name;

    *from = g_strndup(start, arrow - start);
    *to = g_strdup(arrow + 4);
    for (int end = 0; end < 2; end++) {
        char **device = end ? to : from;
        gboolean shared =
            strstr(*device, "leaf ") || strstr(*device, "spine ") || strcmp(*device, "switch") == 0;

        if (!shared) {
            char *full = g_strdup_printf("%s %s", node, *device);

            g_free(*device);
            *device = full;
        }
    }
}

/* The devices of a route, without nodes: "gpu 0 > nvswitch 0 > gpu 1". */
static inline char *
route_text(const TtTopology *topo, guint src, guint dst)
{
    GString *text = g_string_new(NULL);
    TtLink links[TT_MAX_ROUTE];
    guint n = tt_topology_route(topo, src, dst, links);

    for (guint i = 0; i < n; i++) {
        g_autofree char *name = tt_topology_link_name(topo, links[i]);
        const char *colon = strchr(name, ':'), *start = colon ? colon + 2 : name;
        const char *arrow = strstr(name, " -> ");

        if (i == 0)
            g_string_append_len(text, start, arrow - start);
        g_string_append_printf(text, " > %s", arrow + 4);
    }
    return g_string_free(text, FALSE);
}

/* Starts at the source, ends at the destination, no gap, no link twice, all ids valid. */
static inline gboolean
route_is_sound(const TtTopology *topo, guint src, guint dst, const char *rank_kind)
{
    TtLink links[TT_MAX_ROUTE];
    guint n = tt_topology_route(topo, src, dst, links), R = tt_topology_ranks_per_node(topo);
    g_autofree char *at = g_strdup_printf("node %u %s %u", src / R, rank_kind, src % R);
    g_autofree char *end = g_strdup_printf("node %u %s %u", dst / R, rank_kind, dst % R);
    gboolean sound = n <= TT_MAX_ROUTE && (n == 0) == (src == dst);

    for (guint i = 0; i < n && sound; i++) {
        g_autofree char *from = NULL, *to = NULL, *name = NULL;

        sound = links[i] < tt_topology_n_links(topo);
        if (!sound)
            break;
        name = tt_topology_link_name(topo, links[i]);
        split_link_name(name, &from, &to);
        sound = strcmp(from, at) == 0;
        for (guint k = 0; k < i; k++)
            sound = sound && links[k] != links[i];
        g_free(at);
        at = g_steal_pointer(&to);
    }
    return sound && strcmp(at, end) == 0;
}
