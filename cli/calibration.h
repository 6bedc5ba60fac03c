/* calibration.h - measure what the executor's steps cost on this machine, as a profile.
 *
 * Two ranks run micro-plans (micro.h) at sizes of their own: 1.2 * 2^k bytes, and 1.7 * 2^k where
 * caches end. What an iteration takes beside starting and waiting for flags is shared out among its
 * steps in proportion to their work in a recorded timeline; recording costs tens of nanoseconds a step,
 * so it is asked for proportions, not for times. A step that several micro-plans have takes the median.
 * What it costs at 8 bytes is its fixed part; the rest, over its bytes, is the cost per byte at that
 * footprint.
 *
 * A machine may change state meanwhile (measure.h). Each measurement belongs to the state it was taken
 * in; each state has its own list of what is still to be measured. The profile's first state is the one
 * seen most, others follow if they lasted long enough.
 */
#pragma once
#include "exec/exec.h"
#include "models/profile.h"

typedef struct {
    gboolean quick;            /* every other size, a quarter of the time */
    gboolean quiet;            /* no progress on stderr */
    guint64 max_bytes;         /* the largest buffer measured; 0: 112 MiB */
    const TtTeamOptions *team; /* transport and network, GPUs; NULL: shared memory */
    guint
        n_ranks; /* on GPUs, even: all measured at the same time, as they share what they are on; 0: 2 */
} TtCalibrateOptions;

/* Where `tutti calibrate` keeps this machine's profile for a transport and `tutti compare` looks for it: the
 * user's cache folder. Kernels on the CPU (@gpus "host") have one of their own. Caller frees. */
char *tt_calibration_path(const char *transport, const char *gpus);

/* "shm", "threads": NULL is that too. */
gboolean tt_calibration_is_of_memory(const char *transport);

gboolean tt_calibration_is_of_gpus(const char *transport);

/* Of GPUs: what steps cost there depends on how many ranks are at it, and on how messages are passed. NULL for
 * other transports. Caller frees. */
char *tt_calibration_conditions(const TtTeamOptions *team, guint n_ranks);

/* A profile that says of this machine what need not be measured. */
TtProfile *tt_calibration_describe(const char *transport, guint cores);

/* *about: lines of comment on GPUs; owned by the caller; may be NULL. Takes about a minute, a quarter of it if quick. Errors are those of exec/. */
TtProfile *tt_calibrate(const TtCalibrateOptions *options, char **about, GError **error);
