/* nccl_join.c - from a process that knows nothing to one with GPUs that knows all others'.
 *
 * A problem that one process has is everybody's: it is gathered as facts are.
 */
#include "exec/nccl_private.h"

#include <stdlib.h>
#include <string.h>

/* What a process says of itself before it touches a GPU. */
typedef struct {
    gint32 code;       /* of its problem */
    char problem[500]; /* "": none */
    char host_id[160];
    guint32 n_visible;
    gint32 version;
    guint32 settings; /* hash */
} Card;

/* --gpus 0,1: those of this process. NULL with an error; *n = 0 if none were given. Caller frees. */
static guint *
parse_devices(const char *text, guint n_visible, guint *n, GError **error)
{
    g_auto(GStrv) words = g_strsplit(text ? text : "", ",", -1);
    g_autofree guint *devices = g_new0(guint, g_strv_length(words) + 1);

    *n = 0;
    for (guint i = 0; words[i]; i++) {
        guint64 value;

        if (!g_ascii_string_to_unsigned(words[i], 10, 0, n_visible - 1, &value, NULL)) {
            g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                        "--gpus \"%s\": %s has GPUs 0-%u; a list as in 0,1", text,
                        g_get_host_name(), n_visible - 1);
            return NULL;
        }
        devices[(*n)++] = (guint)value;
    }
    return g_steal_pointer(&devices);
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char *
tt_nccl_settings(void)
{
    g_auto(GStrv) names = g_listenv();
    GString *text = g_string_new(NULL);

    qsort(names, g_strv_length(names), sizeof *names, compare_names);
    for (guint i = 0; names[i]; i++)
        if (g_str_has_prefix(names[i], "NCCL_"))
            g_string_append_printf(text, "%s%s=%s", text->len ? " " : "", names[i],
                                   g_getenv(names[i]));
    return g_string_free(text, FALSE);
}

/* Its log would go between the rows. */
static void
move_log_aside(void)
{
    if (g_getenv("NCCL_DEBUG"))
        g_setenv("NCCL_DEBUG_FILE", "/dev/stderr", FALSE);
}

static gboolean
load(TtNcclTeam *team, guint *n_visible, GError **error)
{
    move_log_aside();
    team->nccl = tt_nccl_load(&team->version, error);
    if (!team->nccl)
        return FALSE;
    team->cuda = tt_cuda_load(error);
    return team->cuda && tt_nccl_count_gpus(team->cuda, n_visible, error);
}

/* A problem of one process is everybody's. Always FALSE. */
static gboolean
set_problem(const TtNcclTeam *team, guint process, gint32 code, const char *text, GError **error)
{
    g_autofree char *ranks = NULL;
    guint first, n;

    tt_circle_ranks(team->circle, process, &first, &n);
    ranks = tt_launch_ranks_text(first, n);
    g_set_error(error, TT_EXEC_ERROR, code, "%s%s%s", process ? ranks : "", process ? ": " : "",
                text);
    return FALSE;
}

static gboolean
no_problems(const TtNcclTeam *team, const Card *cards, GError **error)
{
    for (guint p = 0; p < tt_circle_n_processes(team->circle); p++)
        if (cards[p].problem[0])
            return set_problem(team, p, cards[p].code, cards[p].problem, error);
    return TRUE;
}

static gboolean
same_library(const TtNcclTeam *team, const Card *cards, GError **error)
{
    for (guint p = 1; p < tt_circle_n_processes(team->circle); p++) {
        g_autofree char *ours = tt_nccl_version_text(cards[0].version);
        g_autofree char *theirs = tt_nccl_version_text(cards[p].version), *ranks = NULL;
        guint first, n;

        tt_circle_ranks(team->circle, p, &first, &n);
        ranks = tt_launch_ranks_text(first, n);
        if (cards[p].version != cards[0].version) {
            g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_MISMATCH,
                        "%s found NCCL %s, rank 0 NCCL %s: all must have the same", ranks, theirs,
                        ours);
            return FALSE;
        }
        if (cards[p].settings != cards[0].settings && !strstr(team->place->settings, "(others"))
            g_strlcat(team->place->settings, " (others have other NCCL_ variables)",
                      sizeof team->place->settings);
    }
    return TRUE;
}

static void
write_card(Card *card, guint n_visible, gint32 version, const GError *problem)
{
    g_autofree char *boot_id = NULL, *settings = tt_nccl_settings();

    if (g_file_get_contents("/proc/sys/kernel/random/boot_id", &boot_id, NULL, NULL))
        g_strlcpy(card->host_id, g_strchomp(boot_id), sizeof card->host_id);
    else
        g_strlcpy(card->host_id, g_get_host_name(), sizeof card->host_id);
    card->n_visible = n_visible;
    card->version = version;
    card->settings = g_str_hash(settings);
    if (problem) {
        card->code = problem->code;
        g_strlcpy(card->problem, problem->message, sizeof card->problem);
    }
}

/* Which of its GPUs this process's first rank takes: those before it on this machine take the ones before. */
static guint
first_device(const TtNcclTeam *team, const Card *cards)
{
    guint own = tt_circle_process_of(team->circle, team->first_rank), before = 0;

    for (guint p = 0; p < own; p++) {
        guint first, n;

        tt_circle_ranks(team->circle, p, &first, &n);
        if (strcmp(cards[p].host_id, cards[own].host_id) == 0)
            before += n;
    }
    /* One that sees no more than it needs was given its own. */
    return cards[own].n_visible <= team->n_local ? 0 : before;
}

static gboolean
choose_devices(TtNcclTeam *team, const Card *cards, const guint *devices, guint n, GError **error)
{
    guint own = tt_circle_process_of(team->circle, team->first_rank);
    guint n_visible = cards[own].n_visible, first = first_device(team, cards);

    if (n > 0 && n != team->n_local) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "--gpus names %u GPUs for the %u ranks of this process", n, team->n_local);
        return FALSE;
    }
    if (n == 0 && first + team->n_local > n_visible) {
        g_set_error(
            error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
            "%u ranks on %s, which has %u GPU%s: NCCL refuses two ranks on one; --transport "
            "cuda can",
            first + team->n_local, g_get_host_name(), n_visible, n_visible == 1 ? "" : "s");
        return FALSE;
    }
    for (guint i = 0; i < team->n_local; i++) {
        team->ranks[i].rank = team->first_rank + i;
        team->ranks[i].device = (int)(n > 0 ? devices[i] : first + i);
    }
    return TRUE;
}

/* What a process says when it has its GPUs. Seats follow. */
typedef struct {
    gint32 code, pad;
    char problem[500];
    TtNcclId id; /* of the root */
} Second;

static gboolean
look_at_seats(TtNcclTeam *team, Second *mine, TtNcclSeat *seats, GError **error)
{
    for (guint i = 0; i < team->n_local; i++)
        if (!tt_nccl_look_at_seat(team->cuda, (guint)team->ranks[i].device, &seats[i], error))
            return FALSE;
    if (!tt_circle_is_root(team->circle) || team->n_local == team->n_ranks)
        return TRUE;
    return tt_nccl_good(team, team->nccl->get_unique_id(&mine->id), "ncclGetUniqueId", NULL, error);
}

static void
write_notes(TtNcclTeam *team)
{
    team->notes = g_new0(char *, team->n_ranks + 1);
    for (guint rank = 0; rank < team->n_ranks; rank++)
        team->notes[rank] = g_strdup_printf("device %u %s %s", team->seats[rank].device,
                                            team->seats[rank].bus_id, team->seats[rank].name);
}

/* Everyone's GPUs, and the root's id, to everyone. */
static gboolean
share_seats(TtNcclTeam *team, GError *problem, GError **error)
{
    guint n = tt_circle_n_processes(team->circle), most = 0, bytes;
    g_autofree guint8 *mine = NULL, *all = NULL;
    g_autoptr(GError) why = problem;
    Second *second;

    for (guint p = 0; p < n; p++) {
        guint first, n_local;

        tt_circle_ranks(team->circle, p, &first, &n_local);
        most = MAX(most, n_local);
    }
    bytes = (guint)(sizeof(Second) + most * sizeof(TtNcclSeat));
    mine = g_malloc0(bytes);
    all = g_malloc0((gsize)n * bytes);
    second = (Second *)(gpointer)mine;
    if (!why)
        look_at_seats(team, second, (TtNcclSeat *)(gpointer)(second + 1), &why);
    if (why) {
        second->code = why->code;
        g_strlcpy(second->problem, why->message, sizeof second->problem);
    }
    if (!tt_circle_gather(team->circle, mine, bytes, all, team->timeout_s, error))
        return FALSE;
    for (guint p = 0; p < n; p++) {
        const Second *its = (const Second *)(gconstpointer)(all + (gsize)p * bytes);
        guint first, n_local;

        tt_circle_ranks(team->circle, p, &first, &n_local);
        if (its->problem[0])
            return set_problem(team, p, its->code, its->problem, error);
        memcpy(&team->seats[first], its + 1, n_local * sizeof(TtNcclSeat));
        if (p == 0)
            team->id = its->id;
    }
    write_notes(team);
    return tt_nccl_check_seats(team->seats, team->n_ranks, error);
}

gboolean
tt_nccl_find_seats(TtNcclTeam *team, const TtBackendJoin *join, GError **error)
{
    guint n_visible = 0, n_devices = 0;
    g_autofree Card *cards = g_new0(Card, tt_circle_n_processes(team->circle));
    g_autofree guint *devices = NULL;
    GError *problem = NULL;
    Card mine = { 0 };

    if (load(team, &n_visible, &problem))
        devices = parse_devices(join->gpus, n_visible, &n_devices, &problem);
    write_card(&mine, n_visible, team->version, problem);
    g_clear_error(&problem);
    if (!tt_circle_gather(team->circle, &mine, sizeof mine, cards, team->timeout_s, error) ||
        !no_problems(team, cards, error) || !same_library(team, cards, error))
        return FALSE;
    if (team->n_ranks == 0) /* one process, which takes all it may */
        tt_circle_set_n_ranks(team->circle,
                              team->n_ranks = team->n_local = n_devices ? n_devices : n_visible);
    team->ranks = g_new0(TtNcclRank, team->n_local);
    team->seats = g_new0(TtNcclSeat, team->n_ranks);
    choose_devices(team, cards, devices, n_devices, &problem);
    return share_seats(team, problem, error);
}
