#include "algos/verify.h"
#include "algos/verify_run.h"

/* More (chunk, channel, round) ranges than this and only every n-th is looked at. */
#define MAX_RANGES (1u << 21)

/* The ranges in memory order: chunks outermost, rounds innermost. */
static TtRange
range_of(const TtPlan *plan, unsigned __int128 i)
{
    guint64 round = i % plan->n_rounds;
    guint channel = i / plan->n_rounds % plan->spec.n_channels;
    guint32 chunk = i / plan->n_rounds / plan->spec.n_channels;

    return tt_plan_range(plan, channel, round, chunk);
}

/* Each range must begin where the one before ended, the first at 0, the last end at count. */
static gboolean
check_tiling(const TtPlan *plan, GError **error)
{
    unsigned __int128 n =
        (unsigned __int128)plan->n_chunks * plan->spec.n_channels * plan->n_rounds;
    unsigned __int128 stride = n / MAX_RANGES + 1;
    TtRange last = range_of(plan, n - 1);
    guint32 chunk = 0;
    gboolean good = range_of(plan, 0).first == 0 && last.first + last.count == plan->spec.count;

    for (unsigned __int128 i = 0; good && i + 1 < n; i += stride) {
        TtRange range = range_of(plan, i);

        good = range.first + range.count == range_of(plan, i + 1).first;
        chunk = i / plan->n_rounds / plan->spec.n_channels;
    }
    if (!good) {
        TtPlace place = { .what = tt_nop() };

        return tt_place_error(&place, chunk, error, "the ranges of chunk %u do not tile the vector",
                              chunk);
    }
    return TRUE;
}

static gboolean
check_shape(const TtPlan *plan, GError **error)
{
    TtCollective collective = plan->spec.collective;
    gboolean in_parts = collective == TT_REDUCE_SCATTER || collective == TT_ALLGATHER;
    TtPlace place = { .what = tt_nop() };

    if (plan->n_chunks < 1 || (in_parts && plan->n_chunks % plan->spec.n_ranks != 0))
        return tt_place_error(&place, TT_WHOLE_SPAN, error,
                              "the plan has %u chunks, must be a positive number%s", plan->n_chunks,
                              in_parts ? ", for this collective a multiple of the ranks" : "");
    return TRUE;
}

gboolean
tt_verify(const TtPlan *plan, gboolean in_place, TtVerifyStats *stats, GError **error)
{
    TtCells cells;
    TtProof run;
    gboolean good = TRUE;

    if (!check_shape(plan, error) || !check_tiling(plan, error) ||
        !tt_cells_init(&cells, plan, in_place, error))
        return FALSE;
    tt_proof_init(&run, plan, &cells);
    for (guint channel = 0; good && channel < plan->spec.n_channels; channel++)
        good = tt_proof_channel(&run, channel, error) &&
               tt_cells_check_outputs(&cells, channel, error);
    if (good && stats)
        *stats = (TtVerifyStats){ run.n_steps, run.n_messages, run.bytes };
    tt_proof_clear(&run);
    tt_cells_clear(&cells);
    return good;
}
