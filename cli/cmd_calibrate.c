/* calibrate - measure what the executor's steps cost on this machine and keep it as a profile. */
#include "cli/calibrate_from.h"
#include "cli/calibration.h"
#include "cli/options.h"
#include "cli/output.h"
#include "algos/schedule.h"

#include <stdio.h>
#include <string.h>

/* Eight ranks show what a GPU does when all of it is busy. */
#define GPU_RANKS 8
#define UNSET     G_MININT

static char *output, *max_bytes, *transport, *interface, **from, *gpus, *protocol, *placement;
static gint n_ranks = UNSET;
static gboolean quick, quiet;

static const GOptionEntry entries[] = {
    { "output", 'O', 0, G_OPTION_ARG_FILENAME, &output,
      "Where to keep the profile (default: where compare looks for it)", "FILE" },
    { "quick", 'q', 0, G_OPTION_ARG_NONE, &quick, "Fewer sizes and samples: a quarter of the time",
      NULL },
    { "max-bytes", 0, 0, G_OPTION_ARG_STRING, &max_bytes,
      "Largest buffer measured (default 112M); three of it are needed per rank", "SIZE" },
    { "transport", 0, 0, G_OPTION_ARG_STRING, &transport,
      "What connects the two ranks: shm (default), tcp, verbs, cuda", "NAME" },
    { "ranks", 0, 0, G_OPTION_ARG_INT, &n_ranks,
      "On GPUs: measured at the same time, as many as will be compared (default 8); even", "N" },
    { "gpus", 0, 0, G_OPTION_ARG_STRING, &gpus, "Of transport cuda (default: all), or host",
      "LIST" },
    { "protocol", 0, 0, G_OPTION_ARG_STRING, &protocol,
      "Between GPUs: simple, ll, ll128 or auto (default)", "NAME" },
    { "placement", 0, 0, G_OPTION_ARG_STRING, &placement,
      "Of messages between GPUs: write, read, host or auto (default)", "NAME" },
    { "interface", 0, 0, G_OPTION_ARG_STRING, &interface,
      "Of the network; default: inside this machine", "NAME" },
    { "from", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &from,
      "Fit NCCL's constants on measurements instead (files, folders; more may follow)", "FILE" },
    { "quiet", 0, 0, G_OPTION_ARG_NONE, &quiet, "No progress on standard error", NULL },
    { NULL }
};

static void
print_state(const TtProfile *profile)
{
    static const double footprints[] = { 64e3, 1e6, 16e6, 128e6 };

    printf("#\n# while a flag takes %.0f ns:\n", profile->latency_s * 1e9);
    printf("# %-24s %9s", "step", "fixed(ns)");
    for (guint i = 0; i < G_N_ELEMENTS(footprints); i++)
        printf("   GB/s@%-5s", ((const char *[]){ "64K", "1M", "16M", "128M" })[i]);
    printf("\n");
    for (guint op = TT_OP_COPY; op < TT_N_OPS; op++) {
        printf("  %-24s %9.1f", tt_op_name(op),
               1e9 * tt_profile_op_s(profile, op, 0, footprints[0]));
        for (guint i = 0; i < G_N_ELEMENTS(footprints); i++) {
            const TtOpCost *cost = &profile->op[op];
            double fixed_s = tt_profile_op_s(profile, op, 0, footprints[i]);
            double rate = 1e6 / (tt_profile_op_s(profile, op, 1000000, footprints[i]) - fixed_s);

            if (footprints[i] > 2 * cost->footprint_bytes[MAX(1, cost->n) - 1])
                printf("   %10s", "-"); /* not measured, as --max-bytes says */
            else
                printf("   %10.2f", rate / 1e9);
        }
        printf("\n");
    }
}

static void
print_profile(const TtProfile *profile, const char *path)
{
    printf("# tutti %s calibrate: %s\n", TT_VERSION, profile->machine);
    printf("# start %.0f ns, turning a core to another rank %.2f us\n", profile->start_s * 1e9,
           profile->switch_s * 1e6);
    printf("# time of one step = fixed + bytes * per byte, at what a rank touches in all\n");
    for (const TtProfile *state = profile; state; state = state->next)
        print_state(state);
    printf("#\n# kept in %s\n", path);
}

static int
fit_from(const TtOptions *options, GError **error)
{
    g_autoptr(GStrvBuilder) paths = g_strv_builder_new();
    g_auto(GStrv) all = NULL;

    if (quick || max_bytes) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "--quick and --max-bytes: nothing is measured with --from");
        return TT_EXIT_USAGE;
    }
    g_strv_builder_addv(paths, (const char **)from);
    g_strv_builder_addv(paths, (const char **)options->arguments);
    all = g_strv_builder_end(paths);
    return tt_calibrate_from(all, output, quiet, error);
}

static gboolean
check_gpu_options(TtTeamOptions *team, TtCalibrateOptions *how, GError **error)
{
    gboolean is_gpu = tt_calibration_is_of_gpus(transport);

    if (transport && strchr(transport, ',')) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "--transport %s: one transport is measured at a time", transport);
        return FALSE;
    }
    if (!is_gpu && (n_ranks != UNSET || gpus || protocol || placement)) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "--ranks, --gpus, --protocol and --placement go with --transport cuda");
        return FALSE;
    }
    how->n_ranks = !is_gpu ? 0 : n_ranks == UNSET ? GPU_RANKS : (guint)n_ranks;
    if (is_gpu && n_ranks != UNSET && (n_ranks < 2 || n_ranks > 1024 || n_ranks % 2 != 0)) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "--ranks: ranks are measured in pairs, 2, 4, ... 1024, not %d", n_ranks);
        return FALSE;
    }
    team->gpus = gpus;
    return tt_gpu_protocol_parse(protocol, &team->gpu_protocol, error) &&
           tt_gpu_placement_parse(placement, &team->gpu_placement, error);
}

static int
calibrate_run(const TtOptions *options, GError **error)
{
    TtTeamOptions team = { .transport = transport ? transport : "shm",
                           .interface = interface,
                           .gid_index = -1 };
    TtCalibrateOptions how = { .quick = quick, .quiet = quiet, .team = &team };
    g_autofree char *path = output ? g_strdup(output) : tt_calibration_path(transport, gpus);
    g_autofree char *folder = g_path_get_dirname(path);
    g_autoptr(TtProfile) profile = NULL;
    g_autofree char *plain = NULL, *text = NULL, *about = NULL;

    if (from)
        return fit_from(options, error);
    if (options->arguments[0]) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE,
                    "calibrate takes no argument \"%s\" (files are given with --from)",
                    options->arguments[0]);
        return TT_EXIT_USAGE;
    }
    if (!check_gpu_options(&team, &how, error))
        return TT_EXIT_USAGE;
    if (max_bytes && !tt_parse_cli_size(max_bytes, &how.max_bytes, error)) {
        g_prefix_error(error, "--max-bytes: ");
        return TT_EXIT_USAGE;
    }
    if (!output)
        g_mkdir_with_parents(folder, 0755);
    if (!tt_output_check("--output", path, error))
        return TT_EXIT_USAGE;
    profile = tt_calibrate(&how, &about, error);
    if (!profile)
        return TT_EXIT_FAILED;
    plain = tt_profile_to_text(profile);
    text = g_strconcat(plain, about ? "\n" : "", about, NULL);
    if (!tt_output_write(path, text, error))
        return TT_EXIT_FAILED;
    if (about)
        printf("%s", about);
    print_profile(profile, path);
    return TT_EXIT_GOOD;
}

const TtCommand tt_cmd_calibrate = {
    .name = "calibrate",
    .summary = "measure what steps cost on this machine: latency, copies, reductions by size",
    .examples = "  tutti calibrate\n"
                "      keeps the profile where `tutti compare` finds it\n"
                "  tutti calibrate --quick --output this.ini\n"
                "      compare later with --profile this.ini\n"
                "  tutti calibrate --from bench/measurements --output nccl.ini\n"
                "      constants of NCCL's time model, fitted on published measurements\n",
    .synopsis = "[FILE...]",
    .own = entries,
    .run = calibrate_run,
};
