/* profile_builtin.h - the profiles compiled in: models/profiles/<name>.ini. */
#pragma once
#include <glib.h>

typedef struct {
    const char *name, *summary, *text; /* text: the .ini itself */
} TtBuiltinProfile;

extern const TtBuiltinProfile tt_builtin_profiles[]; /* sorted, name NULL at the end */
