#include "cli/flight.h"
#include "cli/values.h"
#include "models/units.h"

#include <string.h>

/* --- from options -------------------------------------------------------------------------------- */

/* "3:2ms" */
static gboolean
parse_offset(const char *word, double timeout_s, TtFlightPlan *flight, GError **error)
{
    g_auto(GStrv) halves = g_strsplit(word, ":", 2);
    guint64 rank;
    double seconds;

    if (!halves[0] || !halves[1] ||
        !g_ascii_string_to_unsigned(halves[0], 10, 0, flight->n_ranks - 1, &rank, NULL) ||
        !tt_parse_seconds(halves[1], &seconds, NULL) || !(seconds >= 0)) {
        g_set_error(
            error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
            "--start-offset \"%s\" must be RANK:TIME, a rank of 0 .. %u and a time with its "
            "unit, as in 1:2ms",
            word, flight->n_ranks - 1);
        return FALSE;
    }
    flight->offset_s[rank] = seconds;
    if (seconds < timeout_s)
        return TRUE;
    g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                "--start-offset \"%s\" must be below the --timeout of %g s", word, timeout_s);
    return FALSE;
}

static gboolean
parse_offsets(const TtOptions *options, TtFlightPlan *flight, GError **error)
{
    g_auto(GStrv) words = NULL;

    if (!options->start_offset)
        return TRUE;
    words = tt_split_list("--start-offset", options->start_offset, error);
    flight->offset_s = g_new0(double, flight->n_ranks);
    for (guint i = 0; words && words[i]; i++)
        if (!parse_offset(words[i], options->timeout_s, flight, error))
            return FALSE;
    return words != NULL;
}

gboolean
tt_flight_plan(const TtOptions *options, guint n_ranks, TtFlightPlan *flight, GError **error)
{
    *flight = (TtFlightPlan){ .n_ranks = n_ranks,
                              .n_groups = options->groups,
                              .interleaved = options->groups_interleaved };
    if (n_ranks % options->groups != 0) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "--groups %u must divide the %u ranks: all groups run the same",
                    options->groups, n_ranks);
        return FALSE;
    }
    flight->group_size = n_ranks / options->groups;
    return parse_offsets(options, flight, error);
}

void
tt_flight_plan_clear(TtFlightPlan *flight)
{
    g_clear_pointer(&flight->offset_s, g_free);
}

guint
tt_flight_group(const TtFlightPlan *flight, guint rank)
{
    return flight->interleaved ? rank % flight->n_groups : rank / flight->group_size;
}

guint
tt_flight_n_algorithms(const char *algorithms)
{
    guint n = 1;

    for (; *algorithms; algorithms++)
        n += *algorithms == '+';
    return n;
}

guint
tt_flight_depth(const TtOptions *options, const char *algorithms, GError **error)
{
    guint n = tt_flight_n_algorithms(algorithms);

    if (options->in_flight == 0 || options->in_flight >= n)
        return MAX(n, options->in_flight);
    g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                "--in-flight %u must be at least %u, for %s", options->in_flight, n, algorithms);
    return 0;
}

/* --- parts --------------------------------------------------------------------------------------- */

static guint
member_of(const TtFlightPlan *flight, guint group, guint i)
{
    return flight->interleaved ? i * flight->n_groups + group : group * flight->group_size + i;
}

guint
tt_flight_most(const TtOptions *options)
{
    guint most = MAX(1, options->in_flight);

    for (guint i = 0; options->algorithms[i]; i++)
        most = MAX(most, tt_flight_n_algorithms(options->algorithms[i]));
    return most;
}

gboolean
tt_flight_is_several(const TtFlightPlan *flight, guint depth)
{
    return depth > 1 || flight->n_groups > 1 || flight->offset_s;
}

void
tt_flight_init(TtFlight *self, const TtFlightPlan *flight, const TtPlan *const *plans,
               guint n_plans, guint depth)
{
    guint n = flight->group_size;
    gboolean plain = flight->n_groups == 1 && depth == 1;

    *self = (TtFlight){ .n_parts = flight->n_groups * depth, .depth = depth };
    self->parts = g_new0(TtRunPart, self->n_parts);
    self->members = g_new(guint, flight->n_ranks);
    self->offset_s = flight->offset_s ? g_new(double, flight->n_ranks) : NULL;
    for (guint i = 0; i < flight->n_ranks; i++) {
        self->members[i] = member_of(flight, i / n, i % n);
        if (self->offset_s)
            self->offset_s[i] = flight->offset_s[self->members[i]];
    }
    for (guint p = 0; p < self->n_parts; p++) {
        guint first = p / depth * n;

        self->parts[p] = (TtRunPart){ .plan = plans[p % depth % n_plans],
                                      .members = plain ? NULL : self->members + first,
                                      .offset_s = self->offset_s ? self->offset_s + first : NULL };
    }
}

void
tt_flight_clear(TtFlight *self)
{
    g_clear_pointer(&self->parts, g_free);
    g_clear_pointer(&self->members, g_free);
    g_clear_pointer(&self->offset_s, g_free);
}

static int
compare_arrivals(gconstpointer a, gconstpointer b)
{
    guint32 x = ((const TtArrival *)a)->rank, y = ((const TtArrival *)b)->rank;

    return (x > y) - (x < y);
}

TtRunResult
tt_flight_sum(const TtFlight *self, TtRunResult *results)
{
    TtRunResult sum = results[0];

    for (guint p = 1; p < self->n_parts; p++) {
        TtRunResult *r = &results[p];

        if (r->time_s > sum.time_s) {
            sum.time_s = r->time_s;
            sum.min_s = r->min_s;
            sum.max_s = r->max_s;
            sum.iterations = r->iterations;
        }
        if (r->wrong > 0)
            sum.wrong += r->wrong;
        if (sum.arrivals && r->arrivals && p % self->depth == 0) /* the same for all of a group */
            g_array_append_vals(sum.arrivals, r->arrivals->data, r->arrivals->len);
        tt_run_result_clear(r);
    }
    if (sum.arrivals)
        g_array_sort(sum.arrivals, compare_arrivals);
    results[0] = (TtRunResult){ 0 };
    return sum;
}
