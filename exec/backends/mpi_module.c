/* mpi_module - one MPI behind exec/backend_mpi_abi.h. Built by that MPI's own compiler, as many
 * times as there are MPIs; loaded when one of them started the program. */
#include "exec/backend_mpi_abi.h"

#include <mpi.h>
#include <string.h>

static MPI_Datatype types[5];
static MPI_Op ops[4];

static int
init(int *rank, int *n_ranks)
{
    int code = MPI_Init(NULL, NULL);

    if (code != MPI_SUCCESS)
        return code;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    types[TT_MPI_INT8] = MPI_INT8_T;
    types[TT_MPI_INT32] = MPI_INT32_T;
    types[TT_MPI_INT64] = MPI_INT64_T;
    types[TT_MPI_FLOAT32] = MPI_FLOAT;
    types[TT_MPI_FLOAT64] = MPI_DOUBLE;
    ops[TT_MPI_SUM] = MPI_SUM;
    ops[TT_MPI_PROD] = MPI_PROD;
    ops[TT_MPI_MIN] = MPI_MIN;
    ops[TT_MPI_MAX] = MPI_MAX;
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, n_ranks);
    return 0;
}

static int
reduce(const TtMpiCall *c, MPI_Datatype type)
{
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (c->in_place && rank == c->root)
        return MPI_Reduce(MPI_IN_PLACE, c->out, c->count, type, ops[c->op], c->root,
                          MPI_COMM_WORLD);
    return MPI_Reduce(c->in_place ? c->out : c->in, c->out, c->count, type, ops[c->op], c->root,
                      MPI_COMM_WORLD);
}

static int
broadcast(const TtMpiCall *c, MPI_Datatype type)
{
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return MPI_Bcast(c->in_place || rank != c->root ? c->out : (void *)c->in, c->count, type,
                     c->root, MPI_COMM_WORLD);
}

static int
once(const TtMpiCall *c)
{
    MPI_Datatype type = types[c->type];
    const void *in = c->in_place ? MPI_IN_PLACE : c->in;

    switch (c->collective) {
    case TT_MPI_ALLREDUCE:
        return MPI_Allreduce(in, c->out, c->count, type, ops[c->op], MPI_COMM_WORLD);
    case TT_MPI_REDUCE_SCATTER:
        return MPI_Reduce_scatter_block(in, c->out, c->count, type, ops[c->op], MPI_COMM_WORLD);
    case TT_MPI_ALLGATHER:
        return MPI_Allgather(in, c->count, type, c->out, c->count, type, MPI_COMM_WORLD);
    case TT_MPI_BROADCAST: return broadcast(c, type);
    default: return reduce(c, type);
    }
}

static int
perform(const TtMpiCall *call, unsigned long n, volatile unsigned long *n_done)
{
    int code = 0;

    for (unsigned long i = 0; i < n && code == 0; i++) {
        code = once(call);
        (*n_done)++;
    }
    return code;
}

static int
barrier(void)
{
    return MPI_Barrier(MPI_COMM_WORLD);
}

static int
gather(const void *mine, int bytes, void *all)
{
    return MPI_Allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static int
finalize(void)
{
    return MPI_Finalize();
}

static void
copy_line(char *to, size_t bytes, const char *from)
{
    size_t n = strcspn(from, "\n");

    if (n >= bytes)
        n = bytes - 1;
    for (size_t i = 0; i < n; i++)
        to[i] = from[i] == '\t' ? ' ' : from[i];
    to[n] = '\0';
}

static void
library(char *text, size_t bytes)
{
    char whole[MPI_MAX_LIBRARY_VERSION_STRING];
    int n;

    MPI_Get_library_version(whole, &n);
    copy_line(text, bytes, whole);
}

static void
error_text(int code, char *text, size_t bytes)
{
    char whole[MPI_MAX_ERROR_STRING];
    int n;

    if (MPI_Error_string(code, whole, &n) != MPI_SUCCESS)
        strcpy(whole, "unknown error");
    copy_line(text, bytes, whole);
}

const TtMpiModule tt_mpi_module = {
    .abi = TT_MPI_ABI,
    .init = init,
    .perform = perform,
    .barrier = barrier,
    .gather = gather,
    .finalize = finalize,
    .library = library,
    .error_text = error_text,
};
