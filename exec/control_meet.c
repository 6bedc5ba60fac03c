/* The root's side of the meeting: one poll loop, no thread, nobody waited for alone. */
#include "exec/control_meet.h"
#include "exec/net.h"
#include "exec/control_wire.h"
#include "exec/pmi.h"
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define GUEST_US     (2 * G_USEC_PER_SEC) /* to say who it is */
#define MAX_GUESTS   128                  /* at a time; one more and the oldest goes */
#define MAX_NOTES    4
#define PREFIX_BYTES offsetof(TtHello, first_rank)

typedef enum { NEW, DIFFERENT_CHECKED, ANSWERED, LEAVING } GuestState;

/* Someone who has connected and not proved anything: a few hundred bytes. */
typedef struct {
    int fd;
    GuestState state;
    gint64 deadline_us;
    gsize have;
    struct {
        TtHello hello;
        TtProof proof;
    } said;
    TtHello answer;
} Guest;

typedef struct {
    const TtLaunch *launch;
    const TtControlOptions *options;
    TtMeeting *meeting;
    GArray *listeners; /* of int */
    GPtrArray *guests; /* of Guest, oldest first */
    GString *notes;    /* who was refused and why, for the error */
    guint n_notes;
    guint n_covered; /* ranks that are here */
} Root;

static void
guest_free(gpointer data)
{
    Guest *guest = data;

    if (guest->fd >= 0)
        close(guest->fd);
    g_free(guest);
}

static void note(Root *root, const char *format, ...) G_GNUC_PRINTF(2, 3);

static void
note(Root *root, const char *format, ...)
{
    va_list args;

    if (root->n_notes++ >= MAX_NOTES)
        return;
    g_string_append(root->notes, "; ");
    va_start(args, format);
    g_string_append_vprintf(root->notes, format, args);
    va_end(args);
}

static char *
member_name(const char *where, guint first, guint n)
{
    g_autofree char *ranks = tt_launch_ranks_text(first, n);

    return g_strdup_printf(g_str_has_prefix(where, "process ") ? "%s (%s)" : "%s at %s", ranks,
                           where);
}

static gint
by_rank(gconstpointer a, gconstpointer b)
{
    const TtMember *x = a, *y = b;

    return (x->first_rank > y->first_rank) - (x->first_rank < y->first_rank);
}

/* Stays until the other end has read our last words, or its time is up. */
static void
see_off(Guest *guest)
{
    shutdown(guest->fd, SHUT_WR);
    guest->state = LEAVING;
}

static void
refuse(Guest *guest, const char *why)
{
    TtVerdict verdict = { .code = TT_VERDICT_REFUSED };

    g_strlcpy(verdict.text, why, sizeof verdict.text);
    if (send(guest->fd, &verdict, sizeof verdict, MSG_NOSIGNAL) < 0)
        guest->deadline_us = 0;
    see_off(guest);
}

/* One that knows the secret but does not fit: nothing can come of this meeting. */
static void
fit(const Root *root, const TtHello *hello, const char *name, GError **error)
{
    if (hello->n_ranks != root->launch->n_ranks)
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE, "%s counts %u ranks, the root %u",
                    name, hello->n_ranks, root->launch->n_ranks);
    else if (!hello->n_local || hello->first_rank >= hello->n_ranks ||
             hello->n_local > hello->n_ranks - hello->first_rank)
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE, "%s: there are ranks 0-%u only",
                    name, hello->n_ranks - 1);
    for (guint i = 0; error && !*error && i < root->meeting->members->len; i++) {
        const TtMember *m = &g_array_index(root->meeting->members, TtMember, i);

        if (hello->first_rank < m->first_rank + m->n_local &&
            m->first_rank < hello->first_rank + hello->n_local)
            g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                        "two processes run the same rank: %s, and %s", m->name, name);
    }
}

/* FALSE: the meeting is over. */
static gboolean
judge(Root *root, Guest *guest, GError **error)
{
    const TtHello *hello = &guest->said.hello;
    g_autofree char *where = tt_net_peer_text(guest->fd);
    g_autofree char *name = member_name(where, hello->first_rank, hello->n_local);
    g_autoptr(GError) misfit = NULL;
    TtVerdict verdict = { .code = TT_VERDICT_WELCOME };
    TtMember member;
    TtProof want;

    tt_proof_make(&want, root->options->secret, "peer", hello, &guest->answer);
    if (hello->has_secret != guest->answer.has_secret ||
        !tt_proof_equal(&want, &guest->said.proof)) {
        note(root, "%s does not know the secret (" TT_SECRET_HINT ")", name);
        root->meeting->n_strangers++;
        refuse(guest, "wrong secret (" TT_SECRET_HINT ")");
        return TRUE;
    }
    fit(root, hello, name, &misfit);
    if (misfit) {
        refuse(guest, misfit->message);
        g_propagate_error(error, g_steal_pointer(&misfit));
        return FALSE;
    }
    tt_proof_make(&verdict.proof, root->options->secret, "root", hello, &guest->answer);
    if (send(guest->fd, &verdict, sizeof verdict, MSG_NOSIGNAL) != sizeof verdict) {
        guest->deadline_us = 0;
        return TRUE;
    }
    tt_net_tune(guest->fd);
    member = (TtMember){ hello->first_rank, hello->n_local, guest->fd, g_steal_pointer(&name) };
    g_array_append_val(root->meeting->members, member);
    root->n_covered += hello->n_local;
    guest->fd = -1; /* and the guest goes */
    return TRUE;
}

/* Takes what has come, one state after the other. FALSE: the meeting is over. */
static gboolean
hear(Root *root, Guest *guest, GError **error)
{
    const gsize hello_bytes = sizeof(TtHello), all_bytes = hello_bytes + sizeof(TtProof);
    g_autofree char *differs = NULL;
    char waste[512];
    ssize_t n;

    if (guest->state == LEAVING) {
        n = recv(guest->fd, waste, sizeof waste, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            guest->deadline_us = 0;
        return TRUE;
    }
    n = recv(guest->fd, (char *)&guest->said + guest->have,
             (guest->state == ANSWERED ? all_bytes : hello_bytes) - guest->have, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return TRUE;
    if (n > 0)
        guest->have += (gsize)n;
    if (n <= 0 || memcmp(guest->said.hello.magic, TT_HELLO_MAGIC,
                         MIN(guest->have, sizeof guest->said.hello.magic))) {
        root->meeting->n_strangers++;
        guest->deadline_us = 0;
        return TRUE;
    }
    if (guest->state == NEW && guest->have >= PREFIX_BYTES) {
        guest->state = DIFFERENT_CHECKED;
        tt_hello_make(&guest->answer, root->launch, root->options);
        differs = tt_hello_differs(&guest->said.hello, &guest->answer);
        if (send(guest->fd, &guest->answer, sizeof guest->answer, MSG_NOSIGNAL) !=
            sizeof guest->answer)
            guest->deadline_us = 0;
        else if (differs) {
            g_autofree char *where = tt_net_peer_text(guest->fd);

            note(root, "%s%s %s", g_str_has_prefix(where, "process") ? "" : "a process at ", where,
                 differs);
            root->meeting->n_strangers++;
            see_off(guest);
        }
    }
    if (guest->state == DIFFERENT_CHECKED && guest->have == hello_bytes)
        guest->state = ANSWERED;
    if (guest->state == ANSWERED && guest->have == all_bytes)
        return judge(root, guest, error);
    return TRUE;
}

static void
let_in(Root *root, int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    Guest *guest;

    if (fd < 0)
        return;
    if (!tt_net_same_user(fd)) { /* abstract sockets have no permissions of their own */
        root->meeting->n_strangers++;
        close(fd);
        return;
    }
    if (root->guests->len >= MAX_GUESTS) {
        root->meeting->n_strangers++;
        g_ptr_array_remove_index(root->guests, 0);
    }
    guest = g_new0(Guest, 1);
    guest->fd = fd;
    guest->deadline_us = g_get_monotonic_time() + GUEST_US;
    g_ptr_array_add(root->guests, guest);
}

/* Guests that have gone, have become members, or said nothing in time. */
static void
clear_away(Root *root, gint64 now_us)
{
    for (guint i = root->guests->len; i-- > 0;) {
        Guest *guest = g_ptr_array_index(root->guests, i);
        gboolean late = guest->deadline_us <= now_us;

        if (late && guest->deadline_us && guest->state != LEAVING)
            root->meeting->n_strangers++;
        if (late || guest->fd < 0)
            g_ptr_array_remove_index(root->guests, i);
    }
}

/* One round: waits for anything, handles it. FALSE: the meeting is over. */
static gboolean
serve(Root *root, gint64 deadline_us, GError **error)
{
    GArray *members = root->meeting->members;
    guint n_listeners = root->listeners->len, n_guests = root->guests->len,
          n_members = members->len;
    guint n = n_listeners + n_guests + n_members;
    g_autofree struct pollfd *fds = g_new0(struct pollfd, n);
    gint64 until_us = deadline_us;

    for (guint i = 0; i < n_listeners; i++)
        fds[i] = (struct pollfd){ g_array_index(root->listeners, int, i), POLLIN, 0 };
    for (guint i = 0; i < n_guests; i++) {
        Guest *guest = g_ptr_array_index(root->guests, i);

        fds[n_listeners + i] = (struct pollfd){ guest->fd, POLLIN, 0 };
        until_us = MIN(until_us, guest->deadline_us);
    }
    for (guint i = 0; i < n_members; i++) /* our own has -1, which poll skips */
        fds[n_listeners + n_guests + i] =
            (struct pollfd){ g_array_index(members, TtMember, i).fd, POLLIN, 0 };
    until_us = MAX(until_us - g_get_monotonic_time(), 0);
    if (poll(fds, n, (int)MIN((until_us + 999) / 1000, G_MAXINT)) < 0)
        return TRUE;

    for (guint i = 0; i < n_members; i++)
        if (fds[n_listeners + n_guests + i].revents) { /* a member has nothing to say yet */
            g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_DEAD, "%s left before all had come",
                        g_array_index(members, TtMember, i).name);
            return FALSE;
        }
    for (guint i = 0; i < n_guests; i++)
        if (fds[n_listeners + i].revents && !hear(root, g_ptr_array_index(root->guests, i), error))
            return FALSE;
    clear_away(root, g_get_monotonic_time());
    for (guint i = 0; i < n_listeners; i++)
        if (fds[i].revents)
            let_in(root, fds[i].fd);
    return TRUE;
}

/* "ranks 2, 5-7". */
static char *
missing_text(const TtMeeting *meeting, guint n_ranks)
{
    GString *text = g_string_new(NULL);
    guint next = 0, n_parts = 0;

    g_array_sort(meeting->members, by_rank);
    for (guint i = 0; i <= meeting->members->len; i++) {
        const TtMember *m =
            i < meeting->members->len ? &g_array_index(meeting->members, TtMember, i) : NULL;
        guint first = m ? m->first_rank : n_ranks;

        if (first > next && n_parts++ < 8) {
            g_autofree char *part = tt_launch_ranks_text(next, first - next);

            g_string_append_printf(text, "%s%s", text->len ? ", " : "",
                                   n_parts > 1 ? strchr(part, ' ') + 1 : part);
        }
        if (m)
            next = m->first_rank + m->n_local;
    }
    if (n_parts > 8)
        g_string_append(text, ", ...");
    if (n_parts > 1 && g_str_has_prefix(text->str, "rank "))
        g_string_insert_c(text, 4, 's');
    return g_string_free(text, FALSE);
}

static void
write_frame(int fd, guint32 kind, gconstpointer data, gsize bytes)
{
    /* the other end waits for just this, so a short while is plenty; if it died, its wire will tell */
    gint64 deadline_us = g_get_monotonic_time() + 5 * G_USEC_PER_SEC;
    TtWireHeader header = tt_wire_header(kind, bytes);

    if (tt_net_write(fd, &header, sizeof header, deadline_us))
        tt_net_write(fd, data, bytes, deadline_us);
}

/* All are here: tells everyone who they are. */
static void
send_tables(TtMeeting *meeting)
{
    guint n = meeting->members->len;
    TtMeetTable *table = g_malloc0(sizeof *table + n * sizeof table->rows[0]);

    table->n_members = n;
    for (guint i = 0; i < n; i++) {
        const TtMember *m = &g_array_index(meeting->members, TtMember, i);

        table->rows[i].first_rank = m->first_rank;
        table->rows[i].n_local = m->n_local;
        g_strlcpy(table->rows[i].name, m->name, sizeof table->rows[i].name);
    }
    for (guint i = 1; i < n; i++) {
        table->own = i;
        write_frame(g_array_index(meeting->members, TtMember, i).fd, TT_MEET_TABLE, table,
                    sizeof *table + n * sizeof table->rows[0]);
    }
    g_free(table);
}

static void
tell_all(TtMeeting *meeting, const GError *why)
{
    gsize bytes = strlen(why->message) + 1;
    g_autofree char *body = g_malloc(sizeof(guint32) + bytes);
    guint32 code = (guint32)why->code;

    memcpy(body, &code, sizeof code);
    memcpy(body + sizeof code, why->message, bytes);
    for (guint i = 0; i < meeting->members->len; i++) {
        TtMember *m = &g_array_index(meeting->members, TtMember, i);

        if (m->fd >= 0)
            write_frame(m->fd, TT_MEET_REFUSED, body, sizeof code + bytes);
    }
}

static gboolean
open_door(Root *root, gint64 deadline_us, GError **error)
{
    g_autoptr(GArray) addresses = tt_meet_addresses(root->launch, root->options, error);

    if (!addresses)
        return FALSE;
    for (guint i = 0; i < addresses->len; i++) {
        TtNetAddress *address = &g_array_index(addresses, TtNetAddress, i);
        g_autoptr(GError) why = NULL;
        int fd = tt_net_listen(address, &why);

        if (fd >= 0) {
            g_array_append_val(root->listeners, fd);
        } else if (i + 1 == addresses->len && !root->listeners->len) {
            g_propagate_error(error, g_steal_pointer(&why)); /* of several, one is enough */
            return FALSE;
        }
    }
    if (root->launch->pmi_fd >= 0 && !root->launch->meeting && !root->launch->root_host) {
        g_autofree char *host = tt_net_own_host(root->options->interface);
        guint port = tt_net_port(g_array_index(root->listeners, int, 0));
        g_autofree char *mine = g_strdup_printf("%s,%u", host, port);
        g_autofree char *got = tt_pmi_exchange(root->launch->pmi_fd, mine, deadline_us, error);

        return got != NULL;
    }
    return TRUE;
}

static gboolean
wait_for_all(Root *root, double timeout_s, gint64 deadline_us, GError **error)
{
    while (root->n_covered < root->launch->n_ranks) {
        if (g_get_monotonic_time() >= deadline_us) {
            g_autofree char *missing = missing_text(root->meeting, root->launch->n_ranks);

            g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_ABSENT,
                        "%s of %u did not come within %g s%s", missing, root->launch->n_ranks,
                        timeout_s, root->notes->str);
            return FALSE;
        }
        if (!serve(root, deadline_us, error))
            return FALSE;
    }
    return TRUE;
}

gboolean
tt_meet_as_root(const TtLaunch *launch, const TtControlOptions *options, TtMeeting *meeting,
                GError **error)
{
    double timeout_s = options->timeout_s > 0 ? options->timeout_s : 30;
    gint64 deadline_us = g_get_monotonic_time() + (gint64)(timeout_s * G_USEC_PER_SEC);
    Root root = { launch, options, meeting, .n_covered = launch->n_local };
    g_autofree char *process = g_strdup_printf("process %d", (int)getpid());
    TtMember own = { launch->first_rank, launch->n_local, -1,
                     member_name(launch->root_host ? launch->root_host : process,
                                 launch->first_rank, launch->n_local) };
    GError *why = NULL;
    gboolean good = TRUE;

    g_array_append_val(meeting->members, own);
    if (root.n_covered == launch->n_ranks)
        return TRUE;
    root.listeners = g_array_new(FALSE, FALSE, sizeof(int));
    root.guests = g_ptr_array_new_with_free_func(guest_free);
    root.notes = g_string_new(NULL);
    good = open_door(&root, deadline_us, &why) && wait_for_all(&root, timeout_s, deadline_us, &why);
    g_array_sort(meeting->members, by_rank);
    if (good) {
        send_tables(meeting);
    } else {
        tell_all(meeting, why);
        g_propagate_error(error, why);
    }
    g_string_free(root.notes, TRUE);
    g_ptr_array_unref(root.guests);
    for (guint i = 0; i < root.listeners->len; i++)
        close(g_array_index(root.listeners, int, i));
    g_array_unref(root.listeners);
    return good;
}
