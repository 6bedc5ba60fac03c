#include "cli/lab.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_NAME 32

/* --- can there be labs here? ------------------------------------------------------------------- */

static gboolean
can_unshare(void)
{
    int status = 1;
    pid_t child = fork();

    if (child == 0)
        _exit(unshare(CLONE_NEWNET) != 0);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

gboolean
tt_lab_possible(GError **error)
{
    static const char *const tools[] = { "ip", "tc", "bridge" };
    g_autofree char *path = g_strdup_printf("%s:/usr/sbin:/sbin",
                                            g_getenv("PATH") ? g_getenv("PATH") : "/usr/bin:/bin");

    if (geteuid() != 0) {
        tt_lab_error(error, TT_CLI_ERROR_HARDWARE,
                     "needs root: it makes network namespaces and shapes their links");
        return FALSE;
    }
    g_setenv("PATH", path, TRUE); /* users' paths often lack sbin */
    for (guint i = 0; i < G_N_ELEMENTS(tools); i++) {
        g_autofree char *found = g_find_program_in_path(tools[i]);

        if (!found) {
            tt_lab_error(error, TT_CLI_ERROR_HARDWARE,
                         "needs the program %s (apt-get install iproute2)", tools[i]);
            return FALSE;
        }
    }
    if (!can_unshare()) {
        tt_lab_error(error, TT_CLI_ERROR_HARDWARE,
                     "cannot make network namespaces here (in a container it needs CAP_SYS_ADMIN "
                     "and CAP_NET_ADMIN)");
        return FALSE;
    }
    return TRUE;
}

/* --- the state file ---------------------------------------------------------------------------- */

gboolean
tt_lab_check_name(const char *name, GError **error)
{
    gsize length = strlen(name);
    gboolean good = length >= 1 && length <= MAX_NAME && g_ascii_isalnum(name[0]);

    for (gsize i = 0; i < length && good; i++)
        good = g_ascii_isalnum(name[i]) || strchr("-_", name[i]);
    if (!good)
        tt_lab_error(
            error, TT_CLI_ERROR_USAGE,
            "\"%.40s\" cannot be a lab's name (1 to %d letters, digits, - and _, the first "
            "a letter or digit; --name gives another)",
            name, MAX_NAME);
    return good;
}

static char *
state_path(const char *name)
{
    return g_build_filename(TT_LAB_STATE_FOLDER, name, NULL);
}

gboolean
tt_lab_is_up(const char *name)
{
    g_autofree char *path = state_path(name);

    return tt_lab_check_name(name, NULL) && g_file_test(path, G_FILE_TEST_IS_REGULAR);
}

/* No lab's name has a dot. */
char *
tt_lab_hosts_file(const char *name)
{
    return g_strdup_printf("%s/%s.hosts", TT_LAB_STATE_FOLDER, name);
}

static gboolean
write_hosts(const TtLab *lab, GError **error)
{
    g_autofree char *path = tt_lab_hosts_file(lab->name);
    g_autoptr(GString) text = g_string_new("127.0.0.1 localhost\n::1 localhost\n");

    for (guint h = 0; h < lab->n_hosts; h++)
        for (guint nic = 0; nic < lab->n_nics; nic++) {
            g_autofree char *name = tt_lab_hostname(lab, h), *address = tt_lab_ipv4(h, nic);

            if (nic == 0)
                g_string_append_printf(text, "%s %s\n", address, name);
            g_string_append_printf(text, "%s %s-nic%u\n", address, name, nic);
        }
    return g_file_set_contents(path, text->str, (gssize)text->len, error);
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char **
tt_lab_list(void)
{
    GPtrArray *names = g_ptr_array_new();
    g_autoptr(GDir) folder = g_dir_open(TT_LAB_STATE_FOLDER, 0, NULL);

    for (const char *name; folder && (name = g_dir_read_name(folder));)
        if (tt_lab_is_up(name))
            g_ptr_array_add(names, g_strdup(name));
    if (names->len)
        qsort(names->pdata, names->len, sizeof(char *), by_name);
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(names, FALSE);
}

static char *
random_secret(void)
{
    guint8 bytes[16] = { 0 };
    GString *text = g_string_new(NULL);
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);

    if (fd < 0 || read(fd, bytes, sizeof bytes) != sizeof bytes)
        g_error("/dev/urandom: %s", g_strerror(errno));
    close(fd);
    for (guint i = 0; i < sizeof bytes; i++)
        g_string_append_printf(text, "%02x", bytes[i]);
    return g_string_free(text, FALSE);
}

/* Created, never replaced: of two that bring up one name, one fails. It stands before the first
 * namespace does, so that whatever ends us, `down` knows what may be there. */
static gboolean
create_state(TtLab *lab, GError **error)
{
    g_autofree char *path = state_path(lab->name);
    g_autoptr(GKeyFile) file = g_key_file_new();
    g_autofree char *text = NULL;
    gsize length;
    int fd = -1;

    g_key_file_set_string(file, "lab", "topology", lab->topology);
    g_key_file_set_integer(file, "lab", "hosts", (int)lab->n_hosts);
    g_key_file_set_integer(file, "lab", "ranks-per-host", (int)lab->ranks_per_host);
    g_key_file_set_integer(file, "lab", "nics", (int)lab->n_nics);
    g_key_file_set_integer_list(file, "lab", "nic-of-place", (int *)lab->nic_of_place,
                                lab->ranks_per_host);
    g_key_file_set_string(file, "lab", "secret", lab->secret);
    g_key_file_set_string_list(file, "lab", "namespaces", (const char *const *)lab->namespaces,
                               g_strv_length(lab->namespaces));
    text = g_key_file_to_data(file, &length, NULL);
    for (guint try = 0; try < 10; try++) { /* the last lab to go takes the folder with it */
        g_mkdir_with_parents(TT_LAB_STATE_FOLDER, 0755);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600); /* it holds the secret */
        if (fd >= 0 || errno != ENOENT)
            break;
    }
    if (fd < 0 && errno == EEXIST) {
        tt_lab_error(error, TT_CLI_ERROR_USAGE,
                     "lab \"%s\" is up already (tutti lab down %s, or --name OTHER)", lab->name,
                     lab->name);
        return FALSE;
    }
    if (fd < 0 || write(fd, text, length) != (gssize)length) {
        tt_lab_error(error, TT_CLI_ERROR_FAILED, "cannot write %s: %s", path, g_strerror(errno));
        if (fd >= 0) {
            close(fd);
            unlink(path);
        }
        return FALSE;
    }
    flock(fd, LOCK_EX); /* until it is whole */
    lab->lock = fd;
    return TRUE;
}

/* Nothing outside the lab may get into the list, whoever wrote it. */
static gboolean
check_loaded(const TtLab *lab)
{
    g_autofree char *prefix = g_strdup_printf("ttlab-%s-", lab->name);
    gboolean good = lab->n_hosts > 0 && lab->ranks_per_host > 0 && lab->n_nics > 0 &&
                    lab->nic_of_place && lab->secret && lab->topology && lab->namespaces;

    for (guint i = 0; good && lab->namespaces[i]; i++)
        good = g_str_has_prefix(lab->namespaces[i], prefix) && !strchr(lab->namespaces[i], '/');
    return good;
}

void
tt_lab_unlock(TtLab *lab)
{
    if (lab->lock > 0)
        close(lab->lock);
    lab->lock = 0;
}

/* FALSE if it is not up, or was taken down while we waited. */
static gboolean
lock_state(TtLab *lab, const char *path, gboolean alone)
{
    struct stat file;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return FALSE;
    lab->lock = fd;
    return flock(fd, alone ? LOCK_EX : LOCK_SH) == 0 && fstat(fd, &file) == 0 &&
           S_ISREG(file.st_mode) && file.st_nlink > 0;
}

TtLab *
tt_lab_load(const char *name, gboolean alone, GError **error)
{
    g_autoptr(TtLab) lab = g_new0(TtLab, 1);
    g_autoptr(GKeyFile) file = g_key_file_new();
    g_autofree char *path = NULL;
    gsize n_places = 0;

    if (!tt_lab_check_name(name, error))
        return NULL;
    path = state_path(name);
    if (!lock_state(lab, path, alone)) {
        tt_lab_error(error, TT_CLI_ERROR_USAGE,
                     "no lab \"%s\" is up (tutti lab list shows those that are)", name);
        return NULL;
    }
    if (!g_key_file_load_from_file(file, path, G_KEY_FILE_NONE, error))
        return NULL;
    lab->name = g_strdup(name);
    lab->topology = g_key_file_get_string(file, "lab", "topology", NULL);
    lab->n_hosts = (guint)g_key_file_get_integer(file, "lab", "hosts", NULL);
    lab->ranks_per_host = (guint)g_key_file_get_integer(file, "lab", "ranks-per-host", NULL);
    lab->n_nics = (guint)g_key_file_get_integer(file, "lab", "nics", NULL);
    lab->nic_of_place =
        (guint *)g_key_file_get_integer_list(file, "lab", "nic-of-place", &n_places, NULL);
    lab->secret = g_key_file_get_string(file, "lab", "secret", NULL);
    lab->namespaces = g_key_file_get_string_list(file, "lab", "namespaces", NULL, NULL);
    if (n_places != lab->ranks_per_host || !check_loaded(lab)) {
        tt_lab_error(error, TT_CLI_ERROR_FAILED,
                     "%s is damaged; remove it and the namespaces "
                     "ttlab-%s-* by hand",
                     path, name);
        return NULL;
    }
    return g_steal_pointer(&lab);
}

/* --- down -------------------------------------------------------------------------------------- */

/* Signals every process whose network is the namespace @inode; how many there are. */
static guint
signal_all_in(const struct stat *there, int signal_number)
{
    g_autoptr(GDir) proc = g_dir_open("/proc", 0, NULL);
    guint n = 0;

    for (const char *entry; proc && (entry = g_dir_read_name(proc));) {
        g_autofree char *path = g_strdup_printf("/proc/%s/ns/net", entry);
        struct stat its;

        if (!g_ascii_isdigit(*entry) || stat(path, &its) != 0 || its.st_ino != there->st_ino ||
            its.st_dev != there->st_dev)
            continue;
        n++;
        kill((pid_t)g_ascii_strtoll(entry, NULL, 10), signal_number);
    }
    return n;
}

/* A namespace lives as long as a process is in it. */
static void
end_processes(const char *namespace)
{
    g_autofree char *path = g_build_filename("/run/netns", namespace, NULL);
    struct stat there, own;

    if (stat(path, &there) != 0 || stat("/proc/self/ns/net", &own) != 0 ||
        (there.st_ino == own.st_ino && there.st_dev == own.st_dev) ||
        signal_all_in(&there, SIGTERM) == 0)
        return;
    for (guint i = 0; i < 100 && signal_all_in(&there, 0) > 0; i++)
        g_usleep(10 * 1000);
    for (guint i = 0; i < 100 && signal_all_in(&there, SIGKILL) > 0; i++)
        g_usleep(10 * 1000);
}

static gboolean
remove_all(const TtLab *lab, GError **error)
{
    g_autofree char *path = state_path(lab->name), *hosts_file = tt_lab_hosts_file(lab->name);
    g_autoptr(GString) batch = g_string_new(NULL);
    static const char *const argv[] = { "ip", "-batch", "-", NULL };

    for (guint i = 0; lab->namespaces[i]; i++) {
        g_autofree char *mounted = g_build_filename("/run/netns", lab->namespaces[i], NULL);

        if (!g_file_test(mounted, G_FILE_TEST_EXISTS))
            continue;
        end_processes(lab->namespaces[i]);
        g_string_append_printf(batch, "netns del %s\n", lab->namespaces[i]);
    }
    if (batch->len && !tt_lab_run_tool(argv, batch->str, NULL, 0, error))
        return FALSE;
    unlink(hosts_file);
    if (unlink(path) != 0) {
        tt_lab_error(error, TT_CLI_ERROR_FAILED, "cannot remove %s: %s", path, g_strerror(errno));
        return FALSE;
    }
    rmdir(TT_LAB_STATE_FOLDER); /* if that was the last */
    return TRUE;
}

gboolean
tt_lab_down(const char *name, GError **error)
{
    g_autoptr(TtLab) lab = tt_lab_load(name, TRUE, error);

    return lab && remove_all(lab, error);
}

/* --- up ---------------------------------------------------------------------------------------- */

static gboolean
names_are_free(const TtLab *lab, GError **error)
{
    for (guint i = 0; lab->namespaces[i]; i++) {
        g_autofree char *path = g_build_filename("/run/netns", lab->namespaces[i], NULL);

        if (g_file_test(path, G_FILE_TEST_EXISTS)) {
            tt_lab_error(
                error, TT_CLI_ERROR_FAILED,
                "namespace %s is there already, from no lab that is known (ip netns del %s, "
                "or --name OTHER)",
                lab->namespaces[i], lab->namespaces[i]);
            return FALSE;
        }
    }
    return TRUE;
}

gboolean
tt_lab_up(TtLab *lab, GError **error)
{
    g_autoptr(GPtrArray) script = tt_lab_script(lab);

    lab->secret = random_secret();
    lab->namespaces = g_new0(char *, lab->n_hosts + 2);
    for (guint h = 0; h <= lab->n_hosts; h++)
        lab->namespaces[h] = tt_lab_namespace(lab, h);
    if (tt_lab_is_up(lab->name)) /* before their namespaces are a surprise */
        return create_state(lab, error);
    if (!names_are_free(lab, error) || !create_state(lab, error))
        return FALSE;
    if (write_hosts(lab, error) && tt_lab_run_script(script, error))
        return TRUE;
    remove_all(lab, NULL);
    return FALSE;
}
