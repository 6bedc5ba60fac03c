/* calibrate_from.h - constants of NCCL's time model from measurements: `tutti calibrate --from`. */
#pragma once
#include "cli/options.h"

/* Fits on @paths (files, or folders of them, NULL-terminated) and writes @output, or prints to stdout if NULL.
 * Returns an exit code. */
int tt_calibrate_from(char **paths, const char *output, gboolean quiet, GError **error);
