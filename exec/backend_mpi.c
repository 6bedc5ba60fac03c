/* mpi - MPI's own collectives, of whichever MPI started the program.
 *
 * The library is not linked: exec/backends/mpi_module.c is built once for every MPI that is there
 * when the project is configured, and the one whose launcher started us is loaded (mpi_launch.c).
 *
 * Broadcast has one buffer in MPI: out of place means that the root's is its input.
 */
#include "exec/backend.h"
#include "exec/mpi_launch.h"
#include "exec/pattern.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define HUGE_PAGE (2 << 20)
#define START_S   30 /* launchers take their time on a busy machine, whatever --timeout says */

/* Ends the process when MPI does not return: nothing else can, and the launcher then ends the
 * others. Looks at a counter of finished calls, so that long loops may take as long as they want. */
typedef struct {
    GThread *thread;
    GMutex lock;
    GCond changed;
    gboolean stop;
    double timeout_s; /* while ranks start, at least START_S */
    guint rank;
    char doing[96]; /* "" : nothing */
} Watch;

typedef struct {
    const TtMpiModule *module;
    guint rank, n_ranks;
    TtBackendPlace *place;
    volatile unsigned long n_done; /* written by this thread, looked at by the watch */
    Watch watch;
} Mpi;

/* --- the watch --------------------------------------------------------------------------------- */

static gpointer
watch_main(gpointer data)
{
    Mpi *mpi = data;
    Watch *w = &mpi->watch;
    unsigned long seen = mpi->n_done;
    gint64 since = g_get_monotonic_time();

    g_mutex_lock(&w->lock);
    while (!w->stop) {
        g_cond_wait_until(&w->changed, &w->lock, g_get_monotonic_time() + G_USEC_PER_SEC / 10);
        if (!w->doing[0] || mpi->n_done != seen) {
            seen = mpi->n_done;
            since = g_get_monotonic_time();
        } else if (g_get_monotonic_time() - since >= (gint64)(w->timeout_s * 1e6)) {
            fprintf(stderr, "tutti run: rank %u: no progress for %g s in %s\n", w->rank,
                    w->timeout_s, w->doing);
            _exit(4); /* the exit code of hangs; MPI's own clean-up would hang as well */
        }
    }
    g_mutex_unlock(&w->lock);
    return NULL;
}

static void
watch_say(Mpi *mpi, const char *doing)
{
    g_mutex_lock(&mpi->watch.lock);
    mpi->n_done++;
    g_strlcpy(mpi->watch.doing, doing, sizeof mpi->watch.doing);
    g_mutex_unlock(&mpi->watch.lock);
}

static void
watch_set_timeout(Mpi *mpi, double timeout_s)
{
    g_mutex_lock(&mpi->watch.lock);
    mpi->watch.timeout_s = timeout_s;
    g_mutex_unlock(&mpi->watch.lock);
}

static void
watch_start(Mpi *mpi, double timeout_s, guint rank)
{
    mpi->watch.timeout_s = timeout_s;
    mpi->watch.rank = rank;
    g_mutex_init(&mpi->watch.lock);
    g_cond_init(&mpi->watch.changed);
    mpi->watch.thread = g_thread_new("mpi-watch", watch_main, mpi);
}

static void
watch_stop(Mpi *mpi)
{
    g_mutex_lock(&mpi->watch.lock);
    mpi->watch.stop = TRUE;
    g_cond_signal(&mpi->watch.changed);
    g_mutex_unlock(&mpi->watch.lock);
    g_thread_join(mpi->watch.thread);
    g_mutex_clear(&mpi->watch.lock);
    g_cond_clear(&mpi->watch.changed);
}

/* --- joining ----------------------------------------------------------------------------------- */

static const int mpi_types[TT_N_TYPES] = {
    [TT_INT8] = TT_MPI_INT8,
    [TT_INT32] = TT_MPI_INT32,
    [TT_INT64] = TT_MPI_INT64,
    [TT_FLOAT16] = -1,
    [TT_BFLOAT16] = -1,
    [TT_FLOAT32] = TT_MPI_FLOAT32,
    [TT_FLOAT64] = TT_MPI_FLOAT64,
    [TT_FLOAT8E4M3] = -1,
    [TT_FLOAT8E5M2] = -1,
};
static const int mpi_ops[TT_N_REDOPS] = { [TT_SUM] = TT_MPI_SUM,
                                          [TT_PROD] = TT_MPI_PROD,
                                          [TT_MIN] = TT_MPI_MIN,
                                          [TT_MAX] = TT_MPI_MAX,
                                          [TT_AVG] = -1 };
static const struct {
    int collective;
    const char *function;
} mpi_calls[TT_N_COLLECTIVES] = {
    [TT_ALLREDUCE] = { TT_MPI_ALLREDUCE, "MPI_Allreduce" },
    [TT_REDUCE_SCATTER] = { TT_MPI_REDUCE_SCATTER, "MPI_Reduce_scatter_block" },
    [TT_ALLGATHER] = { TT_MPI_ALLGATHER, "MPI_Allgather" },
    [TT_BROADCAST] = { TT_MPI_BROADCAST, "MPI_Bcast" },
    [TT_REDUCE] = { TT_MPI_REDUCE, "MPI_Reduce" },
};

static gboolean
mpi_supports(gpointer self, const TtPlanSpec *spec, GError **error)
{
    guint64 count = spec->count;

    (void)self;
    if (spec->collective == TT_REDUCE_SCATTER || spec->collective == TT_ALLGATHER)
        count /= MAX(spec->n_ranks, 1);
    if (mpi_types[spec->type] < 0) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "MPI has no type %s (it has float, double, int8, int32, int64)",
                    tt_type_name(spec->type));
        return FALSE;
    }
    if (tt_collective_reduces(spec->collective) && mpi_ops[spec->redop] < 0) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "MPI has no reduction %s (it has sum, prod, min, max)",
                    tt_redop_name(spec->redop));
        return FALSE;
    }
    if (count > G_MAXINT) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "MPI counts elements in an int: %" G_GUINT64_FORMAT
                    " are more than %d; use a smaller -e",
                    count, G_MAXINT);
        return FALSE;
    }
    return TRUE;
}

static gboolean
failed(const Mpi *mpi, const char *function, int code, GError **error)
{
    char text[256];

    mpi->place->alone = TRUE;
    mpi->module->error_text(code, text, sizeof text);
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_DEAD, "rank %u: %s: %s", mpi->rank, function,
                text);
    return FALSE;
}

static void
mpi_leave(gpointer self)
{
    Mpi *mpi = self;

    if (mpi->place->alone)
        return; /* the others wait for this rank: that it ends makes the launcher end them */
    watch_say(mpi, "MPI_Finalize");
    mpi->module->finalize();
    watch_stop(mpi);
    g_free(mpi);
}

/* A module of another MPI than the launcher's believes it is alone. */
static gboolean
check_size(const Mpi *mpi, const TtMpiLaunch *launch, const char *library, GError **error)
{
    if (mpi->n_ranks == launch->n_ranks)
        return TRUE;
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                "%s started %u ranks, but %s sees %u: use the launcher of that library",
                launch->launcher, launch->n_ranks, library, mpi->n_ranks);
    return FALSE;
}

static gpointer
mpi_join(const TtBackendJoin *join, TtBackendPlace *place, GError **error)
{
    TtMpiLaunch launch = tt_mpi_launch();
    int rank = 0, n_ranks = 1, code;
    Mpi *mpi;

    *place = (TtBackendPlace){ .rank = launch.rank, .n_local = 1, .n_ranks = launch.n_ranks };
    if (!launch.launcher) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "MPI's launcher starts the ranks of --backend mpi: type mpirun -np N %s",
                    join->line);
        return NULL;
    }
    mpi = g_new0(Mpi, 1);
    mpi->place = place;
    mpi->module = tt_mpi_load(&launch, error);
    if (!mpi->module) {
        g_free(mpi);
        return NULL;
    }
    watch_start(mpi, MAX(join->timeout_s, START_S), launch.rank);
    watch_say(mpi, "MPI_Init");
    code = mpi->module->init(&rank, &n_ranks);
    watch_say(mpi, "");
    watch_set_timeout(mpi, join->timeout_s);
    mpi->rank = place->rank = (guint)rank;
    mpi->n_ranks = place->n_ranks = (guint)n_ranks;
    mpi->module->library(place->library, sizeof place->library);
    if (code != 0)
        failed(mpi, "MPI_Init", code, error);
    else if (check_size(mpi, &launch, place->library, error))
        return mpi;
    place->rank = launch.rank;
    mpi_leave(mpi);
    return NULL;
}

static gboolean
mpi_gather(gpointer self, gconstpointer mine, guint bytes, gpointer all, GError **error)
{
    Mpi *mpi = self;
    int code;

    watch_say(mpi, "MPI_Allgather of what ranks tell each other");
    code = mpi->module->gather(mine, (int)bytes, all);
    watch_say(mpi, "");
    return code == 0 || failed(mpi, "MPI_Allgather", code, error);
}

/* --- one measurement --------------------------------------------------------------------------- */

typedef struct {
    const TtPlan *plan;
    TtRange in_range, out_range;
    TtMpiCall call;
    gpointer in, out, result;              /* result: where the outcome is, in one of the two */
    gsize in_bytes, out_bytes, own_offset; /* own_offset: of the input in @out if in place */
} Work;

/* Ours are in huge pages as well. At least one byte, so that NULL is a failure. */
static gpointer
map_buffer(gsize bytes)
{
    gsize size = (MAX(bytes, 1) + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    gpointer at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED)
        return NULL;
    madvise(at, size, MADV_HUGEPAGE);
    return at;
}

static void
unmap_buffer(gpointer at, gsize bytes)
{
    if (at)
        munmap(at, (MAX(bytes, 1) + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
}

static void
work_clear(Work *w)
{
    unmap_buffer(w->in, w->in_bytes);
    unmap_buffer(w->out, w->out_bytes);
}

static gboolean
work_init(Work *w, const Mpi *mpi, const TtPlan *plan, gboolean in_place)
{
    const TtPlanSpec *spec = &plan->spec;
    guint size = tt_type_bytes(spec->type);
    gboolean blocks = spec->collective == TT_ALLGATHER || spec->collective == TT_REDUCE_SCATTER;
    gboolean is_root = mpi->rank == spec->root;

    *w = (Work){ .plan = plan,
                 .in_range = tt_plan_buffer_range(plan, mpi->rank, TT_INPUT),
                 .out_range = tt_plan_buffer_range(plan, mpi->rank, TT_OUTPUT) };
    w->in_bytes = w->in_range.count * size;
    w->out_bytes = MAX(w->out_range.count * size, in_place ? w->in_bytes : 0);
    if (spec->collective == TT_ALLGATHER)
        w->own_offset = w->in_range.first * size;
    w->in = map_buffer(w->in_bytes);
    w->out = map_buffer(w->out_bytes);
    w->result = spec->collective == TT_BROADCAST && is_root && !in_place ? w->in : w->out;
    w->call = (TtMpiCall){ .collective = mpi_calls[spec->collective].collective,
                           .type = mpi_types[spec->type],
                           .op = tt_collective_reduces(spec->collective) ? mpi_ops[spec->redop] : 0,
                           .root = (int)spec->root,
                           .in_place = in_place,
                           .count = (int)(blocks ? spec->count / spec->n_ranks : spec->count),
                           .in = w->in,
                           .out = w->out };
    return w->in && w->out;
}

/* Spoils the output first: what the call does not write must not look right. */
static void
work_fill(const Work *w, guint rank)
{
    char *out = w->out;

    memset(out, 0xa5, w->out_bytes);
    tt_pattern_fill_fitting(w->plan, rank, w->in_range,
                            w->call.in_place ? out + w->own_offset : w->in);
}

static double
now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static gboolean
perform(Mpi *mpi, const Work *w, guint n, double *seconds, GError **error)
{
    const char *function = mpi_calls[w->plan->spec.collective].function;
    double begin;
    int code;

    watch_say(mpi, "MPI_Barrier");
    code = mpi->module->barrier();
    watch_say(mpi, function);
    begin = now_s();
    if (code == 0)
        code = mpi->module->perform(&w->call, n, &mpi->n_done);
    *seconds = (now_s() - begin) / MAX(n, 1);
    watch_say(mpi, "");
    return code == 0 || failed(mpi, function, code, error);
}

static gboolean
time_and_check(Mpi *mpi, const Work *w, const TtRunOptions *options, double *seconds,
               guint64 *wrong, GError **error)
{
    double ignored;

    work_fill(w, mpi->rank);
    if (!perform(mpi, w, options->warmup, &ignored, error) ||
        !perform(mpi, w, options->iterations, seconds, error))
        return FALSE;
    if (!options->check)
        return TRUE;
    work_fill(w, mpi->rank);
    if (!perform(mpi, w, 1, &ignored, error))
        return FALSE;
    *wrong = tt_pattern_count_wrong_fitting(w->plan, w->out_range, w->result);
    return TRUE;
}

/* What every rank found, made one. */
typedef struct {
    double seconds;
    guint64 wrong;
    gboolean no_memory;
} Finding;

static gboolean
gather_findings(Mpi *mpi, const Finding *mine, Finding *all, gsize bytes, GError **error)
{
    if (!mpi_gather(mpi, mine, sizeof *mine, all, error))
        return FALSE;
    for (guint rank = 0; rank < mpi->n_ranks; rank++)
        if (all[rank].no_memory) {
            g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                        "rank %u cannot map %" G_GSIZE_FORMAT " bytes for its buffers", rank,
                        bytes);
            return FALSE;
        }
    return TRUE;
}

static gboolean
mpi_run(gpointer self, const TtPlan *plan, const TtRunOptions *options, TtRunResult *result,
        GError **error)
{
    Mpi *mpi = self;
    g_autofree Finding *all = g_new0(Finding, mpi->n_ranks);
    Finding mine = { 0 };
    gboolean good;
    Work work;

    *result = (TtRunResult){ .wrong = options->check ? 0 : -1 };
    mine.no_memory = !work_init(&work, mpi, plan, options->in_place);
    good = gather_findings(mpi, &mine, all, work.in_bytes + work.out_bytes, error) &&
           time_and_check(mpi, &work, options, &mine.seconds, &mine.wrong, error) &&
           gather_findings(mpi, &mine, all, 0, error);
    work_clear(&work);
    for (guint rank = 0; good && rank < mpi->n_ranks; rank++) {
        result->time_s += all[rank].seconds / mpi->n_ranks;
        result->wrong += options->check ? (gint64)all[rank].wrong : 0;
    }
    result->min_s = result->max_s = result->time_s;
    return good;
}

const TtBackend tt_backend_mpi = {
    .name = "mpi",
    .supports = mpi_supports,
    .join = mpi_join,
    .gather = mpi_gather,
    .run = mpi_run,
    .leave = mpi_leave,
};
