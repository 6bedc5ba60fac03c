/* Slurm's compressed lists, and who started us. */
#include "exec/launch_env.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

char *
tt_slurm_first_host(const char *list)
{
    g_autoptr(GString) host = g_string_new(NULL);
    const char *c = list;

    while (*c && *c != ',') {
        if (*c != '[') {
            g_string_append_c(host, *c++);
            continue;
        }
        for (c++; g_ascii_isalnum(*c); c++) /* the first of 03-07,9 */
            g_string_append_c(host, *c);
        c = strchr(c, ']');
        if (!c)
            return NULL;
        c++; /* there may be more: rack[1-2]node[3-4] */
    }
    return host->len ? g_string_free(g_steal_pointer(&host), FALSE) : NULL;
}

guint
tt_slurm_tasks_on(const char *counts, guint node)
{
    g_auto(GStrv) parts = g_strsplit(counts, ",", -1);

    for (char **part = parts; *part; part++) {
        guint tasks = 0, times = 1;

        if (sscanf(*part, "%u(x%u)", &tasks, &times) < 1)
            return 0;
        if (node < times)
            return tasks;
        node -= times;
    }
    return 0;
}

/* Parent and start time of a process, from /proc/PID/stat; the name in it may hold anything, so fields are
 * counted from its closing parenthesis on. */
static gboolean
look_up(int pid, int *parent, guint64 *start)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/stat", pid), *text = NULL;
    g_auto(GStrv) fields = NULL;
    const char *rest;

    if (!g_file_get_contents(path, &text, NULL, NULL) || !(rest = strrchr(text, ')')) || !rest[1])
        return FALSE;
    fields = g_strsplit(rest + 2, " ", -1); /* from field 3 on */
    if (g_strv_length(fields) < 20)
        return FALSE;
    *parent = (int)g_ascii_strtoll(fields[1], NULL, 10);
    *start = g_ascii_strtoull(fields[19], NULL, 10);
    return TRUE;
}

static gboolean
has_mark(int pid, const char *mark)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/environ", pid), *text = NULL;
    gsize bytes = 0;

    if (!g_file_get_contents(path, &text, &bytes, NULL))
        return FALSE;
    for (gsize at = 0; at < bytes; at += strlen(text + at) + 1)
        if (g_str_equal(text + at, mark))
            return TRUE;
    return FALSE;
}

char *
tt_launcher_id(const char *mark)
{
    int pid = (int)getppid(), parent = 0;
    guint64 start = 0;

    while (look_up(pid, &parent, &start) && parent > 1 && has_mark(pid, mark))
        pid = parent;
    look_up(pid, &parent, &start);
    return g_strdup_printf("%d %" G_GUINT64_FORMAT, pid, start);
}
