#include "cli/tuning.h"

#include <math.h>

/* Rounds are tried in powers of two, the time being flat around its minimum. */
#define MAX_LOG 14

/* Below this a message is all latency, and cutting it cannot pay. */
#define MIN_MESSAGE_BYTES 1024

/* Twice the rounds must gain this much, or they are not worth their flags and slots. */
#define WORTH 0.98

/* A pipeline of depth D over R rounds loses D / R to filling and draining: more rounds than this
 * many times D gain nothing. */
#define ROUNDS_PER_DEPTH 8

/* Trying is worth it while it is cheap; above, the formula decides. */
#define MAX_TRIED_MESSAGES 1e5
#define MAX_MESSAGES       4e6

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

/* Trees are this deep, up and down again. */
static double
depth(const Search *s)
{
    return 2 * log2(s->spec.n_ranks);
}

static int
nearest_log(double rounds)
{
    return (int)CLAMP(round(log2(MAX(1, rounds))), 0, MAX_LOG);
}

/* A pipeline of depth D over R rounds takes (D + R - 1) * (alpha + beta * n / R), least for
 * R = sqrt((D - 1) * beta * n / alpha). */
static int
first_guess(const Search *s)
{
    guint far = s->spec.n_ranks - 1;
    double alpha_s = tt_ps_to_seconds(tt_topology_route_latency_ps(s->topo, 0, far));
    double rate = tt_topology_route_bytes_per_s(s->topo, 0, far);

    if (s->options.profile)
        alpha_s += s->options.profile->latency_s;
    return nearest_log(sqrt(depth(s) * s->message_bytes / rate / MAX(alpha_s, 1e-9)));
}

/* So many doublings that a plan of @per_round messages a round stays below @messages. */
static int
most_rounds(double messages, double per_round)
{
    return (int)CLAMP(floor(log2(messages / per_round)), 0, MAX_LOG);
}

/* The formula's guess, or the best of the few rounds that are cheap to try: the guess knows trees, not
 * phases that wait many times a round. */
static int
better_of(Search *s, int guess, int cheap)
{
    while (cheap > 0 && WORTH * time_of(s, cheap - 1) <= time_of(s, cheap))
        cheap--;
    return time_of(s, guess) < time_of(s, cheap) ? guess : cheap;
}

guint64
tt_tune_slot_bytes(const char *algorithm, const TtPlanSpec *spec, const TtTopology *topo,
                   const TtSimOptions *options)
{
    Search s = { .algorithm = algorithm, .spec = *spec, .topo = topo, .options = *options };
    g_autoptr(TtPlan) plan = NULL;
    double per_round;
    int best, most;

    s.spec.slot_bytes = 0;
    s.options.record = FALSE;
    s.options.iterations = 1;
    plan = tt_plan_new(algorithm, &s.spec, NULL);
    if (!plan || options->level == TT_LEVEL_BOUND || spec->n_ranks < 2)
        return 0;
    if (plan->n_chunks >= spec->n_ranks && spec->n_ranks > 2 && plan->lanes_per_channel == 1)
        return 0; /* as many pieces as ranks, all of them moving, and no lanes to work side by side */
    s.message_bytes = tt_plan_max_message_bytes(plan);
    for (int i = 0; i <= MAX_LOG; i++)
        s.time_s[i] = NAN;

    per_round = 2.0 * spec->n_ranks * plan->n_lanes;
    best = MIN(first_guess(&s), nearest_log(ROUNDS_PER_DEPTH * depth(&s)));
    best = MIN(best, most_rounds(MAX_MESSAGES, per_round));
    while (best > 0 && s.message_bytes >> best < MIN_MESSAGE_BYTES)
        best--;
    most = most_rounds(MAX_TRIED_MESSAGES, per_round);
    if (best > most)
        return slot_bytes_for(&s, better_of(&s, best, most));
    while (best < most && time_of(&s, best + 1) < WORTH * time_of(&s, best))
        best++;
    while (best > 0 && WORTH * time_of(&s, best - 1) <= time_of(&s, best))
        best--;
    return slot_bytes_for(&s, best);
}
