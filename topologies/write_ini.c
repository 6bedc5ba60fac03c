/* write_ini - a topology as the .ini text that would make it, settings included. */
#include "topologies/topology_private.h"

#include <string.h>

static gboolean
is_first_of_section(const TtKeys *keys, guint i)
{
    for (guint k = 0; k < i; k++)
        if (strcmp(tt_keys_nth(keys, k)->section, tt_keys_nth(keys, i)->section) == 0)
            return FALSE;
    return TRUE;
}

static void
append_key(GString *text, const TtKey *key)
{
    g_string_append_printf(text, "%s = %s", key->key, key->value);
    if (key->basis) /* "set" is no basis a file may name */
        g_string_append_printf(text, " ; %s: %s",
                               strcmp(key->basis, "set") == 0 ? "assumed" : key->basis,
                               key->source);
    g_string_append_c(text, '\n');
}

static void
append_section(GString *text, const TtTopology *topo, const char *section)
{
    gboolean is_topology = strcmp(section, "topology") == 0;

    g_string_append_printf(text, "%s[%s]\n", text->len ? "\n" : "", section);
    for (guint i = 0; i < tt_keys_n(topo->keys); i++) {
        const TtKey *key = tt_keys_nth(topo->keys, i);

        if (strcmp(key->section, section) == 0 && !(is_topology && strcmp(key->key, "nodes") == 0))
            append_key(text, key);
    }
    if (is_topology && topo->n_nodes > 1)
        g_string_append_printf(text, "nodes = %u\n", topo->n_nodes);
}

static const char not_kept[] =
    "# From an NCCL topology file. Not kept of it: bus, vendor and device ids, names, GUIDs, ports "
    "and\n"
    "# connections of NICs, CPU affinities, what has no GPU or NIC; GPUs or CPUs of several kinds "
    "in one\n"
    "# node are all as the first, and so is what network plug-ins say of single NICs.\n";

char *
tt_topology_to_ini(const TtTopology *topo)
{
    GString *text = g_string_new(topo->nccl_xml ? not_kept : NULL);
    gboolean has_topology = tt_keys_has_section(topo->keys, "topology");

    if (!has_topology && topo->n_nodes > 1)
        append_section(text, topo, "topology");
    for (guint i = 0; i < tt_keys_n(topo->keys); i++)
        if (is_first_of_section(topo->keys, i))
            append_section(text, topo, tt_keys_nth(topo->keys, i)->section);
    return g_string_free(text, FALSE);
}
