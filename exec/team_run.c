/* team_run.c - gives the ranks a job, waits for it, collects what came out.
 */
#include "exec/job.h"
#include "exec/rank.h"
#include "exec/team_private.h"

#include <stdlib.h>
#include <string.h>

/* --- running -----------------------------------------------------------------------------------
 */

static gboolean
check_run(const TtTeam *team, const TtPlan *plan, const TtRunOptions *options, GError **error)
{
    const TtRegion *region = team->region;
    guint64 bytes = plan->spec.count * tt_type_bytes(plan->spec.type);

    if (team->broken)
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "the ranks have gone after an earlier error: start a new team");
    else if (tt_plan_n_agents(plan) != region->n_ranks)
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "a plan for %u ranks and %u switches on a team of %u", plan->spec.n_ranks,
                    plan->n_switches, region->n_ranks);
    else if (bytes > region->max_bytes)
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "a vector of %" G_GUINT64_FORMAT
                    " bytes on a team started for %" G_GUINT64_FORMAT,
                    bytes, region->max_bytes);
    else if (options->iterations < 1)
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE, "iterations must be at least 1");
    else
        return TRUE;
    return FALSE;
}

static int
compare_doubles(gconstpointer a, gconstpointer b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Mean over ranks of each repeat, then their order. */
static void
collect_times(const TtJob *job, TtRunResult *result)
{
    guint n = job->options.repeats, n_ranks = job->plan.spec.n_ranks;
    g_autofree double *mean_s = g_new0(double, n);

    for (guint i = 0; i < n; i++)
        for (guint r = 0; r < n_ranks; r++)
            mean_s[i] += job->time_s[r * n + i] / n_ranks;
    qsort(mean_s, n, sizeof *mean_s, compare_doubles);
    result->time_s = (mean_s[(n - 1) / 2] + mean_s[n / 2]) / 2;
    result->min_s = mean_s[0];
    result->max_s = mean_s[n - 1];
}

static double
ticks_to_ps(const TtTeam *team)
{
    guint64 ticks = tt_ticks_now() - team->start_ticks;
    gint64 us = g_get_monotonic_time() - team->start_us;

    return (double)us * 1e6 / (double)MAX(1, ticks);
}

static TtTimeline *
collect_timeline(const TtTeam *team, const TtPlan *plan)
{
    const TtRegion *region = team->region;
    const TtJob *job = &region->job;
    g_autofree char *title =
        g_strdup_printf("%s, %u ranks, %" G_GUINT64_FORMAT " bytes, measured", plan->name,
                        plan->spec.n_ranks, plan->spec.count * tt_type_bytes(plan->spec.type));
    TtTimeline *timeline = tt_timeline_new(title);
    double scale = ticks_to_ps(team);
    gint64 zero = G_MAXINT64;

    for (guint r = 0; r < region->n_ranks; r++)
        g_array_append_vals(timeline->events, job->events + job->event_first[r],
                            region->ranks[r].n_events);
    for (guint i = 0; i < timeline->events->len; i++)
        zero = MIN(zero, g_array_index(timeline->events, TtEvent, i).begin_ps);
    for (guint i = 0; i < timeline->events->len; i++) {
        TtEvent *e = &g_array_index(timeline->events, TtEvent, i);

        e->begin_ps = (gint64)((double)(e->begin_ps - zero) * scale);
        e->end_ps = (gint64)((double)(e->end_ps - zero) * scale);
        e->wait_ps = (gint64)((double)e->wait_ps * scale);
    }
    tt_timeline_sort(timeline);
    return timeline;
}

static void
collect(const TtTeam *team, const TtPlan *plan, TtRunResult *result)
{
    const TtRegion *region = team->region;
    const TtRunOptions *options = &region->job.options;

    *result = (TtRunResult){ .wrong = options->check ? 0 : -1, .flag_s = region->flag_s };
    collect_times(&region->job, result);
    for (guint r = 0; options->check && r < region->n_ranks; r++)
        result->wrong += region->ranks[r].wrong;
    if (options->record)
        result->timeline = collect_timeline(team, plan);
}

/* Before the first byte: does every rank mean the same? */
static gboolean
agree(const TtRegion *region, GError **error)
{
    for (guint r = 1; r < region->n_ranks; r++) {
        g_autofree char *difference =
            tt_signature_difference(0, &region->ranks[0].signature, r, &region->ranks[r].signature);

        if (difference) {
            g_set_error_literal(error, TT_EXEC_ERROR, TT_EXEC_ERROR_MISMATCH, difference);
            return FALSE;
        }
    }
    return TRUE;
}

static guint32
next_number(TtTeam *team)
{
    TtRegion *region = team->region;

    region->flag_s = 0;
    atomic_store(&region->ping[0].value, 0);
    atomic_store(&region->ping[1].value, 0);
    return atomic_load_explicit(&region->command_number, memory_order_relaxed) + 1;
}

static void
go(TtTeam *team, guint32 number)
{
    atomic_store_explicit(&team->region->go_number, number, memory_order_release);
    tt_futex_wake(&team->region->go_number);
}

/* The root, or the only process. */
static gboolean
run_as_root(TtTeam *team, const TtPlan *plan, const TtRunOptions *options, TtRunResult *result,
            GError **error)
{
    TtRegion *region = team->region;
    guint32 number = next_number(team);

    if (!tt_job_prepare(region, plan, options, error) || !tt_watch_alive(&team->watch, error))
        return FALSE;
    if (team->remote)
        tt_remote_send_job(team->remote, number);
    tt_team_send_command(team, TT_COMMAND_RUN);
    if (!tt_watch_wait(&team->watch, TT_PHASE_READY, number, error) || !agree(region, error))
        return FALSE;
    if (team->remote)
        tt_remote_send_go(team->remote, number);
    go(team, number);
    if (!tt_watch_wait(&team->watch, TT_PHASE_DONE, number, error))
        return FALSE;
    collect(team, plan, result);
    if (team->remote)
        tt_remote_send_result(team->remote, result);
    return TRUE;
}

/* Another process of the team: runs what the root says, having said what it was told itself: @plan, or NULL:
 * whatever comes. *more: FALSE if the root has no more. */
static gboolean
run_as_other(TtTeam *team, const TtPlan *plan, const TtRunOptions *options, TtRunResult *result,
             gboolean *more, GError **error)
{
    guint32 number = next_number(team);

    if (!tt_remote_wait_job(team->remote, number, more, error))
        return FALSE;
    if (!*more)
        return TRUE;
    if (plan)
        tt_job_sign(team->region, plan, options);
    tt_team_send_command(team, TT_COMMAND_RUN);
    if (!tt_watch_wait(&team->watch, TT_PHASE_READY, number, error))
        return FALSE;
    tt_remote_send_ready(team->remote, number);
    if (!tt_watch_wait_root(&team->watch, TT_PHASE_READY, number, NULL, error))
        return FALSE;
    go(team, number);
    if (!tt_watch_wait(&team->watch, TT_PHASE_DONE, number, error))
        return FALSE;
    tt_remote_send_done(team->remote, number);
    return tt_watch_wait_root(&team->watch, TT_PHASE_DONE, number, result, error);
}

static gboolean
run_expected(TtTeam *team, const TtPlan *plan, const TtRunOptions *options, TtRunResult *result,
             GError **error)
{
    gboolean more;

    if (!run_as_other(team, plan, options, result, &more, error))
        return FALSE;
    if (more)
        return TRUE;
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_MISMATCH,
                "rank 0 has no more to run, rank %u was told %s of %" G_GUINT64_FORMAT
                " %s elements",
                team->region->first_rank, tt_collective_name(plan->spec.collective),
                plan->spec.count, tt_type_name(plan->spec.type));
    return FALSE;
}

gboolean
tt_team_run(TtTeam *team, const TtPlan *plan, const TtRunOptions *options, TtRunResult *result,
            GError **error)
{
    GError *why = NULL;
    gboolean good;

    if (!check_run(team, plan, options, error))
        return FALSE;
    good = tt_team_is_root(team) ? run_as_root(team, plan, options, result, &why)
                                 : run_expected(team, plan, options, result, &why);
    if (good)
        return TRUE;
    tt_team_end(team, 0, why);
    g_propagate_error(error, why);
    return FALSE;
}

gboolean
tt_team_serve(TtTeam *team, GError **error)
{
    gboolean more = TRUE;
    TtRunResult ignored;
    GError *why = NULL;

    while (more && run_as_other(team, NULL, NULL, &ignored, &more, &why))
        ;
    if (!why)
        return TRUE;
    tt_team_end(team, 0, why);
    g_propagate_error(error, why);
    return FALSE;
}

gboolean
tt_team_finish(TtTeam *team, GError **error)
{
    const TtSignature *said = &team->region->job.signature;
    gboolean more = FALSE;
    GError *why = NULL;

    if (tt_team_is_root(team))
        return TRUE;
    if (tt_remote_wait_job(team->remote, next_number(team), &more, &why) && more)
        g_set_error(&why, TT_EXEC_ERROR, TT_EXEC_ERROR_MISMATCH,
                    "rank %u has no more to run, rank 0 was told %s of %" G_GUINT64_FORMAT
                    " %s elements",
                    team->region->first_rank, tt_collective_name(said->collective), said->count,
                    tt_type_name(said->type));
    if (!why)
        return TRUE;
    tt_team_end(team, 0, why);
    g_propagate_error(error, why);
    return FALSE;
}

void
tt_run_result_clear(TtRunResult *result)
{
    g_clear_pointer(&result->timeline, tt_timeline_free);
}
