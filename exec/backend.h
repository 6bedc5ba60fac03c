/* backend.h - somebody else's collective under our table: MPI's now, NCCL's some day.
 *
 * A backend is one file exec/backend_<name>.c that defines `const TtBackend tt_backend_<name>`; the
 * build lists them. Its ranks are processes that somebody else's launcher started, each running this
 * whole program; they have the same arguments or find out that they have not (tt_backend_agree()).
 * It gets the inputs of exec/pattern.h and its results are checked as those of our own ranks are.
 *
 * All errors are TT_EXEC_ERROR. After USAGE, SYSTEM and HARDWARE (what is not installed here) every
 * rank knows: rank 0 says it for all. DEAD is known to this rank alone, and the others wait for it:
 * it says so and ends without leave(), which makes the launcher end them.
 */
#pragma once
#include "exec/exec.h"

/* Where this process stands among the ranks. */
typedef struct {
    guint rank, n_ranks; /* the rank as the launcher told, if join() failed */
    char library[256];   /* "Open MPI v4.1.4, ..." */
} TtBackendPlace;

typedef struct {
    const char *name; /* "mpi": of --backend, and in the algorithm column */

    /* Whether it can do such a call at all. Needs no join. */
    gboolean (*supports)(const TtPlanSpec *spec, GError **error);

    /* Finds the launcher, the library and the other ranks. @line: the command, for messages that
     * tell what to type. @place is written even on failure. NULL with an error. */
    gpointer (*join)(const char *line, double timeout_s, TtBackendPlace *place, GError **error);

    /* Collective: every rank's @mine [bytes] in the order of ranks to @all [n_ranks][bytes]. */
    gboolean (*gather)(gpointer self, gconstpointer mine, guint bytes, gpointer all,
                       GError **error);

    /* Collective: warm-up, barrier, timed loop, then a checked run. @call: what is to be done, as
     * any plan would; how is the backend's affair. Every rank gets the same result. */
    gboolean (*run)(gpointer self, const TtPlan *call, const TtRunOptions *options,
                    TtRunResult *result, GError **error);

    /* Collective. */
    void (*leave)(gpointer self);
} TtBackend;

extern const TtBackend *const tt_backends[]; /* sorted by name, NULL at the end */

const TtBackend *tt_backend_find(const char *name); /* NULL if there is none */

/* Collective: whether all ranks were given the same (@arguments, a line that says all that matters)
 * and none has a @problem (NULL: none). If not, every rank gets the same error, which names ranks; a
 * problem keeps its domain and code. */
gboolean tt_backend_agree(const TtBackend *backend, gpointer self, const TtBackendPlace *place,
                          const char *arguments, const GError *problem, GError **error);
