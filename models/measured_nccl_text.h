/* measured_nccl_text.h - what the log of a run says beside its tables. Private to measured_nccl_*.c. */
#pragma once
#include "models/measured_private.h"

/* One start of a test program: the facts that its tables share. */
typedef struct {
    TtMeasured *facts;    /* filled as lines come; without rows */
    GHashTable *per_host; /* name to its rank lines */
    GHashTable
        *per_device; /* "host device" to its rank lines: above 1 where names were made alike */
    GHashTable *processes; /* "host pid" */
    guint n_rank_lines, highest_rank, highest_group;
    guint threads, gpus_per_thread; /* 0: not stated */
    gboolean started;               /* the test's own first lines were seen */
} TtNcclRun;

TtNcclRun *tt_nccl_run_new(const char *origin);
void tt_nccl_run_free(TtNcclRun *run);

/* Whether @line is one a program begins with, or a command that starts one. */
gboolean tt_nccl_run_begins(const char *line);

/* Takes what @line says about the run; FALSE if it says nothing we know. */
gboolean tt_nccl_run_read(TtNcclRun *run, const char *line);

/* Counts ranks, nodes and processes. @previous (may be NULL) lends what this run does not repeat. */
void tt_nccl_run_finish(TtNcclRun *run, const TtNcclRun *previous);

/* Gives @table the run's facts. */
void tt_nccl_run_copy(const TtNcclRun *run, TtMeasured *table);

/* A finished table of rows (TtMeasuredRow). */
void tt_nccl_merge_repeats(GArray *rows);
double tt_nccl_unit_us(const GArray *rows); /* of its times, by its bandwidths: 1 or 1000 */
void tt_nccl_scale(GArray *rows, double unit_us);
const char *tt_nccl_guess_collective(const TtMeasured *m); /* NULL: no idea */
