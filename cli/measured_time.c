/* The times of compare --measured: by the closed form, or by simulating on a topology that was given. */
#include "cli/measured_time.h"
#include "cli/library.h"

static gboolean
by_flow(const TtOptions *options)
{
    return options->level_given && options->level == TT_LEVEL_FLOW;
}

gboolean
tt_measured_time_check(const TtOptions *options, const TtTopology *topo, GError **error)
{
    if (!options->level_given || options->level == TT_LEVEL_LOGGP || (by_flow(options) && topo))
        return TRUE;
    g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                by_flow(options)
                    ? "--level %s simulates on a topology, and a file names none: "
                      "give --topo, or --level loggp (default with --measured)"
                    : "--level %s: --measured has loggp (default), and flow with --topo",
                tt_level_name(options->level));
    return FALSE;
}

const char *
tt_measured_time_source(const TtOptions *options)
{
    return by_flow(options) ? tt_library_time_source(TT_LEVEL_FLOW, NULL) : tt_replay_time_source();
}

/* What the file does not say, or says in a word that is not ours, is float and sum. */
static TtNcclCall
call_of(const TtReplay *r, const TtMeasuredRow *row, const TtNcclChoice *choice)
{
    const TtMeasured *m = r->measured;
    TtNcclCall call = { .op = tt_replay_op(r, row),
                        .choice = *choice,
                        .type = TT_FLOAT32,
                        .redop = TT_SUM,
                        .root = m->root > 0 ? (guint)m->root : 0 };

    if (m->type)
        tt_type_parse(m->type, &call.type, NULL);
    if (m->redop)
        tt_redop_parse(m->redop, &call.redop, NULL);
    return call;
}

gboolean
tt_measured_time_us(const TtOptions *options, const TtTopology *topo, const TtNcclXml *node,
                    const TtReplay *r, const TtMeasuredRow *row, const TtNcclChoice *choice,
                    double *time_us, GError **error)
{
    TtNcclCall call = call_of(r, row, choice);
    TtNcclPlace place = { topo,           &r->comm, &r->machine, tt_nccl_costs_built_in()->value,
                          &tt_no_effects, node };

    if (by_flow(options))
        return tt_nccl_flow_us(&place, &call, FALSE, time_us, NULL, error);
    *time_us = tt_replay_time_us(r, row, choice);
    return TRUE;
}
