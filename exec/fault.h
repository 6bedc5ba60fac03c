/* fault.h - things that go wrong on purpose, so that what is said about them can be tested and taught.
 *
 *     KIND[:rank=R][,after=N][,time=T][,peer=P]
 */
#pragma once
#include <glib.h>

typedef enum {
    TT_FAULT_NONE,
    TT_FAULT_KILL,      /* the rank dies of SIGKILL */
    TT_FAULT_STOP,      /* ... is stopped by SIGSTOP */
    TT_FAULT_DELAY,     /* ... sleeps for `time` in every iteration from then on */
    TT_FAULT_EXIT,      /* ... leaves, with exit code 0 */
    TT_FAULT_ABSENT,    /* ... never arrives */
    TT_FAULT_MISMATCH,  /* ... was told another count */
    TT_FAULT_CORRUPT,   /* ... sends a message with one bit changed */
    TT_FAULT_CUT,       /* ... closes its connections to `peer` */
    TT_FAULT_HALF_OPEN, /* ... goes deaf and dumb towards `peer`, and leaves the connections open */
    TT_FAULT_STRANGER,  /* somebody else sends noise to the port the rank listens on */
    TT_N_FAULTS
} TtFaultKind;

typedef struct {
    TtFaultKind kind;
    guint rank;    /* who; 1 unless said */
    guint peer;    /* G_MAXUINT: the next rank it has a connection with */
    guint after;   /* iterations the rank has finished before, warm-up included; 2 unless said */
    double time_s; /* 0.1 unless said */
} TtFault;

const char *tt_fault_name(TtFaultKind kind); /* "half-open" */

/* Parses "kill:rank=2,after=5". FALSE with TT_EXEC_ERROR_USAGE: what is wrong and what is allowed. */
gboolean tt_fault_parse(const char *text, guint n_ranks, TtFault *fault, GError **error);
