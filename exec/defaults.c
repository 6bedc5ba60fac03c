#include "exec/defaults.h"

#define SLOT_BYTES (128 * 1024) /* two slots a direction stay in a core's own cache */
#define N_SLOTS    4
#define DIRECT_MAX (16 * 1024)

void
tt_exec_defaults(TtPlanSpec *spec, const char *algorithm)
{
    (void)algorithm;
    spec->n_channels = spec->n_channels ? spec->n_channels : 1;
    spec->n_slots = spec->n_slots ? spec->n_slots : N_SLOTS;
    spec->slot_bytes = spec->slot_bytes ? spec->slot_bytes : SLOT_BYTES;
}

const char *
tt_exec_choose(const TtPlanSpec *spec)
{
    if (spec->collective != TT_ALLREDUCE)
        return spec->collective == TT_BROADCAST || spec->collective == TT_REDUCE ? "tree" : "ring";
    return spec->count * tt_type_bytes(spec->type) <= DIRECT_MAX ? "direct" : "ring";
}
