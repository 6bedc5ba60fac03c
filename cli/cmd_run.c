/* run - perform a collective on real ranks of this machine, check it, and time it as nccl-tests
 * does. */
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
        .n_ranks = r->n_ranks,
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

    tt_exec_defaults(&spec, algorithm);
    if (r->options->chunk_bytes != TT_CHUNK_AUTO)
        spec.slot_bytes = r->options->chunk_bytes;
    return tt_plan_new(algorithm, &spec, error);
}

/* A team of as many processes as the plan has ranks and switches, started if there is none yet. */
static gboolean
have_team(Run *r, const TtPlan *plan, GError **error)
{
    TtTeamOptions wanted = r->setup.team;
    const TtLaunch *launch = &r->setup.launch;

    wanted.n_ranks = plan ? tt_plan_n_agents(plan) : r->n_ranks;
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

static gboolean
run_place(Run *r, const TtPlan *plan, const TtCase *c, gboolean in_place, gboolean record,
          TtRow *row, GError **error)
{
    TtRunOptions options = { .warmup = r->options->warmup,
                             .iterations = r->options->iterations,
                             .in_place = in_place,
                             .check = r->options->check,
                             .record = record };
    TtRunResult result = { 0 };

    if (!tt_team_run(r->team, plan, &options, &result, error))
        return FALSE;
    *row = tt_row_for(plan, c);
    tt_row_set_time(row, plan->spec.collective, result.time_s);
    row->in_place = in_place;
    row->wrong = r->options->check ? result.wrong : -1;
    if (result.timeline)
        g_ptr_array_add(r->timelines, g_steal_pointer(&result.timeline));
    tt_run_result_clear(&result);
    return TRUE;
}

static gboolean
run_plan(Run *r, const TtPlan *plan, const TtCase *c, gboolean record, GError **error)
{
    TtRow rows[2];

    if (!have_team(r, plan, error))
        return FALSE;
    for (guint in_place = 0; in_place < 2; in_place++) {
        g_autofree char *size = tt_format_bytes(c->bytes);

        tt_progress_show(&r->progress, "running %s, %s", plan->name, size);
        if (!run_place(r, plan, c, in_place, record && !in_place, &rows[in_place], error))
            return FALSE;
    }
    tt_progress_wipe(&r->progress);
    tt_run_rows_add(&r->rows, r->report, &rows[0], &rows[1]);
    return TRUE;
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
        g_autoptr(TtPlan) plan = make_plan(r, algorithms[i], c, &why);

        if (!plan && r->options->algo_all &&
            g_error_matches(why, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE)) {
            tt_report_warn(r->report, "%s left out: %s", algorithms[i], why->message);
            continue;
        }
        if (!plan) {
            g_propagate_error(error, g_steal_pointer(&why));
            return FALSE;
        }
        if (!run_plan(r, plan, c, record, error))
            return FALSE;
    }
    return TRUE;
}

static void
print_heading(const Run *r)
{
    const TtOptions *options = r->options;

    tt_report_comment(r->report, "tutti %s run: %s", TT_VERSION,
                      tt_collective_name(options->collective));
    tt_report_comment(r->report,
                      "ranks %u by %s transport %s reduce %s iterations %u warmup %u validation %d",
                      r->n_ranks, r->setup.launch.source, options->transport, tt_reduce_unit(),
                      options->iterations, options->warmup, options->check);
    for (guint rank = 0; rank < MIN(r->n_ranks, 16); rank++)
        tt_report_comment(r->report, " Rank %2u Pid %6d on %s", rank,
                          (int)tt_team_pid(r->team, rank), tt_team_host_name(r->team, rank));
    if (tt_report_is_table(r->report))
        tt_print_run_header();
    fflush(stdout);
}

static gboolean
start(Run *r, const GArray *cases, GError **error)
{
    const TtOptions *options = r->options;
    TtTeamOptions *team = &r->setup.team;

    for (guint i = 0; i < cases->len; i++)
        team->max_bytes = MAX(team->max_bytes, g_array_index(cases, TtCase, i).bytes);
    tt_report_set_topology(r->report, "this", r->n_ranks, 1);
    tt_report_config(r->report, "transport", "%s", options->transport);
    tt_report_config(r->report, "reduce", "%s", tt_reduce_unit());
    tt_report_config_number(r->report, "iterations", options->iterations);
    tt_report_config_number(r->report, "warmup", options->warmup);
    tt_report_config_number(r->report, "check", options->check);
    return have_team(r, NULL, error);
}

/* The plans of the smallest size, so that a usage error comes before any rank starts. */
static gboolean
check_request(const Run *r, const GArray *cases, GError **error)
{
    const TtOptions *options = r->options;

    for (guint i = 0; options->algorithms[i] && !options->algo_all && !options->algo_auto; i++) {
        g_autoptr(TtPlan) plan =
            make_plan(r, options->algorithms[i], &g_array_index(cases, TtCase, 0), error);

        if (!plan)
            return FALSE;
    }
    return tt_outlets_check(options, error);
}

static gboolean
run_cases(Run *r, const GArray *cases, GError **error)
{
    for (guint i = 0; i < cases->len; i++) {
        gboolean record = i + 1 == cases->len && tt_outlets_want_timelines(r->options);

        if (!run_case(r, &g_array_index(cases, TtCase, i), record, error))
            return FALSE;
    }
    return TRUE;
}

/* Our own executor, on processes started here. */
static int
run_here(const TtOptions *options, GError **error)
{
    g_autoptr(TtReport) report =
        tt_report_new(options, TT_FIELDS_CALL | TT_FIELDS_PLAN | TT_FIELDS_TIME | TT_FIELDS_WRONG);
    g_autoptr(GPtrArray) timelines =
        g_ptr_array_new_with_free_func((GDestroyNotify)tt_timeline_free);
    g_autoptr(GArray) cases = NULL;
    Run r = { .options = options,
              .report = report,
              .timelines = timelines,
              .progress = tt_progress_begin(options->quiet) };
    gboolean good, reports = TRUE;

    good = tt_team_setup(&r.setup, options, g_get_num_processors(), error);
    r.n_ranks = r.setup.team.n_ranks;
    if (good) {
        cases = tt_options_cases(options, r.n_ranks);
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
      "whose collectives: tutti (default), or mpi, under mpirun", "NAME" },
    { NULL },
};

const TtCommand tt_cmd_run = {
    .name = "run",
    .summary = "run a collective on real ranks here, check the data, time it",
    .examples = "  tutti run --ranks 2 -b 1K -e 64M -f 4 --algo ring,tree\n"
                "  tutti run --ranks 4 -b 8 -e 1M -f 8 -d all -o all\n"
                "  tutti run --ranks 2 -b 1M --algo double-tree --trace tree.json\n"
                "      what happened when, to be opened at ui.perfetto.dev\n"
                "  mpirun -np 4 tutti run --backend mpi -b 8 -e 64M -f 4\n",
    .options = TT_OPTIONS_SIZES | TT_OPTIONS_CALL | TT_OPTIONS_PLAN | TT_OPTIONS_RANKS |
               TT_OPTIONS_MEASURE | TT_OPTIONS_ROWS | TT_OPTIONS_TRACE | TT_OPTIONS_NETWORK,
    .own = entries,
    .run = run_run,
};
