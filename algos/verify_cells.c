#include "algos/verify_cells.h"

#include <string.h>

#define MAX_BYTES (G_GUINT64_CONSTANT(8) << 30)

gboolean
tt_place_error(const TtPlace *place, guint32 chunk, GError **error, const char *format, ...)
{
    g_autofree char *text = NULL, *where = NULL;
    guint32 n = place->what.n_chunks;
    va_list args;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);

    if (chunk == TT_WHOLE_SPAN && n > 1)
        where = g_strdup_printf("chunks %u+%u", place->what.chunk, n);
    else if (chunk == TT_WHOLE_SPAN && n == 0)
        where = g_strdup("no chunk");
    else
        where = g_strdup_printf("chunk %u", chunk == TT_WHOLE_SPAN ? place->what.chunk : chunk);
    g_set_error(error, TT_PLAN_ERROR, TT_PLAN_ERROR_INVALID,
                "rank %u, lane %u, step %u (%s, %s): %s", place->rank, place->lane, place->step,
                tt_op_name(place->what.op), where, text);
    return FALSE;
}

/* --- memory ------------------------------------------------------------------------------------
 */

gboolean
tt_cells_init(TtCells *cells, const TtPlan *plan, gboolean in_place, GError **error)
{
    guint n_agents = tt_plan_n_agents(plan);
    unsigned __int128 n_cells, bytes;

    *cells = (TtCells){ .plan = plan,
                        .in_place = in_place,
                        .n_words = (plan->spec.n_ranks + 63) / 64,
                        .n_sub_lanes = plan->lanes_per_channel,
                        .in_chunks = *plan };
    cells->in_chunks.spec.count = plan->n_chunks;
    cells->stored_as[TT_INPUT] = 0;
    cells->stored_as[TT_OUTPUT] = in_place ? 0 : 1;
    cells->stored_as[TT_SCRATCH] = cells->stored_as[TT_OUTPUT] + 1;
    cells->n_stored =
        cells->stored_as[TT_OUTPUT] + 1 + (plan->uses_scratch || plan->n_switches > 0 ? 1 : 0);

    n_cells = (unsigned __int128)n_agents * cells->n_stored * plan->n_chunks;
    bytes = n_cells * (cells->n_words * 8 + cells->n_sub_lanes * 8 + 2);
    if (bytes <= MAX_BYTES) {
        cells->sets = g_try_malloc(n_cells * cells->n_words * 8);
        cells->last_read = g_try_malloc(n_cells * cells->n_sub_lanes * 4);
        cells->last_written = g_try_malloc(n_cells * cells->n_sub_lanes * 4);
        cells->last_writer = g_try_malloc(n_cells * 2);
        if (cells->sets && cells->last_read && cells->last_written && cells->last_writer)
            return TRUE;
    }
    tt_cells_clear(cells);
    g_set_error(
        error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE,
        "%s: verifying %u ranks x %u chunks takes %.1f GiB (at most 8, and that much must be "
        "free)",
        plan->name, n_agents, plan->n_chunks, (double)bytes / (1 << 30));
    return FALSE;
}

void
tt_cells_clear(TtCells *cells)
{
    g_clear_pointer(&cells->sets, g_free);
    g_clear_pointer(&cells->last_read, g_free);
    g_clear_pointer(&cells->last_written, g_free);
    g_clear_pointer(&cells->last_writer, g_free);
}

void
tt_cells_reset(TtCells *cells)
{
    guint n_ranks = cells->plan->spec.n_ranks;
    gsize n_cells = (gsize)tt_plan_n_agents(cells->plan) * cells->n_stored * cells->plan->n_chunks;

    memset(cells->sets, 0, n_cells * cells->n_words * 8);
    memset(cells->last_read, 0, n_cells * cells->n_sub_lanes * 4);
    memset(cells->last_written, 0, n_cells * cells->n_sub_lanes * 4);
    memset(cells->last_writer, 0, n_cells * sizeof *cells->last_writer);
    for (guint rank = 0; rank < n_ranks; rank++) {
        TtRange held = tt_cells_held(cells, rank, TT_INPUT);

        for (guint64 c = held.first; c < held.first + held.count; c++)
            tt_cell_set(cells, tt_cell(cells, rank, TT_INPUT, c))[rank / 64] = 1ull << rank % 64;
    }
}

/* --- hazards -----------------------------------------------------------------------------------
 */

/* A lane's last access stands for all its earlier ones: lanes are sequential. */
static gboolean
check_order(const TtCells *cells, const TtPlace *place, guint buffer, guint32 chunk,
            const guint32 *last, const char *did, const guint32 *known, GError **error)
{
    guint own = place->lane % cells->n_sub_lanes;

    for (guint lane = 0; lane < cells->n_sub_lanes; lane++) {
        if (lane == own || last[lane] <= known[lane])
            continue;
        return tt_place_error(place, chunk, error,
                              "hazard: lane %u %s the same %s in step %u, and no dependency orders "
                              "the two",
                              place->lane - own + lane, did, tt_buffer_name(buffer),
                              last[lane] - 1);
    }
    return TRUE;
}

gboolean
tt_cells_read(TtCells *cells, const TtPlace *place, guint buffer, guint32 chunk,
              const guint32 *known, GError **error)
{
    gsize cell = tt_cell(cells, place->rank, buffer, chunk);
    gsize at = cell * cells->n_sub_lanes;

    if (cells->n_sub_lanes > 1 &&
        !check_order(cells, place, buffer, chunk, cells->last_written + at, "writes", known, error))
        return FALSE;
    cells->last_read[at + place->lane % cells->n_sub_lanes] = place->step + 1;
    return TRUE;
}

gboolean
tt_cells_write(TtCells *cells, const TtPlace *place, guint buffer, guint32 chunk,
               const guint32 *known, GError **error)
{
    gsize cell = tt_cell(cells, place->rank, buffer, chunk);
    gsize at = cell * cells->n_sub_lanes;

    if (cells->n_sub_lanes > 1 &&
        (!check_order(cells, place, buffer, chunk, cells->last_written + at, "writes", known,
                      error) ||
         !check_order(cells, place, buffer, chunk, cells->last_read + at, "reads", known, error)))
        return FALSE;
    cells->last_writer[cell] = place->lane % cells->n_sub_lanes;
    cells->last_written[at + cells->last_writer[cell]] = place->step + 1;
    return TRUE;
}

/* --- sets --------------------------------------------------------------------------------------
 */

guint
tt_set_common(const guint64 *a, const guint64 *b, guint n_words)
{
    for (guint w = 0; w < n_words; w++)
        if (a[w] & b[w])
            return w * 64 + __builtin_ctzll(a[w] & b[w]);
    return TT_NO_RANK;
}

/* The step that last wrote an output, to be named in the error; a chunk nobody wrote is charged to
 * the last step of the rank's first lane. */
static TtPlace
last_writer(const TtCells *cells, guint channel, guint rank, guint32 chunk)
{
    gsize cell = tt_cell(cells, rank, TT_OUTPUT, chunk);
    guint sub_lane = cells->last_writer[cell];
    guint32 written = cells->last_written[cell * cells->n_sub_lanes + sub_lane], n_steps;
    TtPlace place = { .rank = rank, .what = tt_nop() };

    if (written == 0)
        sub_lane = 0;
    place.lane = channel * cells->n_sub_lanes + sub_lane;
    n_steps = tt_plan_n_steps(cells->plan, rank, place.lane);
    place.step = written ? written - 1 : MAX(n_steps, 1) - 1;
    if (place.step < n_steps)
        place.what = tt_plan_step(cells->plan, rank, place.lane, place.step);
    return place;
}

/* Word @w of what an output must hold: every rank, or only @only. */
static guint64
wanted_word(const TtCells *cells, guint only, guint w)
{
    guint n_ranks = cells->plan->spec.n_ranks;

    if (only != TT_NO_RANK)
        return w == only / 64 ? 1ull << only % 64 : 0;
    return n_ranks - w * 64 >= 64 ? G_MAXUINT64 : (1ull << (n_ranks - w * 64)) - 1;
}

static gboolean
check_output(const TtCells *cells, guint channel, guint rank, guint32 chunk, guint only,
             GError **error)
{
    const guint64 *set = tt_cell_set(cells, tt_cell(cells, rank, TT_OUTPUT, chunk));

    for (guint w = 0; w < cells->n_words; w++) {
        guint64 wrong = set[w] ^ wanted_word(cells, only, w);
        TtPlace place;

        if (wrong == 0)
            continue;
        place = last_writer(cells, channel, rank, chunk);
        return tt_place_error(
            &place, chunk, error, "at the end, output chunk %u of rank %u %s rank %u", chunk, rank,
            set[w] & wrong & -wrong ? "holds a contribution of" : "lacks the contribution of",
            w * 64 + __builtin_ctzll(wrong));
    }
    return TRUE;
}

gboolean
tt_cells_check_outputs(const TtCells *cells, guint channel, GError **error)
{
    const TtPlanSpec *spec = &cells->plan->spec;
    guint32 per_rank = cells->plan->n_chunks / spec->n_ranks; /* for allgather a multiple */

    for (guint rank = 0; rank < spec->n_ranks; rank++) {
        TtRange held = tt_cells_held(cells, rank, TT_OUTPUT);

        for (guint64 c = held.first; c < held.first + held.count; c++) {
            guint only = spec->collective == TT_ALLGATHER   ? (guint)(c / per_rank)
                         : spec->collective == TT_BROADCAST ? spec->root
                                                            : TT_NO_RANK;

            if (!check_output(cells, channel, rank, c, only, error))
                return FALSE;
        }
    }
    return TRUE;
}
