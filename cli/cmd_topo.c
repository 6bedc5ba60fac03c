/* topo - what machines there are, what one of them looks like, and what is wrong with it. */
#include "cli/options.h"
#include "cli/output.h"
#include "cli/report_fields.h"
#include "topologies/discover_gpus.h"
#include "topologies/nccl_draw.h"
#include "topologies/nccl_lint.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static gboolean json_wanted;
static char *output, *export_format;

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
                "%s (tutti topo list or discover, or show, lint, draw or export NAME)", problem);
    return FALSE;
}

static gboolean
list(const TtOptions *options, GError **error)
{
    gsize width = strlen("this");

    if (options->arguments[1])
        return usage(error, "list takes no \"%s\"", options->arguments[1]);
    if (json_wanted || output || export_format)
        return usage(error, "list takes no options");
    for (guint i = 0; tt_presets[i].name; i++)
        width = MAX(width, strlen(tt_presets[i].name));
    for (guint i = 0; tt_presets[i].name; i++)
        printf("%-*s  %s\n", (int)width, tt_presets[i].name, tt_presets[i].summary);
    printf("%-*s  this machine, discovered\n", (int)width, "this");
    return TRUE;
}

/* --- one topology ------------------------------------------------------------------------------
 */

static gboolean
check_arguments(const TtOptions *options, GError **error)
{
    const char *verb = options->arguments[0];

    if (!options->arguments[1])
        return usage(error, "%s needs the name of a topology", verb);
    if (options->arguments[2])
        return usage(error, "%s takes one topology, not also \"%s\"", verb, options->arguments[2]);
    if (output && (strcmp(verb, "show") == 0 || strcmp(verb, "lint") == 0))
        return usage(error, "%s has no -o, draw and export have", verb);
    if (json_wanted && (strcmp(verb, "draw") == 0 || strcmp(verb, "export") == 0))
        return usage(error, "%s has no --json, show and lint have", verb);
    if (export_format && strcmp(verb, "export") != 0)
        return usage(error, "%s has no --format, export has", verb);
    return (!json_wanted || tt_report_can_json(error)) && tt_output_check("-o", output, error);
}

static TtTopology *
open_topology(const TtOptions *options, GError **error)
{
    TtTopology *topo = tt_topology_open(options->arguments[1], options->settings, error);
    const char *const *warnings = topo ? tt_topology_warnings(topo) : NULL;

    for (guint i = 0; warnings && warnings[i]; i++)
        fprintf(stderr, "tutti topo: note: %s\n", warnings[i]);
    return topo;
}

/* Files of NCCL's are taken as they are, so that lint also sees what makes no topology. */
static TtNcclXml *
open_nccl_view(const TtOptions *options, GError **error)
{
    const char *name = options->arguments[1];
    g_autoptr(TtTopology) topo = NULL;

    if (g_str_has_suffix(name, ".xml") && !options->settings)
        return tt_nccl_xml_load(name, error);
    topo = open_topology(options, error);
    return topo ? tt_nccl_xml_of_topology(topo, error) : NULL;
}

static gboolean
put(const char *text, GError **error)
{
    if (output)
        return tt_output_write(output, text, error);
    fputs(text, stdout);
    if (text[0] && text[strlen(text) - 1] != '\n')
        fputc('\n', stdout);
    return TRUE;
}

static int
show(const TtOptions *options, GError **error)
{
    g_autoptr(TtTopology) topo = open_topology(options, error);
    g_autofree char *text = NULL;

    if (!topo)
        return TT_EXIT_GOOD;
    text = json_wanted ? tt_topology_to_json(topo) : tt_topology_describe(topo);
    put(text, error);
    return TT_EXIT_GOOD;
}

static int
lint(const TtOptions *options, GError **error)
{
    g_autoptr(TtNcclXml) xml = open_nccl_view(options, error);
    g_autoptr(GPtrArray) findings = xml ? tt_nccl_lint(xml) : NULL;
    gboolean clean = TRUE;

    for (guint i = 0; findings && i < findings->len; i++) {
        const TtLintFinding *finding = findings->pdata[i];
        g_autofree char *line = tt_lint_line(finding);

        clean &= finding->severity == TT_LINT_NOTE;
        if (!json_wanted)
            printf("%s\n", line);
    }
    if (findings && findings->len == 0 && !json_wanted)
        printf("no findings\n");
    if (findings && json_wanted) {
        g_autofree char *text = tt_lint_to_json(options->arguments[1], findings);

        put(text, error);
    }
    return clean ? TT_EXIT_GOOD : TT_EXIT_FAILED;
}

static int
draw(const TtOptions *options, GError **error)
{
    g_autoptr(TtNcclXml) xml = open_nccl_view(options, error);
    g_autofree char *base = g_path_get_basename(options->arguments[1]);
    g_autofree char *svg = xml ? tt_nccl_draw(xml, base) : NULL;

    if (svg)
        put(svg, error);
    return TT_EXIT_GOOD;
}

static gboolean
check_format(GError **error)
{
    if (!export_format || strcmp(export_format, "ini") == 0 ||
        strcmp(export_format, "nccl-xml") == 0)
        return TRUE;
    return usage(error, "--format %s is not one of nccl-xml, ini", export_format);
}

static int
export_topology(const TtOptions *options, GError **error)
{
    g_autoptr(TtTopology) topo = NULL;
    g_autoptr(TtNcclXml) xml = NULL;
    g_autofree char *text = NULL;

    if (!check_format(error))
        return TT_EXIT_GOOD;
    topo = open_topology(options, error);
    if (topo && export_format && strcmp(export_format, "ini") == 0)
        text = tt_topology_to_ini(topo);
    else if (topo && (xml = tt_nccl_xml_of_topology(topo, error)))
        text = tt_nccl_xml_to_text(xml);
    if (text)
        put(text, error);
    return TT_EXIT_GOOD;
}

/* --- this machine, with its GPUs ----------------------------------------------------------------
 */

static void
say_notes(const GPtrArray *notes)
{
    for (guint i = 0; i < notes->len; i++)
        fprintf(stderr, "tutti topo: note: %s\n", (const char *)notes->pdata[i]);
}

/* Without GPUs the .ini describes the CPUs, as --topo this does; NCCL's file cannot. */
static char *
discover_text(gboolean as_xml, GError **error)
{
    const TtDiscovery where = { .root = g_getenv("TUTTI_SYSTEM_ROOT"),
                                .library = g_getenv("TUTTI_NVML_LIBRARY") };
    g_autoptr(GPtrArray) notes = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) why = NULL;
    g_autoptr(TtNcclXml) xml = tt_discover_gpus(&where, notes, &why);
    g_autoptr(TtTopology) topo = NULL;

    say_notes(notes);
    if (xml)
        return as_xml ? tt_nccl_xml_to_text(xml) : tt_nccl_xml_to_ini(xml, error);
    if (as_xml) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_HARDWARE, "%s", why->message);
        return NULL;
    }
    fprintf(stderr, "tutti topo: note: %s: only the CPUs are described\n", why->message);
    topo = tt_topology_open("this", NULL, error);
    return topo ? tt_topology_to_ini(topo) : NULL;
}

static gboolean
discover(const TtOptions *options, GError **error)
{
    g_autofree char *text = NULL;
    gboolean as_xml;

    if (options->arguments[1])
        return usage(error, "discover takes no \"%s\": it is about this machine",
                     options->arguments[1]);
    if (json_wanted)
        return usage(error, "discover has no --json, show has: tutti topo show FILE --json");
    if (options->settings)
        return usage(error, "discover takes no --set: it writes what is there");
    if (!check_format(error) || !tt_output_check("-o", output, error))
        return FALSE;
    as_xml = export_format ? strcmp(export_format, "nccl-xml") == 0
                           : output && g_str_has_suffix(output, ".xml");
    text = discover_text(as_xml, error);
    return text && put(text, error);
}

static const struct {
    const char *name;
    int (*run)(const TtOptions *options, GError **error);
} verbs[] = { { "show", show }, { "lint", lint }, { "draw", draw }, { "export", export_topology } };

static int
run_topo(const TtOptions *options, GError **error)
{
    const char *verb = options->arguments[0];

    if (verb && strcmp(verb, "list") == 0) {
        list(options, error);
        return TT_EXIT_GOOD; /* or what the error says */
    }
    if (verb && strcmp(verb, "discover") == 0) {
        discover(options, error);
        return TT_EXIT_GOOD;
    }
    for (gsize i = 0; verb && i < G_N_ELEMENTS(verbs); i++)
        if (strcmp(verb, verbs[i].name) == 0)
            return check_arguments(options, error) ? verbs[i].run(options, error) : TT_EXIT_GOOD;
    if (verb)
        usage(error, "cannot \"%s\"", verb);
    else
        usage(error, "list, discover, show, lint, draw or export is needed");
    return TT_EXIT_GOOD;
}

static const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_NONE, &json_wanted, "show, lint: as JSON", NULL },
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, &output,
      "draw, export, discover: into FILE, not on stdout", "FILE" },
    { "format", 0, 0, G_OPTION_ARG_STRING, &export_format,
      "export: nccl-xml (default) or ini; discover: ini, or as FILE ends", "FORMAT" },
    { NULL },
};

const TtCommand tt_cmd_topo = {
    .name = "topo",
    .summary = "list topologies; discover, show, check, draw or export one",
    .synopsis = "list | discover | show NAME[:NODES] | lint NAME | draw NAME | export NAME",
    .examples = "  tutti topo list\n"
                "  tutti topo discover -o node.xml           # this machine's GPUs, NVLinks, PCIe "
                "and NICs\n"
                "  tutti topo show dgx-h100:16\n"
                "  tutti topo show dgx-h100:16 --set fabric.oversubscription=2\n"
                "  tutti topo show this --json\n"
                "  tutti topo lint node.xml                  # written by NCCL_TOPO_DUMP_FILE\n"
                "  tutti topo draw dgx-h100 -o dgx-h100.svg\n"
                "  tutti topo export dgx-h100 -o node.xml    # for NCCL_TOPO_FILE\n"
                "  tutti topo export node.xml:4 --format ini\n",
    .options = TT_OPTIONS_TOPOLOGY,
    .own = entries,
    .run = run_topo,
};
