/* tutti - predict, run and compare collectives on a cluster. Finds the command, prints what failed.
 */
#include "cli/options.h"
#include "cli/values.h"
#include "exec/exec.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

const TtCommand *
tt_cmd_find(const char *name)
{
    for (guint i = 0; tt_cmds[i]; i++)
        if (strcmp(tt_cmds[i]->name, name) == 0)
            return tt_cmds[i];
    return NULL;
}

static void
print_help(void)
{
    puts("Usage:\n"
         "  tutti COMMAND [OPTION...]\n"
         "\n"
         "Predicts how long a collective takes on a cluster, runs the same plan for real, and "
         "shows\n"
         "where the two differ.\n"
         "\n"
         "Commands:");
    for (guint i = 0; tt_cmds[i]; i++)
        printf("  %-12s %s\n", tt_cmds[i]->name, tt_cmds[i]->summary);
    puts("\n"
         "Examples:\n"
         "  tutti predict --topo dgx-h100:16 -b 8 -e 8G -f 2 --algo all\n"
         "  tutti run --ranks 2 -b 1K -e 64M -f 4 --algo ring,tree\n"
         "  tutti verify --algo all --ranks 1-33\n"
         "  tutti topo show dgx-h100:2\n"
         "\n"
         "tutti COMMAND --help explains one command. Exit codes: 0 good, 1 the result failed, 2 "
         "usage,\n"
         "3 bad input file, 4 hang or death diagnosed, 77 hardware not here.");
}

static int
unknown_command(const char *name)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    g_autofree char *known = NULL;
    const char *near;

    for (guint i = 0; tt_cmds[i]; i++)
        g_ptr_array_add(words, (gpointer)tt_cmds[i]->name);
    g_ptr_array_add(words, NULL);
    near = tt_nearest_word(name, (const char *const *)words->pdata);
    known = g_strjoinv(", ", (char **)words->pdata);
    if (near)
        fprintf(stderr, "tutti: unknown command \"%s\", did you mean %s? (one of: %s)\n", name,
                near, known);
    else
        fprintf(stderr, "tutti: unknown command \"%s\" (one of: %s)\n", name, known);
    return TT_EXIT_USAGE;
}

/* Whatever an error says, it is one line. */
static void
print_error(const char *command, GError *error)
{
    const char *class = error->domain == TT_EXEC_ERROR ? tt_exec_error_class(error->code) : NULL;

    tt_one_line(error->message);
    fprintf(stderr, "tutti %s: %s%s%s\n", command, class ? class : "", class ? ": " : "",
            g_strchomp(error->message));
}

static int
run_command(const TtCommand *command, int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(TtOptions) options = tt_options_parse(command, argc, argv, &error);
    int code = TT_EXIT_GOOD;

    if (options)
        code = command->run(options, &error);
    if (!error)
        return code;
    fflush(stdout); /* rows that were good come before what ended them */
    print_error(command->name, error);
    return tt_exit_code(error);
}

/* A full disk must not look like success. */
static int
close_output(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    if (errno != EPIPE)
        fprintf(stderr, "tutti: cannot write to standard output: %s\n", g_strerror(errno));
    return code ? code : TT_EXIT_FAILED;
}

static int
dispatch(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    const TtCommand *command;

    if (!name) {
        fputs("tutti: a command is needed, see tutti --help\n", stderr);
        return TT_EXIT_USAGE;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        if (argc == 2) {
            print_help();
            return TT_EXIT_GOOD;
        }
        command = tt_cmd_find(argv[2]);
        if (!command)
            return unknown_command(argv[2]);
        return run_command(command, 2, (char *[]){ argv[2], "--help", NULL });
    }
    if (strcmp(name, "--version") == 0) {
        puts("tutti " TT_VERSION);
        return TT_EXIT_GOOD;
    }
    command = tt_cmd_find(name);
    return command ? run_command(command, argc - 1, argv + 1) : unknown_command(name);
}

int
main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_DFL); /* `tutti ... | head` ends without a word, whoever started us */
    return close_output(dispatch(argc, argv));
}
