/* The kernels for AVX2 with F16C (from Haswell and Excavator on). */
#include "exec/reduce.h"

#if defined(__x86_64__)
#include <immintrin.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif

#define UNIT             avx2
#define VECTOR           32
#define STREAM(to, bits) _mm256_stream_si256((__m256i *)(gpointer)(to), (__m256i)(bits))
#define STREAM_END()     _mm_sfence()

static inline __attribute__((always_inline)) void
half_widen8(const __m128i *in, float *out)
{
    _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_loadu_si128(in)));
}

static inline __attribute__((always_inline)) void
half_narrow8(const float *in, __m128i *out)
{
    _mm_storeu_si128(out, _mm256_cvtps_ph(_mm256_loadu_ps(in), _MM_FROUND_TO_NEAREST_INT));
}

#define HALF_WIDEN(in, out)                                                                        \
    half_widen8((const __m128i *)(in), (float *)(out)),                                            \
        half_widen8((const __m128i *)(in) + 1, (float *)(out) + 8)
#define HALF_NARROW(in, out)                                                                       \
    half_narrow8((const float *)(in), (__m128i *)(out)),                                           \
        half_narrow8((const float *)(in) + 8, (__m128i *)(out) + 1)
#include "exec/reduce_loops.inc"

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const TtReduceUnit *
tt_reduce_avx2(void)
{
    return &unit;
}
#else
const TtReduceUnit *
tt_reduce_avx2(void)
{
    return NULL;
}
#endif
