/* verify.h - prove a plan by running it on sets of contributors instead of numbers.
 *
 * Checked: every output element is the reduction of every contribution exactly once (or the one right
 * contribution, where nothing is reduced); no deadlock with the plan's slots; no two lanes of a rank
 * touch the same data unordered, one of them writing; each message is received as what it was sent
 * as; bytes sent = bytes received on every connection; the chunk ranges tile the vector.
 *
 * Rounds repeat one program on disjoint data, so n_slots + 2 of them show any deadlock there is.
 * Lanes are sequential and block only on FIFOs, so the outcome does not depend on the order in which
 * the verifier runs them (Kahn, "The semantics of a simple language for parallel programming", 1974).
 */
#pragma once
#include "algos/schedule.h"

typedef struct {
    guint64 n_steps;    /* symbolically executed */
    guint64 n_messages;
    guint64 bytes;      /* sent by all ranks over all rounds */
} TtVerifyStats;

/* TRUE if the plan is right. @in_place: input and output are the same memory, as nccl-tests' second
 * column group runs it. On failure TT_PLAN_ERROR_INVALID naming rank, lane, step and chunk.
 * @stats may be NULL. Memory: n_ranks^2 * n_chunks / 8 bytes a buffer; refuses above 8 GiB. */
gboolean tt_verify(const TtPlan *plan, gboolean in_place, TtVerifyStats *stats, GError **error);
