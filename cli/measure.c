#include "cli/measure.h"

#include <stdlib.h>

#define MAX_ITERATIONS 10000
#define SLOW_SAMPLES   3     /* of what takes longer than TT_MEASURE_SLOW_S */
#define MISS_PAUSE_US  20000 /* states last a quarter of a second and more; no use asking at once */

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

/* Iterations that make one timed loop last about @sample_s; *time_s: one takes about so long. */
static gboolean
choose_iterations(TtTeam *team, const TtPlan *plan, const TtMeasureOptions *options,
                  guint *iterations, double *time_s, GError **error)
{
    TtRunOptions run = {
        .warmup = 1, .iterations = 2, .repeats = 1, .in_place = options->in_place
    };
    double sample_s = options->sample_s > 0 ? options->sample_s : 2e-3;
    TtRunResult result = { 0 };

    if (!tt_team_run(team, plan, &run, &result, error))
        return FALSE;
    *iterations = CLAMP(sample_s / MAX(result.time_s, 1e-9), 1, MAX_ITERATIONS);
    *time_s = result.time_s;
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

/* Samples by state: one list for each of interest, the last for all others. */
typedef struct {
    const TtProfile *state[TT_PROFILE_MAX_STATES + 1];
    GArray *time_s[TT_PROFILE_MAX_STATES + 1], *flag_s[TT_PROFILE_MAX_STATES + 1];
    guint n, n_taken;
    TtGpuProtocol gpu_protocol;
} Samples;

static void
samples_init(Samples *s, const TtProfile *states)
{
    *s = (Samples){ 0 };
    for (; states && s->n < TT_PROFILE_MAX_STATES; states = states->next)
        s->state[s->n++] = states;
    s->state[s->n++] = NULL;
    for (guint i = 0; i < s->n; i++) {
        s->time_s[i] = g_array_new(FALSE, FALSE, sizeof(double));
        s->flag_s[i] = g_array_new(FALSE, FALSE, sizeof(double));
    }
}

static void
samples_clear(Samples *s)
{
    for (guint i = 0; i < s->n; i++) {
        g_array_unref(s->time_s[i]);
        g_array_unref(s->flag_s[i]);
    }
}

/* Returns how many samples that one's state now has, and whether it is one of interest. */
static guint
samples_add(Samples *s, const TtProfile *states, const TtRunResult *result, gboolean *of_interest)
{
    const TtProfile *state = states ? tt_profile_state(states, result->flag_s) : NULL;
    guint i = 0;

    while (s->state[i] != state)
        i++;
    g_array_append_val(s->time_s[i], result->time_s);
    g_array_append_val(s->flag_s[i], result->flag_s);
    s->n_taken++;
    *of_interest = !states || state;
    return s->time_s[i]->len;
}

static gboolean
take_samples(TtTeam *team, const TtPlan *plan, const TtMeasureOptions *options, guint iterations,
             gboolean slow, Samples *samples, GError **error)
{
    TtRunOptions run = { .warmup = slow ? 0 : MIN(iterations, 2),
                         .iterations = iterations,
                         .repeats = 1,
                         .in_place = options->in_place };
    guint wanted = options->samples ? options->samples : slow ? SLOW_SAMPLES : 7;
    gint64 patience_us = (gint64)((options->patience_s > 0 ? options->patience_s : 1) * 1e6);
    gint64 deadline_us = g_get_monotonic_time() + patience_us;

    for (;;) {
        TtRunResult result = { 0 };
        gboolean of_interest;
        guint n;

        if (!tt_team_run(team, plan, &run, &result, error))
            return FALSE;
        n = samples_add(samples, options->states, &result, &of_interest);
        samples->gpu_protocol = result.gpu_protocol;
        tt_run_result_clear(&result);
        if (n >= wanted && (of_interest || g_get_monotonic_time() > deadline_us))
            return TRUE;
        if (!of_interest)
            g_usleep(MISS_PAUSE_US);
    }
}

/* The state with the most samples; one of interest if any has at least three. */
static guint
choose_state(const Samples *s)
{
    guint others = s->n - 1, best = others;

    for (guint i = 0; i < others; i++)
        if (s->time_s[i]->len >= 3 && (best == others || s->time_s[i]->len > s->time_s[best]->len))
            best = i;
    return best;
}

static void
summarise(Samples *s, TtMeasurement *m)
{
    guint chosen = choose_state(s);
    GArray *time_s = s->time_s[chosen], *flag_s = s->flag_s[chosen];

    if (!s->state[chosen]) /* too few of any state to mean anything: use what there is */
        for (guint i = 0; i < chosen; i++) {
            g_array_append_vals(time_s, s->time_s[i]->data, s->time_s[i]->len);
            g_array_append_vals(flag_s, s->flag_s[i]->data, s->flag_s[i]->len);
        }
    m->state = s->state[chosen];
    m->n_taken = s->n_taken;
    m->n_used = time_s->len;
    m->time_s = tt_median((double *)(void *)time_s->data, time_s->len);
    m->low_s = tt_quantile((const double *)(const void *)time_s->data, time_s->len, 0.25);
    m->high_s = tt_quantile((const double *)(const void *)time_s->data, time_s->len, 0.75);
    m->flag_s = tt_median((double *)(void *)flag_s->data, flag_s->len);
}

gboolean
tt_measure(TtTeam *team, const TtPlan *plan, const TtMeasureOptions *options,
           TtMeasurement *measurement, GError **error)
{
    TtMeasurement m = { .wrong = -1 };
    Samples samples;
    guint iterations = 1;
    double about_s = 0;
    gboolean good;

    samples_init(&samples, options->states);
    good = choose_iterations(team, plan, options, &iterations, &about_s, error) &&
           take_samples(team, plan, options, iterations, about_s > TT_MEASURE_SLOW_S, &samples,
                        error) &&
           (!options->check || check_once(team, plan, options->in_place, &m.wrong, error));
    if (good) {
        summarise(&samples, &m);
        m.gpu_protocol = samples.gpu_protocol;
        *measurement = m;
    }
    samples_clear(&samples);
    return good;
}
