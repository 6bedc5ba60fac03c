/* recursive-doubling - exchange everything with partners at distance 1, 2, 4, ... and add.
 *
 *     P = 6: the largest power of two is 4, so two ranks are folded into their neighbours first
 *
 *     fold        0 -> 1    2 -> 3    4    5        the sum of a pair stands for both
 *     numbered         0         1    2    3
 *     exchange         0 <-----> 1    2 <> 3        bit 0
 *                      0 <----------> 2, 1 <> 3     bit 1
 *     unfold      0 <- 1    2 <- 3
 *
 * Steps   1 + log2 P: every receive but the last is fused with the next send
 * Wire    n*log2 P bytes leave every rank
 * Time    P = 2^d: d * (rounds * alpha + n * beta), the least latency there is
 * Source  Thakur, Rabenseifner & Gropp, Int. J. High Perf. Comp. Appl. 19(1), 2005
 * Limits  any P, folding costs two more hops; both partners compute a+b, so all ranks agree
 *         bit by bit
 */
#include "algos/algo.h"

#include <math.h>

enum { ALONE, PLAIN, KEEPER, FOLDED }; /* a keeper stands for itself and the rank folded into it */

static guint
floor_log2(guint n)
{
    return 31 - __builtin_clz(n);
}

static guint
n_folded(const TtPlan *plan)
{
    return plan->spec.n_ranks - (1u << floor_log2(plan->spec.n_ranks));
}

/* Roles: the partner at bit j is j; after them, the other rank of a folded pair. */
static gboolean
recursive_doubling_init(TtPlan *plan, const char *args, GError **error)
{
    (void)args, (void)error;
    plan->n_roles = floor_log2(plan->spec.n_ranks) + 1;
    return TRUE;
}

static guint32
recursive_doubling_program(const TtPlan *plan, guint rank, guint channel)
{
    (void)channel;
    if (plan->spec.n_ranks == 1)
        return ALONE;
    if (rank >= 2 * n_folded(plan))
        return PLAIN;
    return rank % 2 == 0 ? FOLDED : KEEPER;
}

static guint32
recursive_doubling_n_steps(const TtPlan *plan, guint32 program, guint sub_lane)
{
    (void)sub_lane;
    if (program == ALONE)
        return 1;
    return program == FOLDED ? 2 : floor_log2(plan->spec.n_ranks) + (program == KEEPER ? 2 : 1);
}

static TtStep
recursive_doubling_step(const TtPlan *plan, guint32 program, guint sub_lane, guint32 i)
{
    guint n_bits = floor_log2(plan->spec.n_ranks), fold = n_bits;
    TtBuffer local = TT_OUTPUT;

    (void)sub_lane;
    if (program == ALONE)
        return tt_copy(TT_INPUT, TT_OUTPUT, 0);
    if (program == FOLDED)
        return i == 0 ? tt_send(fold, TT_INPUT, 0) : tt_recv(fold, TT_OUTPUT, 0);
    if (program == KEEPER) {
        if (i == 0)
            return tt_recv_reduce_copy_send(fold, 0, TT_INPUT, TT_OUTPUT, 0);
        if (i == n_bits + 1)
            return tt_send(fold, TT_OUTPUT, 0);
    } else {
        if (i == 0)
            return tt_send(0, TT_INPUT, 0);
        local = i == 1 ? TT_INPUT : TT_OUTPUT;
    }
    if (i == n_bits)
        return tt_recv_reduce(i - 1, local, TT_OUTPUT, 0);
    return tt_recv_reduce_copy_send(i - 1, i, local, TT_OUTPUT, 0);
}

static guint
recursive_doubling_peer(const TtPlan *plan, guint rank, guint channel, guint role)
{
    guint n_bits = floor_log2(plan->spec.n_ranks), folded = n_folded(plan);
    gboolean in_pair = rank < 2 * folded;
    guint number = in_pair ? rank / 2 : rank - folded;

    (void)channel;
    if (role == n_bits)
        return in_pair ? rank ^ 1 : TT_NO_RANK;
    if (in_pair && rank % 2 == 0)
        return TT_NO_RANK;
    number ^= 1u << role;
    return number < folded ? 2 * number + 1 : number + folded;
}

static double
recursive_doubling_time_s(const TtPlan *plan, double alpha_s, double beta_s_per_byte)
{
    double n = (double)plan->spec.count * tt_type_bytes(plan->spec.type);

    if (n_folded(plan) > 0)
        return NAN;
    return floor_log2(plan->spec.n_ranks) *
           ((double)plan->n_rounds * alpha_s + n * beta_s_per_byte);
}

const TtAlgo tt_algo_recursive_doubling = {
    .name = "recursive-doubling",
    .summary =
        "exchange everything with partners at distance 1, 2, 4, ...: fewest hops for small data",
    .source = "Thakur, Rabenseifner & Gropp, Int. J. High Perf. Comp. Appl. 19(1), 2005",
    .collectives = TT_BIT(TT_ALLREDUCE),
    .init = recursive_doubling_init,
    .program = recursive_doubling_program,
    .n_steps = recursive_doubling_n_steps,
    .step = recursive_doubling_step,
    .peer = recursive_doubling_peer,
    .time_s = recursive_doubling_time_s,
};
