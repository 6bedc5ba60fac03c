/* cli.h - a command is one file cli/cmd_<name>.c that defines one const struct.
 *
 * The build lists them, so a new file shows up in `tutti --help` and in shell completion. main()
 * parses the shared options a command names and its own, then calls it. Commands return errors;
 * main() alone prints them and turns their domain into an exit code.
 */
#pragma once
#include <glib.h>

/* Exit codes of the program. */
typedef enum {
    TT_EXIT_GOOD = 0,
    TT_EXIT_FAILED = 1, /* the result is wrong: wrong data, a plan that does not verify */
    TT_EXIT_USAGE = 2,
    TT_EXIT_FILE = 3,     /* a bad input file */
    TT_EXIT_DEAD = 4,     /* a hang or death, diagnosed */
    TT_EXIT_HARDWARE = 77 /* needs hardware that is not here */
} TtExit;

typedef struct TtOptions TtOptions; /* options.h */

typedef struct {
    const char *name;        /* "predict" */
    const char *summary;     /* one line for `tutti --help` */
    const char *synopsis;    /* arguments beside the options, NULL: none */
    const char *examples;    /* lines for the end of its --help */
    guint options;           /* shared groups it takes: TT_OPTIONS_SIZES | ... (options.h) */
    const GOptionEntry *own; /* its own options, NULL: none */

    /* Returns an exit code; with @error set, main() prints it and derives the code from its domain.
     */
    int (*run)(const TtOptions *options, GError **error);
} TtCommand;

extern const TtCommand *const tt_cmds[]; /* sorted by name, NULL at the end */

const TtCommand *tt_cmd_find(const char *name); /* NULL if there is none */

#define TT_CLI_ERROR (tt_cli_error_quark())
GQuark tt_cli_error_quark(void);
typedef enum {
    TT_CLI_ERROR_USAGE,
    TT_CLI_ERROR_FAILED,
    TT_CLI_ERROR_HARDWARE /* what it needs is not on this machine */
} TtCliError;

/* The exit code an error stands for, by domain and code. */
TtExit tt_exit_code(const GError *error);

/* Blanks instead of control characters: what goes to a terminal may quote a stranger. */
void tt_one_line(char *text);
