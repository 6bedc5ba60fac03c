/* Queue pairs: made, connected, written to.
 *
 *     RESET --(new)--> INIT --(connect: peer known)--> RTR --(connect)--> RTS
 *                      takes receives                 receives           sends
 */
#include "exec/verbs_device.h"

#include <errno.h>
#include <string.h>

#define ADDRESS_VERSION 0x54545631u /* "TTV1" */

/* How long a silent peer is believed in. A packet without answer is repeated after 4.096 us * 2^17 =
 * 0.54 s, six times: 3.8 s, and cards may take up to four times as long. A port that flaps is forgiven,
 * and of a dead peer the watchdog usually knows first. (Not seven times: software RoCE takes that for
 * ever.) */
#define TIMEOUT_CODE 17
#define RETRIES      6

/* A peer with no receive offered is asked again after 0.64 ms (code 12), for ever (7): credits make
 * that rare, and a peer that is stuck is the watchdog's to name. */
#define NOT_READY_CODE    12
#define NOT_READY_RETRIES 7

/* Hops a packet may take through routers. */
#define HOP_LIMIT 64

static void
fail_queue(const TtVerbsQueue *queue, GError **error, int code, const char *what)
{
    g_autofree char *text = g_strdup_printf("%s: %s", queue->name, what);

    tt_verbs_fail(queue->verbs, error, code, text);
}

/* A card that cannot inline that much refuses the queue: then half as much, down to none. */
static struct ibv_qp *
make_pair(TtVerbs *self, gpointer owner)
{
    guint32 inline_bytes = self->info.inline_bytes;

    for (;;) {
        struct ibv_qp_init_attr want = {
            .qp_context = owner,
            .send_cq = self->completions,
            .recv_cq = self->completions,
            .qp_type = IBV_QPT_RC,
            .cap = { .max_send_wr = self->info.send_depth,
                     .max_recv_wr = self->info.receive_depth,
                     .max_send_sge = 1,
                     .max_recv_sge = 1,
                     .max_inline_data = inline_bytes },
        };
        struct ibv_qp *pair = ibv_create_qp(self->domain, &want);

        if (pair) {
            self->info.inline_bytes = MIN(self->info.inline_bytes, want.cap.max_inline_data);
            return pair;
        }
        if (inline_bytes == 0 || errno != EINVAL)
            return NULL;
        inline_bytes /= 2;
    }
}

static int
to_init(const TtVerbsQueue *queue)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = queue->verbs->info.port,
        .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
    };

    return ibv_modify_qp(queue->pair, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

TtVerbsQueue *
tt_verbs_queue_new(TtVerbs *self, const char *name, gpointer user, GError **error)
{
    g_autoptr(TtVerbsQueue) queue = g_new0(TtVerbsQueue, 1);
    int code;

    queue->verbs = self;
    queue->name = g_strdup(name);
    queue->user = user;
    queue->number = self->queues->len;
    queue->first_packet = g_random_int() & 0xffffff;
    queue->positions = g_new0(guint32, self->info.send_depth);
    g_ptr_array_add(self->queues, queue);
    queue->pair = make_pair(self, queue);
    if (!queue->pair) {
        fail_queue(queue, error, errno, "cannot make a queue pair");
        return NULL;
    }
    code = to_init(queue);
    if (code) {
        fail_queue(queue, error, code, "cannot prepare the queue pair");
        return NULL;
    }
    return g_steal_pointer(&queue);
}

void
tt_verbs_queue_free(TtVerbsQueue *queue)
{
    if (!queue)
        return;
    queue->verbs->queues->pdata[queue->number] = NULL;
    if (queue->pair)
        ibv_destroy_qp(queue->pair);
    g_free(queue->positions);
    g_free(queue->name);
    g_free(queue);
}

void
tt_verbs_queue_break(TtVerbsQueue *queue)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

    (void)ibv_modify_qp(queue->pair, &attr, IBV_QP_STATE);
}

/* --- connecting --------------------------------------------------------------------------------- */

void
tt_verbs_address(const TtVerbsQueue *queue, TtVerbsAddress *address)
{
    const TtVerbs *self = queue->verbs;

    *address = (TtVerbsAddress){
        .version = GUINT32_TO_BE(ADDRESS_VERSION),
        .queue_number = GUINT32_TO_BE(queue->pair->qp_num),
        .first_packet = GUINT32_TO_BE(queue->first_packet),
        .lid = GUINT16_TO_BE(self->port.lid),
        .link_layer = self->port.link_layer,
        .mtu = self->port.active_mtu,
    };
    memcpy(address->gid, self->gid.raw, sizeof address->gid);
}

static const char *
link_name(guint8 layer)
{
    return layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand";
}

static gboolean
check_peer(const TtVerbsQueue *queue, const TtVerbsAddress *peer, GError **error)
{
    const TtVerbs *self = queue->verbs;

    if (peer->version != GUINT32_TO_BE(ADDRESS_VERSION) || peer->mtu < IBV_MTU_256 ||
        peer->mtu > IBV_MTU_4096)
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                    "%s: %s: not a queue pair's address, or one of another version of tutti",
                    self->device_name, queue->name);
    else if (peer->link_layer != self->port.link_layer)
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                    "%s: %s: this port is %s, the peer's is %s: choose other devices",
                    self->device_name, queue->name, link_name(self->port.link_layer),
                    link_name(peer->link_layer));
    else
        return TRUE;
    return FALSE;
}

/* Ready to receive: where the peer is. Packets are as long as the smaller of both ports allows. */
static int
to_receive(const TtVerbsQueue *queue, const TtVerbsAddress *peer)
{
    const TtVerbs *self = queue->verbs;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = MIN(self->port.active_mtu, (enum ibv_mtu)peer->mtu),
        .dest_qp_num = GUINT32_FROM_BE(peer->queue_number),
        .rq_psn = GUINT32_FROM_BE(peer->first_packet),
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = NOT_READY_CODE,
        .ah_attr = { .port_num = self->info.port,
                     .sl = self->service_level,
                     .dlid = GUINT16_FROM_BE(peer->lid) },
    };

    if (self->info.gid_index >= 0) {
        attr.ah_attr.is_global = 1;
        attr.ah_attr.grh.sgid_index = self->info.gid_index;
        attr.ah_attr.grh.hop_limit = HOP_LIMIT;
        attr.ah_attr.grh.traffic_class = self->traffic_class;
        memcpy(attr.ah_attr.grh.dgid.raw, peer->gid, sizeof peer->gid);
    }
    return ibv_modify_qp(queue->pair, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int
to_send(const TtVerbsQueue *queue)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .sq_psn = queue->first_packet,
        .timeout = TIMEOUT_CODE,
        .retry_cnt = RETRIES,
        .rnr_retry = NOT_READY_RETRIES,
        .max_rd_atomic = 1,
    };

    return ibv_modify_qp(queue->pair, &attr,
                         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                             IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

gboolean
tt_verbs_connect(TtVerbsQueue *queue, const TtVerbsAddress *peer, GError **error)
{
    int code;

    if (!check_peer(queue, peer, error))
        return FALSE;
    code = to_receive(queue, peer);
    if (code) {
        fail_queue(queue, error, code, "cannot connect the queue pair");
        return FALSE;
    }
    code = to_send(queue);
    if (code) {
        fail_queue(queue, error, code, "cannot start the queue pair");
        return FALSE;
    }
    return TRUE;
}

/* --- posting ------------------------------------------------------------------------------------ */

gboolean
tt_verbs_receive(TtVerbsQueue *queue, guint n, GError **error)
{
    struct ibv_recv_wr requests[TT_VERBS_BATCH], *bad;

    if (n > queue->verbs->info.receive_depth - queue->open_receives) {
        g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_SYSTEM,
                    "%s: %s: %u receives offered with %u open: at most %u",
                    queue->verbs->device_name, queue->name, n, queue->open_receives,
                    queue->verbs->info.receive_depth);
        return FALSE;
    }
    while (n) {
        guint batch = MIN(n, TT_VERBS_BATCH);
        int code;

        /* Without memory: the bytes go where the writer says. */
        for (guint i = 0; i < batch; i++)
            requests[i] = (struct ibv_recv_wr){
                .wr_id = tt_verbs_id(queue, 0) | TT_VERBS_ID_RECEIVE,
                .next = i + 1 < batch ? &requests[i + 1] : NULL,
            };
        code = ibv_post_recv(queue->pair, requests, &bad);
        if (code) {
            fail_queue(queue, error, code, "cannot offer receives");
            return FALSE;
        }
        queue->open_receives += batch;
        n -= batch;
    }
    return TRUE;
}

/* Only requests that ask for it complete visibly, and free the places of all before them. So one in a
 * quarter of the depth does, asked or not. */
static gboolean
needs_report(const TtVerbsQueue *queue)
{
    return queue->posted + 1 - queue->reported >= MAX(1, queue->verbs->info.send_depth / 4);
}

/* The CPU copies it into the request. */
static gboolean
can_be_inline(const TtVerbsInfo *info, const TtVerbsWrite *write)
{
    return write->bytes && write->bytes <= info->inline_bytes &&
           !(write->memory && write->memory->is_device);
}

TtVerbsPosted
tt_verbs_write(TtVerbsQueue *queue, const TtVerbsWrite *write, GError **error)
{
    const TtVerbsInfo *info = &queue->verbs->info;
    gboolean report = write->report || needs_report(queue);
    struct ibv_sge piece = {
        .addr = (guint64)(gsize)write->from,
        .length = write->bytes,
        .lkey = write->memory ? write->memory->region->lkey : 0,
    };
    struct ibv_send_wr *bad, request = {
        .wr_id = tt_verbs_id(queue, write->cookie) | (write->report ? 0 : TT_VERBS_ID_OWN),
        .sg_list = &piece,
        .num_sge = write->bytes ? 1 : 0,
        .opcode = write->silent ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM,
        .imm_data = GUINT32_TO_BE(write->immediate),
        .wr.rdma = { .remote_addr = write->to, .rkey = write->key },
    };
    int code;

    if (queue->broken) {
        fail_queue(queue, error, ENOTCONN, "cannot write");
        return TT_VERBS_FAILED;
    }
    if (queue->posted - queue->finished >= info->send_depth)
        return TT_VERBS_FULL;
    request.send_flags =
        (report ? IBV_SEND_SIGNALED : 0) | (can_be_inline(info, write) ? IBV_SEND_INLINE : 0);
    code = ibv_post_send(queue->pair, &request, &bad);
    if (code) {
        fail_queue(queue, error, code, "cannot write");
        return TT_VERBS_FAILED;
    }
    queue->posted++;
    if (report) {
        queue->positions[queue->n_asked++ % info->send_depth] = queue->posted;
        queue->reported = queue->posted;
    }
    return TT_VERBS_POSTED;
}
