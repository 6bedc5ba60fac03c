#include "cli/tuning.h"

#include <math.h>

/* Rounds are tried in powers of two, the time being flat around its minimum. */
#define MAX_LOG 14

/* Below this a message is all latency, and cutting it cannot pay. */
#define MIN_MESSAGE_BYTES 1024

/* Rounds multiply what must be simulated. */
#define MAX_MESSAGES 4e6

typedef struct {
    const char *algorithm;
    TtPlanSpec spec;
    const TtTopology *topo;
    TtSimOptions options;
    guint64 message_bytes;      /* of one round */
    double time_s[MAX_LOG + 1]; /* by log2 of the rounds; NAN: not tried */
} Search;

static guint64
slot_bytes_for(const Search *s, int log_rounds)
{
    guint64 bytes = s->message_bytes >> log_rounds;

    return log_rounds == 0 ? 0 : MAX(64, (bytes + 63) / 64 * 64);
}

/* INFINITY where it cannot be. */
static double
time_of(Search *s, int log_rounds)
{
    g_autoptr(TtPlan) plan = NULL;
    TtSimResult result = { 0 };

    if (log_rounds < 0 || log_rounds > MAX_LOG ||
        (log_rounds > 0 && s->message_bytes >> log_rounds < MIN_MESSAGE_BYTES))
        return INFINITY;
    if (!isnan(s->time_s[log_rounds]))
        return s->time_s[log_rounds];
    s->time_s[log_rounds] = INFINITY;
    s->spec.slot_bytes = slot_bytes_for(s, log_rounds);
    plan = tt_plan_new(s->algorithm, &s->spec, NULL);
    if (plan && tt_sim_run(plan, s->topo, &s->options, &result, NULL))
        s->time_s[log_rounds] = tt_ps_to_seconds(result.time_ps);
    tt_sim_result_clear(&result);
    return s->time_s[log_rounds];
}

/* A pipeline of depth D over R rounds takes (D + R - 1) * (alpha + beta * n / R), least for
 * R = sqrt((D - 1) * beta * n / alpha). Trees are 2 log2 P deep. */
static int
first_guess(const Search *s)
{
    guint far = s->spec.n_ranks - 1;
    double alpha_s = tt_ps_to_seconds(tt_topology_route_latency_ps(s->topo, 0, far));
    double rate = tt_topology_route_bytes_per_s(s->topo, 0, far);
    double depth = 2 * log2(s->spec.n_ranks), rounds;

    if (s->options.profile)
        alpha_s += s->options.profile->latency_s;
    rounds = sqrt(depth * s->message_bytes / rate / MAX(alpha_s, 1e-9));
    return (int)CLAMP(round(log2(MAX(1, rounds))), 0, MAX_LOG);
}

/* So many doublings of the rounds that the simulation stays small. */
static int
most_rounds(const TtPlan *plan)
{
    double messages = 2.0 * plan->spec.n_ranks * plan->n_lanes;

    return (int)CLAMP(floor(log2(MAX_MESSAGES / messages)), 0, MAX_LOG);
}

guint64
tt_tune_slot_bytes(const char *algorithm, const TtPlanSpec *spec, const TtTopology *topo,
                   const TtSimOptions *options)
{
    Search s = { .algorithm = algorithm, .spec = *spec, .topo = topo, .options = *options };
    g_autoptr(TtPlan) plan = NULL;
    int best, most;

    s.spec.slot_bytes = 0;
    s.options.record = FALSE;
    s.options.iterations = 1;
    plan = tt_plan_new(algorithm, &s.spec, NULL);
    if (!plan || options->level == TT_LEVEL_BOUND || spec->n_ranks < 2)
        return 0;
    if (plan->n_chunks >= spec->n_ranks && spec->n_ranks > 2)
        return 0; /* the data is already in as many pieces as there are ranks, all of them moving */
    s.message_bytes = tt_plan_max_message_bytes(plan);
    for (int i = 0; i <= MAX_LOG; i++)
        s.time_s[i] = NAN;

    most = most_rounds(plan);
    best = MIN(first_guess(&s), most);
    while (best > 0 && isinf(time_of(&s, best)))
        best--;
    while (best < most && time_of(&s, best + 1) < time_of(&s, best))
        best++;
    while (best > 0 && time_of(&s, best - 1) <= time_of(&s, best))
        best--;
    return slot_bytes_for(&s, best);
}
