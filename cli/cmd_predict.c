/* predict - how long a collective takes on a topology, for one, some or all algorithms. */
#include "algos/algo.h"
#include "cli/crossovers.h"
#include "cli/outlets.h"
#include "cli/predict_library.h"
#include "cli/progress.h"
#include "cli/setup.h"
#include "cli/table.h"
#include "cli/tuning.h"
#include "cli/values.h"
#include "plots/plot.h"

#include <stdio.h>
#include <string.h>

/* Algorithms asked for by "all" or "auto" are left out above this; who names one may wait for it.
 */
#define MAX_MESSAGES 3e7

/* So many times slower than the fastest, and so many messages to simulate: dropped for larger
 * sizes. */
#define HOPELESS      10
#define DEAR_MESSAGES 100000

/* How often to say how long it takes. */
#define LOOK_US 200000

static char *iterations_text;
static gboolean explain;

typedef struct {
    const TtOptions *options;
    TtReport *report;
    TtSetup setup;
    guint iterations;
    guint n_algorithms;
    gboolean headed;      /* the heading is out: there is something under it */
    gboolean *left_out;   /* [n_algorithms]: it cannot, and that was said */
    gboolean *hopeless;   /* [n_algorithms]: far behind at a smaller size */
    double *busbw_gbps;   /* [n_algorithms]: at the size before, 0: there was none */
    GPtrArray *timelines; /* TtTimeline, of the last size */
    TtProgress progress;
} Predict;

/* One algorithm at one size: what to predict, then what came out. */
typedef struct {
    const Predict *predict;
    const char *algorithm;
    const TtCase *c;
    gboolean record;
    TtPlan *plan; /* NULL: it cannot do this, see why */
    TtSimResult result;
    TtRow row;
    GError *why;
} Candidate;

static void
candidate_clear(Candidate *c)
{
    tt_plan_free(c->plan);
    tt_sim_result_clear(&c->result);
    g_clear_error(&c->why);
}

/* Messages of the whole plan, from a sample of its ranks. */
static double
estimate_messages(const TtPlan *plan)
{
    guint n = plan->spec.n_ranks, sampled = MIN(n, 64);
    double steps = 0;

    for (guint i = 0; i < sampled; i++) {
        guint rank = (guint)((guint64)i * n / sampled);

        for (guint lane = 0; lane < plan->n_lanes; lane++)
            steps += tt_plan_n_steps(plan, rank, lane);
    }
    return steps / sampled * n * plan->n_rounds;
}

/* Nodes with an NVSwitch have one that reduces; that a network has is nothing to be taken for granted. */
static gboolean
needs_reducing_network(const TtPlan *plan)
{
    for (guint agent = plan->spec.n_ranks; agent < tt_plan_n_agents(plan); agent++)
        if (tt_plan_switch(plan, agent).is_network)
            return TRUE;
    return FALSE;
}

/* "all" and "auto" leave out what takes long, and what only some machines can. */
static gboolean
goes_without_saying(const Predict *p, const TtPlan *plan, GError **error)
{
    gboolean chosen = !p->options->algo_all && !p->options->algo_auto;
    double messages = p->options->level == TT_LEVEL_FLOW ? estimate_messages(plan) : 0;

    if (!chosen && needs_reducing_network(plan)) {
        g_set_error(error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE,
                    "needs a network whose switches reduce (SHARP); name it with --algo to insist");
        return FALSE;
    }
    if (chosen || messages <= MAX_MESSAGES)
        return TRUE;
    g_set_error(error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE,
                "some %.0f million messages to simulate; name it with --algo to insist",
                messages / 1e6);
    return FALSE;
}

/* Reads the rest, writes the candidate. */
static void
predict_one(Candidate *out)
{
    const Predict *p = out->predict;
    TtSimOptions options = { .level = p->options->level,
                             .profile = p->setup.profile,
                             .iterations = p->iterations,
                             .record = out->record };
    TtPlanSpec spec = tt_setup_spec(&p->setup, out->c);
    g_autoptr(TtPlan) plan = tt_plan_new(out->algorithm, &spec, &out->why);

    if (!plan || !goes_without_saying(p, plan, &out->why))
        return;
    if (p->options->chunk_bytes == TT_CHUNK_AUTO) {
        spec.slot_bytes = tt_tune_slot_bytes(out->algorithm, &spec, p->setup.topo, &options);
        tt_plan_free(plan);
        plan = tt_plan_new(out->algorithm, &spec, &out->why);
    }
    if (!plan || !tt_sim_run(plan, p->setup.topo, &options, &out->result, &out->why))
        return;
    out->row = tt_row_for(plan, out->c);
    tt_row_set_time(&out->row, spec.collective, tt_ps_to_seconds(out->result.time_ps));
    out->row.bound_us = out->result.bound_ps / 1e6;
    out->row.limit = out->result.limit;
    out->row.bottleneck = out->result.bottleneck;
    out->plan = g_steal_pointer(&plan);
}

/* Candidates that threads still work on. */
typedef struct {
    GMutex mutex;
    GCond fewer;
    guint n;
} Pending;

/* On a thread of its own. */
static void
predict_pending(gpointer candidate, gpointer data)
{
    Pending *pending = data;

    predict_one(candidate);
    g_mutex_lock(&pending->mutex);
    pending->n--;
    g_cond_signal(&pending->fewer);
    g_mutex_unlock(&pending->mutex);
}

static void
wait_for(Predict *p, Pending *pending, const char *size)
{
    g_mutex_lock(&pending->mutex);
    while (pending->n > 0) {
        g_cond_wait_until(&pending->fewer, &pending->mutex, g_get_monotonic_time() + LOOK_US);
        tt_progress_show(&p->progress, "predicting %s: %u to go, %.0f s so far", size, pending->n,
                         (double)(g_get_monotonic_time() - p->progress.begin_us) / 1e6);
    }
    g_mutex_unlock(&pending->mutex);
}

/* Whoever leaves the choice to us does not ask about what other collectives or machines are for. */
static gboolean
is_news(const Predict *p, guint i)
{
    const TtAlgo *algo = tt_algo_find(p->options->algorithms[i]);

    return p->options->algo_all ||
           (algo->collectives & TT_BIT(p->options->collective) && !algo->switch_place);
}

/* With a list, what cannot be is an error; with "all" and "auto" it is left out, said once. */
static gboolean
may_leave_out(Predict *p, guint i, const GError *why)
{
    if (!p->options->algo_all && !p->options->algo_auto)
        return FALSE;
    if (!g_error_matches(why, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE) &&
        !g_error_matches(why, TT_SIM_ERROR, TT_SIM_ERROR_USAGE))
        return FALSE;
    if (!p->left_out[i] && is_news(p, i)) {
        tt_progress_wipe(&p->progress);
        tt_report_warn(p->report, "%s left out: %s", p->options->algorithms[i], why->message);
    }
    p->left_out[i] = TRUE;
    return TRUE;
}

/* Every algorithm, on as many threads as there are cores. What comes out does not depend on them.
 */
static void
predict_all(Predict *p, const TtCase *c, gboolean record, Candidate *candidates)
{
    g_autoptr(GPtrArray) wanted = g_ptr_array_new();
    Pending pending = { 0 };
    GThreadPool *pool =
        g_thread_pool_new(predict_pending, &pending, (int)g_get_num_processors(), FALSE, NULL);
    g_autofree char *size = tt_format_bytes(c->bytes);

    g_mutex_init(&pending.mutex);
    g_cond_init(&pending.fewer);
    for (guint i = 0; i < p->n_algorithms; i++) {
        candidates[i] = (Candidate){
            .predict = p, .algorithm = p->options->algorithms[i], .c = c, .record = record
        };
        if (!p->hopeless[i])
            g_ptr_array_add(wanted, &candidates[i]);
    }
    pending.n = wanted->len;
    for (guint i = 0; i < wanted->len; i++)
        g_thread_pool_push(pool, wanted->pdata[i], NULL);
    wait_for(p, &pending, size);
    g_thread_pool_free(pool, FALSE, TRUE);
    g_mutex_clear(&pending.mutex);
    g_cond_clear(&pending.fewer);
}

static gboolean
find_fastest(Predict *p, Candidate *candidates, guint *fastest, GError **error)
{
    GError *last = NULL;

    *fastest = G_MAXUINT;
    for (guint i = 0; i < p->n_algorithms; i++) {
        Candidate *candidate = &candidates[i];

        if (candidate->plan && (*fastest == G_MAXUINT ||
                                candidate->result.time_ps < candidates[*fastest].result.time_ps))
            *fastest = i;
        if (!candidate->why)
            continue;
        if (!may_leave_out(p, i, candidate->why)) {
            g_propagate_error(error, g_steal_pointer(&candidate->why));
            return FALSE;
        }
        last = candidate->why;
    }
    if (*fastest != G_MAXUINT)
        return TRUE;
    g_propagate_prefixed_error(error, g_error_copy(last),
                               "no algorithm can do this; the last refused with: ");
    return FALSE;
}

/* Larger sizes will not make a much slower algorithm the fastest again. Where simulating it is
 * dear, "all" and "auto" stop there. */
static void
drop_hopeless(Predict *p, const Candidate *candidates, guint fastest)
{
    double best_ps = (double)candidates[fastest].result.time_ps;

    if (!p->options->algo_all && !p->options->algo_auto)
        return;
    for (guint i = 0; i < p->n_algorithms; i++) {
        const Candidate *c = &candidates[i];
        double former = p->busbw_gbps[i];
        g_autofree char *size = NULL;

        if (!c->plan)
            continue;
        p->busbw_gbps[i] = c->row.busbw_gbps;
        if (c->result.n_messages < DEAR_MESSAGES || c->result.time_ps < HOPELESS * best_ps ||
            former == 0 || c->row.busbw_gbps > 1.1 * former)
            continue;
        size = tt_format_bytes(c->row.bytes);
        p->hopeless[i] = TRUE;
        tt_report_warn(p->report, "%s left out above %s: over %d times slower than %s there",
                       p->options->algorithms[i], size, HOPELESS, p->options->algorithms[fastest]);
    }
}

static void
keep_timeline(Predict *p, Candidate *c)
{
    if (c->result.timeline)
        g_ptr_array_add(p->timelines, g_steal_pointer(&c->result.timeline));
}

static void
print_heading(const Predict *p)
{
    const TtOptions *options = p->options;
    g_autofree char *channels = options->channels ? g_strdup("as given") : g_strdup("chosen");
    guint per_node = tt_topology_ranks_per_node(p->setup.topo);
    guint n_nodes = (p->setup.n_ranks + per_node - 1) / per_node;
    guint n_nics = tt_topology_nics_per_node(p->setup.topo);
    gboolean wires_only = strcmp(p->setup.profile->name, "ideal") == 0;

    tt_report_comment(p->report, "tutti %s predict: %s", TT_VERSION,
                      tt_collective_name(options->collective));
    tt_report_comment(p->report, "topology %s: %u ranks on %u node%s, %u NIC%s a node",
                      tt_topology_name(p->setup.topo), p->setup.n_ranks, n_nodes,
                      n_nodes == 1 ? "" : "s", n_nics, n_nics == 1 ? "" : "s");
    for (guint i = 0; p->options->settings && p->options->settings[i]; i++)
        tt_report_comment(p->report, "set %s", p->options->settings[i]);
    tt_report_comment(p->report, "level %s, profile %s%s, %u channel%s (%s), groups of %u",
                      tt_level_name(options->level), p->setup.profile->name,
                      wires_only ? " (wires only, no library's costs)" : "", p->setup.n_channels,
                      p->setup.n_channels == 1 ? "" : "s", channels, p->setup.group_size);
    if (tt_report_is_table(p->report))
        tt_print_predict_header();
}

static gboolean
predict_case(Predict *p, const TtCase *c, gboolean last, GError **error)
{
    g_autofree Candidate *candidates = g_new0(Candidate, p->n_algorithms);
    gboolean record = last && tt_outlets_want_timelines(p->options), good;
    guint fastest;

    predict_all(p, c, record, candidates);
    tt_progress_wipe(&p->progress);
    good = find_fastest(p, candidates, &fastest, error);
    if (good && !p->headed)
        print_heading(p);
    p->headed |= good;
    if (good)
        drop_hopeless(p, candidates, fastest);
    for (guint i = 0; i < p->n_algorithms; i++) {
        Candidate *candidate = &candidates[i];

        if (good && candidate->plan && (i == fastest || !p->options->algo_auto)) {
            candidate->row.fastest = i == fastest;
            tt_report_add(p->report, &candidate->row);
            if (tt_report_is_table(p->report))
                tt_print_predict_row(&candidate->row, p->n_algorithms > 1);
            keep_timeline(p, candidate);
        }
        candidate_clear(candidate);
    }
    fflush(stdout);
    return good;
}

static gboolean
predict_cases(Predict *p, GError **error)
{
    g_autoptr(GArray) cases = tt_options_cases(p->options, p->setup.n_ranks);

    for (guint i = 0; i < cases->len; i++) {
        const TtCase *c = &g_array_index(cases, TtCase, i);

        if (i > 0 && c->bytes < (c - 1)->bytes) { /* a new sweep, of another type or reduction */
            memset(p->hopeless, 0, p->n_algorithms * sizeof *p->hopeless);
            memset(p->busbw_gbps, 0, p->n_algorithms * sizeof *p->busbw_gbps);
        }
        if (!predict_case(p, c, i + 1 == cases->len, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
finish(Predict *p, GError **error)
{
    g_autofree char *crossovers = tt_crossovers(p->report, FALSE);
    g_autofree char *title =
        g_strdup_printf("%s on %s, %u ranks", tt_collective_name(p->options->collective),
                        tt_topology_name(p->setup.topo), p->setup.n_ranks);

    if (crossovers && p->n_algorithms > 1) {
        tt_report_gap(p->report);
        tt_report_comment(p->report, "Fastest at the sizes asked: %s", crossovers);
    }
    return tt_report_finish(p->report, error) &&
           tt_outlets_write_timelines(p->options, p->timelines, error) &&
           tt_outlets_plot(p->report, p->options,
                           p->options->algo_auto ? tt_plot_fastest : tt_plot_predict, title, error);
}

static int
run_predict(const TtOptions *options, GError **error)
{
    g_autoptr(TtReport) report = NULL;
    g_autoptr(GPtrArray) timelines = NULL;
    g_autofree gboolean *left_out = NULL, *hopeless = NULL;
    g_autofree double *busbw_gbps = NULL;
    Predict p = { .options = options, .iterations = 1 };
    gboolean good;

    if (!tt_parse_uint("-n", iterations_text, 1, 10000, &p.iterations, error))
        return TT_EXIT_USAGE;
    if (options->nccl_version)
        return tt_predict_library(options, explain, error);
    if (explain) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "--explain-choice goes with --library nccl: nothing else chooses so");
        return TT_EXIT_USAGE;
    }
    if (!tt_outlets_check(options, error))
        return TT_EXIT_USAGE;
    report = tt_report_new(options, TT_FIELDS_CALL | TT_FIELDS_PLAN | TT_FIELDS_TIME |
                                        TT_FIELDS_BOUND | TT_FIELDS_FASTEST);
    timelines = g_ptr_array_new_with_free_func((GDestroyNotify)tt_timeline_free);
    p.n_algorithms = g_strv_length(options->algorithms);
    p.report = report;
    p.timelines = timelines;
    p.left_out = left_out = g_new0(gboolean, p.n_algorithms);
    p.hopeless = hopeless = g_new0(gboolean, p.n_algorithms);
    p.busbw_gbps = busbw_gbps = g_new0(double, p.n_algorithms);
    p.progress = tt_progress_begin(options->quiet);
    if (!tt_setup_open(&p.setup, options, "ideal", report, error))
        return TT_EXIT_USAGE;
    tt_report_config_number(report, "iterations", p.iterations);
    good = predict_cases(&p, error) && finish(&p, error);
    tt_setup_clear(&p.setup);
    return good ? TT_EXIT_GOOD : TT_EXIT_FAILED;
}

static const GOptionEntry entries[] = {
    { "iters", 'n', 0, G_OPTION_ARG_FILENAME, &iterations_text,
      "back to back; the time is their steady distance (default 1)", "N" },
    { "explain-choice", 0, 0, G_OPTION_ARG_NONE, &explain,
      "with --library nccl: what it found, computes and believes", NULL },
    { NULL },
};

const TtCommand tt_cmd_predict = {
    .name = "predict",
    .summary = "predict how long a collective takes on a topology",
    .examples = "  tutti predict --topo dgx-h100:16 -b 8 -e 8G -f 2 --algo all\n"
                "      where the curves of all algorithms cross on 16 nodes of 8 GPUs\n"
                "  tutti predict --topo dgx-h100:16 -b 1G --algo ring --set node.nics=4\n"
                "      what if each node had half its NICs\n"
                "  tutti predict --topo dgx-h100:2 -b 1M --algo double-tree --trace tree.json\n"
                "      every step and message, to be opened at ui.perfetto.dev\n"
                "  tutti predict --topo dgx-h100:16 -b 8 -e 8G -f 4 --algo all --plot out/h100\n"
                "      draws out/h100.png and out/h100.svg\n"
                "  tutti predict --topo dgx-h100:16 -b 8 -e 8G -f 2 --library nccl-2.27\n"
                "      what NCCL 2.27 would choose at each size\n"
                "  tutti predict --topo dgx-a100:2 -b 1M --library nccl --explain-choice \\\n"
                "      --env NCCL_ALGO=Ring,Tree\n"
                "      and why, with that variable set\n",
    .options = TT_OPTIONS_SIZES | TT_OPTIONS_CALL | TT_OPTIONS_PLAN | TT_OPTIONS_TOPOLOGY |
               TT_OPTIONS_MODEL | TT_OPTIONS_RANKS | TT_OPTIONS_ROWS | TT_OPTIONS_TRACE |
               TT_OPTIONS_PLOT | TT_OPTIONS_LIBRARY,
    .own = entries,
    .run = run_predict,
};
