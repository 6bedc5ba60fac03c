#include "cli/lab.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

int
tt_lab_open_namespace(const char *namespace, GError **error)
{
    g_autofree char *path = g_build_filename("/run/netns", namespace, NULL);
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        tt_lab_error(error, TT_CLI_ERROR_FAILED, "cannot open %s: %s", path, g_strerror(errno));
    return fd;
}

gboolean
tt_lab_enter(int namespace_fd, const char *hostname, const char *hosts_file)
{
    if (setns(namespace_fd, CLONE_NEWNET) != 0)
        return FALSE;
    /* Programs that look for NICs in /sys would find the machine's own, and hosts of one name look
     * like one. Where mounting is forbidden they do. */
    if (unshare(CLONE_NEWUTS) == 0)
        (void)!sethostname(hostname, strlen(hostname));
    if (unshare(CLONE_NEWNS) == 0 && mount("", "/", "none", MS_SLAVE | MS_REC, NULL) == 0) {
        (void)!mount("sysfs", "/sys", "sysfs", 0, NULL);
        (void)!mount(hosts_file, "/etc/hosts", NULL, MS_BIND, NULL);
    }
    return TRUE;
}

static gboolean
write_sysctl(const char *word, GError **error)
{
    const char *equals = strchr(word, '=');
    g_autofree char *name = g_strndup(word, (gsize)(equals - word)), *value = g_strdup(equals + 1);
    g_autofree char *path = g_strdup_printf("/proc/sys/%s", g_strdelimit(name, ".", '/'));
    int fd;

    g_strdelimit(value, ",", ' ');
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) /* IPv6 left out of the kernel */
        return TRUE;
    if (fd < 0 || write(fd, value, strlen(value)) != (gssize)strlen(value)) {
        tt_lab_error(error, TT_CLI_ERROR_FAILED, "cannot write \"%s\" to %s: %s", value, path,
                     g_strerror(errno));
        if (fd >= 0)
            close(fd);
        return FALSE;
    }
    close(fd);
    return TRUE;
}

/* /proc/sys/net is that of the namespace the process is in. */
gboolean
tt_lab_write_sysctls(const char *namespace, const char *words, GError **error)
{
    g_auto(GStrv) list = g_strsplit(words, " ", -1);
    int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    int there = tt_lab_open_namespace(namespace, error);
    gboolean good = home >= 0 && there >= 0;

    if (good && setns(there, CLONE_NEWNET) != 0) {
        tt_lab_error(error, TT_CLI_ERROR_FAILED, "cannot enter namespace %s: %s", namespace,
                     g_strerror(errno));
        good = FALSE;
    } else if (good) {
        for (guint i = 0; list[i] && good; i++)
            good = write_sysctl(list[i], error);
        if (setns(home, CLONE_NEWNET) != 0)
            g_error("cannot leave namespace %s: %s", namespace, g_strerror(errno));
    }
    if (home >= 0)
        close(home);
    if (there >= 0)
        close(there);
    return good;
}

void
tt_lab_become(const TtLab *lab, guint host, char **argv, GError **error)
{
    g_autofree char *namespace = tt_lab_namespace(lab, host);
    g_autofree char *hostname = tt_lab_hostname(lab, host);
    g_autofree char *hosts_file = tt_lab_hosts_file(lab->name);
    int fd = tt_lab_open_namespace(namespace, error);

    if (fd < 0)
        return;
    if (!tt_lab_enter(fd, hostname, hosts_file)) {
        tt_lab_error(error, TT_CLI_ERROR_FAILED, "cannot enter namespace %s: %s", namespace,
                     g_strerror(errno));
        close(fd);
        return;
    }
    close(fd);
    g_setenv("TUTTI_LAB", lab->name, TRUE);
    g_setenv("TUTTI_SECRET", lab->secret, TRUE);
    execvp(argv[0], argv);
    tt_lab_error(error, TT_CLI_ERROR_USAGE, "cannot run \"%s\": %s", argv[0], g_strerror(errno));
}
