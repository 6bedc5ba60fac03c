/* predict_library.h - `tutti predict --library nccl`. */
#pragma once
#include "cli/options.h"

/* @explain: with --explain-choice. Returns an exit code. */
int tt_predict_library(const TtOptions *options, gboolean explain, GError **error);
