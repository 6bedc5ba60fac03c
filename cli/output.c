#include "cli/output.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static gboolean
fail(const char *option, const char *path, int error_number, GError **error)
{
    g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(error_number),
                "%s%scannot write \"%s\": %s", option ? option : "", option ? ": " : "", path,
                g_strerror(error_number));
    return FALSE;
}

/* A pipe or device must be written to, never replaced; so must a link: /dev/stdout is one, and where the
 * shell sends standard output to a file, it leads to a regular one. */
static gboolean
is_special(const char *path)
{
    return g_file_test(path, G_FILE_TEST_IS_SYMLINK) ||
           (g_file_test(path, G_FILE_TEST_EXISTS) && !g_file_test(path, G_FILE_TEST_IS_REGULAR));
}

gboolean
tt_output_same(const char *one, const char *two)
{
    g_autofree char *a = g_canonicalize_filename(one, NULL);
    g_autofree char *b = g_canonicalize_filename(two, NULL);
    GStatBuf x, y;

    if (g_stat(a, &x) == 0 && g_stat(b, &y) == 0) /* both there: links lead somewhere */
        return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
    return strcmp(a, b) == 0;
}

gboolean
tt_output_check(const char *option, const char *path, GError **error)
{
    g_autofree char *folder = NULL;

    if (!path)
        return TRUE;
    if (path[0] == '\0')
        return fail(option, path, ENOENT, error);
    if (g_file_test(path, G_FILE_TEST_IS_DIR))
        return fail(option, path, EISDIR, error);
    if (is_special(path))
        return g_access(path, W_OK) == 0 || fail(option, path, errno, error);
    folder = g_path_get_dirname(path);
    if (g_access(folder, W_OK | X_OK) != 0)
        return fail(option, path, errno, error);
    if (!g_file_test(folder, G_FILE_TEST_IS_DIR))
        return fail(option, path, ENOTDIR, error);
    return TRUE;
}

static gboolean
write_into(const char *path, const char *text, GError **error)
{
    FILE *file = fopen(path, "w");
    gboolean good;

    if (!file)
        return fail(NULL, path, errno, error);
    good = fputs(text, file) >= 0;
    good = fclose(file) == 0 && good;
    return good || fail(NULL, path, errno, error);
}

gboolean
tt_output_write(const char *path, const char *text, GError **error)
{
    g_autofree char *temporary = NULL;
    int saved;

    if (is_special(path))
        return write_into(path, text, error);
    temporary = g_strdup_printf("%s.%d.tmp", path, (int)getpid());
    if (write_into(temporary, text, error)) {
        if (g_rename(temporary, path) == 0)
            return TRUE;
        saved = errno;
        g_unlink(temporary);
        return fail(NULL, path, saved, error);
    }
    g_unlink(temporary);
    return FALSE;
}
