#include "cli/run_rows.h"
#include "cli/table.h"

#include <stdio.h>

static void
count(TtRunRows *rows, const TtRow *row)
{
    rows->busbw_sum += row->busbw_gbps;
    rows->n_busbw++;
    rows->n_wrong += row->wrong > 0;
}

void
tt_run_rows_add(TtRunRows *rows, TtReport *report, const TtRow *out_of_place, const TtRow *in_place)
{
    count(rows, out_of_place);
    count(rows, in_place);
    tt_report_add(report, out_of_place);
    tt_report_add(report, in_place);
    if (tt_report_is_table(report))
        tt_print_run_row(out_of_place, in_place);
    fflush(stdout);
}

/* Rows that were not checked say -1. */
static gboolean
any_checked(const TtReport *report)
{
    for (guint i = 0; i < tt_report_n_rows(report); i++)
        if (tt_report_row(report, i)->wrong >= 0)
            return TRUE;
    return tt_report_n_rows(report) == 0;
}

void
tt_run_rows_finish(const TtRunRows *rows, const TtReport *report)
{
    if (any_checked(report))
        tt_report_comment(report, "Out of bounds values : %u %s", rows->n_wrong,
                          rows->n_wrong ? "FAILED" : "OK");
    tt_report_comment(report, "Avg bus bandwidth    : %g ",
                      rows->n_busbw ? rows->busbw_sum / rows->n_busbw : 0);
}
