#include "cli/options_raw.h"

#include <stdio.h>
#include <string.h>

static const GOptionEntry common_entries[] = {
    { "help", 'h', 0, G_OPTION_ARG_NONE, &tt_raw.help, "show this", NULL },
    { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &tt_raw.rest, NULL, NULL },
    { NULL },
};

/* --- parsing ----------------------------------------------------------------------------------- */

static void
add_group(GOptionContext *context, const char *name, const char *title, const GOptionEntry *entries)
{
    g_autofree char *heading = g_strdup_printf("%s:", title);
    GOptionGroup *group = g_option_group_new(name, heading, heading, NULL, NULL);

    g_option_group_add_entries(group, entries);
    g_option_context_add_group(context, group);
}

static GOptionContext *
make_context(const TtCommand *command)
{
    GOptionContext *context = g_option_context_new(command->synopsis);
    g_autofree char *summary =
        g_strdup_printf("%c%s.", g_ascii_toupper(command->summary[0]), command->summary + 1);

    g_option_context_set_help_enabled(context, FALSE); /* ours prints plain ASCII and returns */
    g_option_context_set_summary(context, summary);
    if (command->examples) {
        g_autofree char *examples = g_strdup_printf("Examples:\n%s", command->examples);

        g_option_context_set_description(context, examples);
    }
    g_option_context_add_main_entries(context, common_entries, NULL);
    if (command->own)
        add_group(context, command->name, "This command", command->own);
    for (guint i = 0; i < TT_N_OPTION_GROUPS; i++) {
        const TtOptionGroup *g = &tt_option_groups[i];

        if (command->options & (1u << i))
            add_group(context, g->name, g->title, g->entries);
    }
    return context;
}

/* GLib's words for "other options", and the one character of its help that is not ASCII. */
static void
print_help(GOptionContext *context)
{
    g_autofree char *text = g_option_context_get_help(context, FALSE, NULL);
    g_autoptr(GString) help = g_string_new(text);

    g_string_replace(help, "…", "...", 0);
    g_string_replace(help, "Application Options:", "Other:", 1);
    fputs(help->str, stdout);
}

/* The command line as one could type it again. */
static char *
quote_line(int argc, char **argv)
{
    GString *line = g_string_new("tutti");

    for (int i = 0; i < argc; i++) {
        gboolean plain = argv[i][0] != '\0';

        for (const char *c = argv[i]; *c; c++)
            plain = plain && (g_ascii_isalnum(*c) || strchr("-_=.,:/+@%", *c));
        if (plain) {
            g_string_append_printf(line, " %s", argv[i]);
        } else {
            g_autofree char *quoted = g_shell_quote(argv[i]);

            g_string_append_printf(line, " %s", quoted);
        }
    }
    return g_string_free(line, FALSE);
}

TtOptions *
tt_options_parse(const TtCommand *command, int argc, char **argv, GError **error)
{
    g_autoptr(GOptionContext) context = make_context(command);
    g_autoptr(TtOptions) options = g_new0(TtOptions, 1);
    g_autofree char *name = g_strdup_printf("tutti %s", command->name);

    g_set_prgname(name);
    options->command = command;
    options->line = quote_line(argc, argv);
    options->chunk_bytes = TT_CHUNK_AUTO;
    options->level = TT_LEVEL_FLOW;
    options->iterations = 20;
    options->warmup = 1;
    options->timeout_s = 30;
    if (!g_option_context_parse(context, &argc, &argv, error))
        return NULL;
    if (tt_raw.help) {
        print_help(context);
        return NULL;
    }
    options->arguments = tt_raw.rest ? g_steal_pointer(&tt_raw.rest) : g_new0(char *, 1);
    if (options->arguments[0] && !command->synopsis) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "unexpected argument \"%s\" (it takes options only, see tutti %s --help)",
                    options->arguments[0], command->name);
        return NULL;
    }
    if (!tt_options_check(options, error))
        return NULL;
    return g_steal_pointer(&options);
}

void
tt_options_free(TtOptions *options)
{
    if (!options)
        return;
    g_free(options->line);
    g_strfreev(options->arguments);
    g_free(options->sizes);
    g_strfreev(options->algorithms);
    g_free((char *)options->topo);
    g_strfreev((char **)options->settings);
    g_free((char *)options->profile);
    g_free((char *)options->library);
    g_free(options->library_warning);
    g_strfreev((char **)options->env);
    g_free((char *)options->constants);
    g_free(options->ranks);
    g_free((char *)options->transport);
    g_free((char *)options->fault);
    g_free((char *)options->start_offset);
    g_free((char *)options->interface);
    g_free((char *)options->device);
    g_free((char *)options->gpus);
    g_free((char *)options->meet);
    g_free((char *)options->rank);
    g_free((char *)options->hostfile);
    g_free((char *)options->secret_file);
    g_free((char *)options->json_file);
    g_free((char *)options->trace_file);
    g_free((char *)options->timeline_file);
    g_free((char *)options->plot);
    g_free(options);
}

/* --- what they multiply to --------------------------------------------------------------------- */

/* Allgather and reduce-scatter count per rank, rounded down to 16 bytes, as nccl-tests does. */
static TtCase
make_case(TtCollective collective, TtType type, TtRedop redop, guint64 bytes, guint n_ranks)
{
    guint type_bytes = tt_type_bytes(type);
    TtCase c = { .type = type, .redop = redop, .count = bytes / type_bytes };

    c.vector_count = c.count;
    if (collective == TT_ALLGATHER || collective == TT_REDUCE_SCATTER) {
        c.count = c.count / n_ranks / (16 / type_bytes) * (16 / type_bytes);
        c.vector_count = c.count * n_ranks;
    }
    c.bytes = c.vector_count * type_bytes;
    return c;
}

GArray *
tt_options_cases(const TtOptions *options, guint n_ranks)
{
    GArray *cases = g_array_new(FALSE, FALSE, sizeof(TtCase));

    for (guint t = 0; t < options->n_types; t++)
        for (guint r = 0; r < options->n_redops; r++)
            for (guint s = 0; s < options->n_sizes; s++) {
                TtCase c = make_case(options->collective, options->types[t], options->redops[r],
                                     options->sizes[s], n_ranks);

                g_array_append_val(cases, c);
            }
    return cases;
}
