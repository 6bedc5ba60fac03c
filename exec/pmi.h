/* pmi.h - a word through the process manager of MPICH (Hydra), Intel MPI or Slurm: PMI-1 over PMI_FD.
 *
 * Lines of key=value pairs; see the Flux project's RFC 13, "Simple Process Manager Interface v1".
 */
#pragma once
#include <glib.h>

/* Rank 0 gives @mine, the others NULL; all get rank 0's, once all ranks have called. Caller frees.
 * @mine has no blanks. Says good-bye to the manager, so it works once, and MPI_Init() after it does not.
 * Errors are of TT_EXEC_ERROR. */
char *tt_pmi_exchange(int fd, const char *mine, gint64 deadline_us, GError **error);
