/* measure.h - measure one plan on a team, and say in which state of the machine.
 *
 * Virtual cores of a shared machine move: two that share a cache now may sit on different dies a
 * second later, and a flag then takes four times as long to cross. A sample is therefore one short
 * timed loop with the flag latency measured beside it. Samples are gathered by the state they were
 * taken in, and the median of one state's is reported.
 */
#pragma once
#include "exec/exec.h"
#include "models/profile.h"

/* An iteration longer than this is measured fewer times: noise is small beside it. */
#define TT_MEASURE_SLOW_S 0.2

typedef struct {
    gboolean in_place, check;
    guint samples;           /* wanted of one state; 0: 7 */
    double sample_s;         /* aim for timed loops of this length; 0: 2 ms */
    const TtProfile *states; /* those of interest; NULL: any */
    double patience_s;       /* stop waiting for one of them after this long; 0: 1 s */
} TtMeasureOptions;

typedef struct {
    double time_s;         /* median over the samples used */
    double low_s, high_s;  /* their quartiles */
    double flag_s;         /* their median flag latency */
    guint n_used, n_taken; /* samples used, samples in all */
    const TtProfile
        *state;   /* that of the samples used; NULL: none of interest came up, or any would do */
    gint64 wrong; /* elements off the reference; -1 if not checked */
    TtGpuProtocol gpu_protocol; /* of the last sample */
} TtMeasurement;

gboolean tt_measure(TtTeam *team, const TtPlan *plan, const TtMeasureOptions *options,
                    TtMeasurement *measurement, GError **error);

/* Median of @values [n], which it sorts; 0 if n is 0. */
double tt_median(double *values, guint n);

/* The value below which a share @q (0..1) of the sorted @values [n] lies, between neighbours linear. */
double tt_quantile(const double *sorted, guint n, double q);
