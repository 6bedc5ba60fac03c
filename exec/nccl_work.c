/* nccl_work.c - what the second thread does, for all ranks of this process: memory, communicators, calls. */
#include "exec/nccl_private.h"
#include "exec/pattern.h"

#include <sched.h>
#include <time.h>

#define STAGE_BYTES ((gsize)16 << 20) /* of host memory, between the pattern and a GPU */

static const int nccl_types[TT_N_TYPES] = {
    [TT_INT8] = TT_NCCL_INT8,
    [TT_INT32] = TT_NCCL_INT32,
    [TT_INT64] = TT_NCCL_INT64,
    [TT_FLOAT16] = TT_NCCL_FLOAT16,
    [TT_BFLOAT16] = TT_NCCL_BFLOAT16,
    [TT_FLOAT32] = TT_NCCL_FLOAT32,
    [TT_FLOAT64] = TT_NCCL_FLOAT64,
    [TT_FLOAT8E4M3] = TT_NCCL_FLOAT8E4M3,
    [TT_FLOAT8E5M2] = TT_NCCL_FLOAT8E5M2,
};
static const int nccl_ops[TT_N_REDOPS] = {
    [TT_SUM] = TT_NCCL_SUM, [TT_PROD] = TT_NCCL_PROD, [TT_MIN] = TT_NCCL_MIN,
    [TT_MAX] = TT_NCCL_MAX, [TT_AVG] = TT_NCCL_AVG,
};
static const char *const nccl_functions[TT_N_COLLECTIVES] = {
    [TT_ALLREDUCE] = "ncclAllReduce", [TT_REDUCE_SCATTER] = "ncclReduceScatter",
    [TT_ALLGATHER] = "ncclAllGather", [TT_BROADCAST] = "ncclBroadcast",
    [TT_REDUCE] = "ncclReduce",
};

/* By the first thread, which no longer cares for the error. */
static gboolean
is_told_to_stop(TtNcclTeam *team, GError **error)
{
    if (!g_atomic_int_get(&team->stop))
        return FALSE;
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_HANG, "told to stop");
    return TRUE;
}

/* --- a CUDA call, named for messages ----------------------------------------------------------- */

static gboolean
use_device(TtNcclTeam *team, const TtNcclRank *r, GError **error)
{
    tt_nccl_do(team, "cudaSetDevice");
    return tt_nccl_cuda_good(team, team->cuda->set_device(r->device), team->doing, r->device,
                             error);
}

static gboolean
device_alloc(TtNcclTeam *team, TtNcclRank *r, guint i, gsize bytes, GError **error)
{
    int code;

    tt_nccl_do(team, "cudaMalloc");
    code = team->cuda->malloc(&r->memory[i], MAX(bytes, 1));
    tt_nccl_moved(team);
    r->memory_bytes[i] = bytes;
    if (code != TT_CUDA_MEMORY)
        return tt_nccl_cuda_good(team, code, team->doing, r->device, error);
    r->memory[i] = NULL;
    team->cuda->get_last_error();
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                "rank %u: GPU %d on %s has no room for a buffer of %" G_GSIZE_FORMAT
                " bytes: use a smaller -e",
                r->rank, r->device, g_get_host_name(), bytes);
    return FALSE;
}

/* --- communicators ----------------------------------------------------------------------------- */

static gboolean
init_all(TtNcclTeam *team, GError **error)
{
    g_autofree TtNcclCommunicator **comms = g_new0(TtNcclCommunicator *, team->n_local);
    g_autofree int *devices = g_new(int, team->n_local);
    int code;

    for (guint i = 0; i < team->n_local; i++)
        devices[i] = team->ranks[i].device;
    tt_nccl_do(team, "ncclCommInitAll");
    code = team->nccl->comm_init_all(comms, (int)team->n_local, devices);
    if (!tt_nccl_good(team, code, team->doing, NULL, error))
        return FALSE;
    for (guint i = 0; i < team->n_local; i++)
        team->ranks[i].comm = comms[i];
    return TRUE;
}

static gboolean
init_ranks(TtNcclTeam *team, GError **error)
{
    int code = team->nccl->group_start(), end;

    tt_nccl_do(team, "ncclCommInitRank");
    for (guint i = 0; i < team->n_local && code == TT_NCCL_SUCCESS; i++) {
        TtNcclRank *r = &team->ranks[i];

        if (!use_device(team, r, error))
            return FALSE;
        tt_nccl_do(team, "ncclCommInitRank");
        code = team->nccl->comm_init_rank(&r->comm, (int)team->n_ranks, team->id, (int)r->rank);
    }
    end = team->nccl->group_end();
    return tt_nccl_good(team, code != TT_NCCL_SUCCESS ? code : end, team->doing, NULL, error);
}

gboolean
tt_nccl_phase_connect(TtNcclTeam *team, GError **error)
{
    if (!(team->n_local == team->n_ranks ? init_all : init_ranks)(team, error))
        return FALSE;
    for (guint i = 0; i < team->n_local; i++) {
        TtNcclRank *r = &team->ranks[i];
        int code;

        if (!use_device(team, r, error))
            return FALSE;
        tt_nccl_do(team, "cudaStreamCreateWithFlags");
        code = team->cuda->stream_create(&r->stream, TT_CUDA_STREAM_NON_BLOCKING);
        if (!tt_nccl_cuda_good(team, code, team->doing, r->device, error))
            return FALSE;
    }
    return TRUE;
}

static void
close_streams(TtNcclTeam *team)
{
    for (guint i = 0; i < team->n_local; i++) {
        TtNcclRank *r = &team->ranks[i];

        tt_nccl_do(team, "cudaStreamDestroy");
        if (r->stream && team->cuda->set_device(r->device) == TT_CUDA_SUCCESS)
            team->cuda->stream_destroy(r->stream);
        r->stream = NULL;
    }
}

gboolean
tt_nccl_phase_destroy(TtNcclTeam *team, GError **error)
{
    (void)error;
    close_streams(team);
    tt_nccl_do(team, "ncclCommDestroy");
    for (guint i = 0; i < team->n_local; i++)
        if (team->ranks[i].comm)
            team->nccl->comm_destroy(g_steal_pointer(&team->ranks[i].comm));
    return TRUE;
}

/* Ends what is in flight, even where others do not come. */
gboolean
tt_nccl_phase_abort(TtNcclTeam *team, GError **error)
{
    (void)error;
    tt_nccl_do(team, "ncclCommAbort");
    for (guint i = 0; i < team->n_local; i++)
        if (team->ranks[i].comm)
            team->nccl->comm_abort(g_steal_pointer(&team->ranks[i].comm));
    return TRUE;
}

/* --- memory ------------------------------------------------------------------------------------ */

/* Where NCCL wants its operands. In place means: of reduce-scatter the output is this rank's part of the
 * input, of allgather the input this rank's part of the output, else both are one buffer. */
static void
place_buffers(TtNcclRank *r, const TtPlanSpec *spec, gboolean in_place)
{
    gsize size = tt_type_bytes(spec->type);
    guint8 *only = r->memory[0];

    r->in = r->memory[0];
    r->out = in_place ? r->memory[0] : r->memory[1];
    if (in_place && spec->collective == TT_ALLGATHER)
        r->in = only + r->in_range.first * size;
    if (in_place && spec->collective == TT_REDUCE_SCATTER)
        r->out = only + r->out_range.first * size;
    r->fill = r->in;
    r->check = r->out;
}

gboolean
tt_nccl_phase_allocate(TtNcclTeam *team, GError **error)
{
    const TtPlan *plan = team->task.plan;
    gsize size = tt_type_bytes(plan->spec.type);

    for (guint i = 0; i < team->n_local; i++) {
        TtNcclRank *r = &team->ranks[i];
        gsize in_bytes, out_bytes;

        r->in_range = tt_plan_buffer_range(plan, r->rank, TT_INPUT);
        r->out_range = tt_plan_buffer_range(plan, r->rank, TT_OUTPUT);
        in_bytes = r->in_range.count * size;
        out_bytes = r->out_range.count * size;
        if (!use_device(team, r, error) ||
            !device_alloc(team, r, 0, team->task.in_place ? MAX(in_bytes, out_bytes) : in_bytes,
                          error) ||
            (!team->task.in_place && !device_alloc(team, r, 1, out_bytes, error)))
            return FALSE;
        place_buffers(r, &plan->spec, team->task.in_place);
    }
    return TRUE;
}

gboolean
tt_nccl_phase_free(TtNcclTeam *team, GError **error)
{
    for (guint i = 0; i < team->n_local; i++) {
        TtNcclRank *r = &team->ranks[i];

        if (!use_device(team, r, error))
            return FALSE;
        tt_nccl_do(team, "cudaFree");
        for (guint m = 0; m < G_N_ELEMENTS(r->memory); m++)
            if (r->memory[m] &&
                !tt_nccl_cuda_good(team, team->cuda->free(g_steal_pointer(&r->memory[m])),
                                   team->doing, r->device, error))
                return FALSE;
    }
    return TRUE;
}

/* --- data -------------------------------------------------------------------------------------- */

/* Spoils all first: what the call does not write must not look right. */
static gboolean
fill_rank(TtNcclTeam *team, TtNcclRank *r, gpointer stage, GError **error)
{
    const TtPlan *plan = team->task.plan;
    gsize size = tt_type_bytes(plan->spec.type), step = STAGE_BYTES / size;
    const TtCudaApi *cuda = team->cuda;

    if (!use_device(team, r, error))
        return FALSE;
    tt_nccl_do(team, "cudaMemset");
    for (guint m = 0; m < G_N_ELEMENTS(r->memory); m++)
        if (r->memory[m] && r->memory_bytes[m] &&
            !tt_nccl_cuda_good(team, cuda->memset(r->memory[m], 0xa5, r->memory_bytes[m]),
                               team->doing, r->device, error))
            return FALSE;
    for (guint64 at = 0; at < r->in_range.count; at += step) {
        TtRange part = { r->in_range.first + at, MIN(step, r->in_range.count - at) };
        guint8 *to = (guint8 *)r->fill + at * size;

        if (is_told_to_stop(team, error))
            return FALSE;
        tt_nccl_do(team, "writing what is to be reduced");
        tt_pattern_fill(plan, 0, r->rank, part, stage);
        tt_nccl_moved(team);
        tt_nccl_do(team, "cudaMemcpy to a GPU");
        if (!tt_nccl_cuda_good(team, cuda->memcpy(to, stage, part.count * size, TT_CUDA_TO_DEVICE),
                               team->doing, r->device, error))
            return FALSE;
    }
    tt_nccl_do(team, "cudaDeviceSynchronize");
    return tt_nccl_cuda_good(team, cuda->device_synchronize(), team->doing, r->device, error);
}

gboolean
tt_nccl_phase_fill(TtNcclTeam *team, GError **error)
{
    g_autofree gpointer stage = g_malloc(STAGE_BYTES);

    for (guint i = 0; i < team->n_local; i++)
        if (!fill_rank(team, &team->ranks[i], stage, error))
            return FALSE;
    return TRUE;
}

static gboolean
check_rank(TtNcclTeam *team, TtNcclRank *r, gpointer stage, GError **error)
{
    const TtPlan *plan = team->task.plan;
    gsize size = tt_type_bytes(plan->spec.type), step = STAGE_BYTES / size;

    if (!use_device(team, r, error))
        return FALSE;
    for (guint64 at = 0; at < r->out_range.count; at += step) {
        TtRange part = { r->out_range.first + at, MIN(step, r->out_range.count - at) };
        const guint8 *from = (const guint8 *)r->check + at * size;

        if (is_told_to_stop(team, error))
            return FALSE;
        tt_nccl_do(team, "cudaMemcpy from a GPU");
        if (!tt_nccl_cuda_good(team,
                               team->cuda->memcpy(stage, from, part.count * size, TT_CUDA_TO_HOST),
                               team->doing, r->device, error))
            return FALSE;
        tt_nccl_do(team, "checking the result");
        team->task.wrong += tt_pattern_count_wrong_rounded(plan, part, stage);
        tt_nccl_moved(team);
    }
    return TRUE;
}

gboolean
tt_nccl_phase_check(TtNcclTeam *team, GError **error)
{
    g_autofree gpointer stage = g_malloc(STAGE_BYTES);

    team->task.wrong = 0;
    for (guint i = 0; i < team->n_local; i++)
        if (!check_rank(team, &team->ranks[i], stage, error))
            return FALSE;
    return TRUE;
}

/* --- calls ------------------------------------------------------------------------------------- */

static int
call(const TtNcclApi *nccl, const TtPlanSpec *spec, const TtNcclRank *r)
{
    int type = nccl_types[spec->type], op = nccl_ops[spec->redop], root = (int)spec->root;
    gsize count = spec->count, part = spec->count / spec->n_ranks;

    switch (spec->collective) {
    case TT_REDUCE_SCATTER:
        return nccl->reduce_scatter(r->in, r->out, part, type, op, r->comm, r->stream);
    case TT_ALLGATHER: return nccl->all_gather(r->in, r->out, part, type, r->comm, r->stream);
    case TT_BROADCAST: return nccl->broadcast(r->in, r->out, count, type, root, r->comm, r->stream);
    case TT_REDUCE: return nccl->reduce(r->in, r->out, count, type, op, root, r->comm, r->stream);
    default: return nccl->all_reduce(r->in, r->out, count, type, op, r->comm, r->stream);
    }
}

/* One collective: a call for each rank of this process, as one group if there are several. */
static gboolean
call_all(TtNcclTeam *team, GError **error)
{
    const TtPlanSpec *spec = &team->task.spec;
    const TtNcclApi *nccl = team->nccl;
    gboolean several = team->n_local > 1;
    int code = several ? nccl->group_start() : TT_NCCL_SUCCESS, end = TT_NCCL_SUCCESS;
    guint i = 0;

    for (; i < team->n_local && code == TT_NCCL_SUCCESS; i++)
        code = call(nccl, spec, &team->ranks[i]);
    if (several)
        end = nccl->group_end();
    tt_nccl_moved(team);
    return tt_nccl_good(team, code != TT_NCCL_SUCCESS ? code : end, team->doing,
                        team->ranks[i ? i - 1 : 0].comm, error);
}

/* TRUE: goes on well, or is done (*ready). */
static gboolean
look_at_rank(TtNcclTeam *team, const TtNcclRank *r, gboolean *ready, GError **error)
{
    int code, trouble = TT_NCCL_SUCCESS;

    *ready = FALSE;
    code = team->cuda->stream_query(r->stream);
    if (code != TT_CUDA_SUCCESS && code != TT_CUDA_NOT_READY)
        return tt_nccl_cuda_good(team, code, team->doing, r->device, error);
    *ready = code == TT_CUDA_SUCCESS;
    code = team->nccl->comm_get_async_error(r->comm, &trouble);
    return tt_nccl_good(team, code, "ncclCommGetAsyncError", r->comm, error) &&
           tt_nccl_good(team, trouble, team->doing, r->comm, error);
}

/* Until every stream is empty: all are looked at in turn, since any may be in trouble. What was marked on the
 * way tells whether the first moves. */
static gboolean
wait_streams(TtNcclTeam *team, GPtrArray *marks, GError **error)
{
    guint seen = 0, n_ready = 0;

    while (n_ready < team->n_local) {
        n_ready = 0;
        for (guint i = 0; i < team->n_local; i++) {
            gboolean ready;

            if (!look_at_rank(team, &team->ranks[i], &ready, error))
                return FALSE;
            n_ready += ready;
        }
        if (seen < marks->len &&
            team->cuda->event_query(g_ptr_array_index(marks, seen)) == TT_CUDA_SUCCESS) {
            seen++;
            tt_nccl_moved(team);
        }
        if (n_ready < team->n_local && is_told_to_stop(team, error))
            return FALSE;
        sched_yield();
    }
    tt_nccl_moved(team);
    return TRUE;
}

static gboolean
mark(TtNcclTeam *team, GPtrArray *marks, GError **error)
{
    const TtNcclRank *r = &team->ranks[0];
    gpointer event = NULL;
    int code = team->cuda->event_create(&event, TT_CUDA_EVENT);

    if (!tt_nccl_cuda_good(team, code, "cudaEventCreateWithFlags", r->device, error))
        return FALSE;
    g_ptr_array_add(marks, event);
    return tt_nccl_cuda_good(team, team->cuda->event_record(event, r->stream), "cudaEventRecord",
                             r->device, error);
}

static double
now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static gboolean
perform(TtNcclTeam *team, GPtrArray *marks, GError **error)
{
    TtNcclTask *task = &team->task;
    double begin_s;

    if (task->aligned && (!call_all(team, error) || !wait_streams(team, marks, error)))
        return FALSE;
    begin_s = now_s();
    for (guint k = 0; k < task->n; k++) {
        if (!call_all(team, error) ||
            (task->per_mark && (k + 1) % task->per_mark == 0 && !mark(team, marks, error)))
            return FALSE;
        if (is_told_to_stop(team, error))
            return FALSE;
    }
    if (!wait_streams(team, marks, error))
        return FALSE;
    task->seconds = (now_s() - begin_s) / MAX(task->n, 1);
    return TRUE;
}

gboolean
tt_nccl_phase_perform(TtNcclTeam *team, GError **error)
{
    g_autoptr(GPtrArray) marks = g_ptr_array_new();
    gboolean good = use_device(team, &team->ranks[0], error);

    tt_nccl_do(team, nccl_functions[team->task.spec.collective]);
    good = good && perform(team, marks, error);
    for (guint i = 0; i < marks->len && good; i++)
        team->cuda->event_destroy(g_ptr_array_index(marks, i));
    return good;
}
