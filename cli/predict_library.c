/* The rows of `tutti predict --library nccl`: what NCCL would choose and how long that would take, or the
 * same for the algorithms --algo names. */
#include "cli/predict_library.h"
#include "cli/crossovers.h"
#include "cli/explain_choice.h"
#include "cli/outlets.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "plots/plot.h"

#include <stdio.h>
#include <string.h>

/* How often to look whether all is done. */
#define LOOK_US 2000

typedef struct {
    const TtOptions *options;
    TtReport *report;
    TtLibrary *library;
    GArray *pairs; /* TtLibraryPair; empty: NCCL chooses */
    const char *source;
    TtProgress progress;
    GPtrArray *timelines; /* TtTimeline, of the last size */
} Predict;

/* A row and what it borrows. */
typedef struct {
    TtRow row;
    TtLibraryTime time;
} Predicted;

static void
predicted_clear(gpointer predicted)
{
    tt_library_time_clear(&((Predicted *)predicted)->time);
}

static void
print_heading(const Predict *p)
{
    const TtLibrary *l = p->library;
    g_autofree char *version = tt_nccl_version_name(l->version);

    tt_report_comment(p->report, "tutti %s predict: %s by NCCL %s", TT_VERSION,
                      tt_collective_name(p->options->collective), version);
    tt_report_comment(p->report, "topology %s: %u ranks on %u node%s, %u channel%s", l->topology,
                      l->comm.n_ranks, l->comm.n_nodes, l->comm.n_nodes == 1 ? "" : "s",
                      l->comm.n_channels, l->comm.n_channels == 1 ? "" : "s");
    for (guint i = 0; p->options->settings && p->options->settings[i]; i++)
        tt_report_comment(p->report, "set %s", p->options->settings[i]);
    for (guint i = 0; p->options->env && p->options->env[i]; i++)
        tt_report_comment(p->report, "env %s", p->options->env[i]);
    tt_report_comment(p->report, "%s", p->source);
}

/* One choice at one size. FALSE with an error: NCCL fails, the pair is off, or there is no plan for it. */
static gboolean
predict_one(const Predict *p, const TtCase *c, const TtLibraryPair *pair, gboolean record,
            Predicted *out, GError **error)
{
    TtNcclOp op = tt_library_op(p->library, c);
    TtNcclChoice choice;
    TtNcclCall call;

    if (!tt_library_choose(p->library, &op, pair, &choice, error))
        return FALSE;
    call = tt_library_call(p->library, c, p->options->root, &choice);
    if (!tt_library_time(p->library, &call, p->options->level, record, &out->time, error))
        return FALSE;
    out->row = tt_library_row(p->library, c, &choice, &out->time);
    if (p->options->collective == TT_BROADCAST || p->options->collective == TT_REDUCE)
        out->row.root = p->options->root;
    return TRUE;
}

/* One size: its rows, or why there are none. */
typedef struct {
    const Predict *p;
    const TtCase *c;
    gboolean record;
    GArray *rows; /* Predicted */
    GError *error;
} Job;

/* On a thread of its own. With --algo all, what a type rules out is left out. */
static void
predict_case(gpointer data, gpointer unused)
{
    Job *job = data;
    const Predict *p = job->p;
    guint fastest = 0, tries = MAX(1, p->pairs->len);

    (void)unused;
    for (guint i = 0; i < tries; i++) {
        const TtLibraryPair *pair =
            p->pairs->len ? &g_array_index(p->pairs, TtLibraryPair, i) : NULL;
        gboolean may_miss = p->options->algo_all && (job->rows->len > 0 || i + 1 < tries);
        Predicted predicted = { 0 };

        if (predict_one(p, job->c, pair, job->record, &predicted, may_miss ? NULL : &job->error)) {
            g_array_append_val(job->rows, predicted);
            if (predicted.row.time_us < g_array_index(job->rows, Predicted, fastest).row.time_us)
                fastest = job->rows->len - 1;
        } else if (!may_miss) {
            return;
        }
    }
    g_array_index(job->rows, Predicted, fastest).row.fastest = TRUE;
}

static void
job_clear(gpointer job)
{
    g_array_unref(((Job *)job)->rows);
    g_clear_error(&((Job *)job)->error);
}

/* All sizes, on as many threads as there are cores. What comes out does not depend on them. */
static GArray *
predict_cases(Predict *p, const GArray *cases)
{
    GArray *jobs = g_array_sized_new(FALSE, TRUE, sizeof(Job), cases->len);
    gboolean record = tt_outlets_want_timelines(p->options);
    GThreadPool *pool =
        g_thread_pool_new(predict_case, NULL, (int)g_get_num_processors(), FALSE, NULL);

    g_array_set_size(jobs, cases->len);
    g_array_set_clear_func(jobs, job_clear);
    for (guint i = cases->len; i-- > 0;) { /* the largest take longest: they go first */
        Job *job = &g_array_index(jobs, Job, i);

        *job = (Job){ .p = p,
                      .c = &g_array_index(cases, TtCase, i),
                      .record = record && i + 1 == cases->len,
                      .rows = g_array_new(FALSE, TRUE, sizeof(Predicted)) };
        g_array_set_clear_func(job->rows, predicted_clear);
        g_thread_pool_push(pool, job, NULL);
    }
    while (g_thread_pool_unprocessed(pool) > 0) {
        g_usleep(LOOK_US);
        tt_progress_show(&p->progress, "predicting, %u sizes to go",
                         g_thread_pool_unprocessed(pool));
    }
    g_thread_pool_free(pool, FALSE, TRUE);
    tt_progress_wipe(&p->progress);
    return jobs;
}

/* What fails prints nothing: the first failure is the one told. */
static gboolean
find_failure(GArray *jobs, GError **error)
{
    for (guint i = 0; i < jobs->len; i++) {
        Job *job = &g_array_index(jobs, Job, i);

        if (job->error) {
            g_propagate_error(error, g_steal_pointer(&job->error));
            return TRUE;
        }
    }
    return FALSE;
}

static void
print_row(const Predict *p, Predicted *predicted)
{
    tt_report_add(p->report, &predicted->row);
    if (tt_report_is_table(p->report))
        tt_print_library_row(&predicted->row, p->pairs->len > 1);
    if (predicted->time.timeline)
        g_ptr_array_add(p->timelines, g_steal_pointer(&predicted->time.timeline));
}

static void
print_rows(const Predict *p, const GArray *jobs)
{
    if (tt_report_is_table(p->report))
        tt_print_library_header();
    for (guint i = 0; i < jobs->len; i++) {
        GArray *rows = g_array_index(jobs, Job, i).rows;

        for (guint r = 0; r < rows->len; r++)
            print_row(p, &g_array_index(rows, Predicted, r));
    }
}

static gboolean
check_options(const TtOptions *options, const TtLibrary *library, gboolean explain, GError **error)
{
    if (options->root >= library->comm.n_ranks) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE, "root %u must be below %u, the ranks",
                    options->root, library->comm.n_ranks);
        return FALSE;
    }
    if (tt_outlets_want_timelines(options) && options->level != TT_LEVEL_FLOW) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "--trace and --timeline show simulated plans: use --level flow");
        return FALSE;
    }
    if (explain && options->csv) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "--explain-choice has no CSV form; use --json");
        return FALSE;
    }
    return TRUE;
}

/* Only with --algo all is it known that nothing else was faster. */
#define WORTH_TELLING 0.03

/* By how much NCCL's own choice is slower than the fastest row of this size; 0 if it is not among them. */
static double
regret(const Predict *p, const Job *job, const Predicted **chosen, const Predicted **fastest)
{
    TtNcclOp op = tt_library_op(p->library, job->c);
    TtNcclChoice choice;

    *chosen = *fastest = NULL;
    if (!tt_library_choose(p->library, &op, NULL, &choice, NULL))
        return 0;
    for (guint i = 0; i < job->rows->len; i++) {
        const Predicted *one = &g_array_index(job->rows, Predicted, i);

        if (!strcmp(one->row.algorithm, tt_library_algo_word(choice.algo)) &&
            !strcmp(one->row.protocol, tt_library_proto_word(choice.proto)))
            *chosen = one;
        if (one->row.fastest)
            *fastest = one;
    }
    return *chosen && *fastest ? (*chosen)->row.time_us / (*fastest)->row.time_us - 1 : 0;
}

/* The variables that make NCCL take what @row has. */
static char *
variables_for(const TtRow *row)
{
    TtLibraryPair pair;
    g_autofree char *text = g_strconcat(row->algorithm, ":", row->protocol, NULL);

    if (!tt_library_pair_parse(text, &pair, NULL))
        return g_strdup(row->algorithm);
    if (pair.algo == TT_NCCL_RING || pair.algo == TT_NCCL_TREE)
        return g_strdup_printf("NCCL_ALGO=%s NCCL_PROTO=%s", tt_nccl_algo_name(pair.algo),
                               tt_nccl_proto_name((guint)pair.proto));
    return g_strdup_printf("NCCL_ALGO=%s", tt_nccl_algo_name(pair.algo));
}

/* The size where NCCL's own choice costs most, if it costs much anywhere. */
static void
tell_regret(const Predict *p, GArray *jobs)
{
    const Predicted *chosen = NULL, *fastest = NULL;
    double most = WORTH_TELLING;
    guint n = 0;

    for (guint i = 0; i < jobs->len; i++) {
        const Predicted *a, *b;
        double now = regret(p, &g_array_index(jobs, Job, i), &a, &b);

        n += now > WORTH_TELLING;
        if (now > most)
            most = now, chosen = a, fastest = b;
    }
    if (chosen) {
        g_autofree char *size = tt_format_bytes(chosen->row.bytes);
        g_autofree char *variables = variables_for(&fastest->row);
        g_autofree char *others =
            n > 1 ? g_strdup_printf("; by over 3 %% at %u of %u sizes", n, jobs->len)
                  : g_strdup("");

        tt_report_comment(
            p->report, "NCCL's choice at %s (%s %s) is predicted %.0f %% slower than %s %s: %s%s",
            size, chosen->row.algorithm, chosen->row.protocol, 100 * most, fastest->row.algorithm,
            fastest->row.protocol, variables, others);
    }
}

static gboolean
finish(Predict *p, GArray *jobs, GError **error)
{
    g_autofree char *crossovers = tt_crossovers(p->report, TRUE);
    g_autofree char *version = tt_nccl_version_name(p->library->version);
    g_autofree char *title =
        g_strdup_printf("%s on %s by NCCL %s, %u ranks", tt_collective_name(p->options->collective),
                        p->library->topology, version, p->library->comm.n_ranks);

    if (crossovers) {
        tt_report_gap(p->report);
        tt_report_comment(p->report, "%s at the sizes asked: %s",
                          p->pairs->len ? "Fastest" : "Chosen", crossovers);
    }
    if (p->options->algo_all)
        tell_regret(p, jobs);
    return tt_report_finish(p->report, error) &&
           tt_outlets_write_timelines(p->options, p->timelines, error) &&
           tt_outlets_plot(p->report, p->options,
                           p->pairs->len ? tt_plot_predict : tt_plot_nccl_choice, title, error);
}

int
tt_predict_library(const TtOptions *options, gboolean explain, GError **error)
{
    g_autoptr(TtReport) report =
        tt_report_new(options, TT_FIELDS_CALL | TT_FIELDS_PLAN | TT_FIELDS_TIME | TT_FIELDS_BOUND |
                                   TT_FIELDS_FASTEST);
    g_autoptr(GArray) pairs = NULL;
    g_autoptr(TtLibrary) library = NULL;
    g_autoptr(GArray) cases = NULL, jobs = NULL;
    g_autoptr(GPtrArray) timelines =
        g_ptr_array_new_with_free_func((GDestroyNotify)tt_timeline_free);
    Predict p = { .options = options,
                  .report = report,
                  .timelines = timelines,
                  .progress = tt_progress_begin(options->quiet),
                  .source = tt_library_time_source(options->level, error) };

    if (!p.source || !tt_outlets_check(options, error))
        return TT_EXIT_USAGE;
    tt_report_config(report, "level", "%s", tt_level_name(options->level));
    p.library = library = tt_library_open(options, report, error);
    if (!library || !check_options(options, library, explain, error))
        return TT_EXIT_USAGE;
    p.pairs = pairs = tt_library_pairs(library, options);
    cases = tt_options_cases(options, library->comm.n_ranks);
    jobs = predict_cases(&p, cases);
    if (find_failure(jobs, error))
        return TT_EXIT_USAGE;
    print_heading(&p);
    if (explain)
        tt_explain_choice(report, library, cases);
    print_rows(&p, jobs);
    return finish(&p, jobs, error) ? TT_EXIT_GOOD : TT_EXIT_FAILED;
}
