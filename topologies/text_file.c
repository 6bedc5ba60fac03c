#include "topologies/text_file.h"
#include "topologies/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

/* A FIFO that nobody writes to reads as empty instead of blocking for ever; one of a shell's <(...) has
 * its writer already. */
static FILE *
open_now(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return NULL;
    fcntl(fd, F_SETFL, 0); /* reads wait for a slow writer */
    return fdopen(fd, "r");
}

char *
tt_text_file_read(const char *path, gsize max_bytes, gsize *length, GError **error)
{
    g_autofree char *text = NULL;
    FILE *file = open_now(path);
    gboolean failed;

    if (file) {
        text = g_malloc(max_bytes + 2);
        *length = fread(text, 1, max_bytes + 1, file);
        text[*length] = '\0';
    }
    failed = !file || ferror(file);
    if (failed) {
        g_autofree char *quoted = tt_quote(path);

        g_set_error(error, TT_TOPOLOGY_ERROR, TT_TOPOLOGY_ERROR_FILE, "%s: %s", quoted,
                    g_strerror(errno));
    }
    if (file)
        fclose(file);
    return failed ? NULL : g_steal_pointer(&text);
}
