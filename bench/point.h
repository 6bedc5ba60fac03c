/* point.h - what the programs under bench/peers share: a clock, medians, how long loops are, and the
 * latency of a flag between two cores. C and C++, nothing but libc: peers' own compilers read it.
 *
 * Each of the programs takes a list of sizes and a budget, and prints a line per size:
 *
 *     BYTES MEDIAN_US FLAG_US WHAT
 */
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define POINT_MOST_REPEATS 7
#define POINT_PINGS        300

static inline double
point_now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static inline int
point_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static inline double
point_median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, point_compare);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/* A measurement: @repeats loops of @n iterations, whose median counts. Short loops, and several, because
 * others may take the core away for a time slice. */
typedef struct {
    long n;
    int repeats;
} PointLoop;

/* Loops grow until one takes a good part of its share of the budget. Returns the next number of
 * iterations to try after @n took @us, or 0 if it will do: then @loop is written. All ranks must see
 * the same @us. */
static inline long
point_next(long n, double us, double budget_us, PointLoop *loop)
{
    double share_us = budget_us / POINT_MOST_REPEATS;

    if (us < share_us / 4 && n < 1000000)
        return n * 4;
    loop->n = us > 0 ? (long)((double)n * share_us / us) : n;
    if (loop->n < 1)
        loop->n = 1;
    loop->repeats = us / (double)n > budget_us ? 3 : POINT_MOST_REPEATS;
    return 0;
}

static inline void
point_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* One-way latency of a flag between @who 0 and 1, each on a core of its own while it lasts. @lines:
 * 256 shared bytes, zero; both call it. 0 if there is only one core. */
static inline double
point_flag_us(int who, long *lines)
{
    cpu_set_t before, here;
    double start = 0;

    if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
        return 0;
    sched_getaffinity(0, sizeof before, &before);
    CPU_ZERO(&here);
    CPU_SET(who, &here);
    sched_setaffinity(0, sizeof here, &here); /* where it is not allowed, spinning still ends */
    for (long i = 1; i <= 2 * POINT_PINGS; i++) {
        if (i == POINT_PINGS + 1)
            start = point_now_us();
        if (who == 0)
            __atomic_store_n(&lines[0], i, __ATOMIC_RELEASE);
        while (__atomic_load_n(&lines[16 * (1 - who)], __ATOMIC_ACQUIRE) != i)
            point_pause();
        if (who == 1)
            __atomic_store_n(&lines[16], i, __ATOMIC_RELEASE);
    }
    start = (point_now_us() - start) / (2 * POINT_PINGS);
    sched_setaffinity(0, sizeof before, &before);
    return start;
}
