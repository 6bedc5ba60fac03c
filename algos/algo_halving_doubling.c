/* halving-doubling - halve the data while reducing, double it while gathering (Rabenseifner).
 *
 * Units 0 .. 2^d - 1 each own a share of the vector. P = 4, rank 0:
 *
 *     halving    bit 1   send shares 2 3 to 2, add what it sends of 0 1      half of the vector
 *                bit 0   send share  1   to 1, add what it sends of 0        a quarter
 *     doubling   bit 0   send share  0   to 1, keep its share 1
 *                bit 1   send shares 0 1 to 2, keep its shares 2 3
 *
 * P not a power of two: the first ranks go in pairs, the even one folded into the odd one, which is
 * one unit for both: it takes in the even one's vector first and hands it the result last.
 *
 * Reduce-scatter is the first half, allgather the second. There the vector is cut in P parts, and
 * the unit of a pair owns both ranks' parts: shares stay contiguous.
 *
 * Steps   4*log2 P, one less where the last halving is fused with the first doubling
 * Wire    2(P-1)/P * n bytes leave every rank, the least possible; folding adds n
 * Time    P = 2^d: 2d * rounds * alpha + 2(P-1)/P * n * beta; half of it for the halves
 * Source  Rabenseifner, Proc. ICCS 2004, LNCS 3036
 * Limits  any P; each share is summed in one place, so all ranks agree bit by bit
 */
#include "algos/algo.h"

#include <math.h>

enum { PLAIN, KEEPER, FOLDED };

static guint
n_bits(const TtPlan *plan)
{
    return 31 - __builtin_clz(plan->spec.n_ranks);
}

static guint
n_folded(const TtPlan *plan)
{
    return plan->spec.n_ranks - (1u << n_bits(plan));
}

static gboolean
in_parts(const TtPlan *plan)
{
    return plan->spec.collective != TT_ALLREDUCE;
}

/* Roles: the partner at bit j is j; after them, the other rank of a folded pair. */
static gboolean
halving_doubling_init(TtPlan *plan, const char *args, GError **error)
{
    guint P = plan->spec.n_ranks;

    (void)args, (void)error;
    plan->n_roles = n_bits(plan) + 1;
    plan->n_chunks = in_parts(plan) ? P : 1u << n_bits(plan);
    plan->max_span = n_folded(plan) ? plan->n_chunks : MAX(1, plan->n_chunks / 2);
    /* partial sums of parts that are not this rank's own */
    plan->uses_scratch = plan->spec.collective == TT_REDUCE_SCATTER && P > 2;
    return TRUE;
}

static guint
kind_of(const TtPlan *plan, guint rank)
{
    return rank >= 2 * n_folded(plan) ? PLAIN : rank % 2 == 0 ? FOLDED : KEEPER;
}

static guint
unit_of(const TtPlan *plan, guint rank)
{
    guint folded = n_folded(plan);

    return rank < 2 * folded ? rank / 2 : rank - folded;
}

/* The first chunk of a unit's share. */
static guint32
first_chunk(const TtPlan *plan, guint unit)
{
    return in_parts(plan) ? unit + MIN(unit, n_folded(plan)) : unit;
}

/* A step on the shares of the 2^bit units that agree with @unit above that bit. */
static TtStep
on_shares(const TtPlan *plan, TtStep step, guint unit, guint bit)
{
    guint first = unit >> bit << bit;

    step.chunk = first_chunk(plan, first);
    return tt_span(step, first_chunk(plan, first + (1u << bit)) - step.chunk);
}

static gboolean
is_fused(const TtPlan *plan)
{
    /* Partners turn round at the same time, each with the other's message still in its slot: with a
     * single slot they must receive before they send. */
    return plan->spec.collective == TT_ALLREDUCE && plan->spec.n_slots > 1;
}

/* Steps before, in and after the exchanges. */
static guint
n_before(const TtPlan *plan, guint kind)
{
    gboolean gather = plan->spec.collective == TT_ALLGATHER;

    if (kind == PLAIN)
        return gather ? 1 : 0; /* copy the own part */
    return gather ? 2 : 1;     /* and take the other's, which for reductions is a vector to add */
}

static guint
n_exchange_steps(const TtPlan *plan)
{
    guint both = plan->spec.collective == TT_ALLREDUCE ? 4 : 2;

    return both * n_bits(plan) - (is_fused(plan) ? 1 : 0);
}

static guint32
halving_doubling_n_steps(const TtPlan *plan, guint32 rank, guint sub_lane)
{
    guint kind = kind_of(plan, rank), after = 0;

    (void)sub_lane;
    if (plan->spec.n_ranks == 1)
        return 1;
    if (kind == FOLDED)
        return 2;
    if (kind == KEEPER) /* hand over the result; of a reduce-scatter also keep the own part */
        after = plan->spec.collective == TT_REDUCE_SCATTER ? 2 : 1;
    return n_before(plan, kind) + n_exchange_steps(plan) + after;
}

static TtStep
folded_step(const TtPlan *plan, guint rank, guint32 i)
{
    guint fold = n_bits(plan), all = plan->n_chunks;

    if (i == 0)
        return plan->spec.collective == TT_ALLGATHER ? tt_send(fold, TT_INPUT, rank)
                                                     : tt_span(tt_send(fold, TT_INPUT, 0), all);
    return plan->spec.collective == TT_REDUCE_SCATTER ? tt_recv(fold, TT_OUTPUT, rank)
                                                      : tt_span(tt_recv(fold, TT_OUTPUT, 0), all);
}

/* Where partial sums are kept. */
static TtBuffer
partial_buffer(const TtPlan *plan)
{
    return plan->spec.collective == TT_REDUCE_SCATTER ? TT_SCRATCH : TT_OUTPUT;
}

static TtStep
before_step(const TtPlan *plan, guint rank, guint32 i)
{
    guint fold = n_bits(plan);

    if (plan->spec.collective == TT_ALLGATHER)
        return i == 0 ? tt_copy(TT_INPUT, TT_OUTPUT, rank) : tt_recv(fold, TT_OUTPUT, rank - 1);
    return tt_span(tt_recv_reduce(fold, TT_INPUT, partial_buffer(plan), 0), plan->n_chunks);
}

static TtStep
after_step(const TtPlan *plan, guint rank, guint32 i)
{
    guint fold = n_bits(plan);

    if (plan->spec.collective != TT_REDUCE_SCATTER)
        return tt_span(tt_send(fold, TT_OUTPUT, 0), plan->n_chunks);
    return i == 0 ? tt_send(fold, TT_SCRATCH, rank - 1) : tt_copy(TT_SCRATCH, TT_OUTPUT, rank);
}

/* Even @i: send the half that is not ours. Odd: add what came for the half that is. */
static TtStep
halving_step(const TtPlan *plan, guint rank, guint32 i)
{
    guint bit = n_bits(plan) - 1 - i / 2, unit = unit_of(plan, rank);
    gboolean plain = kind_of(plan, rank) == PLAIN;
    TtBuffer local = i < 2 && plain ? TT_INPUT : partial_buffer(plan);
    TtBuffer sum = bit == 0 && plain ? TT_OUTPUT : partial_buffer(plan);

    if (i % 2 == 0)
        return on_shares(plan, tt_send(bit, local, 0), unit ^ 1u << bit, bit);
    if (bit == 0 && is_fused(plan))
        return on_shares(plan, tt_recv_reduce_copy_send(bit, bit, local, sum, 0), unit, bit);
    return on_shares(plan, tt_recv_reduce(bit, local, sum, 0), unit, bit);
}

static TtStep
doubling_step(const TtPlan *plan, guint rank, guint32 i)
{
    guint bit = i / 2, unit = unit_of(plan, rank);

    if (i % 2 == 0)
        return on_shares(plan, tt_send(bit, TT_OUTPUT, 0), unit, bit);
    return on_shares(plan, tt_recv(bit, TT_OUTPUT, 0), unit ^ 1u << bit, bit);
}

/* Every rank has shares of its own: the program is the rank. */
static TtStep
halving_doubling_step(const TtPlan *plan, guint32 rank, guint sub_lane, guint32 i)
{
    guint kind = kind_of(plan, rank), before = n_before(plan, kind);
    guint n_halving = plan->spec.collective == TT_ALLGATHER ? 0 : 2 * n_bits(plan);

    (void)sub_lane;
    if (plan->spec.n_ranks == 1)
        return tt_copy(TT_INPUT, TT_OUTPUT, 0);
    if (kind == FOLDED)
        return folded_step(plan, rank, i);
    if (i < before)
        return before_step(plan, rank, i);
    i -= before;
    if (i >= n_exchange_steps(plan))
        return after_step(plan, rank, i - n_exchange_steps(plan));
    if (i < n_halving)
        return halving_step(plan, rank, i);
    return doubling_step(plan, rank, i - n_halving + (is_fused(plan) ? 1 : 0));
}

static guint
halving_doubling_peer(const TtPlan *plan, guint rank, guint channel, guint role)
{
    guint folded = n_folded(plan), kind = kind_of(plan, rank), unit;

    (void)channel;
    if (role == n_bits(plan))
        return kind == PLAIN ? TT_NO_RANK : rank ^ 1;
    if (kind == FOLDED)
        return TT_NO_RANK;
    unit = unit_of(plan, rank) ^ 1u << role;
    return unit < folded ? 2 * unit + 1 : unit + folded;
}

static double
halving_doubling_time_s(const TtPlan *plan, double alpha_s, double beta_s_per_byte)
{
    double P = plan->spec.n_ranks, n = (double)plan->spec.count * tt_type_bytes(plan->spec.type);
    double halves = plan->spec.collective == TT_ALLREDUCE ? 2 : 1;

    if (n_folded(plan) > 0)
        return NAN;
    return halves *
           (n_bits(plan) * (double)plan->n_rounds * alpha_s + (P - 1) / P * n * beta_s_per_byte);
}

const TtAlgo tt_algo_halving_doubling = {
    .name = "halving-doubling",
    .summary = "halve the data while reducing, double it while gathering: log2 P hops, least bytes",
    .source = "Rabenseifner, Optimization of collective reduction operations, ICCS 2004",
    .collectives = TT_BIT(TT_ALLREDUCE) | TT_BIT(TT_REDUCE_SCATTER) | TT_BIT(TT_ALLGATHER),
    .init = halving_doubling_init,
    .n_steps = halving_doubling_n_steps,
    .step = halving_doubling_step,
    .peer = halving_doubling_peer,
    .time_s = halving_doubling_time_s,
};
