#include "exec/control_parts.h"
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define FLUSH_US       (2 * G_USEC_PER_SEC) /* tt_control_close() tries so long */
#define FRAMES_AT_ONCE 64                   /* per process and look, so that none is starved */
#define READY          G_MAXUINT32          /* in an epoll event: not a process */

static const TtMember *
member(const TtControl *self, guint process)
{
    g_assert(process < self->meeting.members->len);
    return &g_array_index(self->meeting.members, TtMember, process);
}

void
tt_kept_free(gpointer data)
{
    TtKept *message = data;

    if (message)
        g_free(message->frame.body);
    g_free(message);
}

static void
member_clear(gpointer data)
{
    g_free(((TtMember *)data)->name);
}

static void
watch(TtControl *self, int operation, int fd, guint process, gboolean output)
{
    struct epoll_event event = { .events = EPOLLIN | (output ? EPOLLOUT : 0), .data.u32 = process };

    if (epoll_ctl(self->epoll_fd, operation, fd, &event) < 0)
        g_warning("epoll: %s", g_strerror(errno));
}

/* The kernel tells us when there is room, only while there is something to send. */
static void
watch_output(TtControl *self, guint process)
{
    TtWire *wire = &self->wires[process];
    gboolean output = tt_wire_has_output(wire);

    if (wire->fd >= 0 && output != self->polls_output[process]) {
        watch(self, EPOLL_CTL_MOD, wire->fd, process, output);
        self->polls_output[process] = output;
    }
}

static void
push_message(TtControl *self, guint process, const TtWireFrame *frame)
{
    TtKept *message = g_new(TtKept, 1);

    *message = (TtKept){ process, *frame };
    if (frame->kind >= TT_CONTROL_RESERVED && frame->kind != TT_CONTROL_LOST) {
        tt_kept_free(self->gathered[process]);
        self->gathered[process] = message;
    } else {
        g_queue_push_tail(&self->messages, message);
    }
}

static void
lose(TtControl *self, guint process)
{
    TtWireFrame frame = { TT_CONTROL_LOST, NULL, 0 };

    epoll_ctl(self->epoll_fd, EPOLL_CTL_DEL, self->wires[process].fd, NULL);
    tt_wire_clear(&self->wires[process]);
    push_message(self, process, &frame);
}

static void
take_input(TtControl *self, guint process)
{
    TtWireFrame frame;

    for (guint i = 0; i < FRAMES_AT_ONCE; i++) {
        switch (tt_wire_read(&self->wires[process], &frame)) {
        case TT_WIRE_NOTHING: return;
        case TT_WIRE_GONE: lose(self, process); return;
        case TT_WIRE_FRAME:
            if (frame.kind == TT_CONTROL_LOST) { /* nobody sends this */
                g_free(frame.body);
                lose(self, process);
                return;
            }
            push_message(self, process, &frame);
        }
    }
}

/* ready_fd says that messages are kept: to the caller between calls, not to ourselves within one. */
void
tt_control_set_ready(TtControl *self, gboolean ready)
{
    guint64 one = 1;

    if (ready == self->ready)
        return;
    if (ready ? write(self->ready_fd, &one, 8) == 8 : read(self->ready_fd, &one, 8) == 8)
        self->ready = ready;
}

/* Waits for the sockets at most @timeout_ms and does all they have to do. */
void
tt_control_pump(TtControl *self, int timeout_ms)
{
    struct epoll_event events[64];
    int n = epoll_wait(self->epoll_fd, events, G_N_ELEMENTS(events), timeout_ms);

    for (int i = 0; i < n; i++) {
        guint process = events[i].data.u32;

        if (process == READY || self->wires[process].fd < 0)
            continue;
        if (events[i].events & EPOLLOUT)
            tt_wire_flush(&self->wires[process]);
        if (events[i].events & ~(guint32)EPOLLOUT)
            take_input(self, process);
        watch_output(self, process);
    }
}

/* Milliseconds until @deadline_us, rounded up; G_MAXINT64 is for ever. */
int
tt_control_left_ms(gint64 deadline_us)
{
    if (deadline_us == G_MAXINT64)
        return -1;
    return (int)CLAMP((deadline_us - g_get_monotonic_time() + 999) / 1000, 0, G_MAXINT);
}

TtControl *
tt_control_open(const TtLaunch *launch, const TtControlOptions *options, GError **error)
{
    g_autoptr(TtControl) self = g_new0(TtControl, 1);
    gboolean root = launch->first_rank == 0;
    guint n;

    g_assert(launch->n_ranks > 0 && launch->n_local > 0);
    self->epoll_fd = self->ready_fd = -1;
    g_queue_init(&self->messages);
    self->meeting.members = g_array_new(FALSE, FALSE, sizeof(TtMember));
    g_array_set_clear_func(self->meeting.members, member_clear);
    if (!(root ? tt_meet_as_root : tt_meet_as_peer)(launch, options, &self->meeting, error)) {
        for (guint i = 0; i < self->meeting.members->len; i++)
            if (member(self, i)->fd >= 0)
                close(member(self, i)->fd);
        return NULL;
    }
    n = self->meeting.members->len;
    self->wires = g_new(TtWire, n);
    self->polls_output = g_new0(gboolean, n);
    self->gathered = g_new0(TtKept *, n);
    for (guint i = 0; i < n; i++)
        tt_wire_init(&self->wires[i], member(self, i)->fd);
    self->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    self->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (self->epoll_fd < 0 || self->ready_fd < 0) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM, "epoll: %s", g_strerror(errno));
        return NULL;
    }
    watch(self, EPOLL_CTL_ADD, self->ready_fd, READY, FALSE);
    for (guint i = 0; i < n; i++)
        if (self->wires[i].fd >= 0)
            watch(self, EPOLL_CTL_ADD, self->wires[i].fd, i, FALSE);
    return g_steal_pointer(&self);
}

/* Closing a TCP socket that holds something unread discards what it has not delivered: waits for that. */
static void
settle(int fd, gint64 deadline_us)
{
    struct tcp_info info;
    socklen_t bytes = sizeof info;
    int left = 0;

    while (fd >= 0 && getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
           (info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_CLOSE_WAIT) &&
           ioctl(fd, SIOCOUTQ, &left) == 0 && left > 0 && g_get_monotonic_time() < deadline_us)
        g_usleep(1000);
}

/* Sends what is kept. What arrives meanwhile is taken and thrown away, lest two that close at once
 * with much to say wait for each other. */
static void
flush(TtControl *self)
{
    gint64 deadline_us = g_get_monotonic_time() + FLUSH_US;
    gboolean any = TRUE;

    tt_control_set_ready(self, FALSE);
    while (any && g_get_monotonic_time() < deadline_us) {
        any = FALSE;
        for (guint i = 0; i < self->meeting.members->len; i++)
            any |= tt_wire_has_output(&self->wires[i]);
        g_queue_clear_full(&self->messages, tt_kept_free);
        if (any)
            tt_control_pump(self, tt_control_left_ms(deadline_us));
    }
    for (guint i = 0; i < self->meeting.members->len; i++)
        settle(self->wires[i].fd, deadline_us);
}

void
tt_control_forget(TtControl *self)
{
    guint n;

    if (!self)
        return;
    n = self->meeting.members->len;
    for (guint i = 0; i < n && self->wires; i++)
        tt_wire_clear(&self->wires[i]);
    for (guint i = 0; i < n && self->gathered; i++)
        tt_kept_free(self->gathered[i]);
    if (self->epoll_fd >= 0)
        close(self->epoll_fd);
    if (self->ready_fd >= 0)
        close(self->ready_fd);
    g_queue_clear_full(&self->messages, tt_kept_free);
    tt_kept_free(self->given);
    g_array_unref(self->meeting.members);
    g_free(self->wires);
    g_free(self->polls_output);
    g_free(self->gathered);
    g_free(self);
}

void
tt_control_close(TtControl *self)
{
    if (self && self->epoll_fd >= 0 && self->ready_fd >= 0)
        flush(self);
    tt_control_forget(self);
}

guint
tt_control_process(const TtControl *self)
{
    return self->meeting.own;
}

guint
tt_control_n_processes(const TtControl *self)
{
    return self->meeting.members->len;
}

void
tt_control_ranks(const TtControl *self, guint process, guint *first_rank, guint *n_local)
{
    *first_rank = member(self, process)->first_rank;
    *n_local = member(self, process)->n_local;
}

guint
tt_control_process_of(const TtControl *self, guint rank)
{
    guint low = 0, high = self->meeting.members->len;

    while (high - low > 1) {
        guint middle = (low + high) / 2;

        if (member(self, middle)->first_rank <= rank)
            low = middle;
        else
            high = middle;
    }
    return low;
}

const char *
tt_control_name(const TtControl *self, guint process)
{
    return member(self, process)->name;
}

gboolean
tt_control_send_frame(TtControl *self, guint process, guint32 kind, gconstpointer data, gsize bytes)
{
    gboolean sent = tt_wire_send(&self->wires[process], kind, data, bytes);

    watch_output(self, process);
    return sent;
}

gboolean
tt_control_send(TtControl *self, guint process, guint32 kind, gconstpointer data, gsize bytes)
{
    g_assert(kind < TT_CONTROL_RESERVED && process < self->meeting.members->len);
    g_assert(process != self->meeting.own && (self->meeting.own == 0 || process == 0));
    return tt_control_send_frame(self, process, kind, data, bytes);
}

gboolean
tt_control_receive(TtControl *self, int timeout_ms, TtControlMessage *message)
{
    gint64 deadline_us =
        timeout_ms < 0 ? G_MAXINT64 : g_get_monotonic_time() + (gint64)timeout_ms * 1000;

    g_clear_pointer(&self->given, tt_kept_free);
    while (!self->messages.length) {
        int left = tt_control_left_ms(deadline_us);

        tt_control_pump(self, left);
        if (!self->messages.length && left == 0)
            return FALSE;
    }
    self->given = g_queue_pop_head(&self->messages);
    tt_control_set_ready(self, self->messages.length > 0);
    *message = (TtControlMessage){ self->given->process, self->given->frame.kind,
                                   self->given->frame.body, self->given->frame.bytes };
    return TRUE;
}

int
tt_control_fd(const TtControl *self)
{
    return self->epoll_fd;
}

guint
tt_control_n_strangers(TtControl *self)
{
    guint n = self->meeting.n_strangers;

    self->meeting.n_strangers = 0;
    return n;
}

char *
tt_control_host_id(void)
{
    static const char *const links[] = { "/proc/self/ns/net", "/proc/self/ns/pid" };
    g_autofree char *boot = NULL;
    GString *id = g_string_new(NULL);

    if (g_file_get_contents("/proc/sys/kernel/random/boot_id", &boot, NULL, NULL))
        g_string_append(id, g_strstrip(boot));
    else
        g_string_append(id, g_get_host_name()); /* /proc may be hidden */
    for (guint i = 0; i < G_N_ELEMENTS(links); i++) {
        g_autofree char *target = g_file_read_link(links[i], NULL);

        g_string_append_printf(id, " %s", target ? target : "?");
    }
    return g_string_free(id, FALSE);
}
