/* types.h - the words of a collective call: which collective, which element type, which reduction.
 *
 * Names are those nccl-tests prints ("float", "bfloat16"; "sum"), with common spellings accepted.
 * Knows nothing of plans, ranks or wires.
 */
#pragma once
#include <glib.h>

typedef enum {
    TT_ALLREDUCE,
    TT_REDUCE_SCATTER,
    TT_ALLGATHER,
    TT_BROADCAST,
    TT_REDUCE,
    TT_N_COLLECTIVES
} TtCollective;

typedef enum {
    TT_INT8,
    TT_INT32,
    TT_INT64,
    TT_FLOAT16,
    TT_BFLOAT16,
    TT_FLOAT32,
    TT_FLOAT64,
    TT_FLOAT8E4M3, /* largest 448, no infinity; OCP's OFP8, as all accelerators have it */
    TT_FLOAT8E5M2, /* largest 57344 */
    TT_N_TYPES
} TtType;

typedef enum { TT_SUM, TT_PROD, TT_MIN, TT_MAX, TT_AVG, TT_N_REDOPS } TtRedop;

/* Canonical names: "allreduce", "float", "sum". Never NULL for a valid value. */
const char *tt_collective_name(TtCollective collective);
const char *tt_type_name(TtType type);
const char *tt_redop_name(TtRedop redop);

/* Bytes of one element: 1, 2, 4 or 8. */
guint tt_type_bytes(TtType type);

/* TRUE if the collective combines contributions (allreduce, reduce-scatter, reduce). */
gboolean tt_collective_reduces(TtCollective collective);

/* Parse a name, case-insensitive, '-' and '_' alike ("all_reduce", "fp32", "bf16" are understood).
 * On failure: TT_PLAN_ERROR_USAGE, listing the allowed names. */
gboolean tt_collective_parse(const char *text, TtCollective *collective, GError **error);
gboolean tt_type_parse(const char *text, TtType *type, GError **error);
gboolean tt_redop_parse(const char *text, TtRedop *redop, GError **error);

/* busbw / algbw, the factor nccl-tests uses: 2(n-1)/n, (n-1)/n or 1. */
double tt_collective_bus_factor(TtCollective collective, guint n_ranks);
