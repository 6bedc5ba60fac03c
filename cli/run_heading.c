#include "cli/run_private.h"
#include "cli/table.h"

#include <stdio.h>

static void
print_ranks(const TtRun *r)
{
    guint n_strangers = tt_team_n_strangers(r->team);

    if (n_strangers > 0)
        tt_report_warn(r->report, "%u stranger%s turned away at the port where ranks meet",
                       n_strangers, n_strangers == 1 ? "" : "s");
    for (guint rank = 0; rank < MIN(r->n_ranks, 16); rank++) {
        g_autofree char *group =
            r->flight.n_groups > 1
                ? g_strdup_printf("Group %2u ", tt_flight_group(&r->flight, rank))
                : g_strdup("");

        tt_report_comment(r->report, " Rank %2u %sPid %6d on %s", rank, group,
                          (int)tt_team_pid(r->team, rank), tt_team_host_name(r->team, rank));
    }
}

/* What "by" says in the heading. On GPUs, and as threads, ranks need no process each. */
static const char *
ranks_by(const TtRun *r, gboolean on_gpus)
{
    gboolean threads = on_gpus || g_str_has_prefix(r->setup.team.transport, "threads");

    return threads && g_str_equal(r->setup.launch.source, "fork") ? "one process"
                                                                  : r->setup.launch.source;
}

void
tt_run_print_heading(const TtRun *r)
{
    const TtOptions *options = r->options;
    const TtLaunch *launch = &r->setup.launch;
    g_autofree char *gpus = tt_team_gpus_text(r->team);
    g_autofree char *direct = tt_team_gpu_direct_text(r->team);

    tt_report_comment(r->report, "tutti %s run: %s", TT_VERSION,
                      tt_collective_name(options->collective));
    tt_report_comment(
        r->report, "ranks %u by %s transport %s reduce %s iterations %u warmup %u validation %d",
        r->n_ranks, ranks_by(r, gpus != NULL), r->setup.team.transport,
        gpus ? "kernels" : tt_reduce_unit(), options->iterations, options->warmup, options->check);
    if (tt_flight_is_several(&r->flight, tt_flight_most(options)))
        tt_report_comment(r->report, "groups %u of %u ranks in flight %u start offsets %s",
                          r->flight.n_groups, r->flight.group_size, tt_flight_most(options),
                          options->start_offset ? options->start_offset : "none");
    if (gpus) {
        tt_report_comment(r->report, "GPUs %s%s", gpus,
                          launch->n_local < launch->n_ranks ? ", and those of other processes"
                                                            : "");
        tt_report_config(r->report, "gpus", "%s", gpus);
        tt_report_config(r->report, "placement", "%s", tt_gpu_placement_name(options->placement));
    }
    if (direct) {
        tt_report_comment(r->report, "GPUDirect: %s", direct);
        tt_report_config(r->report, "gpudirect", "%s", direct);
    }
    print_ranks(r);
    if (tt_report_is_table(r->report))
        tt_print_run_header();
    fflush(stdout);
}
