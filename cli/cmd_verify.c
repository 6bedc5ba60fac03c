/* verify - prove plans right by running them on sets of contributors. */
#include "algos/algo.h"
#include "algos/verify.h"
#include "cli/outlets.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/values.h"
#include "cli/verify_library.h"

#include <stdio.h>
#include <string.h>

static char *collectives_text, *counts_text;

typedef struct {
    const TtOptions *options;
    TtReport *report;
    GArray *counts; /* guint64, elements of the vector */
    TtProgress progress;
    guint n_failed, n_proved;
} Verify;

/* What one line of the table sums up. */
typedef struct {
    guint64 cases, steps, messages;
    guint ranks_from, ranks_to; /* of those that could be */
    char *refused;              /* why not, for the ranks that could not */
    char *failed;               /* the first failure */
} Line;

static TtPlanSpec
make_spec(const TtOptions *options, TtCollective collective, guint n_ranks, guint64 count)
{
    return (TtPlanSpec){
        .collective = collective,
        .n_ranks = n_ranks,
        .count = count,
        .type = options->types[0],
        .redop = options->redops[0],
        .root = MIN(options->root, n_ranks - 1),
        .n_channels = options->channels,
        .n_slots = options->slots,
        .slot_bytes = options->chunk_bytes == TT_CHUNK_AUTO ? 0 : options->chunk_bytes,
        .group_size = options->group,
    };
}

/* TRUE unless the plan is wrong. One that cannot be is noted and passed over. */
static gboolean
verify_plan(const char *algorithm, const TtPlanSpec *spec, Line *line, GError **error)
{
    g_autoptr(GError) why = NULL;
    g_autoptr(TtPlan) plan = tt_plan_new(algorithm, spec, &why);
    TtVerifyStats stats;

    if (!plan) {
        if (!line->refused)
            line->refused = g_strdup(why->message);
        return TRUE;
    }
    for (guint in_place = 0; in_place < 2; in_place++) {
        if (!tt_verify(plan, in_place, &stats, error)) {
            g_prefix_error(error, "%u ranks, %" G_GUINT64_FORMAT " elements, %s: ", spec->n_ranks,
                           spec->count, in_place ? "in place" : "out of place");
            return FALSE;
        }
        line->cases++;
        line->steps += stats.n_steps;
        line->messages += stats.n_messages;
    }
    line->ranks_from = line->ranks_from ? MIN(line->ranks_from, spec->n_ranks) : spec->n_ranks;
    line->ranks_to = MAX(line->ranks_to, spec->n_ranks);
    return TRUE;
}

/* FALSE with an error only for what is no fault of the plan. */
static gboolean
verify_all_ranks(Verify *v, const char *algorithm, TtCollective collective, Line *line,
                 GError **error)
{
    g_autoptr(GError) why = NULL;

    for (guint r = 0; r < v->options->n_ranks; r++)
        for (guint c = 0; c < v->counts->len; c++) {
            TtPlanSpec spec = make_spec(v->options, collective, v->options->ranks[r],
                                        g_array_index(v->counts, guint64, c));

            tt_progress_show(&v->progress, "verifying %s, %s, %u ranks", algorithm,
                             tt_collective_name(collective), spec.n_ranks);
            if (verify_plan(algorithm, &spec, line, &why))
                continue;
            if (g_error_matches(why, TT_PLAN_ERROR, TT_PLAN_ERROR_INVALID)) {
                line->failed = g_strdup(why->message);
                return TRUE;
            }
            g_propagate_error(error, g_steal_pointer(&why));
            return FALSE;
        }
    return TRUE;
}

static void
print_line(const TtRow *row, const Line *line)
{
    g_autofree char *ranks = line->ranks_from == line->ranks_to
                                 ? g_strdup_printf("%u", line->ranks_to)
                                 : g_strdup_printf("%u-%u", line->ranks_from, line->ranks_to);

    printf("  %-22s %-15s %9s %7" G_GUINT64_FORMAT " %12" G_GUINT64_FORMAT " %12" G_GUINT64_FORMAT
           " %10.1f  %s\n",
           row->algorithm, row->collective, ranks, row->cases, row->steps, row->messages,
           row->seconds * 1e3, row->verdict);
    if (line->failed)
        printf("#   %s\n", line->failed);
}

static void
report_line(Verify *v, const char *algorithm, TtCollective collective, const Line *line,
            double seconds)
{
    TtRow row = { .algorithm = algorithm,
                  .collective = tt_collective_name(collective),
                  .cases = line->cases,
                  .steps = line->steps,
                  .messages = line->messages,
                  .seconds = seconds,
                  .verdict = line->failed  ? "FAIL"
                             : line->cases ? "PASS"
                                           : "SKIP",
                  .message = line->failed ? line->failed : line->refused };

    v->n_failed += line->failed != NULL;
    v->n_proved += !line->failed && line->cases > 0;
    tt_progress_wipe(&v->progress);
    if (line->refused)
        tt_report_warn(v->report, "passed over: %s", line->refused);
    tt_report_add(v->report, &row);
    if (tt_report_is_table(v->report))
        print_line(&row, line);
    fflush(stdout);
}

static gboolean
verify_algorithm(Verify *v, const char *algorithm, TtCollective collective, GError **error)
{
    gint64 begin_us = g_get_monotonic_time();
    Line line = { 0 };
    gboolean good = verify_all_ranks(v, algorithm, collective, &line, error);

    if (good)
        report_line(v, algorithm, collective, &line, (g_get_monotonic_time() - begin_us) / 1e6);
    g_free(line.refused);
    g_free(line.failed);
    return good;
}

/* Bits of the collectives asked for; "all" leaves to each algorithm what it can do. */
static gboolean
parse_collectives(guint *bits, gboolean *all, GError **error)
{
    const char *text = collectives_text ? collectives_text : "all";
    g_auto(GStrv) words = NULL;

    *all = strcmp(text, "all") == 0;
    *bits = *all ? TT_BIT(TT_N_COLLECTIVES) - 1 : 0;
    if (*all)
        return TRUE;
    words = tt_split_list("--collective", text, error);
    if (!words)
        return FALSE;
    for (guint i = 0; words[i]; i++) {
        TtCollective collective;

        if (!tt_collective_parse(words[i], &collective, error))
            return FALSE;
        *bits |= TT_BIT(collective);
    }
    return TRUE;
}

static gboolean
verify_collectives(Verify *v, GError **error)
{
    gboolean all_collectives;
    guint bits;

    if (!parse_collectives(&bits, &all_collectives, error))
        return FALSE;
    for (guint i = 0; v->options->algorithms[i]; i++) {
        const char *algorithm = v->options->algorithms[i];
        guint can = tt_algo_find(algorithm)->collectives;

        for (guint c = 0; c < TT_N_COLLECTIVES; c++) {
            gboolean skip = (all_collectives || v->options->algo_all) && !(can & TT_BIT(c));

            if ((bits & TT_BIT(c)) && !skip && !verify_algorithm(v, algorithm, c, error))
                return FALSE;
        }
    }
    return TRUE;
}

static gboolean
prepare(Verify *v, GError **error)
{
    const char *counts = counts_text ? counts_text : "0,1,17,1000,65537";

    if (!tt_outlets_check(v->options, error) ||
        !tt_parse_ranges("--count", counts, 0, G_GUINT64_CONSTANT(1) << 59, v->counts, error))
        return FALSE;
    if (v->options->n_ranks == 0) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "--ranks is needed: a number, a list or a range such as 1-33");
        return FALSE;
    }
    tt_report_set_topology(v->report, NULL, 0, 0);
    tt_report_config(v->report, "counts", "%s", counts);
    tt_report_comment(v->report, "tutti %s verify: counts %s, in place and not", TT_VERSION,
                      counts);
    tt_report_gap(v->report);
    tt_report_comment(v->report, "%-22s %-15s %9s %7s %12s %12s %10s  %s", "algorithm",
                      "collective", "ranks", "cases", "steps", "messages", "time (ms)", "verdict");
    return TRUE;
}

/* NCCL runs on a topology, at sizes in bytes. */
static int
run_library(const TtOptions *options, GError **error)
{
    gboolean all;
    guint bits;

    if (counts_text) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "--count goes without --library: NCCL chooses by bytes (-b, -e, -f)");
        return TT_EXIT_USAGE;
    }
    if (!tt_outlets_check(options, error) || !parse_collectives(&bits, &all, error))
        return TT_EXIT_USAGE;
    return tt_verify_library(options, collectives_text ? bits : TT_BIT(TT_ALLREDUCE), error);
}

static int
verify_plans(const TtOptions *options, GError **error)
{
    g_autoptr(TtReport) report = tt_report_new(options, TT_FIELDS_VERIFY);
    g_autoptr(GArray) counts = g_array_new(FALSE, FALSE, sizeof(guint64));
    Verify v = { .options = options,
                 .report = report,
                 .counts = counts,
                 .progress = tt_progress_begin(options->quiet) };

    if (!prepare(&v, error) || !verify_collectives(&v, error) || !tt_report_finish(report, error))
        return TT_EXIT_USAGE;
    if (v.n_failed > 0)
        return TT_EXIT_FAILED;
    if (v.n_proved == 0) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "nothing was proved: no algorithm named can do this");
        return TT_EXIT_USAGE;
    }
    return TT_EXIT_GOOD;
}

static int
run_verify(const TtOptions *options, GError **error)
{
    if (options->nccl_version)
        return run_library(options, error);
    if (options->topo || options->library || options->sizes_given) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "--topo, sizes and --library go together, with --library nccl");
        return TT_EXIT_USAGE;
    }
    return verify_plans(options, error);
}

static const GOptionEntry entries[] = {
    { "collective", 0, 0, G_OPTION_ARG_FILENAME, &collectives_text,
      "a list, or all (default): what each algorithm can do", "NAME" },
    { "count", 0, 0, G_OPTION_ARG_FILENAME, &counts_text,
      "elements of the vector (default 0,1,17,1000,65537)", "LIST" },
    { NULL },
};

const TtCommand tt_cmd_verify = {
    .name = "verify",
    .summary = "prove that plans are right: every contribution once, no deadlock, no hazard",
    .examples =
        "  tutti verify --algo all --ranks 1-33\n"
        "  tutti verify --algo ring,double-tree --ranks 64 --slots 1 --collective allreduce\n"
        "  tutti verify --algo tree --ranks 7 --count 100000 --chunk-bytes 4K --channels 2\n"
        "  tutti verify --library nccl-2.27 --topo dgx-h100:2 -b 8 -e 1G -f 32\n"
        "      the plans NCCL would run there\n",
    .options = TT_OPTIONS_PLAN | TT_OPTIONS_RANKS | TT_OPTIONS_ROWS | TT_OPTIONS_ELEMENTS |
               TT_OPTIONS_SIZES | TT_OPTIONS_TOPOLOGY | TT_OPTIONS_LIBRARY,
    .own = entries,
    .run = run_verify,
};
