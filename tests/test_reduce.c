/* The kernels against plain C, one element at a time: every unit, type, operation and form. */
#include "exec/exec.h"
#include "exec/pattern.h"
#include "exec/reduce.h"
#include "tests/check.h"

#include <math.h>
#include <string.h>

#define MOST_BYTES 2048
#define GUARD      64 /* bytes around a destination that must stay as they are */

/* --- floats of 16 and 8 bits by search --------------------------------------------------------- */

static gboolean
is_half(TtType type)
{
    return type == TT_FLOAT16 || type == TT_BFLOAT16;
}

static gboolean
is_float8(TtType type)
{
    return type == TT_FLOAT8E4M3 || type == TT_FLOAT8E5M2;
}

/* The first magnitude that is not finite: infinity, or e4m3's NaN, which stands for the next step
 * after the largest. */
static guint16
end_of(TtType type)
{
    switch (type) {
    case TT_FLOAT16: return 0x7c00;
    case TT_BFLOAT16: return 0x7f80;
    case TT_FLOAT8E4M3: return 0x7f;
    default: return 0x7c;
    }
}

static double
magnitude(TtType type, guint16 bits)
{
    guint8 byte = (guint8)bits;

    if (bits == end_of(type))
        return type == TT_FLOAT8E4M3 ? 480 : type == TT_BFLOAT16 ? 0x1p128 : 0x1p16;
    return tt_pattern_read(type, is_float8(type) ? (gconstpointer)&byte : &bits, 0);
}

/* To nearest, ties to even, by bisection over all magnitudes: they are ordered as their bits. What is
 * too large for 8 bits becomes the largest. */
static guint16
round_narrow(TtType type, double value)
{
    guint16 sign = signbit(value) ? (is_float8(type) ? 0x80 : 0x8000) : 0;
    guint16 low = 0, high = end_of(type), most = is_float8(type) ? high - 1 : high;
    double x = fabs(value);

    if (isnan(value))
        return is_float8(type) ? 0x7f : high | 0x40;
    if (x >= magnitude(type, high))
        return sign | most;
    while (high - low > 1) {
        guint16 middle = (low + high) / 2;

        if (magnitude(type, middle) <= x)
            low = middle;
        else
            high = middle;
    }
    if (x - magnitude(type, low) < magnitude(type, high) - x)
        high = low;
    else if (x - magnitude(type, low) == magnitude(type, high) - x)
        high = low % 2 == 0 ? low : high;
    return sign | MIN(high, most);
}

/* --- the reference ----------------------------------------------------------------------------- */

#define COMBINE(a, b)                                                                              \
    (redop == TT_SUM    ? (a) + (b)                                                                \
     : redop == TT_PROD ? (a) * (b)                                                                \
     : redop == TT_MIN  ? ((a) < (b) ? (a) : (b))                                                  \
                        : ((a) > (b) ? (a) : (b)))

/* dst[i] = a[i] op b[i] */
static void
reference(TtType type, TtRedop redop, gpointer dst, gconstpointer a, gconstpointer b, gsize i)
{
    gboolean wraps = redop == TT_SUM || redop == TT_PROD;

#define AS(T, a) (((const T *)(a))[i])
#define INTEGER(S, U)                                                                              \
    ((S *)dst)[i] = wraps ? (S)(U)COMBINE((guint64)AS(U, a), (guint64)AS(U, b))                    \
                          : (S)COMBINE(AS(S, a), AS(S, b));                                        \
    break

    switch (type) {
    case TT_INT8: INTEGER(gint8, guint8);
    case TT_INT32: INTEGER(gint32, guint32);
    case TT_INT64: INTEGER(gint64, guint64);
    case TT_FLOAT32: ((float *)dst)[i] = COMBINE(AS(float, a), AS(float, b)); break;
    case TT_FLOAT64: ((double *)dst)[i] = COMBINE(AS(double, a), AS(double, b)); break;
    default: {
        float x = (float)tt_pattern_read(type, a, i), y = (float)tt_pattern_read(type, b, i);

        if (is_float8(type))
            ((guint8 *)dst)[i] = (guint8)round_narrow(type, COMBINE(x, y));
        else
            ((guint16 *)dst)[i] = round_narrow(type, COMBINE(x, y));
    }
    }
#undef INTEGER
}

/* NaNs have many encodings; any will do where one is due. */
static gboolean
same(TtType type, gconstpointer x, gconstpointer y, gsize i)
{
    guint size = tt_type_bytes(type);

    if ((is_half(type) || type >= TT_FLOAT32) && isnan(tt_pattern_read(type, x, i)))
        return isnan(tt_pattern_read(type, y, i));
    return memcmp((const guint8 *)x + i * size, (const guint8 *)y + i * size, size) == 0;
}

/* Any bits at all, so NaNs, infinities and subnormals are among the floats; and some that are alike,
 * so that sums cancel and products stay in range. */
static void
randomize(GRand *random, TtType type, guint8 *data, gsize bytes)
{
    for (gsize i = 0; i < bytes; i++)
        data[i] = (guint8)g_rand_int(random);
    for (gsize i = 0; i + 8 <= bytes; i += 16)
        for (gsize k = 0; k < 8 / tt_type_bytes(type); k++)
            switch (type) {
            case TT_FLOAT32:
                ((float *)(gpointer)(data + i))[k] = (float)g_rand_double(random);
                break;
            case TT_FLOAT64:
                ((double *)(gpointer)(data + i))[k] = g_rand_double(random) - 0.5;
                break;
            case TT_FLOAT16:
                ((guint16 *)(gpointer)(data + i))[k] = 0x3800 + g_rand_int_range(random, 0, 0x800);
                break;
            case TT_BFLOAT16:
                ((guint16 *)(gpointer)(data + i))[k] = 0x3f00 + g_rand_int_range(random, 0, 0x100);
                break;
            case TT_FLOAT8E4M3:
            case TT_FLOAT8E5M2:
                data[i + k] = (guint8)((type == TT_FLOAT8E4M3 ? 0x30 : 0x38) +
                                       g_rand_int_range(random, 0, 0x10));
                break;
            default: break;
            }
}

/* --- the tests --------------------------------------------------------------------------------- */

typedef struct {
    _Alignas(64) guint8 a[MOST_BYTES + 2 * GUARD], b[MOST_BYTES + 2 * GUARD];
    _Alignas(64) guint8 dst[MOST_BYTES + 2 * GUARD], out[MOST_BYTES + 2 * GUARD];
    _Alignas(64) guint8 want[MOST_BYTES + 2 * GUARD];
} Data;

static gboolean
guards_hold(const guint8 *area, gsize offset, gsize bytes)
{
    for (gsize i = 0; i < offset; i++)
        if (area[i] != 0xee)
            return FALSE;
    for (gsize i = offset + bytes; i < MOST_BYTES + 2 * GUARD; i++)
        if (area[i] != 0xee)
            return FALSE;
    return TRUE;
}

static guint
count_different(TtType type, const guint8 *got, const guint8 *want, gsize bytes)
{
    guint n = 0;

    for (gsize i = 0; i < bytes / tt_type_bytes(type); i++)
        n += !same(type, got, want, i);
    return n;
}

static void
check_one(const TtReduceUnit *unit, TtType type, TtRedop redop, gsize count, gsize shift,
          guint form, Data *d, GRand *random)
{
    gsize size = tt_type_bytes(type), bytes = count * size, at = GUARD + shift * size;
    guint two = form & 1, in_place = form & 2, past_caches = form & 4;
    gsize out_at = past_caches ? at : GUARD; /* past them only if both are aligned alike */
    guint8 *dst = d->dst + at;

    randomize(random, type, d->a, sizeof d->a);
    randomize(random, type, d->b, sizeof d->b);
    memset(d->dst, 0xee, sizeof d->dst);
    memset(d->out, 0xee, sizeof d->out);
    if (in_place)
        memcpy(dst, d->a + at, bytes);
    for (gsize i = 0; i < count; i++)
        reference(type, redop, d->want, d->a + at, d->b, i);
    if (two)
        (past_caches ? unit->stream2 : unit->reduce2)[type][redop](
            dst, d->out + out_at, in_place ? dst : d->a + at, d->b, bytes);
    else
        unit->reduce[type][redop](dst, in_place ? dst : d->a + at, d->b, bytes);
    CHECK(count_different(type, dst, d->want, bytes) == 0,
          "%s %s %s, %zu elements, shift %zu, form %u", unit->name, tt_type_name(type),
          tt_redop_name(redop), count, shift, form);
    CHECK(!two || count_different(type, d->out + out_at, d->want, bytes) == 0,
          "%s %s %s, %zu, second", unit->name, tt_type_name(type), tt_redop_name(redop), count);
    CHECK(guards_hold(d->dst, at, bytes) && guards_hold(d->out, out_at, two ? bytes : 0),
          "%s %s %s, %zu elements, shift %zu, form %u writes outside", unit->name,
          tt_type_name(type), tt_redop_name(redop), count, shift, form);
}

static void
kernels_agree_with_plain_c(void)
{
    static const gsize counts[] = {
        0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 100, 127, 129, 240
    };
    static Data data;
    GRand *random = g_rand_new_with_seed(1);

    for (guint u = 0; tt_reduce_units()[u]; u++)
        for (guint type = 0; type < TT_N_TYPES; type++)
            for (guint redop = 0; redop < TT_AVG; redop++)
                for (guint c = 0; c < G_N_ELEMENTS(counts); c++)
                    for (guint form = 0; form < 8; form++)
                        check_one(tt_reduce_units()[u], type, redop, counts[c], (c + form) % 5,
                                  form, &data, random);
    g_rand_free(random);
}

static void
copies_copy(void)
{
    static Data d;
    GRand *random = g_rand_new_with_seed(2);

    for (guint u = 0; tt_reduce_units()[u]; u++) {
        const TtReduceUnit *unit = tt_reduce_units()[u];

        for (gsize bytes = 0; bytes < 600; bytes++)
            for (guint form = 0; form < 3; form++) {
                gsize at = GUARD + bytes % 7;

                randomize(random, TT_INT8, d.a, sizeof d.a);
                memset(d.dst, 0xee, sizeof d.dst);
                memset(d.out, 0xee, sizeof d.out);
                if (form == 2)
                    unit->stream_copy(d.dst + at, d.a, bytes);
                else if (form)
                    unit->copy2(d.dst + at, d.out + GUARD, d.a, bytes);
                else
                    unit->copy(d.dst + at, d.a, bytes);
                CHECK(memcmp(d.dst + at, d.a, bytes) == 0 && guards_hold(d.dst, at, bytes) &&
                          (form != 1 || memcmp(d.out + GUARD, d.a, bytes) == 0),
                      "%s %zu bytes form %u", unit->name, bytes, form);
            }
    }
    g_rand_free(random);
}

/* Every fp16 and bf16 value plus zero is itself; what is added keeps its low bits. */
static void
every_half_survives_the_round_trip(void)
{
    static guint16 a[65536], zero[65536], dst[65536];

    for (guint u = 0; tt_reduce_units()[u]; u++)
        for (TtType type = TT_FLOAT16; type <= TT_BFLOAT16; type++) {
            guint wrong = 0;

            for (guint i = 0; i < 65536; i++) {
                a[i] = (guint16)i;
                zero[i] = 0x8000; /* -0: x + -0 is x for both zeros */
            }
            tt_reduce_units()[u]->reduce[type][TT_SUM](dst, a, zero, sizeof dst);
            for (guint i = 0; i < 65536; i++)
                wrong += !same(type, a, dst, i);
            CHECK(wrong == 0, "%s %s: %u values change", tt_reduce_units()[u]->name,
                  tt_type_name(type), wrong);
        }
}

/* OCP's table of values, by hand. */
static void
eight_bits_mean_what_they_should(void)
{
    static const struct {
        TtType type;
        guint8 bits;
        double value;
    } rows[] = {
        { TT_FLOAT8E4M3, 0x00, 0 },          { TT_FLOAT8E4M3, 0x01, 0x1p-9 },
        { TT_FLOAT8E4M3, 0x07, 7 * 0x1p-9 }, { TT_FLOAT8E4M3, 0x08, 0x1p-6 },
        { TT_FLOAT8E4M3, 0x38, 1 },          { TT_FLOAT8E4M3, 0xc1, -2.25 },
        { TT_FLOAT8E4M3, 0x78, 256 },        { TT_FLOAT8E4M3, 0x7e, 448 },
        { TT_FLOAT8E4M3, 0x7f, NAN },        { TT_FLOAT8E4M3, 0xff, NAN },
        { TT_FLOAT8E5M2, 0x01, 0x1p-16 },    { TT_FLOAT8E5M2, 0x03, 3 * 0x1p-16 },
        { TT_FLOAT8E5M2, 0x04, 0x1p-14 },    { TT_FLOAT8E5M2, 0x3c, 1 },
        { TT_FLOAT8E5M2, 0xc1, -2.5 },       { TT_FLOAT8E5M2, 0x7b, 57344 },
        { TT_FLOAT8E5M2, 0xfc, -INFINITY },  { TT_FLOAT8E5M2, 0x7d, NAN },
    };

    for (guint r = 0; r < G_N_ELEMENTS(rows); r++) {
        double got = tt_pattern_read(rows[r].type, &rows[r].bits, 0);

        CHECK(got == rows[r].value || (isnan(got) && isnan(rows[r].value)), "%s %02x: %g",
              tt_type_name(rows[r].type), rows[r].bits, got);
    }
}

/* Every pair of bytes there is, among them NaNs, infinities, subnormals and sums that are too large. */
static void
every_pair_of_eight_bits(void)
{
    static guint8 a[65536], b[65536], dst[65536], want[65536];

    for (guint i = 0; i < 65536; i++) {
        a[i] = (guint8)(i >> 8);
        b[i] = (guint8)i;
    }
    for (TtType type = TT_FLOAT8E4M3; type <= TT_FLOAT8E5M2; type++)
        for (guint redop = 0; redop < TT_AVG; redop++) {
            for (guint i = 0; i < 65536; i++)
                reference(type, redop, want, a, b, i);
            for (guint u = 0; tt_reduce_units()[u]; u++) {
                tt_reduce_units()[u]->reduce[type][redop](dst, a, b, sizeof dst);
                CHECK(count_different(type, dst, want, sizeof dst) == 0, "%s %s %s: %u differ",
                      tt_reduce_units()[u]->name, tt_type_name(type), tt_redop_name(redop),
                      count_different(type, dst, want, sizeof dst));
            }
        }
}

static void
every_eight_bits_are_divided(void)
{
    static const guint64 divisors[] = { 1, 2, 3, 5, 7, 8, 33, 1000, 100000 };
    guint8 dst[256], want[256];

    for (TtType type = TT_FLOAT8E4M3; type <= TT_FLOAT8E5M2; type++)
        for (guint n = 0; n < G_N_ELEMENTS(divisors); n++)
            for (guint u = 0; tt_reduce_units()[u]; u++) {
                for (guint i = 0; i < 256; i++) {
                    dst[i] = (guint8)i;
                    want[i] = (guint8)round_narrow(type, (float)tt_pattern_read(type, dst, i) /
                                                             (float)divisors[n]);
                }
                tt_reduce_units()[u]->scale[type](dst, divisors[n], sizeof dst);
                CHECK(count_different(type, dst, want, sizeof dst) == 0,
                      "%s %s / %" G_GUINT64_FORMAT ": %u differ", tt_reduce_units()[u]->name,
                      tt_type_name(type), divisors[n],
                      count_different(type, dst, want, sizeof dst));
            }
}

static void
averages_truncate_or_round(void)
{
    gint8 bytes[3] = { -7, 7, -128 };
    gint64 longs[2] = { -9, G_MAXINT64 };
    float floats[2] = { 1, 10 };
    guint16 halves[1] = { 0x3c00 }; /* 1 / 3 = 0x3555.5 in fp16: 0.333251953125 is 0x3555 */

    for (guint u = 0; tt_reduce_units()[u]; u++) {
        const TtReduceUnit *unit = tt_reduce_units()[u];
        gint8 b[3];
        gint64 l[2];
        float f[2];
        guint16 h[1];

        memcpy(b, bytes, sizeof b), memcpy(l, longs, sizeof l);
        memcpy(f, floats, sizeof f), memcpy(h, halves, sizeof h);
        unit->scale[TT_INT8](b, 2, sizeof b);
        CHECK(b[0] == -3 && b[1] == 3 && b[2] == -64, "%s int8: %d %d %d", unit->name, b[0], b[1],
              b[2]);
        b[0] = -128, b[1] = 127;
        unit->scale[TT_INT8](b, 200, sizeof b); /* more ranks than the type can say */
        CHECK(b[0] == 0 && b[1] == 0, "%s int8 / 200: %d %d", unit->name, b[0], b[1]);
        unit->scale[TT_INT64](l, 4, sizeof l);
        CHECK(l[0] == -2 && l[1] == G_MAXINT64 / 4, "%s int64", unit->name);
        unit->scale[TT_FLOAT32](f, 4, sizeof f);
        CHECK(f[0] == 0.25f && f[1] == 2.5f, "%s float", unit->name);
        unit->scale[TT_FLOAT16](h, 3, sizeof h);
        CHECK(h[0] == 0x3555, "%s half: %04x", unit->name, h[0]);
    }
}

static void
the_environment_chooses(void)
{
    g_autoptr(GError) error = NULL;

    g_setenv("TT_REDUCE", "portable", TRUE);
    CU_ASSERT_STRING_EQUAL(tt_reduce_unit(), "portable");
    g_setenv("TT_REDUCE", "mmx", TRUE);
    CU_ASSERT_PTR_NULL(tt_reduce_unit_get(&error));
    CHECK_ERROR(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE, "one of: portable");
    g_unsetenv("TT_REDUCE");
    CU_ASSERT_PTR_NOT_NULL(tt_reduce_unit_get(NULL));
}

int
main(void)
{
    CU_TestInfo tests[] = { { "kernels agree with plain C", kernels_agree_with_plain_c },
                            { "copies copy", copies_copy },
                            { "every half survives", every_half_survives_the_round_trip },
                            { "eight bits mean what they should",
                              eight_bits_mean_what_they_should },
                            { "every pair of eight bits", every_pair_of_eight_bits },
                            { "every eight bits are divided", every_eight_bits_are_divided },
                            { "averages truncate or round", averages_truncate_or_round },
                            { "the environment chooses", the_environment_chooses },
                            CU_TEST_INFO_NULL };

    return check_main("reduce", tests);
}
