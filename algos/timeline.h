/* timeline.h - what happened when: the common output of the simulator and the executor.
 *
 * One event per step that moved data. Both sides number lanes, rounds and steps as the plan does,
 * so a prediction and a measurement are compared event by event. Times are picoseconds from the
 * start of the (first recorded) collective.
 */
#pragma once
#include "algos/schedule.h"

typedef struct {
    guint32 rank;
    guint16 lane;
    guint8 op;    /* TtOp */
    guint32 step; /* within the round */
    guint32 round;
    guint32 recv_peer; /* TT_NO_RANK if none */
    guint32 send_peer; /* TT_NO_RANK if none */
    guint64 bytes;
    gint64 begin_ps;  /* the lane turned to this step */
    gint64 end_ps;    /* the step was done, its message (if any) handed over */
    gint64 wait_ps;   /* of which it stood waiting */
    guint32 wait_for; /* the rank it waited for longest, TT_NO_RANK if it did not wait */
} TtEvent;

/* A quantity over time, shown as a counter track: link utilisation, say. */
typedef struct {
    char *name;      /* owned */
    GArray *time_ps; /* gint64 */
    GArray *value;   /* double, holds from its time on */
} TtCounter;

typedef struct {
    char *title;         /* owned: "ring, 8 ranks, 1 MiB, predicted" */
    GArray *events;      /* TtEvent, sorted by (begin_ps, rank, lane, round, step) after _sort() */
    GPtrArray *counters; /* TtCounter, owned */
} TtTimeline;

TtTimeline *tt_timeline_new(const char *title);
void tt_timeline_free(TtTimeline *timeline);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtTimeline, tt_timeline_free)

void tt_timeline_sort(TtTimeline *timeline);
TtCounter *tt_timeline_add_counter(TtTimeline *timeline, const char *name); /* borrowed */
void tt_counter_add(TtCounter *counter, gint64 time_ps, double value);

/* CSV: rank,lane,round,step,op,recv_peer,send_peer,bytes,begin_ps,end_ps,wait_ps,wait_for; a peer
 * there is not is left empty. Caller frees. */
char *tt_timeline_to_csv(const TtTimeline *timeline);
