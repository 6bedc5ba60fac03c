/* The rows of `tutti verify --library nccl`: the plans NCCL would run, proved. */
#include "cli/verify_library.h"
#include "algos/algo.h"
#include "algos/verify.h"
#include "cli/library.h"
#include "cli/progress.h"

#include <stdio.h>

typedef struct {
    TtReport *report;
    TtProgress progress;
    guint n_failed, n_proved;
} Verify;

/* In place and not. FALSE if the plan is wrong, or too large to prove. */
static gboolean
prove(const TtPlan *plan, TtRow *row, GError **error)
{
    for (guint in_place = 0; in_place < 2; in_place++) {
        TtVerifyStats stats;

        if (!tt_verify(plan, in_place, &stats, error)) {
            g_prefix_error(error, "%s: ", in_place ? "in place" : "out of place");
            return FALSE;
        }
        row->cases++;
        row->steps += stats.n_steps;
        row->messages += stats.n_messages;
    }
    return TRUE;
}

static void
print_header(void)
{
    printf("#\n# %12s  %-15s %-14s %-8s %8s %6s %12s %12s %10s  %s\n", "size (B)", "collective",
           "algorithm", "protocol", "channels", "loops", "steps", "messages", "time (ms)",
           "verdict");
}

static void
report_row(Verify *v, const TtRow *row)
{
    tt_progress_wipe(&v->progress);
    tt_report_add(v->report, row);
    if (!tt_report_is_table(v->report))
        return;
    printf("  %12" G_GUINT64_FORMAT "  %-15s %-14s %-8s %8" G_GUINT64_FORMAT " %6" G_GUINT64_FORMAT
           " %12" G_GUINT64_FORMAT " %12" G_GUINT64_FORMAT " %10.1f  %s\n",
           row->bytes, row->collective, row->algorithm, row->protocol, row->channels, row->rounds,
           row->steps, row->messages, row->seconds * 1e3, row->verdict);
    if (row->message)
        printf("#   %s\n", row->message);
    fflush(stdout);
}

/* One choice: PASS, FAIL, or SKIP where there is no plan of ours for it. */
static void
verify_choice(Verify *v, const TtLibrary *library, const TtCase *c, guint root,
              const TtNcclChoice *choice)
{
    TtNcclCall call = tt_library_call(library, c, root, choice);
    TtLibraryTime none = { .time_us = NAN, .bound_us = NAN };
    TtRow row = tt_library_row(library, c, choice, &none);
    gint64 begin_us = g_get_monotonic_time();
    g_autoptr(GError) why = NULL;
    g_autoptr(TtPlan) plan = tt_nccl_plan(&library->comm, &call, &why);

    tt_progress_show(&v->progress, "verifying %s", row.algorithm);
    if (plan && prove(plan, &row, &why)) {
        row.verdict = "PASS";
        v->n_proved++;
    } else if (g_error_matches(why, TT_PLAN_ERROR, TT_PLAN_ERROR_INVALID)) {
        row.verdict = "FAIL";
        v->n_failed++;
    } else {
        row.verdict = "SKIP";
    }
    row.message = why ? why->message : NULL;
    row.seconds = (g_get_monotonic_time() - begin_us) / 1e6;
    report_row(v, &row);
}

static gboolean
verify_case(Verify *v, const TtLibrary *library, const TtOptions *options, const TtCase *c,
            const GArray *pairs, GError **error)
{
    TtNcclOp op = tt_library_op(library, c);
    guint n = 0;

    for (guint i = 0; i < MAX(1, pairs->len); i++) {
        const TtLibraryPair *pair = pairs->len ? &g_array_index(pairs, TtLibraryPair, i) : NULL;
        gboolean may_miss = options->algo_all && (n > 0 || i + 1 < pairs->len);
        TtNcclChoice choice;

        if (tt_library_choose(library, &op, pair, &choice, may_miss ? NULL : error))
            verify_choice(v, library, c, options->root, &choice);
        else if (!may_miss)
            return FALSE;
        n++;
    }
    return TRUE;
}

static gboolean
verify_collective(Verify *v, const TtOptions *options, gboolean first, GError **error)
{
    g_autoptr(TtLibrary) library = tt_library_open(options, v->report, error);
    g_autoptr(GArray) cases = NULL, pairs = NULL;
    g_autofree char *version = NULL;

    if (!library)
        return FALSE;
    if (options->root >= library->comm.n_ranks) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE, "root %u must be below %u, the ranks",
                    options->root, library->comm.n_ranks);
        return FALSE;
    }
    cases = tt_options_cases(options, library->comm.n_ranks);
    pairs = tt_library_pairs(library, options);
    if (first) {
        version = tt_nccl_version_name(library->version);
        tt_report_comment(v->report,
                          "tutti %s verify: the plans NCCL %s would run, in place and not",
                          TT_VERSION, version);
        tt_report_comment(v->report, "topology %s: %u ranks on %u node%s", library->topology,
                          library->comm.n_ranks, library->comm.n_nodes,
                          library->comm.n_nodes == 1 ? "" : "s");
        if (tt_report_is_table(v->report))
            print_header();
    }
    for (guint i = 0; i < cases->len; i++)
        if (!verify_case(v, library, options, &g_array_index(cases, TtCase, i), pairs, error))
            return FALSE;
    return TRUE;
}

int
tt_verify_library(const TtOptions *options, guint collectives, GError **error)
{
    g_autoptr(TtReport) report =
        tt_report_new(options, TT_FIELDS_CALL | TT_FIELDS_PLAN | TT_FIELDS_VERIFY);
    Verify v = { .report = report, .progress = tt_progress_begin(options->quiet) };
    gboolean first = TRUE;

    for (guint c = 0; c < TT_N_COLLECTIVES; c++) {
        TtOptions one = *options; /* borrows all it points to */

        if (!(collectives & TT_BIT(c)))
            continue;
        one.collective = c;
        if (!verify_collective(&v, &one, first, error))
            return TT_EXIT_USAGE;
        first = FALSE;
    }
    if (!tt_report_finish(report, error))
        return TT_EXIT_USAGE;
    if (v.n_failed > 0)
        return TT_EXIT_FAILED;
    if (v.n_proved == 0) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "nothing was proved: there is no plan for what NCCL would choose");
        return TT_EXIT_USAGE;
    }
    return TT_EXIT_GOOD;
}
