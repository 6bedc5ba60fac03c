/* verify_cells.h - what the verifier knows of every piece of memory: whose contributions are in it,
 * and which steps touched it last.
 *
 * A cell is one chunk of one buffer of one rank (or switch), on the channel under test. It holds a
 * set of ranks, the contributors; the empty set means that nothing was ever stored there. Internal to
 * verify*.c.
 */
#pragma once
#include "algos/schedule.h"

/* A step on its way through the verifier; what every error message starts with. */
typedef struct {
    guint32 rank, lane, step;
    TtStep what;
} TtPlace;

#define TT_WHOLE_SPAN G_MAXUINT32

/* Sets TT_PLAN_ERROR_INVALID, "rank 3, lane 0, step 5 (recv-reduce, chunk 2): " and the text;
 * returns FALSE. @chunk: the one at fault, or TT_WHOLE_SPAN. */
gboolean tt_place_error(const TtPlace *place, guint32 chunk, GError **error, const char *format,
                        ...) G_GNUC_PRINTF(4, 5);

typedef struct {
    const TtPlan *plan;
    gboolean in_place;
    guint n_words;     /* of one set */
    guint n_sub_lanes; /* lanes of one rank on one channel */
    guint n_stored;    /* buffers that exist: in place, input and output are one */
    guint8 stored_as[TT_N_BUFFERS];
    TtPlan in_chunks; /* the plan with one element per chunk: its ranges are spans */
    guint64 *sets;    /* [rank][stored buffer][chunk][n_words] */
    guint32 *last_read,
        *last_written;    /* [rank][stored buffer][chunk][sub-lane]: step + 1, 0: never */
    guint16 *last_writer; /* [rank][stored buffer][chunk]: sub-lane */
} TtCells;

gboolean tt_cells_init(TtCells *cells, const TtPlan *plan, gboolean in_place, GError **error);
void tt_cells_clear(TtCells *cells);

/* Back to the start of the collective: every rank's contribution in its input, nothing elsewhere.
 */
void tt_cells_reset(TtCells *cells);

static inline gsize
tt_cell(const TtCells *cells, guint rank, guint buffer, guint32 chunk)
{
    return ((gsize)rank * cells->n_stored + cells->stored_as[buffer]) * cells->plan->n_chunks +
           chunk;
}

static inline guint64 *
tt_cell_set(const TtCells *cells, gsize cell)
{
    return cells->sets + cell * cells->n_words;
}

/* The chunks a rank's buffer holds. */
static inline TtRange
tt_cells_held(const TtCells *cells, guint rank, guint buffer)
{
    return tt_plan_buffer_range(&cells->in_chunks, rank, buffer);
}

/* Notes that a step reads or writes a cell. Fails if another lane of the rank touched it, one of
 * the two writing, and the step does not come after that by explicit dependencies.
 * @known: per sub-lane, how many of its steps are finished by those dependencies. */
gboolean tt_cells_read(TtCells *cells, const TtPlace *place, guint buffer, guint32 chunk,
                       const guint32 *known, GError **error);
gboolean tt_cells_write(TtCells *cells, const TtPlace *place, guint buffer, guint32 chunk,
                        const guint32 *known, GError **error);

/* The lowest rank that is in both sets; TT_NO_RANK if there is none. */
guint tt_set_common(const guint64 *a, const guint64 *b, guint n_words);

/* After all steps: does every output hold what the collective promises? */
gboolean tt_cells_check_outputs(const TtCells *cells, guint channel, GError **error);
