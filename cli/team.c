#include "cli/team.h"

#include <errno.h>
#include <gio/gio.h>
#include <stdio.h>
#include <string.h>

/* No more than a secret may be long: of a device, too. */
#define SECRET_BYTES 4096

static char *
read_line_of(const char *path, GError **error)
{
    char text[SECRET_BYTES + 1];
    FILE *file = fopen(path, "r");
    size_t n;

    if (!file) {
        g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(errno),
                    "--secret-file %s: %s", path, g_strerror(errno));
        return NULL;
    }
    n = fread(text, 1, SECRET_BYTES, file);
    fclose(file);
    text[n] = '\0';
    return g_strchomp(g_strdup(text));
}

static gboolean
find_secret(const TtOptions *options, char **secret, GError **error)
{
    if (options->secret_file) {
        *secret = read_line_of(options->secret_file, error);
        if (!*secret)
            return FALSE;
        if (**secret == '\0') {
            g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE, "--secret-file %s is empty",
                        options->secret_file);
            return FALSE;
        }
        return TRUE;
    }
    *secret = g_strdup(g_getenv("TUTTI_SECRET"));
    return TRUE;
}

static gboolean
find_launch(const TtOptions *options, TtLaunch *launch, GError **error)
{
    TtLaunchOptions ask = { .root = options->meet,
                            .rank = options->rank,
                            .n_ranks = options->n_ranks ? options->ranks[0] : 0,
                            .hostfile = options->hostfile };
    g_auto(GStrv) environment = g_get_environ();

    return tt_launch_find(&ask, (const char *const *)environment, launch, error);
}

/* Memory does not reach other machines, and only a launch without a root is known to have none;
 * or one whose root is at this machine's loopback. */
static gboolean
may_cross_machines(const TtLaunch *launch)
{
    g_autoptr(GInetAddress) address =
        launch->root_host ? g_inet_address_new_from_string(launch->root_host) : NULL;

    if (launch->n_local >= launch->n_ranks || launch->meeting)
        return FALSE;
    return !launch->root_host || (!g_str_equal(launch->root_host, "localhost") &&
                                  !(address && g_inet_address_get_is_loopback(address)));
}

gboolean
tt_team_setup(TtTeamSetup *setup, const TtOptions *options, guint n_ranks, GError **error)
{
    TtTeamOptions *team = &setup->team;
    const char *interface = options->interface ? options->interface : g_getenv("TUTTI_INTERFACE");
    const char *transport;

    memset(setup, 0, sizeof *setup);
    if (options->n_ranks > 1) {
        g_set_error(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE, "--ranks must be one number here");
        return FALSE;
    }
    if (!find_launch(options, &setup->launch, error) ||
        !find_secret(options, &setup->secret, error))
        return FALSE;
    if (setup->launch.n_ranks == 0)
        setup->launch.n_ranks = setup->launch.n_local = n_ranks;
    transport = !options->transport_given && may_cross_machines(&setup->launch)
                    ? "shm,tcp"
                    : options->transport;
    *team = (TtTeamOptions){ .n_ranks = setup->launch.n_ranks,
                             .transport = transport,
                             .timeout_s = options->timeout_s,
                             .pin = options->pin,
                             .interface = interface,
                             .device = options->device,
                             .gpus = options->gpus,
                             .gpu_protocol = options->protocol,
                             .gpu_placement = options->placement,
                             .gid_index = options->gid_index,
                             .streams = options->streams,
                             .checksum = options->checksum,
                             .launch = &setup->launch,
                             .secret = setup->secret };
    return !options->fault || tt_fault_parse(options->fault, team->n_ranks, &team->fault, error);
}

void
tt_team_setup_clear(TtTeamSetup *setup)
{
    tt_launch_clear(&setup->launch);
    g_clear_pointer(&setup->secret, g_free);
}

void
tt_team_hush(void)
{
    if (!freopen("/dev/null", "w", stdout))
        fclose(stdout);
}

gboolean
tt_team_check_gpus(const TtTeamSetup *setup, const TtOptions *options, GError **error)
{
    gboolean on_gpus = g_str_has_prefix(setup->team.transport, "cuda");
    gboolean gpu_options = options->gpus || options->protocol != TT_GPU_PROTOCOL_AUTO ||
                           options->placement != TT_GPU_PLACE_AUTO;
    const char *why = NULL;

    if (!on_gpus && gpu_options)
        why = "--gpus, --protocol and --placement go with --transport cuda";
    else if (on_gpus && options->arrivals)
        why = "--arrivals: who waits for whom is not counted on GPUs";
    else if (on_gpus && options->start_offset)
        why = "--start-offset: collectives on GPUs begin together";
    if (why)
        g_set_error_literal(error, TT_CLI_ERROR, TT_CLI_ERROR_USAGE, why);
    return !why;
}
