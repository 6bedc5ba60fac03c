/* What stamps say: times of single iterations from stamps written by hand. */
#include "exec/iterations.h"
#include "tests/check.h"

#include <math.h>

static gboolean
near(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

/* Iterations of @time_s[i] on every rank, one after another. */
static TtIterations *
even(guint n_ranks, guint n, const double *time_s)
{
    TtIterations *self = tt_iterations_new(n_ranks, 1, n);

    for (guint r = 0; r < n_ranks; r++) {
        double now_s = self->loop_s[r] = r; /* ranks of other machines have other zeros */

        for (guint i = 0; i < n; i++) {
            self->begin_s[r * n + i] = now_s;
            self->end_s[r * n + i] = now_s += time_s[i];
        }
    }
    return self;
}

static void
percentiles_are_those_of_the_sample(void)
{
    double time_s[200];
    TtIterationTimes t;
    TtIterations *self;

    for (guint i = 0; i < 200; i++)
        time_s[i] = (i * 77 % 200) + 1; /* 1 .. 200 in some order */
    self = even(3, 200, time_s);
    tt_iterations_times(self, &t);
    CU_ASSERT_EQUAL(t.n, 200);
    CHECK(near(t.mean_s, 100.5) && near(t.min_s, 1) && near(t.max_s, 200), "%g %g %g", t.mean_s,
          t.min_s, t.max_s);
    CHECK(near(t.p50_s, 100) && near(t.p95_s, 190) && near(t.p99_s, 198), "%g %g %g", t.p50_s,
          t.p95_s, t.p99_s);
    CHECK(near(t.stdev_s, sqrt(200.0 * 201 / 12)), "%g", t.stdev_s); /* n (n + 1) / 12 */
    CHECK(near(t.cv, t.stdev_s / t.mean_s), "%g", t.cv);
    tt_iterations_free(self);
}

static void
one_iteration_is_all_there_is(void)
{
    double time_s = 5;
    TtIterations *self = even(2, 1, &time_s);
    TtIterationTimes t;

    tt_iterations_times(self, &t);
    CHECK(t.n == 1 && near(t.p50_s, 5) && near(t.p99_s, 5) && t.cv == 0, "%g %g", t.p50_s, t.cv);
    tt_iterations_free(self);
}

/* Three ranks, ten iterations of 1 s; rank 1 begins the even ones 0.25 s after the others. */
static void
who_comes_late_is_named(void)
{
    TtIterations *self = tt_iterations_new(3, 2, 5);
    g_autoptr(GArray) arrivals = NULL;

    for (guint r = 0; r < 3; r++)
        for (guint loop = 0; loop < 2; loop++)
            for (guint i = 0; i < 5; i++) {
                guint k = loop * 5 + i;

                self->begin_s[r * 10 + k] = i + (r == 1 && k % 2 == 0 ? 0.25 : 0.01 * r);
                self->end_s[r * 10 + k] = i + 1;
            }
    self->message_s = g_new0(double, 9);
    self->slot_s = g_new0(double, 9);
    self->message_s[2 * 3 + 1] = 5; /* rank 2 for rank 1 */
    self->slot_s[2 * 3 + 0] = 1;
    self->message_s[0 * 3 + 1] = 2;
    arrivals = tt_iterations_arrivals(self);
    CU_ASSERT_EQUAL(arrivals->len, 3);
    for (guint r = 0; r < 3; r++) {
        const TtArrival *a = &g_array_index(arrivals, TtArrival, r);

        CHECK(a->rank == r && a->n_late == (r == 1 ? 5 : 0), "rank %u: late %lu", r, a->n_late);
        CHECK(near(a->late_s, r == 1 ? 0.23 : 0), "rank %u: by %g", r,
              a->late_s); /* after rank 2 */
        CHECK(near(a->after_s, r == 1 ? (0.25 + 0.01) / 2 : 0.01 * r), "rank %u: %g", r,
              a->after_s);
        CHECK(near(a->most_after_s, r == 1 ? 0.25 : 0.01 * r), "rank %u: %g", r, a->most_after_s);
        CHECK(near(a->awaited_s, r == 1 ? 0.7 : r == 0 ? 0.1 : 0), "rank %u: %g", r, a->awaited_s);
    }
    CHECK(near(g_array_index(arrivals, TtArrival, 2).wait_message_s, 0.5), "messages");
    CHECK(near(g_array_index(arrivals, TtArrival, 2).wait_slot_s, 0.1), "slots");
    CU_ASSERT_EQUAL(g_array_index(arrivals, TtArrival, 2).waits_for, 1);
    CU_ASSERT_EQUAL(g_array_index(arrivals, TtArrival, 1).waits_for, TT_NO_RANK);
    tt_iterations_free(self);
}

int
main(void)
{
    CU_TestInfo tests[] = { { "percentiles are those of the sample",
                              percentiles_are_those_of_the_sample },
                            { "one iteration is all there is", one_iteration_is_all_there_is },
                            { "who comes late is named", who_comes_late_is_named },
                            CU_TEST_INFO_NULL };

    return check_main("iterations", tests);
}
