/* Completions and events: polled, slept for, and turned into errors when they are bad news. */
#include "exec/verbs_device.h"

#include <errno.h>
#include <poll.h>

/* --- completions -------------------------------------------------------------------------------- */

/* Gets more from the card if none are left. FALSE: it has none either. */
static gboolean
take(TtVerbs *self)
{
    int n;

    if (self->first_taken < self->n_taken)
        return TRUE;
    n = ibv_poll_cq(self->completions, TT_VERBS_BATCH, self->taken);
    self->first_taken = 0;
    self->n_taken = MAX(n, 0);
    return self->n_taken > 0;
}

/* The queue a completion is of; NULL for one that is freed, or broken and known to be. */
static TtVerbsQueue *
queue_of(const TtVerbs *self, guint64 id)
{
    guint32 number = tt_verbs_id_queue(id);
    TtVerbsQueue *queue = number < self->queues->len ? self->queues->pdata[number] : NULL;

    return queue && !queue->broken ? queue : NULL;
}

static void
fail_completion(TtVerbsQueue *queue, const struct ibv_wc *taken, GError **error)
{
    const TtVerbs *self = queue->verbs;
    g_autofree char *port =
        self->port_down ? g_strdup_printf("; port %u is down", self->info.port) : g_strdup("");

    queue->broken = TRUE;
    g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_NETWORK, "%s: %s: %s%s", self->device_name,
                queue->name, tt_verbs_status_words(taken->status), port);
}

/* Books a good completion. FALSE: nothing the caller wants to know of. */
static gboolean
book(TtVerbsQueue *queue, const struct ibv_wc *taken, TtVerbsCompletion *out)
{
    *out = (TtVerbsCompletion){ .queue = queue, .user = queue->user };
    if (taken->wr_id & TT_VERBS_ID_RECEIVE) {
        queue->open_receives--;
        out->what = TT_VERBS_ARRIVED;
        out->immediate = GUINT32_FROM_BE(taken->imm_data);
        out->bytes = taken->byte_len;
        return TRUE;
    }
    queue->finished = queue->positions[queue->n_reports++ % queue->verbs->info.send_depth];
    out->what = TT_VERBS_WRITTEN;
    out->cookie = (guint32)taken->wr_id;
    return !(taken->wr_id & TT_VERBS_ID_OWN);
}

int
tt_verbs_poll(TtVerbs *self, TtVerbsCompletion *completions, guint n, GError **error)
{
    guint done = 0;

    while (done < n && take(self)) {
        const struct ibv_wc *taken = &self->taken[self->first_taken];
        TtVerbsQueue *queue = queue_of(self, taken->wr_id);

        if (queue && taken->status != IBV_WC_SUCCESS) {
            if (done)
                break; /* first what went well before it */
            self->first_taken++;
            fail_completion(queue, taken, error);
            completions[0] = (TtVerbsCompletion){ .queue = queue, .user = queue->user };
            return -1;
        }
        self->first_taken++;
        if (queue && book(queue, taken, &completions[done]))
            done++;
    }
    return (int)done;
}

/* --- events ------------------------------------------------------------------------------------- */

static TtVerbsQueue *
queue_of_event(const struct ibv_async_event *event)
{
    switch (event->event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_PATH_MIG_ERR: return event->element.qp->qp_context;
    default: return NULL;
    }
}

/* Reads what the card has to say beside completions. FALSE if it ends a queue or all. */
static gboolean
read_events(TtVerbs *self, GError **error)
{
    struct ibv_async_event event;

    while (ibv_get_async_event(self->context, &event) == 0) {
        gboolean harmless;
        const char *words = tt_verbs_event_words(event.event_type, &harmless);
        TtVerbsQueue *queue = queue_of_event(&event);
        gboolean known = queue && queue->broken;

        if (event.event_type == IBV_EVENT_PORT_ERR || event.event_type == IBV_EVENT_PORT_ACTIVE) {
            if (event.element.port_num == (int)self->info.port)
                self->port_down = event.event_type == IBV_EVENT_PORT_ERR;
        }
        if (queue)
            queue->broken = TRUE;
        ibv_ack_async_event(&event);
        if (harmless || known)
            continue;
        if (queue)
            g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_NETWORK, "%s: %s: %s",
                        self->device_name, queue->name, words);
        else
            g_set_error(error, TT_EXEC_ERROR, TT_EXEC_ERROR_NETWORK, "%s: %s", self->device_name,
                        words);
        return FALSE;
    }
    return TRUE;
}

/* Asking for a wake-up first and looking once more afterwards leaves no gap between the two. */
gboolean
tt_verbs_arm(TtVerbs *self)
{
    if (take(self))
        return FALSE;
    (void)ibv_req_notify_cq(self->completions, 0);
    return !take(self);
}

void
tt_verbs_descriptors(const TtVerbs *self, int descriptors[2])
{
    descriptors[0] = self->channel->fd;
    descriptors[1] = self->context->async_fd;
}

gboolean
tt_verbs_woken(TtVerbs *self, GError **error)
{
    struct ibv_cq *queue;
    void *context;
    guint n = 0;

    while (ibv_get_cq_event(self->channel, &queue, &context) == 0)
        n++;
    if (n)
        ibv_ack_cq_events(self->completions, n);
    return read_events(self, error);
}

gboolean
tt_verbs_wait(TtVerbs *self, gint64 timeout_ns, GError **error)
{
    struct pollfd descriptors[2] = {
        { .fd = self->channel->fd, .events = POLLIN },
        { .fd = self->context->async_fd, .events = POLLIN },
    };
    struct timespec timeout = { timeout_ns / 1000000000, timeout_ns % 1000000000 };

    if (tt_verbs_arm(self)) {
        if (ppoll(descriptors, 2, timeout_ns < 0 ? NULL : &timeout, NULL) < 0 && errno != EINTR) {
            tt_verbs_fail(self, error, errno, "cannot wait for completions");
            return FALSE;
        }
    }
    return tt_verbs_woken(self, error);
}
