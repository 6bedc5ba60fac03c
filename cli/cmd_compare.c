/* compare - predict and run the same plans, and show where the two part. */
#include "cli/calibration.h"
#include "cli/compare_measured.h"
#include "cli/comparison.h"
#include "cli/outlets.h"
#include "cli/progress.h"
#include "cli/setup.h"
#include "cli/summary.h"
#include "cli/table.h"
#include "cli/team.h"
#include "exec/defaults.h"
#include "plots/plot.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    const TtOptions *options;
    TtReport *report;
    TtSetup setup;
    TtTeamSetup team_setup;
    char *transport; /* whose profile is taken */
    TtTeam *team;
    TtProgress progress;
    GPtrArray *timelines;
    GArray *errors; /* TtErrorSample */
    guint n_wrong, n_other_state;
} Compare;

/* The plan the executor would run, so that both sides see the same one. */
static TtPlan *
make_plan(const Compare *c, const char *algorithm, const TtCase *k, GError **error)
{
    TtPlanSpec spec = tt_setup_spec(&c->setup, k);
    g_autoptr(TtPlan) plan = NULL;

    spec.n_channels = c->options->channels;
    tt_exec_defaults_over(&spec, algorithm, c->team_setup.team.transport);
    if (c->options->chunk_bytes != TT_CHUNK_AUTO)
        spec.slot_bytes = c->options->chunk_bytes;
    plan = tt_plan_new(algorithm, &spec, error);
    if (plan && plan->n_switches > 0) {
        g_set_error(error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE,
                    "%s: switches that reduce are only played here: nothing to compare with",
                    algorithm);
        return NULL;
    }
    return g_steal_pointer(&plan);
}

static void
keep_timelines(Compare *c, TtComparison *comparison)
{
    g_ptr_array_add(c->timelines, g_steal_pointer(&comparison->predicted));
    g_ptr_array_add(c->timelines, g_steal_pointer(&comparison->recorded));
}

/* Of two transports the one whose costs count: across machines the last, as what crosses a network costs what it costs
 * on the way there; inside one machine the first. Owned by the caller. */
static char *
profiled_transport(const Compare *c)
{
    const TtLaunch *launch = &c->team_setup.launch;
    g_auto(GStrv) words = g_strsplit(c->team_setup.team.transport, ",", 2);

    return g_strdup(words[1] && launch->n_local < launch->n_ranks ? words[1] : words[0]);
}

/* Of a machine that flips between states only shared memory tells. */
static gboolean
is_other_state(const Compare *c, const TtComparison *comparison)
{
    return !comparison->measured.state && tt_calibration_is_of_memory(c->transport);
}

static void
add_row(Compare *c, const TtPlan *plan, const TtCase *k, const TtComparison *comparison)
{
    TtRow row = tt_row_for(plan, k);
    g_autofree char *where = tt_divergence_text(&comparison->worst);
    TtErrorSample sample = { .bytes = k->bytes, .error = comparison->error };

    row.predicted_us = comparison->predicted_s * 1e6;
    row.measured_us = comparison->measured.time_s * 1e6;
    row.error = comparison->error;
    if (comparison->measured.gpu_protocol != TT_GPU_PROTOCOL_AUTO)
        row.protocol = tt_gpu_protocol_name(comparison->measured.gpu_protocol);
    else
        row.flag_ns = comparison->measured.flag_s * 1e9;
    row.wrong = comparison->measured.wrong;
    row.diverges = where;
    tt_report_add(c->report, &row);
    if (tt_report_is_table(c->report))
        tt_print_compare_row(&row, is_other_state(c, comparison));
    fflush(stdout);
    g_array_append_val(c->errors, sample);
    c->n_wrong += comparison->measured.wrong > 0;
    c->n_other_state += is_other_state(c, comparison);
}

static gboolean
compare_plan(Compare *c, const TtPlan *plan, const TtCase *k, gboolean keep, GError **error)
{
    TtCompareOptions how = { .topo = c->setup.topo,
                             .profile = c->setup.profile,
                             .any_state = !tt_calibration_is_of_memory(c->transport),
                             .check = c->options->check };
    TtComparison comparison = { 0 };
    g_autofree char *size = tt_format_bytes(k->bytes);

    tt_progress_show(&c->progress, "comparing %s, %s", plan->name, size);
    if (!tt_compare(c->team, plan, &how, &comparison, error))
        return FALSE;
    tt_progress_wipe(&c->progress);
    add_row(c, plan, k, &comparison);
    if (keep)
        keep_timelines(c, &comparison);
    tt_comparison_clear(&comparison);
    return TRUE;
}

static gboolean
compare_case(Compare *c, const TtCase *k, gboolean keep, GError **error)
{
    TtPlanSpec spec = tt_setup_spec(&c->setup, k);
    const char *chosen[] = { tt_exec_choose(&spec, c->team_setup.team.transport), NULL };
    const char *const *algorithms =
        c->options->algo_auto ? chosen : (const char *const *)c->options->algorithms;

    for (guint i = 0; algorithms[i]; i++) {
        g_autoptr(GError) why = NULL;
        g_autoptr(TtPlan) plan = make_plan(c, algorithms[i], k, &why);

        if (!plan && c->options->algo_all &&
            g_error_matches(why, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE)) {
            tt_report_warn(c->report, "%s left out: %s", algorithms[i], why->message);
            continue;
        }
        if (!plan) {
            g_propagate_error(error, g_steal_pointer(&why));
            return FALSE;
        }
        if (!compare_plan(c, plan, k, keep, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
compare_all(Compare *c, const GArray *cases, GError **error)
{
    for (guint i = 0; i < cases->len; i++) {
        gboolean keep = i + 1 == cases->len && tt_outlets_want_timelines(c->options);

        if (!compare_case(c, &g_array_index(cases, TtCase, i), keep, error))
            return FALSE;
    }
    return TRUE;
}

static void
print_heading(const Compare *c)
{
    const TtProfile *profile = c->setup.profile;

    tt_report_comment(c->report, "tutti %s compare: %s on %s, %u ranks", TT_VERSION,
                      tt_collective_name(c->options->collective), tt_topology_name(c->setup.topo),
                      c->setup.n_ranks);
    tt_report_comment(
        c->report, "profile %s%s%s, reduce %s", profile->machine ? profile->machine : profile->name,
        profile->measured_at ? ", measured " : "", profile->measured_at ? profile->measured_at : "",
        tt_calibration_is_of_gpus(c->transport) ? "kernels" : tt_reduce_unit());
    for (; profile; profile = profile->next)
        tt_report_comment(c->report, "state of the machine: a flag takes %.0f ns",
                          profile->latency_s * 1e9);
    if (tt_report_is_table(c->report))
        tt_print_compare_header();
    fflush(stdout);
}

static void
print_verdict(const Compare *c)
{
    if (!tt_report_is_table(c->report))
        return;
    tt_print_error_summary(c->errors);
    if (c->n_other_state)
        tt_report_comment(c->report,
                          "~ measured in a state of the machine that the profile does not know");
    if (c->n_wrong)
        tt_report_comment(c->report, "Out of bounds values : %u FAILED", c->n_wrong);
}

/* Pairs are calibrated: an odd rank makes no difference worth a word. */
static guint
n_calibrated(const Compare *c)
{
    return MAX(2, c->setup.n_ranks / 2 * 2);
}

static void
warn_of_conditions(const Compare *c)
{
    const TtProfile *profile = c->setup.profile;
    g_autofree char *now = tt_calibration_conditions(&c->team_setup.team, n_calibrated(c));

    if (now && profile->conditions && strcmp(now, profile->conditions) != 0)
        tt_report_warn(c->report, "the profile was calibrated with %s; this run is of %s",
                       profile->conditions, now);
}

/* A profile asked for, the one calibrate kept, or a quick one now. */
static gboolean
find_profile(Compare *c, GError **error)
{
    const char *transport = c->transport;
    g_autofree char *kept = tt_calibration_path(transport, c->options->gpus);
    TtTeamOptions team = { .transport = transport,
                           .gid_index = -1,
                           .gpus = c->options->gpus,
                           .gpu_protocol = c->options->protocol,
                           .gpu_placement = c->options->placement };
    TtCalibrateOptions how = { .quick = TRUE, .quiet = c->options->quiet, .team = &team };

    if (c->options->profile)
        return TRUE;
    if (tt_calibration_is_of_gpus(transport))
        how.n_ranks = n_calibrated(c);
    g_clear_pointer(&c->setup.profile, tt_profile_free);
    if (g_file_test(kept, G_FILE_TEST_EXISTS)) {
        c->setup.profile = tt_profile_open(kept, error);
    } else {
        tt_report_warn(c->report,
                       "no profile of this machine over %s yet: calibrating quickly (tutti "
                       "calibrate --transport %s keeps a better one)",
                       transport, transport);
        c->setup.profile = tt_calibrate(&how, NULL, error);
    }
    if (c->setup.profile)
        tt_report_config(c->report, "profile", "%s, measured %s", c->setup.profile->machine,
                         c->setup.profile->measured_at);
    return c->setup.profile != NULL;
}

/* The ranks run where they were started, whatever --topo describes: here, or where a launcher put them. */
static gboolean
check_topology(const Compare *c, GError **error)
{
    const TtLaunch *launch = &c->team_setup.launch;
    gboolean spread = launch->n_local < launch->n_ranks;

    if (spread ? tt_topology_n_ranks(c->setup.topo) == launch->n_ranks
               : tt_topology_n_nodes(c->setup.topo) == 1 &&
                     tt_topology_cores_per_node(c->setup.topo) > 0)
        return TRUE;
    if (spread)
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "%s started %u ranks, --topo %s has %u: give the topology they run on",
                    launch->source, launch->n_ranks, tt_topology_name(c->setup.topo),
                    tt_topology_n_ranks(c->setup.topo));
    else
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "compare runs its ranks on this machine, and --topo %s is not one machine of "
                    "CPU cores (use --topo this, or a launcher)",
                    tt_topology_name(c->setup.topo));
    return FALSE;
}

static gboolean
start(Compare *c, const GArray *cases, GError **error)
{
    TtTeamOptions *team = &c->team_setup.team;

    if (!tt_team_setup(&c->team_setup, c->options, c->setup.n_ranks, error) ||
        !tt_team_check_gpus(&c->team_setup, c->options, error) || !check_topology(c, error))
        return FALSE;
    if (team->n_ranks != c->setup.n_ranks) {
        g_set_error(
            error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
            "%s says %u ranks, the prediction would be for %u (--ranks, or --topo, must say "
            "the same)",
            c->team_setup.launch.source, team->n_ranks, c->setup.n_ranks);
        return FALSE;
    }
    for (guint i = 0; i < cases->len; i++)
        team->max_bytes = MAX(team->max_bytes, g_array_index(cases, TtCase, i).bytes);
    c->transport = profiled_transport(c);
    c->team = tt_team_start(team, error);
    return c->team != NULL;
}

static gboolean
draw(const Compare *c, GError **error)
{
    g_autofree char *title = g_strdup_printf("%s, %u ranks on %s: predicted and measured",
                                             tt_collective_name(c->options->collective),
                                             c->setup.n_ranks, tt_topology_name(c->setup.topo));

    return tt_outlets_plot(c->report, c->options, tt_plot_compare, title, error);
}

static char **measured_files;
static gboolean measured_in_place;

static const GOptionEntry entries[] = {
    { "measured", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &measured_files,
      "compare with this log or measurement instead of running; more may follow", "FILE" },
    { "in-place", 0, 0, G_OPTION_ARG_NONE, &measured_in_place,
      "take the in-place figures of --measured", NULL },
    { NULL },
};

/* --measured FILE FILE...: the first is the option's, the others are arguments. */
static gboolean
check_files(const TtOptions *options, GError **error)
{
    const char *stray = options->arguments[0];

    if (measured_files)
        return TRUE;
    if (stray)
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "unexpected argument \"%s\" (files follow --measured)", stray);
    else if (measured_in_place)
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE, "--in-place goes with --measured");
    else if (options->nccl_version)
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "--library %s cannot be run here; give what it did elsewhere: --measured FILE",
                    options->library);
    else
        return TRUE;
    return FALSE;
}

static int
compare_files(const TtOptions *options, GError **error)
{
    g_autoptr(GPtrArray) files = g_ptr_array_new();

    for (guint i = 0; measured_files[i]; i++)
        g_ptr_array_add(files, measured_files[i]);
    for (guint i = 0; options->arguments[i]; i++)
        g_ptr_array_add(files, options->arguments[i]);
    return tt_compare_measured(options, files, measured_in_place, error);
}

static int
compare_here(const TtOptions *options, GError **error)
{
    g_autoptr(TtReport) report = tt_report_new(options, TT_FIELDS_CALL | TT_FIELDS_PLAN |
                                                            TT_FIELDS_COMPARE | TT_FIELDS_WRONG);
    g_autoptr(GPtrArray) timelines =
        g_ptr_array_new_with_free_func((GDestroyNotify)tt_timeline_free);
    g_autoptr(GArray) errors = g_array_new(FALSE, FALSE, sizeof(TtErrorSample));
    g_autoptr(GArray) cases = NULL;
    Compare c = { .options = options,
                  .report = report,
                  .timelines = timelines,
                  .errors = errors,
                  .progress = tt_progress_begin(options->quiet) };
    gboolean good;

    if (!tt_outlets_check(options, error) ||
        !tt_setup_open(&c.setup, options, "tutti", report, error))
        return TT_EXIT_USAGE;
    cases = tt_options_cases(options, c.setup.n_ranks);
    good = start(&c, cases, error);
    if (good && !tt_team_is_root(c.team)) {
        good = tt_team_serve(c.team, error);
        tt_team_stop(c.team);
        tt_team_setup_clear(&c.team_setup);
        g_free(c.transport);
        tt_setup_clear(&c.setup);
        return good ? TT_EXIT_GOOD : TT_EXIT_FAILED;
    }
    good = good && find_profile(&c, error);
    if (good) {
        warn_of_conditions(&c);
        print_heading(&c);
        good = compare_all(&c, cases, error);
    }
    tt_progress_wipe(&c.progress);
    g_clear_pointer(&c.team, tt_team_stop);
    tt_team_setup_clear(&c.team_setup);
    g_free(c.transport);
    if (good) {
        print_verdict(&c);
        good = tt_report_finish(report, error) &&
               tt_outlets_write_timelines(options, timelines, error) &&
               (!options->plot || draw(&c, error));
    }
    tt_setup_clear(&c.setup);
    return !good || c.n_wrong ? TT_EXIT_FAILED : TT_EXIT_GOOD;
}

static int
compare_run(const TtOptions *options, GError **error)
{
    if (!check_files(options, error))
        return TT_EXIT_USAGE;
    return measured_files ? compare_files(options, error) : compare_here(options, error);
}

const TtCommand tt_cmd_compare = {
    .name = "compare",
    .summary = "predict and run the same plans, show the error of each and where they part",
    .synopsis = "[--measured FILE...]",
    .examples =
        "  tutti compare --topo this --ranks 2 --algo ring,tree,direct -b 1K -e 64M -f 4\n"
        "  tutti compare --topo this --algo all -b 64K -e 4M -f 8 --plot out/compare\n"
        "      also out/compare.png and out/compare.svg\n"
        "  tutti compare --topo this --algo ring -b 1M --trace ring.json\n"
        "      predicted and measured timelines side by side, for ui.perfetto.dev\n"
        "  tutti compare --measured all_reduce.log\n"
        "      what nccl-tests printed elsewhere, against what NCCL is predicted to do there\n",
    .options = TT_OPTIONS_SIZES | TT_OPTIONS_CALL | TT_OPTIONS_PLAN | TT_OPTIONS_TOPOLOGY |
               TT_OPTIONS_MODEL | TT_OPTIONS_RANKS | TT_OPTIONS_MEASURE | TT_OPTIONS_ROWS |
               TT_OPTIONS_TRACE | TT_OPTIONS_PLOT | TT_OPTIONS_LIBRARY | TT_OPTIONS_NETWORK,
    .own = entries,
    .run = compare_run,
};
