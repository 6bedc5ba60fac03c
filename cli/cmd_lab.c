/* lab - a cluster of network namespaces on this machine, for testing and teaching. */
#include "cli/lab.h"
#include "cli/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static gboolean dry_run, all_labs, all_output;
static char *lab_name;
static int n_ranks = -1, host = -1, grace_s = 5;

static int usage(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

static int
usage(GError **error, const char *format, ...)
{
    g_autofree char *problem = NULL;
    va_list arguments;

    va_start(arguments, format);
    problem = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    tt_lab_error(error, TT_CLI_ERROR_USAGE,
                 "%s (tutti lab up TOPOLOGY, exec NAME -- COMMAND, down NAME, or list)", problem);
    return TT_EXIT_USAGE;
}

/* "tests/labs/one-switch.ini:4" is the lab "one-switch" unless --name says more. */
static char *
name_for(const char *topology)
{
    g_autofree char *base = g_path_get_basename(topology);
    char *end = strstr(base, ".ini");

    if (!end)
        end = strchr(base, ':');
    if (end)
        *end = '\0';
    return g_strdup(lab_name ? lab_name : base);
}

/* --- up ---------------------------------------------------------------------------------------- */

static void
print_rate(const char *what, double bits_per_s)
{
    printf("%s%g Mbit/s", what, bits_per_s / 1e6);
}

static void
print_lab(const TtLab *lab)
{
    printf("lab %s: %u hosts, %u ranks; /24 and /64 of", lab->name, lab->n_hosts,
           tt_lab_n_ranks(lab));
    for (guint nic = 0; nic < lab->n_nics; nic++) {
        g_autofree char *v4 = tt_lab_ipv4(0, nic), *v6 = tt_lab_ipv6(0, nic);

        printf("%s %s, %s", nic ? ";" : "", v4, v6);
    }
    printf("\nswitches:");
    for (guint b = 0; b < lab->bridges->len; b++)
        printf(" %s", (char *)lab->bridges->pdata[b]);
    printf("\ncables:");
    for (guint nic = 0; nic < lab->n_nics; nic++) {
        printf("%s %u x nic%u of", nic ? ";" : "", lab->n_hosts, nic);
        print_rate(" ", lab->nic_bits_per_s[nic]);
    }
    if (lab->trunks->len)
        printf("; %u between switches of %g Mbit/s", lab->trunks->len,
               g_array_index(lab->trunks, TtLabTrunk, 0).bits_per_s / 1e6);
    printf("; payload %.2f %% of it by the topology\n", lab->efficiency * 100);
    printf("free after a pause:");
    for (guint nic = 0; nic < lab->n_nics; nic++)
        printf("%s %u bytes on nic%u", nic ? "," : "",
               tt_lab_burst_bytes(lab, nic, lab->nic_bits_per_s[nic]), nic);
    if (lab->trunks->len)
        printf(", %u between switches",
               tt_lab_burst_bytes(lab, 0, g_array_index(lab->trunks, TtLabTrunk, 0).bits_per_s));
    putchar('\n');
}

static TtLab *
plan(const TtOptions *options, GError **error)
{
    const char *topology = options->arguments[1];
    g_autofree char *name = name_for(topology);
    g_autoptr(TtTopology) topo = NULL;
    TtLab *lab;

    if (!tt_lab_check_name(name, error))
        return NULL;
    topo = tt_topology_open(topology, options->settings, error);
    if (!topo)
        return NULL;
    for (guint i = 0; tt_topology_warnings(topo)[i]; i++)
        fprintf(stderr, "tutti lab: note: %s\n", tt_topology_warnings(topo)[i]);
    lab = tt_lab_plan(topo, name, topology, error);
    for (guint i = 0; lab && i < lab->notes->len; i++)
        fprintf(stderr, "tutti lab: note: %s\n", (char *)lab->notes->pdata[i]);
    return lab;
}

static int
up(const TtOptions *options, GError **error)
{
    g_autoptr(TtLab) lab = NULL;

    if (!options->arguments[1])
        return usage(error, "up needs a topology");
    if (options->arguments[2])
        return usage(error, "up takes one topology, not also \"%s\"", options->arguments[2]);
    lab = plan(options, error);
    if (!lab)
        return TT_EXIT_USAGE;
    if (dry_run) {
        g_autoptr(GPtrArray) script = tt_lab_script(lab);

        for (guint i = 0; i < script->len; i++) {
            g_autofree char *text = tt_lab_step_text(script->pdata[i]);

            puts(text);
        }
        return TT_EXIT_GOOD;
    }
    if (tt_lab_possible(error) && tt_lab_up(lab, error))
        print_lab(lab);
    return TT_EXIT_GOOD;
}

/* --- exec -------------------------------------------------------------------------------------- */

static int
exec_on_host(const TtLab *lab, char **command, GError **error)
{
    if (n_ranks >= 0 || all_output)
        return usage(error, "--host runs one command, without ranks");
    if (host < 0 || (guint)host >= lab->n_hosts) {
        tt_lab_error(error, TT_CLI_ERROR_USAGE, "--host %d: lab %s has hosts 0 to %u", host,
                     lab->name, lab->n_hosts - 1);
        return TT_EXIT_USAGE;
    }
    fflush(stdout);
    tt_lab_become(lab, (guint)host, command, error);
    return TT_EXIT_USAGE;
}

static int
exec_ranks(TtLab *lab, char **command, GError **error)
{
    guint all = tt_lab_n_ranks(lab);
    TtLabRun run = { n_ranks < 0 ? all : (guint)n_ranks, all_output, (guint)grace_s };

    if (run.n_ranks < 1 || run.n_ranks > all) {
        tt_lab_error(error, TT_CLI_ERROR_USAGE, "--ranks %d: lab %s has 1 to %u", n_ranks,
                     lab->name, all);
        return TT_EXIT_USAGE;
    }
    if (grace_s < 0 || grace_s > 3600) {
        tt_lab_error(error, TT_CLI_ERROR_USAGE, "--grace %d is not within 0 to 3600 s", grace_s);
        return TT_EXIT_USAGE;
    }
    return tt_lab_exec(lab, &run, command, error);
}

static int
exec(const TtOptions *options, GError **error)
{
    g_autofree char *name = NULL, *program = NULL;
    g_autoptr(TtLab) lab = NULL;
    char **command = options->arguments + 2;

    if (!options->arguments[1] || !options->arguments[2])
        return usage(error, "exec needs %s", options->arguments[1] ? "a command" : "a lab's name");
    if (!tt_lab_possible(error))
        return TT_EXIT_HARDWARE;
    name = name_for(options->arguments[1]);
    lab = tt_lab_load(name, FALSE, error);
    if (!lab)
        return TT_EXIT_USAGE;
    program = g_find_program_in_path(command[0]);
    if (!program) {
        tt_lab_error(error, TT_CLI_ERROR_USAGE, "cannot run \"%s\": there is no such program",
                     command[0]);
        return TT_EXIT_USAGE;
    }
    return host >= 0 || host < -1 ? exec_on_host(lab, command, error)
                                  : exec_ranks(lab, command, error);
}

/* --- down, list -------------------------------------------------------------------------------- */

static int
down(const TtOptions *options, GError **error)
{
    g_auto(GStrv) all = NULL;
    g_autofree char *name = NULL;

    if (all_labs && options->arguments[1])
        return usage(error, "down takes a name or --all, not both");
    if (!all_labs && !options->arguments[1])
        return usage(error, "down needs a lab's name, or --all");
    if (!all_labs && options->arguments[2])
        return usage(error, "down takes one name, not also \"%s\"", options->arguments[2]);
    if (!tt_lab_possible(error))
        return TT_EXIT_HARDWARE;
    if (!all_labs) {
        name = name_for(options->arguments[1]);
        tt_lab_down(name, error);
        return TT_EXIT_GOOD;
    }
    all = tt_lab_list();
    for (guint i = 0; all[i]; i++)
        if (!tt_lab_down(all[i], error)) {
            if (tt_lab_is_up(all[i]))
                break;
            g_clear_error(error); /* somebody else took it down */
        }
    return TT_EXIT_GOOD;
}

static int
list(const TtOptions *options, GError **error)
{
    g_auto(GStrv) names = tt_lab_list();

    if (options->arguments[1])
        return usage(error, "list takes no \"%s\"", options->arguments[1]);
    for (guint i = 0; names[i]; i++) {
        g_autoptr(GError) problem = NULL;
        g_autoptr(TtLab) lab = tt_lab_load(names[i], FALSE, &problem);

        if (!lab && !tt_lab_is_up(names[i])) /* gone meanwhile */
            continue;
        if (!lab) {
            g_propagate_error(error, g_steal_pointer(&problem));
            return TT_EXIT_FAILED;
        }
        printf("%-16s %u hosts, %u ranks, from %s\n", lab->name, lab->n_hosts, tt_lab_n_ranks(lab),
               lab->topology);
    }
    return TT_EXIT_GOOD;
}

/* --- the command ------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*run)(const TtOptions *options, GError **error);
    const char *options; /* of its own, by letters below */
} verbs[] = {
    { "up", up, "nd" }, { "exec", exec, "nrhog" }, { "down", down, "na" }, { "list", list, "" }
};

static gboolean
check_options(const TtOptions *options, const char *verb, const char *allowed, GError **error)
{
    const struct {
        char letter;
        gboolean given;
        const char *name;
    } all[] = {
        { 'n', lab_name != NULL, "--name" }, { 'd', dry_run, "--dry-run" },
        { 'a', all_labs, "--all" },          { 'r', n_ranks != -1, "--ranks" },
        { 'h', host != -1, "--host" },       { 'o', all_output, "--all-output" },
        { 'g', grace_s != 5, "--grace" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(all); i++)
        if (all[i].given && !strchr(allowed, all[i].letter)) {
            usage(error, "%s has no %s", verb, all[i].name);
            return FALSE;
        }
    if (options->settings && strcmp(verb, "up") != 0) {
        usage(error, "%s has no --set, up has", verb);
        return FALSE;
    }
    if (options->topo) {
        usage(error, "the topology stands after up, without --topo");
        return FALSE;
    }
    return TRUE;
}

static int
run_lab(const TtOptions *options, GError **error)
{
    const char *verb = options->arguments[0];

    for (gsize i = 0; verb && i < G_N_ELEMENTS(verbs); i++)
        if (strcmp(verb, verbs[i].name) == 0)
            return check_options(options, verb, verbs[i].options, error)
                       ? verbs[i].run(options, error)
                       : TT_EXIT_USAGE;
    if (verb)
        return usage(error, "cannot \"%s\"", verb);
    return usage(error, "up, exec, down or list is needed");
}

static const GOptionEntry entries[] = {
    { "name", 0, 0, G_OPTION_ARG_STRING, &lab_name, "the lab's name; default: the topology's",
      "NAME" },
    { "dry-run", 0, 0, G_OPTION_ARG_NONE, &dry_run, "up: print the commands, make nothing", NULL },
    { "ranks", 0, 0, G_OPTION_ARG_INT, &n_ranks, "exec: only the first N ranks", "N" },
    { "host", 0, 0, G_OPTION_ARG_INT, &host, "exec: once, on host H, not per rank", "H" },
    { "all-output", 0, 0, G_OPTION_ARG_NONE, &all_output,
      "exec: standard output of all ranks, not of rank 0 alone", NULL },
    { "grace", 0, 0, G_OPTION_ARG_INT, &grace_s,
      "exec: when a rank failed, the others may run on for this long; default 5", "SECONDS" },
    { "all", 0, 0, G_OPTION_ARG_NONE, &all_labs, "down: every lab", NULL },
    { NULL },
};

const TtCommand tt_cmd_lab = {
    .name = "lab",
    .summary = "build a cluster of network namespaces on this machine, run ranks in it",
    .synopsis = "up TOPOLOGY[:NODES] | exec NAME -- COMMAND ARG... | down NAME | list",
    .examples = "  tutti lab up tests/labs/one-switch.ini\n"
                "  tutti lab up hosts:4 --set \"nic.bandwidth=1 Gbit/s\" --dry-run\n"
                "  tutti lab exec one-switch -- env\n"
                "  tutti lab exec one-switch --host 3 -- ping -c 3 10.0.0.1\n"
                "  tutti lab down one-switch\n",
    .options = TT_OPTIONS_TOPOLOGY,
    .own = entries,
    .run = run_lab,
};
