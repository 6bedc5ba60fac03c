/* levels.h - the levels of fidelity that are formulas. Private to sim/. */
#pragma once
#include "algos/algo.h"
#include "sim/network.h"

/* A lower bound in its parts, so that several iterations can be held against the right one. */
typedef struct {
    double latency_s;   /* the way the data must go, whatever its size */
    double bandwidth_s; /* the bytes that must cross some cut, whatever the latency */
    char *limit;        /* what sets the larger of the two; owned */
} TtBound;

TtBound tt_bound(const TtPlan *plan, const TtNetwork *net);

/* The closed form of the algorithm. TT_SIM_ERROR_USAGE if there is none. */
gboolean tt_hockney_ps(const TtPlan *plan, const TtNetwork *net, const TtProfile *profile,
                       TtTime *time_ps, GError **error);
