/* defaults.c - shapes that were fastest on processors with a private second-level cache of 512 KiB and
 * a shared third level, ranks over shared memory (docs/executor.md has the figures).
 */
#include "exec/defaults.h"

#include <string.h>

#define KIB 1024

/* Longer messages need fewer hand-overs, shorter ones overlap better. Where they are lent (lend.h) nothing
 * overlaps within a message, and with more ranks than cores each hand-over may cost a change of ranks:
 * from 256 KiB on it hardly matters. */
#define SLOT_BYTES (256 * KIB)

/* A FIFO longer than a core's own cache: a slot that comes round again has moved on to the shared cache,
 * which is quicker to fetch from, and to take back for writing, than the other core's own. */
#define FIFO_BYTES (512 * KIB)

/* Two would do to overlap; four let neighbours drift. Messages that fit the first-level cache several
 * times over should stay there: more slots would only spread them. */
#define SLOTS_LEAST   4
#define SLOTS_MOST    64
#define SMALL_MESSAGE (4 * KIB)

/* One shot reads (P-1) n bytes but waits once; beyond this the bytes cost more than a second wait. */
#define DIRECT_MOST_BYTES      (16 * KIB) /* two ranks */
#define DIRECT_MOST_BYTES_MANY (64 * KIB) /* all that one rank reads */
/* Two shots wait twice where a ring waits 2(P-1) times, and pass over the sums fewer times. Their
 * connections are P(P-1), which many ranks have no memory for. */
#define TWO_SHOT_MOST_RANKS 16
#define TWO_SHOT_MOST_BYTES (128 * KIB) /* for more */

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
    if (P <= 2)
        return bytes <= DIRECT_MOST_BYTES ? "direct" : "ring";
    if (bytes <= DIRECT_MOST_BYTES_MANY / (P - 1))
        return "direct";
    return P <= TWO_SHOT_MOST_RANKS || bytes <= TWO_SHOT_MOST_BYTES ? "two-shot" : "ring";
}
