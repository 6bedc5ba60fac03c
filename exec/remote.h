/* remote.h - a team spread over processes: what these tell each other while it runs.
 *
 *     root                                   every other process
 *     JOB  what to run, its ranks' steps  ->
 *                                         <- READY  what its ranks believe they are to run
 *     GO   all mean the same              ->
 *                                         <- PROGRESS  now and then: how far its ranks are
 *                                         <- DONE  times, wrong elements, events
 *     RESULT                              ->
 *     ALIVE  now and then                ->
 *                                         <- PROGRESS  in answer
 *     ABORT  what went wrong              ->
 *                          LEAVE  either way, before going; what went wrong, if anything has
 *
 * The root keeps what it hears in its region, at the place where a rank of its own would have written it:
 * whoever watches and diagnoses sees all ranks alike.
 */
#pragma once
#include "exec/control.h"
#include "exec/watch.h"

typedef struct TtRemote TtRemote;

/* Meets the other processes. NULL with an error. */
TtRemote *tt_remote_open(const TtTeamOptions *options, GError **error);
void tt_remote_close(TtRemote *self);

gboolean tt_remote_is_root(const TtRemote *self);
void tt_remote_ranks(const TtRemote *self, guint *first_rank, guint *n_local, guint *n_ranks);

/* Finds out who shares a machine, and maps the memory that ranks of one machine share. What is said here must
 * be the same everywhere (@same: transport and such), else TT_EXEC_ERROR_MISMATCH. */
gboolean tt_remote_settle(TtRemote *self, TtWatch *watch, const char *same, GError **error);

/* Every rank learns where every other can be reached. @mine: this process's own ranks could not; then all
 * processes get that error. */
gboolean tt_remote_share_addresses(TtRemote *self, const GError *mine, GError **error);

/* Where a rank runs: the name of its machine, and its process id. */
const char *tt_remote_host_name(const TtRemote *self, guint rank);
GPid tt_remote_pid(const TtRemote *self, guint rank);

/* Those that came to the root's port while the processes met, and were none of them. */
guint tt_remote_n_strangers(TtRemote *self);

/* In a forked rank: lets go of what belongs to its parent. */
void tt_remote_forget(TtRemote *self);

int tt_remote_fd(const TtRemote *self);

/* Hears and tells news. FALSE: the team is to end, and why. */
gboolean tt_remote_turn(TtRemote *self, GError **error);

/* The root's: before it says who is stuck. Asks all who is still there; those that do not answer soon count as stopped.
 * FALSE: the team is to end, and why. */
gboolean tt_remote_call_roll(TtRemote *self, GError **error);

/* The root's part of a job. */
void tt_remote_send_job(TtRemote *self, guint32 number);
void tt_remote_send_go(TtRemote *self, guint32 number);
void tt_remote_send_result(TtRemote *self, const TtRunResult *results); /* [n_parts of the job] */

/* To all by the root, to the root by others. */
void tt_remote_send_abort(TtRemote *self, const GError *why);

/* The others' part. Jobs: waits for one and lays it out in the region; *more = FALSE if the root has no more. */
gboolean tt_remote_wait_job(TtRemote *self, guint32 number, gboolean *more, GError **error);
void tt_remote_send_ready(TtRemote *self, guint32 number);
gboolean tt_remote_has_go(const TtRemote *self, guint32 number);
void tt_remote_send_done(TtRemote *self, guint32 number);
gboolean tt_remote_has_result(const TtRemote *self, TtRunResult *results);

/* How long the root has not been heard of; it speaks at least every half a second while a job runs. */
double tt_remote_root_silent_s(const TtRemote *self);

/* Not at the root: it has been silent for the time-out, though it speaks twice a second. */
gboolean tt_remote_lost_root(const TtRemote *self);

/* What is wrong here is the root's to explain, who sees more: waits for its word. FALSE if none came. */
gboolean tt_remote_wait_verdict(TtRemote *self, GError **error);
