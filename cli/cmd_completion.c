/* completion - a script for bash, made from the command table and the options. */
#include "algos/algo.h"
#include "cli/library.h"
#include "cli/options.h"
#include "cli/values.h"
#include "exec/backend.h"

#include <stdio.h>
#include <string.h>

/* --- what may follow an option ----------------------------------------------------------------- */

static void
add_word(GString *words, const char *word)
{
    g_string_append_printf(words, "%s%s", words->len ? " " : "", word);
}

static void
add_algorithms(GString *words)
{
    add_word(words, "all auto");
    for (guint i = 0; tt_algos[i]; i++)
        add_word(words, tt_algos[i]->name);
    for (guint a = 0; a < TT_NCCL_N_ALGOS; a++) /* of --library nccl */
        if (!tt_algo_find(tt_library_algo_word(a)))
            add_word(words, tt_library_algo_word(a));
}

static void
add_topologies(GString *words)
{
    add_word(words, "this");
    for (guint i = 0; tt_presets[i].name; i++)
        add_word(words, tt_presets[i].name);
}

static void
add_collectives(GString *words)
{
    for (guint c = 0; c < TT_N_COLLECTIVES; c++)
        add_word(words, tt_collective_name(c));
}

static void
add_types(GString *words)
{
    add_word(words, "all");
    for (guint t = 0; t < TT_N_TYPES; t++)
        add_word(words, tt_type_name(t));
}

static void
add_redops(GString *words)
{
    add_word(words, "all");
    for (guint r = 0; r < TT_N_REDOPS; r++)
        add_word(words, tt_redop_name(r));
}

static void
add_levels(GString *words)
{
    for (guint l = 0; l < TT_N_LEVELS; l++)
        add_word(words, tt_level_name(l));
}

static void
add_profiles(GString *words)
{
    add_word(words, "ideal tutti");
}

static void
add_libraries(GString *words)
{
    add_word(words, "ideal tutti nccl");
    for (guint i = 0; tt_nccl_versions[i]; i++) {
        g_autofree char *version = tt_nccl_version_name(tt_nccl_versions[i]);
        g_autofree char *word = g_strdup_printf("nccl-%s", version);

        add_word(words, word);
    }
}

static void
add_variables(GString *words)
{
    for (guint i = 0; tt_nccl_env_name(i); i++) {
        g_autofree char *word = g_strdup_printf("NCCL_%s=", tt_nccl_env_name(i));

        add_word(words, word);
    }
}

static void
add_backends(GString *words)
{
    add_word(words, "tutti");
    for (guint i = 0; tt_backends[i]; i++)
        add_word(words, tt_backends[i]->name);
}

/* Options whose values are words. Others take a number, or a file, which is bash's default. */
static const struct {
    const char *option;
    void (*add)(GString *words);
} values[] = {
    { "algo", add_algorithms },  { "topo", add_topologies },   { "collective", add_collectives },
    { "datatype", add_types },   { "op", add_redops },         { "level", add_levels },
    { "profile", add_profiles }, { "library", add_libraries }, { "env", add_variables },
    { "backend", add_backends },
};

static void
print_values(void)
{
    for (guint v = 0; v < G_N_ELEMENTS(values); v++) {
        g_autoptr(GString) words = g_string_new(NULL);
        char letter = 0;

        values[v].add(words);
        for (guint g = 0; g < TT_N_OPTION_GROUPS; g++)
            for (const GOptionEntry *e = tt_option_groups[g].entries; e->long_name; e++)
                if (strcmp(e->long_name, values[v].option) == 0)
                    letter = e->short_name;
        if (letter)
            printf("    --%s|-%c) words=\"%s\" ;;\n", values[v].option, letter, words->str);
        else
            printf("    --%s) words=\"%s\" ;;\n", values[v].option, words->str);
    }
}

/* --- the options of a command ------------------------------------------------------------------ */

static void
add_entries(GString *words, const GOptionEntry *entries)
{
    for (const GOptionEntry *e = entries; e && e->long_name; e++) {
        g_autofree char *word = g_strdup_printf("--%s", e->long_name);

        add_word(words, word);
    }
}

static void
print_command(const TtCommand *command)
{
    g_autoptr(GString) words = g_string_new("--help");

    add_entries(words, command->own);
    for (guint g = 0; g < TT_N_OPTION_GROUPS; g++)
        if (command->options & (1u << g))
            add_entries(words, tt_option_groups[g].entries);
    printf("    %s) words=\"%s\" ;;\n", command->name, words->str);
}

static void
print_bash(void)
{
    g_autoptr(GString) commands = g_string_new("--help --version");
    g_autoptr(GString) topologies = g_string_new(NULL);

    for (guint i = 0; tt_cmds[i]; i++)
        add_word(commands, tt_cmds[i]->name);
    add_topologies(topologies);
    printf("# bash completion for tutti %s; written by `tutti completion bash`\n"
           "_tutti() {\n"
           "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    local words= lead=\n"
           "    COMPREPLY=()\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
           "        mapfile -t COMPREPLY < <(compgen -W \"%s\" -- \"$current\")\n"
           "        return\n"
           "    fi\n"
           "    case $previous in\n",
           TT_VERSION, commands->str);
    print_values();
    printf("    show|lint|draw|export) [ \"${COMP_WORDS[1]}\" = topo ] && words=\"%s\" ;;\n"
           "    up) [ \"${COMP_WORDS[1]}\" = lab ] && words=hosts ;;\n"
           "    exec|down) [ \"${COMP_WORDS[1]}\" = lab ] && words=$(tutti lab list 2>/dev/null | "
           "cut -d' ' -f1) ;;\n",
           topologies->str);
    fputs("    esac\n"
          "    if [ -n \"$words\" ]; then\n"
          "        case $current in *,*) lead=${current%,*}, current=${current##*,} ;; esac\n"
          "        mapfile -t COMPREPLY < <(compgen -P \"$lead\" -W \"$words\" -- \"$current\")\n"
          "        return\n"
          "    fi\n"
          "    case $current in\n"
          "    -*) ;;\n"
          "    *)\n"
          "        case ${COMP_WORDS[1]} in\n"
          "        topo) words=\"list discover show lint draw export\" ;;\n"
          "        completion) words=bash ;;\n"
          "        lab) words=\"up exec down list\" ;;\n"
          "        help) words=\"",
          stdout);
    fputs(commands->str, stdout);
    fputs("\" ;;\n"
          "        *) return ;;\n"
          "        esac\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
          "        return\n"
          "        ;;\n"
          "    esac\n"
          "    case ${COMP_WORDS[1]} in\n",
          stdout);
    for (guint i = 0; tt_cmds[i]; i++)
        print_command(tt_cmds[i]);
    fputs("    esac\n"
          "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
          "}\n"
          "complete -o default -F _tutti tutti\n",
          stdout);
}

static int
run_completion(const TtOptions *options, GError **error)
{
    const char *shell = options->arguments[0];

    if (!shell || strcmp(shell, "bash") != 0 || options->arguments[1]) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "a shell is needed, one of: bash (source <(tutti completion bash))");
        return TT_EXIT_USAGE;
    }
    print_bash();
    return TT_EXIT_GOOD;
}

const TtCommand tt_cmd_completion = {
    .name = "completion",
    .summary = "print a script that completes commands, options and names in bash",
    .synopsis = "bash",
    .examples = "  source <(tutti completion bash)\n",
    .run = run_completion,
};
