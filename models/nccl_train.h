/* nccl_train.h - from replayed measurements to rows a fit can use.
 */
#pragma once
#include "models/nccl_fit.h"
#include "models/replay.h"

/* Whether a run is fit to learn from: allreduce, quality A or B (or not rated), nothing odd about it. */
gboolean tt_nccl_trains_on(const TtReplay *replay);

/* Fits @costs on the out-of-place rows (in-place ones where a file has no others) of @replays
 * (const TtReplay *) and notes in costs->from which machines each constant came from. */
gboolean tt_nccl_train(TtNcclCosts *costs, const GPtrArray *replays, GError **error);

/* A TtTimeModel: @data is a TtNcclCosts, NULL the built-in ones. */
double tt_time_by_costs(const TtReplay *replay, const TtMeasuredRow *row,
                        const TtNcclChoice *choice, gpointer data);
