/* floors.c - the least a sum of two vectors on two cores takes: programs that do only that.
 *
 *     bench_floors staged|direct SIZES BUDGET_MS     output as bench/point.h says
 *
 * staged   buffers are private. Each core copies its input, a piece at a time, into slots that stay in
 *          the caches, and adds what it finds in the other's slots to its own input. What an executor
 *          with private buffers can reach. Up to 48 bytes travel in the line of the flag.
 * direct   both cores see all buffers: each adds one half and writes it to both outputs. What mapping
 *          the peer's memory would give.
 */
#include "bench/point.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>

#define PIECE   (16 << 10) /* bytes of a slot */
#define N_SLOTS 8
#define INLINE  48

typedef struct {
    long seq __attribute__((aligned(64)));
    char payload[INLINE];
} Line;

/* All that is shared but the vectors of "direct". */
typedef struct {
    long flag_lines[64];
    Line filled[2], emptied[2], barrier[2]; /* by the rank that writes them */
    double us[2];
    long n;
    char slot[2][N_SLOTS][PIECE] __attribute__((aligned(4096)));
} Shared;

typedef struct {
    Shared *shared;
    int me, stream;
    size_t count;
    float *in[2], *out[2];
    long barrier_seq, filled_seq;
} Rank;

static inline void
wait_for(const long *seq, long value)
{
    for (long spins = 0; __atomic_load_n(seq, __ATOMIC_ACQUIRE) < value; spins++)
        if (spins > 100000)
            sched_yield();
        else
            point_pause();
}

static void
meet(Rank *r)
{
    __atomic_store_n(&r->shared->barrier[r->me].seq, ++r->barrier_seq, __ATOMIC_RELEASE);
    wait_for(&r->shared->barrier[1 - r->me].seq, r->barrier_seq);
}

__attribute__((target_clones("avx2", "default"))) static void
add(float *restrict out, const float *restrict a, const float *restrict b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = a[i] + b[i];
}

/* With both outputs at once. */
__attribute__((target_clones("avx2", "default"))) static void
add_twice(float *restrict x, float *restrict y, const float *restrict a, const float *restrict b,
          size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = y[i] = a[i] + b[i];
}

#if defined(__x86_64__)
#include <emmintrin.h>

static void
add_twice_streaming(float *x, float *y, const float *a, const float *b, size_t n)
{
    size_t i = 0;

    for (; i < n && ((uintptr_t)(x + i) & 15 || (uintptr_t)(y + i) & 15); i++)
        x[i] = y[i] = a[i] + b[i];
    for (; i + 16 <= n; i += 16)
        for (size_t k = 0; k < 16; k += 4) {
            __m128 sum = _mm_add_ps(_mm_loadu_ps(a + i + k), _mm_loadu_ps(b + i + k));

            _mm_stream_ps(x + i + k, sum);
            _mm_stream_ps(y + i + k, sum);
        }
    for (; i < n; i++)
        x[i] = y[i] = a[i] + b[i];
    _mm_sfence();
}
#else
#define add_twice_streaming add_twice
#endif

static void
direct(Rank *r)
{
    size_t half = r->count / 2 / 16 * 16; /* whole lines */
    size_t first = r->me ? half : 0, n = r->me ? r->count - half : half;

    meet(r); /* the inputs are there */
    if (n)
        (r->stream ? add_twice_streaming : add_twice)(r->out[0] + first, r->out[1] + first,
                                                      r->in[0] + first, r->in[1] + first, n);
    meet(r); /* the outputs are */
}

static void
staged_small(Rank *r)
{
    Line *mine = &r->shared->filled[r->me], *other = &r->shared->filled[1 - r->me];
    Line *mine2 = &r->shared->emptied[r->me], *other2 = &r->shared->emptied[1 - r->me];
    size_t bytes = r->count * sizeof(float);

    /* Two lines in turn: the other is done with one when it has filled the other. */
    if (++r->filled_seq & 1)
        mine = mine2, other = other2;
    memcpy(mine->payload, r->in[r->me], bytes);
    __atomic_store_n(&mine->seq, r->filled_seq, __ATOMIC_RELEASE);
    wait_for(&other->seq, r->filled_seq);
    for (size_t i = 0; i < r->count; i++)
        r->out[r->me][i] = r->in[r->me][i] + ((const float *)(const void *)other->payload)[i];
}

static void
staged(Rank *r)
{
    Shared *s = r->shared;
    size_t piece = PIECE / sizeof(float);
    const float *in = r->in[r->me];
    float *out = r->out[r->me];

    if (r->count * sizeof(float) <= INLINE) {
        staged_small(r);
        return;
    }
    for (size_t at = 0; at < r->count; at += piece) {
        size_t n = r->count - at < piece ? r->count - at : piece;
        long seq = ++r->filled_seq, slot = seq % N_SLOTS;

        wait_for(&s->emptied[1 - r->me].seq, seq - N_SLOTS);
        memcpy(s->slot[r->me][slot], in + at, n * sizeof(float));
        __atomic_store_n(&s->filled[r->me].seq, seq, __ATOMIC_RELEASE);
        wait_for(&s->filled[1 - r->me].seq, seq);
        add(out + at, in + at, (const float *)(const void *)s->slot[1 - r->me][slot], n);
        __atomic_store_n(&s->emptied[r->me].seq, seq, __ATOMIC_RELEASE);
    }
}

/* Of one iteration, mean over both, the same on both. */
static double
loop_us(Rank *r, void (*once)(Rank *), long n)
{
    Shared *s = r->shared;
    double start;

    meet(r);
    start = point_now_us();
    for (long i = 0; i < n; i++)
        once(r);
    s->us[r->me] = (point_now_us() - start) / (double)n;
    meet(r);
    start = (s->us[0] + s->us[1]) / 2;
    meet(r);
    return start;
}

static double
median_us(Rank *r, void (*once)(Rank *), double budget_us)
{
    double us[POINT_MOST_REPEATS];
    PointLoop loop;
    long next = 1;

    while (next) {
        long tried = next;

        next = point_next(tried, loop_us(r, once, tried) * (double)tried, budget_us, &loop);
    }
    for (int i = 0; i < loop.repeats; i++)
        us[i] = loop_us(r, once, loop.n);
    return point_median(us, loop.repeats);
}

static void
fail(const char *what)
{
    perror(what);
    exit(1);
}

static void *
map(size_t bytes)
{
    void *at = mmap(NULL, bytes + 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED)
        fail("mmap");
    madvise(at, bytes, MADV_HUGEPAGE);
    return at;
}

static void
be_rank(Rank *r, void (*once)(Rank *), double budget_us)
{
    cpu_set_t here;
    double us, flag;

    CPU_ZERO(&here);
    CPU_SET(r->me, &here);
    sched_setaffinity(0, sizeof here, &here);
    if (once == staged) { /* private, in huge pages where the system has them */
        size_t room = (r->count * sizeof(float) + (4 << 20)) & ~(size_t)((2 << 20) - 1);

        r->in[r->me] = aligned_alloc(2 << 20, room);
        r->out[r->me] = aligned_alloc(2 << 20, room);
        madvise(r->in[r->me], room, MADV_HUGEPAGE);
        madvise(r->out[r->me], room, MADV_HUGEPAGE);
    }
    for (size_t i = 0; i < r->count; i++)
        r->in[r->me][i] = 1, r->out[r->me][i] = 0;
    meet(r);
    flag = point_flag_us(r->me, r->shared->flag_lines);
    us = median_us(r, once, budget_us);
    if (once == direct && r->count > 1 << 18) { /* the better of both ways to store */
        double other;

        r->stream = 1;
        other = median_us(r, once, budget_us);
        us = other < us ? other : us;
    }
    if (r->count && r->out[r->me][r->count - 1] != 2)
        fprintf(stderr, "wrong result\n");
    if (r->me == 0)
        printf("%zu %.4f %.4f %s\n", r->count * sizeof(float), us, flag,
               once == direct ? "direct" : "staged");
}

static void
measure(size_t bytes, void (*once)(Rank *), double budget_us)
{
    Rank r = { .shared = map(sizeof(Shared)), .count = bytes / sizeof(float) };
    int status;
    pid_t child;

    for (int i = 0; once == direct && i < 2; i++) {
        r.in[i] = map(bytes);
        r.out[i] = map(bytes);
    }
    fflush(stdout);
    child = fork();
    if (child < 0)
        fail("fork");
    r.me = child == 0;
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        be_rank(&r, once, budget_us);
        _exit(0);
    }
    be_rank(&r, once, budget_us);
    if (waitpid(child, &status, 0) != child || status != 0)
        fail("the other rank");
    munmap(r.shared, sizeof(Shared) + 1);
    for (int i = 0; once == direct && i < 2; i++) {
        munmap(r.in[i], bytes + 1);
        munmap(r.out[i], bytes + 1);
    }
    if (once == staged) {
        free(r.in[0]);
        free(r.out[0]);
    }
}

int
main(int argc, char **argv)
{
    double budget_us = argc > 3 ? atof(argv[3]) * 1e3 : 30e3;

    if (argc < 3 || (strcmp(argv[1], "staged") && strcmp(argv[1], "direct"))) {
        fprintf(stderr, "usage: %s staged|direct SIZES BUDGET_MS\n", argv[0]);
        return 2;
    }
    for (char *size = strtok(argv[2], ","); size; size = strtok(NULL, ","))
        measure(strtoull(size, NULL, 10), argv[1][0] == 'd' ? direct : staged, budget_us);
    return 0;
}
