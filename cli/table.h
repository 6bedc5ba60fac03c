/* table.h - nccl-tests' table: the same columns, the same way of fitting numbers into them.
 *
 * Where more than one algorithm may appear, its name follows nccl-tests' columns, so that scripts
 * that read those still do.
 */
#pragma once
#include "cli/report.h"

/* @value in @width characters: two decimals, fewer where it is large. */
char *tt_fit_number(double value, guint width);

/* predict: size count type redop | algorithm channels rounds | time algbw busbw | bound limit. */
void tt_print_predict_header(void);
void tt_print_predict_row(const TtRow *row, gboolean mark_fastest);

/* predict --library nccl: size count type redop | algorithm protocol channels loops | time algbw busbw. */
void tt_print_library_header(void);
void tt_print_library_row(const TtRow *row, gboolean mark_fastest);

/* run: nccl-tests' columns, out of place and in place, then the algorithm. */
void tt_print_run_header(void);
void tt_print_run_row(const TtRow *out_of_place, const TtRow *in_place);

/* run -I: a comment below that row for each placement. */
void tt_print_run_iterations(const TtRow *out_of_place, const TtRow *in_place);

/* compare: size count type redop | algorithm | predicted measured error | where they part. A row
 * measured in another state of the machine than the profile's is marked. */
void tt_print_compare_header(void);
void tt_print_compare_row(const TtRow *row, gboolean other_state);

/* compare --measured: size count type redop | algorithm protocol channels | times, error, bus bandwidths. */
void tt_print_measured_header(void);
void tt_print_measured_row(const TtRow *row);
