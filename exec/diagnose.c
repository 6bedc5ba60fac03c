/* diagnose.c - what went wrong between ranks, by class, in words that name the rank, its last finished step
 * and who waits for whom.
 */
#include "exec/watch.h"

#include <string.h>
#include <sys/wait.h>

/* Ranks a message describes before it says "and n more". */
#define MOST_NAMED 8

/* --- steps --------------------------------------------------------------------------------------- */

/* Steps of one iteration. */
static guint64
steps_per_iteration(const TtJob *job, guint rank, guint lane)
{
    return tt_job_lane(job, rank, lane)->n_steps * tt_job_part_of(job, lane)->plan.n_rounds;
}

/* "lane 0 iteration 12 round 3 step 1 (recv)"; where several collectives run, which. */
static void
append_step(GString *text, const TtRegion *region, guint rank, guint lane, guint64 number)
{
    const TtJob *job = &region->job;
    const TtJobPart *part = tt_job_part_of(job, lane);
    const TtJobLane *l = tt_job_lane(job, rank, lane);
    guint64 per_iteration = steps_per_iteration(job, rank, lane);
    guint64 in_iteration = number % per_iteration, step = in_iteration % l->n_steps;

    if (job->n_parts > 1)
        g_string_append_printf(text, "collective %u ", (guint)(part - job->parts));
    g_string_append_printf(text,
                           "lane %u iteration %" G_GUINT64_FORMAT " round %" G_GUINT64_FORMAT
                           " step %" G_GUINT64_FORMAT " (%s)",
                           lane - part->first_lane, number / per_iteration,
                           in_iteration / l->n_steps, step, tt_op_name(l->steps[step].step.op));
}

static guint64
steps_done(const TtRegion *region, guint rank, guint lane)
{
    const TtJob *job = &region->job;

    return atomic_load_explicit(&job->done[rank * job->done_stride + lane], memory_order_relaxed);
}

/* The lane of a rank that got least far, in iterations; n_lanes if it has no steps at all. */
static guint
find_last_lane(const TtRegion *region, guint rank)
{
    const TtJob *job = &region->job;
    double least = G_MAXDOUBLE;
    guint found = job->n_lanes;

    for (guint l = 0; l < job->n_lanes; l++) {
        guint64 per_iteration = steps_per_iteration(job, rank, l);
        double at = (double)steps_done(region, rank, l) / (double)MAX(1, per_iteration);

        if (per_iteration == 0 || at >= least)
            continue;
        least = at;
        found = l;
    }
    return found;
}

/* "; its last finished step is ..." of the lane that got least far. */
static void
append_last_step(GString *text, const TtRegion *region, guint rank)
{
    guint lane;

    if (!region->job.lanes)
        return;
    lane = find_last_lane(region, rank);
    if (lane == region->job.n_lanes || steps_done(region, rank, lane) == 0) {
        gboolean is_here = rank - region->first_rank < region->n_local;

        /* Other processes tell how far they are now and then. */
        g_string_append(text, is_here ? ", no step finished" : ", last finished step not known");
        return;
    }
    g_string_append(text, ", last finished step: ");
    append_step(text, region, rank, lane, steps_done(region, rank, lane) - 1);
}

/* "rank 0 waits for a message from rank 1 at lane 0 ..."; FALSE if it does not wait, nor did when it found trouble. */
static gboolean
append_wait(GString *text, const TtRegion *region, guint rank)
{
    const TtRankBlock *block = &region->ranks[rank];
    guint32 now = atomic_load_explicit(&block->state, memory_order_acquire);
    guint32 state = now == TT_RANK_TROUBLED ? block->trouble.was : now;
    guint32 peer = atomic_load_explicit(&block->wait_peer, memory_order_relaxed);
    guint32 lane = atomic_load_explicit(&block->wait_lane, memory_order_relaxed);

    switch (state) {
    case TT_RANK_WAITS_MESSAGE:
        g_string_append_printf(text, "rank %u waits for a message from rank %u", rank, peer);
        break;
    case TT_RANK_WAITS_SLOT:
        g_string_append_printf(text, "rank %u waits for rank %u to free a slot", rank, peer);
        break;
    case TT_RANK_WAITS_LANE:
        g_string_append_printf(text, "rank %u waits for another lane of its own", rank);
        break;
    case TT_RANK_WAITS_START:
        g_string_append_printf(text, "rank %u waits until it is to begin", rank);
        break;
    case TT_RANK_WAITS_BARRIER:
        g_string_append_printf(text, "rank %u waits at the barrier", rank);
        break;
    default: return FALSE;
    }
    if (lane < region->job.n_lanes && region->job.lanes &&
        steps_per_iteration(&region->job, rank, lane) > 0) {
        g_string_append(text, ", ");
        append_step(text, region, rank, lane, steps_done(region, rank, lane));
    }
    return TRUE;
}

/* --- classes -------------------------------------------------------------------------------------- */

/* @r found its connection to @rank broken while it waited for none of @rank's messages. */
static gboolean
append_lost(GString *text, const TtRegion *region, guint r, guint rank)
{
    const TtRankBlock *block = &region->ranks[r];

    if (atomic_load_explicit(&block->state, memory_order_acquire) != TT_RANK_TROUBLED ||
        block->trouble.code != TT_EXEC_ERROR_NETWORK || block->trouble.peer != rank)
        return FALSE;
    g_string_append_printf(text, "rank %u lost its connection to it", r);
    return TRUE;
}

/* Who waits for @rank, or missed it otherwise. */
static void
append_waits_for(GString *text, const TtRegion *region, guint rank)
{
    guint named = 0, more = 0;

    for (guint r = 0; r < region->n_ranks; r++) {
        g_autoptr(GString) wait = g_string_new(NULL);
        gboolean waits = atomic_load(&region->ranks[r].wait_peer) == rank;

        if (r == rank ||
            !((waits && append_wait(wait, region, r)) || append_lost(wait, region, r, rank)))
            continue;
        if (named++ < MOST_NAMED)
            g_string_append_printf(text, "; %s", wait->str);
        else
            more++;
    }
    if (more > 0)
        g_string_append_printf(text, "; and %u more", more);
}

void
tt_diagnose_gone(const TtRegion *region, guint rank, const char *how, int code, GError **error)
{
    g_autoptr(GString) text = g_string_new(how);

    append_last_step(text, region, rank);
    append_waits_for(text, region, rank);
    g_set_error_literal(error, TT_EXEC_ERROR, code, text->str);
}

void
tt_diagnose_death(const TtRegion *region, guint dead, int status, GError **error)
{
    g_autofree char *how =
        WIFSIGNALED(status)
            ? g_strdup_printf("rank %u died of signal %d (%s)", dead, WTERMSIG(status),
                              strsignal(WTERMSIG(status)))
            : g_strdup_printf("rank %u left with exit code %d", dead, WEXITSTATUS(status));

    tt_diagnose_gone(region, dead, how,
                     WIFSIGNALED(status) ? TT_EXEC_ERROR_DEAD : TT_EXEC_ERROR_LEFT, error);
}

static gboolean
has_member(const TtJobPart *part, guint rank)
{
    for (guint i = 0; part && i < part->n_members; i++)
        if (part->members[i] == rank)
            return TRUE;
    return !part;
}

/* Those that do not wait come first: they are what the others wait for. */
static void
set_slow(const TtRegion *region, const TtJobPart *part, const int *stopped_by, double timeout_s,
         GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    guint n = region->n_ranks, named = 0;

    g_string_append_printf(text, "no progress for %g s", timeout_s);
    for (guint pass = 0; pass < 2; pass++) {
        for (guint r = 0; r < n; r++) {
            int signal = stopped_by ? stopped_by[r] : 0;
            g_autoptr(GString) wait = g_string_new(NULL);
            gboolean waits = append_wait(wait, region, r) && signal == 0;
            gboolean idle = atomic_load(&region->ranks[r].state) == TT_RANK_IDLE && signal == 0;

            if (!has_member(part, r) || idle || waits != (pass == 1))
                continue;
            if (named++ >= MOST_NAMED)
                continue;
            if (waits) {
                g_string_append_printf(text, "; %s", wait->str);
                continue;
            }
            g_string_append_printf(text, "; rank %u %s", r,
                                   signal == TT_WATCH_SILENT
                                       ? "does not answer, nor does its process"
                                   : signal ? "is stopped by signal "
                                            : "is stuck");
            if (signal > 0)
                g_string_append_printf(text, "%d (%s)", signal, strsignal(signal));
            append_last_step(text, region, r);
        }
    }
    if (named > MOST_NAMED)
        g_string_append_printf(text, "; and %u more", named - MOST_NAMED);
    g_set_error_literal(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HANG, text->str);
}

/* --- a connection that swallows messages ---------------------------------------------------------- */

/* Messages a lane has sent to, or received from, @peer after @steps steps. */
static guint64
count_messages(const TtJob *job, guint rank, guint lane, guint peer, gboolean sends, guint64 steps)
{
    const TtJobLane *l = tt_job_lane(job, rank, lane);
    const TtJobPart *of = tt_job_part_of(job, lane);
    guint64 per_iteration = steps_per_iteration(job, rank, lane), whole = 0, part = 0;
    guint channel = tt_plan_channel(&of->plan, lane - of->first_lane);

    for (guint64 i = 0; i < per_iteration; i++) {
        const TtJobStep *s = &l->steps[i % l->n_steps];

        if ((sends ? s->send_peer : s->recv_peer) != peer ||
            tt_plan_span_count(&of->plan, channel, i / l->n_steps, s->step.chunk,
                               s->step.n_chunks) == 0)
            continue;
        whole++;
        part += i < steps % per_iteration;
    }
    return per_iteration ? steps / per_iteration * whole + part : 0;
}

/* @rank waits for a message that its peer has sent long ago, or for slots that its peer has long freed. */
static gboolean
is_swallowed(const TtRegion *region, guint rank, guint *peer, guint *lane)
{
    const TtRankBlock *block = &region->ranks[rank];
    const TtJob *job = &region->job;

    *peer = atomic_load_explicit(&block->wait_peer, memory_order_relaxed);
    *lane = atomic_load_explicit(&block->wait_lane, memory_order_relaxed);
    if (*peer >= region->n_ranks || *lane >= job->n_lanes)
        return FALSE;
    switch (atomic_load_explicit(&block->state, memory_order_relaxed)) {
    case TT_RANK_WAITS_MESSAGE:
        return count_messages(job, *peer, *lane, rank, TRUE, steps_done(region, *peer, *lane)) >
               count_messages(job, rank, *lane, *peer, FALSE, steps_done(region, rank, *lane));
    case TT_RANK_WAITS_SLOT:
        return count_messages(job, rank, *lane, *peer, TRUE, steps_done(region, rank, *lane)) <
               count_messages(job, *peer, *lane, rank, FALSE, steps_done(region, *peer, *lane)) +
                   job->n_slots;
    default: return FALSE;
    }
}

static gboolean
is_waiting(const TtRegion *region, guint rank, const int *stopped_by)
{
    switch (atomic_load_explicit(&region->ranks[rank].state, memory_order_relaxed)) {
    case TT_RANK_WAITS_MESSAGE:
    case TT_RANK_WAITS_SLOT:
    case TT_RANK_WAITS_LANE:
    case TT_RANK_WAITS_START:
    case TT_RANK_WAITS_BARRIER:
    case TT_RANK_IDLE: return !stopped_by || stopped_by[rank] == 0;
    default: return FALSE;
    }
}

/* Every rank waits, and one for what is on its way: the network keeps it. */
static gboolean
set_swallowed(const TtRegion *region, const int *stopped_by, double timeout_s, GError **error)
{
    for (guint r = 0; r < region->n_ranks; r++)
        if (!is_waiting(region, r, stopped_by))
            return FALSE;
    for (guint r = 0; r < region->n_ranks; r++) {
        g_autoptr(GString) text = g_string_new(NULL);
        guint peer, lane;

        if (!is_swallowed(region, r, &peer, &lane))
            continue;
        append_wait(text, region, r);
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_NETWORK,
                    "no progress for %g s: what rank %u sends to rank %u does not arrive; %s",
                    timeout_s, peer, r, text->str);
        return TRUE;
    }
    return FALSE;
}

/* --- all of it ------------------------------------------------------------------------------------ */

static void
set_absent(const TtRegion *region, double timeout_s, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    guint n = 0;

    for (guint r = region->first_rank; r < region->first_rank + region->n_local; r++)
        if (!atomic_load(&region->ranks[r].up) && n++ < MOST_NAMED)
            g_string_append_printf(text, "%s%u", n > 1 ? ", " : "", r);
    if (n > MOST_NAMED)
        g_string_append_printf(text, " and %u more", n - MOST_NAMED);
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_ABSENT,
                "rank %s did not get ready within %g s, though its process was started", text->str,
                timeout_s);
}

void
tt_diagnose_hang(const TtRegion *region, const TtJobPart *part, const int *stopped_by,
                 TtPhase phase, double timeout_s, GError **error)
{
    if (phase == TT_PHASE_UP)
        set_absent(region, timeout_s, error);
    else if (phase == TT_PHASE_READY || !set_swallowed(region, stopped_by, timeout_s, error))
        set_slow(region, part, stopped_by, timeout_s, error);
}

void
tt_diagnose_trouble(const TtRegion *region, guint rank, GError **error)
{
    const TtTrouble *trouble = &region->ranks[rank].trouble;
    g_autoptr(GString) text = g_string_new(trouble->text);

    if (trouble->code >= TT_EXEC_ERROR_ABSENT)
        append_last_step(text, region, rank);
    g_set_error_literal(error, TT_EXEC_ERROR, (gint)trouble->code, text->str);
}

const char *
tt_exec_error_class(int code)
{
    switch (code) {
    case TT_EXEC_ERROR_ABSENT: return "never arrived";
    case TT_EXEC_ERROR_LEFT: return "left early";
    case TT_EXEC_ERROR_DEAD: return "died";
    case TT_EXEC_ERROR_HANG: return "slow";
    case TT_EXEC_ERROR_NETWORK: return "network broken";
    case TT_EXEC_ERROR_MISMATCH: return "wrong arguments";
    case TT_EXEC_ERROR_CORRUPT: return "corrupt data";
    default: return NULL;
    }
}
