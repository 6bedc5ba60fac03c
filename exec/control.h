/* control.h - the wire between the processes of a team: a star around the root.
 *
 * Carries commands, arguments, addresses and results, never vectors. Messages are framed, whole and
 * in order; a process that goes is noticed. Over TCP to a host that is not this machine both sides
 * prove that they know the shared secret (HMAC-SHA256 over both sides' nonces); a stranger is turned
 * away and counted. Nothing is encrypted.
 *
 * Processes are numbered in the order of their ranks, so process 0, which runs rank 0, is the root.
 * One thread at a time. Errors are of TT_EXEC_ERROR: USAGE (no secret), SYSTEM (address, port,
 * interface, version, secret), ABSENT (someone did not come in time), DEAD (someone went).
 */
#pragma once
#include "exec/exec.h"
#include "exec/launch.h"

typedef struct TtControl TtControl;

typedef struct {
    const char *secret;    /* NULL or "": none; needed when root_host is not loopback */
    const char *interface; /* the root listens there (name, or address); NULL: where root_host says,
                              if that is loopback, else everywhere */
    double timeout_s;      /* how long to wait for all to arrive; 0: 30 */
} TtControlOptions;

/* Meets the others. Returns when all ranks are here; else an error that names those missing, or says
 * what is wrong (host that does not resolve, port in use, wrong secret, another version, another byte
 * order, two processes for one rank), on every process that can know. */
TtControl *tt_control_open(const TtLaunch *launch, const TtControlOptions *options, GError **error);

/* Sends what is kept, for at most 2 s, and says good-bye: the others see TT_CONTROL_LOST. */
void tt_control_close(TtControl *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtControl, tt_control_close)

/* In a forked child: closes its copies without a word, so that the others notice when the parent goes. */
void tt_control_forget(TtControl *self);

guint tt_control_process(const TtControl *self); /* our number */
guint tt_control_n_processes(const TtControl *self);
void tt_control_ranks(const TtControl *self, guint process, guint *first_rank, guint *n_local);
guint tt_control_process_of(const TtControl *self, guint rank);

/* "rank 3 at 10.0.0.2", for messages. */
const char *tt_control_name(const TtControl *self, guint process);

/* Sends to @process (the root to anyone, others to the root only). Never blocks: what the socket
 * does not take is kept and sent by later calls. @kind is the caller's, below TT_CONTROL_RESERVED;
 * @bytes at most 256 MiB. FALSE if that process is gone. */
gboolean tt_control_send(TtControl *self, guint process, guint32 kind, gconstpointer data,
                         gsize bytes);

typedef struct {
    guint process;      /* who sent it */
    guint32 kind;       /* the caller's; or TT_CONTROL_LOST: @process has gone, said once, last */
    const guint8 *data; /* valid until the next call; aligned to 16 */
    gsize bytes;
} TtControlMessage;
#define TT_CONTROL_LOST     G_MAXUINT32
#define TT_CONTROL_RESERVED (G_MAXUINT32 - 15)

/* Next message, waiting at most @timeout_ms (0: only looks; < 0: for ever). FALSE: none in time. */
gboolean tt_control_receive(TtControl *self, int timeout_ms, TtControlMessage *message);

/* A descriptor that is readable when tt_control_receive() has something to do, to be polled with
 * others; after it was readable, receive until it returns FALSE. */
int tt_control_fd(const TtControl *self);

/* Every process gives its blob and gets those of all, in order of processes. To be called by all.
 * Messages that arrive meanwhile are kept. Caller frees with g_ptr_array_unref(). */
GPtrArray *tt_control_gather(TtControl *self, GBytes *mine, double timeout_s,
                             GError **error); /* of GBytes, aligned to 16 */

/* Strangers turned away since the last call, for a note. */
guint tt_control_n_strangers(TtControl *self);

/* Same machine, same network namespace and same process namespace have the same text. Caller frees. */
char *tt_control_host_id(void);
