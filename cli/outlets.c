#include "cli/outlets.h"
#include "cli/output.h"
#include "cli/report_fields.h"
#include "plots/plot.h"
#include "plots/trace.h"

#include <glib/gstdio.h>
#include <stdio.h>
#include <unistd.h>

static gboolean
check_plot(const TtOptions *options, GError **error)
{
    g_autofree char *png = NULL, *svg = NULL;

    if (!options->plot)
        return TRUE;
    png = g_strdup_printf("%s.png", options->plot);
    svg = g_strdup_printf("%s.svg", options->plot);
    if (options->n_types > 1 || options->n_redops > 1) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "--plot draws one data type and one reduction; give one -d and one -o");
        return FALSE;
    }
    return tt_output_check("--plot", png, error) && tt_output_check("--plot", svg, error) &&
           tt_plot_available(error);
}

/* Two outputs in one file leave one of them. Devices and pipes take both. */
static gboolean
check_apart(const TtOptions *options, GError **error)
{
    const struct {
        const char *option, *path;
    } outputs[] = { { "-J", options->json_file },
                    { "--trace", options->trace_file },
                    { "--timeline", options->timeline_file } };

    for (guint a = 0; a < G_N_ELEMENTS(outputs); a++)
        for (guint b = a + 1; b < G_N_ELEMENTS(outputs); b++)
            if (outputs[a].path && outputs[b].path &&
                tt_output_same(outputs[a].path, outputs[b].path)) {
                g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                            "%s and %s both write \"%s\"; give each a file of its own",
                            outputs[a].option, outputs[b].option, outputs[a].path);
                return FALSE;
            }
    return TRUE;
}

gboolean
tt_outlets_check(const TtOptions *options, GError **error)
{
    gboolean json = options->json || options->json_file;
    gboolean several = options->algo_all || (!options->algo_auto && options->algorithms &&
                                             options->algorithms[0] && options->algorithms[1]);

    if (options->timeline_file && several) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "--timeline holds one algorithm; give one --algo, or use --trace");
        return FALSE;
    }
    return check_apart(options, error) && tt_output_check("-J", options->json_file, error) &&
           tt_output_check("--trace", options->trace_file, error) &&
           tt_output_check("--timeline", options->timeline_file, error) &&
           (!json || tt_report_can_json(error)) && check_plot(options, error);
}

gboolean
tt_outlets_want_timelines(const TtOptions *options)
{
    return options->trace_file || options->timeline_file;
}

gboolean
tt_outlets_write_timelines(const TtOptions *options, const GPtrArray *timelines, GError **error)
{
    if (timelines->len == 0)
        return TRUE;
    if (options->trace_file) {
        g_autofree char *json =
            tt_trace_json((const TtTimeline *const *)timelines->pdata, timelines->len);

        if (!tt_output_write(options->trace_file, json, error))
            return FALSE;
    }
    if (options->timeline_file) {
        g_autofree char *csv = tt_timeline_to_csv(timelines->pdata[0]);

        return tt_output_write(options->timeline_file, csv, error);
    }
    return TRUE;
}

gboolean
tt_outlets_plot(const TtReport *report, const TtOptions *options, TtDraw draw, const char *title,
                GError **error)
{
    g_autofree char *csv = NULL, *path = NULL;
    gboolean good;

    if (!options->plot || tt_report_n_rows(report) == 0)
        return TRUE;
    csv = tt_report_to_csv(report);
    path = g_strdup_printf("%s.%d.csv", options->plot, (int)getpid());
    good = tt_output_write(path, csv, error) && draw(path, options->plot, title, error);
    g_unlink(path);
    if (good && !options->quiet)
        fprintf(stderr, "tutti %s: drew %s.png and %s.svg\n", options->command->name, options->plot,
                options->plot);
    return good;
}
