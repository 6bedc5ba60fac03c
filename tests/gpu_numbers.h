/* gpu_numbers.h - how the types of algos/types.h are laid out, for tests that look at their bits. */
#pragma once
#include "algos/types.h"

#include <math.h>
#include <string.h>

/* Bits of the mantissa, and what is added to an exponent; 0: no float. */
static const struct {
    guint mantissa, bias;
} gpu_floats[TT_N_TYPES] = {
    [TT_FLOAT16] = { 10, 15 },   [TT_BFLOAT16] = { 7, 127 }, [TT_FLOAT32] = { 23, 127 },
    [TT_FLOAT64] = { 52, 1023 }, [TT_FLOAT8E4M3] = { 3, 7 }, [TT_FLOAT8E5M2] = { 2, 15 },
};

/* The code of a small integer, which all types hold exactly. */
static inline guint64
gpu_encode(guint type, gint64 value)
{
    guint m = gpu_floats[type].mantissa, bits = 8 * tt_type_bytes(type);
    int exponent;
    double fraction = frexp((double)ABS(value), &exponent);

    if (m == 0)
        return bits == 64 ? (guint64)value : (guint64)value & ((G_GUINT64_CONSTANT(1) << bits) - 1);
    if (value == 0)
        return 0;
    return (guint64)(value < 0) << (bits - 1) |
           (guint64)(exponent - 1 + (int)gpu_floats[type].bias) << m |
           (guint64)((2 * fraction - 1) * (double)(G_GUINT64_CONSTANT(1) << m));
}

static inline guint64
gpu_read_code(const guint8 *from, guint bytes)
{
    guint64 code = 0;

    memcpy(&code, from, bytes); /* little-endian, as GPUs are */
    return code;
}

/* NaNs of a type are all the same to a reduction. */
static inline gboolean
gpu_is_nan(guint type, guint64 code)
{
    guint m = gpu_floats[type].mantissa, bits = 8 * tt_type_bytes(type);
    guint64 magnitude = code & ((G_GUINT64_CONSTANT(1) << (bits - 1)) - 1);

    if (m == 0)
        return FALSE;
    return type == TT_FLOAT8E4M3 ? magnitude == 0x7f
                                 : magnitude > ((G_GUINT64_CONSTANT(1) << (bits - 1 - m)) - 1) << m;
}
