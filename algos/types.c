#include "algos/types.h"
#include "algos/schedule.h"

/* Per value: the canonical name first, then other spellings in use. */
typedef const char *Names[8];

static const Names collective_names[TT_N_COLLECTIVES] = {
    [TT_ALLREDUCE] = { "allreduce", "all-reduce", "ar" },
    [TT_REDUCE_SCATTER] = { "reduce-scatter", "reducescatter", "rs" },
    [TT_ALLGATHER] = { "allgather", "all-gather", "ag" },
    [TT_BROADCAST] = { "broadcast", "bcast", "bc" },
    [TT_REDUCE] = { "reduce", "rd" },
};

static const Names type_names[TT_N_TYPES] = {
    [TT_INT8] = { "int8", "char", "i8" },
    [TT_INT32] = { "int32", "int", "i32" },
    [TT_INT64] = { "int64", "i64" },
    [TT_FLOAT16] = { "half", "fp16", "float16", "f16" },
    [TT_BFLOAT16] = { "bfloat16", "bf16" },
    [TT_FLOAT32] = { "float", "fp32", "float32", "f32" },
    [TT_FLOAT64] = { "double", "fp64", "float64", "f64" },
    [TT_FLOAT8E4M3] = { "f8e4m3", "e4m3", "fp8-e4m3", "fp8e4m3", "float8-e4m3", "float8e4m3",
                        "float8-e4m3fn", "e4m3fn" },
    [TT_FLOAT8E5M2] = { "f8e5m2", "e5m2", "fp8-e5m2", "fp8e5m2", "float8-e5m2", "float8e5m2" },
};

static const Names redop_names[TT_N_REDOPS] = {
    [TT_SUM] = { "sum" }, [TT_PROD] = { "prod", "product" },       [TT_MIN] = { "min" },
    [TT_MAX] = { "max" }, [TT_AVG] = { "avg", "average", "mean" },
};

static gboolean
same_word(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        char x = *a == '_' ? '-' : g_ascii_tolower(*a), y = *b == '_' ? '-' : g_ascii_tolower(*b);

        if (x != y)
            return FALSE;
    }
    return *a == *b;
}

static gboolean
parse_name(const char *what, const char *text, const Names *names, guint n, guint *value,
           GError **error)
{
    g_autoptr(GString) allowed = g_string_new(NULL);

    for (guint i = 0; i < n; i++) {
        for (guint k = 0; k < G_N_ELEMENTS(names[i]) && names[i][k]; k++) {
            if (same_word(text, names[i][k])) {
                *value = i;
                return TRUE;
            }
        }
        g_string_append_printf(allowed, "%s%s", i ? ", " : "", names[i][0]);
    }
    g_set_error(error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE, "unknown %s \"%s\" (one of: %s)", what,
                text, allowed->str);
    return FALSE;
}

const char *
tt_collective_name(TtCollective collective)
{
    return collective_names[collective][0];
}

const char *
tt_type_name(TtType type)
{
    return type_names[type][0];
}

const char *
tt_redop_name(TtRedop redop)
{
    return redop_names[redop][0];
}

guint
tt_type_bytes(TtType type)
{
    static const guint8 bytes[TT_N_TYPES] = { 1, 4, 8, 2, 2, 4, 8, 1, 1 };

    return bytes[type];
}

gboolean
tt_collective_reduces(TtCollective collective)
{
    return collective == TT_ALLREDUCE || collective == TT_REDUCE_SCATTER || collective == TT_REDUCE;
}

gboolean
tt_collective_parse(const char *text, TtCollective *collective, GError **error)
{
    guint value = 0;

    if (!parse_name("collective", text, collective_names, TT_N_COLLECTIVES, &value, error))
        return FALSE;
    *collective = value;
    return TRUE;
}

gboolean
tt_type_parse(const char *text, TtType *type, GError **error)
{
    guint value = 0;

    if (!parse_name("data type", text, type_names, TT_N_TYPES, &value, error))
        return FALSE;
    *type = value;
    return TRUE;
}

gboolean
tt_redop_parse(const char *text, TtRedop *redop, GError **error)
{
    guint value = 0;

    if (!parse_name("reduction", text, redop_names, TT_N_REDOPS, &value, error))
        return FALSE;
    *redop = value;
    return TRUE;
}

double
tt_collective_bus_factor(TtCollective collective, guint n_ranks)
{
    double n = n_ranks;

    switch (collective) {
    case TT_ALLREDUCE: return 2 * (n - 1) / n;
    case TT_REDUCE_SCATTER:
    case TT_ALLGATHER: return (n - 1) / n;
    default: return 1;
    }
}
