/* run - perform a collective on real ranks of this machine, check it, and time it as nccl-tests
 * does. */
#include "cli/arrivals.h"
#include "cli/flight.h"
#include "cli/outlets.h"
#include "cli/progress.h"
#include "cli/run_backend.h"
#include "cli/run_rows.h"
#include "cli/table.h"
#include "cli/team.h"
#include "exec/defaults.h"
#include "exec/exec.h"

#include <stdio.h>
#include <string.h>

static char *backend_name;

typedef struct {
    const TtOptions *options;
    TtReport *report;
    TtTeam *team;
    TtTeamSetup setup;
    guint n_team; /* processes of the team: ranks, and switches if the plan has some */
    guint n_ranks;
    TtFlightPlan flight;
    GPtrArray *timelines;
    TtRunRows rows;
    TtProgress progress;
} Run;

static TtPlanSpec
make_spec(const Run *r, const TtCase *c)
{
    const TtOptions *options = r->options;

    return (TtPlanSpec){
        .collective = options->collective,
        .n_ranks = r->flight.group_size,
        .count = c->vector_count,
        .type = c->type,
        .redop = c->redop,
        .root = options->root,
        .n_channels = options->channels,
        .n_slots = options->slots,
        .slot_bytes = options->chunk_bytes == TT_CHUNK_AUTO ? 0 : options->chunk_bytes,
        .group_size = options->group,
    };
}

/* What was not given takes the executor's defaults; --chunk-bytes 0 means no rounds and stays. */
static TtPlan *
make_plan(const Run *r, const char *algorithm, const TtCase *c, GError **error)
{
    TtPlanSpec spec = make_spec(r, c);

    tt_exec_defaults_over(&spec, algorithm, r->setup.team.transport);
    if (r->options->chunk_bytes != TT_CHUNK_AUTO)
        spec.slot_bytes = r->options->chunk_bytes;
    return tt_plan_new(algorithm, &spec, error);
}

static guint
most_in_flight(const TtOptions *options)
{
    guint most = MAX(1, options->in_flight);

    for (guint i = 0; options->algorithms[i]; i++)
        most = MAX(most, tt_flight_n_algorithms(options->algorithms[i]));
    return most;
}

/* Something else than one collective of all ranks. */
static gboolean
is_several(const Run *r, guint depth)
{
    return depth > 1 || r->flight.n_groups > 1 || r->flight.offset_s;
}

/* "ring+tree": a plan for each. NULL with an error. */
static GPtrArray *
make_plans(const Run *r, const char *algorithms, const TtCase *c, GError **error)
{
    g_auto(GStrv) names = g_strsplit(algorithms, "+", -1);
    g_autoptr(GPtrArray) plans = g_ptr_array_new_with_free_func((GDestroyNotify)tt_plan_free);
    guint depth = tt_flight_depth(r->options, algorithms, error);

    for (guint i = 0; depth > 0 && names[i]; i++) {
        TtPlan *plan = make_plan(r, names[i], c, error);

        if (!plan)
            return NULL;
        g_ptr_array_add(plans, plan);
        if (plan->n_switches == 0 || !is_several(r, depth))
            continue;
        g_set_error(error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE,
                    "%s has switches that reduce, which play in one collective of all ranks at a "
                    "time",
                    plan->name);
        return NULL;
    }
    return depth > 0 ? g_steal_pointer(&plans) : NULL;
}

/* A team of as many processes as the plan has ranks and switches, started if there is none yet. */
static gboolean
have_team(Run *r, const TtPlan *plan, GError **error)
{
    TtTeamOptions wanted = r->setup.team;
    const TtLaunch *launch = &r->setup.launch;

    wanted.n_ranks = r->n_ranks + (plan ? plan->n_switches : 0);
    if (r->team && r->n_team == wanted.n_ranks)
        return TRUE;
    if (launch->n_local < launch->n_ranks && wanted.n_ranks != r->n_ranks) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "%s has switches that reduce, which only a run on one machine by one process "
                    "can play",
                    plan->name);
        return FALSE;
    }
    g_clear_pointer(&r->team, tt_team_stop);
    r->team = tt_team_start(&wanted, error);
    r->n_team = wanted.n_ranks;
    return r->team != NULL;
}

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
set_times(const Run *r, Place *place, TtCollective collective, guint depth, double time_s)
{
    tt_row_set_time(&place->row, collective, time_s / depth);
    place->row.time_us = time_s * 1e6;
    place->row.in_flight = depth;
    place->row.groups = r->flight.n_groups;
}

/* What is run: @name, by @plans in turn. */
typedef struct {
    const char *name;
    const TtPlan *const *plans;
    guint n_plans, depth;
} What;

static gboolean
run_parts(Run *r, const What *what, const TtRunOptions *options, TtRunResult *result,
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
run_place(Run *r, const What *what, const TtCase *c, gboolean in_place, gboolean record,
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
report_places(Run *r, const Place *places)
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

static gboolean
run_what(Run *r, const What *what, const TtCase *c, gboolean record, GError **error)
{
    Place places[2] = { 0 };
    gboolean good = have_team(r, what->plans[0], error);

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

/* One size; with "auto" the executor chooses, with "all" what cannot be is left out. */
static gboolean
run_case(Run *r, const TtCase *c, gboolean record, GError **error)
{
    TtPlanSpec spec = make_spec(r, c);
    const char *chosen[] = { tt_exec_choose(&spec), NULL };
    const char *const *algorithms =
        r->options->algo_auto ? chosen : (const char *const *)r->options->algorithms;

    for (guint i = 0; algorithms[i]; i++) {
        g_autoptr(GError) why = NULL;
        g_autoptr(GPtrArray) plans = make_plans(r, algorithms[i], c, &why);
        What what = { .name = algorithms[i] };

        if (!plans && r->options->algo_all &&
            g_error_matches(why, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE)) {
            tt_report_warn(r->report, "%s left out: %s", algorithms[i], why->message);
            continue;
        }
        if (!plans) {
            g_propagate_error(error, g_steal_pointer(&why));
            return FALSE;
        }
        what.plans = (const TtPlan *const *)plans->pdata;
        what.n_plans = plans->len;
        what.depth = tt_flight_depth(r->options, what.name, NULL);
        if (plans->len == 1)
            what.name = what.plans[0]->name;
        if (!run_what(r, &what, c, record, error))
            return FALSE;
    }
    return TRUE;
}

static void
print_ranks(const Run *r)
{
    guint n_strangers = tt_team_n_strangers(r->team);

    if (n_strangers > 0)
        tt_report_warn(r->report, "%u stranger%s turned away at the port where ranks meet",
                       n_strangers, n_strangers == 1 ? "" : "s");
    for (guint rank = 0; rank < MIN(r->n_ranks, 16); rank++) {
        g_autofree char *group =
            r->flight.n_groups > 1
                ? g_strdup_printf("Group %2u ", tt_flight_group(&r->flight, rank))
                : g_strdup("");

        tt_report_comment(r->report, " Rank %2u %sPid %6d on %s", rank, group,
                          (int)tt_team_pid(r->team, rank), tt_team_host_name(r->team, rank));
    }
}

static void
print_heading(const Run *r)
{
    const TtOptions *options = r->options;
    g_autofree char *gpus = tt_team_gpus_text(r->team);
    g_autofree char *direct = tt_team_gpu_direct_text(r->team);

    tt_report_comment(r->report, "tutti %s run: %s", TT_VERSION,
                      tt_collective_name(options->collective));
    tt_report_comment(
        r->report, "ranks %u by %s transport %s reduce %s iterations %u warmup %u validation %d",
        r->n_ranks, r->setup.launch.source, r->setup.team.transport,
        gpus ? "kernels" : tt_reduce_unit(), options->iterations, options->warmup, options->check);
    if (is_several(r, most_in_flight(options)))
        tt_report_comment(r->report, "groups %u of %u ranks in flight %u start offsets %s",
                          r->flight.n_groups, r->flight.group_size, most_in_flight(options),
                          options->start_offset ? options->start_offset : "none");
    if (gpus) {
        tt_report_comment(r->report, "GPUs %s", gpus);
        tt_report_config(r->report, "gpus", "%s", gpus);
        tt_report_config(r->report, "placement", "%s", tt_gpu_placement_name(options->placement));
    }
    if (direct) {
        tt_report_comment(r->report, "GPUDirect: %s", direct);
        tt_report_config(r->report, "gpudirect", "%s", direct);
    }
    print_ranks(r);
    if (tt_report_is_table(r->report))
        tt_print_run_header();
    fflush(stdout);
}

/* What rounding costs the buffer of a collective in flight (exec.h). */
#define SLICE_ROUNDING 128

static gboolean
start(Run *r, const GArray *cases, GError **error)
{
    const TtOptions *options = r->options;
    TtTeamOptions *team = &r->setup.team;
    guint depth = most_in_flight(options);

    for (guint i = 0; i < cases->len; i++)
        team->max_bytes = MAX(team->max_bytes, g_array_index(cases, TtCase, i).bytes);
    if (depth > 1)
        team->max_bytes = depth * (team->max_bytes + SLICE_ROUNDING);
    tt_report_set_topology(r->report, "this", r->n_ranks, 1);
    tt_report_config(r->report, "transport", "%s", r->setup.team.transport);
    tt_report_config(r->report, "reduce", "%s", tt_reduce_unit());
    tt_report_config_number(r->report, "iterations", options->iterations);
    tt_report_config_number(r->report, "warmup", options->warmup);
    tt_report_config_number(r->report, "check", options->check);
    tt_report_config_number(r->report, "in_flight", depth);
    tt_report_config_number(r->report, "groups", r->flight.n_groups);
    if (options->start_offset)
        tt_report_config(r->report, "start_offset", "%s", options->start_offset);
    return have_team(r, NULL, error);
}

/* The plans of the smallest size, so that a usage error comes before any rank starts. */
static gboolean
check_request(const Run *r, const GArray *cases, GError **error)
{
    const TtOptions *options = r->options;

    for (guint i = 0; options->algorithms[i] && !options->algo_all && !options->algo_auto; i++) {
        g_autoptr(GPtrArray) plans =
            make_plans(r, options->algorithms[i], &g_array_index(cases, TtCase, 0), error);

        if (!plans)
            return FALSE;
    }
    if ((options->per_iteration || options->arrivals) &&
        options->iterations > TT_MOST_STAMPS / r->n_ranks) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "-n %u: at most %u iterations of %u ranks can be told apart",
                    options->iterations, TT_MOST_STAMPS / r->n_ranks, r->n_ranks);
        return FALSE;
    }
    return tt_outlets_check(options, error);
}

/* Memory for longer messages may not be had as memory for short ones was. */
static void
warn_of_change(const Run *r, const char *direct)
{
    g_autofree char *now = tt_team_gpu_direct_text(r->team);

    if (g_strcmp0(direct, now) != 0)
        tt_report_warn(r->report, "GPUDirect, of the last size: %s", now);
}

static gboolean
run_cases(Run *r, const GArray *cases, GError **error)
{
    g_autofree char *direct = tt_team_gpu_direct_text(r->team);

    for (guint i = 0; i < cases->len; i++) {
        gboolean record = i + 1 == cases->len && tt_outlets_want_timelines(r->options);

        if (!run_case(r, &g_array_index(cases, TtCase, i), record, error))
            return FALSE;
    }
    warn_of_change(r, direct);
    return TRUE;
}

/* Our own executor, on processes started here. */
static int
run_here(const TtOptions *options, GError **error)
{
    g_autoptr(TtReport) report = tt_report_new(
        options, TT_FIELDS_CALL | TT_FIELDS_PLAN | TT_FIELDS_TIME | TT_FIELDS_WRONG |
                     (options->per_iteration ? TT_FIELDS_ITERATIONS : 0) |
                     (options->arrivals ? TT_FIELDS_ARRIVALS : 0) |
                     (most_in_flight(options) > 1 || options->groups > 1 ? TT_FIELDS_FLIGHT : 0));
    g_autoptr(GPtrArray) timelines =
        g_ptr_array_new_with_free_func((GDestroyNotify)tt_timeline_free);
    g_autoptr(GArray) cases = NULL;
    Run r = { .options = options,
              .report = report,
              .timelines = timelines,
              .progress = tt_progress_begin(options->quiet) };
    gboolean good, reports = TRUE;

    good = tt_team_setup(&r.setup, options, g_get_num_processors(), error) &&
           tt_team_check_gpus(&r.setup, options, error);
    r.n_ranks = r.setup.team.n_ranks;
    good = good && tt_flight_plan(options, r.n_ranks, &r.flight, error);
    if (good) {
        cases = tt_options_cases(options, r.flight.group_size);
        good = check_request(&r, cases, error) && start(&r, cases, error);
    }
    if (good) {
        reports = tt_team_is_root(r.team);
        if (!reports)
            tt_team_hush();
        print_heading(&r);
        good = run_cases(&r, cases, error) && tt_team_finish(r.team, error);
    }
    tt_progress_wipe(&r.progress);
    tt_team_stop(r.team);
    tt_team_setup_clear(&r.setup);
    tt_flight_plan_clear(&r.flight);
    if (!good)
        return TT_EXIT_FAILED;
    if (!reports)
        return r.rows.n_wrong ? TT_EXIT_FAILED : TT_EXIT_GOOD;
    tt_run_rows_finish(&r.rows, report);
    if (!tt_report_finish(report, error) || !tt_outlets_write_timelines(options, timelines, error))
        return TT_EXIT_FAILED;
    return r.rows.n_wrong ? TT_EXIT_FAILED : TT_EXIT_GOOD;
}

static int
run_run(const TtOptions *options, GError **error)
{
    const TtBackend *backend;

    if (!backend_name || strcmp(backend_name, "tutti") == 0)
        return run_here(options, error);
    backend = tt_run_backend_named(backend_name, error);
    return backend ? tt_run_backend(options, backend, error) : TT_EXIT_USAGE;
}

static const GOptionEntry entries[] = {
    { "backend", 0, 0, G_OPTION_ARG_FILENAME, &backend_name,
      "whose collectives: tutti (default); nccl, on GPUs; mpi, under mpirun", "NAME" },
    { NULL },
};

const TtCommand tt_cmd_run = {
    .name = "run",
    .summary = "run a collective on real ranks, here or on many machines, check the data, time it",
    .examples =
        "  tutti run --ranks 2 -b 1K -e 64M -f 4 --algo ring,tree\n"
        "  tutti run --ranks 4 -b 8 -e 1M -f 8 -d all -o all\n"
        "  tutti run --ranks 4 -b 1M --groups 2 --in-flight 3 --arrivals\n"
        "  tutti run --ranks 2 -b 1M --algo double-tree --trace tree.json\n"
        "      what happened when, to be opened at ui.perfetto.dev\n"
        "  mpirun -np 4 tutti run --backend mpi -b 8 -e 64M -f 4\n"
        "  tutti run --backend nccl -b 8 -e 8G -f 2\n"
        "      NCCL's collectives on all GPUs of this machine; over more: torchrun, srun, mpirun\n",
    .options = TT_OPTIONS_SIZES | TT_OPTIONS_CALL | TT_OPTIONS_PLAN | TT_OPTIONS_RANKS |
               TT_OPTIONS_MEASURE | TT_OPTIONS_ROWS | TT_OPTIONS_TRACE | TT_OPTIONS_NETWORK |
               TT_OPTIONS_ITERATIONS,
    .own = entries,
    .run = run_run,
};
