/* open - what a user writes after --topo, turned into a topology. */
#include "topologies/text_file.h"
#include "topologies/topology_private.h"

#include <string.h>

#define MAX_NODES      (1u << 24)
#define MAX_FILE_BYTES (1u << 20)

static const char *const topology_keys[] = { "name", "description", "nodes", NULL };

/* "dgx-h100:16" -> "dgx-h100", 16; without a number 0. */
static gboolean
split_count(const char *text, guint max, char **name, guint *count, GError **error)
{
    const char *colon = strrchr(text, ':');
    guint64 value = 0;

    if (colon && strchr(colon, '/'))
        colon = NULL;
    if (colon && !g_ascii_string_to_unsigned(colon + 1, 10, 1, max, &value, NULL)) {
        g_autofree char *quoted = tt_quote(text);

        g_set_error(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_USAGE,
                    "--topo %s: after the colon stands a whole number from 1 to %u", quoted, max);
        return FALSE;
    }
    *name = g_strndup(text, colon ? (gsize)(colon - text) : strlen(text));
    *count = (guint)value;
    return TRUE;
}

static const TtPreset *
find_preset(const char *name, GError **error)
{
    g_autoptr(GString) names = g_string_new(NULL);

    for (const TtPreset *p = tt_presets; p->name; p++) {
        if (strcmp(p->name, name) == 0)
            return p;
        g_string_append_printf(names, "%s, ", p->name);
    }
    g_autofree char *quoted = tt_quote(name);

    g_set_error(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_USAGE,
                "--topo %s: no such preset (one of %sthis, or a path that ends in .ini)", quoted,
                names->str);
    return NULL;
}

static TtKeys *
parse_preset(const char *name, GError **error)
{
    const TtPreset *preset = find_preset(name, error);
    g_autofree char *where = NULL;

    if (!preset)
        return NULL;
    where = g_strdup_printf("preset %s", name);
    return tt_keys_parse(preset->text, strlen(preset->text), where, error);
}

static TtKeys *
parse_file(const char *path, GError **error)
{
    gsize length = 0;
    g_autofree char *text = tt_text_file_read(path, MAX_FILE_BYTES, &length, error);
    g_autofree char *where = tt_quote(path);

    return text ? tt_keys_parse(text, length, where, error) : NULL;
}

static TtKeys *
parse_this(guint n_ranks, GError **error)
{
    g_autofree char *text = tt_discover_this(n_ranks, error);

    return text ? tt_keys_parse(text, strlen(text), "this machine", error) : NULL;
}

static gboolean
apply_settings(TtKeys *keys, const char *const *settings, GError **error)
{
    const TtSectionSchema schema[] = {
        { "topology", topology_keys }, { "node", tt_node_keys },       { "link ", tt_link_keys },
        { "nic", tt_nic_keys },        { "fabric", tt_fabric_keys() }, { NULL, NULL },
    };

    for (; settings && *settings; settings++)
        if (!tt_keys_set(keys, *settings, error))
            return FALSE;
    return tt_keys_check(keys, schema, error);
}

/* From the command line, else from the file, else one. */
static gboolean
count_nodes(TtKeys *keys, guint asked, guint *n_nodes, GError **error)
{
    const char *name;
    TtKey *key;

    *n_nodes = 1;
    if (!tt_keys_text(keys, "topology", "name", FALSE, &name, error) ||
        !tt_keys_count(keys, "topology", "nodes", FALSE, 1, MAX_NODES, n_nodes, error))
        return FALSE;
    if (asked) {
        *n_nodes = asked;
        key = tt_keys_find(keys, "topology", "nodes");
        if (key && key->line == 0)
            key->used = FALSE; /* --set topology.nodes lost against NAME:N */
    }
    return TRUE;
}

/* Takes @keys over. */
static TtTopology *
build(TtKeys *keys, const char *name, guint n_nodes, const char *const *settings, GError **error)
{
    g_autoptr(TtKeys) owned = keys;

    if (!apply_settings(keys, settings, error) || !count_nodes(keys, n_nodes, &n_nodes, error))
        return NULL;
    return tt_topology_new(g_steal_pointer(&owned), name, n_nodes, error);
}

TtTopology *
tt_topology_parse(const char *text, gsize length, const char *where, guint n_nodes,
                  const char *const *settings, GError **error)
{
    TtKeys *keys = tt_keys_parse(text, length, where, error);

    return keys ? build(keys, where, n_nodes, settings, error) : NULL;
}

TtTopology *
tt_topology_open(const char *text, const char *const *settings, GError **error)
{
    gboolean is_this = strcmp(text, "this") == 0 || g_str_has_prefix(text, "this:");
    g_autofree char *name = NULL;
    guint count = 0;
    TtKeys *keys;

    if (!split_count(text, is_this ? TT_MAX_RANKS_PER_NODE : MAX_NODES, &name, &count, error))
        return NULL;
    if (is_this)
        keys = parse_this(count, error);
    else if (strchr(name, '/') || g_str_has_suffix(name, ".ini"))
        keys = parse_file(name, error);
    else
        keys = parse_preset(name, error);
    return keys ? build(keys, text, is_this ? 1 : count, settings, error) : NULL;
}
