#include "exec/reduce.h"
#include "exec/exec.h"

#include <string.h>

#define MAX_UNITS 3

const TtReduceUnit *const *
tt_reduce_units(void)
{
    static const TtReduceUnit *units[MAX_UNITS + 1];
    static gsize ready;

    if (g_once_init_enter(&ready)) {
        guint n = 0;

        units[n++] = tt_reduce_portable();
#if defined(__x86_64__)
        __builtin_cpu_init();
        /* Every processor with AVX2 has F16C; compilers differ in whether they can ask for it. */
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
            units[n++] = tt_reduce_avx2();
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
            units[n++] = tt_reduce_avx512();
#endif
        g_once_init_leave(&ready, 1);
    }
    return units;
}

const TtReduceUnit *
tt_reduce_unit_get(GError **error)
{
    const TtReduceUnit *const *units = tt_reduce_units();
    const char *wanted = g_getenv("TT_REDUCE");
    g_autoptr(GString) known = g_string_new(NULL);
    const TtReduceUnit *widest = units[0];

    for (guint i = 0; units[i]; i++) {
        widest = units[i];
        if (wanted && strcmp(wanted, units[i]->name) == 0)
            return units[i];
        g_string_append_printf(known, "%s%s", i ? ", " : "", units[i]->name);
    }
    if (!wanted || !*wanted)
        return widest;
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                "TT_REDUCE: no vector unit \"%s\" on this processor (one of: %s)", wanted,
                known->str);
    return NULL;
}

const char *
tt_reduce_unit(void)
{
    const TtReduceUnit *unit = tt_reduce_unit_get(NULL);

    return unit ? unit->name : tt_reduce_portable()->name;
}
