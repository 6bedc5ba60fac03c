/* flight.h - what `tutti run` has in the air at once: collectives in flight, groups of ranks, start offsets.
 */
#pragma once
#include "cli/options.h"
#include "exec/exec.h"

/* How the ranks are divided, and how many collectives each group has in flight. */
typedef struct {
    guint n_ranks, n_groups, group_size;
    gboolean
        interleaved;  /* rank r is in group r % n_groups; else groups are of consecutive ranks */
    double *offset_s; /* [n_ranks]; NULL: none */
} TtFlightPlan;

/* What options say. TT_CLI_ERROR_USAGE: groups that are not equal, offsets of ranks that are not there. */
gboolean tt_flight_plan(const TtOptions *options, guint n_ranks, TtFlightPlan *flight,
                        GError **error);
void tt_flight_plan_clear(TtFlightPlan *flight);
guint tt_flight_group(const TtFlightPlan *flight, guint rank);

/* "ring+tree": 2. */
guint tt_flight_n_algorithms(const char *algorithms);

/* Collectives each rank has in flight when @algorithms run. TT_CLI_ERROR_USAGE if --in-flight asks for fewer than
 * these are; then 0. */
guint tt_flight_depth(const TtOptions *options, const char *algorithms, GError **error);

/* The most of all algorithms of @options. */
guint tt_flight_most(const TtOptions *options);

/* Something else than one collective of all ranks. */
gboolean tt_flight_is_several(const TtFlightPlan *flight, guint depth);

/* The parts of a run, ready for tt_team_run_parts(). */
typedef struct {
    TtRunPart *parts; /* [n_parts], of group 0 first */
    guint n_parts, depth;
    guint *members; /* [n_groups * group_size] */
    double *offset_s;
} TtFlight;

/* @plans are taken in turn by the @depth collectives of a group. Borrows them. */
void tt_flight_init(TtFlight *self, const TtFlightPlan *flight, const TtPlan *const *plans,
                    guint n_plans, guint depth);
void tt_flight_clear(TtFlight *self);

/* What all parts came to: the slowest one's times, all wrong elements, a line for every rank. Empties @results. */
TtRunResult tt_flight_sum(const TtFlight *self, TtRunResult *results);
