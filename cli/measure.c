#include "cli/measure.h"

#include <stdlib.h>

#define STATE_FACTOR 1.5
#define MAX_ITERATIONS 2000
#define MISS_PAUSE_US 20000 /* states last a quarter of a second and more; no use asking at once */

static int
compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double
tt_quantile(const double *sorted, guint n, double q)
{
    double at = q * (n - 1);
    guint below = (guint)at;

    if (n == 0)
        return 0;
    if (below + 1 >= n)
        return sorted[n - 1];
    return sorted[below] + (at - below) * (sorted[below + 1] - sorted[below]);
}

double
tt_median(double *values, guint n)
{
    if (n == 0)
        return 0;
    qsort(values, n, sizeof *values, compare_doubles);
    return tt_quantile(values, n, 0.5);
}

double
tt_usual_state(double *flags, guint n)
{
    guint best = 0, best_n = 0;

    if (n == 0)
        return 0;
    qsort(flags, n, sizeof *flags, compare_doubles);
    for (guint i = 0, end = 0; i < n; i++) {
        while (end < n && flags[end] <= flags[i] * STATE_FACTOR)
            end++;
        if (end - i > best_n) {
            best = i;
            best_n = end - i;
        }
    }
    return tt_quantile(flags + best, best_n, 0.5);
}

static gboolean
same_state(double flag_s, double wanted_s)
{
    return wanted_s <= 0 || (flag_s < wanted_s * STATE_FACTOR && flag_s > wanted_s / STATE_FACTOR);
}

/* Iterations that make one timed loop last about @sample_s. */
static gboolean
choose_iterations(TtTeam *team, const TtPlan *plan, const TtMeasureOptions *options, guint *iterations,
                  GError **error)
{
    TtRunOptions run = { .warmup = 1, .iterations = 2, .repeats = 1, .in_place = options->in_place };
    double sample_s = options->sample_s > 0 ? options->sample_s : 2e-3;
    TtRunResult result = { 0 };

    if (!tt_team_run(team, plan, &run, &result, error))
        return FALSE;
    *iterations = CLAMP(sample_s / MAX(result.time_s, 1e-9), 1, MAX_ITERATIONS);
    tt_run_result_clear(&result);
    return TRUE;
}

static gboolean
check_once(TtTeam *team, const TtPlan *plan, gboolean in_place, gint64 *wrong, GError **error)
{
    TtRunOptions run = { .iterations = 1, .repeats = 1, .in_place = in_place, .check = TRUE };
    TtRunResult result = { 0 };

    if (!tt_team_run(team, plan, &run, &result, error))
        return FALSE;
    *wrong = result.wrong;
    tt_run_result_clear(&result);
    return TRUE;
}

typedef struct {
    GArray *time_s, *flag_s; /* samples in the state */
    GArray *other_time_s, *other_flag_s;
} Samples;

static void
samples_init(Samples *s)
{
    GArray **arrays[] = { &s->time_s, &s->flag_s, &s->other_time_s, &s->other_flag_s };

    for (guint i = 0; i < G_N_ELEMENTS(arrays); i++)
        *arrays[i] = g_array_new(FALSE, FALSE, sizeof(double));
}

static void
samples_clear(Samples *s)
{
    g_array_unref(s->time_s);
    g_array_unref(s->flag_s);
    g_array_unref(s->other_time_s);
    g_array_unref(s->other_flag_s);
}

static gboolean
take_samples(TtTeam *team, const TtPlan *plan, const TtMeasureOptions *options, guint iterations,
             Samples *samples, GError **error)
{
    TtRunOptions run = { .warmup = MIN(iterations, 2),
                         .iterations = iterations,
                         .repeats = 1,
                         .in_place = options->in_place };
    guint wanted = options->samples ? options->samples : 7;
    gint64 patience_us = (options->patience_s > 0 ? options->patience_s : 1) * 1e6;
    gint64 deadline_us = g_get_monotonic_time() + patience_us;

    while (samples->time_s->len < wanted) {
        TtRunResult result = { 0 };
        gboolean hit;

        if (!tt_team_run(team, plan, &run, &result, error))
            return FALSE;
        hit = same_state(result.flag_s, options->flag_s);
        g_array_append_val(hit ? samples->time_s : samples->other_time_s, result.time_s);
        g_array_append_val(hit ? samples->flag_s : samples->other_flag_s, result.flag_s);
        tt_run_result_clear(&result);
        if (hit)
            continue;
        if (g_get_monotonic_time() > deadline_us && samples->other_time_s->len >= wanted)
            break;
        g_usleep(MISS_PAUSE_US);
    }
    return TRUE;
}

gboolean
tt_measure(TtTeam *team, const TtPlan *plan, const TtMeasureOptions *options,
           TtMeasurement *measurement, GError **error)
{
    TtMeasurement m = { .wrong = -1 };
    Samples samples;
    GArray *time_s, *flag_s;
    guint iterations = 1;
    gboolean good;

    samples_init(&samples);
    good = choose_iterations(team, plan, options, &iterations, error) &&
           take_samples(team, plan, options, iterations, &samples, error) &&
           (!options->check || check_once(team, plan, options->in_place, &m.wrong, error));
    if (good) {
        m.n_taken = samples.time_s->len + samples.other_time_s->len;
        m.other_state = samples.time_s->len < 3;
        if (m.other_state) { /* too few to mean anything: use what there is, and say so */
            g_array_append_vals(samples.time_s, samples.other_time_s->data, samples.other_time_s->len);
            g_array_append_vals(samples.flag_s, samples.other_flag_s->data, samples.other_flag_s->len);
        }
        time_s = samples.time_s;
        flag_s = samples.flag_s;
        m.n_used = time_s->len;
        m.time_s = tt_median((double *)(void *)time_s->data, time_s->len);
        m.low_s = tt_quantile((const double *)(const void *)time_s->data, time_s->len, 0.25);
        m.high_s = tt_quantile((const double *)(const void *)time_s->data, time_s->len, 0.75);
        m.flag_s = tt_median((double *)(void *)flag_s->data, flag_s->len);
        *measurement = m;
    }
    samples_clear(&samples);
    return good;
}
