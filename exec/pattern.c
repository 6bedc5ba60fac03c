#include "exec/pattern.h"

#include <math.h>
#include <string.h>

/* Integers a float type holds exactly: 2^(bits of its significand). */
static const guint64 exact_limit[TT_N_TYPES] = {
    [TT_INT8] = 127, /* where sums must not wrap */
    [TT_FLOAT16] = 2048,    [TT_BFLOAT16] = 256,  [TT_FLOAT32] = 1 << 24,
    [TT_FLOAT64] = 1 << 24, [TT_FLOAT8E4M3] = 16, [TT_FLOAT8E5M2] = 8,
};

/* Products of at most 2^12 in magnitude fit every float type but e4m3, which ends at 448. */
#define MOST_TWOS      12
#define MOST_TWOS_E4M3 8

static gboolean
is_integer(TtType type)
{
    return type == TT_INT8 || type == TT_INT32 || type == TT_INT64;
}

static gboolean
is_float8(TtType type)
{
    return type == TT_FLOAT8E4M3 || type == TT_FLOAT8E5M2;
}

/* Eight bits that look random, different for neighbours in rank and element. */
static inline guint
noise(guint rank, guint64 element)
{
    guint64 x = (element + 1) * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15) +
                rank * G_GUINT64_CONSTANT(0xbf58476d1ce4e5b9);

    x = (x ^ (x >> 29)) * G_GUINT64_CONSTANT(0x94d049bb133111eb);
    return x >> 56;
}

/* How values are drawn for one call. */
typedef struct {
    enum { ANY, FEW, ODD, SMALL, SPARSE, SIGNED_TWOS } kind;
    guint64
        stride;   /* SPARSE, SIGNED_TWOS: one rank in this many has a value of its own; FEW: values
                       are -stride .. stride - 1 */
    guint64 salt; /* added to the element's number */
} Draw;

/* Above every element there can be memory for. */
#define SALT_SHIFT 44

static Draw
choose_draw(const TtPlan *plan, gboolean sums_fit)
{
    TtType type = plan->spec.type;
    TtRedop redop = plan->spec.redop;
    guint64 P = plan->spec.n_ranks, most_twos = type == TT_FLOAT8E4M3 ? MOST_TWOS_E4M3 : MOST_TWOS;

    if (is_float8(type) &&
        (!tt_collective_reduces(plan->spec.collective) || redop == TT_MIN || redop == TT_MAX))
        return (Draw){ FEW, exact_limit[type] };
    if (!tt_collective_reduces(plan->spec.collective) || redop == TT_MIN || redop == TT_MAX)
        return (Draw){ ANY, 1 };
    if (is_integer(type) && !(sums_fit && redop == TT_SUM &&
                              exact_limit[type])) /* odd factors, else int8 products are mostly 0 */
        return (Draw){ redop == TT_PROD ? ODD : ANY, 1 };
    if (redop == TT_PROD)
        return (Draw){ SIGNED_TWOS, (P + most_twos - 1) / most_twos };
    if (3 * P <= exact_limit[type])
        return (Draw){ SMALL, 1 };
    return (Draw){ SPARSE, (P + exact_limit[type] - 1) / exact_limit[type] };
}

static Draw
salted(Draw d, guint salt)
{
    d.salt = (guint64)salt << SALT_SHIFT;
    return d;
}

static inline gint
draw(Draw d, guint rank, guint64 element)
{
    guint bits = noise(rank, element + d.salt);

    switch (d.kind) {
    case ANY: return (gint)bits - 128;
    case FEW: return (gint)(bits % (2 * d.stride)) - (gint)d.stride;
    case ODD: return ((gint)bits - 128) | 1;
    case SMALL: return bits & 3;
    case SPARSE: return (rank + element) % d.stride == 0;
    case SIGNED_TWOS: break;
    }
    return (rank % d.stride == 0 && (bits & 2) ? 2 : 1) * (bits & 1 ? -1 : 1);
}

/* --- the formats -------------------------------------------------------------------------------
 */

/* Of 16 and of 8 bits. */
typedef struct {
    gint significand_bits, least_exponent, exponent_bits;
    gboolean endless; /* no infinity: the largest exponent has values as others have, and one NaN */
} Format;

static const Format half_format = { 11, -24, 5, FALSE }, bfloat_format = { 8, -133, 8, FALSE },
                    e4m3_format = { 4, -9, 4, TRUE }, e5m2_format = { 3, -16, 5, FALSE };

/* The nearest value of the format, ties to even; magnitudes here never reach infinity. */
static double
round_to(double value, Format f)
{
    gint exponent;

    if (value == 0)
        return value;
    frexp(value, &exponent);
    exponent = MAX(exponent - f.significand_bits, f.least_exponent);
    return ldexp(nearbyint(ldexp(value, -exponent)), exponent);
}

/* Bits of a value the format holds exactly. */
static guint16
encode(double value, Format f)
{
    gint stored = f.significand_bits - 1, exponent, bias = (1 << (f.exponent_bits - 1)) - 1;
    double fraction = frexp(fabs(value), &exponent); /* 0.5 .. 1 */
    guint16 sign = signbit(value) ? 1 << (f.exponent_bits + stored) : 0;

    if (value == 0)
        return sign;
    if (exponent + bias - 1 <= 0)
        return sign | (guint16)ldexp(fabs(value), -f.least_exponent);
    return sign | (guint16)((exponent + bias - 1) << stored) |
           (guint16)(ldexp(fraction, f.significand_bits) - ldexp(1, stored));
}

static double
decode(guint16 bits, Format f)
{
    gint stored = f.significand_bits - 1, bias = (1 << (f.exponent_bits - 1)) - 1;
    guint16 sign = 1 << (f.exponent_bits + stored);
    gint exponent = (bits & (sign - 1)) >> stored;
    double fraction = bits & ((1 << stored) - 1), value;

    if (f.endless && (bits & (sign - 1)) == sign - 1)
        value = NAN;
    else if (!f.endless && exponent == (1 << f.exponent_bits) - 1)
        value = fraction ? NAN : INFINITY;
    else if (exponent == 0)
        value = ldexp(fraction, f.least_exponent);
    else
        value = ldexp(fraction + (1 << stored), exponent - bias - stored);
    return bits & sign ? -value : value;
}

static Format
format_of(TtType type)
{
    switch (type) {
    case TT_FLOAT16: return half_format;
    case TT_BFLOAT16: return bfloat_format;
    case TT_FLOAT8E4M3: return e4m3_format;
    default: return e5m2_format;
    }
}

double
tt_pattern_read(TtType type, gconstpointer data, guint64 i)
{
    switch (type) {
    case TT_INT8: return ((const gint8 *)data)[i];
    case TT_INT32: return ((const gint32 *)data)[i];
    case TT_INT64: return (double)((const gint64 *)data)[i];
    case TT_FLOAT32: return ((const float *)data)[i];
    case TT_FLOAT64: return ((const double *)data)[i];
    case TT_FLOAT8E4M3:
    case TT_FLOAT8E5M2: return decode(((const guint8 *)data)[i], format_of(type));
    default: return decode(((const guint16 *)data)[i], format_of(type));
    }
}

/* Bits of every value draw() returns, by value + 128. */
static void
make_codes(TtType type, guint16 codes[256])
{
    gint most = is_float8(type) ? (gint)exact_limit[type] : 128;

    for (gint v = -most; v < most; v++)
        codes[v + 128] = encode(v, format_of(type));
}

static void
fill(const TtPlan *plan, Draw d, guint rank, TtRange range, gpointer data)
{
    guint16 codes[256] = { 0 };

#define FILL(type, expression)                                                                     \
    for (guint64 i = 0; i < range.count; i++) {                                                    \
        gint v = draw(d, rank, range.first + i);                                                   \
        ((type *)data)[i] = (type)(expression);                                                    \
    }                                                                                              \
    break

    switch (plan->spec.type) {
    case TT_INT8: FILL(gint8, v);
    case TT_INT32: FILL(gint32, v);
    case TT_INT64: FILL(gint64, v);
    case TT_FLOAT32: FILL(float, v);
    case TT_FLOAT64: FILL(double, v);
    case TT_FLOAT8E4M3:
    case TT_FLOAT8E5M2: make_codes(plan->spec.type, codes); FILL(guint8, codes[v + 128]);
    default: make_codes(plan->spec.type, codes); FILL(guint16, codes[v + 128]);
    }
#undef FILL
}

void
tt_pattern_fill(const TtPlan *plan, guint salt, guint rank, TtRange range, gpointer data)
{
    fill(plan, salted(choose_draw(plan, FALSE), salt), rank, range, data);
}

void
tt_pattern_fill_fitting(const TtPlan *plan, guint rank, TtRange range, gpointer data)
{
    fill(plan, choose_draw(plan, TRUE), rank, range, data);
}

/* --- the expected result ------------------------------------------------------------------------
 */

/* Combined in 64 bits, wrapping; exact for floats, since their values are small integers. */
static inline gint64
combine_all(const TtPlan *plan, Draw d, guint64 element)
{
    gint64 result = draw(d, 0, element);

    for (guint rank = 1; rank < plan->spec.n_ranks; rank++) {
        gint64 v = draw(d, rank, element);

        switch (plan->spec.redop) {
        case TT_PROD: result = (gint64)((guint64)result * (guint64)v); break;
        case TT_MIN: result = MIN(result, v); break;
        case TT_MAX: result = MAX(result, v); break;
        default: result = (gint64)((guint64)result + (guint64)v);
        }
    }
    return result;
}

/* The rank whose input an element of a broadcast or allgather comes from. Elements are visited in
 * order, so the search starts at the last answer. */
static guint
owner_of(const TtPlan *plan, guint64 element, guint last)
{
    if (plan->spec.collective == TT_BROADCAST)
        return plan->spec.root;
    for (;; last++) {
        TtRange own = tt_plan_buffer_range(plan, last, TT_INPUT);

        if (element < own.first + own.count)
            return last;
    }
}

/* Is element @i of @data the integer @sum (averaged over @divisor if > 1), in its type? */
static inline gboolean
equals(TtType type, gconstpointer data, guint64 i, gint64 sum, gint64 divisor)
{
    switch (type) {
    case TT_INT8: return ((const gint8 *)data)[i] == (gint8)((gint8)sum / divisor);
    case TT_INT32: return ((const gint32 *)data)[i] == (gint32)((gint32)sum / divisor);
    case TT_INT64: return ((const gint64 *)data)[i] == sum / divisor;
    case TT_FLOAT32: return ((const float *)data)[i] == (float)sum / (float)divisor;
    case TT_FLOAT64: return ((const double *)data)[i] == (double)sum / (double)divisor;
    default: break;
    }
    if (divisor == 1)
        return tt_pattern_read(type, data, i) == (double)sum;
    return tt_pattern_read(type, data, i) == round_to((float)sum / (float)divisor, format_of(type));
}

/* Bits of significand of a float type. */
static gint
significand_bits(TtType type)
{
    return type == TT_FLOAT64 ? 53 : type == TT_FLOAT32 ? 24 : format_of(type).significand_bits;
}

/* 1/n, each product with it and each sum are rounded: n + 1 times half a unit of the last place, and as
 * often half the least subnormal. No input is negative, so no error is larger than that of the result. */
static gboolean
is_rounded_average(TtType type, gconstpointer data, guint64 i, gint64 sum, gint64 n)
{
    double got = tt_pattern_read(type, data, i), want = (double)sum / (double)n;
    double relative = ldexp((double)(n + 1), -significand_bits(type));
    double least =
        type >= TT_FLOAT32 && type <= TT_FLOAT64 ? 0 : ldexp(1, format_of(type).least_exponent);

    return fabs(got - want) <= relative * want + least * (double)(n + 1) / 2;
}

static guint64
count_wrong(const TtPlan *plan, Draw d, TtRange range, gconstpointer data, gboolean rounded)
{
    TtType type = plan->spec.type;

    gboolean reduces = tt_collective_reduces(plan->spec.collective);
    gint64 divisor = reduces && plan->spec.redop == TT_AVG ? plan->spec.n_ranks : 1;
    guint64 wrong = 0;
    guint owner = 0;

    for (guint64 i = 0; i < range.count; i++) {
        guint64 element = range.first + i;
        gint64 expected;

        if (reduces)
            expected = combine_all(plan, d, element);
        else
            expected = draw(d, owner = owner_of(plan, element, owner), element);
        if (rounded && divisor > 1 && !is_integer(type))
            wrong += !is_rounded_average(type, data, i, expected, divisor);
        else
            wrong += !equals(type, data, i, expected, divisor);
    }
    return wrong;
}

guint64
tt_pattern_count_wrong(const TtPlan *plan, guint salt, TtRange range, gconstpointer data)
{
    return count_wrong(plan, salted(choose_draw(plan, FALSE), salt), range, data, FALSE);
}

guint64
tt_pattern_count_wrong_fitting(const TtPlan *plan, TtRange range, gconstpointer data)
{
    return count_wrong(plan, choose_draw(plan, TRUE), range, data, FALSE);
}

guint64
tt_pattern_count_wrong_rounded(const TtPlan *plan, TtRange range, gconstpointer data)
{
    return count_wrong(plan, choose_draw(plan, FALSE), range, data, TRUE);
}
