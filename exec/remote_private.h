/* remote_private.h - inside remote*.c: messages and state.
 */
#pragma once
#include "exec/remote.h"

enum {
    TT_REMOTE_JOB = 1,
    TT_REMOTE_READY,
    TT_REMOTE_GO,
    TT_REMOTE_PROGRESS,
    TT_REMOTE_DONE,
    TT_REMOTE_RESULT,
    TT_REMOTE_ABORT,
    TT_REMOTE_LEAVE,
    TT_REMOTE_ALIVE
};

/* Of a rank in a PROGRESS message; n_lanes counts of finished steps (guint64) follow. */
typedef struct {
    guint32 state, wait_peer, wait_lane, ready, n_lanes, number;
    gint32 status, stopped_by;
    guint64 heartbeat;
    TtTrouble trouble;
} TtRemoteProgress;

/* Of a rank in a DONE message; the parts' wrong elements (gint64), n_times doubles, n_stamps TtStamps, n_waited TtWaited and n_events TtEvents follow. */
typedef struct {
    guint64 n_events, n_stamps;
    double tick_s;
    guint32 n_times, n_waited;
} TtRemoteDone;

/* What a process tells when all have met. */
typedef struct {
    char host_id[96], boot_id[40], host_name[64], same[256];
    gint32 pid, arena_fd;
    guint64 arena_bytes, token[2];
} TtRemoteCard;

struct TtRemote {
    TtControl *control;
    guint process, n_processes;
    TtRegion *region;    /* borrowed */
    TtWatch *watch;      /* borrowed */
    TtRemoteCard *cards; /* [n_processes] */
    GArray *pids;        /* gint32, of ranks */
    int arena_fd;

    guint32 number;   /* of the job */
    gint64 *heard_us; /* [n_processes], by the root */
    gboolean *left;   /* [n_processes]: said that it goes */
    gboolean aborted; /* all have been told what went wrong */

    GByteArray *told; /* the last PROGRESS */
    gint64 told_us, changed_us;

    GBytes *job; /* heard, not yet run */
    guint32 go;
    TtRunResult *results; /* [n_parts of the job], heard; NULL: not yet */
};

/* Takes in all messages that are there, waiting at most @timeout_ms for the first. FALSE: the team is to end, and why. */
gboolean tt_remote_hear(TtRemote *self, int timeout_ms, GError **error);

/* The ranks of a process look as if stopped, until it is heard of. */
void tt_remote_mark_silent(TtRemote *self, guint process);
