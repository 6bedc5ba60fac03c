/* allreduce.c - MPI_Allreduce under the loop bench_exec_point uses: warm-up, barrier, n iterations back
 * to back, mean over ranks, median of the repeats. Compiled by peers.sh with each MPI's own compiler.
 *
 *     mpirun -np 2 ./allreduce BYTES ITERATIONS REPEATS    prints: median_us flag_us
 */
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PINGS 200

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double
median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, compare);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/* One-way latency of a flag between ranks 0 and 1 on shared memory. */
static double
flag_us(int rank, int n_ranks)
{
    MPI_Win window;
    MPI_Aint size;
    int unit, other = 1 - rank;
    _Atomic long *lines;
    double start = 0;

    if (n_ranks < 2)
        return 0;
    MPI_Win_allocate_shared(rank == 0 ? 4096 : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &lines,
                            &window);
    MPI_Win_shared_query(window, 0, &size, &unit, (void *)&lines);
    if (rank == 0)
        memset((void *)lines, 0, 4096);
    MPI_Barrier(MPI_COMM_WORLD);
    for (long i = 1; rank < 2 && i <= 2 * PINGS; i++) {
        if (i == PINGS + 1)
            start = MPI_Wtime();
        if (rank == 0)
            atomic_store_explicit(&lines[0], i, memory_order_release);
        while (atomic_load_explicit(&lines[16 * other], memory_order_acquire) != i)
            __builtin_ia32_pause();
        if (rank == 1)
            atomic_store_explicit(&lines[16], i, memory_order_release);
    }
    start = (MPI_Wtime() - start) / (2 * PINGS) * 1e6;
    MPI_Win_free(&window);
    return start;
}

int
main(int argc, char **argv)
{
    size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 8;
    int n = argc > 2 ? atoi(argv[2]) : 100, repeats = argc > 3 ? atoi(argv[3]) : 5;
    int rank, n_ranks, count = (int)(bytes / sizeof(float));
    double *times, flag;
    float *in, *out;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    in = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    out = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    times = calloc((size_t)repeats, sizeof *times);
    for (int i = 0; i < count; i++)
        in[i] = 1, out[i] = 0;
    flag = flag_us(rank, n_ranks);
    for (int i = 0; i < n / 10 + 2; i++)
        MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (int r = 0; r < repeats; r++) {
        double start, mine;

        MPI_Barrier(MPI_COMM_WORLD);
        start = MPI_Wtime();
        for (int i = 0; i < n; i++)
            MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        mine = (MPI_Wtime() - start) / n / n_ranks * 1e6;
        MPI_Reduce(&mine, &times[r], 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    }
    if (count > 0 && out[count - 1] != (float)n_ranks)
        fprintf(stderr, "wrong result\n");
    if (rank == 0)
        printf("%.4f %.4f\n", median(times, repeats), flag);
    MPI_Finalize();
    return 0;
}
