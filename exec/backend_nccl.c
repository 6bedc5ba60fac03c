/* nccl - NCCL's own collectives, on all GPUs of this process, or of many.
 *
 * Neither NCCL nor CUDA is linked: both are found when the program runs (nccl_load.c). A process runs one rank
 * for each of its GPUs, with one communicator each; several processes meet as those of our own teams do.
 * What is done at a GPU is in nccl_work.c, by a thread that this one can leave (nccl_phase.c).
 */
#include "exec/nccl_private.h"

#include <string.h>
#include <unistd.h>

#define CONNECT_S 60 /* NCCL looks at the whole machine, and the network, first */
#define LEAVE_S   3  /* aborting takes so long at most */
#define RESORT_S  5  /* and what follows it */
#define CHECK_NS  20 /* an element of one rank takes so long at most to be compared */
#define MARK_S    1  /* a long loop is looked at so often */

/* --- joining and leaving ----------------------------------------------------------------------- */

static void
describe_library(const TtNcclTeam *team, TtBackendPlace *place)
{
    g_autofree char *version = tt_nccl_version_text(team->version);
    int runtime = 0;

    team->cuda->runtime_get_version(&runtime);
    g_snprintf(place->library, sizeof place->library, "NCCL %s, CUDA runtime %d.%d", version,
               runtime / 1000, runtime % 1000 / 10);
}

/* Whatever the libraries do when the process ends, it ends. */
static gpointer
last_resort(gpointer data)
{
    (void)data;
    g_usleep(RESORT_S * G_USEC_PER_SEC);
    _exit(4);
}

/* A team with a thread that did not come back is kept: it may still look at it. */
static void
team_free(TtNcclTeam *team)
{
    tt_circle_close(team->circle);
    team->circle = NULL;
    if (team->stuck)
        return;
    g_strfreev(team->notes);
    g_free(team->ranks);
    g_free(team->seats);
    g_free(team);
}

static void
nccl_leave(gpointer self)
{
    TtNcclTeam *team = self;

    g_atomic_int_set(&team->stop, 0);
    if (team->broken)
        g_thread_unref(g_thread_new("nccl-last", last_resort, NULL));
    if (team->broken && !team->stuck)
        tt_nccl_supervise(team, tt_nccl_phase_abort, LEAVE_S, NULL);
    else if (!team->broken && team->ranks)
        tt_nccl_supervise(team, tt_nccl_phase_destroy, team->timeout_s, NULL);
    if (team->stuck && !team->broken)
        g_thread_unref(g_thread_new("nccl-last", last_resort, NULL));
    team_free(team);
}

/* Tells the others, and says whose word counts. Always FALSE. */
static gboolean
fail(TtNcclTeam *team, GError *why, GError **error)
{
    team->broken = TRUE;
    tt_circle_fail(team->circle, why, error);
    team->place->alone = !tt_circle_all_know(team->circle);
    return FALSE;
}

static gboolean
connect_all(TtNcclTeam *team, GError **error)
{
    GError *why = NULL;

    if (tt_nccl_supervise(team, tt_nccl_phase_connect, MAX(team->timeout_s, CONNECT_S), &why))
        return TRUE;
    return fail(team, why, error);
}

static gpointer
nccl_join(const TtBackendJoin *join, TtBackendPlace *place, GError **error)
{
    const TtLaunch *launch = join->launch;
    g_autofree char *settings = tt_nccl_settings();
    TtNcclTeam *team = g_new0(TtNcclTeam, 1);

    *place = (TtBackendPlace){ .rank = launch->first_rank,
                               .n_local = launch->n_local,
                               .n_ranks = launch->n_ranks };
    g_strlcpy(place->settings, settings, sizeof place->settings);
    team->place = place;
    team->timeout_s = join->timeout_s;
    team->first_rank = launch->first_rank;
    team->n_local = launch->n_local;
    team->n_ranks = launch->n_ranks;
    team->circle = tt_circle_open(join, error);
    if (!team->circle) {
        place->alone = TRUE;
        g_free(team);
        return NULL;
    }
    if (!tt_nccl_find_seats(team, join, error)) {
        place->alone = !tt_circle_all_know(team->circle);
        team_free(team);
        return NULL;
    }
    place->n_local = team->n_local;
    place->n_ranks = team->n_ranks;
    describe_library(team, place);
    if (connect_all(team, error))
        return team;
    nccl_leave(team);
    return NULL;
}

/* --- what is known of it ----------------------------------------------------------------------- */

static const char *
nccl_describe(gpointer self, guint rank)
{
    return ((TtNcclTeam *)self)->notes[rank];
}

static gboolean
needs(const TtNcclTeam *team, int version, const char *what, GError **error)
{
    g_autofree char *have = tt_nccl_version_text(team->version);
    g_autofree char *want = tt_nccl_version_text(version);

    if (team->version >= version)
        return TRUE;
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE, "NCCL %s has no %s: %s is the first",
                have, what, want);
    return FALSE;
}

static gboolean
nccl_supports(gpointer self, const TtPlanSpec *spec, GError **error)
{
    const TtNcclTeam *team = self;
    gboolean reduces = tt_collective_reduces(spec->collective);
    gboolean is_float8 = spec->type == TT_FLOAT8E4M3 || spec->type == TT_FLOAT8E5M2;

    if (spec->type == TT_BFLOAT16 && !needs(team, TT_NCCL_HAS_BF16, "bfloat16", error))
        return FALSE;
    if (is_float8 && !needs(team, TT_NCCL_HAS_FLOAT8, tt_type_name(spec->type), error))
        return FALSE;
    if (reduces && spec->redop == TT_AVG && !needs(team, TT_NCCL_HAS_BF16, "average", error))
        return FALSE;
    for (guint rank = 0; rank < team->n_ranks && is_float8 && reduces; rank++)
        if (team->seats[rank].major < TT_NCCL_FLOAT8_ARCH) {
            g_set_error(
                error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                "NCCL reduces %s from compute capability %d.0 (Hopper) on; rank %u has %s (%u.x)",
                tt_type_name(spec->type), TT_NCCL_FLOAT8_ARCH, rank, team->seats[rank].name,
                team->seats[rank].major);
            return FALSE;
        }
    return TRUE;
}

static gboolean
gather(TtNcclTeam *team, gconstpointer mine, guint bytes, gpointer all, double timeout_s,
       GError **error)
{
    GError *why = NULL;

    if (tt_circle_gather(team->circle, mine, bytes, all, timeout_s, &why))
        return TRUE;
    return fail(team, why, error);
}

/* Of processes to the circle, of ranks to the caller. */
static gboolean
nccl_gather(gpointer self, gconstpointer mine, guint bytes, gpointer all, GError **error)
{
    TtNcclTeam *team = self;
    g_autofree guint8 *each = g_malloc((gsize)tt_circle_n_processes(team->circle) * bytes);

    if (!gather(team, mine, bytes, each, team->timeout_s, error))
        return FALSE;
    for (guint rank = 0; rank < team->n_ranks; rank++)
        memcpy((guint8 *)all + (gsize)rank * bytes,
               each + (gsize)tt_circle_process_of(team->circle, rank) * bytes, bytes);
    return TRUE;
}

/* --- one measurement --------------------------------------------------------------------------- */

/* What every process found, made one. */
typedef struct {
    double seconds;
    guint64 wrong;
} Finding;

static gboolean
phase(TtNcclTeam *team, TtNcclPhase what, GError **error)
{
    GError *why = NULL;

    return tt_nccl_supervise(team, what, team->timeout_s, &why) || fail(team, why, error);
}

/* Nobody begins before all are here. */
static gboolean
barrier(TtNcclTeam *team, GError **error)
{
    g_autofree guint8 *all = g_malloc(tt_circle_n_processes(team->circle));
    guint8 nothing = 0;

    return gather(team, &nothing, 1, all, 2 * team->timeout_s, error);
}

static gboolean
perform(TtNcclTeam *team, guint n, guint per_mark, GError **error)
{
    team->task.n = n;
    team->task.per_mark = per_mark;
    return phase(team, tt_nccl_phase_perform, error);
}

/* So that a second or so lies between two marks, going by the last loop. */
static guint
calls_per_mark(const TtNcclTask *task)
{
    if (task->n == 0)
        return 1;
    return (guint)CLAMP(MARK_S / MAX(task->seconds, 1e-9), 1, G_MAXINT);
}

/* The loop begins right after one more warm-up call, which all leave at the same time. */
static gboolean
measure(TtNcclTeam *team, const TtRunOptions *options, double *seconds, GError **error)
{
    guint per_mark;

    if (!phase(team, tt_nccl_phase_fill, error) || !barrier(team, error) ||
        !perform(team, options->warmup, 1, error))
        return FALSE;
    per_mark = calls_per_mark(&team->task);
    team->task.aligned = options->warmup > 0;
    if (!barrier(team, error) ||
        !perform(team, options->iterations, per_mark < options->iterations ? per_mark : 0, error))
        return FALSE;
    team->task.aligned = FALSE;
    *seconds = team->task.seconds;
    return TRUE;
}

static gboolean
check(TtNcclTeam *team, guint64 *wrong, GError **error)
{
    if (!phase(team, tt_nccl_phase_fill, error) || !barrier(team, error) ||
        !perform(team, 1, 0, error) || !phase(team, tt_nccl_phase_check, error))
        return FALSE;
    *wrong = team->task.wrong;
    return TRUE;
}

static gboolean
gather_findings(TtNcclTeam *team, const Finding *mine, TtRunResult *result, GError **error)
{
    const TtPlanSpec *spec = &team->task.spec;
    guint n = tt_circle_n_processes(team->circle);
    g_autofree Finding *all = g_new0(Finding, n);
    double check_s = (double)spec->count * spec->n_ranks * team->n_local * CHECK_NS * 1e-9;

    if (!gather(team, mine, sizeof *mine, all, 2 * team->timeout_s + check_s, error))
        return FALSE;
    for (guint p = 0; p < n; p++) {
        guint first, n_local;

        tt_circle_ranks(team->circle, p, &first, &n_local);
        result->time_s += all[p].seconds * (n == 1 ? 1 : (double)n_local / team->n_ranks);
        result->wrong += (gint64)all[p].wrong;
    }
    result->min_s = result->max_s = result->time_s;
    return TRUE;
}

static gboolean
nccl_run(gpointer self, const TtPlan *plan, const TtRunOptions *options, TtRunResult *result,
         GError **error)
{
    TtNcclTeam *team = self;
    Finding mine = { 0 };

    *result = (TtRunResult){ 0 };
    team->task = (TtNcclTask){ .plan = plan, .spec = plan->spec, .in_place = options->in_place };
    if (!phase(team, tt_nccl_phase_allocate, error) || !barrier(team, error) ||
        !measure(team, options, &mine.seconds, error) ||
        (options->check && !check(team, &mine.wrong, error)) ||
        !gather_findings(team, &mine, result, error))
        return FALSE;
    if (!options->check)
        result->wrong = -1;
    return phase(team, tt_nccl_phase_free, error);
}

const TtBackend tt_backend_nccl = {
    .name = "nccl",
    .meets = TRUE,
    .join = nccl_join,
    .supports = nccl_supports,
    .describe = nccl_describe,
    .gather = nccl_gather,
    .run = nccl_run,
    .leave = nccl_leave,
};
