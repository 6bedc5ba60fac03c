/* team.h - from options to a team of ranks: transport, network, fault.
 */
#pragma once
#include "cli/options.h"
#include "exec/exec.h"

/* Fills what options say; n_ranks and max_bytes are the caller's. */
gboolean tt_team_options(const TtOptions *options, guint n_ranks, TtTeamOptions *team,
                         GError **error);
