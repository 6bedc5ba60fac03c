/* watch.h - the parent's eye on its ranks: done, dead or stuck, and in which words to say so. */
#pragma once
#include "exec/shared.h"

typedef struct {
    TtRegion *region;
    GPid *pids;      /* [n_ranks]; 0 once reaped; NULL if the ranks are threads */
    int *pid_fds;    /* [n_ranks]; -1 where the system has none */
    int *stopped_by; /* [n_ranks]; the signal that stopped a rank, or 0 */
    double timeout_s;
} TtWatch;

/* Returns when every rank has finished job @number. Else FALSE with TT_EXEC_ERROR_DEAD or _HANG. */
gboolean tt_watch_wait(TtWatch *self, guint32 number, GError **error);

/* FALSE with TT_EXEC_ERROR_DEAD if a rank has died. */
gboolean tt_watch_alive(TtWatch *self, GError **error);

/* Kills and reaps what is left of the ranks. @grace_s: how long they may take to leave by
 * themselves. */
void tt_watch_end(TtWatch *self, double grace_s);
