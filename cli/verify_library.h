/* verify_library.h - `tutti verify --library nccl`. */
#pragma once
#include "cli/cli.h"

/* @collectives: TT_BIT() of those asked for. Returns the exit status. */
int tt_verify_library(const TtOptions *options, guint collectives, GError **error);
