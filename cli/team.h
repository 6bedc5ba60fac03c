/* team.h - from options to a team of ranks: who starts them, transport, network, fault.
 */
#pragma once
#include "cli/options.h"
#include "exec/exec.h"

/* What options and the launcher's environment say. */
typedef struct {
    TtTeamOptions team; /* max_bytes is the caller's */
    TtLaunch launch;
    char *secret;
} TtTeamSetup;

/* @n_ranks: if neither --ranks nor a launcher says. */
gboolean tt_team_setup(TtTeamSetup *setup, const TtOptions *options, guint n_ranks, GError **error);
/* Options that go with GPUs, or do not. */
gboolean tt_team_check_gpus(const TtTeamSetup *setup, const TtOptions *options, GError **error);
void tt_team_setup_clear(TtTeamSetup *setup);

/* One of several processes, and not that of rank 0: it keeps quiet. Silences standard output. */
void tt_team_hush(void);
