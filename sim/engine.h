/* engine.h - lanes walking through their steps: the state of a run. Private to sim/engine*.c,
 * record.c and sim.c.
 *
 * A lane goes through these states for every step; on the left what moves it on:
 *
 *                      FETCH <----------------------------+
 *     dependency done    |  DEPENDENCY                    |
 *     message arrived    |  MESSAGE                       |  (a step without elements goes
 *     slot free          |  SLOT                          |   straight back after DEPENDENCY)
 *     worker free        |  WORKER   (if the profile      |
 *     core free          |  CORE      limits them)        |
 *     work done          |  WORK                          |
 *     message injected   |  PUSH     (if lanes push)      |
 *                        +--------------------------------+
 *
 * A lane that cannot move on leaves no event behind: whoever changes what it waits for puts it on
 * the ready list. Flat arrays throughout; connection index = flow index.
 *
 * The lanes of one rank on one channel are a unit: lane index = unit * lanes_per_channel + sub-lane.
 * Unfolded, unit = agent * n_channels + channel. Folded (fold.c), there is one unit for each class of
 * units that behave alike, and `ranks` holds what must begin and end an iteration together.
 */
#pragma once
#include "algos/algo.h"
#include "algos/passing.h"
#include "sim/event_queue.h"
#include "sim/flows.h"
#include "sim/network.h"

/* Event kinds besides those of flows.h. */
enum { TT_EVENT_ARRIVES = TT_FLOW_N_KINDS, TT_EVENT_CREDIT, TT_EVENT_WORK_DONE, TT_EVENT_PACED };

#define TT_NONE G_MAXUINT32

typedef enum {
    TT_LANE_FETCH,
    TT_LANE_DEPENDENCY,
    TT_LANE_MESSAGE,
    TT_LANE_SLOT,
    TT_LANE_WORKER,
    TT_LANE_CORE,
    TT_LANE_GRANTED, /* has been handed what it queued for */
    TT_LANE_WORK,
    TT_LANE_PUSH,
    TT_LANE_RETURNS,  /* has no step left, but has lent what has not been read yet */
    TT_LANE_STARTING, /* its rank has not begun this iteration's work */
    TT_LANE_FINISHED  /* this iteration, or all of them */
} TtLaneState;

typedef struct {
    guint8 state, op;
    guint8 queued : 1;  /* is on the ready list */
    guint8 parked : 1;  /* counted in its channel's waiters */
    guint8 counts : 1;  /* its rounds are counted, leap.h */
    guint8 opening : 1; /* works for the start of its rank, not for a step */
    guint8 lends : 1;   /* this step's message is lent */
    guint8 work;        /* TtOp that costs what the bytes of this step cost */
    guint16 lane;       /* of the rank, as the plan counts */
    guint16 dep_lane;   /* TT_NO_LANE if none */
    guint32 rank;       /* index into ranks */
    guint32 program, n_steps;
    guint32 step;
    guint32 recv, send; /* connections of this step, TT_NONE if none */
    guint32 dep_step;
    guint64 round;
    guint64 bytes;
    guint64 piece_bytes; /* of one chunk in this round, where all chunks are equal */
} TtLane;                /* 64 bytes: one cache line */

/* Only touched where steps cost something. */
typedef struct {
    TtTime busy_ps; /* worked or pushed so far */
    TtTime busy_since_ps;
    guint32 next; /* behind it in the queue of a worker or core */
} TtLaneWork;

/* A posted message that waits for those before it on its connection. */
typedef struct {
    guint64 bytes;
    guint32 next;
} TtPosted;

#define TT_IDLE (G_MAXUINT32 - 1)

typedef struct {
    guint32 writer, reader; /* lane indices */
    guint32 free_slots;
    guint32 n_arrived;   /* messages the reader may take */
    guint32 first, last; /* TtPosted that wait for the message being injected; first: TT_NONE if
                            none wait, TT_IDLE if none is being injected either */
    TtTime latency_ps;
} TtConnection; /* 32 bytes: two to a cache line */

/* Where messages of a connection must keep a distance, or kinds of connections differ on the wire. */
typedef struct {
    TtTime gap_ps, next_ps; /* the next may start at next_ps */
    double wire_factor;
} TtPace;

/* Messages of a connection, counted where some are lent. */
typedef struct {
    guint64 sent, freed;
    guint64 until; /* the last lent one is this one, from 1 */
} TtLent;

/* Workers of a rank, or a core: free units and the lanes that wait for one, in order. */
typedef struct {
    guint32 n_free, first, last;
    guint32 last_rank; /* whom a core ran last */
} TtResource;

typedef struct {
    guint32 agent; /* the plan's number of this rank or switch */
    guint32 first_lane, n_lanes;
    guint32 n_left; /* lanes that have not finished this iteration */
    guint32 iteration;
    guint32 cost : 31;     /* which row of step costs */
    guint32 is_switch : 1; /* works in no time, with nobody's cores */
    TtResource workers;
} TtRank;

/* What steps cost a rank of one footprint. */
typedef struct {
    double footprint_bytes;
    double fixed_s[TT_PROFILE_OPS], per_byte_s[TT_PROFILE_OPS];
} TtStepCost;

/* Watched only when recording. */
typedef struct {
    TtTime begin_ps, waiting_since_ps, work_ps, longest_ps;
    guint32 longest_for;
} TtWatch;

typedef struct TtLeap TtLeap; /* leap.h */
typedef struct TtLeaps TtLeaps;

typedef struct TtEngine {
    const TtPlan *plan;
    const TtNetwork *net;
    const TtProfile *profile;
    guint n_agents, n_lanes, n_roles, iterations; /* of the plan */
    guint lanes_per_channel;
    guint64 n_rounds;         /* to run: the plan's, or fewer for a trial */
    guint32 n_ranks, n_units; /* simulated: unfolded n_agents, n_agents * n_channels */

    TtEventQueue queue;
    TtFlows *flows;
    TtLane *lanes;
    TtLaneWork *work;
    TtRank *ranks;
    guint32 total_lanes;
    guint32 *waiters; /* [unit] lanes that wait for a dependency */

    TtConnection *connections;
    TtPace *paces; /* [connection], NULL if no kind of connection needs one */
    TtLent *lent;  /* [connection], NULL unless messages are passed directly */
    guint32 n_connections, connections_room;
    guint32
        *by_role; /* [(lane index * n_roles + role) * 2 + receiving] connection + 1, 0: not asked */
    guint32 *by_peers; /* open hash of (lane index, destination) -> connection + 1 */
    guint32 by_peers_room;
    TtPosted *posted;
    guint32 n_posted, posted_room, free_posted;

    TtResource *cores;
    guint32 n_cores; /* 0: nobody shares a core */
    TtStepCost *costs;
    guint32 n_costs;
    TtPassed *passed;     /* how messages go, NULL: all through slots. Then nothing is folded */
    gsize *passed_first;  /* [lane] into passed */
    guint32 *n_unread;    /* [lane] connections on which it has lent what has not been read */
    guint64 direct_bytes; /* shorter messages go through slots */
    TtTime credit_ps, latency_ps, start_ps, switch_ps;
    TtTime hop_latency_ps[TT_N_HOPS], hop_gap_ps[TT_N_HOPS];
    double wire_factor[TT_N_HOPS];
    guint32 *unit_weight, *connection_weight; /* how many each stands for; NULL unless folded */
    guint64 all_lanes;                        /* unfolded */
    guint64 most_steps;                       /* of one rank, all rounds */
    gboolean has_hops;                        /* kinds of connections make a difference */
    gboolean is_connected; /* all connections are known: no cores, no workers, nothing recorded */
    gboolean is_folded;
    TtLeaps *leaps;     /* NULL: no leaping */
    guint64 even_bytes; /* of every piece, if they are taken as even; else 0 */
    gboolean is_free;   /* no step costs anything */
    gboolean is_timed;  /* lanes can be busy: steps cost, or pushing does */
    gboolean uniform;   /* all chunks have the same number of elements */
    guint element_bytes;

    guint32 *ready; /* ring of lanes to look at now */
    guint32 ready_first, ready_n;

    guint32 ranks_left; /* ranks that have iterations to do */
    TtTime first_end_ps, end_ps;
    guint64 n_messages, n_events;

    TtWatch *watch;        /* [lane] NULL unless recording */
    GArray *events;        /* TtEvent of the last iteration */
    GArray *rates;         /* TtRateChange */
    TtTime record_from_ps; /* when the first rank began the last iteration */
} TtEngine;

/* engine_setup.c; engine_connections.c */
gboolean tt_engine_init(TtEngine *self, const TtPlan *plan, const TtNetwork *net,
                        const TtSimOptions *options, GError **error);
void tt_engine_clear(TtEngine *self);

/* Back to the start of a run of @n_rounds, once one has ended, or before the first. */
void tt_engine_rewind(TtEngine *self, guint64 n_rounds);
TtLane *tt_new_lanes(gsize n); /* whole cache lines, zeroed; free(). NULL if there is no memory */
guint32 tt_engine_connect(TtEngine *self, guint32 lane_index, guint role, gboolean receiving);

/* The connection behind a role of a lane; made when first used, from either side. TT_NONE if the
 * plan names nobody there. */
static inline guint32
tt_engine_connection(TtEngine *self, guint32 lane_index, guint role, gboolean receiving)
{
    guint32 known =
        self->by_role[((gsize)lane_index * self->n_roles + role) * 2 + (receiving ? 1 : 0)];

    return G_LIKELY(known) ? known - 1 : tt_engine_connect(self, lane_index, role, receiving);
}

/* engine.c: runs to the end; FALSE with TT_SIM_ERROR_DEADLOCK if it cannot. */
gboolean tt_engine_run(TtEngine *self, GError **error);

/* record.c */
void tt_record_step(TtEngine *self, guint32 lane_index);
TtTimeline *tt_record_timeline(TtEngine *self); /* takes the events */
char *tt_record_bottleneck(const TtEngine *self);
char *tt_record_deadlock(const TtEngine *self); /* who waits for whom */
