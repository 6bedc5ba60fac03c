/* verbs.h - RDMA network cards through libibverbs: reliable queue pairs, and writes into a peer's
 * memory that tell it so.
 *
 *   tt_verbs_open            a card, one port of it, one address (GID); one completion queue
 *     tt_verbs_register      memory the card may read, and peers may write if they know its key
 *     tt_verbs_queue_new     one end of a connection. Both ends exchange TtVerbsAddress somehow,
 *     tt_verbs_connect       then connect
 *     tt_verbs_write         bytes into the peer's memory, with 32 bits ("immediate") that arrive as
 *                            an event there, after the bytes and in the order written
 *     tt_verbs_receive       room for events: each uses up one that the receiver offered before
 *     tt_verbs_poll, _wait   what arrived, what is written
 *
 * Knows cards and queue pairs; knows no ranks, no plans, and not how addresses travel. All of it
 * belongs to one thread of one process: open after fork(), the card does not follow into the child.
 *
 * Errors are TT_EXEC_ERROR in one line that starts with the card's name: _USAGE for a name, port or
 * GID index that is not there (lists what is), _HARDWARE if there is no card to use or no libibverbs
 * in this build, _SYSTEM for what the card refuses, _NETWORK for what breaks between the ends. docs/verbs.md says how cards and GIDs are chosen.
 */
#pragma once
#include "exec/exec.h"

typedef struct TtVerbs TtVerbs;
typedef struct TtVerbsMemory TtVerbsMemory;
typedef struct TtVerbsQueue TtVerbsQueue;

/* What to open; zeros choose, except gid_index. */
typedef struct {
    const char *device;   /* NULL: the first with an active port */
    guint port;           /* 0: the first active one */
    int gid_index;        /* -1: RoCE v2 of an IPv4 address, else any RoCE v2, else the first */
    guint n_queues;       /* how many at most; 0: 16 */
    guint send_depth;     /* writes in flight per queue; 0: 128 */
    guint receive_depth;  /* events in flight per queue; 0: 256 */
    guint inline_bytes;   /* the largest write that travels with its request; 0: 64 */
    guint8 service_level; /* of the network, where the fabric gives them a meaning */
    guint8 traffic_class;
} TtVerbsOptions;

TtVerbs *tt_verbs_open(const TtVerbsOptions *options, GError **error);

/* Frees its queues and memory too, if any are left. NULL is fine. */
void tt_verbs_close(TtVerbs *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtVerbs, tt_verbs_close)

/* What was chosen; valid until close. */
typedef struct {
    const char *device;
    guint port;
    int gid_index;       /* -1 on InfiniBand, which is addressed by LID */
    const char *address; /* "10.77.0.1 (RoCE v2)", "LID 12" */
    guint mtu_bytes;     /* payload of the largest packet */
    guint inline_bytes;  /* as granted, once there is a queue; before, as asked for */
    guint send_depth, receive_depth;
    gboolean on_demand; /* the card can page registered memory in when it needs it */
} TtVerbsInfo;

const TtVerbsInfo *tt_verbs_info(const TtVerbs *self);

/* --- memory ------------------------------------------------------------------------------------- */

/* Where a peer may write: exchange it as it is (network byte order). */
typedef struct {
    guint64 address;
    guint64 bytes;
    guint32 key;
    guint32 unused;
} TtVerbsRemote;

/* Lets the card use @bytes at @start; they stay in memory ("pinned") unless @on_demand is asked for
 * and the card can. If the limit of locked memory is too low the error says it and how to raise it. */
TtVerbsMemory *tt_verbs_register(TtVerbs *self, gpointer start, gsize bytes, gboolean on_demand,
                                 GError **error);

/* Likewise memory of a device, which the CPU does not touch: of a dma-buf where the card and libibverbs know those, and
 * with @dma_buf -1 by its address, for which the kernel must know the device's memory (nvidia-peermem). */
TtVerbsMemory *tt_verbs_register_device(TtVerbs *self, gpointer start, gsize bytes, int dma_buf,
                                        guint64 dma_buf_offset, GError **error);
void tt_verbs_unregister(TtVerbsMemory *memory); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtVerbsMemory, tt_verbs_unregister)

void tt_verbs_remote(const TtVerbsMemory *memory, TtVerbsRemote *remote);

/* --- queue pairs -------------------------------------------------------------------------------- */

/* One end of a connection: exchange it as it is (network byte order, no padding). */
typedef struct {
    guint32 version; /* of this layout */
    guint32 queue_number;
    guint32 first_packet; /* sequence number */
    guint16 lid;
    guint8 link_layer;
    guint8 mtu; /* the code of the specification: 1 is 256 bytes, 5 is 4096 */
    guint8 gid[16];
} TtVerbsAddress;

/* @name says in errors whom it leads to ("rank 3, connection 2"); copied. @user comes back with
 * completions. It can take receives at once, writes when connected. */
TtVerbsQueue *tt_verbs_queue_new(TtVerbs *self, const char *name, gpointer user, GError **error);
void tt_verbs_queue_free(TtVerbsQueue *queue); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TtVerbsQueue, tt_verbs_queue_free)

void tt_verbs_address(const TtVerbsQueue *queue, TtVerbsAddress *address);

/* The peer need not be connected yet: what is written meanwhile is repeated until it is. */
gboolean tt_verbs_connect(TtVerbsQueue *queue, const TtVerbsAddress *peer, GError **error);

/* Offers room for @n more events. The caller keeps count: at most receive_depth are open at a time, or
 * the error says so. A peer that writes with no room open is held up, not refused. */
gboolean tt_verbs_receive(TtVerbsQueue *queue, guint n, GError **error);

/* One write. @from lies in @memory, and stays as it is until the write is reported or a later one of
 * the same queue; up to inline_bytes neither matters, and @memory may be NULL. */
typedef struct {
    const void *from;
    const TtVerbsMemory *memory;
    guint32 bytes; /* 0: only the event */
    guint64 to;    /* the peer's address and its key, in host byte order */
    guint32 key;
    guint32 immediate;
    guint32 cookie;  /* comes back when it is reported */
    gboolean report; /* a completion when it has arrived */
    gboolean silent; /* no event at the peer: a later write of the same queue has one */
} TtVerbsWrite;

typedef enum {
    TT_VERBS_POSTED,
    TT_VERBS_FULL, /* send_depth are in flight: poll, then again */
    TT_VERBS_FAILED
} TtVerbsPosted;

TtVerbsPosted tt_verbs_write(TtVerbsQueue *queue, const TtVerbsWrite *write, GError **error);

/* --- what happened ------------------------------------------------------------------------------ */

/* A fault: the queue fails from now on, here and, as soon as it writes, at the peer. */
void tt_verbs_queue_break(TtVerbsQueue *queue);

typedef enum {
    TT_VERBS_WRITTEN, /* one that asked for a report, and all before it on its queue */
    TT_VERBS_ARRIVED  /* the peer's bytes are here; one offered receive is used up */
} TtVerbsHappened;

typedef struct {
    TtVerbsHappened what;
    TtVerbsQueue *queue;
    gpointer user;     /* the queue's */
    guint32 cookie;    /* WRITTEN */
    guint32 immediate; /* ARRIVED, with the number of bytes */
    guint32 bytes;
} TtVerbsCompletion;

/* Writes up to @n completions in order; returns how many, -1 with @error if a queue broke: then
 * completions[0] has that queue and its user. Each queue
 * breaks once; the others go on. Never blocks. */
int tt_verbs_poll(TtVerbs *self, TtVerbsCompletion *completions, guint n, GError **error);

/* Sleeps until there is something to poll or @timeout_ns is over (negative: no limit). FALSE only for
 * an event that ends things. For callers that have more to wait for: tt_verbs_arm() is TRUE if there
 * is nothing to poll, and then one of the two descriptors becomes readable when there is;
 * tt_verbs_woken() afterwards reads what made it so. */
gboolean tt_verbs_wait(TtVerbs *self, gint64 timeout_ns, GError **error);
gboolean tt_verbs_arm(TtVerbs *self);
void tt_verbs_descriptors(const TtVerbs *self, int descriptors[2]);
gboolean tt_verbs_woken(TtVerbs *self, GError **error);

/* --- words -------------------------------------------------------------------------------------- */

/* What a code of a completion (ibv_wc_status), of an event (ibv_event_type) or an errno of a verbs call
 * means, as the second half of a sentence. Static; a code we do not know is "... unknown ...". */
const char *tt_verbs_status_words(int status);
const char *tt_verbs_event_words(int event, gboolean *harmless);
const char *tt_verbs_errno_words(int code);
