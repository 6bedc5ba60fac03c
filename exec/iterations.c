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
    self->rank = g_new0(guint, n_ranks);
    for (guint i = 0; i < n_ranks; i++)
        self->rank[i] = i;
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
    g_free(self->rank);
    g_free(self->loop_s);
    g_free(self->begin_s);
    g_free(self->end_s);
    g_free(self->message_s);
    g_free(self->slot_s);
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
zero_of(const TtRegion *region, guint rank, guint loop)
{
    const TtJob *job = &region->job;
    guint64 zero = G_MAXUINT64;

    for (guint r = 0; r < region->n_ranks; r++)
        if (region->ranks[r].host == region->ranks[rank].host)
            zero = MIN(zero, stamps_of(job, r, loop)[job->options.iterations].begin);
    return zero;
}

static void
read_waits(TtIterations *self, const TtRegion *region)
{
    guint n = self->n_ranks;

    self->message_s = g_new0(double, (gsize)n *n);
    self->slot_s = g_new0(double, (gsize)n *n);
    for (guint i = 0; i < n; i++)
        for (guint k = 0; k < n; k++) {
            gsize at = (gsize)self->rank[i] * region->n_ranks + self->rank[k];
            const TtWaited *w = &region->job.waited[at];
            double tick_s = region->ranks[self->rank[i]].tick_s;

            self->message_s[(gsize)i * n + k] = (double)w->message * tick_s;
            self->slot_s[(gsize)i * n + k] = (double)w->slot * tick_s;
        }
}

/* One loop of one member. */
static void
read_loop(TtIterations *self, const TtRegion *region, guint member, guint loop, double offset_s)
{
    guint rank = self->rank[member], n = self->per_loop;
    const TtStamp *stamps = stamps_of(&region->job, rank, loop);
    guint64 zero = zero_of(region, rank, loop);
    double tick_s = region->ranks[rank].tick_s;
    gsize at = (gsize)member * self->n_loops + loop;

    self->loop_s[at] = (double)(gint64)(stamps[n].begin - zero) * tick_s;
    for (guint i = 0; i < n; i++) {
        self->begin_s[at * n + i] = (double)(gint64)(stamps[i].begin - zero) * tick_s + offset_s;
        self->end_s[at * n + i] = (double)(gint64)(stamps[i].end - zero) * tick_s;
    }
}

TtIterations *
tt_iterations_read(const TtRegion *region, const TtJobPart *part)
{
    const TtRunOptions *options = &region->job.options;
    guint n_ranks = part->plan.spec.n_ranks;
    TtIterations *self = tt_iterations_new(n_ranks, options->repeats, options->iterations);

    for (guint i = 0; i < n_ranks; i++) {
        self->rank[i] = part->members[i];
        for (guint loop = 0; loop < self->n_loops; loop++)
            read_loop(self, region, i, loop, part->offset_s[i]);
    }
    if (region->job.waited)
        read_waits(self, region);
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

/* Mean over ranks; @k counts through all loops. */
static double
mean_duration_s(const TtIterations *self, guint64 k)
{
    double sum = 0;

    for (guint r = 0; r < self->n_ranks; r++)
        sum += duration_s(self, r, (guint)(k / self->per_loop), (guint)(k % self->per_loop));
    return sum / self->n_ranks;
}

void
tt_iterations_times(const TtIterations *self, TtIterationTimes *times)
{
    guint64 n = (guint64)self->n_loops * self->per_loop;
    g_autofree double *time_s = g_new0(double, n);
    double sum = 0, squares = 0;

    for (guint64 k = 0; k < n; k++)
        sum += time_s[k] = mean_duration_s(self, k);
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

/* --- who was late -------------------------------------------------------------------------------- */

/* Later than the next to last by more than this share of the iteration's time: late. */
#define LATE_SHARE 0.1

static double
begin_s(const TtIterations *self, guint rank, guint64 k)
{
    return self->begin_s[(gsize)rank * self->n_loops * self->per_loop + k];
}

/* How long after the first each rank began iteration @k. Returns who was late (by number here), TT_NO_RANK if
 * nobody was, and by how much. */
static guint32
judge(const TtIterations *self, guint64 k, GArray *arrivals, double *late_s)
{
    double first = begin_s(self, 0, k), last = first, next = -G_MAXDOUBLE;
    guint32 latest = 0;

    for (guint r = 1; r < self->n_ranks; r++) {
        double at = begin_s(self, r, k);

        first = MIN(first, at);
        next = MAX(next, MIN(last, at));
        latest = at > last ? r : latest;
        last = MAX(last, at);
    }
    for (guint r = 0; r < self->n_ranks; r++) {
        TtArrival *a = &g_array_index(arrivals, TtArrival, r);
        double after = begin_s(self, r, k) - first;

        a->after_s += after / ((double)self->n_loops * self->per_loop);
        a->most_after_s = MAX(a->most_after_s, after);
    }
    *late_s = last - next;
    return self->n_ranks > 1 && *late_s > LATE_SHARE * mean_duration_s(self, k) ? latest
                                                                                : TT_NO_RANK;
}

/* Of the @n iterations, those to which rank @r was late. */
static void
sum_up_lateness(TtArrival *a, guint r, guint64 n, const guint32 *late, const double *late_s)
{
    g_autofree double *of_rank = g_new(double, n);

    for (guint64 k = 0; k < n; k++)
        if (late[k] == r)
            of_rank[a->n_late++] = late_s[k];
    qsort(of_rank, a->n_late, sizeof *of_rank, compare_doubles);
    if (a->n_late > 0)
        a->late_s = percentile(of_rank, a->n_late, 0.5);
}

static void
add_waits(const TtIterations *self, GArray *arrivals)
{
    guint n = self->n_ranks;
    double iterations = (double)self->n_loops * self->per_loop;

    for (guint r = 0; r < n; r++) {
        TtArrival *a = &g_array_index(arrivals, TtArrival, r);

        for (guint peer = 0; peer < n; peer++) {
            double message_s = self->message_s[r * n + peer] / iterations;
            double slot_s = self->slot_s[r * n + peer] / iterations;

            a->wait_message_s += message_s;
            a->wait_slot_s += slot_s;
            g_array_index(arrivals, TtArrival, peer).awaited_s += message_s + slot_s;
            if (message_s + slot_s > a->waits_for_s) {
                a->waits_for = self->rank[peer];
                a->waits_for_s = message_s + slot_s;
            }
        }
    }
}

GArray *
tt_iterations_arrivals(const TtIterations *self)
{
    GArray *arrivals = g_array_new(FALSE, TRUE, sizeof(TtArrival));
    guint64 n = (guint64)self->n_loops * self->per_loop;
    g_autofree double *late_s = g_new(double, n);
    g_autofree guint32 *late = g_new(guint32, n);

    for (guint r = 0; r < self->n_ranks; r++) {
        TtArrival a = { .rank = self->rank[r], .waits_for = TT_NO_RANK };

        g_array_append_val(arrivals, a);
    }
    for (guint64 k = 0; k < n; k++)
        late[k] = judge(self, k, arrivals, &late_s[k]);
    for (guint r = 0; r < self->n_ranks; r++)
        sum_up_lateness(&g_array_index(arrivals, TtArrival, r), r, n, late, late_s);
    if (self->message_s)
        add_waits(self, arrivals);
    return arrivals;
}
