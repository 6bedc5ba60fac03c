#include "exec/launch.h"
#include "exec/launch_env.h"
#include "exec/launch_hostfile.h"
#include "exec/exec.h"
#include <string.h>

void
tt_launch_clear(TtLaunch *launch)
{
    g_clear_pointer(&launch->root_host, g_free);
    g_clear_pointer(&launch->meeting, g_free);
}

char *
tt_launch_ranks_text(guint first, guint n)
{
    return n == 1 ? g_strdup_printf("rank %u", first)
                  : g_strdup_printf("ranks %u-%u", first, first + n - 1);
}

static gboolean usage(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

static gboolean
usage(GError **error, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (error)
        *error = g_error_new_valist(TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE, format, args);
    va_end(args);
    return FALSE;
}

/* "3" or "0-3". */
static gboolean
parse_range(const char *text, guint *first, guint *n, GError **error)
{
    g_auto(GStrv) ends = g_strsplit(text, "-", 2);
    guint64 low = 0, high;

    if (!g_ascii_string_to_unsigned(ends[0] ? ends[0] : "", 10, 0, G_MAXINT32, &low, NULL))
        return usage(error, "--rank %s is not a rank (3) or a range (0-3)", text);
    high = low;
    if (ends[1] &&
        (!g_ascii_string_to_unsigned(ends[1], 10, 0, G_MAXINT32, &high, NULL) || high < low))
        return usage(error, "--rank %s is not a rank (3) or a range (0-3)", text);
    *first = (guint)low;
    *n = (guint)(high - low + 1);
    return TRUE;
}

/* HOST, HOST:PORT, [IPV6]:PORT. */
static gboolean
parse_root(const char *text, const char *name, TtLaunch *launch, GError **error)
{
    const char *end = *text == '[' ? strchr(text, ']') : NULL, *port = NULL;
    const char *colon = strrchr(text, ':');
    guint64 number = TT_LAUNCH_DEFAULT_PORT;
    g_autofree char *host = NULL;

    if (end) {
        host = g_strndup(text + 1, (gsize)(end - text - 1));
        port = end[1] ? end + 1 : NULL;
    } else if (colon && strchr(text, ':') != colon) {
        return usage(error, "%s %s: an IPv6 address needs brackets: [ADDRESS]:PORT", name, text);
    } else {
        host = colon ? g_strndup(text, (gsize)(colon - text)) : g_strdup(text);
        port = colon;
    }
    if (!*host || (port && (*port != ':' ||
                            !g_ascii_string_to_unsigned(port + 1, 10, 1, 65535, &number, NULL))))
        return usage(error, "%s %s is not HOST:PORT or [IPV6]:PORT, ports 1 to 65535", name, text);
    g_clear_pointer(&launch->meeting, g_free);
    g_free(launch->root_host);
    launch->root_host = g_steal_pointer(&host);
    launch->root_port = (guint)number;
    launch->pmi_fd = -1;
    return TRUE;
}

/* --rank and --ranks must say what the launcher says. */
static gboolean
agree_with_options(const TtLaunchOptions *options, const TtLaunch *launch, GError **error)
{
    guint first, n;

    if (options->hostfile)
        return usage(error, "--hostfile and %s both say which ranks run here: give one",
                     launch->source);
    if (options->n_ranks && options->n_ranks != launch->n_ranks)
        return usage(error, "--ranks %u, but %s started %u", options->n_ranks, launch->source,
                     launch->n_ranks);
    if (!options->rank)
        return TRUE;
    if (!parse_range(options->rank, &first, &n, error))
        return FALSE;
    if (first != launch->first_rank || n != launch->n_local)
        return usage(error, "--rank %s, but %s says that this is rank %u", options->rank,
                     launch->source, launch->first_rank);
    return TRUE;
}

/* No launcher, no hostfile: --meet, --rank and --ranks say it all, or this process is everyone. */
static gboolean
from_options(const TtLaunchOptions *options, gboolean has_root, TtLaunch *launch, GError **error)
{
    if (!options->rank && !options->root) {
        launch->source = "fork";
        launch->n_local = launch->n_ranks = options->n_ranks;
        return TRUE;
    }
    launch->source = "--meet";
    if (!options->rank || !options->n_ranks || !has_root)
        return usage(error, "%s needs %s too, or a launcher's environment",
                     options->rank && has_root ? "--rank"
                     : options->root           ? "--meet"
                                               : "--rank",
                     options->rank && has_root ? "--ranks"
                     : options->root           ? "--rank and --ranks"
                                               : "--meet HOST:PORT and --ranks");
    if (!parse_range(options->rank, &launch->first_rank, &launch->n_local, error))
        return FALSE;
    launch->n_ranks = options->n_ranks;
    if (launch->first_rank >= launch->n_ranks ||
        launch->n_local > launch->n_ranks - launch->first_rank)
        return usage(error, "--rank %s: there are ranks 0-%u only (--ranks %u)", options->rank,
                     launch->n_ranks - 1, launch->n_ranks);
    return TRUE;
}

static gboolean
from_hostfile(const TtLaunchOptions *options, TtLaunch *launch, GError **error)
{
    guint first, n;

    launch->source = "--hostfile";
    if (!tt_launch_from_hostfile(options->hostfile, options->machine, launch, error))
        return FALSE;
    if (options->n_ranks && options->n_ranks != launch->n_ranks)
        return usage(error, "--ranks %u, but %s has slots for %u", options->n_ranks,
                     options->hostfile, launch->n_ranks);
    if (!options->rank)
        return TRUE;
    if (!parse_range(options->rank, &first, &n, error))
        return FALSE;
    if (first != launch->first_rank || n != launch->n_local) {
        g_autofree char *ranks = tt_launch_ranks_text(launch->first_rank, launch->n_local);

        return usage(error, "--rank %s, but %s gives this machine %s", options->rank,
                     options->hostfile, ranks);
    }
    return TRUE;
}

static gboolean
find(const TtLaunchOptions *options, const char *const *environment, TtLaunch *launch,
     GError **error)
{
    const char *given = g_environ_getenv((char **)environment, "TUTTI_ROOT");
    const char *root = options->root ? options->root : given && *given ? given : NULL;
    const char *name = options->root ? "--meet" : "TUTTI_ROOT=";

    if (!tt_launch_from_environment(environment, options->machine, root != NULL, launch, error))
        return FALSE;
    if (launch->source) {
        if (!agree_with_options(options, launch, error))
            return FALSE;
    } else if (options->hostfile) {
        if (!from_hostfile(options, launch, error))
            return FALSE;
    } else if (!from_options(options, root != NULL, launch, error)) {
        return FALSE;
    }
    if (!root || g_str_equal(launch->source, "fork"))
        return TRUE;
    return parse_root(root, name, launch, error);
}

gboolean
tt_launch_find(const TtLaunchOptions *options, const char *const *environment, TtLaunch *launch,
               GError **error)
{
    *launch = (TtLaunch){ .n_on_host = 1, .pmi_fd = -1 };
    if (find(options, environment, launch, error))
        return TRUE;
    tt_launch_clear(launch);
    return FALSE;
}
