/* run - perform a collective on real ranks of this machine, check it, and time it as nccl-tests
 * does. */
#include "cli/outlets.h"
#include "cli/run_backend.h"
#include "cli/run_private.h"
#include "exec/defaults.h"

#include <string.h>

static char *backend_name;

static TtPlanSpec
make_spec(const TtRun *r, const TtCase *c)
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
        .group_size = options->group || !r->team || r->flight.n_groups > 1
                          ? options->group
                          : tt_team_ranks_per_host(r->team),
    };
}

/* What was not given takes the executor's defaults; --chunk-bytes 0 means no rounds and stays. */
static TtPlan *
make_plan(const TtRun *r, const char *algorithm, const TtCase *c, GError **error)
{
    TtPlanSpec spec = make_spec(r, c);

    tt_exec_defaults_over(&spec, algorithm, r->setup.team.transport);
    if (r->options->chunk_bytes != TT_CHUNK_AUTO)
        spec.slot_bytes = r->options->chunk_bytes;
    return tt_plan_new(algorithm, &spec, error);
}

static gboolean
can_play_switches(const TtRun *r, const TtPlan *plan, guint depth, GError **error)
{
    const TtLaunch *launch = &r->setup.launch;
    const char *who = tt_flight_is_several(&r->flight, depth)
                          ? "one collective of all ranks at a time"
                      : launch->n_local < launch->n_ranks ? "a run on one machine by one process"
                                                          : NULL;

    if (who)
        g_set_error(error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE,
                    "%s has switches that reduce, which only %s can play", plan->name, who);
    return !who;
}

/* "ring+tree": a plan for each. NULL with an error. */
static GPtrArray *
make_plans(const TtRun *r, const char *algorithms, const TtCase *c, GError **error)
{
    g_auto(GStrv) names = g_strsplit(algorithms, "+", -1);
    g_autoptr(GPtrArray) plans = g_ptr_array_new_with_free_func((GDestroyNotify)tt_plan_free);
    guint depth = tt_flight_depth(r->options, algorithms, error);

    for (guint i = 0; depth > 0 && names[i]; i++) {
        TtPlan *plan = make_plan(r, names[i], c, error);

        if (!plan)
            return NULL;
        g_ptr_array_add(plans, plan);
        if (plan->n_switches > 0 && !can_play_switches(r, plan, depth, error))
            return NULL;
    }
    return depth > 0 ? g_steal_pointer(&plans) : NULL;
}

/* A team of as many processes as the plan has ranks and switches, started if there is none yet. */
static gboolean
have_team(TtRun *r, const TtPlan *plan, GError **error)
{
    TtTeamOptions wanted = r->setup.team;

    wanted.n_ranks = r->n_ranks + (plan ? plan->n_switches : 0);
    if (r->team && r->n_team == wanted.n_ranks)
        return TRUE;
    g_clear_pointer(&r->team, tt_team_stop);
    r->team = tt_team_start(&wanted, error);
    r->n_team = wanted.n_ranks;
    return r->team != NULL;
}

/* One size; with "auto" the executor chooses, with "all" what cannot be is left out. */
static gboolean
run_case(TtRun *r, const TtCase *c, gboolean record, GError **error)
{
    TtPlanSpec spec = make_spec(r, c);
    const char *chosen[] = { tt_exec_choose(&spec, r->setup.team.transport), NULL };
    const char *const *algorithms =
        r->options->algo_auto ? chosen : (const char *const *)r->options->algorithms;

    for (guint i = 0; algorithms[i]; i++) {
        g_autoptr(GError) why = NULL;
        g_autoptr(GPtrArray) plans = make_plans(r, algorithms[i], c, &why);
        TtRunWhat what = { .name = algorithms[i] };

        if (!plans && r->options->algo_all &&
            g_error_matches(why, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE)) {
            if (tt_team_is_root(r->team)) /* others say nothing that rank 0 says */
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
        if (!have_team(r, what.plans[0], error) || !tt_run_what(r, &what, c, record, error))
            return FALSE;
    }
    return TRUE;
}

/* What rounding costs the buffer of a collective in flight (exec.h). */
#define SLICE_ROUNDING 128

static gboolean
start(TtRun *r, const GArray *cases, GError **error)
{
    const TtOptions *options = r->options;
    TtTeamOptions *team = &r->setup.team;
    guint depth = tt_flight_most(options), each;

    for (guint i = 0; i < cases->len; i++)
        team->max_bytes = MAX(team->max_bytes, g_array_index(cases, TtCase, i).bytes);
    if (depth > 1)
        team->max_bytes = depth * (team->max_bytes + SLICE_ROUNDING);
    tt_report_config(r->report, "transport", "%s", r->setup.team.transport);
    tt_report_config(r->report, "reduce", "%s", tt_reduce_unit());
    tt_report_config_number(r->report, "iterations", options->iterations);
    tt_report_config_number(r->report, "warmup", options->warmup);
    tt_report_config_number(r->report, "check", options->check);
    tt_report_config_number(r->report, "in_flight", depth);
    tt_report_config_number(r->report, "groups", r->flight.n_groups);
    if (options->start_offset)
        tt_report_config(r->report, "start_offset", "%s", options->start_offset);
    if (!have_team(r, NULL, error))
        return FALSE;
    each = tt_team_ranks_per_host(r->team);
    tt_report_set_topology(r->report, "this", r->n_ranks, each ? r->n_ranks / each : 1);
    return TRUE;
}

/* The plans of the smallest size, so that a usage error comes before any rank starts. */
static gboolean
check_request(const TtRun *r, const GArray *cases, GError **error)
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
warn_of_change(const TtRun *r, const char *direct)
{
    g_autofree char *now = tt_team_gpu_direct_text(r->team);

    if (g_strcmp0(direct, now) != 0)
        tt_report_warn(r->report, "GPUDirect, of the last size: %s", now);
}

static gboolean
run_cases(TtRun *r, const GArray *cases, GError **error)
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
                     (tt_flight_most(options) > 1 || options->groups > 1 ? TT_FIELDS_FLIGHT : 0));
    g_autoptr(GPtrArray) timelines =
        g_ptr_array_new_with_free_func((GDestroyNotify)tt_timeline_free);
    g_autoptr(GArray) cases = NULL;
    TtRun r = { .options = options,
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
        tt_run_print_heading(&r);
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
