/* crossovers.h - which algorithm is fastest from where to where, in words. */
#pragma once
#include "cli/report.h"

/* "direct up to 64 KiB, double-tree to 8 MiB, ring above", from the rows marked fastest, in their
 * order, of the first type and reduction; with @protocols "ring ll". NULL if there are fewer than two
 * sizes. Caller frees. */
char *tt_crossovers(const TtReport *report, gboolean protocols);
