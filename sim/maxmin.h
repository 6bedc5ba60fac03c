/* maxmin.h - share link capacity fairly among the flows in flight.
 *
 * Progressive filling: raise all rates together until a link is full, freeze the flows that cross
 * it, repeat. Bertsekas & Gallager, Data Networks, 2nd ed., section 6.5.2. The result is the one
 * set of rates in which every flow crosses a full link on which nobody is faster.
 *
 * Knows links and flows as indices. Knows no topology, no messages, no time.
 */
#pragma once
#include <glib.h>

/* Which links each flow crosses, flattened: flow f crosses link[first[f]] .. link[first[f + 1] -
 * 1], each at most once; a flow that stands for several takes weight[..] shares of a link. Shapes:
 * first[n_flows + 1], link and weight [first[n_flows]]; weight may be NULL: all 1. Borrowed: the
 * caller keeps the arrays. */
typedef struct {
    guint32 n_flows;
    const guint32 *first, *link, *weight;
} TtFlowRoutes;

typedef struct TtMaxmin TtMaxmin; /* opaque: scratch space, grows to the largest problem seen */

TtMaxmin *tt_maxmin_new(void);
void tt_maxmin_free(TtMaxmin *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtMaxmin, tt_maxmin_free)

/* Writes the fair rate of every flow to @rate_bytes_per_s [n_flows]; INFINITY if no link limits it;
 * and to
 * @limit [n_flows] the full link that does (G_MAXUINT32 if none). @limit may be NULL.
 * @capacity_bytes_per_s [n_links]: none negative, may be INFINITY, not changed.
 * Cannot fail; a bad index is a caller's bug and asserts. O(crossings + n_links * log n_links)
 * where few links fill at different levels; allocates only when the problem is the largest so far.
 */
void tt_maxmin_share(TtMaxmin *self, guint32 n_links, const double *capacity_bytes_per_s,
                     const TtFlowRoutes *routes, double *rate_bytes_per_s, guint32 *limit);
