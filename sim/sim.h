/* sim.h - predict when each step of a plan ends on a topology.
 *
 * Discrete events in integer picoseconds, deterministic: same input, same bytes out.
 *
 * A lane takes its steps one after the other. A step waits for its dependency, for the message it
 * receives and for a free slot where it sends; then for a worker (and core) if the profile says that
 * lanes share them; works for the time the profile gives; then its message flows over the links of the
 * route, sharing each link max-min fairly with the other flows there, and arrives one route latency
 * after its last byte was injected. Messages of one connection follow each other. A receive frees its
 * slot when its step ends.
 */
#pragma once
#include "algos/timeline.h"
#include "models/profile.h"
#include "topologies/topology.h"

#define TT_SIM_ERROR (tt_sim_error_quark())
GQuark tt_sim_error_quark(void);
typedef enum {
    TT_SIM_ERROR_USAGE,      /* plan and topology do not fit, no closed form for this algorithm */
    TT_SIM_ERROR_DEADLOCK,   /* names who waits for whom; a verified plan never does */
    TT_SIM_ERROR_UNDER_BOUND /* a result below its lower bound: a bug of ours, always fatal */
} TtSimError;

/* LOGGP: the closed form of a library's schedules (models/nccl_time.h); plans have none of their own. */
typedef enum {
    TT_LEVEL_BOUND,
    TT_LEVEL_HOCKNEY,
    TT_LEVEL_LOGGP,
    TT_LEVEL_FLOW,
    TT_N_LEVELS
} TtLevel;

typedef struct {
    TtLevel level;
    const TtProfile *profile; /* NULL: ideal */
    guint iterations;         /* back to back, no barrier between; 0: 1 */
    gboolean record;          /* fill the timeline (of the last iteration) */
    gboolean in_place;        /* smaller footprint */

    /* Every rank and every round by itself: nothing is folded or leapt over. */
    gboolean whole;
    /* All messages of one chunk as large as their mean, rounded up to a byte: a plan whose chunks,
     * channels or rounds differ by an element or by 64 bytes then folds and leaps as an even one. */
    gboolean even_pieces;
    /* How wrong, relatively, leaping may be where rounds do not recur exactly; 0: 1e-6. Above that, runs
     * that do not recur at all may be told from a few of their rounds (docs/simulator.md). */
    double leap_tolerance;
    const char *name; /* what the user calls the algorithm, for messages; NULL: the plan's name */
} TtSimOptions;

typedef struct {
    TtTime time_ps;  /* one collective: the whole run for one iteration, the steady-state distance
                          between ends of iterations for several */
    TtTime bound_ps; /* no algorithm can be faster on this topology */
    char *limit;     /* what sets the bound: "injection of rank 0", "NICs of a node"; owned */
    char *
        bottleneck; /* the busiest link and how busy, or what lanes waited for; owned, may be NULL */
    guint64 n_messages;   /* of all ranks and rounds */
    guint64 n_events;     /* really handled */
    guint folded_ranks;   /* ranks and switches for which one that behaves alike was simulated */
    guint64 leapt_rounds; /* rounds that repeat what was simulated and were leapt over */
    double leap_error;    /* by which that may be wrong, relative, as estimated; 0: exact */
    TtTimeline *timeline; /* NULL unless recorded; owned */
} TtSimResult;

/* Ranks of the plan are ranks of the topology (plan ranks <= topology ranks). */
gboolean tt_sim_run(const TtPlan *plan, const TtTopology *topo, const TtSimOptions *options,
                    TtSimResult *result, GError **error);
void tt_sim_result_clear(TtSimResult *result);

gboolean tt_level_parse(const char *text, TtLevel *level, GError **error);
const char *tt_level_name(TtLevel level);
