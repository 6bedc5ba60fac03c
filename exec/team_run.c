/* team_run.c - gives the ranks a job, waits for it, collects what came out.
 */
#include "exec/gpu_program.h"
#include "exec/iterations.h"
#include "exec/job.h"
#include "exec/rank.h"
#include "exec/team_private.h"

#include <stdlib.h>
#include <string.h>

/* --- running -----------------------------------------------------------------------------------
 */

static gboolean refuse(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

static gboolean
refuse(GError **error, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list arguments;

    va_start(arguments, format);
    text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_set_error_literal(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE, text);
    return FALSE;
}

static gboolean
check_options(const TtRegion *region, const TtRunOptions *options, GError **error)
{
    guint64 most = TT_MOST_STAMPS / region->n_ranks / MAX(1, options->repeats);

    if (options->iterations < 1)
        return refuse(error, "iterations must be at least 1");
    if (options->arrivals && !options->stamps)
        return refuse(error, "arrivals need stamps");
    if (options->arrivals && region->is_gpu)
        return refuse(error, "who waits for whom is not counted on GPUs");
    if (options->stamps && options->iterations > most)
        return refuse(
            error, "at most %" G_GUINT64_FORMAT " iterations of %u ranks can be told apart, not %u",
            most, region->n_ranks, options->iterations);
    return TRUE;
}

/* Every rank of the team at most once; @used_bytes: of each rank's buffers. */
static gboolean
check_members(const TtTeam *team, const TtRunPart *part, guint64 *used_bytes, GError **error)
{
    const TtRegion *region = team->region;
    const TtPlanSpec *spec = &part->plan->spec;
    guint64 bytes = spec->count * tt_type_bytes(spec->type);
    g_autofree gboolean *is_in = g_new0(gboolean, region->n_ranks);

    for (guint i = 0; i < tt_plan_n_agents(part->plan); i++) {
        guint rank = part->members ? part->members[i] : i;
        double offset_s = part->offset_s ? part->offset_s[i] : 0;

        if (rank >= region->n_ranks || is_in[rank])
            return refuse(error, "rank %u %s", rank,
                          rank < region->n_ranks ? "is twice in one collective"
                                                 : "is none of the team's");
        is_in[rank] = TRUE;
        if (offset_s > 0 && region->is_gpu)
            return refuse(error, "collectives on GPUs begin together: no start offsets");
        if (!(offset_s >= 0 && offset_s < team->watch.timeout_s))
            return refuse(error, "a start offset must be 0 s .. the time-out of %g s, not %g s",
                          team->watch.timeout_s, offset_s);
        if (bytes > region->max_bytes || used_bytes[rank] > region->max_bytes - bytes)
            return refuse(error,
                          "a vector of %" G_GUINT64_FORMAT
                          " bytes on a team started for %" G_GUINT64_FORMAT,
                          used_bytes[rank] + bytes, region->max_bytes);
        used_bytes[rank] += (bytes + TT_PAIR_BYTES - 1) / TT_PAIR_BYTES * TT_PAIR_BYTES;
    }
    return TRUE;
}

static gboolean
check_parts(const TtTeam *team, const TtRunPart *parts, guint n_parts, GError **error)
{
    const TtRegion *region = team->region;
    const TtPlanSpec *first = &parts[0].plan->spec;
    g_autofree guint64 *used_bytes = g_new0(guint64, region->n_ranks);
    guint n_lanes = 0;

    for (guint p = 0; p < n_parts; p++) {
        const TtPlan *plan = parts[p].plan;

        if (!parts[p].members && tt_plan_n_agents(plan) != region->n_ranks)
            return refuse(error, "a plan for %u ranks and %u switches on a team of %u",
                          plan->spec.n_ranks, plan->n_switches, region->n_ranks);
        if (plan->n_switches > 0 && (n_parts > 1 || parts[p].members || parts[p].offset_s))
            return refuse(error,
                          "%s has switches that reduce, which play in one collective at a "
                          "time, of all ranks, without offsets",
                          plan->name);
        if (plan->spec.type != first->type || plan->spec.redop != first->redop)
            return refuse(error, "collectives at the same time must have one type and reduction");
        if (!check_members(team, &parts[p], used_bytes, error))
            return FALSE;
        n_lanes += plan->n_lanes;
    }
    if (n_lanes >= TT_NO_LANE)
        return refuse(error, "%u lanes in all, more than %u", n_lanes, TT_NO_LANE - 1);
    return TRUE;
}

static gboolean
check_run(const TtTeam *team, const TtRunPart *parts, guint n_parts, const TtRunOptions *options,
          GError **error)
{
    if (team->broken)
        return refuse(error, "the ranks have gone after an earlier error: start a new team");
    if (n_parts < 1)
        return refuse(error, "there must be a collective to run");
    return check_parts(team, parts, n_parts, error) && check_options(team->region, options, error);
}

static int
compare_doubles(gconstpointer a, gconstpointer b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Mean over ranks of each repeat, then their order. */
static void
collect_times(const TtJob *job, const TtJobPart *part, TtRunResult *result)
{
    guint n = job->options.repeats, n_ranks = part->plan.spec.n_ranks;
    g_autofree double *mean_s = g_new0(double, n);

    for (guint i = 0; i < n; i++)
        for (guint r = 0; r < n_ranks; r++)
            mean_s[i] += job->time_s[part->members[r] * n + i] / n_ranks;
    qsort(mean_s, n, sizeof *mean_s, compare_doubles);
    result->time_s = (mean_s[(n - 1) / 2] + mean_s[n / 2]) / 2;
    result->min_s = mean_s[0];
    result->max_s = mean_s[n - 1];
}

/* How long the ticks of this process's ranks are. */
static void
measure_ticks(TtTeam *team)
{
    TtRegion *region = team->region;
    guint64 ticks = tt_ticks_now() - team->start_ticks;
    gint64 us = g_get_monotonic_time() - team->start_us;

    for (guint r = region->first_rank; r < region->first_rank + region->n_local; r++)
        region->ranks[r].tick_s = region->is_gpu ? 1e-9 : (double)us * 1e-6 / (double)MAX(1, ticks);
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
    double scale = region->ranks[region->first_rank].tick_s * 1e12;
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
collect_part(const TtRegion *region, const TtJobPart *part, TtRunResult *result)
{
    const TtJob *job = &region->job;
    guint number = (guint)(part - job->parts);

    *result = (TtRunResult){ .wrong = job->options.check ? 0 : -1, .flag_s = region->flag_s };
    if (region->is_gpu)
        result->gpu_protocol = job->gpu_protocol - TT_GPU_SIMPLE + TT_GPU_PROTOCOL_SIMPLE;
    collect_times(job, part, result);
    for (guint i = 0; job->options.check && i < part->n_members; i++)
        result->wrong += job->wrong[part->members[i] * job->n_parts + number];
    if (job->options.stamps) {
        TtIterations *iterations = tt_iterations_read(region, part);

        tt_iterations_times(iterations, &result->iterations);
        if (job->options.arrivals)
            result->arrivals = tt_iterations_arrivals(iterations);
        tt_iterations_free(iterations);
    }
}

static void
collect(const TtTeam *team, const TtRunPart *parts, TtRunResult *results)
{
    const TtJob *job = &team->region->job;

    for (guint p = 0; p < job->n_parts; p++)
        collect_part(team->region, &job->parts[p], &results[p]);
    if (job->options.record)
        results[0].timeline = collect_timeline(team, parts[0].plan);
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
run_as_root(TtTeam *team, const TtRunPart *parts, guint n_parts, const TtRunOptions *options,
            TtRunResult *results, GError **error)
{
    TtRegion *region = team->region;
    guint32 number = next_number(team);

    if (!tt_job_prepare(region, parts, n_parts, options, error) ||
        !tt_watch_alive(&team->watch, error))
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
    measure_ticks(team);
    collect(team, parts, results);
    if (team->remote)
        tt_remote_send_result(team->remote, results);
    return TRUE;
}

/* Another process of the team: runs what the root says, having said what it was told itself: @parts, or NULL:
 * whatever comes. *more: FALSE if the root has no more. */
static gboolean
run_as_other(TtTeam *team, const TtRunPart *parts, guint n_parts, const TtRunOptions *options,
             TtRunResult *results, gboolean *more, GError **error)
{
    guint32 number = next_number(team);

    if (!tt_remote_wait_job(team->remote, number, more, error))
        return FALSE;
    if (!*more)
        return TRUE;
    if (parts)
        tt_job_sign(team->region, parts, n_parts, options);
    tt_team_send_command(team, TT_COMMAND_RUN);
    if (!tt_watch_wait(&team->watch, TT_PHASE_READY, number, error))
        return FALSE;
    tt_remote_send_ready(team->remote, number);
    if (!tt_watch_wait_root(&team->watch, TT_PHASE_READY, number, NULL, error))
        return FALSE;
    go(team, number);
    if (!tt_watch_wait(&team->watch, TT_PHASE_DONE, number, error))
        return FALSE;
    measure_ticks(team);
    tt_remote_send_done(team->remote, number);
    return tt_watch_wait_root(&team->watch, TT_PHASE_DONE, number, results, error);
}

static gboolean
run_expected(TtTeam *team, const TtRunPart *parts, guint n_parts, const TtRunOptions *options,
             TtRunResult *results, GError **error)
{
    const TtPlanSpec *spec = &parts[0].plan->spec;
    gboolean more;

    if (!run_as_other(team, parts, n_parts, options, results, &more, error))
        return FALSE;
    if (more)
        return TRUE;
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_MISMATCH,
                "rank 0 has no more to run, rank %u was told %s of %" G_GUINT64_FORMAT
                " %s elements",
                team->region->first_rank, tt_collective_name(spec->collective), spec->count,
                tt_type_name(spec->type));
    return FALSE;
}

gboolean
tt_team_run_parts(TtTeam *team, const TtRunPart *parts, guint n_parts, const TtRunOptions *options,
                  TtRunResult *results, GError **error)
{
    GError *why = NULL;
    gboolean good;

    if (!check_run(team, parts, n_parts, options, error))
        return FALSE;
    good = tt_team_is_root(team) ? run_as_root(team, parts, n_parts, options, results, &why)
                                 : run_expected(team, parts, n_parts, options, results, &why);
    if (good)
        return TRUE;
    tt_team_end(team, 0, why);
    g_propagate_error(error, why);
    return FALSE;
}

gboolean
tt_team_run(TtTeam *team, const TtPlan *plan, const TtRunOptions *options, TtRunResult *result,
            GError **error)
{
    TtRunPart all = { .plan = plan };

    return tt_team_run_parts(team, &all, 1, options, result, error);
}

gboolean
tt_team_serve(TtTeam *team, GError **error)
{
    gboolean more = TRUE;
    GError *why = NULL;

    while (more && run_as_other(team, NULL, 0, NULL, NULL, &more, &why))
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
    g_clear_pointer(&result->arrivals, g_array_unref);
}
