/* What the kernel's files say. Anything may be missing: in containers, on other kernels. */
#include "topologies/sysfs.h"

#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES (1 << 20)

static char *read_file(const char *root, const char *format, va_list arguments) G_GNUC_PRINTF(2, 0);

static char *
read_file(const char *root, const char *format, va_list arguments)
{
    g_autofree char *path = g_strdup_vprintf(format, arguments);
    g_autofree char *whole = g_strconcat(root, path, NULL);
    char *text = NULL;
    gsize length = 0;

    if (!g_file_get_contents(whole, &text, &length, NULL))
        return NULL;
    if (length > MOST_BYTES || !g_utf8_validate(text, (gssize)length, NULL)) {
        g_free(text);
        return NULL;
    }
    return g_strstrip(text);
}

char *
tt_sysfs_read(const char *root, const char *format, ...)
{
    va_list arguments;
    char *text;

    va_start(arguments, format);
    text = read_file(root, format, arguments);
    va_end(arguments);
    return text;
}

gint64
tt_sysfs_number(gint64 other, const char *root, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list arguments;
    char *end = NULL;
    gint64 value;

    va_start(arguments, format);
    text = read_file(root, format, arguments);
    va_end(arguments);
    if (!text)
        return other;
    value = g_ascii_strtoll(text, &end, 10);
    return end == text ? other : value;
}

gboolean
tt_sysfs_exists(const char *root, const char *format, ...)
{
    g_autofree char *path = NULL, *whole = NULL;
    va_list arguments;

    va_start(arguments, format);
    path = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    whole = g_strconcat(root, path, NULL);
    return g_file_test(whole, G_FILE_TEST_EXISTS);
}

/* As people count: numbers inside names by their value. */
static int
by_number(gconstpointer a, gconstpointer b)
{
    const char *one = *(const char *const *)a, *two = *(const char *const *)b;

    return strverscmp(one, two);
}

char **
tt_sysfs_list(const char *root, const char *folder)
{
    g_autofree char *whole = g_strconcat(root, folder, NULL);
    g_autoptr(GDir) dir = g_dir_open(whole, 0, NULL);
    GPtrArray *names = g_ptr_array_new();
    const char *name;

    while (dir && (name = g_dir_read_name(dir)))
        g_ptr_array_add(names, g_strdup(name));
    g_ptr_array_sort(names, by_number);
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(names, FALSE);
}

static gboolean
are_hex(const char *text, gsize n)
{
    for (gsize i = 0; i < n; i++)
        if (!g_ascii_isxdigit(text[i]))
            return FALSE;
    return TRUE;
}

gboolean
tt_sysfs_is_bus_id(const char *text)
{
    gsize domain = strcspn(text, ":");

    return domain >= 4 && domain <= 8 && strlen(text) == domain + strlen(":1b:00.0") &&
           are_hex(text, domain) && are_hex(text + domain + 1, 2) && text[domain + 3] == ':' &&
           are_hex(text + domain + 4, 2) && text[domain + 6] == '.' &&
           are_hex(text + domain + 7, 1);
}

char **
tt_sysfs_pci_way(const char *root, const char *path)
{
    g_autofree char *whole = g_strconcat(root, path, NULL);
    GPtrArray *way = g_ptr_array_new();
    char *real = realpath(whole, NULL);
    g_auto(GStrv) parts = g_strsplit(real ? real : "", "/", -1);

    free(real);
    for (guint i = 0; parts[i]; i++)
        if (tt_sysfs_is_bus_id(parts[i]))
            g_ptr_array_add(way, g_ascii_strdown(parts[i], -1));
    g_ptr_array_add(way, NULL);
    return (char **)g_ptr_array_free(way, FALSE);
}
