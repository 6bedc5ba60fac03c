/* The kernels for AVX-512 F, BW, DQ and VL (from Skylake-SP and Zen 4 on). */
#include "exec/reduce.h"

#if defined(__x86_64__)
#include <immintrin.h>

#ifdef __clang__
#pragma clang attribute push(                                                                      \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c"))),                   \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")
#endif

#define UNIT             avx512
#define VECTOR           64
#define STREAM(to, bits) _mm512_stream_si512((__m512i *)(gpointer)(to), (__m512i)(bits))
#define STREAM_END()     _mm_sfence()

static inline __attribute__((always_inline)) void
half_widen16(const __m256i *in, float *out)
{
    _mm512_storeu_ps(out, _mm512_cvtph_ps(_mm256_loadu_si256(in)));
}

static inline __attribute__((always_inline)) void
half_narrow16(const float *in, __m256i *out)
{
    _mm256_storeu_si256(out, _mm512_cvtps_ph(_mm512_loadu_ps(in), _MM_FROUND_TO_NEAREST_INT));
}

#define HALF_WIDEN(in, out)                                                                        \
    half_widen16((const __m256i *)(in), (float *)(out)),                                           \
        half_widen16((const __m256i *)(in) + 1, (float *)(out) + 16)
#define HALF_NARROW(in, out)                                                                       \
    half_narrow16((const float *)(in), (__m256i *)(out)),                                          \
        half_narrow16((const float *)(in) + 16, (__m256i *)(out) + 1)
#include "exec/reduce_loops.inc"

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const TtReduceUnit *
tt_reduce_avx512(void)
{
    return &unit;
}
#else
const TtReduceUnit *
tt_reduce_avx512(void)
{
    return NULL;
}
#endif
