/* run_rows.h - the rows of run and what is said of all of them at the end, whoever did the work. */
#pragma once
#include "cli/report.h"

/* Zero-initialised. */
typedef struct {
    double busbw_sum;
    guint n_busbw, n_wrong; /* rows, and those with wrong elements */
} TtRunRows;

/* To the report, and as a line of the table at once. */
void tt_run_rows_add(TtRunRows *rows, TtReport *report, const TtRow *out_of_place,
                     const TtRow *in_place);

/* The comments under the table. */
void tt_run_rows_finish(const TtRunRows *rows, const TtReport *report);
