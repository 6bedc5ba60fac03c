#include "exec/pmi.h"
#include "exec/net.h"
#include "exec/exec.h"
#include <errno.h>
#include <string.h>

#define KEY "tutti-root"

/* One line to the manager and its answer, whose command must be @want. Byte by byte: whoever uses the
 * descriptor after us must find what comes next. */
static char *
ask(int fd, const char *line, const char *want, gint64 deadline_us, GError **error)
{
    g_autoptr(GString) answer = g_string_new(NULL);
    g_autofree char *start = g_strdup_printf("cmd=%s", want);
    char c = 0;

    errno = 0;
    if (!tt_net_write(fd, line, strlen(line), deadline_us))
        c = '?';
    while (c != '?' && c != '\n' && answer->len < 4096) {
        if (!tt_net_read(fd, &c, 1, deadline_us))
            c = '?';
        else if (c != '\n')
            g_string_append_c(answer, c);
    }
    if (c == '\n' && g_str_has_prefix(answer->str, start))
        return g_string_free(g_steal_pointer(&answer), FALSE);
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                "the process manager at PMI_FD did not answer \"%s\" (%s): give --meet HOST:PORT",
                want,
                answer->len ? answer->str
                : errno     ? g_strerror(errno)
                            : "it closed");
    return NULL;
}

/* The value of @key in "cmd=get_result rc=0 value=..."; NULL if it is not there. Caller frees. */
static char *
value_of(const char *answer, const char *key)
{
    g_auto(GStrv) words = g_strsplit(answer, " ", -1);
    gsize length = strlen(key);

    for (char **w = words; *w; w++)
        if (!strncmp(*w, key, length) && (*w)[length] == '=')
            return g_strdup(*w + length + 1);
    return NULL;
}

char *
tt_pmi_exchange(int fd, const char *mine, gint64 deadline_us, GError **error)
{
    g_autofree char *init = NULL, *name = NULL, *kvs = NULL, *put = NULL, *barrier = NULL,
                    *got = NULL;
    g_autofree char *line = NULL, *query = NULL, *bye = NULL;
    char *value;

    init = ask(fd, "cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init", deadline_us,
               error);
    if (!init)
        return NULL;
    name = ask(fd, "cmd=get_my_kvsname\n", "my_kvsname", deadline_us, error);
    if (!name)
        return NULL;
    kvs = value_of(name, "kvsname");
    if (mine) {
        line = g_strdup_printf("cmd=put kvsname=%s key=" KEY " value=%s\n", kvs ? kvs : "", mine);
        put = ask(fd, line, "put_result", deadline_us, error);
        if (!put)
            return NULL;
    }
    barrier = ask(fd, "cmd=barrier_in\n", "barrier_out", deadline_us, error);
    if (!barrier)
        return NULL;
    query = g_strdup_printf("cmd=get kvsname=%s key=" KEY "\n", kvs ? kvs : "");
    got = ask(fd, query, "get_result", deadline_us, error);
    if (!got)
        return NULL;
    /* whoever has said init and leaves without this is taken for dead, and the job with it */
    bye = ask(fd, "cmd=finalize\n", "finalize_ack", deadline_us, error);
    if (!bye)
        return NULL;
    value = value_of(got, "value");
    if (!value)
        g_set_error(
            error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
            "the process manager at PMI_FD does not know where rank 0 is: give --meet HOST:PORT");
    return value;
}
