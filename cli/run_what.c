/* run_what.c - one size of one algorithm: run twice, checked, reported. */
#include "cli/arrivals.h"
#include "cli/run_private.h"
#include "cli/table.h"

#include <stdio.h>

static void
set_iterations(TtRow *row, const TtIterationTimes *times)
{
    row->min_us = times->min_s * 1e6;
    row->p50_us = times->p50_s * 1e6;
    row->p95_us = times->p95_s * 1e6;
    row->p99_us = times->p99_s * 1e6;
    row->max_us = times->max_s * 1e6;
    row->cv = times->cv;
}

/* A row, and what is printed below it. */
typedef struct {
    TtRow row;
    char *arrivals_json;
    GArray *arrivals; /* TtArrival; NULL: not asked for, or the root's to know */
} Place;

static void
place_clear(Place *place)
{
    g_clear_pointer(&place->arrivals_json, g_free);
    g_clear_pointer(&place->arrivals, g_array_unref);
}

/* Time of the slowest; bandwidth of what a rank has in flight, by the size of its group. */
static void
set_times(const TtRun *r, Place *place, TtCollective collective, guint depth, double time_s)
{
    tt_row_set_time(&place->row, collective, time_s / depth);
    place->row.time_us = time_s * 1e6;
    place->row.in_flight = depth;
    place->row.groups = r->flight.n_groups;
}

static gboolean
run_parts(TtRun *r, const TtRunWhat *what, const TtRunOptions *options, TtRunResult *result,
          GError **error)
{
    g_autofree TtRunResult *results = NULL;
    TtFlight flight;
    gboolean good;

    tt_flight_init(&flight, &r->flight, what->plans, what->n_plans, what->depth);
    results = g_new0(TtRunResult, flight.n_parts);
    good = tt_team_run_parts(r->team, flight.parts, flight.n_parts, options, results, error);
    if (good)
        *result = tt_flight_sum(&flight, results);
    tt_flight_clear(&flight);
    return good;
}

static gboolean
run_place(TtRun *r, const TtRunWhat *what, const TtCase *c, gboolean in_place, gboolean record,
          Place *place, GError **error)
{
    TtRow *row = &place->row;
    TtRunOptions options = { .warmup = r->options->warmup,
                             .iterations = r->options->iterations,
                             .in_place = in_place,
                             .check = r->options->check,
                             .record = record,
                             .stamps = r->options->per_iteration || r->options->arrivals,
                             .arrivals = r->options->arrivals };
    TtRunResult result = { 0 };

    if (!run_parts(r, what, &options, &result, error))
        return FALSE;
    *row = tt_row_for(what->plans[0], c);
    row->algorithm = what->name;
    set_times(r, place, what->plans[0]->spec.collective, what->depth, result.time_s);
    if (r->options->per_iteration)
        set_iterations(row, &result.iterations);
    row->in_place = in_place;
    row->wrong = r->options->check ? result.wrong : -1;
    if (result.gpu_protocol != TT_GPU_PROTOCOL_AUTO)
        row->protocol = tt_gpu_protocol_name(result.gpu_protocol);
    if (result.arrivals)
        row->arrivals = place->arrivals_json = tt_arrivals_to_json(result.arrivals);
    place->arrivals = g_steal_pointer(&result.arrivals);
    if (result.timeline)
        g_ptr_array_add(r->timelines, g_steal_pointer(&result.timeline));
    tt_run_result_clear(&result);
    return TRUE;
}

static void
report_places(TtRun *r, const Place *places)
{
    static const char *const names[] = { "out of place", "in place" };

    tt_run_rows_add(&r->rows, r->report, &places[0].row, &places[1].row);
    if (!tt_report_is_table(r->report))
        return;
    if (r->options->per_iteration)
        tt_print_run_iterations(&places[0].row, &places[1].row);
    for (guint i = 0; i < 2 && places[i].arrivals; i++)
        tt_print_arrivals(names[i], places[i].arrivals, r->options->iterations);
    fflush(stdout);
}

gboolean
tt_run_what(TtRun *r, const TtRunWhat *what, const TtCase *c, gboolean record, GError **error)
{
    Place places[2] = { 0 };
    gboolean good = TRUE;

    for (guint in_place = 0; good && in_place < 2; in_place++) {
        g_autofree char *size = tt_format_bytes(c->bytes);

        tt_progress_show(&r->progress, "running %s, %s", what->name, size);
        good = run_place(r, what, c, in_place, record && !in_place, &places[in_place], error);
    }
    tt_progress_wipe(&r->progress);
    if (good)
        report_places(r, places);
    place_clear(&places[0]);
    place_clear(&places[1]);
    return good;
}
