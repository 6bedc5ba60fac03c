/* nccl_fit.h - fit the constants of nccl_time.h on measured rows.
 *
 * Least absolute error of log(predicted / measured), with the priors as springs: the most likely constants
 * if errors are Laplace distributed and priors log-normal. Solved by iteratively reweighted Gauss-Newton
 * with numeric derivatives. Each machine may also differ from its kind a little (TtMachineEffects), within
 * a prior of its own, so that one odd machine does not bend what is common to all; a machine nobody has
 * seen is predicted without effects.
 */
#pragma once
#include "models/nccl_time.h"

typedef struct {
    guint site;                   /* which machine: rows of one share effects */
    const TtNcclMachine *machine; /* borrowed */
    TtNcclOp op;
    TtNcclChoice choice;
    double measured_us;
} TtFitRow;

/* The most likely costs->value (with intervals) from @rows, starting at @costs. @n_sites: sites are below it.
 * Without the linear algebra library this is built without, fails with TT_NCCL_ERROR_USAGE. */
gboolean tt_nccl_fit(TtNcclCosts *costs, const TtFitRow *rows, guint n_rows, guint n_sites,
                     GError **error);
