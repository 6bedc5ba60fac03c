/* launch_hostfile.h - the line of a hostfile that is this machine. */
#pragma once
#include "exec/launch.h"

/* Lines "host", "host slots=N" (Open MPI) or "host:N" (MPICH), one slot unless told; '#' comments. A
 * process on each host runs its slots; ranks are numbered in the order of lines, and the first host is
 * the root's. @machine as in TtLaunchOptions. */
gboolean tt_launch_from_hostfile(const char *path, const TtLaunchMachine *machine, TtLaunch *launch,
                                 GError **error);
