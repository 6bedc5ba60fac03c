/* algo.h - what an algorithm is: one const struct, in one file algos/algo_<name>.c.
 *
 * The build lists algos/algo_*.c and writes the registry, so a new file shows up in --help, in the
 * sweeps and in the tests unasked. Callbacks are pure functions of the plan and their arguments.
 */
#pragma once
#include "algos/schedule.h"

#define TT_BIT(x) (1u << (x))

struct TtAlgo {
    const char *name;    /* "double-tree" for algo_double_tree.c */
    const char *summary; /* one line for --help */
    const char *source;  /* where it was described */
    guint collectives;   /* TT_BIT(TT_ALLREDUCE) | ... */

    /* @args: what followed the first ':' in the name, or NULL. Sets n_chunks, max_span (default 1),
     * lanes_per_channel (default 1), n_roles, uses_scratch, n_switches, data. May refuse
     * (TT_PLAN_ERROR_USAGE). */
    gboolean (*init)(TtPlan *plan, const char *args, GError **error);
    void (*clear)(TtPlan *plan); /* releases plan->data; may be NULL */

    /* Ranks with equal programs on a channel share an id. NULL: every rank is its own (id = rank).
     */
    guint32 (*program)(const TtPlan *plan, guint rank, guint channel);

    /* Steps of one round in a sub-lane. dep_lane holds a sub-lane of the same channel. */
    guint32 (*n_steps)(const TtPlan *plan, guint32 program, guint sub_lane);
    TtStep (*step)(const TtPlan *plan, guint32 program, guint sub_lane, guint32 i);

    /* Absolute number of the chunk a step calls @relative. NULL: the same number. Programs are
     * shared by calling chunks "mine, my neighbour's, ..." . Only for steps of one chunk. */
    guint32 (*chunk)(const TtPlan *plan, guint rank, guint channel, guint32 relative);

    /* The rank behind a role on this channel, TT_NO_RANK if there is none. */
    guint (*peer)(const TtPlan *plan, guint rank, guint channel, guint role);

    /* Where switch n_ranks + @index is. NULL if plans of this algorithm have none. "rank" above is
     * any agent, ranks and switches. */
    TtSwitchPlace (*switch_place)(const TtPlan *plan, guint index);

    /* Closed form. A message of b bytes keeps its sender's way out and its receiver's way in busy
     * for b * @beta_s_per_byte and arrives @alpha_s later; messages that want the same way at the
     * same time share it evenly; all else is free and costs nothing. Exact where all pieces of a
     * step are equal. NULL: none known; NAN: none for this shape (so many ranks, so many rounds).
     */
    double (*time_s)(const TtPlan *plan, double alpha_s, double beta_s_per_byte);
};

/* Written by the build: sorted by name, ends with NULL. */
extern const TtAlgo *const tt_algos[];

const TtAlgo *tt_algo_find(const char *name); /* NULL if unknown; @name may carry ":args" */

/* Helpers several algorithms share. */

/* Ranks renumbered so that the root is 0: virtual rank of @rank, and back. An allreduce has no root: it is
 * the ring's position there, so that the channels of a tree, too, face the network at different ranks. */
guint tt_virtual_rank(const TtPlan *plan, guint channel, guint rank);
guint tt_real_rank(const TtPlan *plan, guint channel, guint virtual_rank);

/* Channels that start at different ranks do not all share each wire: closed forms for one path do not
 * hold then. */
gboolean tt_channels_differ(const TtPlan *plan);

/* The ring of one channel. Groups keep their order; inside each, the first rank moves on from channel
 * to channel, in equal strides over the group, so that the channels reach every NIC of a node even
 * where there are fewer channels and NICs than ranks. With a wiring, the order inside each is the
 * wiring's. */
guint tt_ring_position(const TtPlan *plan, guint channel, guint rank);
guint tt_ring_rank(const TtPlan *plan, guint channel, guint position);

/* The chain of one channel through a node, from the rank that faces the network: where a rank stands
 * in that of its node, and back. The same order as the ring unless the wiring says otherwise. */
guint tt_chain_position(const TtPlan *plan, guint channel, guint rank);
guint tt_chain_rank(const TtPlan *plan, guint channel, guint node, guint position);

/* Heads: the ranks of a node that take the sums of in-switch reduction to the network, one share of
 * the vector each. Without a wiring every rank is one. */
#define TT_NO_HEAD G_MAXUINT32
guint tt_n_heads(const TtPlan *plan); /* of a node */
guint tt_head_rank(const TtPlan *plan, guint node, guint head);
guint tt_head_of(const TtPlan *plan, guint rank); /* which head it is; TT_NO_HEAD if none */

static inline guint
tt_n_nodes(const TtPlan *plan)
{
    return plan->spec.n_ranks / plan->spec.group_size;
}
