/* backend.h - somebody else's collective under our table: MPI's, NCCL's.
 *
 * A backend is one file exec/backend_<name>.c that defines `const TtBackend tt_backend_<name>`; the
 * build lists them. Its ranks are run by processes that each run this whole program, a rank or several
 * each; they have the same arguments or find out that they have not (tt_backend_agree()).
 * It gets the inputs of exec/pattern.h and its results are checked as those of our own ranks are.
 *
 * All errors are TT_EXEC_ERROR. What all processes know, that of rank 0 says for all; what one alone knows
 * (`alone`), it says itself.
 */
#pragma once
#include "exec/exec.h"

/* What a backend may need to find the others, as the command line and the environment say it. */
typedef struct {
    const char *line; /* the command, for messages that tell what to type */
    double timeout_s;
    /* Of a backend that `meets`: */
    const TtLaunch *launch;                /* n_ranks 0: one process, not told how many ranks */
    const char *secret, *interface, *gpus; /* NULL: none; chosen; "0,1", NULL: all */
} TtBackendJoin;

/* Where this process stands among the ranks: rank .. rank + n_local - 1 are its own. */
typedef struct {
    guint rank, n_local, n_ranks; /* the rank as the launcher told, if join() failed */
    char library[256];            /* "Open MPI v4.1.4, ..." */
    char settings[1024]; /* what in the environment changes results, "NCCL_ALGO=Ring ..."; "" */
    gboolean alone;      /* the last error is known to this process only */
} TtBackendPlace;

typedef struct {
    const char *name; /* "mpi": of --backend, and in the algorithm column */

    /* Its processes are found and meet as those of our own teams (launch.h): --ranks, --meet, --rank,
     * --hostfile, --interface apply. */
    gboolean meets;

    /* Finds the library and the other ranks. @place is written even on failure, and then kept until
     * leave(). NULL with an error. */
    gpointer (*join)(const TtBackendJoin *join, TtBackendPlace *place, GError **error);

    /* Whether it can do such a call at all. */
    gboolean (*supports)(gpointer self, const TtPlanSpec *spec, GError **error);

    /* What a rank runs on, for the heading: "device 3 0000:1b:00.0 NVIDIA H200". NULL: nothing to say. */
    const char *(*describe)(gpointer self, guint rank);

    /* Collective: @mine [bytes] of every rank's process in the order of ranks to @all [n_ranks][bytes]. */
    gboolean (*gather)(gpointer self, gconstpointer mine, guint bytes, gpointer all,
                       GError **error);

    /* Collective: warm-up, barrier, timed loop, then a checked run. @call: what is to be done, as
     * any plan would; how is the backend's affair. Every rank gets the same result. */
    gboolean (*run)(gpointer self, const TtPlan *call, const TtRunOptions *options,
                    TtRunResult *result, GError **error);

    /* Collective, unless something went wrong. */
    void (*leave)(gpointer self);
} TtBackend;

extern const TtBackend *const tt_backends[]; /* sorted by name, NULL at the end */

const TtBackend *tt_backend_find(const char *name); /* NULL if there is none */

/* Collective: whether all ranks were given the same (@arguments, a line that says all that matters)
 * and none has a @problem (NULL: none). If not, every rank gets the same error, which names ranks; a
 * problem keeps its domain and code. */
gboolean tt_backend_agree(const TtBackend *backend, gpointer self, const TtBackendPlace *place,
                          const char *arguments, const GError *problem, GError **error);
