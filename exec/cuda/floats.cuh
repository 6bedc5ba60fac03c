/* floats.cuh - floats of 8 and 16 bits to float and back, rounded to nearest even.
 *
 * On GPUs by the toolkit's conversions, which are instructions where there are some; elsewhere by arithmetic
 * on the bits. Those of 8 bits saturate: what is too large, infinity included, becomes the largest finite value.
 */
#pragma once
#include "exec/cuda/sync.cuh"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

struct Half {
    DEVICE float
    widen(uint16_t bits)
    {
        return __half2float(__ushort_as_half(bits));
    }
    DEVICE uint16_t
    narrow(float x)
    {
        return __half_as_ushort(__float2half_rn(x));
    }
};

struct Bfloat {
    DEVICE float
    widen(uint16_t bits)
    {
        return __uint_as_float((uint32_t)bits << 16);
    }
    DEVICE uint16_t
    narrow(float x)
    {
        return __bfloat16_as_ushort(__float2bfloat16_rn(x));
    }
};

template <__nv_fp8_interpretation_t KIND> struct Eight {
    DEVICE float
    widen(uint8_t bits)
    {
        return __half2float(__half(__nv_cvt_fp8_to_halfraw(bits, KIND)));
    }
    DEVICE uint8_t
    narrow(float x)
    {
        return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, KIND);
    }
};
typedef Eight<__NV_E4M3> E4m3;
typedef Eight<__NV_E5M2> E5m2;

#else
#include <string.h>

DEVICE uint32_t
bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

DEVICE float
float_of(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* MANTISSA bits, an exponent biased by BIAS before them, a sign of bit SIGN; magnitudes beyond LARGEST are not finite. */
template <class BITS, int MANTISSA, int BIAS, uint32_t LARGEST, uint32_t INFINITE, uint32_t NAN_>
struct Small {
    static constexpr int SHIFT = 23 - MANTISSA, SIGN = 8 * sizeof(BITS) - 1;

    static inline float
    widen(BITS bits)
    {
        uint32_t magnitude = bits & ((1u << SIGN) - 1), sign = (uint32_t)(bits >> SIGN) << 31;
        /* Exponents are rescaled by a multiplication, which normalises subnormals by itself. */
        uint32_t finite =
            bits_of(float_of(magnitude << SHIFT) * float_of((uint32_t)(254 - BIAS) << 23));

        if (magnitude > LARGEST) /* an e4m3 has no infinity: its INFINITE is its NaN */
            finite = INFINITE == NAN_ ? 0x7fc00000 : magnitude << SHIFT | 0x7f800000;
        return float_of(sign | finite);
    }

    static inline BITS
    narrow(float x)
    {
        uint32_t bits = bits_of(x), sign = bits >> 31 << SIGN, rest = bits & 0x7fffffff, code;

        if (rest > 0x7f800000)
            return (BITS)(sign | NAN_);
        if (rest < (uint32_t)(128 - BIAS) << 23) { /* subnormal: adding a power of two rounds */
            float magic = float_of((uint32_t)(128 - BIAS + SHIFT) << 23);

            code = bits_of(float_of(rest) + magic) - bits_of(magic);
        } else {
            uint32_t rebiased = rest - ((uint32_t)(127 - BIAS) << 23);

            code = (rebiased + (1u << (SHIFT - 1)) - 1 + (rebiased >> SHIFT & 1)) >> SHIFT;
        }
        return (BITS)(sign | (code > LARGEST ? (sizeof(BITS) == 1 ? LARGEST : INFINITE) : code));
    }
};
typedef Small<uint16_t, 10, 15, 0x7bff, 0x7c00, 0x7e00> Half;
typedef Small<uint8_t, 3, 7, 0x7e, 0x7f, 0x7f> E4m3;
typedef Small<uint8_t, 2, 15, 0x7b, 0x7c, 0x7f> E5m2;

struct Bfloat {
    static inline float
    widen(uint16_t bits)
    {
        return float_of((uint32_t)bits << 16);
    }

    static inline uint16_t
    narrow(float x)
    {
        uint32_t bits = bits_of(x);

        if (x != x)
            return (uint16_t)(bits >> 16 | 0x40);
        return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
};

#endif
