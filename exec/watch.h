/* watch.h - the parent's eye on its ranks: done, dead or stuck, and in which words to say so. */
#pragma once
#include "exec/shared.h"

typedef struct TtRemote TtRemote; /* remote.h */

/* In stopped_by: no signal; the process that runs the rank does not answer. */
#define TT_WATCH_SILENT (-1)

typedef struct {
    TtRegion *region;
    TtRemote *remote;          /* the other processes of the team; NULL: there are none */
    guint first_rank, n_ranks; /* whose progress this process waits for: all, at the root */
    GPid *
        pids; /* [n_ranks]; 0 once reaped, and for ranks of other processes; NULL if the ranks are threads */
    int *pid_fds;    /* [n_ranks]; -1 where the system has none */
    int *stopped_by; /* [n_ranks]; the signal that stopped a rank, or 0 */
    int *status;     /* [n_ranks]; how it ended, as waitpid() says; -1: it has not */
    double timeout_s;
    gint64 broken_us; /* when a rank first told of a broken connection; 0: none has */
} TtWatch;

/* What is waited for: all ranks reachable, ready for a job, done with it. */
typedef enum { TT_PHASE_UP, TT_PHASE_READY, TT_PHASE_DONE } TtPhase;

/* Returns when every rank this process waits for has got so far. Else FALSE: what went wrong, by class. */
gboolean tt_watch_wait(TtWatch *self, TtPhase phase, guint32 number, GError **error);

/* Not at the root: waits for its word to begin (READY) or for the results (DONE): [n_parts of the job], may be NULL. */
gboolean tt_watch_wait_root(TtWatch *self, TtPhase phase, guint32 number, TtRunResult *results,
                            GError **error);

/* FALSE if something has gone wrong. */
gboolean tt_watch_alive(TtWatch *self, GError **error);

/* Kills and reaps what is left of the ranks. @grace_s: how long they may take to leave by
 * themselves. */
void tt_watch_end(TtWatch *self, double grace_s);

/* diagnose.c: the words. @how: "rank 3 died of ..."; its last step and who waits for it are added. */
void tt_diagnose_gone(const TtRegion *region, guint rank, const char *how, int code,
                      GError **error);
void tt_diagnose_death(const TtRegion *region, guint dead, int status, GError **error);
void tt_diagnose_trouble(const TtRegion *region, guint rank, GError **error);
/* @part: the collective that stands still while others run; NULL: all. */
void tt_diagnose_hang(const TtRegion *region, const TtJobPart *part, const int *stopped_by,
                      TtPhase phase, double timeout_s, GError **error);
