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

/* Over a network it is messages that cost, each a system call or two at both ends: log2(P) of the whole vector, one
 * after the other, beat P-1 at once (4 ranks on 2 cores, loopback: 55 us to 74 up to 2 KiB), and up to this two shots. */
#define DOUBLING_MOST_BYTES (64 * KIB)

/* A rank that has one neighbour to hear turns the core over less often than one that has all: over a network, from so
 * many bytes of each rank's share on (4 ranks on 2 cores, loopback: from 8 MiB by a fifth to a third). */
#define RING_LEAST_PART (2048 * KIB)

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

/* --- over a network ------------------------------------------------------------------------------- */

/* A message costs two system calls or a few, and maybe a change of ranks: sixteen of them fill a pipeline, more only
 * cost. */
#define WIRE_SLOT_LEAST (64 * KIB)
#define WIRE_SLOT_MOST  (1024 * KIB)
#define WIRE_PIECES     16

/* In a ring of more, a rank reduces what it has just heard and passes it on: it should still be in the core's cache. */
#define WIRE_SLOT_MOST_RING (256 * KIB)

static gboolean
is_memory(const char *transport)
{
    return !transport || strcmp(transport, "shm") == 0 || strcmp(transport, "threads") == 0;
}

/* --- on GPUs -------------------------------------------------------------------------------------- */

/* One block moves some 50 GB/s, a GPU's memory a hundred times that: as many blocks as a GPU has processors, if all
 * ranks were on one, as long as each has a few KiB per step. Messages long enough to hide a flag's way (1 us). */
#define GPU_BLOCKS        128
#define GPU_MOST_CHANNELS 32
#define GPU_PIECE_LEAST   (16 * KIB)
#define GPU_SLOT_BYTES    (128 * KIB)

static gboolean
is_gpu(const char *transport)
{
    return transport && (strcmp(transport, "cuda") == 0 || g_str_has_prefix(transport, "cuda,"));
}

static void
gpu_defaults(TtPlanSpec *spec, const char *algorithm)
{
    guint most = CLAMP(GPU_BLOCKS / MAX(1, spec->n_ranks), 1, GPU_MOST_CHANNELS);
    guint64 pieces = whole_message_bytes(spec, algorithm) / GPU_PIECE_LEAST;

    spec->n_channels = spec->n_channels ? spec->n_channels : (guint)CLAMP(pieces, 1, most);
    spec->slot_bytes = spec->slot_bytes ? spec->slot_bytes : GPU_SLOT_BYTES;
    spec->n_slots = spec->n_slots ? spec->n_slots : SLOTS_LEAST;
}

static gboolean
is_wire(const char *transport)
{
    return !is_memory(transport) && !is_gpu(transport);
}

static guint64
wire_slot_most(const TtPlanSpec *spec, const char *algorithm)
{
    return spec->n_ranks > 2 && strcmp(algorithm, "ring") == 0 ? WIRE_SLOT_MOST_RING
                                                               : WIRE_SLOT_MOST;
}

void
tt_exec_defaults_over(TtPlanSpec *spec, const char *algorithm, const char *transport)
{
    if (is_gpu(transport)) {
        gpu_defaults(spec, algorithm);
        return;
    }
    if (is_wire(transport)) {
        guint64 piece = whole_message_bytes(spec, algorithm) / WIRE_PIECES, slot = WIRE_SLOT_LEAST;

        while (slot < piece && slot < wire_slot_most(spec, algorithm))
            slot *= 2;
        spec->slot_bytes = spec->slot_bytes ? spec->slot_bytes : slot;
        spec->n_slots = spec->n_slots ? spec->n_slots : SLOTS_LEAST;
    }
    tt_exec_defaults(spec, algorithm);
}

/* --- algorithms ----------------------------------------------------------------------------------- */

static gboolean
is_power_of_two(guint n)
{
    return (n & (n - 1)) == 0;
}

const char *
tt_exec_choose(const TtPlanSpec *spec, const char *transport)
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
    if (is_wire(transport) && is_power_of_two(P) && bytes <= DOUBLING_MOST_BYTES)
        return "recursive-doubling";
    if (bytes <= DIRECT_MOST_BYTES_MANY / (P - 1))
        return "direct";
    if (bytes <= TWO_SHOT_MOST_BYTES)
        return "two-shot";
    if (is_wire(transport) && bytes / P >= RING_LEAST_PART)
        return "ring";
    return P <= TWO_SHOT_MOST_RANKS ? "two-shot" : "ring";
}
