/* hierarchical - reduce-scatter inside each group, allreduce across groups, allgather inside.
 *
 *     groups of 2    group 0     group 1     group 2
 *
 *     phase 0         0 <> 1      2 <> 3      4 <> 5     inner reduce-scatter: local rank p gets
 *                                                        part p
 *     phase 1         0 <-------> 2 <-------> 4          outer allreduce among equal local ranks,
 *                          1 <-------> 3 <-------> 5     each on its own part
 *     phase 2         0 <> 1      2 <> 3      4 <> 5     inner allgather
 *
 * "hierarchical:INNER:OUTER" takes any inner algorithm that can reduce-scatter and allgather, and
 * any outer one that can allreduce. Each phase is a plan of its own; this file only renames: ranks,
 * roles, lanes, buffers (from phase 1 on, all work in place on the output) and chunks. Inner chunk
 * c is the global chunks c*Co .. (Co: chunks of the outer plan). A part is m inner chunks; outer
 * chunk o of part p is the m global chunks from (p*Co + o)*m on.
 *
 * Every phase has lanes of its own, so that rounds overlap; a lane begins with one nop per lane of
 * the phase before, each waiting for that lane's last step. Phases of one rank are left out.
 *
 * Steps   those of the parts
 * Wire    2(G-1)/G * n bytes leave a rank inside its group of G; 2(N-1)/N * n/G outside, N groups
 * Time    one round: the sum of the phases
 * Source  Jia et al., arXiv:1807.11205, 2018; Cho et al., BlueConnect, MLSys 2019
 * Limits  whole groups of consecutive ranks; what the parts need (slots)
 */
#include "algos/algo.h"

#include <math.h>
#include <string.h>

typedef struct {
    TtPlan *plan; /* as if its ranks were alone in the world, one channel, one round */
    gboolean is_outer;
    gboolean on_output; /* its input lies in our output */
    guint first_lane;   /* sub-lanes first_lane .. + plan->lanes_per_channel are its own */
    guint first_role;
    guint32 scale; /* global chunks per chunk */
} Phase;

typedef struct {
    Phase phases[3];
    guint n_phases;
    guint group_size;
    guint32 part_chunks; /* global chunks of one part */
} Parts;

/* --- the parts ---------------------------------------------------------------------------------
 */

static gboolean
add_phase(TtPlan *plan, Parts *parts, const char *algorithm, TtCollective collective,
          GError **error)
{
    Phase *phase = &parts->phases[parts->n_phases];
    gboolean is_outer = collective == TT_ALLREDUCE;
    TtPlanSpec spec = { .collective = collective,
                        .n_ranks =
                            is_outer ? plan->spec.n_ranks / parts->group_size : parts->group_size,
                        .type = plan->spec.type,
                        .redop = plan->spec.redop,
                        .n_slots = plan->spec.n_slots,
                        .group_size = is_outer ? 1 : 0 };

    if (strcmp(algorithm, plan->algo->name) == 0) {
        g_set_error(error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE, "it cannot be a part of itself");
        return FALSE;
    }
    phase->plan = tt_plan_new(algorithm, &spec, error);
    if (!phase->plan) {
        g_prefix_error(error, "%s part: ", is_outer ? "outer" : "inner");
        return FALSE;
    }
    if (phase->plan->n_switches > 0) {
        g_set_error(error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE,
                    "%s part: %s needs switches that reduce, which a part cannot have",
                    is_outer ? "outer" : "inner", algorithm);
        g_clear_pointer(&phase->plan, tt_plan_free);
        return FALSE;
    }
    phase->is_outer = is_outer;
    phase->on_output = parts->n_phases > 0;
    phase->first_lane = plan->lanes_per_channel;
    phase->first_role = plan->n_roles;
    plan->lanes_per_channel += phase->plan->lanes_per_channel;
    plan->n_roles += phase->plan->n_roles;
    plan->uses_scratch = plan->uses_scratch || phase->plan->uses_scratch;
    parts->n_phases++;
    return TRUE;
}

static gboolean
add_phases(TtPlan *plan, Parts *parts, const char *inner, const char *outer, GError **error)
{
    guint n_groups = plan->spec.n_ranks / parts->group_size;
    gboolean has_inner = parts->group_size > 1;

    plan->lanes_per_channel = 0;
    if (has_inner && !add_phase(plan, parts, inner, TT_REDUCE_SCATTER, error))
        return FALSE;
    if ((n_groups > 1 || !has_inner) && !add_phase(plan, parts, outer, TT_ALLREDUCE, error))
        return FALSE;
    return !has_inner || add_phase(plan, parts, inner, TT_ALLGATHER, error);
}

/* Chunks fine enough for both levels. */
static gboolean
set_chunks(TtPlan *plan, Parts *parts, GError **error)
{
    guint64 n_inner = 1, n_outer = 1, per_part;

    for (guint i = 0; i < parts->n_phases; i++) {
        const Phase *phase = &parts->phases[i];

        if (phase->is_outer)
            n_outer = phase->plan->n_chunks;
        else if (i > 0 && phase->plan->n_chunks != n_inner) {
            g_set_error(error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE,
                        "%s cuts reduce-scatter and allgather differently", phase->plan->name);
            return FALSE;
        } else
            n_inner = phase->plan->n_chunks;
    }
    g_assert(n_inner * n_outer < G_MAXUINT32); /* parts have a few chunks per rank, not more */
    per_part = n_inner / parts->group_size;
    parts->part_chunks = per_part * n_outer;
    plan->n_chunks = n_inner * n_outer;
    for (guint i = 0; i < parts->n_phases; i++) {
        Phase *phase = &parts->phases[i];

        phase->scale = phase->is_outer ? per_part : n_outer;
        plan->max_span = MAX(plan->max_span, phase->plan->max_span * phase->scale);
    }
    return TRUE;
}

static gboolean
hierarchical_init(TtPlan *plan, const char *args, GError **error)
{
    Parts *parts = plan->data = g_new0(Parts, 1);
    g_auto(GStrv) names = g_strsplit(args ? args : "ring:ring", ":", 0);

    if (g_strv_length(names) != 2) {
        g_set_error(error, TT_PLAN_ERROR, TT_PLAN_ERROR_USAGE,
                    "wanted hierarchical:INNER:OUTER, such as hierarchical:ring:tree");
        return FALSE;
    }
    parts->group_size = plan->spec.group_size;
    return add_phases(plan, parts, names[0], names[1], error) && set_chunks(plan, parts, error);
}

static void
hierarchical_clear(TtPlan *plan)
{
    Parts *parts = plan->data;

    for (guint i = 0; parts && i < parts->n_phases; i++)
        tt_plan_free(parts->phases[i].plan);
    g_free(parts);
}

/* --- renaming ----------------------------------------------------------------------------------
 */

static const Phase *
phase_of_lane(const Parts *parts, guint sub_lane)
{
    const Phase *phase = parts->phases + parts->n_phases - 1;

    while (sub_lane < phase->first_lane)
        phase--;
    return phase;
}

static guint
rank_inside(const Parts *parts, const Phase *phase, guint rank)
{
    return phase->is_outer ? rank / parts->group_size : rank % parts->group_size;
}

/* How many lanes of the phase before a lane must wait for. */
static guint
n_waits(const Parts *parts, const Phase *phase)
{
    return phase == parts->phases ? 0 : phase[-1].plan->lanes_per_channel;
}

/* At least one step, so that there is a last one to wait for. */
static guint32
lane_length(const Parts *parts, const Phase *phase, guint rank, guint sub_lane)
{
    guint32 n =
        tt_plan_n_steps(phase->plan, rank_inside(parts, phase, rank), sub_lane - phase->first_lane);

    return MAX(1, n_waits(parts, phase) + n);
}

static guint32
hierarchical_n_steps(const TtPlan *plan, guint32 rank, guint sub_lane)
{
    const Parts *parts = plan->data;

    return lane_length(parts, phase_of_lane(parts, sub_lane), rank, sub_lane);
}

/* What copies the output onto itself moves nothing. */
static void
drop_copy(TtStep *step)
{
    if (step->src != step->dst)
        return;
    if (step->op == TT_OP_COPY_SEND)
        step->op = TT_OP_SEND;
    if (step->op == TT_OP_COPY) {
        step->op = TT_OP_NOP;
        step->chunk = step->n_chunks = 0;
    }
}

static TtStep
rename_step(const Parts *parts, const Phase *phase, guint rank, TtStep step)
{
    if (phase->on_output) {
        step.src = step.src == TT_INPUT ? TT_OUTPUT : step.src;
        step.dst = step.dst == TT_INPUT ? TT_OUTPUT : step.dst;
    }
    step.recv_role += tt_op_receives(step.op) ? phase->first_role : 0;
    step.send_role += tt_op_sends(step.op) ? phase->first_role : 0;
    if (step.dep_lane != TT_NO_LANE) {
        step.dep_lane += phase->first_lane;
        step.dep_step += n_waits(parts, phase);
    }
    step.chunk *= phase->scale;
    step.n_chunks *= phase->scale;
    if (phase->is_outer)
        step.chunk += rank % parts->group_size * parts->part_chunks;
    drop_copy(&step);
    return step;
}

/* The program is the rank. The parts are asked as on channel 0: inside a single group, which is all
 * they see, no algorithm tells channels apart. */
static TtStep
hierarchical_step(const TtPlan *plan, guint32 rank, guint sub_lane, guint32 i)
{
    const Parts *parts = plan->data;
    const Phase *phase = phase_of_lane(parts, sub_lane);
    guint waits = n_waits(parts, phase), inside = rank_inside(parts, phase, rank);
    guint lane = sub_lane - phase->first_lane;

    if (i < waits) {
        guint before = phase[-1].first_lane + i;

        return tt_after(tt_nop(), before, lane_length(parts, phase - 1, rank, before) - 1);
    }
    if (i - waits >= tt_plan_n_steps(phase->plan, inside, lane))
        return tt_nop();
    return rename_step(parts, phase, rank, tt_plan_step(phase->plan, inside, lane, i - waits));
}

static guint
hierarchical_peer(const TtPlan *plan, guint rank, guint channel, guint role)
{
    const Parts *parts = plan->data;
    const Phase *phase = parts->phases + parts->n_phases - 1;
    guint G = parts->group_size, peer;

    (void)channel;
    while (role < phase->first_role)
        phase--;
    peer = tt_plan_peer(phase->plan, rank_inside(parts, phase, rank), 0, role - phase->first_role);
    if (peer == TT_NO_RANK)
        return TT_NO_RANK;
    return phase->is_outer ? peer * G + rank % G : rank / G * G + peer;
}

/* Exact if each phase ends everywhere at once, as rings do. */
static double
hierarchical_time_s(const TtPlan *plan, double alpha_s, double beta_s_per_byte)
{
    const Parts *parts = plan->data;
    double sum_s = 0;

    if (plan->n_rounds > 1)
        return NAN;
    for (guint i = 0; i < parts->n_phases; i++) {
        TtPlan part = *parts->phases[i].plan; /* with the share of the vector it works on */

        part.spec.count = plan->spec.count / (parts->phases[i].is_outer ? parts->group_size : 1);
        sum_s += part.algo->time_s ? part.algo->time_s(&part, alpha_s, beta_s_per_byte) : NAN;
    }
    return sum_s;
}

const TtAlgo tt_algo_hierarchical = {
    .name = "hierarchical",
    .summary = "INNER inside groups, OUTER across: hierarchical:INNER:OUTER (ring:ring)",
    .source = "Jia et al., arXiv:1807.11205, 2018; Cho et al., BlueConnect, MLSys 2019",
    .collectives = TT_BIT(TT_ALLREDUCE),
    .init = hierarchical_init,
    .clear = hierarchical_clear,
    .n_steps = hierarchical_n_steps,
    .step = hierarchical_step,
    .peer = hierarchical_peer,
    .time_s = hierarchical_time_s,
};
