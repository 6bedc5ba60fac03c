#include "topologies/fabric.h"

#include <string.h>

const char *const *
tt_fabric_keys(void)
{
    static gsize ready;
    static GPtrArray *all;

    if (g_once_init_enter(&ready)) {
        all = g_ptr_array_new();
        g_ptr_array_add(all, (gpointer) "type");
        g_ptr_array_add(all, (gpointer) "latency");
        g_ptr_array_add(all, (gpointer) "burst");
        for (guint i = 0; tt_fabrics[i]; i++)
            for (guint k = 0; tt_fabrics[i]->keys[k]; k++)
                if (!g_ptr_array_find_with_equal_func(all, tt_fabrics[i]->keys[k], g_str_equal,
                                                      NULL))
                    g_ptr_array_add(all, (gpointer)tt_fabrics[i]->keys[k]);
        g_ptr_array_add(all, NULL);
        g_once_init_leave(&ready, 1);
    }
    return (const char *const *)all->pdata;
}

static const TtFabric *
find_fabric(TtKeys *keys, GError **error)
{
    g_autoptr(GString) names = g_string_new(NULL);
    const char *type = NULL;

    if (!tt_keys_text(keys, "fabric", "type", TRUE, &type, error))
        return NULL;
    for (guint i = 0; tt_fabrics[i]; i++) {
        if (strcmp(type, tt_fabrics[i]->name) == 0)
            return tt_fabrics[i];
        g_string_append_printf(names, "%s%s", i ? ", " : "", tt_fabrics[i]->name);
    }
    g_autofree char *quoted = tt_quote(type);

    tt_keys_error(keys, tt_keys_find(keys, "fabric", "type"), error, "\"%s\" is not one of %s",
                  quoted, names->str);
    return NULL;
}

gboolean
tt_network_init(TtNetwork *network, TtKeys *keys, GError **error)
{
    const char *kind = NULL;

    network->fabric = find_fabric(keys, error);
    if (!network->fabric ||
        !tt_keys_time(keys, "fabric", "latency", TRUE, &network->hop_ps, error) ||
        !tt_keys_bytes(keys, "fabric", "burst", FALSE, &network->burst_bytes, error) ||
        !tt_keys_text(keys, "nic", "kind", TRUE, &kind, error))
        return FALSE;
    network->kind = g_strdup(kind);
    return network->fabric->init(network, keys, error);
}

void
tt_network_clear(TtNetwork *network)
{
    g_free(network->kind);
    network->kind = NULL;
}
