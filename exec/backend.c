#include "exec/backend.h"

#include <string.h>

/* What ranks compare: texts, cut, and a hash of the whole. */
typedef struct {
    guint32 hash;
    gint32 code;     /* the problem's */
    char domain[32]; /* "": no problem */
    char text[216];
} Card;

const TtBackend *
tt_backend_find(const char *name)
{
    for (guint i = 0; tt_backends[i]; i++)
        if (strcmp(tt_backends[i]->name, name) == 0)
            return tt_backends[i];
    return NULL;
}

/* "rank 2", "ranks 1, 2 and 5", "ranks 1, 2, 3, ... (12 of them)". */
static char *
name_ranks(const guint *ranks, guint n)
{
    GString *text = g_string_new(n == 1 ? "rank" : "ranks");

    for (guint i = 0; i < n; i++) {
        if (i == 8 && n > 9) {
            g_string_append_printf(text, ", ... (%u of them)", n);
            break;
        }
        g_string_append_printf(text, "%s%u", i == 0 ? " " : i + 1 == n ? " and " : ", ", ranks[i]);
    }
    return g_string_free(text, FALSE);
}

/* The first words that differ, "sizes=8,16" and the like; caller frees. FALSE if they were cut before. */
static gboolean
first_difference(const char *a, const char *b, char **of_a, char **of_b)
{
    guint word = 0, i = 0;

    for (; a[i] && a[i] == b[i]; i++)
        if (a[i] == ' ')
            word = i + 1;
    if (a[i] == b[i])
        return FALSE;
    *of_a = g_strndup(a + word, strcspn(a + word, " "));
    *of_b = g_strndup(b + word, strcspn(b + word, " "));
    return TRUE;
}

static gboolean
same_arguments(const Card *cards, guint n_ranks, GError **error)
{
    g_autofree guint *others = g_new(guint, n_ranks);
    g_autofree char *names = NULL, *theirs = NULL, *ours = NULL;
    guint n = 0;

    for (guint rank = 1; rank < n_ranks; rank++)
        if (cards[rank].hash != cards[0].hash)
            others[n++] = rank;
    if (n == 0)
        return TRUE;
    names = name_ranks(others, n);
    if (first_difference(cards[others[0]].text, cards[0].text, &theirs, &ours))
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "ranks disagree: %s %s %s, rank 0 has %s; all must be given the same "
                    "arguments",
                    names, n == 1 ? "has" : "have", theirs, ours);
    else
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "ranks disagree: %s and rank 0 were not given the same arguments", names);
    return FALSE;
}

/* What every rank found wrong needs no name: rank 0's is said as it is. */
static gboolean
no_problems(const Card *cards, guint n_ranks, GError **error)
{
    for (guint rank = 0; rank < n_ranks; rank++)
        if (cards[rank].domain[0]) {
            g_set_error_literal(error, g_quark_from_string(cards[rank].domain), cards[rank].code,
                                cards[rank].text);
            if (rank > 0)
                g_prefix_error(error, "rank %u: ", rank);
            return FALSE;
        }
    return TRUE;
}

gboolean
tt_backend_agree(const TtBackend *backend, gpointer self, const TtBackendPlace *place,
                 const char *arguments, const GError *problem, GError **error)
{
    g_autofree Card *cards = g_new0(Card, place->n_ranks);
    Card mine = { .hash = g_str_hash(arguments) };

    if (problem) {
        mine.code = problem->code;
        g_strlcpy(mine.domain, g_quark_to_string(problem->domain), sizeof mine.domain);
    }
    g_strlcpy(mine.text, problem ? problem->message : arguments, sizeof mine.text);
    return backend->gather(self, &mine, sizeof mine, cards, error) &&
           no_problems(cards, place->n_ranks, error) &&
           same_arguments(cards, place->n_ranks, error);
}
