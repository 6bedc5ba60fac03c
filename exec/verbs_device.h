/* verbs_device.h - what the files of the verbs layer share: the structs behind verbs.h. */
#pragma once
#include "exec/verbs.h"

#include <infiniband/verbs.h>

#define TT_VERBS_BATCH 32 /* completions taken from the card at a time */

struct TtVerbs {
    struct ibv_context *context;
    struct ibv_pd *domain;
    struct ibv_comp_channel *channel;
    struct ibv_cq *completions;
    struct ibv_port_attr port;
    struct ibv_device_attr limits;
    union ibv_gid gid;
    guint8 service_level, traffic_class;

    TtVerbsInfo info;
    char *device_name, *address;

    GPtrArray *queues; /* of TtVerbsQueue by number, NULL once freed; numbers are not used again */
    GPtrArray *memories; /* of TtVerbsMemory */

    struct ibv_wc taken[TT_VERBS_BATCH]; /* from the card, not yet handed on */
    guint first_taken, n_taken;
    gboolean port_down; /* as the last event about it said */
};

struct TtVerbsMemory {
    TtVerbs *verbs;
    struct ibv_mr *region;
    gpointer start;
    gboolean is_device; /* the CPU cannot read it */
};

struct TtVerbsQueue {
    TtVerbs *verbs;
    struct ibv_qp *pair;
    char *name;
    gpointer user;
    guint32 number; /* in verbs->queues */
    guint32 first_packet;
    guint32 posted, finished;   /* writes; both wrap */
    guint32 reported;           /* writes posted when the last report was asked for */
    guint32 open_receives;      /* offered and not used up */
    guint32 *positions;         /* [send_depth] of reports in flight: writes posted up to each */
    guint32 n_asked, n_reports; /* reports asked for and come back; both wrap */
    gboolean broken;            /* has been reported; the rest of its completions are dropped */
};

/* A work request carries who it is of: queue number, cookie, and for a receive or a report that only we
 * wanted one bit each. */
#define TT_VERBS_ID_RECEIVE (1ull << 63)
#define TT_VERBS_ID_OWN     (1ull << 62)

static inline guint64
tt_verbs_id(const TtVerbsQueue *queue, guint32 cookie)
{
    return (guint64)queue->number << 32 | cookie;
}

static inline guint32
tt_verbs_id_queue(guint64 id)
{
    return (id & ~(TT_VERBS_ID_RECEIVE | TT_VERBS_ID_OWN)) >> 32;
}

/* "<device>: <what>: <words for errno>", TT_EXEC_ERROR_SYSTEM. */
void tt_verbs_fail(const TtVerbs *self, GError **error, int code, const char *what);
