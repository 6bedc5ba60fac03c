/* leap.h - a pipeline in its stride is leapt over. Private to sim/.
 *
 * Once the state of a run (where every lane is, what is in every queue, how much of every flow is left, when
 * the pending events are due) is the same as some rounds ago but for the rounds' numbers, everything repeats
 * as long as pieces keep their size: k periods of p rounds and D picoseconds later it is the same again.
 * So all lanes are moved on by k * p rounds at once, and what they end at is D * k later than the clock says.
 * The last rounds, which may be shorter, are then run. States are compared as 64-bit hashes.
 *
 * Parts of a run that share nothing (channels on links of their own) have a stride each: every component of
 * units joined by connections or links leaps by itself, and has its own distance to the clock.
 *
 * A run that keeps no exact stride (rates that divide by three, say) leaps too once the time for LEAP_WINDOW
 * rounds is the same twice within TT_LEAP_TOLERANCE; the result says so.
 */
#pragma once
#include "sim/engine.h"

#define TT_LEAP_TOLERANCE 1e-7 /* relative */

/* One component. */
struct TtLeap {
    guint32 first_lane, n_lanes; /* into lanes of TtLeaps */
    guint32 counting;            /* the lane whose rounds are counted */
    gboolean is_due;             /* it has begun one */
    guint32 iteration;           /* looked at */
    guint64 quiet_until;         /* round before which there is nothing to gain */
    TtTime offset_ps;            /* leapt over so far */
    guint64 n_leapt;             /* rounds */
    guint64 n_messages;

    gboolean is_searching;
    guint64 search_from; /* round */

    gboolean is_saved; /* a state to compare with */
    guint64 state, round, least_round, save_next, messages;
    TtTime at_ps;
    TtTime last_window_ps; /* 0: no window of equal time has passed */
};

struct TtLeaps {
    TtLeap *leaps;
    guint32 n_leaps;
    guint32 *lanes;   /* by component */
    guint32 *of_unit; /* [unit] its component */
    TtTime *busy_ps;  /* [lane] when saved */
    guint64 *carried; /* [connection] bytes when saved */
    gboolean is_due;  /* some component is */
    double tolerance; /* of what was leapt over; 0: exact */
};

/* Sets self->leaps where there are rounds worth it. After folding. */
void tt_leaps_init(TtEngine *self);
void tt_leaps_free(TtLeaps *leaps);

/* Fills in leapt_rounds and leap_tolerance. */
void tt_leaps_report(const TtEngine *self, TtSimResult *result);

/* At the end of an instant, if self->leaps->is_due. */
void tt_leaps_consider(TtEngine *self);

/* The lane whose rounds are counted begins one. */
static inline void
tt_leap_note_round(TtEngine *self, const TtLane *lane)
{
    guint32 unit = (guint32)(lane - self->lanes) / self->lanes_per_channel;

    self->leaps->leaps[self->leaps->of_unit[unit]].is_due = self->leaps->is_due = TRUE;
}
