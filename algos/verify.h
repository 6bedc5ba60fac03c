/* verify.h - prove a plan by running it on sets of contributors instead of numbers.
 *
 * Checked: every output element is the reduction of every contribution exactly once (or the one
 * right contribution, where nothing is reduced); no deadlock with the plan's slots; no two lanes of
 * a rank touch the same data unordered, one of them writing; each message is received as what it
 * was sent as; bytes sent = bytes received on every connection; the chunk ranges tile the vector.
 * Switches are run like ranks; they have nothing to contribute and nothing to end up with. Errors
 * call them ranks, by their agents' numbers.
 *
 * One round shows it all. Rounds touch disjoint data. A step waits for the step before it, for a
 * message or a dependency of its own round, or for a slot freed in its own round or an earlier one;
 * so a cycle of waits never leaves its round, and what one round does every round does. (That each
 * connection sends as often per round as it receives is checked.) A span may turn out empty and its
 * step move nothing: leaving out a message on both sides unblocks, it never blocks.
 *
 * Lanes are sequential and block only on FIFOs and on each other's steps, so the outcome does not
 * depend on the order in which the verifier runs them (Kahn, "The semantics of a simple language
 * for parallel programming", 1974). Messages do not count as ordering between the lanes of a rank:
 * only explicit dependencies do. Above 2^21 ranges, tiling is checked at evenly spread samples.
 */
#pragma once
#include "algos/schedule.h"

typedef struct {
    guint64 n_steps;    /* symbolically executed: one round of every channel */
    guint64 n_messages; /* likewise */
    guint64 bytes;      /* sent by all ranks over all rounds */
} TtVerifyStats;

/* TRUE if the plan is right. @in_place: input and output are the same memory, as nccl-tests' second
 * column group runs it; out of place, the input must stay as it is. avg counts as sum: the division
 * comes last. On failure TT_PLAN_ERROR_INVALID naming rank, lane, step and chunk.
 * @stats may be NULL. Memory: n_ranks^2 * n_chunks / 8 bytes a buffer; refuses above 8 GiB (then
 * TT_PLAN_ERROR_USAGE). */
gboolean tt_verify(const TtPlan *plan, gboolean in_place, TtVerifyStats *stats, GError **error);
