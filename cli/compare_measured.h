/* compare_measured.h - compare with what somebody measured: logs of nccl-tests, published measurements.
 */
#pragma once
#include "cli/options.h"

/* @files: char *. Everything is read and predicted before the first row is printed. Returns an exit code. */
int tt_compare_measured(const TtOptions *options, const GPtrArray *files, gboolean in_place,
                        GError **error);
