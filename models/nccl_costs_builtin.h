/* nccl_costs_builtin.h - the constants compiled in: models/constants/<name>.ini. */
#pragma once
#include <glib.h>

typedef struct {
    const char *name, *summary, *text; /* text: the .ini itself */
} TtBuiltinCosts;

extern const TtBuiltinCosts tt_builtin_costs[]; /* sorted, name NULL at the end */
