/* launch_env.h - what launchers leave in the environment. */
#pragma once
#include "exec/launch.h"

/* Fills @launch; its source stays NULL if no launcher started us, or one that started us alone.
 * @has_root: where the root is need not be found. @machine as in TtLaunchOptions. */
gboolean tt_launch_from_environment(const char *const *environment, const TtLaunchMachine *machine,
                                    gboolean has_root, TtLaunch *launch, GError **error);

/* First host of Slurm's "node[03-07,9],x1"; NULL if there is none. Caller frees. */
char *tt_slurm_first_host(const char *list);

/* Tasks of node @node in Slurm's "4(x2),3"; 0 if it does not say. */
guint tt_slurm_tasks_on(const char *counts, guint node);

/* "process and start time" of the launcher on this machine: our nearest ancestor that was not itself
 * started as this rank, since there may be shells in between. @mark: "PMI_RANK=3". Caller frees. */
char *tt_launcher_id(const char *mark);
