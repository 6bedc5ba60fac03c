#include "exec/pattern.h"

#include <math.h>
#include <string.h>

/* Integers a float type holds exactly: 2^(bits of its significand). */
static const guint64 exact_limit[TT_N_TYPES] = {
    [TT_INT8] = 127, /* where sums must not wrap */
    [TT_FLOAT16] = 2048, [TT_BFLOAT16] = 256, [TT_FLOAT32] = 1 << 24, [TT_FLOAT64] = 1 << 24,
};

/* Products of at most 2^12 in magnitude fit every float type. */
#define MOST_TWOS 12

static gboolean
is_integer(TtType type)
{
    return type == TT_INT8 || type == TT_INT32 || type == TT_INT64;
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
    enum { ANY, ODD, SMALL, SPARSE, SIGNED_TWOS } kind;
    guint64 stride; /* SPARSE, SIGNED_TWOS: one rank in this many has a value of its own */
    guint64 salt;   /* added to the element's number */
} Draw;

/* Above every element there can be memory for. */
#define SALT_SHIFT 44

static Draw
choose_draw(const TtPlan *plan, gboolean sums_fit)
{
    TtType type = plan->spec.type;
    TtRedop redop = plan->spec.redop;
    guint64 P = plan->spec.n_ranks;

    if (!tt_collective_reduces(plan->spec.collective) || redop == TT_MIN || redop == TT_MAX)
        return (Draw){ ANY, 1 };
    if (is_integer(type) && !(sums_fit && redop == TT_SUM &&
                              exact_limit[type])) /* odd factors, else int8 products are mostly 0 */
        return (Draw){ redop == TT_PROD ? ODD : ANY, 1 };
    if (redop == TT_PROD)
        return (Draw){ SIGNED_TWOS, (P + MOST_TWOS - 1) / MOST_TWOS };
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
    case ODD: return ((gint)bits - 128) | 1;
    case SMALL: return bits & 3;
    case SPARSE: return (rank + element) % d.stride == 0;
    case SIGNED_TWOS: break;
    }
    return (rank % d.stride == 0 && (bits & 2) ? 2 : 1) * (bits & 1 ? -1 : 1);
}

/* --- the formats -------------------------------------------------------------------------------
 */

typedef struct {
    gint significand_bits, least_exponent, exponent_bits;
} Format;

static const Format half_format = { 11, -24, 5 }, bfloat_format = { 8, -133, 8 };

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
encode16(double value, Format f)
{
    gint stored = f.significand_bits - 1, exponent, bias = (1 << (f.exponent_bits - 1)) - 1;
    double fraction = frexp(fabs(value), &exponent); /* 0.5 .. 1 */
    guint16 sign = signbit(value) ? 0x8000 : 0;

    if (value == 0)
        return sign;
    if (exponent + bias - 1 <= 0)
        return sign | (guint16)ldexp(fabs(value), -f.least_exponent);
    return sign | (guint16)((exponent + bias - 1) << stored) |
           (guint16)(ldexp(fraction, f.significand_bits) - ldexp(1, stored));
}

static double
decode16(guint16 bits, Format f)
{
    gint stored = f.significand_bits - 1, bias = (1 << (f.exponent_bits - 1)) - 1;
    gint exponent = (bits & 0x7fff) >> stored;
    double fraction = bits & ((1 << stored) - 1), value;

    if (exponent == (1 << f.exponent_bits) - 1)
        value = fraction ? NAN : INFINITY;
    else if (exponent == 0)
        value = ldexp(fraction, f.least_exponent);
    else
        value = ldexp(fraction + (1 << stored), exponent - bias - stored);
    return bits & 0x8000 ? -value : value;
}

static Format
format_of(TtType type)
{
    return type == TT_FLOAT16 ? half_format : bfloat_format;
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
    default: return decode16(((const guint16 *)data)[i], format_of(type));
    }
}

/* Bits of every value draw() returns, by value + 128. */
static void
make_codes(TtType type, guint16 codes[256])
{
    for (gint v = -128; v < 128; v++)
        codes[v + 128] = encode16(v, format_of(type));
}

static void
fill(const TtPlan *plan, Draw d, guint rank, TtRange range, gpointer data)
{
    guint16 codes[256];

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

static guint64
count_wrong(const TtPlan *plan, Draw d, TtRange range, gconstpointer data)
{
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
        wrong += !equals(plan->spec.type, data, i, expected, divisor);
    }
    return wrong;
}

guint64
tt_pattern_count_wrong(const TtPlan *plan, guint salt, TtRange range, gconstpointer data)
{
    return count_wrong(plan, salted(choose_draw(plan, FALSE), salt), range, data);
}

guint64
tt_pattern_count_wrong_fitting(const TtPlan *plan, TtRange range, gconstpointer data)
{
    return count_wrong(plan, choose_draw(plan, TRUE), range, data);
}
