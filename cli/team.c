#include "cli/team.h"

gboolean
tt_team_options(const TtOptions *options, guint n_ranks, TtTeamOptions *team, GError **error)
{
    *team = (TtTeamOptions){ .n_ranks = n_ranks,
                             .transport = options->transport,
                             .timeout_s = options->timeout_s,
                             .pin = options->pin,
                             .interface = options->interface,
                             .device = options->device,
                             .gid_index = options->gid_index,
                             .streams = options->streams,
                             .checksum = options->checksum };
    return !options->fault || tt_fault_parse(options->fault, n_ranks, &team->fault, error);
}
