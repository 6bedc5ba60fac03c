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
 * Where rates keep no exact stride (flows that share a link and drift against each other), a run leaps
 * too, once a window of rounds ends in roughly the state it began with (all lanes and queues alike, what is
 * due at the same time within the tolerance asked for) and took the time of the window before. If what
 * they differ by goes on growing, leaping k windows is wrong by (k + 1) / 2 of that; k is chosen so that
 * this stays within the tolerance, and the result says what it came to.
 */
#pragma once
#include "sim/engine.h"

#define TT_LEAP_TOLERANCE 1e-6 /* relative, unless asked otherwise */

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
    guint64 state, rough, round, least_round, save_next, messages;
    TtTime at_ps;
    guint64 period;        /* after which the state was roughly the same; 0: not seen */
    guint64 window;        /* rounds; 0: an exact stride is still hoped for */
    TtTime last_window_ps; /* 0: no window of this size has passed */
};

struct TtLeaps {
    TtLeap *leaps;
    guint32 n_leaps;
    guint32 *lanes;                    /* by component */
    guint32 *of_unit;                  /* [unit] its component */
    TtTime *busy_ps;                   /* [lane] when saved */
    guint64 *carried;                  /* [connection] bytes when saved */
    TtTime *phase_ps, *saved_phase_ps; /* [lane], then [connection] */
    gboolean is_due;                   /* some component is */
    double tolerance;                  /* allowed */
    double inexactness;                /* of what was leapt over, at most; 0: exact */
};

static inline TtLeap *
tt_leap_of_lane(const TtEngine *self, guint32 lane)
{
    return &self->leaps->leaps[self->leaps->of_unit[lane / self->lanes_per_channel]];
}

/* leap_state.c. Hashes of everything; of all but times. */
guint64 tt_leap_state(const TtEngine *self, const TtLeap *leap);
guint64 tt_leap_rough_state(const TtEngine *self, const TtLeap *leap);

/* What is due in each lane and connection, from now on; and the most that differs from what was saved. */
void tt_leap_phases(const TtEngine *self, const TtLeap *leap, TtTime *phase_ps);
TtTime tt_leap_drift_ps(const TtEngine *self, const TtLeap *leap);

/* Sets self->leaps where there are rounds worth it. After folding. */
void tt_leaps_init(TtEngine *self, double tolerance);
void tt_leaps_free(TtLeaps *leaps);

/* Fills in leapt_rounds and leap_error. */
void tt_leaps_report(const TtEngine *self, TtSimResult *result);

/* At the end of an instant, if self->leaps->is_due. */
void tt_leaps_consider(TtEngine *self);

/* The lane whose rounds are counted begins one. */
static inline void
tt_leap_note_round(TtEngine *self, const TtLane *lane)
{
    tt_leap_of_lane(self, (guint32)(lane - self->lanes))->is_due = self->leaps->is_due = TRUE;
}
