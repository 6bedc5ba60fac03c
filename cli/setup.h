/* setup.h - from options to what is simulated: topology, profile, ranks, and the plan to ask for.
 */
#pragma once
#include "cli/report.h"

typedef struct {
    const TtOptions *options; /* borrowed */
    TtTopology *topo;
    TtProfile *profile;
    guint n_ranks, group_size, n_channels;
} TtSetup;

/* Opens what --topo, --set and --profile name (profile: @default_profile if none was), tells
 * @report about it and about settings that nothing used. Ranks: --ranks, else all of the topology.
 */
gboolean tt_setup_open(TtSetup *setup, const TtOptions *options, const char *default_profile,
                       TtReport *report, GError **error);
void tt_setup_clear(TtSetup *setup);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(TtSetup, tt_setup_clear)

/* What to ask a plan for; slot_bytes is --chunk-bytes, 0 if that was left to be chosen. */
TtPlanSpec tt_setup_spec(const TtSetup *setup, const TtCase *c);
