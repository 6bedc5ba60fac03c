/* team_private.h - inside team*.c.
 */
#pragma once
#include "exec/remote.h"

#include <pthread.h>

struct TtTeam {
    TtRegion *region;
    TtWatch watch;
    TtRemote *remote;   /* the other processes; NULL: there are none */
    pthread_t *threads; /* [n_ranks] if the ranks are threads */
    guint n_started;
    gboolean broken;
    guint64 start_ticks; /* one instant, on two clocks */
    gint64 start_us;
};

/* Wakes this process's ranks with a command. */
void tt_team_send_command(TtTeam *team, TtCommandKind command);

/* Every rank of this process is gone when this returns, and the other processes know @why (may be NULL). */
void tt_team_end(TtTeam *team, double grace_s, const GError *why);
