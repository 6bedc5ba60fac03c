/* open - what a user writes after --topo, turned into a topology. */
#include "topologies/nccl_xml.h"
#include "topologies/text_file.h"
#include "topologies/topology_private.h"

#include <string.h>

#define MAX_NODES      (1u << 24)
#define MAX_FILE_BYTES (8u << 20)

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
                "--topo %s: no such preset (one of %sthis, or a path that ends in .ini or .xml)",
                quoted, names->str);
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

/* An NCCL topology file in our words; what it says in its own goes to *xml. */
static TtKeys *
parse_xml(const char *path, const char *text, gsize length, TtNcclXml **xml, GError **error)
{
    g_autoptr(TtNcclXml) read = tt_nccl_xml_parse(path, text, length, error);
    g_autofree char *ini = read ? tt_nccl_xml_to_ini(read, error) : NULL;
    g_autofree char *quoted = tt_quote(path), *where = g_strdup_printf("%s, as .ini", quoted);
    TtKeys *keys = ini ? tt_keys_parse(ini, strlen(ini), where, error) : NULL;

    if (keys)
        *xml = g_steal_pointer(&read);
    return keys;
}

static TtKeys *
parse_file(const char *path, TtNcclXml **xml, GError **error)
{
    gsize length = 0;
    g_autofree char *text = tt_text_file_read(path, MAX_FILE_BYTES, &length, error);
    g_autofree char *where = tt_quote(path);

    if (!text)
        return NULL;
    if (g_str_has_suffix(path, ".xml") || text[strspn(text, " \t\r\n")] == '<')
        return parse_xml(path, text, length, xml, error);
    return tt_keys_parse(text, length, where, error);
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

/* Does no setting touch the node, so that a file about it still holds? */
static gboolean
leaves_node_alone(const char *const *settings)
{
    for (; settings && *settings; settings++)
        if (!g_str_has_prefix(*settings, "fabric.") && !g_str_has_prefix(*settings, "topology."))
            return FALSE;
    return TRUE;
}

static gboolean
is_path(const char *name)
{
    return strchr(name, '/') || g_str_has_suffix(name, ".ini") || g_str_has_suffix(name, ".xml");
}

TtTopology *
tt_topology_open(const char *text, const char *const *settings, GError **error)
{
    gboolean is_this = strcmp(text, "this") == 0 || g_str_has_prefix(text, "this:");
    g_autofree char *name = NULL;
    g_autoptr(TtNcclXml) xml = NULL;
    guint count = 0;
    TtKeys *keys;
    TtTopology *topo;

    if (!split_count(text, is_this ? TT_MAX_RANKS_PER_NODE : MAX_NODES, &name, &count, error))
        return NULL;
    if (is_this)
        keys = parse_this(count, error);
    else if (is_path(name))
        keys = parse_file(name, &xml, error);
    else
        keys = parse_preset(name, error);
    topo = keys ? build(keys, text, is_this ? 1 : count, settings, error) : NULL;
    if (topo && leaves_node_alone(settings))
        topo->nccl_xml = g_steal_pointer(&xml);
    return topo;
}
