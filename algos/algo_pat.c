/* pat - parallel aggregated trees: every block down (or up) a binomial tree of its own.
 *
 * Seen from rank r, the block of rank r + s is at distance s. An allgather hands it on from distance
 * s to s + 2^d for every d below the lowest set bit of s, far hops first: rank r sends to r - 2^d
 * what it has at distances 0, 2*2^d, 4*2^d, ..., and receives from r + 2^d. P = 8, block of rank 0:
 *
 *     phase d = 2    0 --> 4
 *     phase d = 1    0 --> 6, 4 --> 2              (0 - 2, 4 - 2)
 *     phase d = 0    0 --> 7, 6 --> 5, 4 --> 3, 2 --> 1
 *
 * A reduce-scatter runs it backwards, near hops first: partial sums for the block at distance s + 2^d
 * go to r + 2^d. Blocks of a phase go to the same peer: as many as there are slots are sent before as
 * many are received, which is what NCCL's aggregation into one message of several blocks comes to.
 *
 * Steps   2(P-1) per rank and round, in ceil(log2 P) phases
 * Wire    (P-1)/P * n bytes leave each rank, the least possible
 * Time    ceil(log2 P) * rounds * alpha + (P-1)/P * n * beta with slots for half the ranks; with
 *         fewer, one alpha for as many blocks as there are slots
 * Source  NCCL src/include/collectives.h; Jeaugey, PAT, arXiv:2506.20252, 2025
 * Limits  any P; the order is by phase, where NCCL's goes depth first once blocks outgrow its buffers
 */
#include "algos/algo.h"

#define MOST_PHASES 24 /* 2^24 ranks */

static gboolean
pat_init(TtPlan *plan, const char *args, GError **error)
{
    (void)args, (void)error;
    plan->n_chunks = plan->spec.n_ranks;
    plan->n_roles = 2 * MOST_PHASES; /* 2d: towards lower ranks, 2d + 1: towards higher */
    plan->uses_scratch = plan->spec.collective == TT_REDUCE_SCATTER && plan->spec.n_ranks > 3;
    return TRUE;
}

static guint32
pat_program(const TtPlan *plan, guint rank, guint channel)
{
    (void)plan, (void)rank, (void)channel;
    return 0;
}

static guint32
pat_n_steps(const TtPlan *plan, guint32 program, guint sub_lane)
{
    (void)program, (void)sub_lane;
    return plan->spec.n_ranks == 1 ? 1 : 2 * (plan->spec.n_ranks - 1);
}

/* A hop of the tree from distance @near to @near + 2^@d, and which end of it this step is. */
typedef struct {
    guint d;
    guint32 near;
    gboolean is_send;
} Hop;

/* Multiples of 2^(d+1) from which 2^d more is still inside. */
static guint32
hops_in_phase(guint P, guint d)
{
    return P > 1u << d ? ((P - 1 - (1u << d)) >> (d + 1)) + 1 : 0;
}

static Hop
find_hop(const TtPlan *plan, guint32 i)
{
    guint P = plan->spec.n_ranks, n_phases = 0, phase = 0, d;
    guint32 n_hops, burst, first;

    while (1u << n_phases < P)
        n_phases++;
    for (;; phase++) {
        d = plan->spec.collective == TT_ALLGATHER ? n_phases - 1 - phase : phase;
        n_hops = hops_in_phase(P, d);
        if (i < 2 * n_hops)
            break;
        i -= 2 * n_hops;
    }
    first = i / (2 * plan->spec.n_slots) * plan->spec.n_slots;
    burst = MIN(plan->spec.n_slots, n_hops - first);
    i -= 2 * first;
    return (Hop){ d, (first + i % burst) << (d + 1), i < burst };
}

static TtStep
gather_step(guint P, Hop hop)
{
    guint32 far = hop.near + (1u << hop.d);

    if (!hop.is_send)
        return tt_recv(2 * hop.d + 1, TT_OUTPUT, far);
    if (hop.near == 0 && 2u << hop.d >= P) /* the first hop of all */
        return tt_copy_send(2 * hop.d, TT_INPUT, TT_OUTPUT, 0);
    return tt_send(2 * hop.d, TT_OUTPUT, hop.near);
}

/* Whether a rank adds to its partial sum at distance @s in phases before @d. */
static gboolean
has_partial(guint P, guint32 s, guint d)
{
    return d > 0 && s % 2 == 0 && s + 1 < P;
}

static TtStep
scatter_step(guint P, Hop hop)
{
    guint32 far = hop.near + (1u << hop.d);
    TtBuffer partial = hop.near == 0 ? TT_OUTPUT : TT_SCRATCH;

    if (hop.is_send)
        return tt_send(2 * hop.d + 1, has_partial(P, far, hop.d) ? TT_SCRATCH : TT_INPUT, far);
    return tt_recv_reduce(2 * hop.d, has_partial(P, hop.near, hop.d) ? partial : TT_INPUT, partial,
                          hop.near);
}

static TtStep
pat_step(const TtPlan *plan, guint32 program, guint sub_lane, guint32 i)
{
    guint P = plan->spec.n_ranks;

    (void)program, (void)sub_lane;
    if (P == 1)
        return tt_copy(TT_INPUT, TT_OUTPUT, 0);
    if (plan->spec.collective == TT_ALLGATHER)
        return gather_step(P, find_hop(plan, i));
    return scatter_step(P, find_hop(plan, i));
}

static guint32
pat_chunk(const TtPlan *plan, guint rank, guint channel, guint32 distance)
{
    guint32 chunk = rank + distance;

    (void)channel;
    return chunk >= plan->spec.n_ranks ? chunk - plan->spec.n_ranks : chunk;
}

static guint
pat_peer(const TtPlan *plan, guint rank, guint channel, guint role)
{
    guint P = plan->spec.n_ranks, step = 1u << role / 2;

    (void)channel;
    if (step >= P)
        return TT_NO_RANK;
    return (role % 2 == 0 ? rank + P - step : rank + step) % P;
}

static double
pat_time_s(const TtPlan *plan, double alpha_s, double beta_s_per_byte)
{
    double P = plan->spec.n_ranks, n = (double)plan->spec.count * tt_type_bytes(plan->spec.type);
    guint n_bursts = 0;

    for (guint d = 0; 1u << d < plan->spec.n_ranks; d++)
        n_bursts +=
            (hops_in_phase(plan->spec.n_ranks, d) + plan->spec.n_slots - 1) / plan->spec.n_slots;
    return n_bursts * (double)plan->n_rounds * alpha_s + (P - 1) / P * n * beta_s_per_byte;
}

const TtAlgo tt_algo_pat = {
    .name = "pat",
    .summary = "every block by a binomial tree of its own: log2 P phases, least bytes",
    .source = "NCCL src/include/collectives.h; Jeaugey, arXiv:2506.20252, 2025",
    .collectives = TT_BIT(TT_ALLGATHER) | TT_BIT(TT_REDUCE_SCATTER),
    .init = pat_init,
    .program = pat_program,
    .n_steps = pat_n_steps,
    .step = pat_step,
    .chunk = pat_chunk,
    .peer = pat_peer,
    .time_s = pat_time_s,
};
