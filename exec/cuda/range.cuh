/* range.cuh - which elements a step of a round moves: tt_plan_range() and tt_plan_next_piece(), cut for cut. */
#pragma once
#include "exec/cuda/sync.cuh"

typedef struct {
    uint64_t first, count; /* elements of the vector */
} Range;

/* total * i / n without overflow; i <= n. */
OUT_OF_LINE uint64_t
cut(uint64_t total, uint64_t i, uint64_t n)
{
    uint64_t product = total * i;

    if (total <= UINT32_MAX && n <= UINT32_MAX) /* on GPUs, 32 bits are divided much faster */
        return product <= UINT32_MAX ? (uint32_t)product / (uint32_t)n : product / n;
    if (n <= UINT32_MAX) /* total = q n + r: what is left to divide is r i < n^2 */
        return total / n * i + total % n * i / n;
    return (uint64_t)((unsigned __int128)total * i / n);
}

DEVICE Range
part_of(Range whole, uint64_t i, uint64_t n)
{
    uint64_t first = cut(whole.count, i, n);
    Range part = { whole.first + first, cut(whole.count, i + 1, n) - first };

    return part;
}

/* The same in units of 2^unit elements; the last may be short. */
DEVICE Range
aligned_part_of(Range whole, uint64_t i, uint64_t n, uint32_t unit)
{
    if (n == 1)
        return whole;

    uint64_t n_units = (whole.count + (1u << unit) - 1) >> unit;
    uint64_t first = cut(n_units, i, n) << unit, end = cut(n_units, i + 1, n) << unit;

    first = first < whole.count ? first : whole.count;
    end = end < whole.count ? end : whole.count;

    Range part = { whole.first + first, end - first };

    return part;
}

DEVICE Range
chunk_of(const TtGpuShape *shape, uint32_t chunk)
{
    Range all = { 0, shape->count };

    return part_of(all, chunk, shape->n_chunks);
}

DEVICE bool
is_whole(const TtGpuShape *shape)
{
    return shape->n_channels == 1 && shape->n_rounds == 1;
}

/* Where a walk through a span stands: the share of one channel in one round. */
typedef struct {
    const TtGpuShape *shape;
    uint64_t round;
    uint32_t channel, element_bytes;
    uint32_t chunk, n_chunks; /* to come */
} Span;

/* The next contiguous piece, which may be empty; @span has chunks left. */
OUT_OF_LINE Range
next_piece(Span *span)
{
    const TtGpuShape *shape = span->shape;
    Range range = chunk_of(shape, span->chunk);

    if (is_whole(shape)) {
        if (span->n_chunks > 1) {
            Range last = chunk_of(shape, span->chunk + span->n_chunks - 1);

            range.count = last.first + last.count - range.first;
        }
        span->chunk += span->n_chunks;
        span->n_chunks = 0;
        return range;
    }
    uint32_t unit = 6; /* 64 bytes, in elements */

    for (uint32_t bytes = span->element_bytes; bytes > 1; bytes >>= 1)
        unit--;

    range = aligned_part_of(range, span->channel, shape->n_channels, unit);
    range = aligned_part_of(range, span->round, shape->n_rounds, unit);
    span->chunk++;
    span->n_chunks--;
    return range;
}
