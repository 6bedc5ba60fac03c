#include "cli/calibration.h"
#include "cli/measure.h"

#include "algos/table.h"
#include "exec/defaults.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#define N_RANKS         2
#define TINY_BYTES      8
#define SMALLEST_BYTES  96 /* 1.5 * 2^6; the last size is max_bytes or just below */
#define DEFAULT_MAX     (96ull << 20)
#define MIN_STEP_S      1e-9 /* nothing costs less than a few cycles */
#define RECORDINGS      7
#define STATE_PROBES    60
#define STATE_PAUSE_US  30000

/* The micro-plans, in the order in which they are solved. */
typedef enum { NOTHING, COPY, REDUCE, SEND, COPY_SEND, RECV_REDUCE, FORWARD_COPY, FORWARD_REDUCE,
               FORWARD_BOTH, N_MICRO } Micro;

/* The step each adds to what is already known. */
static const guint8 micro_op[N_MICRO] = {
    [NOTHING] = TT_OP_NOP,
    [COPY] = TT_OP_COPY,
    [REDUCE] = TT_OP_REDUCE,
    [SEND] = TT_OP_SEND, /* and recv */
    [COPY_SEND] = TT_OP_COPY_SEND,
    [RECV_REDUCE] = TT_OP_RECV_REDUCE,
    [FORWARD_COPY] = TT_OP_RECV_COPY_SEND,
    [FORWARD_REDUCE] = TT_OP_RECV_REDUCE_SEND,
    [FORWARD_BOTH] = TT_OP_RECV_REDUCE_COPY_SEND,
};

typedef struct {
    double bytes;           /* of one buffer */
    double footprint_bytes; /* of all buffers of a rank */
    double n_rounds;
    double time_s[N_MICRO]; /* one iteration */
    double send_share;      /* send / (send + recv), from the timeline */
} Point;

/* --- running micro-plans ----------------------------------------------------------------------- */

static guint
micro_steps(Micro micro, guint peer, TtStep *steps)
{
    TtStep reduce = tt_copy(TT_INPUT, TT_OUTPUT, 0);

    reduce.op = TT_OP_REDUCE;
    switch (micro) {
    case COPY: steps[0] = tt_copy(TT_INPUT, TT_OUTPUT, 0); return 1;
    case REDUCE: steps[0] = reduce; return 1;
    case SEND:
        steps[0] = tt_send(peer, TT_INPUT, 0);
        steps[1] = tt_recv(peer, TT_OUTPUT, 0);
        return 2;
    case COPY_SEND:
        steps[0] = tt_copy_send(peer, TT_INPUT, TT_OUTPUT, 0);
        steps[1] = tt_recv(peer, TT_OUTPUT, 0);
        return 2;
    case RECV_REDUCE:
        steps[0] = tt_send(peer, TT_INPUT, 0);
        steps[1] = tt_recv_reduce(peer, TT_INPUT, TT_OUTPUT, 0);
        return 2;
    case FORWARD_COPY: steps[1] = tt_recv_copy_send(peer, peer, TT_OUTPUT, 0); break;
    case FORWARD_REDUCE: steps[1] = tt_recv_reduce_send(peer, peer, TT_INPUT, 0); break;
    case FORWARD_BOTH:
        steps[1] = tt_recv_reduce_copy_send(peer, peer, TT_INPUT, TT_OUTPUT, 0);
        break;
    default: return 0;
    }
    steps[0] = tt_send(peer, TT_INPUT, 0);
    steps[2] = tt_recv(peer, TT_OUTPUT, 0);
    return 3;
}

static TtPlan *
micro_plan(Micro micro, guint64 bytes, GError **error)
{
    TtPlanSpec spec = { .collective = TT_ALLREDUCE,
                        .n_ranks = N_RANKS,
                        .count = bytes / sizeof(float),
                        .type = TT_FLOAT32 };
    TtTable *table = tt_table_new(N_RANKS, 1, 1);

    for (guint rank = 0; rank < N_RANKS; rank++) {
        TtStep steps[3];

        g_array_append_vals(tt_table_steps(table, rank, 0), steps, micro_steps(micro, 1 - rank, steps));
    }
    tt_exec_defaults(&spec, "ring");
    return tt_table_to_plan(table, "micro", &spec, error);
}

/* Share of the sending steps in the work of a recorded send-recv exchange. */
static double
send_share(const TtTimeline *timeline)
{
    double send = 0, recv = 0;

    for (guint i = 0; i < timeline->events->len; i++) {
        const TtEvent *e = &g_array_index(timeline->events, TtEvent, i);
        double busy = MAX(0, (double)(e->end_ps - e->begin_ps - e->wait_ps));

        if (e->op == TT_OP_SEND)
            send += busy;
        else if (e->op == TT_OP_RECV)
            recv += busy;
    }
    return send + recv > 0 ? send / (send + recv) : 0.5;
}

static gboolean
record_send_share(TtTeam *team, const TtPlan *plan, double *share, GError **error)
{
    TtRunOptions run = { .warmup = 1, .iterations = 1, .repeats = 1, .record = TRUE };
    double shares[RECORDINGS];

    for (guint i = 0; i < RECORDINGS; i++) {
        TtRunResult result = { 0 };

        if (!tt_team_run(team, plan, &run, &result, error))
            return FALSE;
        shares[i] = send_share(result.timeline);
        tt_run_result_clear(&result);
    }
    *share = CLAMP(tt_median(shares, RECORDINGS), 0.05, 0.95);
    return TRUE;
}

static gboolean
measure_point(TtTeam *team, guint64 bytes, double flag_s, const TtCalibrateOptions *options, Point *point,
              GError **error)
{
    TtMeasureOptions measure = { .samples = options->quick ? 3 : 7, .flag_s = flag_s };

    point->bytes = bytes;
    for (guint micro = 0; micro < N_MICRO; micro++) {
        g_autoptr(TtPlan) plan = micro_plan(micro, bytes, error);
        TtMeasurement m;

        if (!plan || !tt_measure(team, plan, &measure, &m, error))
            return FALSE;
        point->time_s[micro] = m.time_s;
        if (micro != SEND)
            continue;
        point->n_rounds = plan->n_rounds;
        point->footprint_bytes = 2.0 * bytes;
        if (!record_send_share(team, plan, &point->send_share, error))
            return FALSE;
    }
    return TRUE;
}

/* Watches the flag latency for a while and takes the state the machine is in most of the time. */
static gboolean
find_usual_state(TtTeam *team, const TtCalibrateOptions *options, double *flag_s, GError **error)
{
    g_autoptr(TtPlan) plan = micro_plan(SEND, TINY_BYTES, error);
    TtRunOptions run = { .warmup = 10, .iterations = 100, .repeats = 1 };
    guint n = options->quick ? STATE_PROBES / 3 : STATE_PROBES;
    g_autofree double *flags = g_new(double, n);

    if (!plan)
        return FALSE;
    for (guint i = 0; i < n; i++) {
        TtRunResult result = { 0 };

        if (!tt_team_run(team, plan, &run, &result, error))
            return FALSE;
        flags[i] = result.flag_s;
        tt_run_result_clear(&result);
        g_usleep(STATE_PAUSE_US);
    }
    *flag_s = tt_usual_state(flags, n);
    return TRUE;
}

/* --- solving ----------------------------------------------------------------------------------- */

/* Time of each step at one point, from times of iterations; see calibration.h for the sums. */
static void
solve(const Point *point, double latency_s, double *step_s)
{
    const double *t = point->time_s;
    double rounds = MAX(1, point->n_rounds), start = t[NOTHING];
    double both = MAX(2 * MIN_STEP_S, (t[SEND] - start) / rounds - latency_s);
    double send = both * point->send_share, recv = both - send;

    step_s[TT_OP_NOP] = 0;
    step_s[TT_OP_COPY] = (t[COPY] - start) / rounds;
    step_s[TT_OP_REDUCE] = (t[REDUCE] - start) / rounds;
    step_s[TT_OP_SEND] = send;
    step_s[TT_OP_RECV] = recv;
    step_s[TT_OP_COPY_SEND] = (t[COPY_SEND] - start) / rounds - latency_s - recv;
    step_s[TT_OP_RECV_REDUCE] = (t[RECV_REDUCE] - start) / rounds - latency_s - send;
    for (guint micro = FORWARD_COPY; micro <= FORWARD_BOTH; micro++)
        step_s[micro_op[micro]] = (t[micro] - start) / rounds - 2 * latency_s - both;
    for (guint op = TT_OP_COPY; op < TT_N_OPS; op++)
        step_s[op] = MAX(step_s[op], MIN_STEP_S);
}

/* @points[0] is the tiny one. */
static void
fill_costs(TtProfile *profile, const Point *points, guint n)
{
    double fixed_s[TT_N_OPS], step_s[TT_N_OPS];

    solve(&points[0], profile->latency_s, fixed_s);
    for (guint i = 1; i < n; i++) {
        double message = points[i].bytes / MAX(1, points[i].n_rounds);

        solve(&points[i], profile->latency_s, step_s);
        for (guint op = TT_OP_COPY; op < TT_N_OPS; op++) {
            TtOpCost *cost = &profile->op[op];

            cost->footprint_bytes[cost->n] = points[i].footprint_bytes;
            cost->fixed_s[cost->n] = fixed_s[op];
            cost->per_byte_s[cost->n] = MAX(0, step_s[op] - fixed_s[op]) / message;
            cost->n++;
        }
    }
}

/* --- more ranks than cores ---------------------------------------------------------------------- */

/* Two ranks that share a core exchange a flag: each exchange turns the core over twice. */
static gboolean
measure_switch(guint cores, TtProfile *profile, GError **error)
{
    TtTeamOptions options = { .n_ranks = 2 * cores, .transport = "shm", .max_bytes = 4096, .pin = TRUE };
    TtPlanSpec spec = { .n_ranks = options.n_ranks, .count = 2, .type = TT_FLOAT32 };
    TtMeasureOptions measure = { .samples = 5 };
    TtTable *table = tt_table_new(options.n_ranks, 1, 1);
    g_autoptr(TtTeam) team = NULL;
    g_autoptr(TtPlan) plan = NULL;
    TtMeasurement m;
    double work_s = profile->op[TT_OP_SEND].fixed_s[0] + profile->op[TT_OP_RECV].fixed_s[0];

    for (guint rank = 0; rank < options.n_ranks; rank++) {
        TtStep steps[3];
        guint peer = (rank + cores) % options.n_ranks;

        g_array_append_vals(tt_table_steps(table, rank, 0), steps, micro_steps(SEND, peer, steps));
    }
    tt_exec_defaults(&spec, "ring");
    plan = tt_table_to_plan(table, "switch", &spec, error);
    if (!plan || !(team = tt_team_start(&options, error)) || !tt_measure(team, plan, &measure, &m, error))
        return FALSE;
    profile->switch_s = MAX(0, m.time_s - 2 * work_s);
    return TRUE;
}

/* --- the whole ---------------------------------------------------------------------------------- */

static char *
cpu_name(void)
{
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;

    if (g_file_get_contents("/proc/cpuinfo", &text, NULL, NULL)) {
        lines = g_strsplit(text, "\n", 64);
        for (guint i = 0; lines[i]; i++) {
            const char *colon = strchr(lines[i], ':');

            if (g_str_has_prefix(lines[i], "model name") && colon)
                return g_strstrip(g_strdup(colon + 1));
        }
    }
    return g_strdup("unknown CPU");
}

static guint
list_sizes(const TtCalibrateOptions *options, guint64 *sizes)
{
    guint64 max = options->max_bytes ? options->max_bytes : DEFAULT_MAX;
    guint n = 0;

    sizes[n++] = TINY_BYTES;
    for (guint64 bytes = SMALLEST_BYTES; bytes <= max && n < TT_PROFILE_MAX_POINTS;
         bytes *= options->quick ? 4 : 2)
        sizes[n++] = bytes;
    return n;
}

static gboolean
measure_all(TtTeam *team, const TtCalibrateOptions *options, TtProfile *profile, GError **error)
{
    guint64 sizes[TT_PROFILE_MAX_POINTS + 1];
    Point points[TT_PROFILE_MAX_POINTS + 1];
    guint n = list_sizes(options, sizes);

    memset(points, 0, sizeof points);
    if (!find_usual_state(team, options, &profile->latency_s, error))
        return FALSE;
    for (guint i = 0; i < n; i++) {
        if (!options->quiet)
            g_printerr("\rcalibrating: %u of %u sizes ", i + 1, n);
        if (!measure_point(team, sizes[i], profile->latency_s, options, &points[i], error))
            return FALSE;
    }
    if (!options->quiet)
        g_printerr("\n");
    profile->start_s = points[0].time_s[NOTHING];
    fill_costs(profile, points, n);
    return TRUE;
}

char *
tt_calibration_path(void)
{
    return g_build_filename(g_get_user_cache_dir(), "tutti", "this.ini", NULL);
}

TtProfile *
tt_calibrate(const TtCalibrateOptions *options, GError **error)
{
    guint cores = MAX(1, g_get_num_processors());
    TtTeamOptions team_options = { .n_ranks = N_RANKS,
                                   .transport = "shm",
                                   .max_bytes = options->max_bytes ? options->max_bytes : DEFAULT_MAX,
                                   .pin = TRUE };
    g_autoptr(TtProfile) profile = tt_profile_ideal();
    g_autoptr(TtTeam) team = tt_team_start(&team_options, error);
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *cpu = cpu_name();

    if (!team)
        return NULL;
    g_free(profile->name);
    profile->name = g_strdup("this");
    g_free(profile->machine);
    profile->machine = g_strdup_printf("%s, %u cores", cpu, cores);
    g_free(profile->measured_at);
    profile->measured_at = g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");
    profile->covers_memory = TRUE;
    profile->lane_pushes = TRUE;
    profile->workers_per_rank = 1;
    profile->cores = cores;
    if (!measure_all(team, options, profile, error))
        return NULL;
    profile->credit_s = profile->latency_s;
    g_clear_pointer(&team, tt_team_stop);
    if (!measure_switch(cores, profile, error))
        return NULL;
    return g_steal_pointer(&profile);
}
