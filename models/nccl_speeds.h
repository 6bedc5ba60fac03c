/* nccl_speeds.h - the speeds per channel NCCL's search tries, high to low. */
#pragma once
#include "models/nccl.h"

/* GB/s, *n of them; @inter: several nodes. By the oldest GPU of the node and the version. */
const double *tt_nccl_speeds(guint version, guint min_cc, gboolean inter, guint *n);
