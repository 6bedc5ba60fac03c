/* transport.h - how messages reach a rank that shares no memory: one file exec/transport_<name>.c each.
 *
 * The data path never sees a transport. Both ends of a connection are slots in memory of their own
 * rank, laid out as shared.h says; a *wire* carries what one side has filled to the other:
 *
 *     sender's memory                                        receiver's memory
 *     slot k  filled, sequence stored  ── wire ──>  slot k  filled, sequence stored
 *     ack     stored                   <── wire ──  ack     consumed count, stored by the data path
 *
 * So a send still needs a free slot and a receive still frees it, whatever is in between. A wire has
 * no thread: it works when its rank pumps it. Every rank opens one wire for each transport in use,
 * and keeps it for the life of the team; begin() gives it the ends of the next job.
 *
 * A wire that fails says so once, with the peer at fault if it knows one; the rank then leaves.
 */
#pragma once
#include "exec/exec.h"

typedef struct TtWire TtWire; /* a transport's own */

/* What can be done to connections on purpose (fault.h). */
typedef enum {
    TT_HARM_CUT,    /* close them */
    TT_HARM_SILENT, /* neither send nor receive, leave them open */
    TT_HARM_NOISE   /* send random bytes to where the peer listens */
} TtHarm;

/* Where a rank can be reached, as the transport writes it. Plain bytes: it crosses machines. */
#define TT_ADDRESS_BYTES 128
typedef struct {
    guint8 bytes[TT_ADDRESS_BYTES];
} TtAddress;

typedef struct {
    guint rank, n_ranks;
    const char *interface; /* name or address; NULL: the transport chooses */
    const char *device;    /* verbs: "mlx5_0" or "mlx5_0:1"; NULL: chosen */
    gint gid_index;        /* verbs; -1: chosen */
    guint streams;         /* sockets or queue pairs for each connection, >= 1 */
    gboolean checksum;
    guint64 token[2];               /* of this team: tells its own from strangers */
    const _Atomic guint32 *aborted; /* leave whatever you wait for when it is not 0 */
    double timeout_s;
    gpointer context; /* for address() */
    const TtAddress *(*address)(gpointer context, guint rank);
} TtWireOptions;

/* One end of a connection in this job. */
typedef struct {
    guint32 connection; /* number in the job; both sides know it by this */
    guint32 peer;
    gboolean sends;
    guint8 *memory; /* ack, then the slots */
    gsize slot_stride;
    guint32 n_slots;
    /* Memory of a device that holds the payloads of long messages, that of slot k at k * slot_stride; the rest of the
     * slots is at @memory all the same. NULL: payloads are in the slots. */
    guint8 *payload;
} TtWireEnd;

/* Memory of a device, which the CPU does not touch, where payloads may be. */
typedef struct {
    guint8 *memory;
    gsize bytes;
    int dma_buf; /* descriptor of the dma-buf that it is in; -1: none, register it by its address */
    guint64 dma_buf_offset;
    /* When it returns, the device sees what the network has written so far. NULL: it does at once. */
    gboolean (*flush)(gpointer context, GError **error);
    gpointer context;
} TtWireDevice;

typedef struct {
    gpointer memory; /* all ends' memory lies in here; page-aligned */
    gsize memory_bytes;
    const TtWireEnd *ends; /* [n_ends], ordered by connection; borrowed until the next begin() */
    guint n_ends;
    guint job; /* counts up; tells late messages of an earlier job */
} TtWireJob;

typedef enum { TT_WIRE_IDLE, TT_WIRE_MOVED, TT_WIRE_FAILED } TtWireNews;

typedef struct {
    const char *name;    /* "tcp" for transport_tcp.c */
    const char *summary; /* one line for --help */
    /* Sends lent messages from where they are, counts at TT_SENT_AT what has left memory, and puts messages where
     * they are wanted (ports.h); with one stream. */
    gboolean lends;

    /* Makes this rank reachable and says where. NULL with TT_EXEC_ERROR_*. */
    TtWire *(*open)(const TtWireOptions *options, TtAddress *mine, GError **error);
    void (*close)(TtWire *self); /* NULL is fine */

    /* Optional: from now on ends may have payloads in @device (NULL: none may). Not while a job runs. FALSE with
     * @error: the network cannot reach it, and none may. */
    gboolean (*reach_device)(TtWire *self, const TtWireDevice *device, GError **error);

    /* Connects the ends of a job; all ranks are in it at the same time. Slots are empty. */
    gboolean (*begin)(TtWire *self, const TtWireJob *job, GError **error);

    /* Carries what can be carried now. TT_WIRE_MOVED if a message or an acknowledgement arrived. Never blocks. */
    TtWireNews (*pump)(TtWire *self);

    /* Everything filled has left this rank's memory, or is sure to without being pumped again. */
    gboolean (*is_flushed)(const TtWire *self);

    /* Sleeps until pump() may find something, at most @timeout_ms. */
    void (*sleep)(TtWire *self, int timeout_ms);

    /* After TT_WIRE_FAILED: what happened, as an error of TT_EXEC_ERROR; *peer: with whom, or TT_NO_RANK. */
    void (*explain)(const TtWire *self, guint *peer, GError **error);

    /* For tests of what goes wrong: does it to the connections with @peer. */
    void (*harm)(TtWire *self, guint peer, TtHarm how);
} TtTransport;

/* Written by the build: sorted by name, ends with NULL. Shared memory is none of them. */
extern const TtTransport *const tt_transports[];
const TtTransport *tt_transport_find(const char *name); /* NULL if there is none */
