#include "models/nccl_fit.h"

#include <gsl/gsl_linalg.h>
#include <math.h>
#include <string.h>

enum { N_EFFECTS = sizeof(TtMachineEffects) / sizeof(double), MAX_ITERATIONS = 40 };

#define STEP      1e-4 /* of a logarithm, for derivatives */
#define CORNER    0.03 /* errors below this weigh as squares */
#define MAX_SHIFT 0.5  /* of a logarithm, in one iteration */
#define ENOUGH    0.02 /* change of the objective that ends it */

#define TYPICAL_ROWS 25 /* of a machine whose rows weigh 1 */
#define SITE_POWER   0.4

/* Spread of effects among machines of a kind (logarithms): calls, hops, NICs, host memory. */
static const double effect_sigma[N_EFFECTS] = { 0.25, 0.1, 0.2, 0.3 };

typedef struct {
    const TtFitRow *rows;
    guint n_rows, n_sites, n; /* n: unknowns */
    double *x;                /* their logarithms: costs, then effects of each site */
    double *prior, *sigma;
    double *value;      /* exp(x), scratch */
    double *residual;   /* of the rows */
    double *jacobian;   /* n_rows x n */
    guint *first, *row; /* rows of each site: row[first[s]] .. row[first[s + 1] - 1] */
} Fit;

static double
predict(const double *value, const TtFitRow *row)
{
    const TtMachineEffects *effects =
        (const TtMachineEffects *)(const void *)(value + TT_N_COSTS + row->site * N_EFFECTS);

    return tt_nccl_model_us(value, effects, row->machine, &row->op, &row->choice);
}

static void
evaluate(const Fit *f, const double *x, double *residual)
{
    for (guint j = 0; j < f->n; j++)
        f->value[j] = exp(x[j]);
    for (guint i = 0; i < f->n_rows; i++)
        residual[i] = log(predict(f->value, &f->rows[i]) / f->rows[i].measured_us);
}

/* Many rows of one machine tell less than as many of several: a machine's say grows with its rows to the
 * power of 1 - SITE_POWER. */
static double
row_weight(const Fit *f, guint i)
{
    guint site = f->rows[i].site, n = f->first[site + 1] - f->first[site];

    return pow((double)TYPICAL_ROWS / n, SITE_POWER);
}

static double
objective(const Fit *f, const double *x, const double *residual)
{
    double sum = 0;

    for (guint i = 0; i < f->n_rows; i++)
        sum += row_weight(f, i) * fabs(residual[i]);
    for (guint j = 0; j < f->n; j++) {
        double z = (x[j] - f->prior[j]) / f->sigma[j];

        sum += 0.5 * z * z;
    }
    return sum;
}

/* Whether a row can depend on a cost at all: factors belong to a generation, a network, a protocol. */
static gboolean
touches(guint cost, const TtFitRow *row)
{
    guint proto = row->choice.proto;

    if (cost < TT_COSTS_PROTO)
        return TRUE;
    if (cost < TT_COSTS_GEN)
        return (cost - TT_COSTS_PROTO) % TT_NCCL_N_PROTOS == proto &&
               (cost < TT_COSTS_GEN_PROTO ||
                (cost - TT_COSTS_GEN_PROTO) / (TT_N_GEN_PROTO_COSTS * TT_NCCL_N_PROTOS) ==
                    row->machine->gen);
    if (cost < TT_COSTS_NIC_PROTO)
        return (cost - TT_COSTS_GEN) / TT_N_GEN_COSTS == row->machine->gen;
    if (row->machine->n_nodes < 2)
        return FALSE;
    if (cost < TT_COSTS_NIC_SHARE)
        return (cost - TT_COSTS_NIC_PROTO) % TT_NCCL_N_PROTOS == proto &&
               (cost - TT_COSTS_NIC_PROTO) / (TT_N_NIC_PROTO_COSTS * TT_NCCL_N_PROTOS) ==
                   row->machine->nic;
    return cost - TT_COSTS_NIC_SHARE == row->machine->nic;
}

/* Costs touch the rows they may, effects those of their site. */
static void
differentiate(const Fit *f)
{
    memset(f->jacobian, 0, sizeof(double) * f->n_rows * f->n);
    for (guint j = 0; j < f->n; j++) {
        double was = f->value[j];
        guint site = j < TT_N_COSTS ? 0 : (j - TT_N_COSTS) / N_EFFECTS;
        guint from = j < TT_N_COSTS ? 0 : f->first[site];
        guint to = j < TT_N_COSTS ? f->n_rows : f->first[site + 1];

        f->value[j] = was * exp(STEP);
        for (guint k = from; k < to; k++) {
            guint i = j < TT_N_COSTS ? k : f->row[k];
            double moved;

            if (j < TT_N_COSTS && !touches(j, &f->rows[i]))
                continue;
            moved = log(predict(f->value, &f->rows[i]) / f->rows[i].measured_us);

            f->jacobian[(gsize)i * f->n + j] = (moved - f->residual[i]) / STEP;
        }
        f->value[j] = was;
    }
}

/* The weighted normal equations: A is n x n, b what the next shift answers. */
static void
assemble(const Fit *f, gsl_matrix *a, gsl_vector *b)
{
    g_autofree guint *used = g_new(guint, f->n);

    gsl_matrix_set_zero(a);
    for (guint j = 0; j < f->n; j++) {
        double z = (f->x[j] - f->prior[j]) / f->sigma[j];
        double w = 1 / (f->sigma[j] * f->sigma[j]);

        gsl_matrix_set(a, j, j, w);
        gsl_vector_set(b, j, -w * z * f->sigma[j]);
    }
    for (guint i = 0; i < f->n_rows; i++) {
        const double *row = f->jacobian + (gsize)i * f->n;
        double w = row_weight(f, i) / MAX(fabs(f->residual[i]), CORNER);
        guint n_used = 0;

        for (guint j = 0; j < f->n; j++)
            if (row[j] != 0)
                used[n_used++] = j;
        for (guint k = 0; k < n_used; k++) {
            guint j = used[k];

            *gsl_vector_ptr(b, j) -= w * row[j] * f->residual[i];
            for (guint l = 0; l <= k; l++)
                *gsl_matrix_ptr(a, j, used[l]) += w * row[j] * row[used[l]];
        }
    }
}

/* One shift towards the answer, halved until it helps. FALSE when nothing more is to be had. */
static gboolean
improve(Fit *f, gsl_matrix *a, gsl_vector *b, double *trial, double *trial_residual)
{
    double before = objective(f, f->x, f->residual), after;

    differentiate(f);
    assemble(f, a, b);
    if (gsl_linalg_cholesky_decomp1(a) || gsl_linalg_cholesky_svx(a, b))
        return FALSE;
    for (double scale = 1; scale > 0.05; scale /= 2) {
        for (guint j = 0; j < f->n; j++)
            trial[j] = f->x[j] + scale * CLAMP(gsl_vector_get(b, j), -MAX_SHIFT, MAX_SHIFT);
        evaluate(f, trial, trial_residual);
        after = objective(f, trial, trial_residual);
        if (after < before) {
            memcpy(f->x, trial, sizeof(double) * f->n);
            memcpy(f->residual, trial_residual, sizeof(double) * f->n_rows);
            return before - after > ENOUGH;
        }
    }
    evaluate(f, f->x, f->residual);
    return FALSE;
}

static void
sort_rows(Fit *f)
{
    g_autofree guint *next = NULL;

    for (guint i = 0; i < f->n_rows; i++)
        f->first[f->rows[i].site + 1]++;
    for (guint s = 0; s < f->n_sites; s++)
        f->first[s + 1] += f->first[s];
    next = g_new(guint, f->n_sites + 1);
    memcpy(next, f->first, sizeof(guint) * (f->n_sites + 1));
    for (guint i = 0; i < f->n_rows; i++)
        f->row[next[f->rows[i].site]++] = i;
}

static void
start(Fit *f, const TtNcclCosts *costs)
{
    for (guint j = 0; j < f->n; j++) {
        gboolean effect = j >= TT_N_COSTS;

        f->prior[j] = effect ? 0 : log(tt_cost_prior(j));
        f->sigma[j] = effect ? effect_sigma[(j - TT_N_COSTS) % N_EFFECTS] : tt_cost_sigma(j);
        f->x[j] = effect ? 0 : log(costs->value[j]);
    }
    sort_rows(f);
    evaluate(f, f->x, f->residual);
}

/* Values, and intervals from the curvature at the answer. */
static void
finish(Fit *f, TtNcclCosts *costs, gsl_matrix *a, gsl_vector *b)
{
    gboolean good;

    differentiate(f);
    assemble(f, a, b);
    good = !gsl_linalg_cholesky_decomp1(a) && !gsl_linalg_cholesky_invert(a);
    for (guint j = 0; j < TT_N_COSTS; j++) {
        double s = good ? sqrt(MAX(0, gsl_matrix_get(a, j, j))) : 0;

        costs->value[j] = exp(f->x[j]);
        costs->low[j] = exp(f->x[j] - 1.96 * s);
        costs->high[j] = exp(f->x[j] + 1.96 * s);
    }
}

gboolean
tt_nccl_fit(TtNcclCosts *costs, const TtFitRow *rows, guint n_rows, guint n_sites, GError **error)
{
    guint n = TT_N_COSTS + n_sites * N_EFFECTS;
    g_autofree double *memory = g_new0(double, 5 * (gsize)n + 2 * (gsize)n_rows);
    g_autofree double *jacobian = g_new(double, (gsize)n_rows *n);
    g_autofree guint *first = g_new0(guint, n_sites + 1), *row = g_new(guint, n_rows);
    Fit f = { .rows = rows, .n_rows = n_rows, .n_sites = n_sites, .n = n };
    double *trial = memory + 4 * (gsize)n, *trial_residual = memory + 5 * (gsize)n + n_rows;
    gsl_error_handler_t *handler = gsl_set_error_handler_off();
    gsl_matrix *a = gsl_matrix_alloc(n, n);
    gsl_vector *b = gsl_vector_alloc(n);

    (void)error;
    f.x = memory;
    f.prior = memory + n;
    f.sigma = memory + 2 * (gsize)n;
    f.value = memory + 3 * (gsize)n;
    f.residual = memory + 5 * (gsize)n;
    f.jacobian = jacobian;
    f.first = first;
    f.row = row;
    start(&f, costs);
    for (guint i = 0; i < MAX_ITERATIONS && improve(&f, a, b, trial, trial_residual); i++)
        ;
    finish(&f, costs, a, b);
    gsl_matrix_free(a);
    gsl_vector_free(b);
    gsl_set_error_handler(handler);
    return TRUE;
}
