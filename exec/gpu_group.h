/* gpu_group.h - the ranks of this process on its GPUs.
 *
 * Ranks of one GPU are a group: threads that meet before each launch; the last to come launches for all of them and
 * watches, while every rank pumps its own wires. Between launches a rank does what it does on a CPU (rank.c).
 *
 *     tt_gpus_open        which ranks on which GPU, arenas for connections, handles for other processes
 *     gpu_place.c         where a connection lies: the receiver's GPU, the sender's, or host memory
 *     gpu_compile.c       a rank's part of the job as steps, lanes and ends; the group's, uploaded
 *     gpu_run.c           launches, progress, time-outs, recording
 *     gpu_measure.c       what a GPU does at best, for calibration
 *     gpu_data.c          buffers on the GPU; inputs to it, results from it
 *     gpu_direct.c        payloads of messages over wires on the GPU, where a network card reaches it
 */
#pragma once
#include "exec/gpu.h"
#include "exec/rank.h"

#include <pthread.h>

typedef struct TtGpuGroup TtGpuGroup;

/* Device memory that grows; what was in it is lost then. */
typedef struct {
    guint8 *memory;
    gsize bytes;
} TtGpuRoom;

/* Where threads of ranks meet. The team's abort ends every wait. */
typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    guint n, n_met;
    guint64 meetings;
    gboolean failed; /* somebody has complained */
} TtGpuMeet;

struct TtGpuGroup {
    TtGpus *gpus;
    TtGpu *gpu;
    TtGpuFacts facts;
    guint index;               /* of the device */
    guint first, n;            /* its ranks: those of the process from `first` on */
    TtGpuRank **ranks;         /* [n] */
    pthread_mutex_t lock;      /* of the driver's functions for this device */
    TtGpuRoom arena;           /* connections; of fixed size if other processes see it */
    TtGpuRoom program, events; /* as uploaded */
    TtGpuStatus *status;       /* host memory, one per block */
    guint n_status;
    TtGpuProgram launch; /* the job's */
    TtGpuProgram record; /* the same, with events */

    TtGpuMeet meet;            /* its ranks */
    _Atomic guint64 runs;      /* finished: launches of one tt_gpu_run() */
    _Atomic guint64 iteration; /* finished in this job */
};

/* How the network reaches memory of the GPU. */
typedef enum { TT_GPU_DIRECT_NO, TT_GPU_DIRECT_DMA_BUF, TT_GPU_DIRECT_ADDRESS } TtGpuDirect;

struct TtGpuRank {
    TtGpuGroup *group;
    guint index; /* in the group */
    TtGpuRoom buffer[TT_N_BUFFERS];
    GArray *steps, *lanes,
        *ends;      /* TtGpuStep, TtGpuLane, TtGpuEnd: this rank's part, indexes from 0 */
    GArray *shapes; /* TtGpuShape, one per part */
    guint first_block, first_end; /* of its lanes and ends, in the launch */
    guint64 runs;
    gboolean launches; /* this one does, this time */
    guint8 *staging;   /* a piece of a buffer, here */
    TtGpuDirect direct;
    char *direct_why; /* NO: why not */
};

struct TtGpus {
    const TtGpuDriver *driver;
    TtRegion *region;
    TtGpuPlacement placement;
    TtGpuGroup *groups;
    guint n_groups;
    guint32 *abort; /* host memory, seen by all kernels */
    TtGpuMeet meet; /* all ranks of the process */

    pthread_mutex_t lock; /* of what follows */
    GHashTable *attached; /* first rank of another process -> its arena */
    guint8 *host;         /* connections in memory of the host */
    gsize host_bytes;
    gboolean host_is_registered; /* it is the region's; else the driver's own */
};

/* --- gpu_group.c --- */

/* @device: "host", "host:2", "0,2", NULL: all GPUs there are. Called when it is known which ranks this process has. */
TtGpus *tt_gpus_open(TtRegion *region, const char *device, TtGpuPlacement placement,
                     GError **error);
void tt_gpus_close(TtGpus *self); /* NULL is fine */

/* "0 NVIDIA H200 (ranks 0-7)": one line for the header of a run. Caller frees. */
char *tt_gpus_text(const TtGpus *self);

TtGpuRank *tt_gpu_rank_new(TtGpus *gpus, guint rank);
void tt_gpu_rank_free(TtGpuRank *self);

/* All come here; @last (may be NULL) runs in the last of them. FALSE, for all, if it is or the team was aborted. */
gboolean tt_gpu_meet(TtRank *self, TtGpuMeet *meet, gboolean (*last)(TtRank *self));

/* FALSE, with the rank's complaint. Takes @error. */
gboolean tt_gpu_complain(TtRank *self, GError *error);

gboolean tt_gpu_make_room(TtGpuGroup *group, TtGpuRoom *room, gsize bytes, GError **error);

/* --- gpu_measure.c --- */

/* Lines of comment on each GPU: launches, copies and reductions by blocks, memory, cache, peers. No rank may run.
 * Caller frees. */
char *tt_gpus_measure(TtGpus *self, GError **error);

/* --- gpu_place.c --- */

/* Slots of the job's messages: how they say that they are there, and the bytes of one. */
guint32 tt_gpu_choose_protocol(const TtRegion *region, gsize message_bytes);
gsize tt_gpu_slot_bytes(guint32 protocol, gsize message_bytes);

/* Once, after tt_gpus_open: what other processes must know of this one's ranks. */
typedef struct {
    guint8 handle[TT_GPU_HANDLE_BYTES];
    char bus_id[32];
} TtGpuAddress;
G_STATIC_ASSERT(sizeof(TtGpuAddress) <= TT_ADDRESS_BYTES);
gboolean tt_gpu_place_open(TtGpus *gpus, GError **error);
void tt_gpu_place_close(TtGpus *gpus);

/* For the last rank of the process to come: makes room for the job's connections, and empties it. FALSE: it has complained. */
gboolean tt_gpu_place_job(TtRank *self);

/* Where a connection lies for kernels of @self's group. NULL with an error. Over wires: not to be asked. */
guint8 *tt_gpu_place(TtRank *self, guint32 connection, guint sender, guint receiver,
                     GError **error);

/* --- gpu_compile.c --- */
void tt_gpu_open_ports(TtRank *self);  /* of connections over wires */
gboolean tt_gpu_compile(TtRank *self); /* when they are connected. FALSE: it has complained */
void tt_gpu_compile_clear(TtGpuRank *self);

/* --- gpu_run.c --- */
gboolean tt_gpu_run(TtRank *self, guint n, TtStamp *stamps); /* stamps: NULL, or [n] in ns */
gboolean tt_gpu_record(TtRank *self, TtEvent *events, gsize *n_events);

/* --- gpu_data.c --- */
gboolean tt_gpu_place_buffers(TtRank *self);
gboolean tt_gpu_upload(TtRank *self, guint8 *to, gconstpointer from, gsize bytes);
/* Memory of this process, which kernels of the group may use until it is unregistered. */
gboolean tt_gpu_register(TtRank *self, gpointer memory, gsize bytes);
void tt_gpu_unregister(TtRank *self, gpointer memory);
gboolean tt_gpu_download(TtRank *self, gpointer to, const guint8 *from, gsize bytes);

/* --- gpu_direct.c --- */

/* When the wire is open: finds out how the network reaches the GPU. Before a job: room for its ends at reach->payload; NULL
 * stands for the host's memory, as always when it cannot be had. */
void tt_gpu_direct_open(TtRank *self, TtReachWires *reach);
void tt_gpu_direct_room(TtRank *self, TtReachWires *reach, gsize bytes);
void tt_gpu_direct_close(TtRank *self, TtReachWires *reach);

/* "dma-buf", "nvidia-peermem", "no (host memory: WHY)": of this process's ranks; NULL if no wire leads to other machines.
 * Not while a job runs. Caller frees. */
char *tt_gpus_direct_text(const TtGpus *self);
