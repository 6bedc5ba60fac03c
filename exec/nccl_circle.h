/* nccl_circle.h - the processes of a backend that meets as our own teams do: everyone's data to everyone, and
 * what went wrong to all of them. Private to backend_nccl.c.
 *
 *     TELL      my part of a gather   -> root          TROUBLE  what is wrong here  -> root
 *     ALL       everyone's            <- root          TROUBLE  what is wrong       <- root, to everyone
 *
 * One process alone is a circle, too. Knows no NCCL. One thread at a time.
 */
#pragma once
#include "exec/backend.h"

typedef struct TtCircle TtCircle;

/* Meets the others (tt_control_open()). NULL with an error that this process alone may know. */
TtCircle *tt_circle_open(const TtBackendJoin *join, GError **error);
void tt_circle_close(TtCircle *self);

gboolean tt_circle_is_root(const TtCircle *self);
guint tt_circle_n_processes(const TtCircle *self);
void tt_circle_ranks(const TtCircle *self, guint process, guint *first_rank, guint *n_local);
void tt_circle_set_n_ranks(TtCircle *self, guint n_ranks); /* of one process, which was not told */
guint tt_circle_process_of(const TtCircle *self, guint rank);

/* Every process gives @mine [bytes], and @all [n_processes][bytes] is filled in their order. */
gboolean tt_circle_gather(TtCircle *self, gconstpointer mine, guint bytes, gpointer all,
                          double timeout_s, GError **error);

/* Whether all others are still there and well; does not wait. */
gboolean tt_circle_look(TtCircle *self, GError **error);

/* Tells the others of @why (taken), which is then, or if the root has heard of another first, that one, the error
 * of all. What gather() and look() said is known already, and just passed on. Always FALSE. */
gboolean tt_circle_fail(TtCircle *self, GError *why, GError **error);

/* The error was told to all: rank 0 speaks. FALSE: the root has gone, everyone speaks. */
gboolean tt_circle_all_know(const TtCircle *self);
