#include "sim/stretch.h"

#include "sim/engine_private.h"
#include "sim/leap.h"

#include <math.h>

#define FIRST_ROUNDS 16 /* of the longest of the first three runs */
#define LEAST_ROUNDS 28 /* three runs of fewer cost more than all rounds */
#define FEW_ROUNDS                                                                                 \
    128 /* unless paced, looking for a short cut costs as much as going all the way */
#define FILLED                                                                                     \
    0.75 /* of a run's time must go with its rounds; the rest fills and empties the pipeline */
#define CAUTION 4 /* slopes still change by what they did, a few times over */
#define ROOMY                                                                                      \
    0.85 /* links no busier than this share of a pace do not slow it down once all is under way */
#define SAME  1e-4 /* paces are rounded to picoseconds */
#define LASTS 0.6  /* as seen on trees of up to 256 nodes */
#define PACED_TOLERANCE                                                                            \
    11            /* where the slope in the end is known, only what fills the pipeline is guessed */
#define SETTLED 2 /* a buffer lasts for the way there and back */

typedef struct {
    guint64 n_rounds, n_messages;
    TtTime takes_ps;
} Probe;

static gboolean
probe(TtEngine *e, guint64 n_rounds, Probe *found, GError **error)
{
    tt_engine_rewind(e, n_rounds);
    if (!tt_engine_run(e, error))
        return FALSE;
    *found = (Probe){ n_rounds, e->n_messages, e->end_ps };
    return TRUE;
}

static double
slope(const Probe *a, const Probe *b)
{
    return (double)(b->takes_ps - a->takes_ps) / (double)(b->n_rounds - a->n_rounds);
}

/* Makes of the run that was last that of all rounds. */
static void
stretch(TtEngine *e, const Probe *a, const Probe *b, double error)
{
    guint64 left = e->plan->n_rounds - b->n_rounds;
    double times = (double)e->plan->n_rounds / (double)e->n_rounds - 1;

    e->end_ps = b->takes_ps + (TtTime)llround(slope(a, b) * (double)left);
    e->first_end_ps = e->end_ps;
    e->n_messages =
        b->n_messages + (b->n_messages - a->n_messages) / (b->n_rounds - a->n_rounds) * left;
    for (guint32 c = 0; c < e->n_connections; c++)
        tt_flows_add_carried(e->flows, c, (guint64)((double)tt_flows_carried(e->flows, c) * times));
    for (guint32 i = 0; i < e->total_lanes; i++)
        e->work[i].busy_ps += (TtTime)((double)e->work[i].busy_ps * times);
    e->leaps->leaps[0].n_leapt += left;
    e->leaps->inexactness = MAX(e->leaps->inexactness, error);
}

static gboolean
is_leaping(const TtEngine *e)
{
    for (guint32 k = 0; k < e->leaps->n_leaps; k++)
        if (e->leaps->leaps[k].n_leapt == 0)
            return FALSE;
    return TRUE;
}

/* How far rounds are from being all alike: the first from the mean. */
static double
unevenness(const TtEngine *e)
{
    double pieces =
        (double)e->plan->n_chunks * e->plan->spec.n_channels * (double)e->plan->n_rounds;
    double mean = (double)e->plan->spec.count * e->element_bytes / pieces, most = 0;

    for (guint c = 0; c < e->plan->spec.n_channels && !e->even_bytes; c++)
        most = MAX(most, fabs((double)tt_engine_piece_bytes(e, c, 0) / mean - 1));
    return most;
}

/* TRUE if the rest could be told from the three runs. */
static gboolean
tell(TtEngine *e, const Probe found[3], double tolerance)
{
    double before = slope(&found[0], &found[1]), last = slope(&found[1], &found[2]);
    double differ = CAUTION * fabs(before - last) / MAX(last, 1e-9) + unevenness(e);

    if (last * (double)found[2].n_rounds < FILLED * (double)found[2].takes_ps || differ > tolerance)
        return FALSE;
    stretch(e, &found[1], &found[2], tolerance);
    return TRUE;
}

/* --- paced runs ---------------------------------------------------------------------------------
 */

/* Picoseconds of a round that the slowest connection takes by its gap alone. 0 if there are no gaps, or if
 * links are too busy or buffers too short for the gap alone to count. */
static double
pace_ps(const TtEngine *e)
{
    g_autofree double *bytes = g_new0(double, MAX(1, e->net->n_links));
    double pace = 0, link = 0;
    TtTime latency_ps = 0;

    for (guint32 c = 0; e->paces && c < e->n_connections; c++) {
        pace = MAX(pace, (double)e->paces[c].gap_ps);
        latency_ps = MAX(latency_ps, e->connections[c].latency_ps);
    }
    if (pace * e->plan->spec.n_slots < SETTLED * (double)(latency_ps + e->credit_ps))
        return 0;
    tt_flows_add_bytes(e->flows, bytes);
    for (TtLink l = 0; pace > 0 && l < e->net->n_links; l++)
        if (bytes[l] > 0)
            link = MAX(link, bytes[l] / e->net->link(e->net->context, l).capacity_bytes_per_s *
                                 TT_PS_PER_S);
    return link / (double)e->n_rounds <= ROOMY * pace ? pace : 0;
}

/* The two runs grew by more than their slowest pace, which is what rounds take in the end: the excess, which
 * nearly all comes from filling the pipeline, lasts for LASTS times as many rounds again. TRUE if what
 * that may be wrong by is little. */
static gboolean
tell_paced(TtEngine *e, const Probe *a, const Probe *b, double pace, double tolerance)
{
    double left = (double)(e->plan->n_rounds - b->n_rounds);
    double over = slope(a, b) - pace;
    double excess = LASTS * over * MIN(left, (double)b->n_rounds);
    double error = excess / ((double)b->takes_ps + pace * left);
    Probe as_left = *a;

    if (error > PACED_TOLERANCE * tolerance || over < -SAME * pace)
        return FALSE;
    as_left.takes_ps =
        b->takes_ps - (TtTime)llround((pace + excess / left) * (double)(b->n_rounds - a->n_rounds));
    stretch(e, &as_left, b, MAX(error, TT_LEAP_TOLERANCE));
    return TRUE;
}

/* Runs twice as many rounds if they may be paced. TRUE if that told the rest; FALSE also with
 * an error: then *@good is. */
static gboolean
run_paced(TtEngine *e, double tolerance, gboolean *good, GError **error)
{
    Probe before, found = { 0 };
    double pace;

    *good = probe(e, FIRST_ROUNDS / 2, &found, error);
    if (!*good || (pace = pace_ps(e)) <= 0)
        return FALSE;
    before = found;
    *good = probe(e, FIRST_ROUNDS, &found, error);
    return *good && !is_leaping(e) && tell_paced(e, &before, &found, pace, tolerance);
}

gboolean
tt_engine_run_long(TtEngine *self, double tolerance, GError **error)
{
    guint64 n = FIRST_ROUNDS, n_rounds = self->plan->n_rounds;
    Probe found[3] = { 0 };
    gboolean leaps, good = TRUE;

    if (tolerance <= TT_LEAP_TOLERANCE || n_rounds < LEAST_ROUNDS || self->iterations > 1 ||
        !self->leaps)
        return tt_engine_run(self, error);
    if (self->paces && (run_paced(self, tolerance, &good, error) || !good))
        return good;
    if (self->paces && n_rounds <= FEW_ROUNDS) {
        tt_engine_rewind(self, n_rounds);
        return tt_engine_run(self, error);
    }
    if (!probe(self, n, &found[2], error))
        return FALSE;
    leaps = is_leaping(self);
    if (!leaps && !(probe(self, n / 4, &found[0], error) && probe(self, n / 2, &found[1], error)))
        return FALSE;
    while (!leaps && n <= n_rounds / 2) {
        if (tell(self, found, tolerance))
            return TRUE;
        n *= 2;
        found[0] = found[1];
        found[1] = found[2];
        if (n <= n_rounds / 2 && !probe(self, n, &found[2], error))
            return FALSE;
        leaps = is_leaping(self);
    }
    tt_engine_rewind(self, n_rounds);
    return tt_engine_run(self, error);
}
