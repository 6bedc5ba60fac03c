/* tree - one binary tree, pipelined: reduce up and broadcast down at the same time, on two lanes.
 *
 * Virtual rank v (the root is 0) has parent (v-1)/2 and children 2v+1, 2v+2:
 *
 *              0            up lane     children -> me -> parent, reducing
 *            /   \          down lane   parent -> me -> children, copying
 *           1     2
 *          / \   / \        The root turns a slice round as soon as it is complete, so with many
 *         3   4 5   6       rounds both directions stay busy.
 *
 * Steps   up: one per child and a send, fused; down: the same
 * Wire    2n bytes leave an inner rank downwards, n upwards
 * Time    (2 * depth + rounds - 1) message times of n/rounds bytes, when a rank can serve both
 *         children at once
 * Source  Sanders, Speck & Traeff, Parallel Computing 35(12), 2009 (introduction)
 * Limits  any P; half the ranks are leaves whose sending side is half idle (see double-tree)
 */
#include "algos/algo.h"

enum { PARENT, CHILD0, CHILD1, N_ROLES };
enum { UP, DOWN };

/* Program id: 4 * n_children + 1 if there is no parent. */
#define PROGRAM(n_children, is_root) (4 * (n_children) + ((is_root) ? 1 : 0))
#define N_CHILDREN(program)          ((program) / 4)
#define IS_ROOT(program)             ((program) % 2 == 1)

static gboolean
tree_init(TtPlan *plan, const char *args, GError **error)
{
    (void)args, (void)error;
    plan->n_roles = N_ROLES;
    plan->uses_scratch = plan->spec.collective == TT_REDUCE && plan->spec.n_ranks > 4;
    plan->lanes_per_channel = plan->spec.collective == TT_ALLREDUCE ? 2 : 1;
    return TRUE;
}

static guint32
tree_program(const TtPlan *plan, guint rank, guint channel)
{
    guint v = tt_virtual_rank(plan, rank), P = plan->spec.n_ranks;
    guint n_children = 2 * v + 2 < P ? 2 : 2 * v + 1 < P ? 1 : 0;

    (void)channel;
    return PROGRAM(n_children, v == 0);
}

static gboolean
goes_up(const TtPlan *plan, guint sub_lane)
{
    return plan->spec.collective == TT_REDUCE ||
           (plan->spec.collective == TT_ALLREDUCE && sub_lane == UP);
}

static guint32
tree_n_steps(const TtPlan *plan, guint32 program, guint sub_lane)
{
    (void)plan, (void)sub_lane;
    return MAX(1, N_CHILDREN(program));
}

/* Where partial sums rest between the first child and the second. Only the root of a reduce has an
 * output; in place, an allreduce's output is its input, which nobody reads again. */
static TtBuffer
partial_buffer(const TtPlan *plan, guint32 program)
{
    return plan->spec.collective == TT_REDUCE && !IS_ROOT(program) ? TT_SCRATCH : TT_OUTPUT;
}

static TtStep
up_step(const TtPlan *plan, guint32 program, guint32 i)
{
    guint n_children = N_CHILDREN(program);
    TtBuffer partial = partial_buffer(plan, program);
    TtBuffer local = i == 0 ? TT_INPUT : partial;

    if (n_children == 0)
        return IS_ROOT(program) ? tt_copy(TT_INPUT, TT_OUTPUT, 0) : tt_send(PARENT, TT_INPUT, 0);
    if (i + 1 < n_children || IS_ROOT(program))
        return tt_recv_reduce(CHILD0 + i, local, partial, 0);
    return tt_recv_reduce_send(CHILD0 + i, PARENT, local, 0);
}

static TtStep
down_step(const TtPlan *plan, guint32 program, guint32 i)
{
    guint n_children = N_CHILDREN(program);
    gboolean broadcast = plan->spec.collective == TT_BROADCAST;
    TtStep step;

    if (n_children == 0)
        step = !IS_ROOT(program) ? tt_recv(PARENT, TT_OUTPUT, 0)
               : broadcast       ? tt_copy(TT_INPUT, TT_OUTPUT, 0)
                                 : tt_nop();
    else if (i > 0)
        step = tt_send(CHILD0 + i, TT_OUTPUT, 0);
    else if (!IS_ROOT(program))
        step = tt_recv_copy_send(PARENT, CHILD0, TT_OUTPUT, 0);
    else if (broadcast)
        step = tt_copy_send(CHILD0, TT_INPUT, TT_OUTPUT, 0);
    else
        step = tt_send(CHILD0, TT_OUTPUT, 0);

    /* The slice must have left upwards before it is overwritten from above. */
    if (!broadcast && i == 0)
        step = tt_after(step, UP, MAX(1, n_children) - 1);
    return step;
}

static TtStep
tree_step(const TtPlan *plan, guint32 program, guint sub_lane, guint32 i)
{
    return goes_up(plan, sub_lane) ? up_step(plan, program, i) : down_step(plan, program, i);
}

static guint
tree_peer(const TtPlan *plan, guint rank, guint channel, guint role)
{
    guint v = tt_virtual_rank(plan, rank), P = plan->spec.n_ranks;

    (void)channel;
    if (role == PARENT)
        return v == 0 ? TT_NO_RANK : tt_real_rank(plan, (v - 1) / 2);
    return 2 * v + role < P ? tt_real_rank(plan, 2 * v + role) : TT_NO_RANK;
}

const TtAlgo tt_algo_tree = {
    .name = "tree",
    .summary = "pipelined binary tree: reduce up, broadcast down, both at once",
    .source = "Sanders, Speck & Traeff, Parallel Computing 35(12), 2009",
    .collectives = TT_BIT(TT_ALLREDUCE) | TT_BIT(TT_BROADCAST) | TT_BIT(TT_REDUCE),
    .init = tree_init,
    .program = tree_program,
    .n_steps = tree_n_steps,
    .step = tree_step,
    .peer = tree_peer,
};
