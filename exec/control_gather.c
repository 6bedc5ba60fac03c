/* Everyone's blobs to everyone: to the root, and from there packed as sizes and blobs, each from a
 * multiple of 16 on. */
#include "exec/control_parts.h"
#include <string.h>

static gsize
aligned(gsize bytes)
{
    return (bytes + 15) & ~(gsize)15;
}

static GBytes *
pack(GBytes **blobs, guint n)
{
    gsize bytes = aligned(n * sizeof(guint64)), at = bytes, size;
    guint8 *all;

    for (guint i = 0; i < n; i++)
        bytes += aligned(g_bytes_get_size(blobs[i]));
    all = g_malloc0(bytes);
    for (guint i = 0; i < n; i++) {
        const void *data = g_bytes_get_data(blobs[i], &size);
        guint64 wide = size;

        memcpy(all + i * sizeof wide, &wide, sizeof wide);
        if (size)
            memcpy(all + at, data, size);
        at += aligned(size);
    }
    return g_bytes_new_take(all, bytes);
}

static GPtrArray *
unpack(GBytes *all, guint n)
{
    GPtrArray *blobs = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    gsize bytes, at = aligned(n * sizeof(guint64));
    const guint8 *data = g_bytes_get_data(all, &bytes);

    for (guint i = 0; i < n && at <= bytes; i++) {
        guint64 size;

        memcpy(&size, data + i * sizeof size, sizeof size);
        if (size > bytes - at)
            break;
        g_ptr_array_add(blobs, g_bytes_new_from_bytes(all, at, size));
        at += aligned(size);
    }
    if (blobs->len < n)
        g_clear_pointer(&blobs, g_ptr_array_unref);
    return blobs;
}

/* Waits until @process has sent its part. */
static gboolean
await(TtControl *self, guint process, gint64 deadline_us, double timeout_s, GError **error)
{
    tt_control_set_ready(self, FALSE);
    while (!self->gathered[process]) {
        int left = tt_control_left_ms(deadline_us);

        if (self->wires[process].fd < 0) {
            g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_DEAD,
                        "%s left while all exchanged addresses", tt_control_name(self, process));
            return FALSE;
        }
        if (left == 0) {
            g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_ABSENT,
                        "%s said nothing for %g s while all exchanged addresses",
                        tt_control_name(self, process), timeout_s);
            return FALSE;
        }
        tt_control_pump(self, left);
    }
    return TRUE;
}

static GPtrArray *
gather_as_root(TtControl *self, GBytes *mine, double timeout_s, GError **error)
{
    gint64 deadline_us = g_get_monotonic_time() + (gint64)(timeout_s * G_USEC_PER_SEC);
    guint n = self->meeting.members->len;
    g_autoptr(GPtrArray) parts = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    g_autoptr(GBytes) all = NULL;
    GError *why = NULL;

    g_ptr_array_add(parts, g_bytes_ref(mine));
    for (guint i = 1; i < n && !why; i++) {
        if (!await(self, i, deadline_us, timeout_s, &why))
            break;
        g_ptr_array_add(parts, g_bytes_new_take(g_steal_pointer(&self->gathered[i]->frame.body),
                                                self->gathered[i]->frame.bytes));
        g_clear_pointer(&self->gathered[i], tt_kept_free);
    }
    if (!why)
        all = pack((GBytes **)parts->pdata, n);
    if (!why && g_bytes_get_size(all) > TT_WIRE_MAX_BYTES)
        g_set_error(&why, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "the processes' data are %zu bytes together, more than %u",
                    g_bytes_get_size(all), TT_WIRE_MAX_BYTES);
    for (guint i = 1; i < n; i++) {
        if (why)
            tt_control_send_frame(self, i, GATHER_FAILED, why->message, strlen(why->message) + 1);
        else
            tt_control_send_frame(self, i, GATHER_ALL, g_bytes_get_data(all, NULL),
                                  g_bytes_get_size(all));
    }
    if (why) {
        g_propagate_error(error, why);
        return NULL;
    }
    return unpack(all, n);
}

static GPtrArray *
gather_as_peer(TtControl *self, GBytes *mine, double timeout_s, GError **error)
{
    /* the root's word on who is late comes at its time-out */
    gint64 deadline_us = g_get_monotonic_time() + (gint64)((timeout_s + 2) * G_USEC_PER_SEC);
    g_autoptr(GBytes) all = NULL;
    GPtrArray *blobs = NULL;
    gboolean good;

    tt_control_send_frame(self, 0, GATHER_MINE, g_bytes_get_data(mine, NULL),
                          g_bytes_get_size(mine));
    if (!await(self, 0, deadline_us, timeout_s, error))
        return NULL;
    good = self->gathered[0]->frame.kind == GATHER_ALL;
    all = g_bytes_new_take(g_steal_pointer(&self->gathered[0]->frame.body),
                           self->gathered[0]->frame.bytes);
    g_clear_pointer(&self->gathered[0], tt_kept_free);
    if (good)
        blobs = unpack(all, self->meeting.members->len);
    if (!blobs)
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_DEAD, "the root gave up: %.*s",
                    good ? 0 : (int)g_bytes_get_size(all),
                    (const char *)g_bytes_get_data(all, NULL));
    return blobs;
}

GPtrArray *
tt_control_gather(TtControl *self, GBytes *mine, double timeout_s, GError **error)
{
    GPtrArray *blobs =
        (self->meeting.own == 0 ? gather_as_root : gather_as_peer)(self, mine, timeout_s, error);

    tt_control_set_ready(self, self->messages.length > 0);
    return blobs;
}
