/* measure.h - measure one plan on a team, in one and the same state of the machine.
 *
 * Virtual cores of a shared machine move: two that share a cache now may sit on different dies a second
 * later, and a flag then takes four times as long to cross. A sample is therefore one short timed loop
 * with the flag latency measured beside it; samples taken in another state than asked for are set
 * aside, and the median of the rest is reported.
 */
#pragma once
#include "exec/exec.h"

typedef struct {
    gboolean in_place, check;
    guint samples;   /* wanted in the state; 0: 7 */
    double sample_s; /* aim for timed loops of this length; 0: 2 ms */
    double flag_s;   /* the state: flag latency within a factor 1.5 of this; 0: any */
    double patience_s; /* stop looking for the state after this long; 0: 1 s */
} TtMeasureOptions;

typedef struct {
    double time_s;          /* median over the samples used */
    double low_s, high_s;   /* their quartiles */
    double flag_s;          /* their median flag latency */
    guint n_used, n_taken;  /* samples in the state, samples in all */
    gboolean other_state;   /* the state did not come up: all samples were used */
    gint64 wrong;           /* elements off the reference; -1 if not checked */
} TtMeasurement;

gboolean tt_measure(TtTeam *team, const TtPlan *plan, const TtMeasureOptions *options,
                    TtMeasurement *measurement, GError **error);

/* Flag latencies cluster by state: the median of the largest group of @flags [n] whose members lie
 * within a factor 1.5 of each other. 0 if n is 0. Sorts @flags. */
double tt_usual_state(double *flags, guint n);

/* Median of @values [n], which it sorts; 0 if n is 0. */
double tt_median(double *values, guint n);

/* The value below which a share @q (0..1) of the sorted @values [n] lies, between neighbours linear. */
double tt_quantile(const double *sorted, guint n, double q);
