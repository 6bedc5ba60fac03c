/* accuracy_model.h - what can be put to the test by bench/accuracy.
 */
#pragma once
#include "bench/accuracy_flow.h"

typedef struct {
    const char *name, *summary;

    /* Fits constants on @training (const TtReplay *, their rows within); NULL: nothing is fitted. What it
     * returns goes to time_us as data, then to release (may be NULL). */
    gpointer (*fit)(const GPtrArray *training);
    TtTimeModel time_us;
    void (*release)(gpointer constants);
} TtAccuracyModel;

static inline gpointer
tt_fit_costs(const GPtrArray *training)
{
    TtNcclCosts *costs = tt_nccl_costs_new();
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) fit_for_it = g_ptr_array_new();

    for (guint i = 0; i < training->len; i++)
        if (tt_nccl_trains_on(training->pdata[i]))
            g_ptr_array_add(fit_for_it, training->pdata[i]);
    if (!tt_nccl_train(costs, fit_for_it, &error))
        g_printerr("bench_accuracy: %s\n", error->message);
    return costs;
}

static inline void
tt_free_costs(gpointer costs)
{
    tt_nccl_costs_free(costs);
}

/* The first is the default; ends with name NULL. A new model is a new row. */
static const TtAccuracyModel tt_accuracy_models[] = {
    { "tutti", "this project's model, fitted anew for each machine without its files", tt_fit_costs,
      tt_time_by_costs, tt_free_costs },
    { "built-in",
      "this project's model with the constants compiled in, which have seen these files", NULL,
      tt_time_by_costs, NULL },
    { "flow", "the same constants on a simulated plan, link by link: what tutti predict prints",
      tt_begin_flow, tt_time_by_flow, tt_end_flow },
    { "nccl", "what NCCL's own table believes, made to choose by", NULL, tt_time_by_nccl, NULL },
    { NULL },
};
