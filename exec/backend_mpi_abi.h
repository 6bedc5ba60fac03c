/* backend_mpi_abi.h - what the program and a module linked with one MPI know of each other.
 *
 * The program never sees mpi.h, and a module never sees GLib: an MPI is chosen when the program
 * starts, by the launcher that started it. Plain C, nothing here depends on either side's headers.
 */
#pragma once
#include <stddef.h>

#define TT_MPI_ABI    1
#define TT_MPI_MODULE "tt_mpi_module" /* the symbol a module defines: a TtMpiModule */

/* In the order of TtCollective, TtType (those MPI has) and TtRedop (those MPI has). */
enum { TT_MPI_ALLREDUCE, TT_MPI_REDUCE_SCATTER, TT_MPI_ALLGATHER, TT_MPI_BROADCAST, TT_MPI_REDUCE };
enum { TT_MPI_INT8, TT_MPI_INT32, TT_MPI_INT64, TT_MPI_FLOAT32, TT_MPI_FLOAT64 };
enum { TT_MPI_SUM, TT_MPI_PROD, TT_MPI_MIN, TT_MPI_MAX };

typedef struct {
    int collective, type, op, root;
    int in_place; /* the input is in @out: of allgather in this rank's block, of others from its start */
    int count;      /* as MPI counts: of allgather and reduce-scatter, one rank's block */
    const void *in; /* of broadcast, the root's data; the others receive in @out */
    void *out;
} TtMpiCall;

/* Functions return 0, or MPI's error code, for error_text(). All but the last are collective. */
typedef struct {
    int abi; /* TT_MPI_ABI */
    int (*init)(int *rank, int *n_ranks);
    int (*perform)(const TtMpiCall *call, unsigned long n, volatile unsigned long *n_done);
    int (*barrier)(void);
    int (*gather)(const void *mine, int bytes, void *all); /* to every rank, in their order */
    int (*finalize)(void);
    void (*library)(char *text, size_t bytes); /* its name and version, one line */
    void (*error_text)(int code, char *text, size_t bytes);
} TtMpiModule;
