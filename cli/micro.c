#include "cli/micro.h"
#include "cli/measure.h"

#include "algos/passing.h"
#include "algos/table.h"
#include "exec/defaults.h"

#include <string.h>

#define LOOPS      3
#define RECORDINGS 3
#define LONG_S     2e-3 /* iterations this long need no warm-up and are measured fewer times */
#define FEW        2
#define LOOP_S     1.5e-3 /* length of a timed loop */
#define MOST_LOOPS 10000

#define MOST_STEPS 4 /* of a plan */

/* What its steps have to do, and how often. */
typedef struct {
    TtOp work[TT_MICRO_RANKS]
             [MOST_STEPS]; /* TT_OP_NOP: not all they have without passing directly */
    guint n_of[TT_N_OPS];  /* of one rank */
    gboolean lends_last;   /* nothing comes back after what is lent has been read */
} Content;

/* @direct: messages are long enough for it. */
static void
look_inside(const TtPlan *plan, gboolean direct, Content *c)
{
    g_autofree TtPassed *passed = direct ? tt_passing_of_plan(plan, TT_MICRO_RANKS, FALSE) : NULL;
    gsize n = 0;

    *c = (Content){ 0 };
    for (guint rank = 0; rank < TT_MICRO_RANKS; rank++)
        for (guint32 i = 0; i < tt_plan_n_steps(plan, rank, 0); i++, n++) {
            TtOp op = tt_plan_step(plan, rank, 0, i).op;
            TtOp work = passed ? tt_passing_work(op, passed[n].in, passed[n].out) : op;

            c->work[rank][i] = work == op ? op : TT_OP_NOP;
            c->n_of[c->work[rank][i]] += rank == 0;
        }
    c->lends_last = passed && n == 2 * TT_MICRO_RANKS && passed[0].out == TT_PASS_LENT;
}

/* Flags on both sides of a wait, one after the other, in each round; what is lent comes back once. */
static double
n_waits(TtMicro micro, const Content *c, double n_rounds)
{
    return micro < TT_MICRO_SEND           ? 0
           : micro < TT_MICRO_FORWARD_COPY ? 1 + (c->lends_last ? 1 / n_rounds : 0)
                                           : 2;
}

static gboolean
has_two_chunks(TtMicro micro)
{
    return micro >= TT_MICRO_FORWARD_COPY;
}

/* @mine: the chunk this rank forwards; the peer forwards the other. */
static guint
forward_steps(TtMicro micro, guint peer, guint32 mine, TtStep *steps)
{
    steps[0] = tt_send(peer, TT_INPUT, 1 - mine);
    if (micro == TT_MICRO_ANSWER) {
        steps[1] = tt_recv(peer, TT_OUTPUT, mine);
        steps[2] = tt_send(peer, TT_OUTPUT, mine);
        steps[3] = tt_recv(peer, TT_OUTPUT, 1 - mine);
        return 4;
    }
    steps[1] = micro == TT_MICRO_FORWARD_COPY ? tt_recv_copy_send(peer, peer, TT_OUTPUT, mine)
               : micro == TT_MICRO_FORWARD_REDUCE
                   ? tt_recv_reduce_send(peer, peer, TT_INPUT, mine)
                   : tt_recv_reduce_copy_send(peer, peer, TT_INPUT, TT_OUTPUT, mine);
    steps[2] = tt_recv(peer, TT_OUTPUT, 1 - mine);
    return 3;
}

static guint
micro_steps(TtMicro micro, guint peer, guint32 mine, TtStep *steps)
{
    if (has_two_chunks(micro))
        return forward_steps(micro, peer, mine, steps);
    if (micro == TT_MICRO_NOTHING)
        return 0;
    steps[0] = micro == TT_MICRO_COPY || micro == TT_MICRO_REDUCE ? tt_copy(TT_INPUT, TT_OUTPUT, 0)
               : micro == TT_MICRO_COPY_SEND /* what it reads is overwritten: not to be lent */
                   ? tt_copy_send(peer, TT_OUTPUT, TT_INPUT, 0)
                   : tt_send(peer, TT_INPUT, 0);
    if (micro == TT_MICRO_REDUCE)
        steps[0].op = TT_OP_REDUCE;
    if (micro < TT_MICRO_SEND)
        return 1;
    steps[1] = micro == TT_MICRO_RECV_REDUCE ? tt_recv_reduce(peer, TT_INPUT, TT_OUTPUT, 0)
                                             : tt_recv(peer, TT_OUTPUT, 0);
    return 2;
}

TtPlan *
tt_micro_plan(const TtMicroTeam *who, TtMicro micro, guint64 bytes, GError **error)
{
    guint n_ranks = who->n_ranks;
    TtPlanSpec spec = { .collective = TT_ALLREDUCE,
                        .n_ranks = n_ranks,
                        .count = bytes / sizeof(float),
                        .type = TT_FLOAT32 };
    guint n_chunks = has_two_chunks(micro) ? 2 : 1;
    TtTable *table = tt_table_new(n_ranks, n_chunks, 1);

    for (guint rank = 0; rank < n_ranks; rank++) {
        TtStep steps[MOST_STEPS];
        guint n = micro_steps(micro, (rank + n_ranks / 2) % n_ranks, 2 * rank / n_ranks, steps);

        g_array_append_vals(tt_table_steps(table, rank, 0), steps, n);
    }
    tt_exec_defaults_over(&spec, "direct", who->transport); /* whole vectors as messages, as here */
    if (bytes / spec.n_channels <= spec.slot_bytes)
        spec.count *= n_chunks;
    return tt_table_to_plan(table, "micro", &spec, error);
}

/* How an iteration's work is shared among its steps, by a recorded one. */
static void
share_work(const TtTimeline *timeline, const Content *c, double *share)
{
    double all = 0;

    memset(share, 0, TT_N_OPS * sizeof *share);
    for (guint i = 0; i < timeline->events->len; i++) {
        const TtEvent *e = &g_array_index(timeline->events, TtEvent, i);
        double busy = MAX(0, (double)(e->end_ps - e->begin_ps - e->wait_ps));

        share[c->work[e->rank % TT_MICRO_RANKS][e->step]] += busy;
        all += busy;
    }
    for (guint op = 0; op < TT_N_OPS; op++)
        share[op] = all > 0 && c->n_of[op] > 0 ? share[op] / c->n_of[op] / all : 0;
}

/* @n: how many times; set to FEW if iterations are long. */
static gboolean
time_loops(TtTeam *team, const TtPlan *plan, guint *n, double *time_s, double *flag_s,
           GError **error)
{
    TtRunOptions run = { .warmup = 1, .iterations = 1, .repeats = 1 };
    TtRunResult result = { 0 };

    if (!tt_team_run(team, plan, &run, &result, error)) /* how many make a loop? */
        return FALSE;
    run.iterations = (guint)CLAMP(LOOP_S / MAX(result.time_s, 1e-9), 1, MOST_LOOPS);
    if (result.time_s > LONG_S) {
        *n = FEW;
        run.warmup = 0;
    }
    tt_run_result_clear(&result);
    for (guint i = 0; i < *n; i++) {
        if (!tt_team_run(team, plan, &run, &result, error))
            return FALSE;
        time_s[i] = result.time_s;
        flag_s[i] = result.flag_s;
        tt_run_result_clear(&result);
    }
    return TRUE;
}

static gboolean
record_shares(TtTeam *team, const TtPlan *plan, const Content *content, guint n, double *share,
              double *flag_s, GError **error)
{
    TtRunOptions run = {
        .warmup = n == FEW ? 0 : 1, .iterations = 1, .repeats = 1, .record = TRUE
    };
    double shares[TT_N_OPS][RECORDINGS];

    for (guint i = 0; i < n; i++) {
        TtRunResult result = { 0 };
        double one[TT_N_OPS];

        if (!tt_team_run(team, plan, &run, &result, error))
            return FALSE;
        share_work(result.timeline, content, one);
        for (guint op = 0; op < TT_N_OPS; op++)
            shares[op][i] = one[op];
        flag_s[i] = result.flag_s;
        tt_run_result_clear(&result);
    }
    for (guint op = 0; op < TT_N_OPS; op++)
        share[op] = tt_median(shares[op], n);
    return TRUE;
}

gboolean
tt_micro_measure(TtTeam *team, const TtMicroTeam *who, TtMicro micro, guint64 bytes,
                 TtMicroSample *sample, GError **error)
{
    g_autoptr(TtPlan) plan = tt_micro_plan(who, micro, bytes, error);
    double time_s[LOOPS], flag_s[LOOPS + RECORDINGS];
    guint n = LOOPS;
    Content content;

    if (!plan)
        return FALSE;
    look_inside(
        plan, who->direct_bytes > 0 && (double)tt_plan_max_message_bytes(plan) >= who->direct_bytes,
        &content);
    if (!time_loops(team, plan, &n, time_s, flag_s, error) ||
        !record_shares(team, plan, &content, n, sample->share, flag_s + n, error))
        return FALSE;
    sample->n_rounds = (double)plan->n_rounds;
    sample->n_waits = n_waits(micro, &content, sample->n_rounds);
    sample->message_bytes = (double)tt_plan_chunk(plan, 0).count * sizeof(float) /
                            sample->n_rounds / plan->spec.n_channels;
    sample->time_s = tt_median(time_s, n);
    sample->flag_s = tt_median(flag_s, 2 * n); /* sorts */
    sample->steady = flag_s[2 * n - 1] < flag_s[0] * TT_PROFILE_STATE_FACTOR;
    return TRUE;
}

/* What the steps of a recorded iteration took without waiting, one lane of one rank. */
static gboolean
time_work(TtTeam *team, const TtPlan *plan, double *work_s, GError **error)
{
    TtRunOptions run = { .warmup = 1, .iterations = 1, .repeats = 1, .record = TRUE };
    double work[RECORDINGS];

    for (guint i = 0; i < RECORDINGS; i++) {
        TtRunResult result = { 0 };
        double busy_ps = 0;

        if (!tt_team_run(team, plan, &run, &result, error))
            return FALSE;
        for (guint e = 0; e < result.timeline->events->len; e++) {
            const TtEvent *event = &g_array_index(result.timeline->events, TtEvent, e);

            busy_ps += MAX(0, (double)(event->end_ps - event->begin_ps - event->wait_ps));
        }
        work[i] = busy_ps * 1e-12 / plan->spec.n_ranks / plan->n_lanes;
        tt_run_result_clear(&result);
    }
    *work_s = tt_median(work, RECORDINGS);
    return TRUE;
}

/* Of an exchange, at least this share is the flag's way: a clock of low resolution may give all to the steps. */
#define FLAG_LEAST 0.25
#define FLAG_TRIES 10

gboolean
tt_micro_measure_flag(TtTeam *team, const TtMicroTeam *who, guint64 bytes, double *flag_s,
                      GError **error)
{
    g_autoptr(TtPlan) send = tt_micro_plan(who, TT_MICRO_SEND, bytes, error);
    g_autoptr(TtPlan) answer = send ? tt_micro_plan(who, TT_MICRO_ANSWER, bytes, error) : NULL;
    double send_s[LOOPS], answer_s[LOOPS], none[LOOPS], work_s, exchange_s = 0;

    if (!answer || !time_work(team, send, &work_s, error))
        return FALSE;
    for (guint i = 0; exchange_s <= 0;
         i++) { /* other work here may make the longer one the quicker */
        guint n = LOOPS;

        if (i == FLAG_TRIES) {
            g_set_error(
                error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                "a message and its answer take no longer than a message alone: this machine is too "
                "busy to be measured");
            return FALSE;
        }
        if (!time_loops(team, send, &n, send_s, none, error) ||
            !time_loops(team, answer, &n, answer_s, none, error))
            return FALSE;
        exchange_s = tt_median(answer_s, n) - tt_median(send_s, n);
    }
    *flag_s = MAX(exchange_s - work_s, exchange_s * FLAG_LEAST);
    return TRUE;
}
