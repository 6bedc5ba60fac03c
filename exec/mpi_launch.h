/* mpi_launch.h - which MPI started this process, and the module built for it. Private to
 * backend_mpi.c. */
#pragma once
#include "exec/backend_mpi_abi.h"

#include <glib.h>

typedef struct {
    const char *launcher;       /* "Open MPI's mpirun"; NULL: none */
    guint rank, n_ranks;        /* as its environment says */
    const char *const *modules; /* names of those that fit, best first, NULL-terminated */
    const char *install;        /* packages that would give one */
} TtMpiLaunch;

/* Reads the environment. */
TtMpiLaunch tt_mpi_launch(void);

/* Loads the first module that fits, for good: MPIs do not survive being unloaded.
 * TT_EXEC_ERROR_HARDWARE with what to install if there is none, SYSTEM if it does not load. */
const TtMpiModule *tt_mpi_load(const TtMpiLaunch *launch, GError **error);
