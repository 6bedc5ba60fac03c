/* run_private.h - what the files of `tutti run` share: cmd_run.c, run_heading.c, run_what.c. */
#pragma once
#include "cli/flight.h"
#include "cli/progress.h"
#include "cli/run_rows.h"
#include "cli/team.h"
#include "exec/exec.h"

typedef struct {
    const TtOptions *options;
    TtReport *report;
    TtTeam *team;
    TtTeamSetup setup;
    guint n_team; /* processes of the team: ranks, and switches if the plan has some */
    guint n_ranks;
    TtFlightPlan flight;
    GPtrArray *timelines;
    TtRunRows rows;
    TtProgress progress;
} TtRun;

/* What is run: @name, by @plans in turn. */
typedef struct {
    const char *name;
    const TtPlan *const *plans;
    guint n_plans, depth;
} TtRunWhat;

/* Runs it out of place and in place, and reports both: rows, and what is asked for below them. @record: keep a
 * timeline of the first. Errors are those of exec/. */
gboolean tt_run_what(TtRun *r, const TtRunWhat *what, const TtCase *c, gboolean record,
                     GError **error);

/* Comment lines above the rows: who runs, and how. */
void tt_run_print_heading(const TtRun *r);
