/* fake_nccl.c - NCCL as far as --backend nccl calls it, on the host memory of fake_cudart.c.
 *
 * Every communicator has a thread that does what its stream was given: its input into memory all ranks share, a
 * barrier, its output from everyone's input, a barrier. Across processes that memory is named by the unique id,
 * until the last rank has come. Like NCCL it multiplies by 1/n before it adds for an average of floats.
 *
 *     FAKE_NCCL_VERSION=N                  what ncclGetVersion says (22809)
 *     FAKE_NCCL_FAULT=KIND[:RANK[:CALL]]   what goes wrong, at which rank (1), at which of its calls (2); KIND:
 *         init, init-hang      ncclCommInit... fails, or does not return
 *         system, stuck, die   the call fails, does not return, kills the process
 *         hang, async          it is never done; with async an error is then to be asked for
 *         deaf                 as hang, and ncclCommAbort does not return
 *         wrong                one byte of the result is
 */
#include "exec/reduce.h"
#include "tests/fakes/fake_cuda.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MOST_RANKS 16
#define SLOT_BYTES ((size_t)4 << 20)
#define MOST_WORKS 4096
#define MOST_GROUP 256

enum { SUCCESS = 0, SYSTEM = 2, INVALID_ARGUMENT = 4, REMOTE = 6 };
enum { ALLREDUCE, REDUCE_SCATTER, ALLGATHER, BROADCAST, REDUCE };

typedef struct {
    atomic_ulong arrived; /* at barriers, all together */
    atomic_uint attached;
    guint8 slots[MOST_RANKS][SLOT_BYTES];
} Shared;

typedef struct {
    int kind, type, op, root, fault;
    const void *in;
    void *out;
    size_t count; /* as its caller counts */
    FakeStream *stream;
} Work;

typedef struct Comm {
    int rank, n_ranks, n_calls;
    Shared *shared;
    char name[128]; /* of it; "": none */
    unsigned long n_barriers;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    Work works[MOST_WORKS];
    unsigned long n_given, n_taken;
    int leave;
    atomic_int aborted, async;
} Comm;

typedef struct {
    char internal[128];
} Id;

static __thread int depth;
static __thread struct {
    Comm *comm;
    Work work;
} group[MOST_GROUP];
static __thread int n_group;
static __thread char last_error[200];

int ncclGetVersion(int *version);
int ncclGetUniqueId(Id *id);
int ncclCommInitAll(Comm **comms, int n, const int *devices);
int ncclCommInitRank(Comm **comm, int n_ranks, Id id, int rank);
int ncclCommDestroy(Comm *comm);
int ncclCommAbort(Comm *comm);
int ncclCommGetAsyncError(Comm *comm, int *error);
const char *ncclGetErrorString(int result);
const char *ncclGetLastError(Comm *comm);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclAllReduce(const void *in, void *out, size_t n, int type, int op, Comm *comm, void *stream);
int ncclReduceScatter(const void *in, void *out, size_t n, int type, int op, Comm *comm,
                      void *stream);
int ncclAllGather(const void *in, void *out, size_t n, int type, Comm *comm, void *stream);
int ncclBroadcast(const void *in, void *out, size_t n, int type, int root, Comm *comm,
                  void *stream);
int ncclReduce(const void *in, void *out, size_t n, int type, int op, int root, Comm *comm,
               void *stream);

/* --- faults ------------------------------------------------------------------------------------ */

static int
has_fault(const char *kind, int rank, int call)
{
    const char *text = getenv("FAKE_NCCL_FAULT");
    char got[32] = "";
    int at_rank = 1, at_call = 2;

    if (!text || sscanf(text, "%31[^:]:%d:%d", got, &at_rank, &at_call) < 1)
        return 0;
    return strcmp(got, kind) == 0 && rank == at_rank && (call < 0 || call >= at_call);
}

static int
error(int code, const char *text)
{
    snprintf(last_error, sizeof last_error, "\n%s\n", text);
    return code;
}

static void
stay(void)
{
    for (;;)
        sleep(1000);
}

/* --- arithmetic -------------------------------------------------------------------------------- */

static const int types[] = { [0] = TT_INT8,     [2] = TT_INT32,       [4] = TT_INT64,
                             [6] = TT_FLOAT16,  [7] = TT_FLOAT32,     [8] = TT_FLOAT64,
                             [9] = TT_BFLOAT16, [10] = TT_FLOAT8E4M3, [11] = TT_FLOAT8E5M2 };
static const int bytes_of[TT_N_TYPES] = { 1, 4, 8, 2, 2, 4, 8, 1, 1 };
static const int redops[] = { TT_SUM, TT_PROD, TT_MAX, TT_MIN, TT_AVG };

/* 1 in each float type, low bytes first. */
static const guint64 ones[TT_N_TYPES] = {
    [TT_FLOAT16] = 0x3c00,     [TT_BFLOAT16] = 0x3f80,
    [TT_FLOAT32] = 0x3f800000, [TT_FLOAT64] = 0x3ff0000000000000,
    [TT_FLOAT8E4M3] = 0x38,    [TT_FLOAT8E5M2] = 0x3c
};

/* What everyone gave from byte @from on, combined. */
static void
combine(const Comm *c, const Work *w, size_t from, size_t bytes, void *out)
{
    const TtReduceUnit *unit = tt_reduce_portable();
    int type = types[w->type], redop = redops[w->op], size = bytes_of[type];
    int scale_first = redop == TT_AVG && ones[type];
    guint8 *part = malloc(bytes + 1), *all = malloc(bytes + 1), *share = malloc(bytes + 1);

    for (size_t i = 0; i < bytes; i += size)
        memcpy(share + i, &ones[type], size);
    if (scale_first)
        unit->scale[type](share, c->n_ranks, bytes);
    for (int rank = 0; rank < c->n_ranks; rank++) {
        memcpy(part, c->shared->slots[rank] + from, bytes);
        if (scale_first)
            unit->reduce[type][TT_PROD](part, part, share, bytes);
        if (rank == 0)
            memcpy(all, part, bytes);
        else
            unit->reduce[type][redop == TT_AVG ? TT_SUM : redop](all, all, part, bytes);
    }
    if (redop == TT_AVG && !scale_first)
        unit->scale[type](all, c->n_ranks, bytes);
    memcpy(out, all, bytes);
    free(part);
    free(all);
    free(share);
}

/* --- the thread of a communicator -------------------------------------------------------------- */

/* FALSE: aborted. */
static int
meet(Comm *c)
{
    unsigned long want = ++c->n_barriers * c->n_ranks;

    atomic_fetch_add(&c->shared->arrived, 1);
    while (atomic_load(&c->shared->arrived) < want) {
        if (atomic_load(&c->aborted))
            return 0;
        sched_yield();
    }
    return 1;
}

static int
do_work(Comm *c, const Work *w)
{
    size_t bytes = w->count * bytes_of[types[w->type]];
    int gives = w->kind != BROADCAST || c->rank == w->root;

    if (w->fault) {
        while (!atomic_load(&c->aborted))
            sched_yield();
        return 0;
    }
    if (gives)
        memcpy(c->shared->slots[c->rank], w->in,
               w->kind == REDUCE_SCATTER ? bytes * c->n_ranks : bytes);
    if (!meet(c))
        return 0;
    switch (w->kind) {
    case ALLREDUCE: combine(c, w, 0, bytes, w->out); break;
    case REDUCE_SCATTER: combine(c, w, c->rank * bytes, bytes, w->out); break;
    case REDUCE:
        if (c->rank == w->root)
            combine(c, w, 0, bytes, w->out);
        break;
    case BROADCAST: memcpy(w->out, c->shared->slots[w->root], bytes); break;
    default:
        for (int rank = 0; rank < c->n_ranks; rank++)
            memcpy((guint8 *)w->out + rank * bytes, c->shared->slots[rank], bytes);
    }
    if (bytes && has_fault("wrong", c->rank, -1))
        *(guint8 *)w->out ^= 1;
    return meet(c);
}

static void *
comm_main(void *data)
{
    Comm *c = data;

    for (;;) {
        Work w;

        pthread_mutex_lock(&c->lock);
        while (c->n_taken == c->n_given && !c->leave)
            pthread_cond_wait(&c->changed, &c->lock);
        if (c->n_taken == c->n_given) {
            pthread_mutex_unlock(&c->lock);
            return NULL;
        }
        w = c->works[c->n_taken++ % MOST_WORKS];
        pthread_cond_broadcast(&c->changed);
        pthread_mutex_unlock(&c->lock);
        if (!do_work(c, &w))
            return NULL;
        atomic_fetch_add(&w.stream->done, 1);
    }
}

static void
give(Comm *c, const Work *w)
{
    atomic_fetch_add(&w->stream->given, 1);
    pthread_mutex_lock(&c->lock);
    while (c->n_given - c->n_taken == MOST_WORKS && !atomic_load(&c->aborted))
        pthread_cond_wait(&c->changed, &c->lock);
    c->works[c->n_given++ % MOST_WORKS] = *w;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

/* --- communicators ----------------------------------------------------------------------------- */

static Comm *
comm_new(Shared *shared, int n_ranks, int rank)
{
    Comm *c = calloc(1, sizeof *c);

    c->shared = shared;
    c->n_ranks = n_ranks;
    c->rank = rank;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    pthread_create(&c->thread, NULL, comm_main, c);
    return c;
}

int
ncclGetVersion(int *version)
{
    const char *text = getenv("FAKE_NCCL_VERSION");

    *version = text ? atoi(text) : 22809;
    return SUCCESS;
}

int
ncclGetUniqueId(Id *id)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "/tutti-fake-nccl-%d-%ld", (int)getpid(),
             now.tv_nsec);
    return SUCCESS;
}

int
ncclCommInitAll(Comm **comms, int n, const int *devices)
{
    Shared *shared;

    (void)devices;
    if (has_fault("init", 1, -1))
        return error(SYSTEM, "the fake cannot begin");
    if (has_fault("init-hang", 1, -1))
        stay();
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || n > MOST_RANKS)
        return error(INVALID_ARGUMENT, "too many ranks");
    for (int rank = 0; rank < n; rank++)
        comms[rank] = comm_new(shared, n, rank);
    return SUCCESS;
}

int
ncclCommInitRank(Comm **comm, int n_ranks, Id id, int rank)
{
    Shared *shared;
    int fd;

    if (has_fault("init", rank, -1))
        return error(SYSTEM, "the fake cannot begin");
    if (has_fault("init-hang", rank, -1))
        stay();
    fd = shm_open(id.internal, O_CREAT | O_RDWR, 0600);
    if (fd < 0 || n_ranks > MOST_RANKS || ftruncate(fd, sizeof *shared) != 0)
        return error(SYSTEM, "no shared memory");
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (shared == MAP_FAILED)
        return error(SYSTEM, "no shared memory");
    if (atomic_fetch_add(&shared->attached, 1) + 1 == (unsigned)n_ranks)
        shm_unlink(id.internal);
    *comm = comm_new(shared, n_ranks, rank);
    memcpy((*comm)->name, id.internal, sizeof(*comm)->name);
    return SUCCESS;
}

static int
comm_end(Comm *c)
{
    pthread_mutex_lock(&c->lock);
    c->leave = 1;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
    if (c->name[0])
        shm_unlink(c->name); /* where some never came */
    if (c->name[0])
        munmap(c->shared, sizeof *c->shared);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->changed);
    free(c);
    return SUCCESS;
}

int
ncclCommDestroy(Comm *comm)
{
    return comm_end(comm);
}

int
ncclCommAbort(Comm *comm)
{
    if (has_fault("deaf", comm->rank, -1))
        stay();
    atomic_store(&comm->aborted, 1);
    return comm_end(comm);
}

int
ncclCommGetAsyncError(Comm *comm, int *code)
{
    *code = atomic_load(&comm->async);
    if (*code)
        error(*code, "the fake's peer has gone");
    return SUCCESS;
}

const char *
ncclGetErrorString(int result)
{
    return result == SYSTEM             ? "unhandled system error"
           : result == REMOTE           ? "remote process exited or there was a network error"
           : result == INVALID_ARGUMENT ? "invalid argument"
                                        : "no error";
}

const char *
ncclGetLastError(Comm *comm)
{
    (void)comm;
    return last_error;
}

/* --- calls ------------------------------------------------------------------------------------- */

int
ncclGroupStart(void)
{
    depth++;
    return SUCCESS;
}

int
ncclGroupEnd(void)
{
    if (--depth > 0)
        return SUCCESS;
    for (int i = 0; i < n_group; i++)
        give(group[i].comm, &group[i].work);
    n_group = 0;
    return SUCCESS;
}

/* In place means the places NCCL's manual names. */
static int
in_place_is_right(const Comm *c, const Work *w)
{
    size_t bytes = w->count * bytes_of[types[w->type]];
    const guint8 *in = w->in, *out = w->out;

    if (w->kind == ALLGATHER && in >= out && in < out + bytes * c->n_ranks)
        return in == out + c->rank * bytes;
    if (w->kind == REDUCE_SCATTER && out >= in && out < in + bytes * c->n_ranks)
        return out == in + c->rank * bytes;
    return 1;
}

static int
enqueue(Comm *c, Work w)
{
    size_t bytes = w.count * (w.kind == REDUCE_SCATTER ? c->n_ranks : 1);
    int call = ++c->n_calls;

    if (w.type < 0 || w.type > 11 || w.op < 0 || w.op > 4 ||
        bytes * bytes_of[types[w.type]] > SLOT_BYTES)
        return error(INVALID_ARGUMENT, "more than the fake can take");
    if (!in_place_is_right(c, &w))
        return error(INVALID_ARGUMENT, "not what in place means");
    if (has_fault("system", c->rank, call))
        return error(SYSTEM, "the fake does not like this");
    if (has_fault("stuck", c->rank, call))
        stay();
    if (has_fault("die", c->rank, call))
        raise(SIGKILL);
    w.fault = has_fault("hang", c->rank, call) || has_fault("deaf", c->rank, call) ||
              has_fault("async", c->rank, call);
    if (has_fault("async", c->rank, call))
        atomic_store(&c->async, REMOTE);
    if (depth > 0 && n_group < MOST_GROUP) {
        group[n_group].comm = c;
        group[n_group++].work = w;
        return SUCCESS;
    }
    give(c, &w);
    return SUCCESS;
}

int
ncclAllReduce(const void *in, void *out, size_t n, int type, int op, Comm *comm, void *stream)
{
    return enqueue(comm, (Work){ ALLREDUCE, type, op, 0, 0, in, out, n, stream });
}

int
ncclReduceScatter(const void *in, void *out, size_t n, int type, int op, Comm *comm, void *stream)
{
    return enqueue(comm, (Work){ REDUCE_SCATTER, type, op, 0, 0, in, out, n, stream });
}

int
ncclAllGather(const void *in, void *out, size_t n, int type, Comm *comm, void *stream)
{
    return enqueue(comm, (Work){ ALLGATHER, type, 0, 0, 0, in, out, n, stream });
}

int
ncclBroadcast(const void *in, void *out, size_t n, int type, int root, Comm *comm, void *stream)
{
    return enqueue(comm, (Work){ BROADCAST, type, 0, root, 0, in, out, n, stream });
}

#ifndef FAKE_WITHOUT_REDUCE
int
ncclReduce(const void *in, void *out, size_t n, int type, int op, int root, Comm *comm,
           void *stream)
{
    return enqueue(comm, (Work){ REDUCE, type, op, root, 0, in, out, n, stream });
}
#endif
