/* run_backend.h - run with somebody else's collectives: the same table, rows and exit codes. */
#pragma once
#include "cli/options.h"
#include "exec/backend.h"

/* NULL with an error that lists those there are. */
const TtBackend *tt_run_backend_named(const char *name, GError **error);

/* What `tutti run --backend NAME` does, on every rank; rank 0 alone prints. Returns an exit code. */
int tt_run_backend(const TtOptions *options, const TtBackend *backend, GError **error);
