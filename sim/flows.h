/* flows.h - messages flowing over links: who shares with whom, at which rate, until when.
 *
 * A flow is one message of one connection between start() and end(); a connection has at most one.
 * All starts and ends of one instant are settled together:
 *
 *     alone on all its links   -> its end follows at once from the narrowest link; no solver
 *     otherwise                -> the flows connected through shared links to a change, and only
 * those, get new max-min fair rates (maxmin.h)
 *
 * Ends of flows alone are events of their own; ends of sharing flows, whose times move with every
 * change around them, are kept in an indexed heap here and announced one by one.
 *
 * Links of infinite capacity never limit and are left out. Knows no lanes and no plans.
 */
#pragma once
#include "sim/event_queue.h"
#include "sim/network.h"

typedef struct TtFlows TtFlows;

#define TT_NO_FLOW G_MAXUINT32

/* Events this module pushes; kinds above are free for others. The upper bits of `kind` hold a
 * generation, see tt_flows_take(). */
enum { TT_FLOW_ENDS, TT_FLOWS_SHARED_END, TT_FLOW_N_KINDS };
#define TT_KIND_BITS 4

/* A change of rate, for the record. 0: the flow ended. */
typedef struct {
    TtTime time_ps;
    guint32 flow;
    double rate_bytes_per_s;
} TtRateChange;

/* Borrows @net and @queue. @log: appended to (TtRateChange), NULL for none. */
TtFlows *tt_flows_new(const TtNetwork *net, TtEventQueue *queue, GArray *log);
void tt_flows_free(TtFlows *self);

/* A connection from @src to @dst: finds its route once. Returns the flow's index, 0, 1, 2, ... */
guint32 tt_flows_add(TtFlows *self, guint src, guint dst);

/* The same over a route of @n links given. */
guint32 tt_flows_add_route(TtFlows *self, const TtLink *route, guint n);

/* The flow added last carries at most this, whatever its links would. */
void tt_flows_limit(TtFlows *self, double bytes_per_s);
TtTime tt_flows_latency_ps(const TtFlows *self, guint32 flow);

/* The most that token buckets can save: the time to fill the largest of those used so far. */
TtTime tt_flows_bucket_ps(const TtFlows *self);

void tt_flows_start(TtFlows *self, guint32 flow, guint64 bytes);

/* Once nothing more happens at this instant: rates and ends of all that changed. */
void tt_flows_settle(TtFlows *self);

/* On TT_FLOW_ENDS: TRUE if the event still holds; the flow is then off its links. */
gboolean tt_flows_take(TtFlows *self, const TtSimEvent *event);

/* On TT_FLOWS_SHARED_END: the next sharing flow that ends now, off its links; TT_NO_FLOW if no
 * more. */
guint32 tt_flows_take_shared(TtFlows *self);

/* Adds what every flow carried to the links of its route: @bytes [n_links]. For reports. */
void tt_flows_add_bytes(const TtFlows *self, double *bytes);

/* The links of a flow's route but those of infinite capacity. */
guint tt_flows_links(const TtFlows *self, guint32 flow, TtLink *links);

/* Nothing flows; neither has anything. For another run from time 0. */
void tt_flows_rewind(TtFlows *self);

/* No flow is added any more: links that can never fill need not be looked at. Rates stay the same. */
void tt_flows_prune(TtFlows *self);

/* --- for folding: links by the module's own numbers --------------------------------------------
 */

guint32 tt_flows_n_links(const TtFlows *self);
double tt_flows_link_capacity(const TtFlows *self, guint32 link);
guint tt_flows_hops(const TtFlows *self, guint32 flow,
                    guint32 *links); /* TT_MAX_ROUTE + 1 at most */

/* One flow and one link for each class, none of which has started. Classes are numbered in order of
 * their first members, and equitable: every flow of a class crosses the same classes of links, every
 * link of a class is crossed by equally many flows of each class. */
TtFlows *tt_flows_fold(const TtFlows *full, const guint32 *flow_class, guint32 n_flow_classes,
                       const guint32 *link_class, guint32 n_link_classes);

/* --- for leaping -------------------------------------------------------------------------------
 */

/* A hash of where a flow is and how fast, seen from now; between instants. */
guint64 tt_flows_state(const TtFlows *self, guint32 flow);

TtTime tt_flows_left_ps(const TtFlows *self, guint32 flow); /* -1 if it does not flow */

/* All bytes it was given so far; more that are only counted. */
guint64 tt_flows_carried(const TtFlows *self, guint32 flow);
void tt_flows_add_carried(TtFlows *self, guint32 flow, guint64 bytes);
