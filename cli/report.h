/* report.h - what a command found, as rows; once as a table, CSV or JSON.
 *
 * A row is flat: one algorithm, one size, one placement. Its fields and their names are those of
 * the design's "Machine-readable output", the same in CSV and JSON. CSV and the table are written
 * as rows arrive, JSON when all is done. Comments and tables appear only when neither was asked
 * for.
 */
#pragma once
#include "algos/schedule.h"
#include "cli/options.h"

#include <math.h>

/* Which fields a command's rows have, beside those that say what was called. */
typedef enum {
    TT_FIELDS_CALL = 1 << 0,    /* type redop root count */
    TT_FIELDS_PLAN = 1 << 1,    /* channels rounds */
    TT_FIELDS_TIME = 1 << 2,    /* time_us algbw_gbps busbw_gbps */
    TT_FIELDS_BOUND = 1 << 3,   /* bound_us limit bottleneck */
    TT_FIELDS_FASTEST = 1 << 4, /* fastest */
    TT_FIELDS_WRONG = 1 << 5,   /* wrong in_place */
    TT_FIELDS_COMPARE = 1 << 6, /* predicted_us measured_us error flag_ns diverges */
    TT_FIELDS_MEASURED =
        1 << 8, /* file table in_place predicted_us measured_us error and both busbw */
    TT_FIELDS_ITERATIONS = 1 << 9, /* min_us p50_us p95_us p99_us max_us cv */
    TT_FIELDS_FLIGHT = 1 << 11,    /* in_flight groups */
    TT_FIELDS_ARRIVALS = 1 << 10,  /* arrivals */
    TT_FIELDS_VERIFY = 1 << 7,     /* cases steps messages seconds verdict message */
} TtFields;

/* NAN, -1 and NULL stand for "not known": null in JSON, empty in CSV. Text is borrowed. */
typedef struct {
    const char *collective, *algorithm, *protocol;
    guint64 channels, ranks, rounds, bytes, count;
    guint64 in_flight, groups; /* collectives at once: of each group, and groups */
    const char *type, *redop;
    gint64 root; /* -1: no root */
    double time_us, algbw_gbps, busbw_gbps;
    double min_us, p50_us, p95_us, p99_us, max_us, cv; /* of single iterations */
    double bound_us;
    const char *limit, *bottleneck;
    gboolean fastest, in_place;
    gint64 wrong; /* -1: not checked */
    double predicted_us, measured_us, error, flag_ns;
    double predicted_busbw_gbps, measured_busbw_gbps;
    const char *file; /* a measurement's, and which table in it */
    guint64 table;
    const char *diverges; /* the step that differs most */
    guint64 cases, steps, messages;
    double seconds;
    const char *verdict, *message;
    const char *arrivals; /* JSON */
} TtRow;

/* A row that says what @plan does in @c and nothing about time yet. Borrows the plan's name. */
TtRow tt_row_for(const TtPlan *plan, const TtCase *c);

/* time_us, algbw and busbw of that row. */
void tt_row_set_time(TtRow *row, TtCollective collective, double time_s);

typedef struct TtReport TtReport;

/* Borrows @options. */
TtReport *tt_report_new(const TtOptions *options, guint fields);
void tt_report_free(TtReport *report);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtReport, tt_report_free)

gboolean tt_report_is_table(const TtReport *report);

/* The JSON header. @nodes 0: not known. The config holds what was in effect, in order of the calls.
 */
void tt_report_set_topology(TtReport *report, const char *name, guint ranks, guint nodes);
void tt_report_config(TtReport *report, const char *key, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
void tt_report_config_number(TtReport *report, const char *key, double value);

/* Kept for JSON, said at once on standard error unless --quiet; the same text only once. */
void tt_report_warn(TtReport *report, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* "# ..." on standard output, in table form only. */
void tt_report_comment(const TtReport *report, const char *format, ...) G_GNUC_PRINTF(2, 3);

void tt_report_gap(const TtReport *report); /* "#": an empty one */

/* A further member of the JSON object: @json is a value in JSON's own syntax. */
void tt_report_set_extra(TtReport *report, const char *name, const char *json);

/* Copies the row, text and all. */
void tt_report_add(TtReport *report, const TtRow *row);

guint tt_report_n_rows(const TtReport *report);
const TtRow *tt_report_row(const TtReport *report, guint i);

/* Whole files, for --plot and -J. Caller frees. */
char *tt_report_to_csv(const TtReport *report);

/* Prints the JSON if it was asked for and writes -J. */
gboolean tt_report_finish(TtReport *report, GError **error);
