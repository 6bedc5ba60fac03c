#include "cli/calibration.h"
#include "cli/measure.h"
#include "cli/micro.h"
#include "cli/progress.h"

#include "algos/passing.h"
#include "exec/defaults.h"

#include <math.h>
#include <string.h>

#define TINY_BYTES     8
#define SMALLEST_BYTES 77           /* 1.2 * 2^6 */
#define DENSE_BYTES    (512u << 10) /* from here on caches end: two sizes for each doubling */
#define DEFAULT_MAX    (112ull << 20)
#define MOST_POINTS    (TT_PROFILE_MAX_POINTS + 1) /* the tiny one gives the fixed parts */
#define MIN_STEP_S     1e-9                        /* nothing costs less than a few cycles */

#define PASSES     7           /* over all sizes, so that a moment's noise is one voice of seven */
#define SLOW_BYTES (16u << 20) /* from here on only every SLOW_EVERYth pass */
#define SLOW_EVERY 3
#define BUDGET_S   50. /* then the states that are not through once are left out */
#define RESTLESS   3   /* budgets after which, if none is, all are taken as one */
#define RARE       20  /* a state seen less than once in so many probes is not waited for */
#define PAUSE_US   20000

typedef struct {
    double time_s[TT_N_MICRO][PASSES];          /* one iteration */
    double share[TT_N_MICRO][TT_N_OPS][PASSES]; /* of its work */
    double n_rounds[TT_N_MICRO], n_waits[TT_N_MICRO], message_bytes[TT_N_MICRO];
    guint n[TT_N_MICRO]; /* measured so often */
} Point;

/* One measurement to make: the @nth of its kind. */
typedef struct {
    guint8 point, micro, nth;
} Item;

/* What is known of one state. */
typedef struct {
    double flag_s;        /* mean over its measurements */
    guint n_seen, n_done; /* probes, items */
    Point *points;        /* [n_points] */
} State;

typedef struct {
    const TtCalibrateOptions *options;
    TtTeam *team;
    guint64 bytes[MOST_POINTS]; /* of one buffer */
    guint n_points;
    Item items[MOST_POINTS * TT_N_MICRO * PASSES];
    guint n_items, n_first_pass;
    State states[TT_PROFILE_MAX_STATES];
    guint n_states;
    TtMicroTeam who;
    gboolean is_gpu;
    gboolean as_one; /* the machine is too restless to tell states apart */
} Calibration;

/* Sizes of 1.2 * 2^k bytes and, among the large ones, 1.7 * 2^k, in whole elements. */
static void
list_sizes(Calibration *c)
{
    guint64 max = c->options->max_bytes ? c->options->max_bytes : DEFAULT_MAX;
    guint element = sizeof(float);

    c->bytes[c->n_points++] = TINY_BYTES;
    for (double bytes = SMALLEST_BYTES; bytes <= max && c->n_points + 1 < MOST_POINTS;
         bytes *= c->options->quick ? 4 : 2) {
        c->bytes[c->n_points++] = (guint64)bytes / element * element;
        if (bytes >= DENSE_BYTES && bytes * 1.7 / 1.2 <= max && !c->options->quick)
            c->bytes[c->n_points++] = (guint64)(bytes * 1.7 / 1.2) / element * element;
    }
}

static void
list_items(Calibration *c)
{
    for (guint pass = 0; pass < PASSES; pass++) {
        for (guint point = 0; point < c->n_points; point++) {
            gboolean slow = c->bytes[point] >= SLOW_BYTES;

            for (guint micro = 0; micro < TT_N_MICRO && !(slow && pass % SLOW_EVERY); micro++)
                c->items[c->n_items++] = (Item){ point, micro, slow ? pass / SLOW_EVERY : pass };
        }
        if (pass == 0)
            c->n_first_pass = c->n_items;
    }
}

/* --- measuring, state by state ------------------------------------------------------------------ */

static gboolean
is_same_state(double a_s, double b_s)
{
    return MAX(a_s, b_s) < MIN(a_s, b_s) * TT_PROFILE_STATE_FACTOR;
}

/* A state's first flag may have been an odd one: states whose means have come together are one. The one
 * that got further stays. */
static void
merge_states(Calibration *c)
{
    for (guint i = 0; i + 1 < c->n_states; i++)
        for (guint j = i + 1; j < c->n_states; j++) {
            State *a = &c->states[i], *b = &c->states[j];

            if (!is_same_state(a->flag_s, b->flag_s))
                continue;
            if (a->n_done < b->n_done) {
                State swap = *a;

                *a = *b;
                *b = swap;
            }
            g_free(b->points);
            *b = c->states[--c->n_states];
            j--;
        }
}

static State *
find_state(Calibration *c, double flag_s)
{
    for (guint i = 0; i < c->n_states; i++)
        if (c->as_one || is_same_state(flag_s, c->states[i].flag_s))
            return &c->states[i];
    if (c->n_states == TT_PROFILE_MAX_STATES)
        return NULL;
    c->states[c->n_states] = (State){ .flag_s = flag_s, .points = g_new0(Point, c->n_points) };
    return &c->states[c->n_states++];
}

/* GPUs have no moods; the team does not measure their flags. */
static gboolean
probe_gpus(Calibration *c, State **state, GError **error)
{
    double flag_s = 0;

    if (c->n_states == 0 && !tt_micro_measure_flag(c->team, &c->who, TINY_BYTES, &flag_s, error))
        return FALSE;
    *state = find_state(c, flag_s);
    (*state)->n_seen++;
    return TRUE;
}

static gboolean
probe(Calibration *c, State **state, GError **error)
{
    g_autoptr(TtPlan) plan = tt_micro_plan(&c->who, TT_MICRO_SEND, TINY_BYTES, error);
    TtRunOptions run = { .warmup = 10, .iterations = 100, .repeats = 1 };
    TtRunResult result = { 0 };

    if (c->is_gpu)
        return probe_gpus(c, state, error);
    if (!plan || !tt_team_run(c->team, plan, &run, &result, error))
        return FALSE;
    merge_states(c);
    *state = find_state(c, result.flag_s);
    if (*state)
        (*state)->flag_s += (result.flag_s - (*state)->flag_s) / ++(*state)->n_seen;
    tt_run_result_clear(&result);
    return TRUE;
}

static void
keep(Calibration *c, State *state, const TtMicroSample *sample)
{
    Item item = c->items[state->n_done++];
    Point *point = &state->points[item.point];

    point->time_s[item.micro][item.nth] = sample->time_s;
    for (guint op = 0; op < TT_N_OPS; op++)
        point->share[item.micro][op][item.nth] = sample->share[op];
    point->n_rounds[item.micro] = sample->n_rounds;
    point->n_waits[item.micro] = sample->n_waits;
    point->message_bytes[item.micro] = sample->message_bytes;
    point->n[item.micro]++;
}

/* The next item of the state the machine is in; thrown away if it changed meanwhile. */
static gboolean
measure_next(Calibration *c, GError **error)
{
    TtMicroSample sample;
    State *state;
    Item item;

    if (!probe(c, &state, error))
        return FALSE;
    if (!state || state->n_done == c->n_items) {
        g_usleep(PAUSE_US);
        return TRUE;
    }
    item = c->items[state->n_done];
    if (!tt_micro_measure(c->team, &c->who, item.micro, c->bytes[item.point], &sample, error))
        return FALSE;
    if (c->as_one || (sample.steady && find_state(c, sample.flag_s) == state))
        keep(c, state, &sample);
    return TRUE;
}

/* Full when every state that is seen often has all its passes; enough when time is up and one has a
 * pass. */
static gboolean
is_done(Calibration *c, double elapsed_s)
{
    double budget_s = c->options->quick ? BUDGET_S / 4 : BUDGET_S;
    gboolean full = c->n_states > 0, enough = FALSE;
    guint n_seen = 0;

    for (guint i = 0; i < c->n_states; i++)
        n_seen += c->states[i].n_seen;
    for (guint i = 0; i < c->n_states; i++) {
        const State *state = &c->states[i];

        full = full && (state->n_done == c->n_items || state->n_seen * RARE < n_seen);
        enough = enough || state->n_done >= c->n_first_pass;
    }
    if (!enough && elapsed_s > RESTLESS * budget_s)
        c->as_one = TRUE;
    return enough && (full || elapsed_s > budget_s);
}

static TtTeamOptions
team_options(const TtCalibrateOptions *options)
{
    return options->team ? *options->team : (TtTeamOptions){ .transport = "shm" };
}

/* A new team for every pass: where its memory comes to lie has a say in what small messages cost. */
static gboolean
restart_team(Calibration *c, GError **error)
{
    TtTeamOptions options = team_options(c->options);

    options.n_ranks = c->who.n_ranks;
    options.max_bytes = 2 * c->bytes[c->n_points - 1];
    options.pin = TRUE;

    g_clear_pointer(&c->team, tt_team_stop);
    c->team = tt_team_start(&options, error);
    return c->team != NULL;
}

static gboolean
measure_all(Calibration *c, GError **error)
{
    TtProgress progress = tt_progress_begin(c->options->quiet);
    gint64 begin_us = g_get_monotonic_time();

    for (guint n = 0;; n++) {
        double elapsed_s = (double)(g_get_monotonic_time() - begin_us) / 1e6;
        guint most = 0;

        if (is_done(c, elapsed_s))
            break;
        for (guint i = 0; i < c->n_states; i++)
            most = MAX(most, c->states[i].n_done);
        tt_progress_show(&progress, "calibrating: %u of %u measurements, %u state%s of the machine",
                         most, c->n_items, c->n_states, c->n_states == 1 ? "" : "s");
        if ((n % c->n_first_pass == 0 && !restart_team(c, error)) || !measure_next(c, error))
            return FALSE;
    }
    tt_progress_wipe(&progress);
    return TRUE;
}

/* --- solving ------------------------------------------------------------------------------------- */

static double
median_time_s(const Point *point, guint micro)
{
    double time_s[PASSES];

    memcpy(time_s, point->time_s[micro], sizeof time_s);
    return tt_median(time_s, point->n[micro]);
}

/* Time of a step @op in one round of a micro-plan, beside starting and waiting for flags. */
static double
step_time_s(const State *state, const Point *p, guint micro, guint op)
{
    double share[PASSES];
    double work_s =
        (median_time_s(p, micro) - median_time_s(p, TT_MICRO_NOTHING)) / p->n_rounds[micro] -
        p->n_waits[micro] * state->flag_s;

    memcpy(share, p->share[micro][op], sizeof share);
    return work_s * tt_median(share, p->n[micro]);
}

/* Median over the micro-plans whose step had all to do: its time, less @fixed_s,
 * divided by its bytes if @per_byte. */
static double
solve(const State *state, guint point, guint op, double fixed_s, gboolean per_byte)
{
    const Point *p = &state->points[point];
    double found[TT_N_MICRO];
    guint n = 0;

    for (guint micro = TT_MICRO_COPY; micro < TT_N_MICRO; micro++)
        if (p->share[micro][op][0] > 0)
            found[n++] = (step_time_s(state, p, micro, op) - fixed_s) /
                         (per_byte ? p->message_bytes[micro] : 1);
    return tt_median(found, n);
}

/* Point 0 is the tiny one: its times are the fixed parts. */
static void
fill_profile(const Calibration *c, const State *state, TtProfile *profile)
{
    profile->latency_s = profile->credit_s = state->flag_s;
    profile->start_s = median_time_s(&state->points[0], TT_MICRO_NOTHING);
    for (guint op = TT_OP_COPY; op < TT_N_OPS; op++) {
        TtOpCost *cost = &profile->op[op];
        double fixed_s = MAX(MIN_STEP_S, solve(state, 0, op, 0, FALSE));

        for (guint point = 1; point < c->n_points; point++) {
            cost->footprint_bytes[cost->n] = 2.0 * (double)c->bytes[point];
            cost->fixed_s[cost->n] = fixed_s;
            cost->per_byte_s[cost->n] = MAX(0, solve(state, point, op, fixed_s, TRUE));
            cost->n++;
        }
    }
}

static int
compare_seen(const void *a, const void *b)
{
    return (int)((const State *)b)->n_seen - (int)((const State *)a)->n_seen;
}

/* The state seen most first; those not through once left out. */
static void
fill_states(Calibration *c, TtProfile *profile)
{
    TtProfile *last = NULL;

    qsort(c->states, c->n_states, sizeof(State), compare_seen);
    for (guint i = 0; i < c->n_states; i++) {
        if (c->states[i].n_done < c->n_first_pass)
            continue;
        if (last)
            last->next = tt_profile_new_state(profile);
        last = last ? last->next : profile;
        fill_profile(c, &c->states[i], last);
    }
}

/* --- more ranks than cores ------------------------------------------------------------------------ */

/* Two ranks that share a core exchange a flag: each exchange turns the core over twice. */
static gboolean
measure_switch(const TtCalibrateOptions *how, guint cores, TtProfile *profile, GError **error)
{
    TtTeamOptions options = team_options(how);
    TtMeasureOptions measure = { .samples = 5 };
    TtMicroTeam who = { .n_ranks = 2 * cores, .transport = options.transport };
    g_autoptr(TtPlan) plan = tt_micro_plan(&who, TT_MICRO_SEND, TINY_BYTES, error);
    g_autoptr(TtTeam) team = NULL;
    TtMeasurement m;
    double work_s = profile->op[TT_OP_SEND].fixed_s[0] + profile->op[TT_OP_RECV].fixed_s[0];

    options.n_ranks = 2 * cores;
    options.max_bytes = 4096;
    options.pin = TRUE;
    if (!plan || !(team = tt_team_start(&options, error)) ||
        !tt_measure(team, plan, &measure, &m, error))
        return FALSE;
    for (; profile; profile = profile->next)
        profile->switch_s = MAX(0, m.time_s - 2 * work_s);
    return TRUE;
}

/* --- the whole ------------------------------------------------------------------------------------ */

static void
name_gpus(TtProfile *profile, const Calibration *c)
{
    g_autofree char *gpus = tt_team_gpus_text(c->team);

    g_free(profile->machine);
    profile->machine = g_strdup_printf("GPU %s, %s", gpus, c->who.transport);
    profile->conditions = tt_calibration_conditions(c->options->team, c->who.n_ranks);
}

TtProfile *
tt_calibrate(const TtCalibrateOptions *options, char **about, GError **error)
{
    guint cores = MAX(1, g_get_num_processors());
    Calibration c = { .options = options };
    const char *transport = team_options(options).transport;
    g_autoptr(TtProfile) profile = tt_calibration_describe(transport, cores);
    gboolean good;

    /* its two ranks have a core each, or are crowded on one */
    c.who = (TtMicroTeam){ .n_ranks = options->n_ranks ? options->n_ranks : TT_MICRO_RANKS,
                           .transport = transport };
    c.who.direct_bytes =
        cores < TT_MICRO_RANKS ? profile->direct_crowded_bytes : profile->direct_bytes;
    c.is_gpu = tt_calibration_is_of_gpus(transport);
    /* Over a network there is no telling the cores' moods apart by the latency. */
    c.as_one = !tt_calibration_is_of_memory(transport);

    list_sizes(&c);
    list_items(&c);
    good = measure_all(&c, error);
    if (good && c.is_gpu)
        name_gpus(profile, &c);
    if (good && c.is_gpu && about)
        good = (*about = tt_team_gpus_measure(c.team, error)) != NULL;
    g_clear_pointer(&c.team, tt_team_stop);
    if (good)
        fill_states(&c, profile);
    for (guint i = 0; i < c.n_states; i++)
        g_free(c.states[i].points);
    good = good && (c.is_gpu || measure_switch(options, cores, profile, error));
    return good ? g_steal_pointer(&profile) : NULL;
}
