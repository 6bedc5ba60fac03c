/* The other processes' side of the meeting: call until the root answers, then wait for its word. */
#include "exec/control_meet.h"
#include "exec/net.h"
#include "exec/control_wire.h"
#include "exec/pmi.h"
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FIRST_PAUSE_US 20000
#define LAST_PAUSE_US  500000
#define ONE_TRY_US     (3 * G_USEC_PER_SEC) /* per address: another one may answer */
#define PREFIX_BYTES   offsetof(TtHello, first_rank)

typedef struct {
    const TtLaunch *launch;
    const TtControlOptions *options;
    char *where;
    double timeout_s;
    gint64 deadline_us;
} Peer;

typedef enum { JOINED, AGAIN, FAILED } Outcome;

/* Words from outside, on one line. */
static void
make_printable(char *text)
{
    for (char *c = text; *c; c++)
        if (g_ascii_iscntrl(*c))
            *c = ' ';
}

static Outcome
lost(const Peer *peer, const char *when, GError **error)
{
    if (errno == ETIMEDOUT)
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_ABSENT, "the root at %s did not answer %s",
                    peer->where, when);
    else
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_DEAD, "the root at %s went away %s%s%s",
                    peer->where, when, errno ? ": " : "", errno ? g_strerror(errno) : "");
    return FAILED;
}

/* Both hellos. A root that hangs up before its own is overrun by strangers: call again. */
static Outcome
exchange_hellos(const Peer *peer, int fd, TtHello *mine, TtHello *theirs, GError **error)
{
    g_autofree char *differs = NULL;

    tt_hello_make(mine, peer->launch, peer->options);
    if (!tt_net_write(fd, mine, sizeof *mine, peer->deadline_us) ||
        !tt_net_read(fd, theirs, PREFIX_BYTES, peer->deadline_us))
        return AGAIN;
    if (memcmp(theirs->magic, TT_HELLO_MAGIC, sizeof theirs->magic)) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM, "what answers at %s is not Tutti",
                    peer->where);
        return FAILED;
    }
    differs = tt_hello_differs(theirs, mine);
    if (differs) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE, "the root at %s %s", peer->where,
                    differs);
        return FAILED;
    }
    if (!tt_net_read(fd, (char *)theirs + PREFIX_BYTES, sizeof *theirs - PREFIX_BYTES,
                     peer->deadline_us))
        return AGAIN;
    return JOINED;
}

static Outcome
prove(const Peer *peer, int fd, const TtHello *mine, const TtHello *theirs, GError **error)
{
    TtProof proof, want;
    TtVerdict verdict;

    tt_proof_make(&proof, peer->options->secret, "peer", mine, theirs);
    tt_proof_make(&want, peer->options->secret, "root", mine, theirs);
    if (!tt_net_write(fd, &proof, sizeof proof, peer->deadline_us) ||
        !tt_net_read(fd, &verdict, sizeof verdict, peer->deadline_us))
        return lost(peer, "in the handshake", error);
    verdict.text[sizeof verdict.text - 1] = 0;
    make_printable(verdict.text);
    if (verdict.code != TT_VERDICT_WELCOME) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE, "the root at %s refused: %s",
                    peer->where, verdict.text);
        return FAILED;
    }
    if (!tt_proof_equal(&verdict.proof, &want)) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_USAGE,
                    "the root at %s does not know the secret (" TT_SECRET_HINT ")", peer->where);
        return FAILED;
    }
    return JOINED;
}

static gboolean
take_table(TtMeeting *meeting, const TtMeetTable *table, gsize bytes, int fd)
{
    if (bytes < sizeof *table ||
        table->n_members > (bytes - sizeof *table) / sizeof table->rows[0] ||
        table->own >= table->n_members)
        return FALSE;
    for (guint i = 0; i < table->n_members; i++) {
        TtMember member = { table->rows[i].first_rank, table->rows[i].n_local, i ? -1 : fd,
                            g_strndup(table->rows[i].name, sizeof table->rows[i].name) };

        make_printable(member.name);
        g_array_append_val(meeting->members, member);
    }
    meeting->own = table->own;
    return TRUE;
}

static void
gave_up(const Peer *peer, guint32 kind, char *body, gsize bytes, GError **error)
{
    const char *text = "protocol error";
    guint32 code = TT_EXEC_ERROR_NETWORK;

    if (kind == TT_MEET_REFUSED && bytes > sizeof code) {
        memcpy(&code, body, sizeof code);
        make_printable(body + sizeof code);
        text = body + sizeof code;
    }
    g_set_error(error, TT_EXEC_ERROR, (gint)MIN(code, TT_EXEC_ERROR_CORRUPT),
                "the root at %s gave up: %s", peer->where, text);
}

/* The root's deadline is before ours: it began to listen before we got here. */
static Outcome
wait_for_table(const Peer *peer, int fd, TtMeeting *meeting, GError **error)
{
    gint64 deadline_us = g_get_monotonic_time() + (gint64)((peer->timeout_s + 1) * G_USEC_PER_SEC);
    g_autofree char *body = NULL;
    TtWireHeader header;

    if (!tt_net_read(fd, &header, sizeof header, deadline_us))
        return lost(peer, "before all had come", error);
    if (tt_wire_header_good(&header))
        body = g_try_malloc(header.bytes + 1);
    errno = 0;
    if (!body || !tt_net_read(fd, body, header.bytes, deadline_us))
        return lost(peer, "before all had come", error);
    body[header.bytes] = 0;
    if (header.kind == TT_MEET_TABLE && take_table(meeting, (TtMeetTable *)body, header.bytes, fd))
        return JOINED;
    gave_up(peer, header.kind, body, header.bytes, error);
    return FAILED;
}

static Outcome
talk(const Peer *peer, int fd, TtMeeting *meeting, GError **error)
{
    TtHello mine, theirs;
    Outcome outcome;

    if (!tt_net_same_user(fd)) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                    "the root on this machine belongs to another user");
        return FAILED;
    }
    tt_net_tune(fd);
    outcome = exchange_hellos(peer, fd, &mine, &theirs, error);
    if (outcome == JOINED)
        outcome = prove(peer, fd, &mine, &theirs, error);
    if (outcome == JOINED)
        outcome = wait_for_table(peer, fd, meeting, error);
    return outcome;
}

static Outcome
call(const Peer *peer, const GArray *addresses, TtMeeting *meeting, int *code, GError **error)
{
    Outcome outcome = AGAIN;

    for (guint i = 0; i < addresses->len && outcome == AGAIN; i++) {
        gint64 until_us = MIN(g_get_monotonic_time() + ONE_TRY_US, peer->deadline_us);
        int fd = tt_net_connect(&g_array_index(addresses, TtNetAddress, i), until_us);

        if (fd < 0) {
            *code = errno;
            continue;
        }
        outcome = talk(peer, fd, meeting, error);
        *code = errno;
        if (outcome != JOINED)
            close(fd);
    }
    return outcome;
}

static Outcome
call_until_answered(const Peer *peer, TtMeeting *meeting, GError **error)
{
    g_autoptr(GArray) addresses = tt_meet_addresses(peer->launch, peer->options, error);
    gint64 pause_us = FIRST_PAUSE_US;
    int code = 0;

    if (!addresses)
        return FAILED;
    for (;;) {
        Outcome outcome = call(peer, addresses, meeting, &code, error);
        gint64 left_us = peer->deadline_us - g_get_monotonic_time();

        if (outcome != AGAIN)
            return outcome;
        if (left_us <= 0)
            break;
        g_usleep((gulong)MIN(pause_us, left_us));
        pause_us = MIN(pause_us * 3 / 2, LAST_PAUSE_US);
    }
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_ABSENT,
                "rank 0 was not to be met at %s within %g s: %s", peer->where, peer->timeout_s,
                code ? g_strerror(code) : "it hangs up");
    return FAILED;
}

/* Where the root listens, from Hydra. */
static gboolean
ask_pmi(const Peer *peer, TtLaunch *found, GError **error)
{
    g_autofree char *got = tt_pmi_exchange(peer->launch->pmi_fd, NULL, peer->deadline_us, error);
    char *comma = got ? strrchr(got, ',') : NULL;

    if (!got)
        return FALSE;
    *found = *peer->launch;
    found->root_host = g_strndup(got, comma ? (gsize)(comma - got) : strlen(got));
    found->root_port = comma ? (guint)g_ascii_strtoull(comma + 1, NULL, 10) : 0;
    return TRUE;
}

gboolean
tt_meet_as_peer(const TtLaunch *launch, const TtControlOptions *options, TtMeeting *meeting,
                GError **error)
{
    Peer peer = { launch, options, NULL, options->timeout_s > 0 ? options->timeout_s : 30, 0 };
    TtLaunch found = { 0 };
    gboolean joined;

    peer.deadline_us = g_get_monotonic_time() + (gint64)(peer.timeout_s * G_USEC_PER_SEC);
    if (launch->pmi_fd >= 0 && !launch->root_host && !launch->meeting) {
        if (!tt_meet_has_secret(launch, options, error) || !ask_pmi(&peer, &found, error))
            return FALSE;
        peer.launch = &found;
    }
    peer.where = tt_meet_where(peer.launch);
    joined = call_until_answered(&peer, meeting, error) == JOINED;
    g_free(peer.where);
    g_free(found.root_host);
    return joined;
}
