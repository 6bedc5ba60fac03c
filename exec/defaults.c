/* defaults.c - shapes that were fastest on processors with a private second-level cache of 512 KiB and
 * a shared third level, ranks over shared memory (docs/executor.md has the figures).
 */
#include "exec/defaults.h"

#include <string.h>

#define KIB 1024

/* Longer messages need fewer hand-overs, shorter ones overlap better: from 64 to 256 KiB it hardly
 * matters, below 32 KiB the hand-overs show. */
#define SLOT_BYTES (128 * KIB)

/* A FIFO longer than a core's own cache: a slot that comes round again has moved on to the shared cache,
 * which is quicker to fetch from, and to take back for writing, than the other core's own. */
#define FIFO_BYTES (512 * KIB)

/* Two would do to overlap; four let neighbours drift. Messages that fit the first-level cache several
 * times over should stay there: more slots would only spread them. */
#define SLOTS_LEAST   4
#define SLOTS_MOST    64
#define SMALL_MESSAGE (4 * KIB)

/* One shot sends (P-1) n bytes but waits once; beyond this the bytes cost more than a second wait. */
#define DIRECT_MOST_BYTES (32 * KIB)
/* Two shots wait twice where a ring waits 2(P-1) times; beyond this the ring's few peers, whose slots
 * all stay in the caches, win. */
#define TWO_SHOT_MOST_BYTES (128 * KIB)

/* Bytes of one message if nothing cuts it. */
static guint64
whole_message_bytes(const TtPlanSpec *spec, const char *algorithm)
{
    guint64 bytes = spec->count * tt_type_bytes(spec->type);
    gboolean in_parts = strcmp(algorithm, "ring") == 0 || strcmp(algorithm, "two-shot") == 0;

    return in_parts ? bytes / MAX(1, spec->n_ranks) : bytes;
}

/* Connections one rank receives on. */
static guint
n_neighbours(const TtPlanSpec *spec, const char *algorithm)
{
    gboolean all = strcmp(algorithm, "direct") == 0 || strcmp(algorithm, "two-shot") == 0;

    return all && spec->n_ranks > 2 ? spec->n_ranks - 1 : 1;
}

void
tt_exec_defaults(TtPlanSpec *spec, const char *algorithm)
{
    guint64 message;

    spec->n_channels = spec->n_channels ? spec->n_channels : 1;
    spec->slot_bytes = spec->slot_bytes ? spec->slot_bytes : SLOT_BYTES;
    if (spec->n_slots)
        return;
    message = MIN(spec->slot_bytes, whole_message_bytes(spec, algorithm) / spec->n_channels);
    spec->n_slots = SLOTS_LEAST;
    if (message >= SMALL_MESSAGE) {
        guint64 fitting = FIFO_BYTES / n_neighbours(spec, algorithm) / message;

        spec->n_slots = (guint)CLAMP(fitting, SLOTS_LEAST, SLOTS_MOST);
    }
}

const char *
tt_exec_choose(const TtPlanSpec *spec)
{
    guint64 bytes = spec->count * tt_type_bytes(spec->type);
    guint P = MAX(1, spec->n_ranks);

    switch (spec->collective) {
    case TT_BROADCAST:
    case TT_REDUCE: return "tree";
    case TT_ALLREDUCE: break;
    default: return "ring";
    }
    if (bytes <= DIRECT_MOST_BYTES / MAX(1, P - 1))
        return "direct";
    return P > 2 && bytes <= TWO_SHOT_MOST_BYTES ? "two-shot" : "ring";
}
