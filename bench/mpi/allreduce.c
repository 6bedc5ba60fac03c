/* allreduce.c - MPI_Allreduce, fp32 sum, under the loop the other programs of bench/peers use: barrier,
 * n iterations back to back, mean over ranks, median of the repeats. bench/peers compiles it with each
 * MPI's own compiler.
 *
 *     mpirun -np 2 ./allreduce SIZES BUDGET_MS     sizes as 8,1024: output as bench/point.h says
 */
#include "../point.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int rank, n_ranks;

/* Ranks beyond the first two sleep meanwhile: they may need the same cores. */
static double
flag_us(void)
{
    MPI_Win window;
    MPI_Aint size;
    int unit;
    long *lines;
    double us = 0;

    if (n_ranks < 2)
        return 0;
    MPI_Win_allocate_shared(rank == 0 ? 4096 : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &lines,
                            &window);
    MPI_Win_shared_query(window, 0, &size, &unit, (void *)&lines);
    if (rank == 0)
        memset((void *)lines, 0, 4096);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank < 2) {
        us = point_flag_us(rank, lines);
        __atomic_store_n(&lines[64 + rank], 1, __ATOMIC_RELEASE);
    }
    for (int who = 0; who < 2; who++)
        while (!__atomic_load_n(&lines[64 + who], __ATOMIC_ACQUIRE))
            usleep(200);
    MPI_Win_free(&window);
    return us;
}

/* Of one iteration, mean over ranks, the same on all. */
static double
loop_us(const float *in, float *out, int count, long n)
{
    double start, mine, sum = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    start = point_now_us();
    for (long i = 0; i < n; i++)
        MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    mine = (point_now_us() - start) / (double)n;
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum / n_ranks;
}

static void
measure(size_t bytes, double budget_us)
{
    size_t room = (bytes + 4095) / 4096 * 4096;
    int count = (int)(bytes / sizeof(float));
    float *in = aligned_alloc(4096, room), *out = aligned_alloc(4096, room);
    double us[POINT_MOST_REPEATS], flag = flag_us();
    PointLoop loop;
    long next = 1;

    for (int i = 0; i < count; i++)
        in[i] = 1, out[i] = 0;
    while (next) {
        long tried = next;

        next = point_next(tried, loop_us(in, out, count, tried) * (double)tried, budget_us, &loop);
    }
    for (int r = 0; r < loop.repeats; r++)
        us[r] = loop_us(in, out, count, loop.n);
    if (count > 0 && out[count - 1] != (float)n_ranks)
        fprintf(stderr, "wrong result\n");
    if (rank == 0)
        printf("%zu %.4f %.4f mpi\n", bytes, point_median(us, loop.repeats), flag);
    free(in);
    free(out);
}

int
main(int argc, char **argv)
{
    double budget_us = argc > 2 ? atof(argv[2]) * 1e3 : 30e3;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    for (char *size = strtok(argc > 1 ? argv[1] : NULL, ","); size; size = strtok(NULL, ","))
        measure(strtoull(size, NULL, 10), budget_us);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
#ifdef MPICH_VERSION
    if (getenv(
            "UCX_TLS")) /* MPICH 4.0.2 with UCX over tcp at times never returns from MPI_Finalize */
        _exit(0);
#endif
    MPI_Finalize();
    return 0;
}
