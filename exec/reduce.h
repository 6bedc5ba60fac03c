/* reduce.h - the element-wise kernels: reductions and copies, for the widest vector unit here.
 *
 * All sizes are bytes, multiples of the element size. A destination may be one of the operands, but
 * must not overlap them otherwise. Floats of 16 and 8 bits are widened to 32, combined, and rounded to
 * nearest even; those of 8 bits saturate at the largest finite value (a NaN stays one). Integers wrap. TT_AVG reduces as TT_SUM and is divided at the end, by scale().
 */
#pragma once
#include "algos/types.h"

/* dst = a op b */
typedef void (*TtReduce)(void *dst, const void *a, const void *b, gsize bytes);
/* dst = out = a op b */
typedef void (*TtReduce2)(void *dst, void *out, const void *a, const void *b, gsize bytes);
/* data = data / divisor; integers truncate */
typedef void (*TtScale)(void *data, guint64 divisor, gsize bytes);

typedef struct {
    const char *name; /* "avx2" */
    gsize vector_bytes;
    TtReduce reduce[TT_N_TYPES][TT_AVG];
    TtReduce2 reduce2[TT_N_TYPES][TT_AVG];
    TtReduce2 stream2[TT_N_TYPES][TT_AVG]; /* reduce2 past the caches: for what nobody reads soon */
    TtScale scale[TT_N_TYPES];
    void (*copy)(void *dst, const void *src, gsize bytes);
    void (*copy2)(void *dst, void *out, const void *src, gsize bytes);
    void (*stream_copy)(void *dst, const void *src, gsize bytes);
} TtReduceUnit;

/* Units compiled in that this processor runs, narrowest first; ends with NULL. */
const TtReduceUnit *const *tt_reduce_units(void);

/* The one in use: the widest, or what TT_REDUCE names. NULL with TT_EXEC_ERROR_USAGE if TT_REDUCE
 * names none of them. */
const TtReduceUnit *tt_reduce_unit_get(GError **error);

/* One per file; NULL on another architecture. */
const TtReduceUnit *tt_reduce_portable(void);
const TtReduceUnit *tt_reduce_avx2(void);
const TtReduceUnit *tt_reduce_avx512(void);
