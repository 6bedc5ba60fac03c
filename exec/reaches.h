/* reaches.h - what is written after --transport.
 */
#pragma once
#include "exec/shared.h"

typedef struct {
    gboolean threads;                            /* ranks are threads of this process */
    gboolean gpu;                                /* ... and their lanes run on GPUs */
    const TtTransport *transports[TT_N_REACHES]; /* NULL: shared memory */
} TtReaches;

/* "shm" (NULL), "tcp", "shm,tcp", "threads", "threads,tcp", "cuda", "cuda,verbs", ... FALSE with TT_EXEC_ERROR_USAGE. */
gboolean tt_reaches_parse(const char *text, TtReaches *reaches, GError **error);
