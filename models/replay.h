/* replay.h - a measured run once more, by NCCL's rules: its communicator, and its choice for each row.
 *
 * What it took is for a model of time to say (TtTimeModel); NCCL's own belief is the one that is always
 * there.
 */
#pragma once
#include "models/hardware.h"
#include "models/nccl_machine.h"
#include "models/nccl_search.h"
#include "models/nccl_tuner.h"

#define TT_REPLAY_ERROR (tt_replay_error_quark())
GQuark tt_replay_error_quark(void);
typedef enum { TT_REPLAY_ERROR_USAGE } TtReplayError;

typedef struct {
    const TtMeasured *measured; /* borrowed, outlives the replay */
    TtHardware
        hardware;  /* gpu is NULL where the topology was given and the file's GPU is not known */
    guint version; /* of NCCL, one of those known */
    gboolean version_assumed; /* not in the file */
    TtNcclEnv env;
    TtNcclComm comm;
    TtNcclMachine machine; /* what time depends on */
    TtNcclFunc func;
    TtNcclTable table;
    guint type_bytes;
    const TtNcclCosts *costs; /* borrowed */
    GPtrArray *notes;         /* char *: what was assumed or could not be honoured */
} TtReplay;

/* What the file does not decide. All zero: everything from the file. */
typedef struct {
    const TtNcclXml *node;  /* of a topology that was given, NULL: hardware.h finds it. Borrowed */
    guint n_nodes;          /* of it */
    const char *topology;   /* its name, for messages */
    guint version;          /* 0: the file's */
    const char *const *env; /* NAME=VALUE, after the file's own; NULL: none */
    const TtNcclCosts *costs; /* NULL: those built in. Borrowed */
    int launch;               /* TtNcclLaunch + 1; 0: the file's */
    const char *collective;   /* where the file does not name one; NULL: that is an error */
} TtReplayOptions;

/* @options may be NULL. TT_REPLAY_ERROR_USAGE with one line: another library's run, a collective NCCL does
 * not choose for, GPUs that contradict the topology, and what hardware.h and NCCL's search refuse. */
TtReplay *tt_replay_new(const TtMeasured *m, const TtReplayOptions *options, GError **error);
void tt_replay_free(TtReplay *replay);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtReplay, tt_replay_free)

TtNcclOp tt_replay_op(const TtReplay *replay, const TtMeasuredRow *row);

/* Fails where NCCL fails. */
gboolean tt_replay_choose(const TtReplay *replay, const TtMeasuredRow *row, TtNcclChoice *choice,
                          GError **error);

/* Microseconds one operation takes; NAN if the model has nothing to say. */
typedef double (*TtTimeModel)(const TtReplay *replay, const TtMeasuredRow *row,
                              const TtNcclChoice *choice, gpointer data);

/* The time that is printed and scored: the one place to change when a better model than NCCL's own table is
 * at hand. */
double tt_replay_time_us(const TtReplay *replay, const TtMeasuredRow *row,
                         const TtNcclChoice *choice);
const char *tt_replay_time_source(void); /* the same, in words */

/* What NCCL itself believes, made to choose by: choice->time_us. @data is not used. */
double tt_time_by_nccl(const TtReplay *replay, const TtMeasuredRow *row, const TtNcclChoice *choice,
                       gpointer data);
