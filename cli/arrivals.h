/* arrivals.h - who came late and who waited for whom, as a table and as JSON.
 */
#pragma once
#include "exec/exec.h"

/* A comment line for each rank of @arrivals, with a heading, and the verdicts. */
void tt_print_arrivals(const char *placement, const GArray *arrivals, guint64 n_iterations);

/* "rank 3 was late in 18 of 20 iterations, by 2.10 ms in the median"; NULL if it was not in more than half of
 * them. Caller frees. */
char *tt_arrivals_verdict(const TtArrival *arrival, guint64 n_iterations);

/* An array of objects. Caller frees. */
char *tt_arrivals_to_json(const GArray *arrivals);
