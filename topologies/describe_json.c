/* describe_json - the same facts as describe.c, for programs. Rates in bytes/s, times in ps. */
#include "topologies/nccl_lint.h"
#include "topologies/topology_private.h"

#include <json-glib/json-glib.h>
#include <string.h>

static void
add_text(JsonBuilder *b, const char *name, const char *value)
{
    json_builder_set_member_name(b, name);
    json_builder_add_string_value(b, value);
}

static void
add_int(JsonBuilder *b, const char *name, gint64 value)
{
    json_builder_set_member_name(b, name);
    json_builder_add_int_value(b, value);
}

static void
add_double(JsonBuilder *b, const char *name, double value)
{
    json_builder_set_member_name(b, name);
    json_builder_add_double_value(b, value);
}

static void
add_devices(JsonBuilder *b, const TtTemplate *t)
{
    json_builder_set_member_name(b, "devices");
    json_builder_begin_object(b);
    for (TtDeviceKind kind = 0; kind < TT_DEVICE_NETWORK; kind++)
        if (t->count[kind])
            add_int(b, tt_device_kind_name(kind), t->count[kind]);
    json_builder_end_object(b);
}

/* One node's links, both directions, in the order of their ids. */
static void
add_links(JsonBuilder *b, const TtTopology *topo)
{
    const TtTemplate *t = topo->node;

    json_builder_set_member_name(b, "links");
    json_builder_begin_array(b);
    for (TtLink link = 0; link < topo->links_per_node; link++) {
        const TtWire *wire = &g_array_index(t->wires, TtWire, link);
        g_autofree char *from = tt_template_device_name(t, wire->from);
        g_autofree char *to = tt_template_device_name(t, wire->to);
        TtLinkInfo info = tt_topology_link(topo, link);

        json_builder_begin_object(b);
        add_text(b, "from", from);
        add_text(b, "to", to);
        add_text(b, "name", g_array_index(t->bundles, TtBundle, wire->bundle).name);
        add_text(b, "kind", info.kind);
        add_double(b, "capacity_bytes_per_s", info.capacity_bytes_per_s);
        add_int(b, "latency_ps", info.latency_ps);
        if (info.burst_bytes > 0)
            add_double(b, "burst_bytes", info.burst_bytes);
        json_builder_end_object(b);
    }
    json_builder_end_array(b);
}

static void
add_constants(JsonBuilder *b, const TtTopology *topo)
{
    json_builder_set_member_name(b, "constants");
    json_builder_begin_array(b);
    for (guint i = 0; i < tt_keys_n(topo->keys); i++) {
        const TtKey *key = tt_keys_nth(topo->keys, i);

        if (strcmp(key->section, "topology") == 0)
            continue;
        json_builder_begin_object(b);
        add_text(b, "section", key->section);
        add_text(b, "key", key->key);
        add_text(b, "value", key->value);
        if (key->basis) {
            add_text(b, "kind", key->basis);
            add_text(b, "source", key->source);
        }
        json_builder_end_object(b);
    }
    json_builder_end_array(b);
}

static void
add_fabric(JsonBuilder *b, const TtNetwork *n)
{
    if (!n->fabric)
        return;
    json_builder_set_member_name(b, "fabric");
    json_builder_begin_object(b);
    add_text(b, "type", n->fabric->name);
    add_int(b, "hop_ps", n->hop_ps);
    add_int(b, "links", n->n_links);
    if (n->n_links > 0) {
        add_int(b, "leaves", n->n_leaves);
        add_int(b, "spines", n->n_spines);
        add_int(b, "nodes_per_leaf", n->nodes_per_leaf);
        add_double(b, "oversubscription", n->oversubscription);
        add_double(b, "spine_link_bytes_per_s", n->spine_bytes_per_s);
    }
    json_builder_end_object(b);
}

static void
add_warnings(JsonBuilder *b, const TtTopology *topo)
{
    json_builder_set_member_name(b, "warnings");
    json_builder_begin_array(b);
    for (char **warning = topo->warnings; *warning; warning++)
        json_builder_add_string_value(b, *warning);
    json_builder_end_array(b);
}

char *
tt_topology_to_json(const TtTopology *topo)
{
    g_autoptr(JsonBuilder) b = json_builder_new();
    g_autoptr(JsonNode) root = NULL;

    json_builder_begin_object(b);
    add_text(b, "name", topo->name);
    add_text(b, "description", topo->description);
    add_int(b, "ranks", tt_topology_n_ranks(topo));
    add_int(b, "nodes", topo->n_nodes);
    add_int(b, "ranks_per_node", topo->node->n_ranks);
    add_int(b, "nics_per_node", topo->node->n_nics);
    add_int(b, "cores_per_node", topo->node->cores);
    add_int(b, "n_links", topo->n_links);
    add_devices(b, topo->node);
    add_links(b, topo);
    add_fabric(b, &topo->network);
    add_constants(b, topo);
    add_warnings(b, topo);
    json_builder_end_object(b);
    root = json_builder_get_root(b);
    return json_to_string(root, TRUE);
}

static char *
to_text(JsonBuilder *b)
{
    g_autoptr(JsonNode) root = json_builder_get_root(b);

    return json_to_string(root, TRUE);
}

char *
tt_lint_to_json(const char *name, const GPtrArray *findings)
{
    g_autoptr(JsonBuilder) b = json_builder_new();
    g_autofree char *valid = g_utf8_make_valid(name, -1);

    json_builder_begin_object(b);
    add_text(b, "topology", valid);
    json_builder_set_member_name(b, "findings");
    json_builder_begin_array(b);
    for (guint i = 0; i < findings->len; i++) {
        const TtLintFinding *finding = findings->pdata[i];

        json_builder_begin_object(b);
        add_text(b, "severity", tt_lint_severity_name(finding->severity));
        add_text(b, "rule", finding->rule);
        add_text(b, "where", finding->where);
        add_text(b, "what", finding->what);
        add_text(b, "expected", finding->expected);
        add_text(b, "effect", finding->effect);
        json_builder_end_object(b);
    }
    json_builder_end_array(b);
    json_builder_end_object(b);
    return to_text(b);
}
