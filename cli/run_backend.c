#include "cli/run_backend.h"
#include "cli/outlets.h"
#include "cli/progress.h"
#include "cli/run_rows.h"
#include "cli/table.h"
#include "cli/team.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    const TtOptions *options;
    const TtBackend *backend;
    gpointer self;
    TtBackendPlace place;
    TtTeamSetup setup; /* of a backend that meets */
    TtReport *report;  /* NULL unless this is rank 0 */
    TtRunRows rows;
    TtProgress progress;
} Run;

/* Who is where, for the heading. */
typedef struct {
    gint32 pid;
    char host[60];
} Home;

#define MOST_RANKS_SHOWN 16

const TtBackend *
tt_run_backend_named(const char *name, GError **error)
{
    const TtBackend *backend = tt_backend_find(name);
    g_autoptr(GString) known = g_string_new("tutti");

    for (guint i = 0; tt_backends[i]; i++)
        g_string_append_printf(known, ", %s", tt_backends[i]->name);
    if (!backend)
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE, "unknown backend \"%s\" (one of: %s)",
                    name, known->str);
    return backend;
}

/* --- what can be asked ------------------------------------------------------------------------- */

/* Options that say where the ranks are, which a launcher of the backend's own says; NULL if none was given. */
static const char *
meeting_option(const TtOptions *options)
{
    return options->n_ranks     ? "--ranks"
           : options->meet      ? "--meet"
           : options->hostfile  ? "--hostfile"
           : options->interface ? "--interface"
           : options->gpus      ? "--gpus"
                                : NULL;
}

/* Options that say how our own executor works; NULL if none was given. */
static const char *
foreign_option(const TtOptions *options)
{
    return options->transport_given                ? "--transport"
           : options->algo_given                   ? "--algo"
           : options->channels                     ? "--channels"
           : options->slots                        ? "--slots"
           : options->chunk_bytes != TT_CHUNK_AUTO ? "--chunk-bytes"
           : options->group                        ? "--group"
           : !options->pin                         ? "--no-pin"
           : options->per_iteration                ? "--per-iteration"
           : options->arrivals                     ? "--arrivals"
           : options->in_flight                    ? "--in-flight"
           : options->groups > 1                   ? "--groups"
           : options->start_offset                 ? "--start-offset"
           : options->fault                        ? "--fault"
           : options->checksum                     ? "--checksum"
           : options->protocol                     ? "--protocol"
           : options->placement                    ? "--placement"
           : options->trace_file                   ? "--trace"
           : options->timeline_file                ? "--timeline"
                                                   : NULL;
}

/* A plan says what is to be done, which is all a backend wants of it: any algorithm will do. */
static TtPlan *
describe_call(const Run *r, const TtCase *c, GError **error)
{
    TtPlanSpec spec = { .collective = r->options->collective,
                        .n_ranks = r->place.n_ranks,
                        .count = c->vector_count,
                        .type = c->type,
                        .redop = c->redop,
                        .root = r->options->root };

    return tt_plan_new("ring", &spec, error);
}

/* What needs no ranks to be seen. */
static gboolean
check_options(const Run *r, GError **error)
{
    const char *option = foreign_option(r->options);

    if (!option && !r->backend->meets)
        option = meeting_option(r->options);
    if (!option)
        return TRUE;
    g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE, "%s does not apply to --backend %s: %s",
                option, r->backend->name,
                strcmp(option, "--ranks") == 0 ? "its launcher says how many ranks there are"
                                               : "it chooses for itself how it works");
    return FALSE;
}

static gboolean
check_cases(const Run *r, const GArray *cases, GError **error)
{
    for (guint i = 0; i < cases->len; i++) {
        g_autoptr(TtPlan) call = describe_call(r, &g_array_index(cases, TtCase, i), error);

        if (!call || !r->backend->supports(r->self, &call->spec, error))
            return FALSE;
    }
    return r->place.rank != 0 || tt_outlets_check(r->options, error);
}

/* All that must be the same on every rank, a word each, long ones last. */
static char *
arguments_line(const Run *r, const GArray *cases)
{
    const TtOptions *options = r->options;
    GString *line = g_string_new(NULL);

    g_string_append_printf(line, "version=" TT_VERSION " collective=%s root=%u",
                           tt_collective_name(options->collective), options->root);
    g_string_append_printf(line, " iterations=%u warmup=%u check=%d types=", options->iterations,
                           options->warmup, options->check);
    for (guint i = 0; i < options->n_types; i++)
        g_string_append_printf(line, "%s%s", i ? "," : "", tt_type_name(options->types[i]));
    g_string_append(line, " reductions=");
    for (guint i = 0; i < options->n_redops; i++)
        g_string_append_printf(line, "%s%s", i ? "," : "", tt_redop_name(options->redops[i]));
    g_string_append(line, " sizes=");
    for (guint i = 0; i < cases->len; i++)
        g_string_append_printf(line, "%s%" G_GUINT64_FORMAT, i ? "," : "",
                               g_array_index(cases, TtCase, i).bytes);
    return g_string_free(line, FALSE);
}

/* The errors of ranks meet here: one that cannot go on takes all with it. */
static gboolean
all_agree(const Run *r, const GArray *cases, GError **error)
{
    g_autofree char *line = arguments_line(r, cases);
    g_autoptr(GError) problem = NULL;

    if (check_options(r, &problem))
        check_cases(r, cases, &problem);
    return tt_backend_agree(r->backend, r->self, &r->place, line, problem, error);
}

/* --- the run ----------------------------------------------------------------------------------- */

/* How its ranks were found; "" if that is its own launcher's affair. */
static const char *
launched_by(const Run *r)
{
    if (!r->backend->meets)
        return "";
    return g_str_equal(r->setup.launch.source, "fork") ? "one process" : r->setup.launch.source;
}

static gboolean
print_heading(const Run *r, GError **error)
{
    const TtOptions *options = r->options;
    g_autofree Home *homes = g_new0(Home, r->place.n_ranks);
    Home mine = { .pid = getpid() };

    g_strlcpy(mine.host, g_get_host_name(), sizeof mine.host);
    if (!r->backend->gather(r->self, &mine, sizeof mine, homes, error))
        return FALSE;
    if (!r->report)
        return TRUE;
    tt_report_set_topology(r->report, r->backend->name, r->place.n_ranks, 0);
    tt_report_config(r->report, "backend", "%s", r->backend->name);
    tt_report_config(r->report, "library", "%s", r->place.library);
    if (r->place.settings[0])
        tt_report_config(r->report, "environment", "%s", r->place.settings);
    tt_report_config_number(r->report, "iterations", options->iterations);
    tt_report_config_number(r->report, "warmup", options->warmup);
    tt_report_config_number(r->report, "check", options->check);
    tt_report_comment(r->report, "tutti %s run: %s", TT_VERSION,
                      tt_collective_name(options->collective));
    tt_report_comment(r->report, "ranks %u%s%s backend %s iterations %u warmup %u validation %d",
                      r->place.n_ranks, r->backend->meets ? " by " : "", launched_by(r),
                      r->backend->name, options->iterations, options->warmup, options->check);
    tt_report_comment(r->report, "library %s", r->place.library);
    if (r->place.settings[0])
        tt_report_comment(r->report, "environment %s", r->place.settings);
    for (guint rank = 0; rank < MIN(r->place.n_ranks, MOST_RANKS_SHOWN); rank++) {
        const char *more = r->backend->describe ? r->backend->describe(r->self, rank) : NULL;

        tt_report_comment(r->report, " Rank %2u Pid %6d on %s%s%s", rank, homes[rank].pid,
                          homes[rank].host, more ? " " : "", more ? more : "");
    }
    if (tt_report_is_table(r->report))
        tt_print_run_header();
    fflush(stdout);
    return TRUE;
}

static gboolean
run_place(const Run *r, const TtPlan *call, const TtCase *c, gboolean in_place, TtRow *row,
          GError **error)
{
    TtRunOptions options = { .warmup = r->options->warmup,
                             .iterations = r->options->iterations,
                             .in_place = in_place,
                             .check = r->options->check };
    TtRunResult result = { 0 };

    if (!r->backend->run(r->self, call, &options, &result, error))
        return FALSE;
    *row = tt_row_for(call, c);
    row->algorithm = r->backend->name;
    row->protocol = NULL;
    row->channels = row->rounds = 0; /* the library's secret */
    tt_row_set_time(row, call->spec.collective, result.time_s);
    row->in_place = in_place;
    row->wrong = result.wrong;
    return TRUE;
}

static gboolean
run_cases(Run *r, const GArray *cases, GError **error)
{
    for (guint i = 0; i < cases->len; i++) {
        const TtCase *c = &g_array_index(cases, TtCase, i);
        g_autofree char *size = tt_format_bytes(c->bytes);
        g_autoptr(TtPlan) call = describe_call(r, c, error);
        TtRow rows[2];

        if (r->report)
            tt_progress_show(&r->progress, "running %s, %s", r->backend->name, size);
        for (guint in_place = 0; in_place < 2; in_place++)
            if (!call || !run_place(r, call, c, in_place, &rows[in_place], error))
                return FALSE;
        r->rows.n_wrong += !r->report && (rows[0].wrong > 0 || rows[1].wrong > 0);
        if (!r->report)
            continue;
        tt_progress_wipe(&r->progress);
        tt_run_rows_add(&r->rows, r->report, &rows[0], &rows[1]);
    }
    return TRUE;
}

static int
run_all(Run *r, GError **error)
{
    g_autoptr(GArray) cases = tt_options_cases(r->options, r->place.n_ranks);

    if (!all_agree(r, cases, error) || !print_heading(r, error) || !run_cases(r, cases, error))
        return TT_EXIT_FAILED;
    if (r->report) {
        tt_run_rows_finish(&r->rows, r->report);
        if (!tt_report_finish(r->report, error))
            return TT_EXIT_FAILED;
    }
    return r->rows.n_wrong ? TT_EXIT_FAILED : TT_EXIT_GOOD;
}

/* Rank 0 speaks for all; of what one process alone knows, that one speaks. */
static int
say_once(const TtBackendPlace *place, GError **error)
{
    int code = tt_exit_code(*error);

    if (place->rank != 0 && !place->alone)
        g_clear_error(error);
    return code;
}

/* FALSE: the call is wrong, which is seen before anybody is met. */
static gboolean
find_others(Run *r, TtBackendJoin *join, GError **error)
{
    const TtOptions *options = r->options;
    const TtTeamOptions *team = &r->setup.team;

    *join = (TtBackendJoin){ .line = options->line, .timeout_s = options->timeout_s };
    if (!r->backend->meets)
        return TRUE;
    if (!check_options(r, error) || !tt_team_setup(&r->setup, options, 0, error))
        return FALSE;
    join->launch = &r->setup.launch;
    join->secret = team->secret;
    join->interface = team->interface;
    join->gpus = team->gpus;
    return TRUE;
}

static int
run_joined(Run *r, TtReport *report, GError **error)
{
    int code;

    r->report = r->place.rank == 0 ? report : NULL;
    r->progress = tt_progress_begin(r->options->quiet || !r->report);
    code = run_all(r, error);
    tt_progress_wipe(&r->progress);
    r->backend->leave(r->self);
    return code;
}

int
tt_run_backend(const TtOptions *options, const TtBackend *backend, GError **error)
{
    Run r = { .options = options, .backend = backend };
    g_autoptr(GError) why = NULL;
    g_autoptr(TtReport) report =
        tt_report_new(options, TT_FIELDS_CALL | TT_FIELDS_PLAN | TT_FIELDS_TIME | TT_FIELDS_WRONG);
    int code = TT_EXIT_GOOD;
    TtBackendJoin join;

    if (!find_others(&r, &join, error))
        return TT_EXIT_USAGE;
    r.self = backend->join(&join, &r.place, &why);
    if (r.self)
        code = run_joined(&r, report, &why);
    else if (r.place.n_ranks == 1 && !check_options(&r, error)) {
        g_clear_error(&why); /* without a launcher, the other mistake comes first */
        code = TT_EXIT_USAGE;
    }
    tt_team_setup_clear(&r.setup);
    if (!why)
        return code;
    code = say_once(&r.place, &why);
    if (why)
        g_propagate_error(error, g_steal_pointer(&why));
    return code;
}
