#include "exec/iterations.h"

#include <math.h>
#include <stdlib.h>

TtIterations *
tt_iterations_new(guint n_ranks, guint n_loops, guint per_loop)
{
    TtIterations *self = g_new0(TtIterations, 1);
    gsize n = (gsize)n_ranks * n_loops;

    self->n_ranks = n_ranks;
    self->n_loops = n_loops;
    self->per_loop = per_loop;
    self->loop_s = g_new0(double, n);
    self->begin_s = g_new0(double, n *per_loop);
    self->end_s = g_new0(double, n *per_loop);
    return self;
}

void
tt_iterations_free(TtIterations *self)
{
    if (!self)
        return;
    g_free(self->loop_s);
    g_free(self->begin_s);
    g_free(self->end_s);
    g_free(self);
}

/* --- reading ------------------------------------------------------------------------------------- */

static const TtStamp *
stamps_of(const TtJob *job, guint rank, guint loop)
{
    return job->stamps + rank * tt_job_n_stamps(job) + loop * ((gsize)job->options.iterations + 1);
}

/* When the first rank of @rank's machine began a loop. */
static guint64
zero_of(const TtRegion *region, guint n_ranks, guint rank, guint loop)
{
    const TtJob *job = &region->job;
    guint64 zero = G_MAXUINT64;

    for (guint r = 0; r < n_ranks; r++)
        if (region->ranks[r].host == region->ranks[rank].host)
            zero = MIN(zero, stamps_of(job, r, loop)[job->options.iterations].begin);
    return zero;
}

TtIterations *
tt_iterations_read(const TtRegion *region)
{
    const TtJob *job = &region->job;
    guint n_ranks = job->plan.spec.n_ranks, n = job->options.iterations;
    TtIterations *self = tt_iterations_new(n_ranks, job->options.repeats, n);

    for (guint r = 0; r < n_ranks; r++)
        for (guint loop = 0; loop < self->n_loops; loop++) {
            const TtStamp *stamps = stamps_of(job, r, loop);
            guint64 zero = zero_of(region, n_ranks, r, loop);
            double tick_s = region->ranks[r].tick_s;
            gsize at = (gsize)r * self->n_loops + loop;

            self->loop_s[at] = (double)(gint64)(stamps[n].begin - zero) * tick_s;
            for (guint i = 0; i < n; i++) {
                self->begin_s[at * n + i] = (double)(gint64)(stamps[i].begin - zero) * tick_s;
                self->end_s[at * n + i] = (double)(gint64)(stamps[i].end - zero) * tick_s;
            }
        }
    return self;
}

/* --- how long ------------------------------------------------------------------------------------ */

/* From the end of the iteration before to the end of this one. */
static double
duration_s(const TtIterations *self, guint rank, guint loop, guint i)
{
    gsize at = (gsize)rank * self->n_loops + loop;
    const double *end_s = self->end_s + at * self->per_loop;

    return end_s[i] - (i > 0 ? end_s[i - 1] : self->loop_s[at]);
}

static int
compare_doubles(gconstpointer a, gconstpointer b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The smallest that @share of them are no longer than. */
static double
percentile(const double *sorted, guint64 n, double share)
{
    return sorted[MAX(1, (guint64)ceil(share * (double)n - 1e-9)) - 1];
}

void
tt_iterations_times(const TtIterations *self, TtIterationTimes *times)
{
    guint64 n = (guint64)self->n_loops * self->per_loop;
    g_autofree double *time_s = g_new0(double, n);
    double sum = 0, squares = 0;

    for (guint64 k = 0; k < n; k++) {
        for (guint r = 0; r < self->n_ranks; r++)
            time_s[k] +=
                duration_s(self, r, (guint)(k / self->per_loop), (guint)(k % self->per_loop)) /
                self->n_ranks;
        sum += time_s[k];
    }
    qsort(time_s, n, sizeof *time_s, compare_doubles);
    *times = (TtIterationTimes){ .n = n,
                                 .mean_s = sum / (double)n,
                                 .min_s = time_s[0],
                                 .max_s = time_s[n - 1],
                                 .p50_s = percentile(time_s, n, 0.50),
                                 .p95_s = percentile(time_s, n, 0.95),
                                 .p99_s = percentile(time_s, n, 0.99) };
    for (guint64 k = 0; k < n; k++)
        squares += (time_s[k] - times->mean_s) * (time_s[k] - times->mean_s);
    times->stdev_s = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
    times->cv = times->mean_s > 0 ? times->stdev_s / times->mean_s : 0;
}
