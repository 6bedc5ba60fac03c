/* rank_contents.c - what a rank's buffers hold: inputs known to all, outputs that are wrong until they are right. */
#include "exec/gpu_group.h"
#include "exec/pattern.h"

#include <string.h>

/* A piece of a buffer at a time, so that whoever watches sees progress. */
#define FILL_PIECE  65536
#define STAGE_BYTES (FILL_PIECE * sizeof(guint64))

/* The elements of a buffer of a part, a piece at a time. */
typedef guint64 (*PieceFunc)(const TtRankPart *part, TtRange piece, guint8 *data);

/* On a GPU: by way of memory here. */
static gboolean
stage_piece(TtRank *self, const TtRankPart *part, TtRange piece, guint8 *there, PieceFunc func,
            guint64 *sum)
{
    gsize bytes = piece.count * tt_type_bytes(part->job->plan.spec.type);
    guint8 *here = self->gpu->staging;

    if (!here)
        here = self->gpu->staging = g_malloc0(STAGE_BYTES);
    if (sum && !tt_gpu_download(self, here, there, bytes))
        return FALSE;
    if (sum)
        *sum += func(part, piece, here);
    else
        func(part, piece, here);
    return sum || tt_gpu_upload(self, there, here, bytes);
}

/* @sum: of what @func finds; NULL: it writes. FALSE: the rank has complained. */
static gboolean
for_pieces(TtRank *self, const TtRankPart *part, TtBuffer buffer, PieceFunc func, guint64 *sum)
{
    const TtPlan *plan = &part->job->plan;
    TtRange all = tt_plan_buffer_range(plan, part->member, buffer);
    gsize size = tt_type_bytes(plan->spec.type);

    for (guint64 i = 0; i < all.count; i += FILL_PIECE) {
        TtRange piece = { all.first + i, MIN(FILL_PIECE, all.count - i) };
        guint8 *data = part->vector[buffer] + piece.first * size;
        guint64 found = 0;

        if (self->gpu) {
            if (!stage_piece(self, part, piece, data, func, sum))
                return FALSE;
        } else {
            found = func(part, piece, data);
        }
        if (sum)
            *sum += found;
        tt_rank_heartbeat(self);
    }
    return TRUE;
}

static guint64
fill_piece(const TtRankPart *part, TtRange piece, guint8 *data)
{
    tt_pattern_fill(&part->job->plan, part->index, part->member, piece, data);
    return 0;
}

gboolean
tt_rank_fill_input(TtRank *self)
{
    for (guint p = 0; p < self->n_parts; p++)
        if (!for_pieces(self, &self->parts[p], TT_INPUT, fill_piece, NULL))
            return FALSE;
    return TRUE;
}

static guint64
spoil_piece(const TtRankPart *part, TtRange piece, guint8 *data)
{
    memset(data, 0x5a, piece.count * tt_type_bytes(part->job->plan.spec.type));
    return 0;
}

/* The timed loop left right answers behind: spoil them. */
gboolean
tt_rank_spoil_output(TtRank *self)
{
    for (guint p = 0; p < self->n_parts; p++)
        if (!for_pieces(self, &self->parts[p], TT_OUTPUT, spoil_piece, NULL))
            return FALSE;
    return TRUE;
}

static guint64
count_wrong_in_piece(const TtRankPart *part, TtRange piece, guint8 *data)
{
    return tt_pattern_count_wrong(&part->job->plan, part->index, piece, data);
}

gboolean
tt_rank_count_wrong(TtRank *self)
{
    const TtJob *job = &self->region->job;

    for (guint p = 0; p < self->n_parts; p++) {
        const TtRankPart *part = &self->parts[p];
        guint64 wrong = 0;

        if (!for_pieces(self, part, TT_OUTPUT, count_wrong_in_piece, &wrong))
            return FALSE;
        job->wrong[self->rank * job->n_parts + part->index] = (gint64)wrong;
    }
    return TRUE;
}
