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

int
main(void)
{
    CU_TestInfo tests[] = { { "percentiles are those of the sample",
                              percentiles_are_those_of_the_sample },
                            { "one iteration is all there is", one_iteration_is_all_there_is },
                            CU_TEST_INFO_NULL };

    return check_main("iterations", tests);
}
