#include "cli/setup.h"

#include <string.h>

static guint
gcd(guint a, guint b)
{
    return b == 0 ? a : gcd(b, a % b);
}

/* The largest groups of equal size that never straddle two nodes. */
static guint
usual_group(const TtSetup *setup)
{
    guint per_node = tt_topology_ranks_per_node(setup->topo);

    return setup->n_ranks <= per_node ? setup->n_ranks : gcd(setup->n_ranks, per_node);
}

/* A ring per NIC, so that all of a node's NICs work; one where there is no network in the way. */
static guint
usual_channels(const TtSetup *setup)
{
    if (setup->n_ranks <= tt_topology_ranks_per_node(setup->topo))
        return 1;
    return MAX(1, tt_topology_nics_per_node(setup->topo));
}

static gboolean
choose_ranks(TtSetup *setup, GError **error)
{
    const TtOptions *options = setup->options;
    guint all = tt_topology_n_ranks(setup->topo);

    setup->n_ranks = options->n_ranks ? options->ranks[0] : all;
    if (options->n_ranks > 1 || setup->n_ranks > all) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "--ranks must be one number, 1 .. %u: what %s has", all,
                    tt_topology_name(setup->topo));
        return FALSE;
    }
    setup->group_size = options->group ? options->group : usual_group(setup);
    setup->n_channels = options->channels ? options->channels : usual_channels(setup);
    return TRUE;
}

static void
describe(const TtSetup *setup, TtReport *report)
{
    guint per_node = tt_topology_ranks_per_node(setup->topo);
    const char *const *warnings = tt_topology_warnings(setup->topo);

    tt_report_set_topology(report, tt_topology_name(setup->topo), setup->n_ranks,
                           (setup->n_ranks + per_node - 1) / per_node);
    tt_report_config(report, "profile", "%s", setup->profile->name);
    tt_report_config(report, "level", "%s", tt_level_name(setup->options->level));
    tt_report_config_number(report, "channels", setup->n_channels);
    tt_report_config_number(report, "group", setup->group_size);
    for (guint i = 0; setup->options->settings && setup->options->settings[i]; i++) {
        const char *equals = strchr(setup->options->settings[i], '=');
        g_autofree char *key = g_strdup_printf(
            "set %.*s", (int)(equals - setup->options->settings[i]), setup->options->settings[i]);

        tt_report_config(report, key, "%s", equals + 1);
    }
    for (guint i = 0; warnings && warnings[i]; i++)
        tt_report_warn(report, "%s", warnings[i]);
}

/* "this" holds a rank per core unless more are asked for: then they share the cores. */
static TtTopology *
open_topology(const TtOptions *options, GError **error)
{
    g_autofree char *crowded = NULL;
    TtTopology *topo = tt_topology_open(options->topo, options->settings, error);

    if (!topo || strcmp(options->topo, "this") != 0 || options->n_ranks != 1 ||
        options->ranks[0] <= tt_topology_n_ranks(topo))
        return topo;
    tt_topology_free(topo);
    crowded = g_strdup_printf("this:%u", options->ranks[0]);
    return tt_topology_open(crowded, options->settings, error);
}

gboolean
tt_setup_open(TtSetup *setup, const TtOptions *options, const char *default_profile,
              TtReport *report, GError **error)
{
    *setup = (TtSetup){ .options = options };
    if (!options->topo) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "--topo is needed: PRESET[:NODES], FILE.ini or this (see tutti topo list)");
        return FALSE;
    }
    setup->topo = open_topology(options, error);
    if (!setup->topo)
        return FALSE;
    setup->profile = tt_profile_open(options->profile ? options->profile : default_profile, error);
    if (!setup->profile || !choose_ranks(setup, error)) {
        tt_setup_clear(setup);
        return FALSE;
    }
    describe(setup, report);
    return TRUE;
}

void
tt_setup_clear(TtSetup *setup)
{
    g_clear_pointer(&setup->topo, tt_topology_free);
    g_clear_pointer(&setup->profile, tt_profile_free);
}

TtPlanSpec
tt_setup_spec(const TtSetup *setup, const TtCase *c)
{
    const TtOptions *options = setup->options;

    return (TtPlanSpec){
        .collective = options->collective,
        .n_ranks = setup->n_ranks,
        .count = c->vector_count,
        .type = c->type,
        .redop = c->redop,
        .root = options->root,
        .n_channels = setup->n_channels,
        .n_slots = options->slots,
        .slot_bytes = options->chunk_bytes == TT_CHUNK_AUTO ? 0 : options->chunk_bytes,
        .group_size = setup->group_size,
    };
}
