#include "exec/reaches.h"

#include <string.h>

const char *const *
tt_transport_names(void)
{
    static const char *names[16];
    guint n = 0;

    names[n++] = "shm";
    for (guint i = 0; tt_transports[i]; i++)
        names[n++] = tt_transports[i]->name;
    names[n++] = "threads";
    names[n++] = "cuda";
    names[n] = NULL;
    return names;
}

const TtTransport *
tt_transport_find(const char *name)
{
    for (guint i = 0; tt_transports[i]; i++)
        if (strcmp(tt_transports[i]->name, name) == 0)
            return tt_transports[i];
    return NULL;
}

gboolean
tt_reaches_parse(const char *text, TtReaches *reaches, GError **error)
{
    g_auto(GStrv) words = g_strsplit(text ? text : "shm", ",", -1);
    TtReaches r = { 0 };
    guint n = 0;

    for (guint i = 0; words[i]; i++) {
        if (i == 0 && (strcmp(words[i], "threads") == 0 || strcmp(words[i], "cuda") == 0)) {
            r.threads = TRUE;
            r.gpu = strcmp(words[i], "cuda") == 0;
            if (r.gpu) /* inside a machine GPUs reach each other by themselves */
                r.transports[n++] = NULL;
            continue;
        }
        if (n == TT_N_REACHES || (strcmp(words[i], "shm") != 0 && !tt_transport_find(words[i]))) {
            g_autofree char *all = g_strjoinv(", ", (char **)tt_transport_names());

            g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                        "unknown transport \"%s\" (one of: %s; or two, inside a machine and "
                        "across: shm,tcp)",
                        text, all);
            return FALSE;
        }
        if (n == TT_ACROSS && strcmp(words[i], "shm") == 0) {
            g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                        "transport \"%s\": shm does not reach across machines (tcp or verbs does)",
                        text);
            return FALSE;
        }
        r.transports[n++] = tt_transport_find(words[i]);
    }
    if (n == 1)
        r.transports[TT_ACROSS] = r.transports[TT_INSIDE];
    *reaches = r;
    return TRUE;
}
