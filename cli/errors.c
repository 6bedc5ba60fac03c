#include "cli/cli.h"
#include "algos/schedule.h"
#include "exec/exec.h"
#include "models/nccl.h"
#include "models/profile.h"
#include "models/replay.h"
#include "plots/plot.h"
#include "sim/sim.h"
#include "topologies/topology.h"

GQuark
tt_cli_error_quark(void)
{
    return g_quark_from_static_string("tt-cli-error");
}

void
tt_one_line(char *text)
{
    for (; *text; text++)
        if (g_ascii_iscntrl(*text))
            *text = ' ';
}

static TtExit
sim_exit(int code)
{
    switch (code) {
    case TT_SIM_ERROR_DEADLOCK: return TT_EXIT_DEAD;
    case TT_SIM_ERROR_UNDER_BOUND: return TT_EXIT_FAILED;
    default: return TT_EXIT_USAGE;
    }
}

static TtExit
exec_exit(int code)
{
    switch (code) {
    case TT_EXEC_ERROR_SYSTEM:
    case TT_EXEC_ERROR_CORRUPT: return TT_EXIT_FAILED;
    case TT_EXEC_ERROR_ABSENT:
    case TT_EXEC_ERROR_LEFT:
    case TT_EXEC_ERROR_DEAD:
    case TT_EXEC_ERROR_HANG:
    case TT_EXEC_ERROR_NETWORK: return TT_EXIT_DEAD;
    case TT_EXEC_ERROR_HARDWARE: return TT_EXIT_HARDWARE;
    default: return TT_EXIT_USAGE;
    }
}

static TtExit
cli_exit(int code)
{
    switch (code) {
    case TT_CLI_ERROR_USAGE: return TT_EXIT_USAGE;
    case TT_CLI_ERROR_HARDWARE: return TT_EXIT_HARDWARE;
    default: return TT_EXIT_FAILED;
    }
}

TtExit
tt_exit_code(const GError *error)
{
    GQuark domain = error->domain;

    if (domain == TT_SIM_ERROR)
        return sim_exit(error->code);
    if (domain == TT_EXEC_ERROR)
        return exec_exit(error->code);
    if (domain == TT_PLAN_ERROR)
        return error->code == TT_PLAN_ERROR_INVALID ? TT_EXIT_FAILED : TT_EXIT_USAGE;
    if (domain == TT_TOPOLOGY_ERROR)
        return error->code == TT_TOPOLOGY_ERROR_FILE ? TT_EXIT_FILE : TT_EXIT_USAGE;
    if (domain == TT_PROFILE_ERROR)
        return error->code == TT_PROFILE_ERROR_FILE ? TT_EXIT_FILE : TT_EXIT_USAGE;
    if (domain == TT_MEASURED_ERROR)
        return error->code == TT_MEASURED_ERROR_FILE ? TT_EXIT_FILE : TT_EXIT_USAGE;
    if (domain == TT_HARDWARE_ERROR || domain == TT_REPLAY_ERROR)
        return TT_EXIT_USAGE;
    if (domain == TT_NCCL_ERROR)
        return error->code == TT_NCCL_ERROR_FILE ? TT_EXIT_FILE : TT_EXIT_USAGE;
    if (domain == TT_CLI_ERROR)
        return cli_exit(error->code);
    if (domain == TT_PLOT_ERROR)
        return error->code == TT_PLOT_ERROR_FILE ? TT_EXIT_FILE : TT_EXIT_FAILED;
    if (domain == TT_UNITS_ERROR || domain == G_OPTION_ERROR || domain == G_CONVERT_ERROR)
        return TT_EXIT_USAGE;
    if (domain == G_KEY_FILE_ERROR || domain == G_FILE_ERROR)
        return TT_EXIT_FILE;
    return TT_EXIT_FAILED;
}
