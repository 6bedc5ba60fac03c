/* topo - what machines there are, and what one of them looks like. */
#include "cli/options.h"
#include "cli/report_fields.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static gboolean json_wanted;

static gboolean usage(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

static gboolean
usage(GError **error, const char *format, ...)
{
    g_autofree char *problem = NULL;
    va_list arguments;

    va_start(arguments, format);
    problem = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                "%s (tutti topo list, tutti topo show NAME[:NODES])", problem);
    return FALSE;
}

static gboolean
list(const TtOptions *options, GError **error)
{
    gsize width = strlen("this");

    if (options->arguments[1])
        return usage(error, "list takes no \"%s\"", options->arguments[1]);
    if (json_wanted)
        return usage(error, "list has no --json, show has");
    for (guint i = 0; tt_presets[i].name; i++)
        width = MAX(width, strlen(tt_presets[i].name));
    for (guint i = 0; tt_presets[i].name; i++)
        printf("%-*s  %s\n", (int)width, tt_presets[i].name, tt_presets[i].summary);
    printf("%-*s  this machine, discovered\n", (int)width, "this");
    return TRUE;
}

static gboolean
show(const TtOptions *options, GError **error)
{
    const char *name = options->arguments[1];
    g_autoptr(TtTopology) topo = NULL;
    g_autofree char *text = NULL;
    const char *const *warnings;

    if (!name)
        return usage(error, "show needs the name of a topology");
    if (options->arguments[2])
        return usage(error, "show takes one topology, not also \"%s\"", options->arguments[2]);
    topo = tt_topology_open(name, options->settings, error);
    if (!topo || (json_wanted && !tt_report_can_json(error)))
        return FALSE;
    warnings = tt_topology_warnings(topo);
    for (guint i = 0; warnings && warnings[i]; i++)
        fprintf(stderr, "tutti topo: note: %s\n", warnings[i]);
    text = json_wanted ? tt_topology_to_json(topo) : tt_topology_describe(topo);
    fputs(text, stdout);
    if (text[0] && text[strlen(text) - 1] != '\n')
        fputc('\n', stdout);
    return TRUE;
}

static int
run_topo(const TtOptions *options, GError **error)
{
    const char *verb = options->arguments[0];

    if (!verb)
        usage(error, "list or show is needed");
    else if (strcmp(verb, "list") == 0)
        list(options, error);
    else if (strcmp(verb, "show") == 0)
        show(options, error);
    else
        usage(error, "cannot \"%s\"", verb);
    return TT_EXIT_GOOD; /* or what the error says */
}

static const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_NONE, &json_wanted, "show as JSON", NULL },
    { NULL },
};

const TtCommand tt_cmd_topo = {
    .name = "topo",
    .summary = "list the topologies, or show one with the source of every constant",
    .synopsis = "list | show NAME[:NODES]",
    .examples = "  tutti topo list\n"
                "  tutti topo show dgx-h100:16\n"
                "  tutti topo show dgx-h100:16 --set fabric.oversubscription=2\n"
                "  tutti topo show this --json\n",
    .options = TT_OPTIONS_TOPOLOGY,
    .own = entries,
    .run = run_topo,
};
