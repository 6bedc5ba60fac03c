/* calibration.h - measure what the executor's steps cost on this machine, as a profile.
 *
 * Two ranks run micro-plans of one to three steps at sizes of their own (1.5 * 2^k bytes), in the
 * machine's usual state (see measure.h). Both do the same in lockstep, so the time of an iteration is a
 * sum, and each plan adds one unknown to those already known:
 *
 *     nothing                start
 *     copy | reduce          start + copy | start + reduce
 *     send, recv             start + send + L + recv
 *     copy-send, recv        start + copy-send + L + recv
 *     send, recv-reduce      start + send + L + recv-reduce
 *     send, X, recv          start + send + L + X + L + recv      X: the three fused forms
 *
 * L is the flag latency, measured on its own. The split between send and recv comes from a recorded
 * timeline. What a step costs at 8 bytes is its fixed part; the rest, over its bytes, is the cost per
 * byte at that footprint.
 */
#pragma once
#include "models/profile.h"

typedef struct {
    gboolean quick;  /* every other size, fewer samples: about a quarter of the time */
    gboolean quiet;  /* no progress on stderr */
    guint64 max_bytes; /* the largest buffer measured; 0: 96 MiB */
} TtCalibrateOptions;

/* Where `tutti calibrate` keeps this machine's profile and `tutti compare` looks for it: the user's cache
 * folder. Caller frees. */
char *tt_calibration_path(void);

/* Takes some ten seconds. Errors are those of exec/. */
TtProfile *tt_calibrate(const TtCalibrateOptions *options, GError **error);
